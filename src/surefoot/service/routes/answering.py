"""How handlers answer: problems that a route may give, told to the OpenAPI document."""

from typing import Any

from litestar.openapi.datastructures import ResponseSpec

from surefoot.service.problems import KINDS, Problem

ALWAYS = ("no-token", "not-allowed", "timeout", "too-many-requests", "internal", "unavailable", "not-found")
TOKEN = [{"token": list[str]()}]
WITH_BODY = ("malformed", "too-large", "media-type", "invalid")


def problems(*words: str, body: bool = False) -> dict[int, ResponseSpec]:
    """The problems of a route, by status."""
    found: dict[int, list[str]] = {}
    for word in (*words, *ALWAYS, "malformed", *(WITH_BODY if body else ())):
        status, title, _ = KINDS[word]
        if title not in found.setdefault(status, []):
            found[status].append(title)
    return {status: _spec("; or: ".join(titles)) for status, titles in sorted(found.items())}


def also(status: int, kind: Any, description: str) -> dict[int, ResponseSpec]:
    """Another answer that a route may give."""
    return {status: ResponseSpec(data_container=kind, description=description, generate_examples=False)}


def _spec(description: str) -> ResponseSpec:
    return ResponseSpec(
        data_container=Problem,
        description=description,
        generate_examples=False,
        media_type="application/problem+json",
    )
