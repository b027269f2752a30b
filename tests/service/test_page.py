"""The page's files: served to anyone, holding no data, and loading nothing from elsewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from surefoot.service.page import files
from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.service.servers import running

FILES = {name: file.content.decode() for name, file in files().items()}
SCRIPTS = {name: text for name, text in FILES.items() if name.endswith(".js")}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server that asks for tokens, and a caller who has none."""
    folder = tmp_path_factory.mktemp("page")
    TokenFile(str(folder / "tokens")).create(["read"])
    settings = Settings(database=str(folder / "shop.journal"), tokens=str(folder / "tokens"))
    with running(settings) as address, httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
        yield client


def test_the_page_is_served_without_a_token_and_the_data_are_not(guarded: httpx.Client) -> None:
    assert guarded.get("/").status_code == 200
    assert guarded.get("/v1/experiments").status_code == 401


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_is_served_with_its_type_and_is_not_sent_twice(guarded: httpx.Client, name: str) -> None:
    first = guarded.get(f"/static/{name}")
    assert first.status_code == 200
    assert first.content.decode() == FILES[name]
    kind = {"js": "text/javascript", "css": "text/css", "html": "text/html", "svg": "image/svg+xml"}
    assert first.headers["content-type"].partition(";")[0] == kind[name.rpartition(".")[2]]
    again = guarded.get(f"/static/{name}", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/static/nothing.js", "/static/..%2f__init__.py", "/static/%2e%2e/__init__.py"])
def test_what_is_not_a_file_of_the_page_is_not_found(guarded: httpx.Client, path: str) -> None:
    answer = guarded.get(path)
    assert answer.status_code in (401, 404)
    assert answer.headers["content-type"] == "application/problem+json"


def test_the_page_forbids_itself_what_it_does_not_need(guarded: httpx.Client) -> None:
    answer = guarded.get("/")
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert """http-equiv="Content-Security-Policy" content="default-src 'self'">""" in answer.text


def test_nothing_is_written_inline() -> None:
    page = FILES["index.html"]
    assert re.findall(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=|javascript:", page) == []
    assert [
        name for name, text in SCRIPTS.items() if re.search(r"innerHTML|outerHTML|eval\(|insertAdjacent", text)
    ] == []


def test_nothing_is_loaded_from_elsewhere() -> None:
    namespaces = {"http://www.w3.org/2000/svg"}
    found = {link for text in FILES.values() for link in re.findall(r"https?://[^\s\"'`)]+", text)}
    assert found - namespaces == set()


def test_every_part_that_the_page_names_is_there() -> None:
    page = FILES["index.html"]
    linked = re.findall(r"/static/([\w.]+)", page)
    imported = [name for text in SCRIPTS.values() for name in re.findall(r'from "\./([\w.]+)"', text)]
    assert set(linked) | set(imported) | {"index.html"} == set(FILES)
    named = {name for text in SCRIPTS.values() for name in re.findall(r'\$(?:set)?\("([\w-]+)"', text)}
    assert named - set(re.findall(r'id="([\w-]+)"', page)) == set()


def test_the_page_is_part_of_the_package() -> None:
    home = Path(__file__).parents[2] / "src" / "surefoot" / "service" / "page" / "static"
    assert {path.name for path in home.iterdir()} == set(FILES)
