"""The contract of `surefoot.journal.contract` as checks that run on any journal.

A new backend is held to it by running every one of `CHECKS` on a fresh, empty journal of its kind:

>>> from surefoot.journal.in_memory import MemoryJournal
>>> for rule in CHECKS:
...     rule(MemoryJournal())
"""

from surefoot.journal.conformance import reads, transactions
from surefoot.journal.conformance.rules import CHECKS

__all__ = ["CHECKS", "reads", "transactions"]
