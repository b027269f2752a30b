"""Worlds and engines: what a policy would do, over many realisations at once."""
