"""Names that a package offers and loads when they are first used, so that importing it costs next to nothing.

A package says where its names live, and type checkers read the same imports under `TYPE_CHECKING`:

    __getattr__, __dir__ = lazy(__name__, {"engine": ("Outcome", "simulate"), "gym": ("BanditEnv",)})
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy(package: str, homes: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names live in its modules.

    Parameters
    ----------
    package : str
        The package's `__name__`.
    homes : mapping of str to sequence of str
        The names that each module of the package defines. Under "" stand modules that are offered themselves.

    Returns
    -------
    tuple of callables
        `__getattr__`, which imports a name's module once, and `__dir__`, which lists `__all__`.

    Examples
    --------
    >>> load, _ = lazy("surefoot", {"theory": ("radius",), "": ("errors",)})
    >>> load("radius").__module__, load("errors").__name__
    ('surefoot.theory', 'surefoot.errors')
    >>> load("raduis")
    Traceback (most recent call last):
    AttributeError: module 'surefoot' has no attribute 'raduis'
    """
    modules = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = modules[name]
        # A name without a home is a module itself.
        value = getattr(import_module(f"{package}.{module}"), name) if module else import_module(f"{package}.{name}")
        # From now on Python finds it without asking here.
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(sys.modules[package].__all__)
