"""Worlds, functions and policies as plain data, by which a folder knows whether it holds the result of this sweep."""

import hashlib
import types
from dataclasses import fields
from typing import Any

import numpy as np

from surefoot.errors import ConfigError


def plain(value: Any) -> Any:
    """A setting as JSON can hold it; a function by its name and a digest of what it is made of."""
    if hasattr(value, "__dataclass_fields__"):
        return {"kind": type(value).__name__, **{f.name: plain(getattr(value, f.name)) for f in fields(value)}}
    if callable(value):
        return {"function": getattr(value, "__qualname__", type(value).__qualname__), "digest": digest(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def digest(function: Any) -> str:
    """What a function is made of: its code, its constants, its defaults and what it closes over."""
    code = getattr(function, "__code__", None)
    if code is None:
        raise ConfigError(f"A world's function must be a plain function to be kept in a folder, but got {function!r}.")
    cells = [repr(cell.cell_contents) for cell in function.__closure__ or ()]
    # The repr of a code object holds its address, which no other process would find again.
    consts = [c.co_code.hex() if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    parts = (code.co_code.hex(), consts, code.co_names, repr(function.__defaults__), cells)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def code_of(kind: type) -> str:
    """A digest of the methods of a class and of its bases, those of surefoot and of Python left out."""
    parts = []
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] not in ("surefoot", "builtins", "abc", "typing"):
            own = {name: getattr(member, "__func__", member) for name, member in vars(base).items()}
            parts += [(name, digest(one)) for name, one in sorted(own.items()) if isinstance(one, types.FunctionType)]
    return hashlib.sha256(repr((kind.__qualname__, parts)).encode()).hexdigest()[:16]
