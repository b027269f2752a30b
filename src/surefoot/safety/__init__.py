"""What we may risk: ledger, gates, facts, proofs, certificates."""
