import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from surefoot.errors import InputError
from surefoot.paper.figures import figure1, figure2, figure3, figure4, save_figures
from surefoot.paper.section5 import SAFE
from surefoot.paper.sweep_rows import at_round, curve, percent, pooled
from surefoot.reports.figures import POLICY_STYLES, SPARE, colour_of, styles_for
from tests.paper import ALPHAS, changed, made_table

DRAWINGS = (figure1, figure2, figure3, figure4)


def new_axes() -> Axes:
    figure = Figure()
    FigureCanvasAgg(figure)
    return figure.subplots()


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def test_figure1_draws_every_curve_with_the_tables_values() -> None:
    table, ax = made_table(), new_axes()
    assert figure1(table, ax) is ax
    drawn = {line.get_label(): line for line in ax.lines}
    assert len(drawn) == len(ax.lines) == 7
    for policy, alpha, label in [("LUCB", None, "LUCB"), ("CLUCB", 0.4, r"CLUCB, $\alpha$ = 0.4")]:
        rows = curve(table, policy, alpha, "regret_per_round")
        np.testing.assert_allclose(np.asarray(drawn[label].get_xdata()), rows["round"].to_numpy())
        np.testing.assert_allclose(np.asarray(drawn[label].get_ydata()), rows["mean"].to_numpy())
    assert ax.get_xscale() == "log"


def test_figure1_has_bands_of_1_96_standard_errors_for_lucb_and_clucb_only() -> None:
    table, ax = made_table(), new_axes()
    figure1(table, ax)
    assert len(ax.collections) == 1 + len(ALPHAS)
    heights = ax.collections[0].get_paths()[0].vertices
    lucb = curve(table, "LUCB", None, "regret_per_round")["mean"]
    first = np.asarray(heights)[np.asarray(heights)[:, 0] == 1][:, 1]
    np.testing.assert_allclose([first.min(), first.max()], [lucb[0] - 1.96e-3, lucb[0] + 1.96e-3])


def test_curves_can_be_told_apart_in_grey() -> None:
    ax = new_axes()
    figure1(made_table(others=False), ax)
    assert len({(line.get_marker(), line.get_linestyle()) for line in ax.lines}) == len(ax.lines)
    weights = np.array([0.2126, 0.7152, 0.0722])
    greys = [float(weights @ to_rgb(colour_of(alpha, list(ALPHAS)))) for alpha in ALPHAS]
    assert greys == sorted(greys)
    assert min(np.diff(greys)) > 0.1


def test_figure2_draws_the_percentages_and_says_zero() -> None:
    table, ax = made_table(), new_axes()
    figure2(table, ax)
    bars = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert len(bars) == 3 * len(ALPHAS)
    np.testing.assert_allclose([bar.get_height() for bar in bars[:3]], [4.5, 3.0, 1.0])
    assert [bar.get_height() for bar in bars[3:]] == [0.0] * 6
    assert texts(ax) == ["4.5", "3.0", "1.0", *["0"] * 6]
    assert len({bar.get_hatch() for bar in bars}) == 3
    assert "first 1,000 rounds" in ax.get_ylabel()


def test_figure2_of_a_short_run_looks_at_all_of_it() -> None:
    ax = new_axes()
    figure2(made_table(rounds=(1, 2, 10, 300)), ax)
    assert "first 300 rounds" in ax.get_ylabel()


def test_figure2_draws_where_nothing_was_violated() -> None:
    ax = new_axes()
    figure2(changed(made_table(), "LUCB", "violated_share", pl.lit(0.0)), ax)
    assert texts(ax) == ["0"] * 9


def test_figure3_draws_the_horizon_with_lucb_as_a_level() -> None:
    table, ax = made_table(), new_axes()
    figure3(table, ax)
    lucb = at_round(table, "LUCB", "regret_per_round", 4_000)["mean"][0]
    assert set(np.asarray(ax.lines[0].get_ydata())) == {lucb}
    drawn = lines_of(ax)
    assert len(drawn) == 2
    for line, policy in zip(drawn, ("CLUCB", "CLUCB2"), strict=True):
        assert list(line.get_xdata()) == list(ALPHAS)
        assert list(line.get_ydata()) == at_round(table, policy, "regret_per_round", 4_000)["mean"].to_list()
    assert ax.get_xscale() == "log"


def lines_of(ax: Axes) -> list[Any]:
    return [container.lines[0] for container in ax.containers]  # type: ignore[attr-defined]


def labels(ax: Axes) -> list[str]:
    legend = ax.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def test_figures_1_and_2_stay_the_papers_while_3_and_4_show_every_floor() -> None:
    plain, more = made_table(), made_table(safe=True)
    for draw in (figure1, figure2):
        assert labels(draw(more, new_axes())) == labels(draw(plain, new_axes()))
    assert labels(figure3(more, new_axes())) == ["LUCB", "CLUCB", "CLUCB2", "SafeLUCB (10 runs)"]
    assert labels(figure4(more, new_axes())) == ["CLUCB", "CLUCB2", "SafeLUCB (10 runs)"]


def test_figure4_draws_conservative_rounds_on_logarithmic_axes_and_zero_at_its_foot() -> None:
    table, ax = made_table(safe=True), new_axes()
    assert figure4(table, ax) is ax
    drawn = [list(line.get_ydata()) for line in lines_of(ax)]
    assert drawn == [pytest.approx(ys) for ys in ([200, 50, 25], [300, 75, 37.5], [30, 7.5, 0.1])]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_ylim()[0] < 0.1
    assert ax.yaxis.get_major_formatter()(0.1, 0) == "≤ 0.1"
    assert texts(ax) == ["all 4,000 rounds"]
    ends = np.asarray(ax.containers[1].lines[2][0].get_segments())[0][:, 1]  # type: ignore[attr-defined]
    assert ends == pytest.approx([300 - 1.96, 300 + 1.96])


def test_every_policy_looks_its_own_also_in_grey() -> None:
    names = [*POLICY_STYLES, *(f"mine {place}" for place in range(len(SPARE)))]
    styles = styles_for(names)
    assert len({look.marker for look in styles.values()}) == len(names)
    lines = [(look.dash, look.is_filled, look.marker) for look in styles.values()]
    assert len(set(lines)) == len(lines)


def test_without_clucb_the_figures_show_what_there_is(tmp_path: Path) -> None:
    mine = made_table(safe=True).filter(pl.col("policy") == SAFE).with_columns(policy=pl.lit("mine"))
    ax = new_axes()
    figure1(mine, ax)
    assert {line.get_label() for line in ax.lines} == {rf"mine, $\alpha$ = {alpha:g}" for alpha in ALPHAS}
    assert len(save_figures(mine, tmp_path)) == 8


def test_seeds_are_taken_together_with_the_errors_of_independent_samples() -> None:
    first = made_table().with_columns(seed=pl.lit(1, dtype=pl.Int64))
    second = first.with_columns(seed=pl.lit(2, dtype=pl.Int64), mean=pl.col("mean") + 2.0, runs=3 * pl.col("runs"))
    both = pooled(pl.concat([first, second]))
    assert both.height == first.height
    assert (both["mean"] - first["mean"]).to_list() == pytest.approx([1.5] * both.height)
    assert both["runs"].unique().to_list() == [120]
    assert both["stderr"].to_list() == pytest.approx((first["stderr"] * np.hypot(0.25, 0.75)).to_list())


@pytest.mark.parametrize("draw", DRAWINGS)
def test_a_note_is_shown_only_when_given(draw: Callable[..., Axes]) -> None:
    plain, noted = new_axes(), new_axes()
    draw(made_table(), plain)
    draw(made_table(), noted, note="quick: 20 runs")
    assert "quick: 20 runs" not in texts(plain)
    assert "quick: 20 runs" in texts(noted)


@pytest.mark.parametrize("draw", DRAWINGS)
@pytest.mark.parametrize("error", [None, float("nan")])
def test_one_run_has_no_errors_and_is_drawn(draw: Callable[..., Axes], error: float | None) -> None:
    table = made_table().with_columns(stderr=pl.lit(error, dtype=pl.Float64))
    ax = draw(table, new_axes())
    assert ax.figure is not None
    ax.figure.canvas.draw()


@pytest.mark.parametrize("draw", DRAWINGS)
def test_an_axes_refuses_two_worlds(draw: Callable[..., Axes]) -> None:
    both = pl.concat([made_table(), made_table("paper/as-written")])
    with pytest.raises(InputError, match="one world"):
        draw(both, new_axes())


def test_files_are_written_one_panel_per_world(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    exact = made_table("exact/normalized").filter(pl.col("policy") == "CLUCB2")  # no LUCB: not a panel
    both = pl.concat([made_table(), made_table("paper/as-written"), exact])
    written = save_figures(both, tmp_path / "new", note="quick")
    assert [path.name for path in written] == [f"figure{n}.{kind}" for n in (1, 2, 3, 4) for kind in ("png", "pdf")]
    assert sorted(os.listdir(tmp_path / "new")) == sorted(path.name for path in written)
    assert struct.unpack(">I", written[0].read_bytes()[16:20])[0] == 2 * 5.2 * 200
    assert written[1].read_bytes().startswith(b"%PDF")
    assert dict(mpl.rcParams) == before


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (save_figures(made_table(), tmp_path / name) for name in ("first", "second"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "figure1.png").write_bytes(b"old")

    def refuse(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        save_figures(made_table(), tmp_path)
    assert os.listdir(tmp_path) == ["figure1.png"]
    assert (tmp_path / "figure1.png").read_bytes() == b"old"


def test_pyplot_is_never_imported() -> None:
    imports = "import sys, surefoot.paper.report"
    code = f"{imports}; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0"), (0.001, "<0.01"), (0.08, "0.08"), (1.04, "1.0"), (12.3, "12"), (100, "100")]
)
def test_a_percentage_is_short_and_zero_only_if_it_is(value: float, shown: str) -> None:
    assert percent(value) == shown
