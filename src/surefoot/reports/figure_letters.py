"""The letters of figures that are kept as PDF: DejaVu Sans with as many characters as figures need.

Matplotlib takes a font apart for every PDF that embeds it, and the whole of DejaVu Sans keeps it longer than the
drawing does. `docs/tools/letters.py` makes the files.
"""

from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "letters"
FAMILY = "Surefoot Sans"
FILES = ("SurefootSans.ttf", "SurefootSans-Bold.ttf", "SurefootSans-Oblique.ttf")


@cache
def letters() -> dict[Any, Any]:
    """Settings of matplotlib for them; characters that they lack are those of DejaVu Sans."""
    from matplotlib.font_manager import fontManager

    for file in FILES:
        fontManager.addfont(FOLDER / file)
    mathematics = {"rm": FAMILY, "it": f"{FAMILY}:italic", "bf": f"{FAMILY}:bold", "cal": FAMILY}
    chosen = {f"mathtext.{kind}": family for kind, family in mathematics.items()}
    return {"font.family": [FAMILY, "DejaVu Sans"], "mathtext.fontset": "custom", **chosen}
