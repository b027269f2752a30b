"""Section 5 of the paper: its figures, its claims, and a page that holds both against what was measured."""
