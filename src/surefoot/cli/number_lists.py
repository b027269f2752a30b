"""Options that hold several numbers."""

from surefoot.errors import ConfigError


def parse_numbers(option: str, text: str) -> tuple[float, ...]:
    """Numbers between commas."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"`{option}` must be numbers between commas, such as 0.05,0.1, but got {text!r}.") from None
