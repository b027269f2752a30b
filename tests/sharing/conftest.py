"""A hub in memory, the files of an honest fleet, and a server with a new experiment on it for each test."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import surefoot
from surefoot.journal import Journal
from tests.service.servers import running
from tests.sharing.edges import Shop, new_keys, settings_of
from tests.sharing.forgery import played

NUMBERS = itertools.count()


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


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("server")
    new_keys(folder)
    with running(settings_of(folder)) as address:
        yield address, folder


@pytest.fixture
def new_shop(service: tuple[str, Path], tmp_path: Path) -> Iterator[Callable[..., Shop]]:
    """Makes experiments on the server."""
    shops = list[Shop]()

    def create(kind: str = "rows", **extra: Any) -> Shop:
        shop = Shop(*service, tmp_path, f"shop{next(NUMBERS)}", kind)
        shop.create(**extra)
        shops.append(shop)
        return shop

    yield create
    for shop in shops:
        shop.close()


@pytest.fixture(params=["rows", "pair"])
def shop(request: pytest.FixtureRequest, new_shop: Callable[..., Shop]) -> Shop:
    """One of each kind."""
    return new_shop(request.param)
