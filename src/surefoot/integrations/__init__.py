"""surefoot inside what people already run: gateways, flags and telemetry, one file each; each needs its own extra."""
