"""Replay: what a policy would have done on logged data, before it touches a customer."""
