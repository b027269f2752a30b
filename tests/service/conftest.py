"""What tests of the service share: a server, and a browser with a tab."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from surefoot.service.settings import Settings
from tests.service.page_browser import Browser, Tab, browser
from tests.service.servers import create, running


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("service")
    with running(Settings(database=str(folder / "shop.journal"), window_seconds=0.1)) as address:
        with httpx.Client(base_url=address, timeout=120, trust_env=False) as client:
            create(client)
            create(client, "patient", reward_window=0.5, default_reward=0.25, reward_bounds=[0, 1])
        yield address


@pytest.fixture(scope="session")
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=120, trust_env=False) as client:
        yield client


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "shop.journal")


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def tab(chrome: Browser) -> Iterator[Tab]:
    with chrome.tab() as found:
        found.size(1280, 900)
        yield found
