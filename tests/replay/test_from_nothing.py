"""A file as shops have it, from nothing to a guarded experiment by commands alone."""

import csv
import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import surefoot
from surefoot.experiment import Experiment
from tests.replay.test_cli import run

ROWS = 6_000


def visits(path: Path) -> Path:
    """Timestamps, gaps, labels, no propensities, 4% of clicks, and revenue beside them."""
    rng = np.random.default_rng(11)
    begun = datetime(2026, 1, 1)
    country, shown = rng.choice(["de", "fr", "it"], ROWS, p=[0.6, 0.3, 0.1]), rng.choice(["banner", "mail"], ROWS)
    clicked = rng.random(ROWS) < np.where((shown == "mail") & (country == "de"), 0.06, 0.03)
    pl.DataFrame(
        {
            "visited": [(begun + timedelta(seconds=37 * t)).isoformat() for t in range(ROWS)],
            "visitor_id": rng.permutation(ROWS),
            "age": [None if rng.random() < 0.14 else int(rng.integers(18, 80)) for _ in range(ROWS)],
            "country": [None if rng.random() < 0.05 else name for name in country],
            "shown": shown,
            "clicked": clicked.astype(int),
            "revenue": np.where(clicked, rng.lognormal(3, 1, ROWS).round(2), 0.0),
        }
    ).write_csv(path)
    return path


def test_a_shop_needs_four_commands(tmp_path: Path) -> None:
    log, config, journal = (
        str(visits(tmp_path / "visits.csv")),
        str(tmp_path / "e.toml"),
        str(tmp_path / "shop.journal"),
    )
    named = ("--action", "shown", "--reward", "clicked", "--estimate-propensities")
    fitted = json.loads(
        run("fit-baseline", log, *named, "--baseline", "banner", "--reward-bounds", "0,1", "--out", config, "--json")
    )
    assert fitted["baseline_reward"]["low"] < 0.03 < fitted["baseline_reward"]["high"]
    configuration = surefoot.experiment.read_configuration(config)
    # A date, an id, and what is known only after the click are no context; gaps are values.
    assert [(part.name, part.has_gaps) for part in configuration.encoder.parts] == [("age", True), ("country", True)]
    assert (configuration.reward_bounds, configuration.doubt) == ((0.0, 1.0), "")
    found = json.loads(run("replay", log, *named, "--config", config, "--json"))
    assert [entry["policy"] for entry in found["policies"]] == ["SafeLUCB"]
    assert found["policies"][0]["alarm"] is None
    truth = 0.6 * 0.03  # what mail gains on average
    gain = found["policies"][0]["estimates"]["rejection"]["gain"]
    assert gain["low"] < truth
    run("plan", "--config", config, "--policy", "guard", "--runs", "2", "--days", "1", "--json")
    run("experiment", "create", journal, "shop", "--config", config, "--mode", "guarded")
    with surefoot.open_journal(journal) as opened, Path(log).open() as file:
        shop = Experiment.open(opened, "shop")
        for visitor in list(csv.DictReader(file))[:20]:
            context = {"age": float(visitor["age"]) if visitor["age"] else None, "country": visitor["country"] or None}
            answer = shop.decide(context=context)
            assert shop.reward(answer.decision_id, float(visitor["clicked"])).is_accepted
        status = shop.status()
        assert (status.mode, status.rounds, status.is_refuted) == ("guarded", 20, False)
        assert status.margin >= 0 or status.learner_rounds == 0


@pytest.mark.parametrize("gap", [None, float("nan")])
def test_a_gap_means_the_same_in_the_log_and_live(gap: float | None, tmp_path: Path) -> None:
    log, config = str(visits(tmp_path / "visits.csv")), str(tmp_path / "e.toml")
    run("fit-baseline", log, "--action", "shown", "--reward", "clicked", "--baseline", "banner", "--out", config)
    configuration = surefoot.experiment.read_configuration(config)
    row = configuration.rows({"age": gap, "country": "de"})[0]
    assert row[configuration.encoder.names.index("age is missing") + 1] > 0
    assert row[configuration.encoder.names.index("age") + 1] == 0
