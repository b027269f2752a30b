"""LiteLLM reads its environment when it is imported, in the server that forks the tests' proxies."""

import pytest

from tests.integrations.proxies import ENVIRONMENT, FORKS


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    FORKS.set_forkserver_preload(["litellm.proxy.proxy_cli", "litellm.proxy.proxy_server"])
