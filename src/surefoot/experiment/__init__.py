"""Experiments: a policy, a journal and a clock; decisions that are durable before they are returned."""
