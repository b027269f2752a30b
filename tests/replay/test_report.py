"""Figures take Axes and give Axes; the report stands alone and says what it assumes."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

from surefoot.replay.baseline_fit import fit_baseline
from surefoot.replay.evaluation import ASSUMES, OutcomeCounter, ReplayOutcome, replay
from surefoot.replay.log import BadRows
from surefoot.replay.replayed_policy import PlayedRows
from surefoot.replay.report import FIGURES, draw, report_html
from surefoot.replay.verdict import HEADS, shown, table_rows
from surefoot.reports.figures import FLOOR
from surefoot.simulation.policy_specs import Spec
from tests.replay.logs import linear_log

SPECS = [Spec("LUCB"), Spec("CLUCB", alpha=0.1), Spec("CLUCB2", alpha=0.3)]


@pytest.fixture(scope="module")
def outcomes() -> list[ReplayOutcome]:
    truth = linear_log(4_000, seed=1, binary=True)
    return replay(truth.log, SPECS, declared=truth.declared, evaluator="importance")


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "lift"])
def test_a_figure_draws_into_the_axes_that_it_is_given(name: str, outcomes: list[ReplayOutcome]) -> None:
    ax = Figure().add_subplot()
    assert FIGURES[name][0](outcomes, ax) is ax
    labels = {line.get_label() for line in ax.get_lines()}
    expected = {spec.label for spec in SPECS if name != "margin" or spec.alpha is not None}
    assert expected <= labels
    assert ax.get_xscale() == "log"
    assert draw(name, outcomes).startswith(b"\x89PNG")


def test_the_lift_figure_shows_estimate_and_interval_of_every_policy(outcomes: list[ReplayOutcome]) -> None:
    ax = Figure().add_subplot()
    assert FIGURES["lift"][0](outcomes, ax) is ax
    assert [label.get_text() for label in ax.get_yticklabels()] == [spec.label for spec in SPECS]
    drawn = [np.asarray(line.get_xdata(), dtype=np.float64).tolist() for line in ax.get_lines()]
    for lift in (outcome.main["gain"] for outcome in outcomes):
        assert [lift.low, lift.high] in drawn
        assert [lift.value] in drawn
    assert draw("lift", outcomes).startswith(b"\x89PNG")


def test_floors_alone_are_dotted_and_the_first_rounds_do_not_set_the_scale(outcomes: list[ReplayOutcome]) -> None:
    ax = Figure().add_subplot()
    FIGURES["reward"][0](outcomes, ax)
    dotted = [line for line in ax.get_lines() if tuple(line._unscaled_dash_pattern[1] or ()) == FLOOR[1]]  # type: ignore[attr-defined]
    floors = sorted(1 - spec.alpha for spec in SPECS if spec.alpha is not None)
    assert sorted(float(np.asarray(line.get_ydata())[0]) for line in dotted) == pytest.approx(sorted(set(floors)))
    low, high = ax.get_ylim()
    assert low < min(floors)
    assert high < 3  # of the baseline's; the first rounds alone reach far beyond


def test_the_reward_figure_shows_earned_over_owed(outcomes: list[ReplayOutcome]) -> None:
    ax = Figure().add_subplot()
    FIGURES["reward"][0](outcomes, ax)
    line = next(line for line in ax.get_lines() if line.get_label() == SPECS[0].label)
    curves = outcomes[0].curves
    shown = np.asarray(line.get_ydata(), dtype=np.float64)
    assert shown[-1] == pytest.approx(curves["earned"][-1] / curves["owed"][-1])


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.sources += [value or "" for key, value in attrs if key in ("src", "href")]
        if tag not in ("meta", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_report_stands_alone_and_names_every_assumption(outcomes: list[ReplayOutcome]) -> None:
    truth = linear_log(4_000, seed=1, binary=True)
    truth.log.name = "a <b> log"
    truth.log.bad = BadRows(9, 2, [(7, "reward <is> missing"), (9, "bad")])
    doubts = fit_baseline(truth.log).doubts
    text = report_html(truth.log, outcomes, settings={"seed": 0}, doubts=doubts)
    page = Page(text)
    assert page.open == []
    assert all(source.startswith("data:") for source in page.sources)
    assert "<script" not in text
    assert not re.search(r"https?://(?!www\.w3\.org)", text)
    for sentence in ASSUMES["importance"]:
        assert sentence.split(":")[0] in text
    assert "a &lt;b&gt; log" in text
    assert "line 7: reward &lt;is&gt; missing" in text
    assert all(doubt.assumption.split(":")[0] in text for doubt in doubts)
    for spec in SPECS:
        assert spec.label in text


def test_outcomes_are_plain_json(outcomes: list[ReplayOutcome]) -> None:
    for outcome in outcomes:
        data = json.loads(json.dumps(outcome.as_dict(), allow_nan=False))
        assert data["policy"] == outcome.spec.policy
        assert set(data["estimates"]) >= {"dr", "ips", "snips"}
        assert len(data["curves"]["round"]) == len(data["curves"]["margin"])


def test_a_tally_in_parts_is_a_tally_at_once_and_counts_every_round_below_the_floor() -> None:
    rng = np.random.default_rng(0)
    earned, owed = rng.random(5_000), np.full(5_000, 0.5)
    played = PlayedRows(
        np.zeros(5_000, np.int64), rng.integers(1, 3, size=5_000), rng.normal(size=5_000), rng.random(5_000) < 0.3
    )
    once, parts = OutcomeCounter([0.01, 0.2]), OutcomeCounter([0.01, 0.2])
    lines = np.arange(1, 5_001)
    once.add(earned, owed, played, slice(None), lines)
    for part in np.array_split(np.arange(5_000), 23):
        parts.add(earned[part], owed[part], played, part, lines[part])
    spec = Spec("CLUCB", alpha=0.2)
    first, second = (tally.outcome(spec, "full", 5_000, {}) for tally in (once, parts))
    assert dict(first.below) == dict(second.below)
    assert first.below[0.01] == int((np.cumsum(earned) < 0.99 * np.cumsum(owed)).sum())
    assert first.worst_share == pytest.approx((np.cumsum(earned) / np.cumsum(owed)).min())
    for name in first.curves:
        np.testing.assert_allclose(first.curves[name], second.curves[name])
    assert first.curves["round"][-1] == 5_000
    assert first.differing_rounds == second.differing_rounds == int(played.differs.sum())  # type: ignore[union-attr]
    assert first.differing_learner_rounds == second.differing_learner_rounds


def test_the_answer_stands_beside_the_policy_where_the_table_is_cut_off_last(outcomes: list[ReplayOutcome]) -> None:
    assert HEADS[:2] == ("Policy", "Lift")
    for row, outcome in zip(table_rows(outcomes, ()), outcomes, strict=True):
        cells = dict(zip(HEADS, row, strict=True))
        assert cells["Lift"] == shown(outcome.main["gain"], signed=True)
        assert cells["Mean reward"] == shown(outcome.main["reward"])
        assert cells["Rounds"] == f"{outcome.rounds:,}"
