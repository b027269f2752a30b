"""LiteLLM reads its environment when it is imported, in the server that forks the tests' proxies."""

from collections.abc import Iterator

import pytest

from tests.integrations.model_server import ModelServer, model_server
from tests.integrations.proxies import ENVIRONMENT, FORKS


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    FORKS.set_forkserver_preload(["litellm.proxy.proxy_cli", "litellm.proxy.proxy_server"])


@pytest.fixture
def big() -> Iterator[ModelServer]:
    with model_server("big") as server:
        yield server


@pytest.fixture
def small() -> Iterator[ModelServer]:
    with model_server("small") as server:
        yield server
