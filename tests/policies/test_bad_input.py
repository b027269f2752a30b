"""Bad input gets a clear error, and nothing changes."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.errors import AssumptionError, ConfigError, DecisionError, InputError, StateError

SETTINGS: dict[str, Any] = {
    "dim": 2, "delta": 0.01, "noise": 0.1, "ridge": 0.3, "theta_bound": 1.0, "feature_bound": 1.0
}  # fmt: skip
ROWS = np.array([[0.6, 0.0], [0.0, 0.8], [0.5, 0.5]])
MAKERS: dict[str, Callable[..., Any]] = {
    "LUCB": lambda **kw: surefoot.LUCB(**{**SETTINGS, **kw}),
    "CLUCB": lambda **kw: surefoot.CLUCB(**{**SETTINGS, "alpha": 0.1, **kw}),
    "CLUCB2-exact": lambda **kw: surefoot.CLUCB2(**{**SETTINGS, "alpha": 0.1, **kw}),
    "CLUCB2-latest": lambda **kw: surefoot.CLUCB2(**{**SETTINGS, "alpha": 0.1, "nesting": "latest", **kw}),
    "SafeLUCB": lambda **kw: surefoot.SafeLUCB(**{**SETTINGS, "alpha": 0.1, **kw}),
    "SafeLUCB-paper": lambda **kw: surefoot.SafeLUCB(
        **{**SETTINGS, "alpha": 0.1, "radius": "paper", "reward_range": (0.0, 1.0), **kw}
    ),
}
GUARDED = [name for name in MAKERS if name != "LUCB"]


def ask(name: str, **kwargs: Any) -> dict[str, Any]:
    return {"baseline": 1, **({"baseline_reward": 0.5} if name == "CLUCB" else {}), **kwargs}


def same_state(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key]) for key in a)


def refuses(name: str, error: type[Exception], message: str, features: Any, **kwargs: Any) -> None:
    policy = MAKERS[name]()
    for _ in range(3):  # some history, some of it pending
        policy.observe(policy.decide(ROWS, **ask(name)), 0.4)
    policy.decide(ROWS, **ask(name))
    before = policy.state()
    with pytest.raises(error, match=message):
        policy.decide(features, **ask(name, **kwargs))
    assert same_state(before, policy.state())
    policy.decide(ROWS, **ask(name))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    ("error", "message", "features"),
    [
        (
            InputError,
            r"`features` must be finite, but row 1 is .*nan.* Drop that action",
            [[0.1, 0.2], [math.nan, 0.0]],
        ),
        (InputError, r"`features` must be finite, but row 0 is .*inf", [[math.inf, 0.2], [0.0, 0.0]]),
        (InputError, r"dim=2 columns, but got shape \(2, 3\). Give one row per action", np.ones((2, 3))),
        (InputError, r"at least one row and dim=2 columns, but got shape \(0, 2\)", np.zeros((0, 2))),
        (InputError, r"must have 2 dimension\(s\), but got shape \(2,\)", np.zeros(2)),
        (InputError, r"must be an array of numbers", [["a", "b"]]),
        (
            AssumptionError,
            r"row 2 has length 1.5, which is 0.5 more than feature_bound=1. Rescale the features or declare",
            [[0.1, 0.2], [0.0, 1.0], [1.5, 0.0]],
        ),
    ],
)
def test_bad_features_are_refused(name: str, error: type[Exception], message: str, features: Any) -> None:
    refuses(name, error, message, features, baseline=0)


@pytest.mark.parametrize("name", GUARDED)
@pytest.mark.parametrize("baseline", [3, -1, 10**9])
def test_a_baseline_out_of_range_is_refused(name: str, baseline: int) -> None:
    refuses(
        name,
        InputError,
        rf"`0 <= baseline < 3` must hold for 3 actions, but got baseline={baseline}",
        ROWS,
        baseline=baseline,
    )


@pytest.mark.parametrize("name", GUARDED)
@pytest.mark.parametrize("baseline", [None, 1.0, "0", True])
def test_a_baseline_that_is_no_row_index_is_refused(name: str, baseline: Any) -> None:
    refuses(
        name,
        InputError,
        r"`baseline` must be a row index, but got .* the action you would play today",
        ROWS,
        baseline=baseline,
    )


@pytest.mark.parametrize(
    ("error", "message", "reward"),
    [
        (InputError, r"`baseline_reward` must be given to CLUCB: the mean reward.* use CLUCB2", None),
        (AssumptionError, r"`baseline_reward >= 0` must hold, but got -0.1.* add a constant to every reward", -0.1),
        (InputError, r"`baseline_reward` must be finite, but got nan", math.nan),
        (InputError, r"`baseline_reward` must be a number, but got 'x'", "x"),
    ],
)
def test_clucb_needs_a_baseline_reward_that_makes_sense(error: type[Exception], message: str, reward: Any) -> None:
    refuses("CLUCB", error, message, ROWS, baseline_reward=reward)


@pytest.mark.parametrize("name", ["CLUCB2-exact", "CLUCB2-latest"])
def test_clucb2_refuses_a_baseline_reward(name: str) -> None:
    refuses(
        name,
        InputError,
        r"must not be given to CLUCB2, but got 0.5.* where it is known use CLUCB",
        ROWS,
        baseline_reward=0.5,
    )


def test_lucb_ignores_whatever_baseline_it_is_given() -> None:
    policy = MAKERS["LUCB"]()
    assert policy.decide(ROWS, baseline=99, baseline_reward=-1.0).source == "learner"


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("delta", 0.0, r"`0 < delta < 1` must hold, but got delta=0.0"),
        ("delta", 1.0, r"`0 < delta < 1` must hold"),
        ("delta", math.nan, r"`0 < delta < 1` must hold"),
        ("noise", 0.0, r"`noise > 0` must hold and be finite, but got noise=0.0"),
        ("noise", -1.0, r"`noise > 0` must hold"),
        ("ridge", 0.0, r"`ridge > 0` must hold"),
        ("ridge", math.inf, r"`ridge > 0` must hold and be finite"),
        ("theta_bound", -2.0, r"`theta_bound > 0` must hold"),
        ("feature_bound", 0.0, r"`feature_bound > 0` must hold"),
        ("feature_bound", "wide", r"`feature_bound` must be a number"),
        ("feature_bound", 1e160, r"`1e-100 <= feature_bound <= 1e100` must hold, but got 1e\+160"),
        ("feature_bound", 1e-170, r"`1e-100 <= feature_bound <= 1e100` must hold"),
        ("dim", 0, r"`dim` must be a whole number >= 1, but got dim=0"),
        ("dim", 2.5, r"`dim` must be a whole number"),
        ("radius", "narrow", r"`radius` must be one of paper, logdet, amm, dual, residual, but got 'narrow'"),
    ],
)
def test_impossible_settings_are_refused(name: str, setting: str, value: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MAKERS[name](**{setting: value})


@pytest.mark.parametrize("name", MAKERS)
def test_one_dimension_is_refused_with_the_papers_radius_alone(name: str) -> None:
    with pytest.raises(ConfigError, match=r"`dim >= 2` must hold with the paper's radius, but got dim=1.* 'amm'|pad"):
        MAKERS[name](dim=1, radius="paper")
    for radius in ("logdet", "amm", "dual", "residual"):
        if (name, radius) != ("CLUCB2-exact", "dual"):  # whose nest keeps one ellipsoid a round
            policy = MAKERS[name](dim=1, radius=radius)
            policy.observe(policy.decide(np.array([[0.6], [0.5]]), **ask(name)), 0.4)
            surefoot.check(policy.decide(np.array([[0.6], [0.5]]), **ask(name)).certificate.proof)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"gate": "front"}, r"`gate` must be one of joint, ledger, facts, but got 'front'"),
        ({"optimism": "high"}, r"`optimism` must be one of set, facts, but got 'high'"),
        ({"realised_share": 1.0}, r"`0 <= realised_share < 1` must hold, but got 1.0"),
        ({"realised_share": -0.1}, r"`0 <= realised_share < 1` must hold"),
        ({"reward_range": (0.5, 0.5)}, r"`low < high` must hold in reward_range, but got \(0.5, 0.5\)"),
        ({"reward_range": (0.0, 0.5, 1.0)}, r"`reward_range` must be \(low, high\)"),
        ({"reward_range": (-2.0, -1.0)}, r"must lie below the largest mean reward -1.0"),
        ({"reward_range": (0.0, 0.3), "reward_floor": 0.4}, r"must lie below the largest mean reward 0.3"),
        ({"misspecification": -0.1}, r"`misspecification >= 0` must hold"),
        ({"misspecification": 0.1, "radius": "dual"}, r"`misspecification` must be 0 with radius='dual', but got 0.1"),
        ({"misspecification": 0.1, "radius": "residual"}, r"`misspecification` must be 0 with radius='residual'"),
        ({"constraint": "hourly"}, r"`constraint` must be one of cumulative, checkpoints.*, but got 'hourly'"),
        ({"constraint": "checkpoints"}, r"`constraint` 'checkpoints' was given settings it cannot take"),
        ({"constraint": {"name": "checkpoints", "every": 0}}, r"`every` must be a whole number >= 1"),
        ({"constraint": {"name": "reserve", "granted": -1.0}}, r"`granted > 0` must hold"),
    ],
)
def test_safe_lucb_refuses_settings_that_make_no_sense(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MAKERS["SafeLUCB"](**wrong)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, "low", None])
def test_safe_lucb_refuses_a_range_and_a_share_that_are_no_numbers(wrong: Any) -> None:
    for setting in ({"reward_range": (0.0, wrong)}, {"realised_share": wrong}):
        with pytest.raises((ConfigError, InputError), match=r"must be (finite|a number)"):
            MAKERS["SafeLUCB"](**setting)


@pytest.mark.parametrize(
    ("error", "message", "reward"),
    [
        (AssumptionError, r"`baseline_reward >= 0` must hold, but got -0.1", -0.1),
        (InputError, r"`baseline_reward` must be finite, but got nan", math.nan),
        (InputError, r"`baseline_reward` must be a number, but got 'x'", "x"),
        (InputError, r"must be a number or \(low, high\), but got \(0.1, 0.2, 0.3\)", (0.1, 0.2, 0.3)),
        (
            AssumptionError,
            r"within what was declared, 0 to 1, but got 1.5. One of them",
            1.5,
        ),
        (AssumptionError, r"within what was declared, 0 to 1", (0.4, 0.2)),
    ],
)
def test_safe_lucb_refuses_a_baseline_reward_that_cannot_be(error: type[Exception], message: str, reward: Any) -> None:
    refuses("SafeLUCB-paper", error, message, ROWS, baseline_reward=reward)


def test_refused_features_leave_no_trace_of_the_baseline_reward_that_came_with_them() -> None:
    refuses("SafeLUCB", InputError, r"must be finite", [[0.1, math.nan]], baseline=0, baseline_reward=(0.1, 0.4))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"action": 0, "source": "nobody"}, r"`source` must be 'learner' or 'baseline', but got 'nobody'"),
        ({"action": 3, "source": "learner"}, r"`0 <= action < 3` must hold for 3 actions, but got 3"),
        ({"action": -1, "source": "learner"}, r"`action` must be a row index, but got -1"),
        ({"action": 1.0, "source": "learner"}, r"`action` must be a row index, but got 1.0"),
        ({"action": True, "source": "learner"}, r"`action` must be a row index, but got True"),
        ({"action": 0, "source": "baseline"}, r"A round of the baseline must have played its row 1, but got action=0"),
    ],
)
def test_a_round_that_cannot_have_been_is_not_recalled(name: str, asked: dict[str, Any], message: str) -> None:
    policy = MAKERS[name]()
    policy.observe(policy.decide(ROWS, **ask(name)), 0.4)
    before = policy.state()
    with pytest.raises(InputError, match=message):
        policy.recall(ROWS, **ask(name), **asked)
    assert same_state(before, policy.state())


@pytest.mark.parametrize("name", GUARDED)
@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.5, 1.5, math.nan])
def test_alpha_lies_strictly_between_0_and_1(name: str, alpha: float) -> None:
    with pytest.raises(ConfigError, match=r"`0 < alpha < 1` must hold, but got .* 0.05 keeps 95%"):
        MAKERS[name](alpha=alpha)


def test_clucb2_refuses_a_negative_floor_and_an_unknown_nesting() -> None:
    with pytest.raises(ConfigError, match=r"`reward_floor >= 0` must hold"):
        MAKERS["CLUCB2-exact"](reward_floor=-0.1)
    with pytest.raises(ConfigError, match=r"`nesting` must be 'exact' or 'latest', but got 'newest'"):
        MAKERS["CLUCB2-exact"](nesting="newest")


def test_arguments_are_keyword_only() -> None:
    with pytest.raises(TypeError):
        surefoot.CLUCB(2, 0.1, 0.01, 0.1, 0.3, 1.0, 1.0)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    ("reward", "message"),
    [(math.nan, r"`reward` must be finite, but got nan"), (math.inf, "must be finite"), (None, "must be a number")],
)
def test_a_reward_that_is_no_number_is_refused_and_the_decision_stays_pending(
    name: str, reward: Any, message: str
) -> None:
    policy = MAKERS[name]()
    decision = policy.decide(ROWS, **ask(name))
    before = policy.state()
    with pytest.raises(InputError, match=message):
        policy.observe(decision, reward)
    assert same_state(before, policy.state())
    policy.observe(decision, 0.3)


@pytest.mark.parametrize("name", MAKERS)
def test_observing_twice_or_a_strangers_decision_changes_nothing(name: str) -> None:
    policy, other = MAKERS[name](), MAKERS[name]()
    decision, stranger = policy.decide(ROWS, **ask(name)), other.decide(ROWS, **ask(name))
    policy.observe(decision, 0.3)
    before = policy.state()
    with pytest.raises(DecisionError, match=r"round 1 is not: it was settled before. Nothing was learned"):
        policy.observe(decision, 0.3)
    with pytest.raises(
        DecisionError, match=rf"must be one of this policy's \({policy.id}\).*made by policy {other.id}"
    ):
        policy.observe(stranger, 0.3)
    with pytest.raises(DecisionError, match=r"round 7 is not: only rounds 1 to 1 were decided"):
        policy.observe(7, 0.3)
    assert same_state(before, policy.state())


@pytest.mark.parametrize("name", ["LUCB", "CLUCB", "CLUCB2-latest", "SafeLUCB"])
def test_a_catalogue_that_is_too_long_or_of_another_dim_is_refused(name: str) -> None:
    long = surefoot.Catalogue([[0.1, 0.2], [1.2, 0.0]])
    refuses(name, AssumptionError, r"this Catalogue reaches length 1.2, which is 0.2 more than feature_bound=1", long)
    refuses(
        name, InputError, r"dim=2 columns, but got shape \(1, 3\)", surefoot.Catalogue([[0.1, 0.2, 0.3]]), baseline=0
    )


@pytest.mark.parametrize("name", ["CLUCB", "CLUCB2-latest", "SafeLUCB"])
def test_over_a_set_without_rows_the_baseline_is_a_point_of_it(name: str) -> None:
    ball = surefoot.EuclideanBall(center=[0.3, 0.3], radius=0.2)
    refuses(
        name,
        InputError,
        r"`baseline` must be a point of the action set with dim=2, but got \[0.9 0.3\]",
        ball,
        baseline=[0.9, 0.3],
    )
    refuses(name, InputError, r"`baseline` must be given: the feature vector", ball, baseline=None)
    refuses(
        name,
        AssumptionError,
        r"this EuclideanBall reaches length 5.4",
        surefoot.EuclideanBall(center=[0.3, 0.3], radius=5.0),
        baseline=[0.3, 0.3],
    )


def test_the_exact_clucb2_says_what_to_do_with_a_set_without_rows() -> None:
    ball = surefoot.EuclideanBall(center=[0.3, 0.3], radius=0.2)
    refuses("CLUCB2-exact", InputError, r"EuclideanBall needs `nesting='latest'`", ball, baseline=[0.3, 0.3])


def test_a_state_that_cannot_be_restored_is_refused() -> None:
    state = MAKERS["CLUCB"]().state()
    with pytest.raises(StateError, match=r"`format` must be 1, but got 99"):
        surefoot.Policy.from_state({**state, "format": 99})
    with pytest.raises(StateError, match=r"of a 'CLUCB' policy and cannot become a LUCB"):
        surefoot.LUCB.from_state(state)
    with pytest.raises(StateError, match=r"of a 'Nobody' policy"):
        surefoot.Policy.from_state({**state, "policy": "Nobody"})
    with pytest.raises(StateError, match=re.escape("incomplete or damaged: KeyError('ledger')")):
        surefoot.Policy.from_state({key: value for key, value in state.items() if key != "ledger"})
    with pytest.raises(StateError, match=r"incomplete or damaged"):
        surefoot.Policy.from_state({**state, "ridge": state["ridge"][:-3]})
    with pytest.raises(StateError, match=r"`ledger` must have shape .*, but got \(1,\)"):
        surefoot.Policy.from_state({**state, "ledger": np.zeros(1)})
    with pytest.raises(StateError, match=r"incomplete or damaged"):
        surefoot.Policy.from_state({**state, "settings": {**state["settings"], "alpha": 7.0}})
    with pytest.raises(StateError, match=r"`format` must be 1, but got \[\]"):
        surefoot.Policy.from_state([])  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [1.0, "1", None, True])
def test_only_a_decision_or_its_round_can_be_observed(wrong: Any) -> None:
    policy = MAKERS["LUCB"]()
    policy.decide(ROWS)
    with pytest.raises(DecisionError, match="must be a Decision or the number of its round"):
        policy.observe(wrong, 0.5)
    assert policy.pending == (1,)


@pytest.mark.parametrize("name", ["LUCB", "CLUCB", "CLUCB2-latest", "SafeLUCB"])
def test_an_action_set_of_another_dimension_is_refused(name: str) -> None:
    ball = surefoot.EuclideanBall(center=[0.1, 0.1, 0.1], radius=0.2)
    refuses(name, InputError, r"must have dim=2, but this EuclideanBall has dim=3", ball, baseline=[0.1, 0.1, 0.1])


def test_features_that_drown_the_ridge_are_refused() -> None:
    told = r"`feature_bound\*\*2 <= 1e\+09 \* ridge` must hold, but got .*: take a ridge of at least 4e\+09, or rescale"
    with pytest.raises(ConfigError, match=told):
        MAKERS["LUCB"](feature_bound=2e9, ridge=1e-3)
    MAKERS["LUCB"](feature_bound=2e9, ridge=4e9)


def test_arm_policies_refuse_what_they_cannot_use() -> None:
    with pytest.raises(ConfigError, match=r"`arms` must be a whole number >= 2"):
        surefoot.UCB(arms=1)
    with pytest.raises(InputError, match=r"must have one row per arm, 3, but got shape \(2, 2\)"):
        surefoot.UCB(arms=3).decide(np.eye(2))
    policy = surefoot.ConservativeUCB(arms=3, alpha=0.1, delta=0.1, baseline_reward=0.5)
    policy.decide(baseline=1)
    before = policy.state()
    for kwargs, message in [
        ({"baseline": 2}, r"must stay the default arm 1, but got 2"),
        ({"baseline": 3}, r"must be an arm from 0 to 2, but got 3"),
        ({"baseline": None}, r"must be an arm from 0 to 2, but got None"),
        ({"baseline": 1, "baseline_reward": 0.7}, r"must be what the policy was made with, 0.5, but got 0.7"),
    ]:
        with pytest.raises(InputError, match=message):
            policy.decide(**kwargs)  # type: ignore[arg-type]
        assert same_state(before, policy.state())
    with pytest.raises(AssumptionError, match=r"`baseline_reward >= 0` must hold"):
        surefoot.ConservativeUCB(arms=3, alpha=0.1, delta=0.1, baseline_reward=-0.5)
