"""Whether two drawings show the same: the same elements, and numbers that differ by less than one can see."""

import re
from pathlib import Path

import numpy as np

NAMED = re.compile(r'(\bid="|href="#|url\(#)[^")]*')  # matplotlib names parts by hashes of their numbers
NUMBER = re.compile(r"(?<![\w#])-?\d+\.?\d*(?!\w)")
VISIBLE = 0.5  # a point, of some 460 across


def differs(first: Path, second: Path) -> str | None:
    """What tells two SVG files apart, or None."""
    texts = [NAMED.sub(r"\1", path.read_text()) for path in (first, second)]
    if NUMBER.sub("#", texts[0]) != NUMBER.sub("#", texts[1]):
        return "other elements or words"
    numbers = [np.array(NUMBER.findall(text), dtype=float) for text in texts]
    off = float(np.abs(numbers[0] - numbers[1]).max())
    return f"numbers that are off by {off:.3g}" if off > VISIBLE else None
