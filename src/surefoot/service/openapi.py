"""The OpenAPI document: Litestar's account of the routes, with msgspec's own account of the data.

Only msgspec knows all of its rules: unknown fields that are refused, lengths within unions, docstrings. OpenAPI 3.1
takes JSON Schema as msgspec writes it.
"""

from typing import Any

import msgspec
from litestar import Litestar, Request
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.routes import HTTPRoute

from surefoot.experiment import beliefs, status
from surefoot.rounds import answers, events
from surefoot.service import assumptions, changes, notices, problems, requests, responses
from surefoot.service.routes import experiments, flags, monitoring, shards
from surefoot.service.routes import operations as operations_routes
from surefoot.service.routes.route_options import operations
from surefoot.sharing import edge_messages

MODULES = (
    answers, assumptions, beliefs, changes, edge_messages, events, experiments, flags, monitoring, notices,
    operations_routes, problems, requests, responses, shards, status,
)  # fmt: skip
REFERENCE = "#/components/schemas/{name}"


def completed(app: Litestar, schema: dict[str, Any]) -> dict[str, Any]:
    """Litestar's document, with every struct as msgspec describes it, and the bodies that handlers read."""
    named = schema["components"]["schemas"]
    bodies = {name: one.body for name, one in operations(app).items() if one.body is not None}
    read = {kind.__name__: kind for kind in bodies.values()}
    structs = {**{kind.__name__: kind for kind in _structs() if kind.__name__ in named}, **read}
    _, exact = msgspec.json.schema_components(structs.values(), ref_template=REFERENCE)
    paths = {
        path: {method: _with_body(one, bodies) for method, one in found.items()}
        for path, found in schema["paths"].items()
    }
    schemas = {**named, **_with_nulls(exact)}
    return {**schema, "paths": paths, "components": {**schema["components"], "schemas": schemas}}


def _with_nulls(schema: Any) -> Any:
    """The schema with `nullable`, which msgspec lets a type say, in the words of OpenAPI 3.1."""
    if isinstance(schema, list):
        return [_with_nulls(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _with_nulls(value) for key, value in schema.items() if key != "nullable"}
    return {**plain, "type": [schema["type"], "null"]} if schema.get("nullable") is True else plain


def _with_body(operation: Any, bodies: dict[str, type[Any]]) -> Any:
    kind = bodies.get(str(operation.get("operationId"))) if isinstance(operation, dict) else None
    if kind is None:
        return operation
    schema = {"$ref": REFERENCE.format(name=kind.__name__)}
    return {**operation, "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def document(app: Litestar) -> dict[str, Any]:
    """The document of an app."""
    return completed(app, app.openapi_schema.to_schema())


class DocumentPlugin(JsonRenderPlugin):
    """Serves the document."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """The document, in bytes."""
        return msgspec.json.encode(completed(request.app, openapi_schema))


def methods_of(app: Litestar, path: str) -> list[str]:
    """The methods that an address takes."""
    parts = path.rstrip("/").split("/")
    found: set[str] = set()
    for route in app.routes:
        known = route.path_format.rstrip("/").split("/")
        if isinstance(route, HTTPRoute) and len(known) == len(parts):
            fits = all(a == b or a.startswith("{") for a, b in zip(known, parts, strict=True))
            found.update(route.methods if fits else ())
    return sorted(found)


def _structs() -> list[type[msgspec.Struct]]:
    found: dict[str, type[msgspec.Struct]] = {}
    for module in MODULES:
        for name, kind in vars(module).items():
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == module.__name__:
                found.setdefault(name, kind)
    return list(found.values())
