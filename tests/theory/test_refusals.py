"""What the theorems exclude is refused, with the rule and a way out."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from surefoot import theory
from surefoot.errors import ConfigError
from tests.theory.problems import BOUNDS, ODD, SAFE, setting

NEED_MODEL: dict[str, Callable[..., float]] = {
    "radius": lambda alpha, reward_floor, **kw: theory.radius(3, **kw),
    "lucb regret": lambda alpha, reward_floor, **kw: theory.lucb_regret_bound(3, **kw),
    **BOUNDS,
}


@pytest.mark.parametrize("name", NEED_MODEL)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (setting(dim=1), "`dim >= 2` must hold for the paper's radius, but got dim=1.*Abbasi-Yadkori.*2 ln"),
        (setting(dim=0), "`dim` must be a whole number >= 1, but got dim=0"),
        (setting(dim=2.0), "`dim` must be a whole number"),
        (setting(delta=0.0), "`0 < delta < 1` must hold, but got delta=0.0"),
        (setting(delta=1.0), "`0 < delta < 1` must hold"),
        (setting(noise=-0.1), "`noise >= 0` must hold"),
        (setting(ridge=0.0), "`ridge > 0` must hold"),
        (setting(ridge=math.nan), "`ridge > 0` must hold"),
        (setting(theta_bound=0.0), "`theta_bound > 0` must hold"),
        (setting(feature_bound=math.inf), "`feature_bound > 0` must hold and be finite"),
        (setting(feature_bound="wide"), "`feature_bound` must be a number"),
    ],
)
def test_a_model_that_breaks_a_rule_is_refused_everywhere(name: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        NEED_MODEL[name](**{**ODD, **SAFE, **wrong})


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (setting(alpha=0.0), "`0 < alpha < 1` must hold"),
        (setting(alpha=1.0), "`0 < alpha < 1` must hold"),
        (setting(reward_floor=0.0), "`reward_floor > 0` must hold.*may earn nothing"),
        (setting(reward_floor=1.5), r"`reward_floor \+ gap_floor <= 1` must hold.*mean rewards in \[0, 1\]"),
        (setting(ridge=6.26), r"`ridge <= feature_bound\*\*2` must hold, but got ridge=6.26.*feature_bound=math.sqrt"),
    ],
)
def test_conservative_bounds_refuse_what_their_theorems_exclude(name: str, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BOUNDS[name](**{**ODD, **SAFE, **wrong})


@pytest.mark.parametrize("name", ["clucb rounds", "clucb regret"])
def test_a_gap_floor_beyond_the_rewards_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"`reward_floor \+ gap_floor <= 1` must hold"):
        BOUNDS[name](gap_floor=0.61, **SAFE, **ODD)
    with pytest.raises(ConfigError, match="`gap_floor >= 0` must hold"):
        BOUNDS[name](gap_floor=-0.1, **SAFE, **ODD)


@pytest.mark.parametrize("name", ["clucb regret", "clucb2 regret"])
@pytest.mark.parametrize("ceiling", [-0.1, 1.1, math.nan])
def test_a_gap_ceiling_outside_the_rewards_is_refused(name: str, ceiling: float) -> None:
    with pytest.raises(ConfigError, match="gap_ceiling"):
        BOUNDS[name](gap_ceiling=ceiling, **SAFE, **ODD)


def test_a_gap_ceiling_below_the_gap_floor_is_refused() -> None:
    with pytest.raises(ConfigError, match="`gap_floor <= gap_ceiling <= 1` must hold"):
        theory.clucb_regret_bound(10, gap_floor=0.3, gap_ceiling=0.2, **SAFE, **ODD)


@pytest.mark.parametrize("ridge", [0.3, 2.5, 7.1])
def test_the_way_out_that_the_ridge_refusal_names_works(ridge: float) -> None:
    # sqrt(ridge)**2 may round to less than ridge, so the check must not square
    model = {**ODD, "ridge": ridge, "feature_bound": math.sqrt(ridge)}
    assert theory.conservative_rounds_bound(**SAFE, **model) > 1


@pytest.mark.parametrize("wrong", [-1, 2.0, True])
def test_counts_must_be_whole_and_not_negative(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="`observations` must be a whole number >= 0"):
        theory.radius(wrong, **ODD)
    with pytest.raises(ConfigError, match="`count` must be a whole number >= 0"):
        theory.elliptical_potential(wrong, dim=2, ridge=1.0, feature_bound=1.0)
    with pytest.raises(ConfigError, match="`rounds` must be a whole number >= 1"):
        theory.lucb_regret_bound(wrong, **ODD)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.inf, math.nan])
def test_lemmas_want_positive_constants(wrong: float) -> None:
    for constants in ((wrong, 1.0, 1.0), (1.0, wrong, 1.0), (1.0, 1.0, wrong)):
        with pytest.raises(ConfigError, match="The lemma is about positive constants"):
            theory.lemma2_bound(*constants)
    for pair in ((wrong, 9.0), (9.0, wrong)):
        with pytest.raises(ConfigError, match="The lemma is about positive constants"):
            theory.lemma3_bound(*pair)
