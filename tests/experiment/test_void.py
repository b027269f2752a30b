"""Rounds that were not played as decided: the ledger, the proofs and the audit go by what was played."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from typer.testing import CliRunner

import surefoot
from surefoot.audit import audit
from surefoot.cli.commands import app
from surefoot.errors import DecisionConflictError, DecisionError, DecisionSettledError, InputError
from surefoot.experiment import Experiment
from surefoot.experiment.export import pair_rounds, row_rounds
from surefoot.journal import Journal, open_journal
from surefoot.policies import Policy
from surefoot.rounds.format import pack
from tests.experiment import guard_worlds
from tests.experiment.honest import CONSTRAINTS, Make, new_world, rounds_of, safe
from tests.experiment.tampering import Row, first, forged
from tests.experiment.worlds import Clock
from tests.own_policy import EpsilonGreedy

WATCHED: dict[str, Any] = {"holdout": 0.2, "watch_share": 0.3, "seed": 3}
KINDS: dict[str, Make] = {
    "SafeLUCB": safe(),
    "SafeLUCB joint": safe(gate="joint", radius="paper"),
    "SafeLUCB ledger": safe(gate="ledger", reward_range=None, reward_floor=0.05, misspecification=1e-3),
    "SafeLUCB dual": safe(radius="dual"),
    "SafeLUCB likelihood": safe(radius="likelihood", reward_bounds=(-0.2, 1.2)),
    "SafeLUCB best": safe(radius="best", reward_bounds=(-0.2, 1.2)),
    "SafeLUCB watched": safe(**WATCHED),
    **{f"SafeLUCB {name}": safe(constraint=told) for name, told in CONSTRAINTS.items() if name != "cumulative"},
    "CLUCB": lambda told: surefoot.CLUCB(alpha=0.3, **told),
    "CLUCB watched": lambda told: surefoot.CLUCB(alpha=0.3, **told, **WATCHED),
    "CLUCB2": lambda told: surefoot.CLUCB2(alpha=0.3, nesting="latest", **told),
    "LUCB": lambda told: surefoot.LUCB(**told),
    "ConservativeUCB": lambda told: surefoot.ConservativeUCB(arms=5, alpha=0.5, delta=0.1, noise=0.05),
    "ConservativeUCB-bounded": lambda told: surefoot.ConservativeUCB(
        arms=5, alpha=0.7, delta=0.1, reward_bounds=(-0.1, 1.1)
    ),
    "UCB": lambda told: surefoot.UCB(arms=5),
}
ARMS = [KINDS[name] for name in ("UCB", "ConservativeUCB", "ConservativeUCB-bounded")]
Round = tuple[np.ndarray, int, int, bool]  # rows, the baseline, what was played, and whether it counts as the learner's


def delayed(
    make: Make,
    rounds: int,
    *,
    journal: Journal | None = None,
    window: float | None = None,
    seed: int = 5,
    late: float = 0.3,
    says: bool = True,
    every: int = 97,
) -> tuple[Experiment, list[Round], np.ndarray]:
    """An experiment whose callers hear of some decisions too late: they play the baseline, or sometimes another action.

    Returns it with what was really played and the true theta; who does not say so (`says`) leaves it to the service.
    """
    journal, clock = journal or open_journal("memory:"), Clock()
    # Only a policy over features has a baseline that changes.
    world = new_world(seed, changing=make not in ARMS)
    policy = make(world.settings(ridge=0.3, delta=0.05))
    options: dict[str, Any] = {"reward_window": window, "clock": clock, "snapshot_every": every}
    experiment = Experiment.create(journal, "shop", policy, mode="guarded", **options)
    rng, played = np.random.default_rng(seed), list[Round]()
    waiting = list[tuple[str, float]]()
    for number, (question, reward) in zip(range(rounds), rounds_of(policy, world, seed), strict=False):
        clock.now += 1.0
        answer = experiment.decide(**question)
        action = answer.action
        if rng.random() < late:
            action = question["baseline"] if rng.random() < 0.8 else int(rng.integers(5))
            if says:
                experiment.void(answer.decision_id, action, reason="it came too late", by="a test")
        rows = np.eye(5) if question["features"] is None else question["features"]
        # The learner may propose the baseline's own row.
        is_learner = action != question["baseline"] or (action == answer.action and answer.source == "learner")
        played.append((rows, question["baseline"], action, is_learner))
        waiting.append((answer.decision_id, reward(action)))
        while len(waiting) > 4 and number < rounds - 10:
            experiment.reward(*waiting.pop(int(rng.integers(len(waiting)))))
    return experiment, played, world.theta


@pytest.mark.parametrize("kind", KINDS)
def test_the_ledger_is_about_what_was_played(kind: str) -> None:
    experiment, played, _ = delayed(KINDS[kind], 120)
    status, policy = experiment.status(), Policy.from_state(experiment.policy_state())
    assert status.voided > 10
    if isinstance(policy, surefoot.policies.linear_policy.LinearPolicy):
        ledger, zero = policy.ledger, np.zeros(3)
        learner = [(rows[a], rows[b]) for rows, b, a, is_learner in played if is_learner]
        kept = [rows[b] for rows, b, _, is_learner in played if not is_learner]
        assert (ledger.learner_rounds, ledger.baseline_rounds) == (len(learner), len(kept))
        assert ledger.played == pytest.approx(sum((x for x, _ in learner), zero), abs=1e-12)
        assert ledger.conserved == pytest.approx(sum(kept, zero), abs=1e-12)
        if policy.needs_baseline:
            assert ledger.displaced == pytest.approx(sum((x for _, x in learner), zero), abs=1e-12)
    else:
        counts = np.bincount([a for _, _, a, _ in played], minlength=5)
        assert experiment.policy_state()["arms"][0].tolist() == counts.tolist()


@pytest.mark.parametrize("window", [None, 7.0])
@pytest.mark.parametrize("kind", KINDS)
def test_an_audit_of_voided_rounds_is_clean(kind: str, window: float | None) -> None:
    experiment, _, _ = delayed(KINDS[kind], 120, window=window)
    report = audit(experiment.journal, "shop")
    assert report.is_clean, list(report.findings)[:3]
    assert report.tally.voided == experiment.status().voided
    assert report.tally.learner == experiment.status().learner_rounds


@pytest.mark.parametrize("kind", KINDS)
def test_a_voided_round_is_the_same_after_a_restart_and_after_a_snapshot(kind: str, tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        experiment, _, _ = delayed(KINDS[kind], 60, journal=journal, every=17)
        bits = pack(experiment.policy_state())
        assert pack(Experiment.open(journal, "shop").policy_state()) == bits
    with open_journal(tmp_path / "plain.db") as journal:
        experiment, _, _ = delayed(KINDS[kind], 60, journal=journal, every=0)
        assert pack(Experiment.open(journal, "shop").policy_state() | {"id": ""}) == pack(
            experiment.policy_state() | {"id": ""}
        )


def guaranteed_and_true(says: bool) -> tuple[float, float]:
    """What the newest certificate of the learner says was earned beyond the floor, and what that was in truth."""
    experiment, played, theta = delayed(safe(alpha=0.3), 400, late=0.4, says=says, seed=11)
    rows = list(row_rounds(experiment.journal, "shop"))
    newest = max(number for number, row in enumerate(rows) if row["source"] == "learner")
    # The certificate is about the rounds before, as they were played, and about its own as it was decided.
    offered, baseline, _, _ = played[newest]
    counted = [(x[b], x[a]) for x, b, a, _ in played[:newest]] + [
        (offered[baseline], offered[rows[newest]["proposal"]])
    ]
    return rows[newest]["margin"], sum(float((a - 0.7 * b) @ theta) for b, a in counted)


def test_late_answers_make_a_service_promise_what_was_not_earned_unless_they_are_voided() -> None:
    promised, true = guaranteed_and_true(says=False)
    assert promised > true + 1.0  # the attack: learner's rounds that nobody played
    promised, true = guaranteed_and_true(says=True)
    assert promised <= true


def test_an_export_holds_what_was_played() -> None:
    experiment, played, _ = delayed(safe(), 80)
    rows = list(row_rounds(experiment.journal, "shop"))
    assert [row["action"] for row in rows] == [action for _, _, action, _ in played]
    assert [row["features"] for row in rows] == [offered[action].tolist() for offered, _, action, _ in played]
    assert [row["source"] == "learner" for row in rows] == [is_learner for _, _, _, is_learner in played]
    assert sum(row["is_voided"] for row in rows) == experiment.status().voided > 5


def started(**extra: Any) -> tuple[Any, str]:
    """An experiment, and the id of a learner's decision that waits for its reward."""
    experiment, _, _ = delayed(safe(alpha=0.4), 300, late=0.0, **extra)
    journal = experiment.journal
    rows = [row for row in row_rounds(journal, "shop") if row["source"] == "learner" and row["reward"] is None]
    rows = [row for row in rows if row["action"] != row["baseline"]]
    assert len(rows) > 3
    return experiment, rows[-1]["decision_id"]


@pytest.mark.parametrize("window", [None, 500.0])
def test_a_reward_that_came_first_keeps_the_round_where_it_is(window: float | None) -> None:
    experiment, id_ = started(window=window)
    experiment.reward(id_, 0.5)
    before = pack(experiment.policy_state())
    with pytest.raises(DecisionSettledError, match="choose the data by their values"):
        experiment.void(id_)
    assert pack(experiment.policy_state()) == before
    assert experiment.find(id_).source == "learner"


def test_a_reward_that_comes_later_counts_for_what_was_played() -> None:
    experiment, id_ = started()
    rounds, events = experiment.status().learner_rounds, experiment.status().events
    assert experiment.void(id_, reason="too late", by="ann")
    assert experiment.status().learner_rounds == rounds - 1
    assert experiment.reward(id_, 0.5).is_accepted
    assert experiment.status().events == events + 2
    assert audit(experiment.journal, "shop").is_clean


def test_voiding_twice_is_voiding_once_and_another_word_is_refused() -> None:
    experiment, id_ = started()
    assert experiment.void(id_)
    before = pack(experiment.policy_state())
    assert not experiment.void(id_, reason="again")
    assert not experiment.void(id_, experiment.round(id_).request.baseline)
    with pytest.raises(DecisionConflictError, match="voided once"):
        experiment.void(id_, experiment.round(id_).action)
    assert pack(experiment.policy_state()) == before


def test_an_unknown_decision_and_an_action_that_was_not_offered_are_refused() -> None:
    experiment, id_ = started()
    events = experiment.status().events
    with pytest.raises(DecisionError, match="must exist to be voided"):
        experiment.void("nobody")
    for action in (5, -1, True, "red", 0.5, [1]):
        with pytest.raises(InputError, match="`action` must be"):
            experiment.void(id_, action)
    assert experiment.status().events == events


def test_a_catalogue_says_how_many_actions_there_were() -> None:
    rows = surefoot.Catalogue([[0.6, 0.1], [0.9, 0.3]])
    policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, noise=0.5, theta_bound=1.0, feature_bound=1.0)
    shop = Experiment.create(open_journal("memory:"), "shop", policy, mode="guarded")
    shop.decide(rows, baseline=0, decision_id="a")
    with pytest.raises(InputError, match="0 <= action < 2"):
        shop.void("a", 2)
    assert shop.void("a", 1)
    assert shop.status().learner_rounds == 1
    assert audit(shop.journal, "shop").is_clean


def test_a_policy_of_ones_own_learns_what_was_played() -> None:
    rows = np.array([[0.5, 0.0], [0.0, 0.25]])
    shop = Experiment.create(open_journal("memory:"), "shop", EpsilonGreedy(dim=2, ridge=0.5), mode="guarded")
    decided = shop.decide(rows, baseline=0, decision_id="a").action
    assert shop.void("a", 1 - decided)
    shop.reward("a", 2.0)
    assert shop.policy_state()["sums"].tolist() == (2.0 * rows[1 - decided]).tolist()
    assert pack(Experiment.open(shop.journal, "shop").policy_state()) == pack(shop.policy_state())


def test_a_window_that_has_closed_cannot_be_voided() -> None:
    experiment, id_ = started(window=50.0)
    experiment.clock.now += 51.0
    with pytest.raises(DecisionSettledError):
        experiment.void(id_)


def test_a_round_that_was_played_as_decided_needs_no_event() -> None:
    experiment, id_ = started()
    events = experiment.status().events
    assert not experiment.void(id_, experiment.find(id_).action)
    assert experiment.status().events == events


def test_asking_again_tells_what_was_played() -> None:
    experiment, id_ = started()
    experiment.void(id_)
    request = experiment.round(id_).request
    again = experiment.decide(
        request.features, baseline=request.baseline, baseline_reward=request.baseline_reward, decision_id=id_
    )
    assert (again.source, again.action, again.is_repeat) == ("baseline", request.baseline, True)
    assert "But the caller played row" in again.explanation
    assert experiment.find(id_) == again


def test_booking_what_the_learner_decided_voids_it_until_its_reward_has_come() -> None:
    experiment, id_ = started()
    asked = experiment.round(id_).request
    question: dict[str, Any] = {"features": asked.features, "baseline": asked.baseline, "decision_id": id_}
    booked = experiment.book(**question, baseline_reward=asked.baseline_reward)
    assert (booked.source, booked.is_repeat, booked.is_voided) == ("baseline", True, True)
    assert experiment.status().voided == 1
    experiment, id_ = started()
    experiment.reward(id_, 0.5)
    with pytest.raises(DecisionSettledError):
        experiment.book(**question | {"decision_id": id_}, baseline_reward=asked.baseline_reward)


def test_a_round_from_before_a_restart_stays_charged_at_its_worst() -> None:
    experiment, id_ = started()
    policy, made = Policy.from_state(experiment.policy_state()), experiment.find(id_)
    assert isinstance(policy, surefoot.SafeLUCB)
    policy.report_breach("reward", "a test")
    policy.acknowledge("relearn")
    again = policy.decide(np.eye(3) * 0.1, baseline=0)
    before, asked = (policy.debt, pack(policy.state()["ledger"])), experiment.round(id_).request
    told: dict[str, Any] = {"baseline": asked.baseline, "action": made.action, "source": "learner"}
    policy.void(made.round, np.array(asked.features), **told, played=asked.baseline)
    assert (policy.debt, pack(policy.state()["ledger"])) == before
    policy.void(again, np.eye(3) * 0.1, baseline=0, action=0, source=again.source, played=1)
    assert policy.ledger.played.tolist() == [0.0, 0.1, 0.0]


def move_behind_its_reward(rows: list[Row]) -> int:
    rewarded = {row["payload"]["decision_id"] for row in rows if row["kind"] == "reward"}
    row = first(rows, "voided", lambda p: p["decision_id"] in rewarded)
    reward = first(rows, "reward", lambda p: p["decision_id"] == row["payload"]["decision_id"])
    at = rows.index(reward)
    rows.remove(row)
    rows.insert(at, {**row, "time": reward["time"]})
    return int(row["number"])


def name_another_action(rows: list[Row]) -> int:
    row = first(rows, "voided")
    offered = first(rows, "round", lambda p: p["decision_id"] == row["payload"]["decision_id"])["payload"]
    others = set(range(5)) - {offered["action"], row["payload"]["action"]}
    row["payload"]["action"] = max(others)
    return int(row["number"])


def leave_out(rows: list[Row]) -> int:
    row = first(rows, "voided")
    rows.remove(row)
    return int(row["number"])


def say_twice(rows: list[Row]) -> int:
    row = first(rows, "voided")
    rows.insert(rows.index(row) + 1, {**row, "key": None})
    return int(row["number"]) + 1


def no_action(rows: list[Row]) -> int:
    row = first(rows, "voided")
    row["payload"]["action"] = 99
    return int(row["number"])


@pytest.mark.parametrize(
    ("tamper", "what"),
    [
        (move_behind_its_reward, "voided"),
        (say_twice, "voided"),
        (no_action, "voided"),
        (name_another_action, "question"),
        (leave_out, "question"),
    ],
)
def test_a_forged_void_is_found(tamper: Callable[[list[Row]], int], what: str, tmp_path: Path) -> None:
    folder = tmp_path / "honest"
    folder.mkdir()
    with open_journal(folder / "shop.db") as journal:
        delayed(safe(alpha=0.3), 200, journal=journal)
    touched, report = forged(folder, "shop", tamper, tmp_path, rehash=True)
    assert min(finding.event for finding in report.findings) >= touched
    assert what in {finding.what for finding in report.findings}


@pytest.mark.parametrize("kind", ["one metric", "units"])
def test_a_guards_void_changes_neither_coin_nor_bank(kind: str) -> None:
    journal, experiment, _ = guard_worlds.played(kind, 200)
    experiment = cast("Any", experiment)
    asked: dict[str, Any] = {"baseline": "old", "proposal": "new"}
    answers = [experiment.decide(**asked, decision_id=f"late-{n}") for n in range(200)]
    made = next(answer for answer in answers if answer.source == "learner")
    before, status = pack(experiment.policy_state()), experiment.status()
    assert experiment.void(made.decision_id, reason="too late")
    assert not experiment.void(made.decision_id, "old")  # the same word
    assert pack(experiment.policy_state()) == before
    found = experiment.find(made.decision_id)
    assert (found.action, found.source, found.probability) == ("old", "learner", made.probability)
    assert experiment.status().learner_rounds == status.learner_rounds
    assert experiment.status().voided == 1
    # Assigned to the learner, so its reward counts there, whatever came of it.
    name = next(iter(status.guard.metrics))
    assert experiment.reward(made.decision_id, {name: 1.0}).is_accepted
    with pytest.raises(DecisionConflictError):
        experiment.void(made.decision_id, {"other": 1})
    other = next(answer for answer in answers if answer.source == "learner" and answer != made)
    experiment.reward(other.decision_id, {name: 1.0})
    with pytest.raises(DecisionSettledError):
        experiment.void(other.decision_id)
    rows = {row["decision_id"]: row for row in pair_rounds(journal, "shop")}
    row = rows[made.decision_id]
    assert (row["played"], row["action"], row["probability"], row["is_voided"]) == ("old", "new", made.share, True)
    report = audit(journal, "shop")
    assert report.is_clean, list(report.findings)[:3]
    assert report.tally.voided == 1
    assert pack(Experiment.open(journal, "shop").policy_state()) == pack(experiment.policy_state())


def test_a_guards_void_after_its_reward_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "honest"
    folder.mkdir()
    with open_journal(folder / "shop.db") as journal:
        _, experiment, _ = guard_worlds.played("one metric", 100, journal=journal)
        for number in range(60):
            answer = experiment.decide(baseline="old", proposal="new", decision_id=f"late-{number}")
            experiment.void(answer.decision_id, "new" if answer.source == "baseline" else "old")
            experiment.reward(answer.decision_id, 0.5)
    _, report = forged(folder, "shop", move_behind_guard_reward, tmp_path, rehash=True)
    assert [finding.what for finding in report.findings] == ["voided"]


def move_behind_guard_reward(rows: list[Row]) -> int:
    row = first(rows, "voided")
    at = rows.index(first(rows, "reward", lambda p: p["decision_id"] == row["payload"]["decision_id"]))
    rows.remove(row)
    rows.insert(at, row)
    return at + 1


def test_the_command_line_says_what_was_played(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with open_journal(path) as journal:
        shop = Experiment.create(journal, "shop", surefoot.UCB(arms=3), mode="guarded")
        for name in ("a", "b"):
            shop.decide(baseline=2, actions=["red", "blue", "green"], decision_id=name)
    runner = CliRunner()
    said = runner.invoke(app, ["experiment", "void", str(path), "shop", "a", "--action", "blue", "--by", "ann"])
    assert (said.exit_code, said.output) == (0, "Decision 'a' is moved to what was played.\n")
    assert "stands as" in runner.invoke(app, ["experiment", "void", str(path), "shop", "a", "--action", "1"]).output
    assert runner.invoke(app, ["experiment", "void", str(path), "shop", "b"]).exit_code == 0
    with open_journal(path) as journal:
        shop = Experiment.open(journal, "shop")
        assert [shop.find(name).action for name in ("a", "b")] == [1, 2]
        assert audit(journal, "shop").is_clean


def test_the_free_share_is_given_back_with_a_voided_round() -> None:
    rows = np.array([[0.5, 0.0], [0.0, 0.5], [0.4, 0.4]])
    told: dict[str, Any] = {"dim": 2, "alpha": 0.4, "delta": 0.05, "theta_bound": 1.0, "feature_bound": 1.0}
    bounds: dict[str, Any] = {"radius": "likelihood", "reward_bounds": (0.0, 1.0), "reward_range": (0.0, 1.0)}
    policy, as_played = surefoot.SafeLUCB(**told, **bounds), surefoot.SafeLUCB(**told, **bounds)
    voided = 0
    for number in range(90):
        today = number % 2  # no one baseline: only rows that are told apart show what is free
        made = policy.decide(rows, baseline=today)
        if made.source == "learner" and made.action != today and voided % 3 != 2:
            policy.void(made, rows, baseline=today, action=made.action, source="learner", played=today)
            as_played.recall(rows, baseline=today, action=today, source="baseline")
            voided += 1
        else:
            voided += made.source == "learner"
            assert as_played.decide(rows, baseline=today).source == made.source, number
    assert voided > 20
