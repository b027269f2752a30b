"""A hub in memory, and the files of an honest fleet."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import surefoot
from surefoot.journal import Journal
from tests.sharing.forgery import played


@pytest.fixture
def hub() -> Iterator[Journal]:
    with surefoot.open_journal("memory:") as journal:
        yield journal


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    fleet = played(folder)
    fleet.close()
    fleet.hub.close()
    return folder
