"""One experiment.toml from the log to the service: what was replayed is what goes live."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import surefoot
from surefoot.audit import audit, rows_checks
from surefoot.audit.declarations import read_linear
from surefoot.client import Client, ServiceError
from surefoot.errors import AssumptionError, ConfigError, InputError
from surefoot.experiment import Experiment, fork, read_configuration
from surefoot.experiment.configuration import Configuration, configuration_in
from surefoot.replay import Columns, compare, configuration_of, fit_baseline, read_log
from surefoot.replay.replayed_policy import FULL, Declared, log_player
from surefoot.replay.table_log import TableLog
from surefoot.rounds.events import RowsRound
from surefoot.service.settings import Settings
from tests.replay.test_cli import run
from tests.replay.test_fit import clicks
from tests.service.servers import running

ROWS = 250
DOUBT = "what a fit misses can be guessed"


def table() -> pl.DataFrame:
    """Labels to guess, with a gap here and there, and today's guess."""
    rng = np.random.default_rng(4)
    x, plan = rng.random(ROWS), rng.choice(["basic", "pro"], ROWS)
    right = np.where(x + 0.4 * (plan == "pro") > 0.7, "big", "small")
    gaps = [None if gap else float(value) for gap, value in zip(rng.random(ROWS) < 0.1, x, strict=True)]
    return pl.DataFrame({"x": gaps, "plan": plan, "size": right, "today": rng.choice(["big", "small"], ROWS)})


def configured(policy: str, radius: str | None = None, **changed: Any) -> tuple[TableLog, Configuration]:
    columns = Columns(action="size", reward=None, context=("x", "plan"), baseline="today")
    log = read_log(table(), columns=columns)
    assert isinstance(log, TableLog)
    bounds = (0.0, 1.0) if policy == "SafeLUCB" else None
    made = configuration_of(
        fit_baseline(log), log, policy=policy, alpha=0.4, delta=0.05, ridge=0.3, radius=radius, reward_bounds=bounds,
        despite_doubt=True,
    )  # fmt: skip
    return log, replace(made, **changed)


@pytest.mark.parametrize(
    ("policy", "radius", "exploration"),
    [
        ("SafeLUCB", None, None),
        ("SafeLUCB", "likelihood", None),
        ("SafeLUCB", "amm", None),
        ("CLUCB", None, None),
        ("CLUCB2", "residual", None),
        ("LUCB", None, None),
        ("LUCB", None, 0.7),
        ("LUCB", "logdet", 0.7),
    ],
)
def test_what_is_replayed_is_what_goes_live(
    policy: str, radius: str | None, exploration: float | None, tmp_path: Path
) -> None:
    log, made = configured(policy, radius, exploration=exploration)
    config = read_configuration(made.write(tmp_path / "experiment.toml"))
    assert config == made
    declared = Declared(config.noise, config.theta_bound, config.baseline_reward, config.reward_bounds)
    (batch,) = log.batches()
    replayed = log_player(config.spec(), declared, log, mode=FULL, seed=0).play(
        batch, batch.rewards, np.ones(ROWS, dtype=np.bool_)
    )
    journal = surefoot.open_journal("memory:")
    shop = Experiment.create(journal, "shop", config, mode="guarded", despite_doubt=True)
    live = []
    for visitor in table().iter_rows(named=True):
        context = {"x": visitor["x"], "plan": visitor["plan"]}
        answer = shop.decide(context=context, baseline=visitor["today"])
        live.append(answer.action)
        assert shop.reward(answer.decision_id, float(config.actions[answer.action] == visitor["size"])).is_accepted
    np.testing.assert_array_equal(live, replayed.chosen)
    assert shop.status().learner_share > 0
    # What was declared is true: a constant radius is no smaller noise, by which the audit and the lift would judge.
    assert shop.settings.settings["noise"] == config.noise
    assert shop.settings.settings.get("exploration") == exploration
    assert audit(journal, "shop").is_clean


def test_a_plan_expects_what_a_replay_of_such_a_log_shows(tmp_path: Path) -> None:
    """How often the baseline plays: of a log in which today's action earns 0.3, one 0.45, and the others less."""
    rng, rows, actions = np.random.default_rng(39), 30_000, ("today", "best", "low", "lower")
    played = rng.integers(0, 4, rows)
    clicked = rng.random(rows) < np.array([0.3, 0.45, 0.225, 0.15])[played]
    columns = {"age": rng.integers(18, 70, rows), "action": np.array(actions)[played], "reward": clicked.astype(int)}
    log = read_log(pl.DataFrame({**columns, "propensity": 0.25}), baseline="today")
    assert isinstance(log, TableLog)
    fit = fit_baseline(log, reward_bounds=(0.0, 1.0))
    made = configuration_of(fit, log, policy="SafeLUCB", alpha=0.2, delta=0.001, reward_bounds=(0.0, 1.0))
    config = str(made.write(tmp_path / "experiment.toml"))
    (shown,) = compare(log, configuration=read_configuration(config)).outcomes
    days = ["--lift", "0.5", "--per-day", str(shown.rounds), "--days", "1", "--runs", "8"]
    (planned,) = json.loads(run("plan", "--config", config, *days, "--json"))["answers"]
    seen = shown.rounds - shown.learner_rounds
    assert shown.rounds > 7_000
    assert seen / 2 < planned["baseline_rounds"] < 2 * seen
    assert (shown.free_from is not None) == (planned["free_share"] > 0.5)


def test_an_experiment_with_another_radius_than_it_declared_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    _, config = configured("LUCB", exploration=0.7)
    journal = surefoot.open_journal("memory:")
    shop = Experiment.create(journal, "shop", config, mode="guarded")
    for visitor in table().head(60).iter_rows(named=True):
        answer = shop.decide(context={"x": visitor["x"], "plan": visitor["plan"]}, baseline=visitor["today"])
        shop.reward(answer.decision_id, float(config.actions[answer.action] == visitor["size"]))
    monkeypatch.setattr(rows_checks, "read_linear", lambda *given: replace(read_linear(*given), exploration=0.1))
    assert {finding.what for finding in audit(journal, "shop").findings} == {"proposal"}


@pytest.mark.parametrize("policy", ["SafeLUCB", "CLUCB", "CLUCB2"])
def test_a_constant_radius_is_lucbs_alone(policy: str) -> None:
    with pytest.raises(ConfigError, match=f"`exploration` must not be given for {policy}"):
        configured(policy, exploration=1.0)


def test_why_a_configuration_is_refused_ends_in_one_full_stop() -> None:
    text = configured("CLUCB2")[1].to_toml()
    with pytest.raises(ConfigError, match=r"^`e\.toml` .*: `exploration` must not be given .*[^.]\. Leave it out\.$"):
        configuration_in(f"exploration = 1.0\n{text}", "e.toml")
    with pytest.raises(ConfigError, match=r"^`e\.toml` must be a whole configuration, .* wrong: 'alpha'\.$"):
        configuration_in(text.replace("alpha = 0.4", ""), "e.toml")


@pytest.mark.parametrize("value", ["true", "'1'", "[1]", "0", "-1.0", "inf", "nan"])
def test_a_constant_radius_in_a_file_is_a_number_above_0(value: str) -> None:
    text = configured("LUCB")[1].to_toml()
    with pytest.raises(ConfigError, match=r"^`e\.toml` .*`exploration.* must .*[^.]\.$"):
        configuration_in(f"exploration = {value}\n{text}", "e.toml")
    assert configuration_in(f"exploration = 1\n{text}").exploration == 1.0


@pytest.mark.parametrize("exploration", [0.0, -1.0, math.inf, math.nan])
def test_a_radius_is_positive(exploration: float) -> None:
    with pytest.raises(ConfigError, match="exploration"):
        configured("LUCB", exploration=exploration)


def test_a_fork_by_another_configuration_makes_the_rows_anew_of_the_contexts() -> None:
    _, config = configured("SafeLUCB")
    journal = surefoot.open_journal("memory:")
    shop = Experiment.create(journal, "shop", config, despite_doubt=True)
    contexts = [{"x": 0.1 * n, "plan": "pro"} for n in range(5)]
    for n, context in enumerate(contexts):
        answer = shop.decide(context=context, baseline=config.actions[0], decision_id=f"v{n}")
        shop.reward(answer.decision_id, 0.5)
    other = replace(config, alpha=0.3, actions=config.actions[:2])
    made = fork(journal, "shop", "fewer", policy=other, reason="one action is gone")
    assert made.experiment.settings.history is not None
    assert made.experiment.settings.history.features == [other.rows(context)[0].tolist() for context in contexts]
    assert audit(journal, "fewer").is_clean


def test_the_command_line_replays_what_the_file_says(tmp_path: Path) -> None:
    path, config, journal = str(clicks(tmp_path / "clicks.csv")), str(tmp_path / "e.toml"), str(tmp_path / "j")
    run(
        "fit-baseline", path, "--baseline", "banner", "--reward-bounds", "0,1", "--alpha", "0.2", "--delta", "0.01",
        "--ridge", "0.5", "--radius", "likelihood", "--reward-window", "60", "--default-reward", "0", "--out", config,
    )  # fmt: skip
    configuration = read_configuration(config)
    assert (configuration.ridge, configuration.radius, configuration.reward_bounds, configuration.reward_window) == (
        0.5,
        "likelihood",
        (0.0, 1.0),
        60.0,
    )
    found = json.loads(run("replay", path, "--config", config, "--json"))
    assert [entry["policy"] for entry in found["policies"]] == ["SafeLUCB"]
    assert found["policies"][0]["alpha"] == 0.2
    assert (found["settings"]["delta"], found["settings"]["ridge"]) == (0.01, 0.5)
    planned = json.loads(run("plan", "--config", config, "--runs", "2", "--days", "1", "--policy", "guard", "--json"))
    assert [answer["alpha"] for answer in planned["guard"]] == [0.2]
    run("experiment", "create", journal, "shop", "--config", config, "--mode", "guarded")
    with surefoot.open_journal(journal) as opened:
        created = Experiment.open(opened, "shop").settings
        assert created.settings["radius"] == "likelihood"
        assert (created.reward_window, created.default_reward, created.reward_bounds) == (60.0, 0.0, (0.0, 1.0))
        assert created.configuration == Path(config).read_text()


def test_offered_actions_are_rows_of_the_configuration(tmp_path: Path) -> None:
    _, config = configured("CLUCB2")
    config = replace(config, actions=("big", "small"), baseline="small")
    shop = Experiment.create(surefoot.open_journal("memory:"), "shop", config)
    context = {"x": 0.3, "plan": "pro"}
    answer = shop.decide(context=context, actions=["small"])
    record = shop.round(answer.decision_id)
    assert isinstance(record, RowsRound)
    assert record.request.features == [config.rows(context)[1].tolist()]
    with pytest.raises(
        InputError, match=r"those of the experiment's configuration, but got 'smal'. Did you mean 'small'"
    ):
        shop.decide(context=context, actions=["smal"])
    with pytest.raises(InputError, match="'plan', which the log always had"):
        shop.decide(context={"x": 1.0})
    _, open_ = configured("CLUCB2")
    with pytest.raises(InputError, match="changes from round to round"):
        Experiment.create(surefoot.open_journal("memory:"), "shop", open_).decide(context=context)


def test_a_doubt_in_the_file_keeps_the_experiment_from_being_guarded() -> None:
    _, config = configured("SafeLUCB", doubt=DOUBT)
    journal = surefoot.open_journal("memory:")
    with pytest.raises(AssumptionError, match=r"speaks against it: what a fit misses .*--policy Guard --set alpha=0.4"):
        Experiment.create(journal, "shop", config, mode="guarded")
    assert journal.names() == []
    shop = Experiment.create(journal, "shop", config)
    with pytest.raises(AssumptionError, match="--policy Guard"):
        Experiment.open(journal, "shop").set_mode("guarded")
    assert shop.status().mode == "shadow"
    shop.set_mode("guarded", reason="we know, and watch it", despite_doubt=True)
    assert shop.status().mode == "guarded"
    # A learner without a floor has nothing to lose by a wrong model.
    _, free = configured("LUCB", doubt=DOUBT)
    assert Experiment.create(journal, "free", free, mode="guarded").status().mode == "guarded"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with running(Settings(database=str(tmp_path_factory.mktemp("one") / "shop.journal"))) as address:
        yield address


def test_the_service_encodes_contexts_by_the_file(address: str, tmp_path: Path) -> None:
    _, config = configured("CLUCB2", baseline="small")
    path, context = config.write(tmp_path / "experiment.toml"), {"x": None, "plan": "pro"}
    with Client(address, timeout=30, patience=60) as client:
        client.create_experiment("shop", configuration=path)
        decision = client.decide("shop", context=context)
        assert (decision.action_id, decision.source, decision.is_fallback) == ("small", "baseline", False)
        request = client.decision("shop", decision.decision_id)["round"]["request"]
        np.testing.assert_array_equal(request["features"], config.rows(context))
        assert client.decide("shop", ["small"], context=context).action_id == "small"
        with pytest.raises(ServiceError, match="'plan', which the log always had"):
            client.decide("shop", context={"x": 0.1})
        with pytest.raises(ServiceError, match="left out where a `configuration` is given"):
            client.create_experiment("other", {"dim": 2}, configuration=path)


def test_the_service_refuses_guarded_mode_where_the_file_has_a_doubt(address: str, tmp_path: Path) -> None:
    _, config = configured("CLUCB2", doubt=DOUBT)
    path = config.write(tmp_path / "experiment.toml")
    with Client(address, timeout=30, patience=60) as client:
        with pytest.raises(ServiceError, match="--policy Guard"):
            client.create_experiment("bent", configuration=path, mode="guarded")
        client.create_experiment("bent", configuration=path)
        with pytest.raises(ServiceError, match="--policy Guard"):
            client.set_mode("bent", "guarded")
        assert client.set_mode("bent", "guarded", despite_doubt=True)["mode"] == "guarded"


def test_a_client_that_knows_the_file_plays_the_baseline_alone(tmp_path: Path) -> None:
    _, config = configured("CLUCB2", baseline="small")
    path = config.write(tmp_path / "experiment.toml")
    with Client("http://127.0.0.1:9", timeout=0.2) as client:
        with pytest.raises(InputError, match="name the experiment's configuration"):
            client.decide("shop", context={"x": 0.1, "plan": "pro"})
        client.use("shop", path)
        decision = client.decide("shop", context={"x": 0.1, "plan": "pro"})
        assert (decision.action_id, decision.action, decision.is_fallback) == ("small", 1, True)
        with pytest.raises(ConfigError, match=r"must be an experiment\.toml with its actions"):
            client.use("shop", tmp_path / "missing.toml")


def test_a_log_without_columns_is_refused() -> None:
    log = surefoot.replay.ArrayLog(features=np.eye(2)[None], actions=[0], rewards=[1.0], baselines=0)
    fit = fit_baseline(read_log(table(), columns=Columns(action="size", reward=None, context=("x",), baseline="today")))
    with pytest.raises(InputError, match="a table read by `read_log`"):
        configuration_of(fit, log, policy="LUCB", alpha=0.1, delta=0.01)  # type: ignore[arg-type]


def test_names_are_written_so_that_they_can_be_read() -> None:
    configuration = Configuration(
        policy="LUCB", alpha=0.1, delta=0.01, noise=0.5, ridge=1.0, theta_bound=1.0, feature_bound=1.0,
        baseline_reward=0.5, actions=("a\x7f", "b"), baseline="b", encoder=configured("LUCB")[1].encoder,
    )  # fmt: skip
    with surefoot.open_journal("memory:") as journal:
        Experiment.create(journal, "shop", configuration)
        assert Experiment.open(journal, "shop").configuration == configuration
        with pytest.raises(ConfigError, match="text that can be written"):
            Experiment.create(journal, "other", replace(configuration, actions=("\ud800", "b")))
        assert journal.names() == ["shop"]
