"""The letters of figures, from those that matplotlib brings: `python -m docs.tools.letters`."""

from pathlib import Path

import matplotlib as mpl
from fontTools import subset

from surefoot.reports.figure_letters import FAMILY, FILES, FOLDER

SOURCE = Path(mpl.get_data_path()) / "fonts" / "ttf"
# What keyboards of western Europe have, and the signs of figures; any other comes from matplotlib's own.
CHARACTERS = [*range(0x20, 0x7F), *range(0xA0, 0x100), *map(ord, "α−≤≥–—…‘’“”→")]
NAMES = (1, 3, 4, 6, 16)  # of a font in its table of names: all that say what it is called


def make(name: str, path: Path) -> None:
    """Write one of matplotlib's fonts with fewer characters, under our name, as its licence asks."""
    options = subset.Options(layout_features=["*"], notdef_outline=True, name_IDs=["*"], name_languages=["*"])
    options.drop_tables += ["FFTM"]
    font = subset.load_font(str(SOURCE / name), options)
    chosen = subset.Subsetter(options)
    chosen.populate(unicodes=CHARACTERS)
    chosen.subset(font)
    for record in font["name"].names:
        if record.nameID in NAMES:
            called = record.toUnicode().replace("DejaVu Sans", FAMILY)
            record.string = called.replace("DejaVuSans", FAMILY.replace(" ", ""))
    font["head"].modified = font["head"].created  # the same bytes each time
    font.recalcTimestamp = False
    font.save(path)


if __name__ == "__main__":
    for file in FILES:
        make(file.replace("SurefootSans", "DejaVuSans"), FOLDER / file)
