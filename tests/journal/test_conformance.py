"""Every backend keeps the contract."""

from collections.abc import Callable

import pytest

from surefoot.journal import Journal, open_journal
from surefoot.journal.conformance import CHECKS, check_durable


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_journal_keeps_its_contract(check: Callable[[Journal], None], journal: Journal) -> None:
    check(journal)


def test_a_journal_that_is_opened_again_holds_what_it_held(address: str) -> None:
    if address != "memory:":  # which ends with its process
        check_durable(lambda: open_journal(address, sync="unsynced" not in address))
