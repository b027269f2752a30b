"""Feature maps against their formulas written as loops; their bounds against contexts of any direction and length."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.arrays import Matrix, Vector
from surefoot.core import native
from surefoot.errors import AssumptionError, ConfigError, InputError
from surefoot.linear.features import Disjoint, FeatureMap, Interactions, OneHot, Shared

ACTIONS = [[0.5, -1.0], [2.0, 0.3], [-0.7, 0.1]]
BOUND = 2.5  # of a context


def maps() -> dict[str, FeatureMap]:
    return {
        "shared": Shared(ACTIONS, context_dim=3, context_bound=BOUND),
        "shared without intercept": Shared(ACTIONS, context_dim=3, context_bound=BOUND, intercept=False),
        "disjoint": Disjoint(actions=4, context_dim=3, context_bound=BOUND),
        "disjoint without intercept": Disjoint(actions=4, context_dim=3, context_bound=BOUND, intercept=False),
        "interactions": Interactions(ACTIONS, context_dim=3, context_bound=BOUND),
        "one hot": OneHot(actions=5),
    }


MAPS = maps()


def by_hand(name: str, context: Vector) -> list[list[float]]:
    """Every row, entry by entry, from the formula in the map's docstring."""
    x = [float(entry) for entry in context]
    lead = [] if "without" in name else [1.0]
    rows: list[list[float]] = []
    if name.startswith("shared"):
        rows = [lead + x + f for f in ACTIONS]
    elif name.startswith("disjoint"):
        block = lead + x
        for action in range(4):
            row = [0.0] * (4 * len(block))
            for i, entry in enumerate(block):
                row[action * len(block) + i] = entry
            rows.append(row)
    elif name == "interactions":
        rows = [[a * b for a in [1.0, *x] for b in [1.0, *f]] for f in ACTIONS]
    else:
        rows = [[1.0 if i == action else 0.0 for i in range(5)] for action in range(5)]
    return rows


@st.composite
def contexts(draw: st.DrawFn) -> Vector:
    """Any direction, and any length up to the bound, often the bound itself."""
    direction = np.array(draw(st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3)))
    length = float(np.linalg.norm(direction))
    if length < 1e-3:
        direction, length = np.array([1.0, 0.0, 0.0]), 1.0
    share = draw(st.one_of(st.just(1.0), st.floats(0.0, 1.0)))
    scaled: Vector = direction * (share * BOUND / length)
    return scaled


@pytest.mark.parametrize("name", MAPS)
@settings(deadline=None)
@given(context=contexts())
def test_rows_follow_the_formula(name: str, context: Vector) -> None:
    rows = MAPS[name](context)
    assert rows.tolist() == by_hand(name, context)
    assert rows.shape[1] == MAPS[name].dim


@pytest.mark.parametrize("name", MAPS)
@settings(deadline=None)
@given(context=contexts())
def test_no_row_is_longer_than_the_bound_and_the_policies_take_them_all(name: str, context: Vector) -> None:
    phi = MAPS[name]
    rows = np.ascontiguousarray(phi(context))
    assert np.linalg.norm(rows, axis=1).max() <= phi.bound * (1 + 1e-12)
    assert native.first_bad_row(rows, phi.bound) is None


@pytest.mark.parametrize("share", [1.0, 1 + 2e-13, 1 + 9e-13])
@pytest.mark.parametrize("name", [name for name in MAPS if name != "one hot"])
def test_a_context_that_passes_as_rounding_gives_rows_that_pass_as_rounding(name: str, share: float) -> None:
    rows = np.ascontiguousarray(MAPS[name](np.array([0.0, BOUND * share, 0.0])))
    assert native.first_bad_row(rows, MAPS[name].bound) is None


@pytest.mark.parametrize("name", MAPS)
def test_the_bound_is_attained(name: str) -> None:
    longest = np.linalg.norm(MAPS[name](np.array([0.0, -BOUND, 0.0])), axis=1).max()
    assert longest == pytest.approx(MAPS[name].bound, rel=1e-14)


@pytest.mark.parametrize("name", MAPS)
def test_rows_are_fresh_arrays_that_nobody_else_holds(name: str) -> None:
    phi, context = MAPS[name], np.array([0.1, 0.2, 0.3])
    before = phi(context).tolist()
    phi(context)[:] = 9.0
    assert phi(context).tolist() == before
    assert context.tolist() == [0.1, 0.2, 0.3]


def test_a_map_keeps_its_own_action_features() -> None:
    features = np.array(ACTIONS)
    for phi in (
        Shared(features, context_dim=1, context_bound=1.0),
        Interactions(features, context_dim=1, context_bound=1.0),
    ):
        before, bound = phi([0.5]).tolist(), phi.bound
        features[0, 0] += 100.0
        assert phi([0.5]).tolist() == before
        assert phi.bound == bound


def test_plain_arms_need_no_context() -> None:
    assert OneHot(actions=3)().tolist() == np.eye(3).tolist()
    assert OneHot(actions=3).dim == 3
    assert OneHot(actions=3).bound == 1.0


@pytest.mark.parametrize("name", [name for name in MAPS if name != "one hot"])
def test_contexts_that_break_a_rule_are_refused(name: str) -> None:
    phi = MAPS[name]
    with pytest.raises(InputError, match="`context` must have 3 entries, but got 2"):
        phi([0.1, 0.2])
    with pytest.raises(InputError, match=r"`context` must be finite, but entry \(1,\) is nan"):
        phi([0.1, math.nan, 0.2])
    with pytest.raises(InputError, match=r"`context` must have 1 dimension\(s\), but got shape \(1, 3\)"):
        phi([[0.1, 0.2, 0.3]])
    with pytest.raises(InputError, match="`context` must be an array of numbers"):
        phi(["a", "b", "c"])
    with pytest.raises(AssumptionError) as caught:
        phi([0.0, 2.75, 0.0])
    assert str(caught.value) == (
        "`||context|| <= context_bound` must hold, but its length is 2.75, which is 0.25 more than context_bound=2.5. "
        "Rescale contexts or declare a larger bound."
    )
    phi([0.0, BOUND, 0.0])


@pytest.mark.parametrize("bound", [0.0, -1.0, math.nan, math.inf])
def test_a_context_bound_that_bounds_nothing_is_refused(bound: float) -> None:
    message = "`context_bound > 0` must hold and be finite"
    with pytest.raises(ConfigError, match=message):
        Shared(ACTIONS, context_dim=3, context_bound=bound)
    with pytest.raises(ConfigError, match=message):
        Disjoint(actions=2, context_dim=3, context_bound=bound)
    with pytest.raises(ConfigError, match=message):
        Interactions(ACTIONS, context_dim=3, context_bound=bound)


@pytest.mark.parametrize("bound", [1e-200, 1e200])
def test_a_context_bound_whose_square_leaves_the_floats_is_still_a_bound(bound: float) -> None:
    plain = Disjoint(actions=2, context_dim=3, context_bound=bound, intercept=False)
    assert plain.bound == pytest.approx(bound, rel=1e-12, abs=0.0)
    shared = Shared([[3.0]], context_dim=3, context_bound=bound)
    assert shared.bound == pytest.approx(math.hypot(1.0, bound, 3.0), rel=1e-12)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True])
def test_counts_that_are_no_counts_are_refused(wrong: int) -> None:
    with pytest.raises(ConfigError, match="`context_dim` must be a whole number >= 1"):
        Shared(ACTIONS, context_dim=wrong, context_bound=1.0)
    with pytest.raises(ConfigError, match="`actions` must be a whole number >= 1"):
        Disjoint(actions=wrong, context_dim=3, context_bound=1.0)
    with pytest.raises(ConfigError, match="`actions` must be a whole number >= 1"):
        OneHot(actions=wrong)


@pytest.mark.parametrize("kind", [Shared, Interactions])
@pytest.mark.parametrize("features", [np.zeros((0, 2)), [[1.0], [math.nan]], [1.0, 2.0]])
def test_action_features_that_describe_no_actions_are_refused(
    kind: type[Shared] | type[Interactions], features: Matrix
) -> None:
    with pytest.raises(InputError, match="`action_features` must"):
        kind(features, context_dim=2, context_bound=1.0)
