"""The contract of `surefoot.journal.contract` as checks that run on any journal.

A new backend passes every one of `CHECKS` on a fresh, empty journal:

>>> from surefoot.journal.in_memory import MemoryJournal
>>> for rule in CHECKS:
...     rule(MemoryJournal())
"""

from surefoot.journal.conformance import private_texts, reads, transactions
from surefoot.journal.conformance.rules import CHECKS

__all__ = ["CHECKS", "private_texts", "reads", "transactions"]
