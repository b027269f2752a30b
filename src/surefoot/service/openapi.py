"""The OpenAPI document: Litestar's account of the routes, with msgspec's own account of the data.

Only msgspec knows all of its rules: unknown fields that are refused, lengths within unions, docstrings. OpenAPI 3.1
takes JSON Schema as msgspec writes it.
"""

from typing import Any

import msgspec
from litestar import Litestar, Request
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.routes import HTTPRoute

from surefoot.edge import bundle, edge_messages
from surefoot.service import (
    alarms,
    assumptions,
    changes,
    coefficients,
    event_heads,
    guard_models,
    history,
    lift_models,
    problems,
    request_models,
    response_models,
)
from surefoot.service.routes import experiments, leases, monitoring, personalizer
from surefoot.service.routes import operations as operations_routes
from surefoot.service.routes.route_options import operations

MODULES = (
    alarms,
    assumptions,
    changes,
    response_models,
    event_heads,
    guard_models,
    lift_models,
    coefficients,
    history,
    problems,
    request_models,
    experiments,
    leases,
    bundle,
    edge_messages,
    operations_routes,
    personalizer,
    monitoring,
)
REFERENCE = "#/components/schemas/{name}"


def completed(app: Litestar, schema: dict[str, Any]) -> dict[str, Any]:
    """Litestar's document, with every struct as msgspec describes it, and the bodies that handlers read."""
    named = schema["components"]["schemas"]
    bodies = {name: found.body for name, found in operations(app).items() if found.body}
    read = {kind for kinds in bodies.values() for kind in kinds}
    structs = [kind for kind in _structs() if kind.__name__ in named or kind in read]
    _, exact = msgspec.json.schema_components(structs, ref_template=REFERENCE)
    paths = {
        path: {method: _with_body(one, bodies) for method, one in found.items()}
        for path, found in schema["paths"].items()
    }
    return {**schema, "paths": paths, "components": {**schema["components"], "schemas": {**named, **exact}}}


def _with_body(operation: Any, bodies: dict[str, tuple[type[Any], ...]]) -> Any:
    kinds = bodies.get(str(operation.get("operationId"))) if isinstance(operation, dict) else None
    if kinds is None:
        return operation
    # Of two, the handlers tell by the experiment which one it is: for actions, or for a guard.
    schemas = [{"$ref": REFERENCE.format(name=kind.__name__)} for kind in kinds]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
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
