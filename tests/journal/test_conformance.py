"""Every backend keeps the contract."""

from collections.abc import Callable

import pytest

from surefoot.journal import Journal
from surefoot.journal.conformance import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_journal_keeps_its_contract(check: Callable[[Journal], None], journal: Journal) -> None:
    check(journal)
