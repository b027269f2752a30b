"""`python -m bench` measures everything; `python -m bench safety journal` some. The exit code says if every bar holds."""

import importlib
import sys

ROOMS = ("core", "simulation", "safety", "journal", "experiment", "audit", "replay")

chosen = sys.argv[1:] or ROOMS
sys.exit(0 if all([importlib.import_module(f"bench.{room}").main() for room in chosen]) else 1)
