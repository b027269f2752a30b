"""A server with a signing key, and a new experiment on it for each test."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.edge.edges import Shop, new_keys, settings_of
from tests.service.servers import running

NUMBERS = itertools.count()


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("server")
    new_keys(folder)
    with running(settings_of(folder)) as address:
        yield address, folder


@pytest.fixture
def shop(server: tuple[str, Path], tmp_path: Path) -> Iterator[Shop]:
    made = Shop(*server, tmp_path, f"shop{next(NUMBERS)}")
    made.create()
    yield made
    # It would renew its lease twenty times a second for as long as the other tests take.
    made.ask("POST", f"/v1/experiments/{made.name}/shards/server/departure")
