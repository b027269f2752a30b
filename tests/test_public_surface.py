"""The public surface: what the documentation imports is exported, and what is exported is documented."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.test_docs import FENCE, PAGES, name_of, read

PACKAGES = (
    "surefoot",
    "surefoot.audit",
    "surefoot.client",
    "surefoot.experiment",
    "surefoot.journal",
    "surefoot.journal.conformance",
    "surefoot.learners",
    "surefoot.linear",
    "surefoot.policies",
    "surefoot.policies.conformance",
    "surefoot.replay",
    "surefoot.safety",
    "surefoot.service",
    "surefoot.simulation",
)
# What needs an extra of its own is public by its page alone: importing it here would load that extra.
APART = {
    "surefoot.experiment.reward_file": {"Verdict", "send_rewards"},
    "surefoot.integrations.litellm": {"GuardedModels"},
    "surefoot.integrations.otel": {"traced"},
}
SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "References", "Examples")
IMPORT = re.compile(r"^(?:>>> |\.\.\. )?\s*from (surefoot[\w.]*) import (.+)$", flags=re.MULTILINE)
SECTION = re.compile(rf"^({'|'.join(SECTIONS)})\n-+$", flags=re.MULTILINE)
OPENED = {"Experiment"}  # made by its class methods, never by its constructor
NOT_YET = {"Finding", "Findings", "Report"}  # of `surefoot.audit`, whose modules say their fields in a table


def public(package: str) -> dict[str, Any]:
    module = importlib.import_module(package)
    return {name: getattr(module, name) for name in module.__all__}


def imports(page: Path) -> Iterator[tuple[str, str]]:
    for block in FENCE.finditer(read(page)):
        for package, names in IMPORT.findall(block["body"]):
            for name in re.split(r",\s*", names.strip("() ")):
                yield package, name.partition(" as ")[0].strip()


def documented() -> dict[str, Any]:
    """Every exported class and function, with the public methods that the class itself defines."""
    found: dict[str, Any] = {}
    for package in PACKAGES:
        for name, value in public(package).items():
            if name in NOT_YET or not getattr(value, "__module__", "").startswith("surefoot"):
                continue
            if inspect.isclass(value) or inspect.isfunction(value):
                found[f"{value.__module__}.{value.__qualname__}"] = value
                found |= methods(value)
    return found


def methods(kind: Any) -> dict[str, Any]:
    """Those that a class defines; one that overrides another keeps to what that one says."""
    if not inspect.isclass(kind):
        return {}
    inherited = {name for base in kind.__mro__[1:] for name in vars(base)}
    own = {name: getattr(member, "__func__", member) for name, member in vars(kind).items() if name[0] != "_"}
    named = {name: member for name, member in own.items() if inspect.isfunction(member) and name not in inherited}
    return {f"{kind.__module__}.{member.__qualname__}": member for member in named.values()}


DOCUMENTED = documented()


def arguments(value: Any) -> list[str]:
    """What a caller may give: parameters of a function, of a constructor, or the fields of a value."""
    called: Callable[..., Any] = value
    if inspect.isclass(value):
        fields = [name for name in getattr(value, "__struct_fields__", ()) if not name.startswith("_")]
        if fields or inspect.isabstract(value) or value.__name__ in OPENED:
            return fields
        called = value.__init__
        if called is object.__init__ or not getattr(called, "__module__", "").startswith("surefoot"):
            return list(getattr(value, "__dataclass_fields__", ()))
    names = [name for name in inspect.signature(called).parameters if not name.startswith("_")]
    return [name for name in names if name not in ("self", "cls", "rest", "kwargs")]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_name_that_the_page_imports_is_exported(page: Path) -> None:
    offered = {package: set(importlib.import_module(package).__all__) for package in PACKAGES} | APART
    assert [(package, name) for package, name in imports(page) if name not in offered.get(package, ())] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_exported_name_exists_and_is_listed_once(package: str) -> None:
    module = importlib.import_module(package)
    assert len(module.__all__) == len(set(module.__all__))
    assert all(value is not None for value in public(package).values())
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("package", PACKAGES)
def test_lazy_names_are_typed_where_type_checkers_look(package: str) -> None:
    module = importlib.import_module(package)
    source = Path(module.__file__ or "").read_text()
    untyped = [name for name in module.__all__ if name != "__version__" and f" as {name}\n" not in source]
    assert "lazy(" not in source or untyped == []


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_docstring_has_the_sections_that_apply_in_order(name: str) -> None:
    value = DOCUMENTED[name]
    text = inspect.cleandoc(value.__doc__ or "")
    found = SECTION.findall(text)
    assert text.partition("\n")[0].strip()
    assert found == sorted(found, key=SECTIONS.index)
    missing = [one for one in arguments(value) if not re.search(rf"^(\w+, )*{one}(, \w+)*( : |$)", text, re.MULTILINE)]
    assert missing == []


@pytest.mark.parametrize("name", [name for name, value in DOCUMENTED.items() if inspect.isfunction(value)])
def test_the_docstring_says_what_is_returned_and_raised(name: str) -> None:
    value = DOCUMENTED[name]
    found = SECTION.findall(inspect.cleandoc(value.__doc__ or ""))
    returned = inspect.signature(value).return_annotation
    if arguments(value) and returned not in (None, "None", inspect.Signature.empty):
        assert "Returns" in found or "Yields" in found
    if re.search(r"^\s+raise \w", inspect.getsource(value), flags=re.MULTILINE):
        assert "Raises" in found


@pytest.mark.parametrize(
    "name",
    [name for name, value in DOCUMENTED.items() if value.__qualname__.isidentifier() and not inspect.isabstract(value)],
)
def test_the_docstring_has_an_example(name: str) -> None:
    text = inspect.cleandoc(DOCUMENTED[name].__doc__ or "")
    assert re.search(r"^Examples\n-+\n(.*\n)*?>>> ", text, flags=re.MULTILINE)


def test_modules_that_are_exported_say_what_they_hold() -> None:
    found = [value for package in PACKAGES for value in public(package).values() if isinstance(value, ModuleType)]
    assert found
    assert all(module.__doc__ for module in found)
