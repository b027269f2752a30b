"""Forks: a new experiment with other settings that begins with what an old one has learned."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import surefoot
from surefoot.audit import audit, audit_journal
from surefoot.audit.report import ENCODED, cannot_show
from surefoot.cli.commands import app
from surefoot.errors import ConfigError, InputError, JournalConflictError
from surefoot.experiment import Experiment, fork
from surefoot.experiment.configuration import configuration_in
from surefoot.journal import Journal, canonical, open_journal
from surefoot.linear.encoding import CategoricalColumn, Encoder
from surefoot.rounds.events import RowsRequest
from tests.experiment.honest import new_world, rounds_of, safe
from tests.experiment.worlds import Clock
from tests.own_policy import EpsilonGreedy


class Trees(EpsilonGreedy):
    """A policy of one's own that is over rows, and calls their length otherwise."""

    def __init__(self, *, inputs: int) -> None:
        super().__init__(dim=inputs)
        surefoot.Policy.__init__(self, {"inputs": inputs})


TOLD: dict[str, Any] = {"reason": "more may be risked", "by": "ada"}


def old(
    journal: Journal, *, window: float | None = None, rounds: int = 60, sealed: bool = True, **settings: Any
) -> tuple[Experiment, list[tuple[list[float], float]], Clock]:
    """An experiment with late, corrected, abandoned and voided rounds; and what it should have learned from."""
    clock, world = Clock(), new_world(3, changing=True)
    policy = safe(**settings)(world.settings(ridge=0.3, delta=0.05))
    shop = Experiment.create(
        journal, "shop", policy, mode="guarded", clock=clock, reward_window=window, sealed=sealed, snapshot_every=17
    )
    found = list[tuple[list[float], float]]()
    for n, (question, reward) in zip(range(rounds), rounds_of(policy, world, 3), strict=False):
        clock.now += 1.0
        answer, action = shop.decide(**{**question, "decision_id": f"v{n}"}), None
        if n % 7 == 2:
            shop.abandon(f"v{n}")
            continue
        if n % 5 == 3:
            shop.void(f"v{n}", 4)
            action = 4
        action = answer.action if action is None else action
        if n >= rounds - 6:
            continue  # they wait
        value = reward(action)
        shop.reward(f"v{n}", value)
        found.append((question["features"][action].tolist(), value))
    if window is not None:
        clock.now += window - 3.5  # so that the last of those that have a reward are still open
        shop.close_windows()
    return shop, found, clock


@pytest.mark.parametrize("sealed", [False, True])
def test_a_fork_begins_with_what_was_learned_in_its_order(sealed: bool) -> None:
    with open_journal("memory:") as journal:
        shop, learned, clock = old(journal, sealed=sealed)
        before = journal.head("shop")
        made = fork(journal, "shop", "bolder", changes={"alpha": 0.45}, clock=clock, **TOLD)
        created = made.experiment.settings
        assert created.history is not None
        assert list(zip(created.history.features, created.history.rewards, strict=True)) == learned
        assert made.carried == len(learned) == created.origin.rounds  # type: ignore[union-attr]
        assert (created.settings["alpha"], created.mode, created.by) == (0.45, "shadow", "ada")
        assert journal.head("shop") == before
        told = " ".join(made.lost)
        assert "Rounds that were abandoned: 9." in told
        assert "waits for an earlier one: 5." in told
        assert "The ledger" in told
        twin = surefoot.SafeLUCB(**{**shop.settings.settings, "alpha": 0.45})
        twin.warm_start(*(np.array(part) for part in zip(*learned, strict=True)))
        theta = np.asarray(made.experiment.policy_state()["ridge"])
        assert np.array_equal(theta, twin.state()["ridge"])
        for name in ("shop", "bolder"):
            assert audit(journal, name).is_clean, list(audit(journal, name).findings)
        assert made.experiment.decide(np.full((2, 3), 0.2), baseline=0).round == 1


def test_rewards_of_open_windows_and_defaults_are_told_apart() -> None:
    with open_journal("memory:") as journal:
        shop, _, clock = old(journal, window=20.0, sealed=False)
        clock.now += 0.2
        shop.reward("v59", 0.7)
        came = {
            event.value()["decision_id"]: event.value()["values"]["reward"]
            for event in journal.read("shop")
            if event.kind == "reward" and event.key
        }
        windows = [one for event in journal.read("shop") if event.kind == "settled" for one in event.value()["windows"]]
        assert {is_missing for *_, is_missing in windows} == {False, True}
        made = fork(journal, "shop", "again", clock=clock, reward_window=30.0, **TOLD)
        assert made.experiment.settings.history is not None
        assert made.experiment.settings.history.rewards == [
            0.0 if is_missing else came[decision_id] for decision_id, _, is_missing in windows
        ]
        assert made.experiment.settings.reward_window == 30.0
        assert audit(journal, "again").is_clean


def test_a_fork_of_a_fork_and_another_policy_carry_the_history_on() -> None:
    with open_journal("memory:") as journal:
        shop, learned, clock = old(journal)
        first = fork(journal, "shop", "first", clock=clock, **TOLD)
        first.experiment.decide(np.full((2, 3), 0.2), baseline=0, decision_id="a")
        first.experiment.reward("a", 0.3)
        told = {
            name: shop.settings.settings[name]
            for name in ("dim", "delta", "noise", "ridge", "theta_bound", "feature_bound")
        }
        second = fork(journal, "first", "second", policy=surefoot.CLUCB2(alpha=0.1, **told), clock=clock, **TOLD)
        assert second.carried == len(learned) + 1
        assert second.experiment.settings.policy == "CLUCB2"
        assert audit(journal, "second").is_clean


def test_another_feature_map_makes_the_rows_anew() -> None:
    with open_journal("memory:") as journal:
        shop, learned, clock = old(journal)
        wide = surefoot.SafeLUCB(**{**shop.settings.settings, "dim": 4, "feature_bound": 3.0, "theta_bound": 2.0})

        def features(asked: RowsRequest) -> Any:
            return np.hstack([np.array(asked.features), np.ones((len(asked.features or []), 1))])

        with pytest.raises(ConfigError, match="Give `features`"):
            fork(journal, "shop", "wide", policy=wide, clock=clock, **TOLD)
        made = fork(journal, "shop", "wide", policy=wide, features=features, clock=clock, **TOLD)
        assert made.carried == len(learned)
        assert made.experiment.settings.history is not None
        assert made.experiment.settings.history.features[-1] == [*learned[-1][0], 1.0]
        report = audit(journal, "wide")
        assert report.is_clean
        assert ENCODED in cannot_show(report)
        shop.erase(["v0", "v1"], by="desk")
        with pytest.raises(ConfigError, match=r"context of every round .* round 1 is erased"):
            fork(journal, "shop", "wider", policy=wide, features=features, clock=clock, **TOLD)
        assert "wider" not in journal.names()
        assert audit(journal, "wide").is_clean, "what was carried before stays"
        assert fork(journal, "shop", "plain", clock=clock, **TOLD).carried == len(learned)


@pytest.mark.parametrize("what", ["dropped", "swapped"])
def test_a_history_made_anew_has_every_reward_in_its_order(what: str) -> None:
    with open_journal("memory:") as journal:
        _, _, clock = old(journal, sealed=False)
        fork(journal, "shop", "bolder", features=lambda asked: np.array(asked.features) * 0.5, clock=clock, **TOLD)
        created = next(journal.read("bolder")).value()
        rewards = created["history"]["rewards"]
        if what == "dropped":
            worst = int(np.argmin(rewards))
            for part in created["history"].values():
                del part[worst]
        else:
            rewards[0], rewards[1] = rewards[1], rewards[0]
        journal.create("forged", canonical(created), time=clock.now)
        assert audit(journal, "bolder").is_clean
        assert "fork" in audit(journal, "forged").findings.counts


def test_nothing_from_before_a_restart_is_carried() -> None:
    with open_journal("memory:") as journal:
        clock = Clock()
        shop = Experiment.create(
            journal,
            "bounded",
            safe()(new_world(3, changing=True).settings(ridge=0.3, delta=0.05)),
            mode="guarded",
            clock=clock,
            reward_bounds=(0.0, 1.0),
        )
        for n, value in enumerate([0.3, 9.0]):
            shop.decide(np.full((2, 3), 0.2), baseline=0, decision_id=f"v{n}")
            shop.reward(f"v{n}", value)
        shop.acknowledge("renew", reason="the till was broken")
        shop.decide(np.full((2, 3), 0.2), baseline=0, decision_id="v2")
        shop.reward("v2", 0.4)
        made = fork(journal, "bounded", "fresh", clock=clock, **TOLD)
        assert made.experiment.settings.history is not None
        assert made.experiment.settings.history.rewards == [0.4]
        assert "Rounds before a restart: 2." in made.lost
        assert audit(journal, "fresh").is_clean


def test_bad_forks_change_nothing() -> None:
    with open_journal("memory:") as journal:
        old(journal, rounds=12)
        Experiment.create(journal, "models", surefoot.Guard(alpha=0.1, delta=0.05))
        Experiment.create(journal, "arms", surefoot.UCB(arms=2))
        Experiment.create(journal, "trees", Trees(inputs=2))
        names = journal.names()
        with pytest.raises(ConfigError, match=r"coins of its own rounds .* Create a new experiment"):
            fork(journal, "models", "new", **TOLD)
        with pytest.raises(ConfigError, match=r"plain arms, which takes no history\. Create a new experiment"):
            fork(journal, "arms", "new", **TOLD)
        with pytest.raises(
            ConfigError, match=r"'trees' has a .*Trees, a policy without `dim`, so that its rows cannot be"
        ):
            fork(journal, "trees", "new", **TOLD)
        with pytest.raises(ConfigError, match="`reason` must say why"):
            fork(journal, "shop", "new", reason=" ")
        with pytest.raises(ConfigError, match="must be those of SafeLUCB"):
            fork(journal, "shop", "new", changes={"alhpa": 0.2}, **TOLD)
        with pytest.raises(JournalConflictError):
            fork(journal, "shop", "arms", **TOLD)
        assert journal.names() == names


@pytest.mark.parametrize("what", ["reward", "row", "dropped", "head"])
def test_a_history_that_the_old_experiment_never_had_is_found(what: str) -> None:
    with open_journal("memory:") as journal:
        _, _, clock = old(journal, sealed=False)
        fork(journal, "shop", "bolder", clock=clock, **TOLD)
        created = next(journal.read("bolder")).value()
        if what == "reward":
            created["history"]["rewards"][3] += 0.2
        elif what == "row":
            created["history"]["features"][3][0] *= 0.5
        elif what == "dropped":
            worst = int(np.argmin(created["history"]["rewards"]))
            for part in created["history"].values():
                del part[worst]
        else:
            created["origin"]["hash"] = "ab" * 32
        journal.create("forged", canonical(created), time=clock.now)
        assert audit(journal, "bolder").is_clean
        assert "fork" in audit(journal, "forged").findings.counts


def test_the_command_line_forks_and_corrects(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with open_journal(path) as journal:
        shop = Experiment.create(
            journal,
            "shop",
            safe()(new_world(3, changing=True).settings(ridge=0.3, delta=0.05)),
            reward_window=86_400.0,
        )
        shop.decide(np.full((2, 3), 0.2), baseline=0, decision_id="v10")
        shop.reward("v10", 0.9)
    told = ["--by", "ada", "--reason", "a test"]
    done = CliRunner().invoke(app, ["experiment", "correct", path, "shop", "v10", "0.25", *told])
    assert done.exit_code == 0, done.output
    assert "is 0.25." in done.output
    done = CliRunner().invoke(app, ["experiment", "fork", path, "shop", "bolder", "--set", "alpha=0.4", *told])
    assert done.exit_code == 0, done.output
    assert "begins with 0 rows" in done.output
    assert "The ledger" in done.output
    done = CliRunner().invoke(app, ["experiment", "fork", path, "shop", "x", "--correct", "v10:0.2", *told])
    assert "must be DECISION=VALUE" in str(done.exception)
    done = CliRunner().invoke(app, ["experiment", "fork", path, "shop", "x", "--correct", "v10=0.2", *told])
    assert "must be carried over to be corrected" in str(done.exception)
    with open_journal(path, read_only=True) as journal:
        assert audit_journal(journal).is_clean
        assert audit(journal, "bolder").is_clean


AGED = """
policy = "LUCB"
alpha = 0.1
delta = 0.01
noise = 0.5
theta_bound = 1.0
feature_bound = 1.5
baseline_reward = 0.3
reward_floor = 0.0

[actions]
names = ["blue", "red"]
baseline = "red"

[[context]]
name = "age"
low = 20.0
high = 60.0
"""


def test_contexts_that_were_taken_are_not_judged_again() -> None:
    told = configuration_in(AGED)
    journal = open_journal("memory:")
    shop = Experiment.create(journal, "shop", told, mode="guarded")
    for n in range(3):
        answer = shop.decide(context={"age": 30, "plan_b": "pro", "tariff": "NA"}, decision_id=f"visit {n}")
        shop.reward(answer.decision_id, 0.5)
    parts = (CategoricalColumn("plan", ("(missing)", "pro")), CategoricalColumn("tariff", ("basic", "pro")))
    more = replace(told, encoder=Encoder((*told.encoder.parts, *parts)))
    assert fork(journal, "shop", "finer", policy=more, reason="two columns more").carried == 3
    with pytest.raises(InputError, match="Did you mean 'plan' by 'plan_b'"):
        more.rows({"age": 30, "plan_b": "pro", "tariff": "basic"})
