"""The public surface: what the documentation imports is exported by a package, and what is exported exists."""

import importlib
import re
from collections.abc import Iterator
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
    "surefoot.linear",
    "surefoot.policies",
    "surefoot.replay",
    "surefoot.safety",
    "surefoot.service",
    "surefoot.simulation",
)
IMPORT = re.compile(r"^(?:>>> |\.\.\. )?\s*from (surefoot[\w.]*) import (.+)$", flags=re.MULTILINE)


def public(package: str) -> dict[str, Any]:
    module = importlib.import_module(package)
    return {name: getattr(module, name) for name in module.__all__}


def imports(page: Path) -> Iterator[tuple[str, str]]:
    for block in FENCE.finditer(read(page)):
        for package, names in IMPORT.findall(block["body"]):
            for name in re.split(r",\s*", names.strip("() ")):
                yield package, name.partition(" as ")[0].strip()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_name_that_the_page_imports_is_exported(page: Path) -> None:
    offered = {package: set(importlib.import_module(package).__all__) for package in PACKAGES}
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


def test_modules_that_are_exported_say_what_they_hold() -> None:
    found = [value for package in PACKAGES for value in public(package).values() if isinstance(value, ModuleType)]
    assert found
    assert all(module.__doc__ for module in found)
