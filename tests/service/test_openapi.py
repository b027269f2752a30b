"""The OpenAPI document is served, is of version 3.1, and is true: no answer is unknown to it."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from surefoot.service.app import create_app
from surefoot.service.openapi import document
from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.service.servers import create, running

SCHEMA = document(create_app(Settings()).litestar)
schema = schemathesis.openapi.from_dict(SCHEMA)
schema.config.generation.update(modes=[schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE])
# Rules that no schema can tell (rows of equal length, lengths within their bound) are told by 422: that is documented.
EXCLUDED = [positive_data_acceptance]


def test_the_document_is_served_and_names_no_host(client: httpx.Client) -> None:
    found = client.get("/openapi.json").json()
    assert found["openapi"].startswith("3.1")
    assert all(server["url"] == "/" for server in found.get("servers", []))
    assert set(found["paths"]) == set(SCHEMA["paths"])


@pytest.mark.parametrize("path", sorted(path for path in SCHEMA["paths"] if path.startswith("/v1/")))
def test_the_document_says_that_a_token_is_needed(path: str) -> None:
    assert all(operation["security"] == [{"token": []}] for operation in SCHEMA["paths"][path].values())


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("openapi")
    headers = {"Authorization": f"Bearer {TokenFile(folder / 'tokens').create(['admin'])}"}
    with running(Settings(database=str(folder / "shop.journal"), tokens=str(folder / "tokens"))) as address:
        with httpx.Client(base_url=address, headers=headers, timeout=120, trust_env=False) as client:
            create(client)
        yield address, headers


@schema.include(path_regex="^(?!.*/live$)").parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
def test_no_answer_is_undocumented(guarded: tuple[str, dict[str, str]], case: Any) -> None:
    address, headers = guarded
    case.call_and_validate(base_url=address, headers=headers, excluded_checks=EXCLUDED)
