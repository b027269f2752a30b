"""A policy's settings as they are given to a command: a TOML file, and single ones beside it."""

import json
import tomllib
from pathlib import Path
from typing import Any

from surefoot.errors import ConfigError


def read_pairs(file: Path | None, pairs: list[str]) -> dict[str, Any]:
    """The settings of a file, and those that are given as key=value."""
    found: dict[str, Any] = {}
    if file is not None:
        try:
            found = tomllib.loads(file.read_text("utf-8"))
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"`--settings` must be a TOML file, but {file} cannot be read as one: {error}.") from None
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"`--set` must be key=value, such as alpha=0.05, but got {pair!r}.")
        found[key.strip()] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    """A number, a list or a table as JSON; anything else is a string."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
