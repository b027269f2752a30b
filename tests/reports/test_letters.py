from pathlib import Path

import matplotlib as mpl
import pytest
from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.ttLib import TTFont
from matplotlib.font_manager import FontProperties, findfont

from docs.tools.letters import CHARACTERS
from surefoot.reports.figure_letters import FILES, FOLDER, letters


def outlines(font: TTFont) -> dict[int, object]:
    glyphs, names = font.getGlyphSet(), font.getBestCmap()
    drawn: dict[int, object] = {}
    for character in CHARACTERS:
        pen = DecomposingRecordingPen(glyphs)
        glyphs[names[character]].draw(pen)
        drawn[character] = (glyphs[names[character]].width, pen.value)
    return drawn


@pytest.mark.parametrize("file", FILES)
def test_letters_are_those_of_matplotlib(file: str) -> None:
    source = Path(mpl.get_data_path()) / "fonts" / "ttf" / file.replace("SurefootSans", "DejaVuSans")
    with TTFont(FOLDER / file) as ours, TTFont(source) as theirs:
        assert outlines(ours) == outlines(theirs)


def test_figures_find_them_and_others_do_not() -> None:
    with mpl.rc_context(letters()):
        assert Path(findfont(FontProperties())).name == "SurefootSans.ttf"
        assert Path(findfont(FontProperties(weight="bold"))).name == "SurefootSans-Bold.ttf"
        assert Path(findfont(FontProperties(style="italic"))).name == "SurefootSans-Oblique.ttf"
    assert Path(findfont(FontProperties())).name == "DejaVuSans.ttf"
