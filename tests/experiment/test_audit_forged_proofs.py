"""Refused rounds that were made the learner's, each with a forged proof and every hash computed anew: all are found."""

import copy
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.audit.report import promise
from surefoot.experiment import Experiment
from surefoot.journal import open_journal
from tests.experiment.forging import LEAST, MOST, PROVED, RIDGE, Scene, honest, linear, refused
from tests.experiment.tampering import Row, load
from tests.experiment.worlds import Clock

RADII = ("paper", "logdet", "amm", "dual", "residual")
Way = Callable[[Scene], None]


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Honest experiments in files, one for each radius; rewards are learned at once."""
    folder = tmp_path_factory.mktemp("forged")
    for radius in RADII:
        honest(folder / f"{radius}.db", radius=radius)
    return folder


@pytest.fixture
def copied(journals: Path, tmp_path: Path) -> Callable[[str], Path]:
    def copy_of(name: str) -> Path:
        shutil.copy(journals / f"{name}.db", tmp_path / f"{name}.db")
        return tmp_path / f"{name}.db"

    return copy_of


def found(scene: Scene, path: Path) -> set[str]:
    """The checks that failed in the last event."""
    report, last = scene.audited(path), len(scene.rows)
    assert all(finding.event == last for finding in report.findings)
    return {finding.what for finding in report.findings}


@pytest.mark.parametrize("radius", RADII)
def test_the_journal_is_honest_up_to_there(radius: str, copied: Callable[[str], Path]) -> None:
    path = copied(radius)
    assert found(refused(path), path) == set()


# ---------------------------------------------------------------------------------- ways


def nothing_but_the_verdict(scene: Scene) -> None:
    scene.play()


def pieces_that_cancel_hide_that_the_question_is_missed(scene: Scene) -> None:
    b, known = scene.baseline, scene.known
    scene.claim([linear(LEAST, b, known, 1e12), linear(MOST, -b, -known, 1e12)])


def pieces_beyond_all_floats_cancel(scene: Scene) -> None:
    b, known = scene.baseline, scene.known
    scene.claim([linear(LEAST, b, known, 1e250), linear(MOST, -b, -known, 1e250)], value=0.0)


def pieces_that_cancel_hide_a_bound_that_is_raised(scene: Scene) -> None:
    b, known, q = scene.baseline, scene.known, scene.question
    raised = scene.piece(q, bound=0.01)
    scene.claim([raised, linear(LEAST, b, known, 1e13), linear(MOST, -b, -known, 1e13)])


def a_piece_is_tilted_away_from_its_fact(scene: Scene) -> None:
    b, known = scene.baseline, scene.known
    scene.claim([linear(LEAST, b, known, 1e12, beside=scene.question), linear(MOST, -b, -known, 1e12)])


def the_question_is_a_piece_of_a_fact_of_another_direction(scene: Scene) -> None:
    scene.claim([linear(LEAST, scene.baseline, scene.known, 0.0, beside=scene.question)])


def a_fact_is_used_backwards(scene: Scene) -> None:
    b, known, q = scene.baseline, scene.known, scene.question
    backwards = linear(LEAST, b, known, -1.0)
    backwards["bound"] = 1.0
    scene.claim([scene.piece(q + b), backwards], value=0.5)


def a_level_is_raised(scene: Scene) -> None:
    b, q = scene.baseline, scene.question
    missing = 0.01 - scene.least(q - b)
    scene.claim([scene.piece(q - b), linear(LEAST, b, missing, 1.0)])


def a_level_is_infinite(scene: Scene) -> None:
    b, q = scene.baseline, scene.question
    piece = linear(LEAST, b, "inf", 1.0)
    piece["bound"] = 0.01 - scene.least(q - b)
    scene.claim([scene.piece(q - b), piece])


def a_fact_was_never_declared(scene: Scene) -> None:
    scene.claim([linear("declared range of an action", scene.offered[0], 0.0, 0.0, beside=scene.question)])


def a_fact_has_a_name_that_nobody_knows(scene: Scene) -> None:
    scene.claim([linear("what everybody knows", scene.question, 0.01, 1.0)])


def an_earlier_proof_is_invented(scene: Scene) -> None:
    scene.claim([linear(PROVED, scene.question, 0.01, 1.0)])


def the_proof_of_another_round_is_shown(scene: Scene) -> None:
    another = next(r["payload"] for r in scene.rows if r["kind"] == "round" and r["payload"]["source"] == "learner")
    scene.certificate["proof"] = copy.deepcopy(another["certificate"]["proof"])
    scene.certificate["guaranteed"] = another["certificate"]["guaranteed"]
    scene.play()


def a_value_is_above_the_sum_of_its_bounds(scene: Scene) -> None:
    scene.claim([scene.piece(scene.question)], value=0.01)


def a_bound_is_above_what_the_set_gives(scene: Scene) -> None:
    scene.claim([scene.piece(scene.question, bound=0.01)])


def a_hundred_bounds_are_each_a_little_too_high(scene: Scene) -> None:
    scene.claim([scene.piece(scene.question / 100, bound=0.0001)] * 100)


def a_radius_is_smaller(scene: Scene) -> None:
    fact = scene.fact
    fact["radius"] = 0.5 * fact["radius"]
    scene.claim([scene.piece(scene.question, fact)], value=max(0.01, scene.least(scene.question, fact)))


def a_radius_is_negative(scene: Scene) -> None:
    fact = scene.fact
    fact["radius"] = -fact["radius"]
    scene.claim([scene.piece(scene.question, fact)])


def a_radius_is_beyond_use(scene: Scene) -> None:
    """So large that the set says nothing; its bound need not fit."""
    scene.claim([scene.piece(scene.question, {**scene.fact, "radius": 1e300}, bound=0.01)])


def a_set_is_of_more_rewards_than_were_learned(scene: Scene) -> None:
    fact = {**scene.fact, "observations": scene.fact["observations"] + 1000}
    scene.claim([scene.piece(scene.question, fact, bound=0.01)])


def a_set_is_of_no_rewards(scene: Scene) -> None:
    scene.claim([scene.piece(scene.question, {**scene.fact, "observations": 0}, bound=0.01)])


def a_ball_is_smaller_than_declared(scene: Scene) -> None:
    q = scene.question
    scene.claim([{"fact": {"kind": "ball", "radius": 1e-9}, "vector": q.tolist(), "bound": -1e-9}], value=0.0)


def nothing_proves_everything(scene: Scene) -> None:
    scene.claim([], value=0.0)


def half_of_the_question_is_left_out(scene: Scene) -> None:
    scene.claim([scene.piece(1e-9 * scene.question)], value=0.0)


def a_question_has_fewer_entries(scene: Scene) -> None:
    scene.claim([{"fact": {"kind": "ball", "radius": 1.0}, "vector": [0.0], "bound": 0.0}])
    scene.certificate["proof"]["question"] = [0.0]


def nothing_is_required(scene: Scene) -> None:
    scene.certificate["required"] = "-inf"
    scene.play()


def less_is_required(scene: Scene) -> None:
    scene.certificate["required"] = scene.certificate["guaranteed"] - 0.01
    scene.play()


def more_is_guaranteed_than_proved(scene: Scene) -> None:
    scene.certificate["guaranteed"] = scene.certificate["required"] + 0.01
    scene.play()


def the_baseline_is_left_out(scene: Scene) -> None:
    """Then the proposal would be measured by itself."""
    shift = 0.9 * (scene.baseline - scene.offered[scene.certificate["proposal"]])
    question = scene.question + shift
    scene.payload["request"]["baseline"] = None
    scene.certificate["proof"]["question"] = question.tolist()
    scene.claim([scene.piece(question)])


def the_baseline_earns_more_than_it_does(scene: Scene) -> None:
    """From a reward of at least 2 and at most 1 anything follows."""
    b, q, known = scene.baseline, scene.question, scene.known
    scene.payload["request"]["baseline_reward"] = [known, 0.99 * known]
    weight = (0.01 - scene.least(q)) / (0.01 * known)
    scene.claim([scene.piece(q), linear(LEAST, b, known, weight), linear(MOST, -b, -0.99 * known, weight)])


def not_a_number(field: str, number: str) -> Way:
    def tamper(scene: Scene) -> None:
        piece = scene.piece(scene.question)
        scene.claim([piece], value=0.01)
        places: dict[str, Row] = {
            "value": scene.certificate["proof"],
            "bound": piece,
            "guaranteed": scene.certificate,
            "required": scene.certificate,
        }
        places[field][field] = number

    tamper.__name__ = f"{field}_is_{number}"
    return tamper


# What must be found in that very round; every one must be found not to be admissible, or rest on something impossible.
WAYS: dict[Way, str] = {
    nothing_but_the_verdict: "admissible",
    pieces_that_cancel_hide_that_the_question_is_missed: "admissible",
    pieces_beyond_all_floats_cancel: "admissible",
    pieces_that_cancel_hide_a_bound_that_is_raised: "admissible",
    a_piece_is_tilted_away_from_its_fact: "admissible",
    the_question_is_a_piece_of_a_fact_of_another_direction: "admissible",
    a_fact_is_used_backwards: "admissible",
    a_level_is_raised: "fact",
    a_level_is_infinite: "fact",
    a_fact_was_never_declared: "fact",
    a_fact_has_a_name_that_nobody_knows: "fact",
    an_earlier_proof_is_invented: "fact",
    the_proof_of_another_round_is_shown: "question",
    a_value_is_above_the_sum_of_its_bounds: "value",
    a_bound_is_above_what_the_set_gives: "bound",
    a_hundred_bounds_are_each_a_little_too_high: "value",
    a_radius_is_smaller: "radius",
    a_radius_is_negative: "radius",
    a_radius_is_beyond_use: "value",
    a_set_is_of_more_rewards_than_were_learned: "fact",
    a_set_is_of_no_rewards: "fact",
    a_ball_is_smaller_than_declared: "radius",
    nothing_proves_everything: "pieces",
    half_of_the_question_is_left_out: "pieces",
    a_question_has_fewer_entries: "pieces",
    nothing_is_required: "required",
    less_is_required: "required",
    more_is_guaranteed_than_proved: "certificate",
    not_a_number("value", "nan"): "value",
    not_a_number("value", "inf"): "value",
    not_a_number("bound", "nan"): "value",
    not_a_number("bound", "inf"): "value",
    not_a_number("bound", "-inf"): "value",
    not_a_number("guaranteed", "nan"): "certificate",
    not_a_number("guaranteed", "inf"): "certificate",
    not_a_number("guaranteed", "-inf"): "admissible",
    not_a_number("required", "nan"): "required",
}
IMPOSSIBLE: dict[Way, str] = {
    the_baseline_is_left_out: "baseline",
    the_baseline_earns_more_than_it_does: "baseline_reward",
}


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_learner_that_was_not_allowed_is_found(way: Way, radius: str, copied: Callable[[str], Path]) -> None:
    path = copied(radius)
    scene = refused(path)
    way(scene)
    checks = found(scene, path)
    assert "admissible" in checks
    assert WAYS[way] in checks


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("way", IMPOSSIBLE, ids=lambda way: way.__name__)
def test_what_no_policy_can_have_been_told_is_found(way: Way, radius: str, copied: Callable[[str], Path]) -> None:
    path = copied(radius)
    scene = refused(path)
    way(scene)
    assert IMPOSSIBLE[way] in found(scene, path)


# ---------------------------------------------------------------------------------- sets that are written out


def mirrored(whitener: Any) -> Any:
    return whitener.T


def narrower(whitener: Any) -> Any:
    return 0.9 * whitener


def marked_above_its_diagonal(whitener: Any) -> Any:
    return whitener + np.triu(np.full(whitener.shape, 1e-300), 1)


def emptied(whitener: Any) -> Any:
    return 0.0 * whitener


def cut(whitener: Any) -> Any:
    return whitener[:1]


@pytest.mark.parametrize("change", [mirrored, narrower, marked_above_its_diagonal, emptied, cut])
def test_a_whitener_that_is_not_of_the_data_is_found(change: Any, copied: Callable[[str], Path]) -> None:
    path = copied("dual")
    scene = refused(path)
    fact = scene.certificate["proof"]["pieces"][0]["fact"]
    fact["whitener"] = change(np.array(fact["whitener"])).tolist()
    assert found(scene, path) == {"whitener"}


@pytest.mark.parametrize("change", [narrower, marked_above_its_diagonal])
def test_a_learner_cannot_be_let_in_by_a_whitener(change: Any, copied: Callable[[str], Path]) -> None:
    path = copied("dual")
    scene = refused(path)
    fact = scene.fact
    fact["whitener"] = change(np.array(fact["whitener"])).tolist()
    scene.claim([scene.piece(scene.question, fact)], value=max(0.01, scene.least(scene.question, fact)))
    assert {"whitener", "admissible"} <= found(scene, path)


def test_a_learner_cannot_be_let_in_by_a_center(copied: Callable[[str], Path]) -> None:
    path = copied("dual")
    scene = refused(path)
    fact, q = scene.fact, scene.question
    fact["center"] = (np.array(fact["center"]) + (0.01 - scene.least(q)) * q / (q @ q)).tolist()
    scene.claim([scene.piece(q, fact)])
    assert {"center", "admissible"} <= found(scene, path)


# ---------------------------------------------------------------------------------- ranges of rows


@pytest.mark.parametrize("factor", [0.5, 2.0, 1.0 + 1e-15, -1.0])
def test_the_range_holds_for_rows_that_were_offered_and_no_others(factor: float, tmp_path: Path) -> None:
    path = tmp_path / "range.db"
    honest(path, reward_range=(0.0, 1.0))
    scene = refused(path)
    row, q = scene.offered[1], scene.question
    level = -1.0 if factor < 0 else 0.0  # at most 1 is said of minus a row
    scene.claim([scene.piece(q - factor * row), linear("declared range of an action", factor * row, level + 0.1, 1.0)])
    assert "fact" in found(scene, path)
    scene.claim([linear("declared range of an action", q, 0.0, 1.0)])
    assert "fact" in found(scene, path)


# ---------------------------------------------------------------------------------- tolerances that may be bought


def in_shadow(path: Path, rows: Any, rounds: int, known: float | None, **told: Any) -> Scene:
    """An experiment that only watches, and one more round that the gate decides."""
    with open_journal(path) as journal:
        experiment = Experiment.create(journal, "shop", surefoot.SafeLUCB(**told), mode="shadow", clock=Clock())
        for round_ in range(rounds):
            answer = experiment.decide(rows[round_ % len(rows)], baseline=0, baseline_reward=known)
            experiment.reward(answer.decision_id, 0.0)
        experiment.set_mode("guarded", reason="a test")
        experiment.decide(rows[rounds % len(rows)], baseline=0, baseline_reward=known)
    return Scene(load(path))


def test_rounding_in_a_proof_that_was_carried_on_cannot_be_multiplied(tmp_path: Path) -> None:
    """1,500 gains of 0.0375 add up to more than 56.25 in floats, by 1e-12; a proof may use the sum 2^52 times over."""
    told: dict[str, Any] = {
        "dim": 2,
        "alpha": 0.125,
        "delta": 0.05,
        "noise": 0.1,
        "theta_bound": 0.5,
        "feature_bound": 1000.0,
    }
    rows, naive, weight = np.array([[1.0, 0.0], [0.0, 1000.0]]), 0.0, 2.0**52
    scene = in_shadow(tmp_path / "carried.db", [rows], 1500, 0.3, ridge=1.0, **told)
    assert scene.payload["source"] == "baseline"
    for _ in range(1500):
        naive += 0.125 * 0.3
    kept, q = np.array([1500.0, 0.0]), scene.question
    pieces = [
        {"fact": {"kind": "ball", "radius": 0.5}, "vector": q.tolist(), "bound": -0.5 * float(np.linalg.norm(q))},
        linear(PROVED, 0.125 * kept, naive, weight),
        linear("largest reward of the rounds that kept the baseline", -kept, -450.0, 0.125 * weight),
    ]
    pieces[1]["bound"] -= math.fsum(piece["bound"] for piece in pieces) - 64.0
    scene.claim(pieces, value=math.fsum(piece["bound"] for piece in pieces))
    assert scene.certificate["guaranteed"] > 0
    assert "admissible" in found(scene, tmp_path / "carried.db")


@pytest.mark.parametrize("is_learned", [True, False], ids=["learned", "open"])
def test_one_long_row_buys_no_tolerance_for_the_rest(is_learned: bool, tmp_path: Path) -> None:
    """A row of length 3e10 was played once, and brought nothing: a billionth of what it might have is 30."""
    long, short = np.array([[0.0, 0.0, 3e10]] * 2), np.array([[0.1, 0.5, 0.0], [0.5, 0.1, 0.0]])
    told: dict[str, Any] = {
        "dim": 3,
        "alpha": 0.1,
        "delta": 0.05,
        "noise": 0.1,
        "theta_bound": 1.0,
        "feature_bound": 3e10,
    }
    scene = in_shadow(tmp_path / "long.db", [long, short], 1, None, ridge=1e12, gate="joint", **told)
    assert scene.payload["source"] == "baseline"
    if not is_learned:
        reward = next(row for row in scene.rows if row["kind"] == "reward")
        scene.rows.remove(reward)
        scene.rows[-1]["number"] -= 1
        set_, q = scene.certificate["proof"]["pieces"][0], scene.question
        set_["fact"] = {"kind": "ball", "radius": 1.0}
        set_["bound"] = -float(np.linalg.norm(q[:2]))
        scene.certificate["optimism"] = float(np.linalg.norm(scene.offered[scene.certificate["proposal"]]))
    scene.claim(scene.certificate["proof"]["pieces"], value=0.01)
    assert "admissible" in found(scene, tmp_path / "long.db")


def test_a_loose_bound_on_theta_buys_no_tolerance(tmp_path: Path) -> None:
    """A billionth of 1e12 is 1,000, but what was played is known to be worth far less."""
    rng = np.random.default_rng(1)
    rows = [rng.uniform(0, 0.7, size=(3, 2)) for _ in range(40)]
    told: dict[str, Any] = {
        "dim": 2,
        "alpha": 0.1,
        "delta": 0.05,
        "noise": 0.1,
        "theta_bound": 1e12,
        "feature_bound": 1.0,
    }
    scene = in_shadow(tmp_path / "loose.db", rows, 40, None, ridge=1.1e-9, gate="joint", **told)
    assert scene.payload["source"] == "baseline"
    gram = 1.1e-9 * np.eye(2) + sum(np.outer(row[0], row[0]) for row in rows)
    growth = float(np.linalg.slogdet(gram)[1]) - 2 * math.log(1.1e-9)
    radius = math.sqrt(0.01 * (growth + 2 * math.log(1 / 0.045)) + 1.1e-9 * 1e24)
    fact, q = {"kind": "ellipsoid", "observations": 40, "radius": radius}, scene.question
    bound = -radius * float(np.sqrt(q @ np.linalg.solve(gram, q)))
    scene.claim([{"fact": fact, "vector": q.tolist(), "bound": bound}], value=0.01)
    assert "admissible" in found(scene, tmp_path / "loose.db")


# ---------------------------------------------------------------------------------- alarms


def test_a_set_that_is_empty_lets_nobody_in(tmp_path: Path) -> None:
    """Rewards of 0.9 contradict a theta of length 0.1. Of nothing anything is true, but the alarm must be on."""
    path, rows = tmp_path / "empty.db", np.array([[0.1, 0.3, 0.2], [0.3, 0.2, 0.1]])
    told: dict[str, Any] = {
        "dim": 3,
        "alpha": 0.1,
        "delta": 0.05,
        "noise": 0.05,
        "theta_bound": 0.1,
        "feature_bound": 1.0,
    }
    policy = surefoot.SafeLUCB(**told, ridge=RIDGE, radius="dual", gate="joint")
    with open_journal(path) as journal:
        experiment = Experiment.create(journal, "shop", policy, mode="guarded", clock=Clock())
        for _ in range(2):
            experiment.reward(experiment.decide(rows, baseline=0).decision_id, 0.9)
    scene = Scene(load(path)[:-1])
    assert scene.certificate["guaranteed"] == "-inf"
    gram, moment = scene.learned()
    shifted = gram + (10.0 - 1.0) * RIDGE * np.eye(3)  # at ten times the ridge no theta is left
    fact = {"kind": "ellipsoid", "observations": 1, "radius": 0.0}
    scene.claim([scene.piece(scene.question, fact, bound=float(np.linalg.solve(shifted, moment) @ scene.question))])
    assert scene.certificate["guaranteed"] > 0
    assert "alarm" in found(scene, path)


def test_an_alarm_over_plain_arms_is_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "arms.db"
    policy = surefoot.ConservativeUCB(arms=3, alpha=0.5, delta=0.1, noise=0.05, baseline_reward=0.1)
    with open_journal(path) as journal:
        experiment = Experiment.create(journal, "shop", policy, mode="guarded", clock=Clock(), reward_bounds=(0.0, 1.0))
        for _ in range(12):
            answer = experiment.decide(baseline=0)
            experiment.reward(answer.decision_id, 0.5)
        assert answer.source == "learner"
        experiment.reward(experiment.decide(baseline=0).decision_id, 5.0)
        experiment.decide(baseline=0)
    scene = Scene(load(path))
    assert scene.certificate["guaranteed"] == "-inf"
    scene.certificate["guaranteed"] = scene.certificate["required"] + scene.certificate["proof"]["value"]
    scene.play()
    assert "certificate" in found(scene, path)


@pytest.mark.parametrize("response", ["stay", "relearn", "renew"])
def test_an_answer_to_an_alarm_that_nobody_raised_is_found(response: str, copied: Callable[[str], Path]) -> None:
    path = copied("amm")
    scene = refused(path)
    answer = {"response": response, "reason": "to begin with a clean slate"}
    scene.rows.append({**scene.rows[-1], "kind": "acknowledged", "key": None, "payload": answer})
    assert "alarm" in found(scene, path)


def test_a_decision_that_has_its_reward_is_not_abandoned(copied: Callable[[str], Path]) -> None:
    path = copied("amm")
    scene = refused(path)
    key = scene.rows[-2]["payload"]["decision_id"]
    scene.rows.append({**scene.rows[-1], "kind": "abandoned", "key": None, "payload": {"decision_id": key}})
    assert "abandoned" in found(scene, path)


# ---------------------------------------------------------------------------------- declarations


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("noise", -0.1),
        ("noise", 0.0),
        ("theta_bound", -1.0),
        ("theta_bound", "inf"),
        ("ridge", -0.3),
        ("ridge", 1e-30),
        ("delta", 1.5),
        ("alpha", -0.5),
        ("alpha", 2.0),
        ("misspecification", -0.1),
        ("reward_floor", -1.0),
        ("realised_share", -9.0),
        ("restart_share", -9.0),
        ("reward_range", [1.0, 0.0]),
        ("radius", "none"),
        ("constraint", "none"),
        ("constraint", {"name": "reserve", "granted": -1.0}),
        ("settle_after", 0),
        ("dim", True),
    ],
    ids=lambda value: str(value),
)
def test_settings_that_no_policy_takes_are_found(name: str, value: Any, copied: Callable[[str], Path]) -> None:
    path = copied("amm")
    scene = refused(path)
    scene.rows[0]["payload"]["settings"][name] = value
    report = scene.audited(path)
    assert report.findings.counts["settings"] > 0
    assert promise(report) == "Nothing that could be kept: no policy takes the settings that were written down."


@pytest.mark.parametrize("told", [None, -0.1, [0.1, 0.2]], ids=str)
def test_clucb_is_told_a_reward_that_can_be(told: Any, tmp_path: Path) -> None:
    path, rows = tmp_path / "clucb.db", np.array([[0.1, 0.3, 0.2], [0.3, 0.2, 0.1]])
    settings: dict[str, Any] = {
        "dim": 3,
        "alpha": 0.1,
        "delta": 0.05,
        "noise": 0.1,
        "theta_bound": 1.0,
        "feature_bound": 1.0,
    }
    with open_journal(path) as journal:
        policy = surefoot.CLUCB(**settings, ridge=RIDGE)
        experiment = Experiment.create(journal, "shop", policy, mode="guarded", clock=Clock())
        experiment.decide(rows, baseline=0, baseline_reward=0.1)
    scene = Scene(load(path))
    assert found(scene, path) == set()
    scene.payload["request"]["baseline_reward"] = told
    assert "baseline_reward" in found(scene, path)
