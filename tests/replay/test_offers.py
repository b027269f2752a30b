"""Logs in which the actions that can be played change from row to row."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import surefoot
from surefoot.errors import EvidenceError, LogError
from surefoot.replay import ArrayLog, Columns, Declared, estimate_propensities, fit_baseline, read_log, replay
from surefoot.replay.replayed_policy import FULL, REJECTION, log_player
from surefoot.replay.table_log import TableLog
from surefoot.simulation import Spec
from tests.replay.test_cli import run

ROWS, NAMES = 400, ("a", "b", "c", "d")
DECLARED = Declared(noise=0.3, theta_bound=1.5, baseline_reward=0.3)


def visits(rows: int = ROWS) -> pl.DataFrame:
    """Today's action is always offered, others now and then; one of those offered is drawn evenly."""
    rng = np.random.default_rng(2)
    offers = [["b", *(name for name in "acd" if rng.random() < 0.5)] for _ in range(rows)]
    played = [rng.choice(offer) for offer in offers]
    x = rng.random(rows)
    chance = np.array([0.3 + 0.4 * value * (name == "d") for value, name in zip(x, played, strict=True)])
    return pl.DataFrame(
        {
            "x": x,
            "offered": offers,
            "action": played,
            "reward": (rng.random(rows) < chance).astype(float),
            "propensity": [1 / len(offer) for offer in offers],
        }
    )


def opened(table: Any, **more: Any) -> TableLog:
    log = read_log(table, baseline="b", **more)
    assert isinstance(log, TableLog)
    return log


def test_only_what_is_offered_is_played() -> None:
    log = opened(visits())
    assert (log.actions, log.context, log.has_offers) == (NAMES, ("x",), True)
    for spec in (Spec("LUCB"), Spec("SafeLUCB", alpha=0.3, reward_bounds=(0.0, 1.0))):
        (batch,) = log.batches()
        assert batch.offered is not None
        played = log_player(spec, DECLARED, log, mode=REJECTION, seed=0).play(
            batch, batch.rewards, np.ones(ROWS, dtype=np.bool_)
        )
        rows = np.arange(ROWS)
        assert batch.offered[rows, played.chosen].all()
        assert len(set(played.chosen.tolist())) > 1


def test_the_core_chooses_as_a_policy_does_that_sees_the_offered_rows() -> None:
    log = opened(visits())
    (batch,) = log.batches()
    rewards = np.random.default_rng(0).random((ROWS, 4))
    settings: dict[str, Any] = {
        "dim": log.dim,
        "noise": 0.3,
        "theta_bound": 1.5,
        "feature_bound": log.feature_bound,
        "ridge": 1.0,
    }
    policy = surefoot.CLUCB2(**settings, alpha=0.3, delta=0.001, nesting="latest")
    chosen = []
    for t in range(ROWS):
        places = np.flatnonzero(batch.offered[t])  # type: ignore[index]
        decision = policy.decide(batch.features[t][places], baseline=int(np.searchsorted(places, batch.baselines[t])))
        chosen.append(int(places[decision.action]))
        policy.observe(decision, float(rewards[t, chosen[-1]]))
    usable = np.ones(ROWS, dtype=np.bool_)
    spec = Spec("CLUCB2", alpha=0.3)
    played = log_player(spec, DECLARED, log, mode=FULL, seed=0).play(batch, rewards, usable)
    np.testing.assert_array_equal(played.chosen, chosen)


def test_uniform_means_among_those_that_were_offered() -> None:
    table = visits(4_000)
    logged, even = (
        replay(opened(log), [Spec("LUCB")], declared=DECLARED, evaluator="importance", uniform=is_even)[0]
        for log, is_even in ((table, False), (table.drop("propensity"), True))
    )
    assert even.main["gain"].value == pytest.approx(logged.main["gain"].value, rel=1e-12)


def test_every_format_reads_the_same_offers(tmp_path: Path) -> None:
    table = visits(50)
    table.write_parquet(tmp_path / "log.parquet")
    table.with_columns(pl.col("offered").list.join(" | ")).write_csv(tmp_path / "log.csv")
    table.write_ndjson(tmp_path / "log.jsonl")
    masks = [next(opened(tmp_path / f"log.{kind}").batches()).offered for kind in ("parquet", "csv", "jsonl")]
    for mask in masks:
        np.testing.assert_array_equal(mask, masks[0])
    renamed = table.rename({"offered": "slots"})
    columns = Columns(propensity="propensity", context=("x",), offered="slots")
    np.testing.assert_array_equal(next(opened(renamed, columns=columns).batches()).offered, masks[0])
    renamed.with_columns(pl.col("slots").list.join("|")).write_csv(tmp_path / "slots.csv")
    assert "lift" in run(
        "replay", str(tmp_path / "slots.csv"), "--baseline", "b", "--offered", "slots", "--policy", "LUCB", "--out",
        str(tmp_path / "out"),
    )  # fmt: skip


def test_mistakes_about_offers_end_in_a_sentence() -> None:
    table = visits(50)
    wrong = table.with_columns(offered=pl.Series([["a", "c"], *table["offered"].to_list()[1:]]), action=pl.lit("b"))
    with pytest.raises(LogError, match="line 1: action 'b' is not among those of offered"):
        opened(wrong)
    seldom = table.with_columns(action=pl.Series([row[0] for row in table["offered"].to_list()]))
    with pytest.raises(LogError, match=r"must be offered in every row, but 'a' is not in line .*--baseline-column"):
        list(read_log(seldom, baseline="a").batches())
    with pytest.raises(EvidenceError, match="a distribution over all actions, but this log offers others"):
        replay(read_log(table), [Spec("LUCB")], declared=DECLARED)
    with pytest.raises(EvidenceError, match="offered in every row, but here they change"):
        estimate_propensities(opened(table))


def test_propensities_are_not_doubted_for_what_was_seldom_offered() -> None:
    fit = fit_baseline(opened(visits(3_000)))
    assert not [doubt for doubt in fit.doubts if doubt.is_doubtful and doubt.assumption.startswith("Propensities")]


def test_a_log_without_offers_is_as_before() -> None:
    log = ArrayLog(features=np.eye(2)[None].repeat(3, axis=0), actions=0, rewards=np.ones(3), baselines=1)
    assert next(log.batches()).offered is None


@pytest.mark.parametrize("offered", [["b", None], ["b", ""]], ids=str)
def test_an_offer_without_a_name_is_refused(offered: list[Any]) -> None:
    table = visits(40).with_columns(offered=pl.Series([offered, *visits(40)["offered"][1:]]))
    with pytest.raises(LogError, match="holds an action without a name"):
        list(opened(table).batches())
