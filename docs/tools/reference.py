"""The API reference: one page for each public package, whose names are those of its `__all__`."""

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType

from surefoot.service import Settings, create_app
from surefoot.service.openapi import document
from surefoot.service.page.reference import routes_html
from surefoot.service.routes.route_options import operations

PACKAGES = (
    "surefoot",
    "surefoot.policies",
    "surefoot.safety",
    "surefoot.linear",
    "surefoot.learners",
    "surefoot.experiment",
    "surefoot.journal",
    "surefoot.audit",
    "surefoot.replay",
    "surefoot.simulation",
    "surefoot.service",
    "surefoot.client",
    "surefoot.policies.conformance",
    "surefoot.journal.conformance",
)


def names(package: str) -> list[str]:
    """What a package offers, in its own order."""
    return [name for name in importlib.import_module(package).__all__ if name != "__version__"]


def home(package: str, name: str) -> str:
    """The package on whose page a name is told in full: the one that defines it, where that offers it as well."""
    value = getattr(importlib.import_module(package), name)
    defined = getattr(value, "__module__", None) or package
    offering = [other for other in PACKAGES if name in names(other) and _offered(other, name) is value]
    closest = [other for other in offering if other != "surefoot" and defined.startswith(other)]
    return max(closest, key=len, default=package)


def address(package: str) -> str:
    """The file of a package's page."""
    return f"reference/{package}.md"


def modules() -> list[str]:
    """What has a page: the packages, and the modules that they offer."""
    offered = [f"{package}.{name}" for package in PACKAGES for name in names(package) if _is_module(package, name)]
    return [*PACKAGES, *offered]


def pages() -> Iterator[tuple[str, str]]:
    """Every page of the reference: its file, and its Markdown."""
    yield "reference/index.md", _overview()
    yield "reference/http.md", _service()
    for package in PACKAGES:
        yield address(package), _page(package)
    for module in modules()[len(PACKAGES) :]:
        yield address(module), f"# {module}\n\n::: {module}\n    options:\n      show_root_heading: false\n"


def _service() -> str:
    app = create_app(Settings(), write=None).litestar
    return f"# The HTTP API\n\n{routes_html(document(app), operations(app))}\n"


def _overview() -> str:
    rows = [f"| [`{one}`]({one}.md) | {_summary(importlib.import_module(one))} |" for one in modules()]
    head = "Every public name, by the package that it is imported from. What is not listed may change without notice.\n"
    head += "\nThe service: [the HTTP API](http.md).\n"
    return "\n".join(["# Reference\n", head, "| package | |", "|---|---|", *rows, ""])


def _page(package: str) -> str:
    module = importlib.import_module(package)
    told = [name for name in names(package) if home(package, name) == package and not _is_module(package, name)]
    elsewhere = [name for name in names(package) if name not in told]
    parts = [f"# {package}\n", inspect.cleandoc(module.__doc__ or "").partition("\n\n")[0], ""]
    if elsewhere:
        parts += ["| also here | |", "|---|---|", *(_row(package, name) for name in elsewhere), ""]
    parts += [f"::: {package}.{name}\n" for name in told]
    return "\n".join(parts)


def _row(package: str, name: str) -> str:
    target = f"{package}.{name}.md" if _is_module(package, name) else f"{home(package, name)}.md"
    anchor = "" if _is_module(package, name) else f"#{home(package, name)}.{name}"
    return f"| [`{name}`]({target}{anchor}) | {_summary(_offered(package, name))} |"


def _summary(value: object) -> str:
    first = inspect.cleandoc(getattr(value, "__doc__", None) or "").partition("\n")[0]
    return first.replace("|", "\\|").replace("<", "&lt;")


def _is_module(package: str, name: str) -> bool:
    return isinstance(_offered(package, name), ModuleType)


def _offered(package: str, name: str) -> object:
    return getattr(importlib.import_module(package), name)
