"""The OpenAPI document is served, is of version 3.1, and is true: no answer is unknown to it."""

import json
import re
from collections.abc import Iterator
from html import escape, unescape
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
from tests.service.page_browser import Tab
from tests.service.servers import create, running
from tests.service.test_roles import NEEDS

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


def refs(part: Any) -> Iterator[str]:
    """Every reference of a document."""
    if isinstance(part, dict):
        yield from ([part["$ref"]] if "$ref" in part else [])
    for one in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from refs(one)


def test_every_reference_leads_somewhere() -> None:
    known = {f"#/components/schemas/{name}" for name in SCHEMA["components"]["schemas"]}
    assert set(refs(SCHEMA)) - known == set()


def test_the_page_to_read_has_every_route_with_its_role_and_no_script(client: httpx.Client) -> None:
    page = client.get("/api")
    assert page.headers["content-type"].startswith("text/html")
    assert "<script" not in page.text
    for path, found in SCHEMA["paths"].items():
        for method, one in found.items():
            (part,) = re.findall(rf'<details class="panel" id="{one["operationId"]}">.*?</details>', page.text, re.S)
            role = NEEDS.get((method.upper(), path))
            who = {None: "no token", "any": "any token"}.get(role, f"role <b>{role}</b>")
            for words in (f">{method.upper()}<", f"<code>{escape(path)}</code>", who):
                assert words in part
    example = re.search(r'id="decide">.*?<h4>Answer 201</h4><pre><code>(.*?)</code></pre>', page.text, re.S)
    assert example is not None
    answer = json.loads(unescape(example[1]))
    assert (answer["decision_id"], answer["action"]) == ("visit-1", "today")


@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_to_read_fits_the_screen_and_is_linked(tab: Tab, address: str, width: int) -> None:
    tab.size(width, 900)
    tab.open(address)
    tab.open(tab.run("document.querySelector('footer a').href"))
    assert tab.run("location.pathname") == "/api"
    tab.run("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert tab.complaints == []


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
