"""The page at `/api`: the OpenAPI document to read, as plain HTML without a script.

Answers of a decision, a reward and a status are those of an experiment that is asked here, so that they stay true.
"""

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

import msgspec

from surefoot.experiment import Experiment
from surefoot.journal import open_journal
from surefoot.policies import Guard
from surefoot.service.problems import KINDS, encode
from surefoot.service.routes.route_options import Operation

GUARD: dict[str, Any] = {"alpha": 0.1, "delta": 0.05}
ROWS = [{"id": "blue", "features": [0.6, 0.1]}, {"id": "red", "features": [0.9, 0.3]}]
BODIES: dict[str, list[Any]] = {
    "CreateExperiment": [{"name": "answers", "policy": "Guard", "mode": "guarded", "settings": GUARD}],
    "Decide": [
        {"decision_id": "visit-1", "baseline": "today", "proposal": "new"},
        {"decision_id": "visit-1", "baseline": "blue", "actions": ROWS},
    ],
    "NamedReward": [{"decision_id": "visit-1", "value": 1}],
    "SendReward": [{"value": 1}, {"value": {"quality": 0.9, "cost": 0.02}}],
}
SAMPLES: dict[str, Any] = {"string": "...", "integer": 1, "number": 0.5, "boolean": False, "object": {}, "null": None}
TYPES = {"string": "text", "integer": "whole number", "boolean": "true or false", "object": "object", "null": "null"}
PAGE = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>surefoot: the API</title>
  <link rel="icon" href="/static/icon.svg" type="image/svg+xml">
  <link rel="stylesheet" href="/static/page.css">
</head>
<body class="reference">
<header class="top">
  <h1><img src="/static/icon.svg" alt="" width="26" height="26"> <a href="/">surefoot</a></h1>
</header>
<main>{main}</main>
<footer class="quiet"><a href="/openapi.json">The same as OpenAPI {openapi}</a>, version {version}</footer>
</body>
</html>
"""


def render(document: Mapping[str, Any], operations: Mapping[str, Operation]) -> bytes:
    """The page of a document; `operations` say which role each route asks for."""
    info = document["info"]
    main = f"<h2>The API</h2>{routes_html(document, operations)}"
    return PAGE.format(main=main, openapi=document["openapi"], version=escape(info["version"])).encode()


def routes_html(document: Mapping[str, Any], operations: Mapping[str, Operation]) -> str:
    """What the page says, for a page around it."""
    page = _RoutesPage(document["components"]["schemas"], operations)
    routes = [(path, method, one) for path, found in document["paths"].items() for method, one in found.items()]
    usual = set.intersection(*(_problems(one) for *_, one in routes if one.get("security")))
    with_body = set.intersection(*(_problems(one) for *_, one in routes if "requestBody" in one)) - usual
    parts = [f"{_prose(document['info']['description'])}{_common(usual, with_body)}"]
    for tag in document["tags"]:
        mine = [page.route(*route, usual | with_body) for route in routes if tag["name"] in route[2]["tags"]]
        parts.append(f'<h2 id="{tag["name"]}">{tag["name"].title()}</h2>{_prose(tag["description"])}{"".join(mine)}')
    return "".join([*parts, f'<h2 id="problems">Problems</h2>{_kinds()}'])


class _RoutesPage:
    """Writes the routes of one document."""

    def __init__(self, schemas: Mapping[str, Any], operations: Mapping[str, Operation]) -> None:
        self._schemas, self._operations, self._samples = schemas, operations, {**BODIES, **_answers()}

    def route(self, path: str, method: str, one: Mapping[str, Any], common: set[str]) -> str:
        """One route: who may call it, what it takes, what it answers, and what else may happen."""
        known = self._operations.get(one["operationId"])
        role = f"role <b>{known.role}</b>" if known else "any token" if one.get("security") else "no token"
        lead, _, rest = one.get("description", "").partition("\n\n")
        parts = [_prose(rest), *self._parameters(one), *self._body(one), *self._answer(one)]
        if own := sorted(_problems(one) - common):
            parts.append(f"<p><b>Problems</b>: {escape('; '.join(own).lower())}.</p>")
        address = (
            f'<b class="method">{method.upper()}</b> <code>{escape(path)}</code> <span class="quiet">{role}</span>'
        )
        head = f"<summary>{address}{_prose(lead)}</summary>"
        return f'<details class="panel" id="{one["operationId"]}">{head}{"".join(parts)}</details>'

    def _parameters(self, one: Mapping[str, Any]) -> Iterator[str]:
        if given := [each for each in one.get("parameters", []) if each["in"] != "path"]:
            rows = [(each["name"], self._type(each["schema"]), each.get("description", "")) for each in given]
            yield f"<h4>In the {given[0]['in']}</h4>{_table(rows)}"

    def _body(self, one: Mapping[str, Any]) -> Iterator[str]:
        if "requestBody" not in one:
            return
        name = one["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        schema = self._schemas[name]
        examples = self._samples.get(name) or [self._sample(schema, only=schema.get("required"))]
        yield f"<h4>Body</h4>{_prose(schema['description'])}{''.join(map(_json, examples))}"
        required = schema.get("required", [])
        yield _table(
            [
                (field, self._type(of), "required" if field in required else "")
                for field, of in schema["properties"].items()
            ]
        )

    def _answer(self, one: Mapping[str, Any]) -> Iterator[str]:
        for status, answer in one["responses"].items():
            for media, content in (answer.get("content") or {}).items():
                if status < "300" and (schema := content.get("schema")):
                    example = _json(self._sample(schema)) if media == "application/json" else f"<p>{media}</p>"
                    yield f"<h4>Answer {status}</h4>{example}"

    def _sample(self, schema: Mapping[str, Any], only: list[str] | None = None) -> Any:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self._samples[name][0] if name in self._samples else self._sample(self._schemas[name])
        if "enum" in schema:
            return schema["enum"][0]
        if "anyOf" in schema:
            return self._sample(schema["anyOf"][0])
        kind = schema.get("type", "null")
        if kind == "array":
            return [self._sample(one) for one in _items(schema)]
        fields = schema.get("properties")
        if fields is None:
            return SAMPLES[kind if isinstance(kind, str) else kind[0]]
        return {name: self._sample(of) for name, of in fields.items() if only is None or name in only}

    def _type(self, schema: Mapping[str, Any]) -> str:
        if "$ref" in schema:
            return self._type(self._schemas[schema["$ref"].rpartition("/")[2]])
        for words in ("anyOf", "oneOf"):
            if words in schema:
                return " or ".join(dict.fromkeys(map(self._type, schema[words])))
        if "enum" in schema:
            return ", ".join(json.dumps(word) for word in schema["enum"])
        kind = schema.get("type", "any JSON")
        if kind == "array":
            return f"list of {' and '.join(map(self._type, _items(schema)))}" if _items(schema) else "list"
        return " or ".join(TYPES.get(word, word) for word in ([kind] if isinstance(kind, str) else kind))


def _items(schema: Mapping[str, Any]) -> list[Any]:
    return schema.get("prefixItems") or ([schema["items"]] if schema.get("items") else [])


def _answers() -> dict[str, list[Any]]:
    with open_journal("memory:") as journal:
        shop = Experiment.create(journal, "answers", Guard(**GUARD, seed=1), mode="guarded")
        answer = shop.decide(baseline="today", proposal="new", decision_id="visit-1")
        found = [answer, shop.reward("visit-1", 1), shop.status()]
        return {type(one).__name__: [msgspec.json.decode(encode(one))] for one in found}


def _problems(one: Mapping[str, Any]) -> set[str]:
    found = (answer["description"] for status, answer in one["responses"].items() if status >= "400")
    return {title for description in found for title in description.split("; or: ")}


def _common(usual: set[str], with_body: set[str]) -> str:
    always, body = (escape("; ".join(sorted(titles)).lower()) for titles in (usual, with_body))
    return (
        f'<p>Any route may answer with one of these <a href="#problems">problems</a>: {always}. '
        f"One that takes a body also with: {body}.</p>"
    )


def _kinds() -> str:
    return _table(
        [(f"/problems/{word}", f"{status}: {title}", advice) for word, (status, title, advice) in KINDS.items()]
    )


def _prose(text: str) -> str:
    """A docstring as paragraphs, without the sections that are about Python."""
    text = re.split(r"\n\s*(?:Attributes|Examples|Parameters)\n", text)[0]
    paragraphs = [" ".join(one.split()) for one in re.split(r"\n\s*\n", text) if one.strip()]
    return re.sub("`([^`]+)`", r"<code>\1</code>", "".join(f"<p>{escape(one)}</p>" for one in paragraphs))


def _table(rows: list[tuple[str, str, str]]) -> str:
    lines = (f"<tr><th><code>{escape(a)}</code><td>{escape(b)}<td>{_prose(c)}" for a, b, c in rows)
    return f"<table>{''.join(lines)}</table>"


def _json(value: Any) -> str:
    """A line for each field: with all brackets on lines of their own a certificate would fill a screen."""
    lines = ",\n".join(f'  "{name}": {json.dumps(one)}' for name, one in value.items())
    return f"<pre><code>{{\n{escape(lines)}\n}}</code></pre>"
