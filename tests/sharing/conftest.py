"""A hub in memory."""

from collections.abc import Iterator

import pytest

import surefoot
from surefoot.journal import Journal


@pytest.fixture
def hub() -> Iterator[Journal]:
    with surefoot.open_journal("memory:") as journal:
        yield journal
