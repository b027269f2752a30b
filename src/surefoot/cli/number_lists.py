"""Numbers at the command line: options that hold several, and how one is shown."""

import math

from surefoot.errors import ConfigError


def parse_numbers(option: str, text: str) -> tuple[float, ...]:
    """Numbers between commas."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"`{option}` must be numbers between commas, such as 0.05,0.1, but got {text!r}.") from None


def number_text(value: float) -> str:
    """A number as a table shows it."""
    return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:,.0f}" if math.isfinite(value) else "-"
