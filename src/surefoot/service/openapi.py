"""The OpenAPI document: Litestar's account of the routes, with msgspec's own account of the data.

Only msgspec knows all of its rules: unknown fields that are refused, lengths within unions, docstrings. OpenAPI 3.1
takes JSON Schema as msgspec writes it.
"""

from typing import Any

import msgspec
from litestar import Litestar, Request
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.routes import HTTPRoute

from surefoot.service import (
    alarms,
    assumptions,
    coefficients,
    event_heads,
    guard_models,
    history,
    problems,
    request_models,
    response_models,
)
from surefoot.service.request_bodies import BATCH, DECIDE, FALLBACK
from surefoot.service.routes import experiments, monitoring, operations, personalizer

MODULES = (
    alarms,
    assumptions,
    response_models,
    event_heads,
    guard_models,
    coefficients,
    history,
    problems,
    request_models,
    experiments,
    operations,
    personalizer,
    monitoring,
)
REFERENCE = "#/components/schemas/{name}"
# By operation: bodies for actions and for a guard, which the handlers tell apart by the experiment.
BODIES = {"decide": DECIDE, "decideBatch": BATCH, "bookFallback": FALLBACK}


def completed(schema: dict[str, Any]) -> dict[str, Any]:
    """Litestar's document, with every struct as msgspec describes it."""
    named = schema["components"]["schemas"]
    bodies = {kind for pair in BODIES.values() for kind in pair}
    structs = [kind for kind in _structs() if kind.__name__ in named or kind in bodies]
    _, exact = msgspec.json.schema_components(structs, ref_template=REFERENCE)
    paths = {path: _with_bodies(operations) for path, operations in schema["paths"].items()}
    return {**schema, "paths": paths, "components": {**schema["components"], "schemas": {**named, **exact}}}


def _with_bodies(operations: dict[str, Any]) -> dict[str, Any]:
    """The operations of a path, with the bodies that depend on the experiment."""
    return {method: _with_body(operation) for method, operation in operations.items()}


def _with_body(operation: Any) -> Any:
    kinds = BODIES.get(str(operation.get("operationId"))) if isinstance(operation, dict) else None
    if kinds is None:
        return operation
    either = {"anyOf": [{"$ref": REFERENCE.format(name=kind.__name__)} for kind in kinds]}
    return {**operation, "requestBody": {"required": True, "content": {"application/json": {"schema": either}}}}


def document(app: Litestar) -> dict[str, Any]:
    """The document of an app."""
    return completed(app.openapi_schema.to_schema())


class DocumentPlugin(JsonRenderPlugin):
    """Serves the document."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: dict[str, Any]) -> bytes:
        """The document, in bytes."""
        return msgspec.json.encode(completed(openapi_schema))


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
