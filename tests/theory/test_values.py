"""The bounds are the corrected formulas of the paper, by mpmath and by hand, and move as the problem gets harder."""

import doctest
import math
import re
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from surefoot import theory
from tests.theory.problems import BOUNDS, MODELS, ODD, PLAIN, SAFE, mp_model


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("k", [0, 1, 7, 12_345])
def test_radius_is_the_formula_below_the_papers_confidence_set(model: dict[str, Any], k: int) -> None:
    d, delta, sigma, lam, B, D = mp_model(model)
    expected = sigma * mpmath.sqrt(d * mpmath.log((1 + (k + 1) * D**2 / lam) / delta)) + mpmath.sqrt(lam) * B
    assert theory.radius(k, **model) == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize("model", MODELS)
def test_conservative_rounds_bound_is_theorem_2_corrected(model: dict[str, Any]) -> None:
    d, delta, sigma, lam, B, D = mp_model(model)
    alpha, floor, gap = (mpmath.mpf(x) for x in (0.01, 0.4, 0.25))
    c, W = gap + alpha * floor, D / mpmath.sqrt(lam)
    G = max(B * mpmath.sqrt(lam) + sigma, 1 / (2 * mpmath.sqrt(d * mpmath.log(2 * D**2 / (lam * delta)))))
    extra = 2 * W * theory.radius(int(W**2 / 4), **model) if W > 2 else 0
    main = 114 * d**2 * G**2 / c * mpmath.log(64 * d * G * D / (mpmath.sqrt(lam * delta) * c)) ** 2
    expected = float(1 + (main + extra) / (alpha * floor))
    assert theory.conservative_rounds_bound(gap_floor=0.25, **SAFE, **model) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_clucb2_conservative_rounds_bound_is_theorem_4_corrected(model: dict[str, Any]) -> None:
    d, delta, sigma, lam, B, D = mp_model(model)
    G = max(B * mpmath.sqrt(lam) + sigma, B * D / mpmath.sqrt(d * mpmath.log(6 * D**2 / (lam * delta))))
    g = d * G / (mpmath.mpf(0.01) * mpmath.mpf(0.4))
    expected = float(256 * g**2 * mpmath.log(10 * g * mpmath.sqrt(D) / mpmath.root(lam * delta, 4)) ** 2 + 1)
    assert theory.clucb2_conservative_rounds_bound(**SAFE, **model) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("model", [*MODELS, {**PLAIN, "ridge": 40.0}])
@pytest.mark.parametrize("T", [1, 9, 40_000])
def test_lucb_regret_bound_is_two_radii_times_the_summed_widths(model: dict[str, Any], T: int) -> None:
    d, delta, sigma, lam, B, D = mp_model(model)
    radius = sigma * mpmath.sqrt(d * mpmath.log((1 + T * D**2 / lam) / delta)) + mpmath.sqrt(lam) * B
    expected = max(1, 2 * radius) * mpmath.sqrt(2 * d * T * mpmath.log(1 + T * D**2 / (lam * d)))
    assert theory.lucb_regret_bound(T, **model) == pytest.approx(float(expected), rel=1e-13)


def test_values_worked_out_by_hand_at_an_odd_setting() -> None:
    # D^2/lambda = 20.8333; 0.7 sqrt(50 ln(21.8333 / 0.02)) = 13.0916; sqrt(0.3) 1.3 = 0.71204
    assert theory.radius(0, **ODD) == pytest.approx(13.0916 + 0.71204, abs=2e-4)
    # 100 ln(1 + 20.8333 * 7 / 50) = 100 ln(3.91667)
    assert theory.elliptical_potential(7, dim=50, ridge=0.3, feature_bound=2.5) == pytest.approx(136.5241, abs=1e-4)
    # G = 1.41204, c = 0.004, dG = 70.602; ln(64 * 70.602 * 4.56435 / (0.141421 * 0.004)) = 17.41168, and
    # E = 9.12871 * beta(5) = 9.12871 * (0.7 sqrt(50 ln(126 / 0.02)) + 0.71204)
    main = 114 * 70.602**2 / 0.004 * 17.41168**2
    extra = 9.12871 * (0.7 * math.sqrt(50 * math.log(126 / 0.02)) + 0.71204)
    bound = theory.conservative_rounds_bound(**SAFE, **ODD)
    assert bound == pytest.approx(1 + (main + extra) / 0.004, rel=1e-5)


@pytest.mark.parametrize("T", [1, 500])
def test_regret_bounds_add_the_price_of_safety_to_lucbs(T: int) -> None:
    lucb = theory.lucb_regret_bound(T, **PLAIN)
    known = theory.conservative_rounds_bound(gap_floor=0.1, **SAFE, **PLAIN)
    unknown = theory.clucb2_conservative_rounds_bound(**SAFE, **PLAIN)
    clucb = theory.clucb_regret_bound(T, gap_floor=0.1, gap_ceiling=0.3, **SAFE, **PLAIN)
    assert clucb == pytest.approx(lucb + 0.3 * known, rel=1e-14)
    clucb2 = theory.clucb2_regret_bound(T, gap_ceiling=0.3, **SAFE, **PLAIN)
    assert clucb2 == pytest.approx(lucb + 0.3 * unknown, rel=1e-14)


def test_numpy_scalars_come_in_and_plain_floats_go_out() -> None:
    model = {name: np.float64(value) for name, value in ODD.items()} | {"dim": np.int64(50)}
    safe = {name: np.float64(value) for name, value in SAFE.items()}
    bound = theory.clucb_regret_bound(np.int64(9), gap_floor=np.float64(0.1), **safe, **model)  # type: ignore[arg-type]
    assert type(bound) is float
    assert bound == theory.clucb_regret_bound(9, gap_floor=0.1, **SAFE, **ODD)


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize(
    ("knob", "values", "rises"),
    [
        ("alpha", [0.01, 0.02, 0.05, 0.4, 0.8], False),
        ("reward_floor", [0.01, 0.1, 0.7], False),
        ("delta", [1e-9, 0.001, 0.3], False),
        ("dim", [2, 3, 10, 50, 400], True),
        ("noise", [0.0, 1e-3, 0.3, 1.0, 4.0], True),
        ("theta_bound", [0.5, 1.3, 20.0], True),
        ("feature_bound", [0.55, 1.0, 2.5, 40.0], True),
    ],
)
def test_bounds_move_the_way_the_problem_gets_harder(name: str, knob: str, values: list[float], rises: bool) -> None:
    bounds = [BOUNDS[name](**{**ODD, **SAFE, knob: value}) for value in values]
    assert all(np.diff(bounds) >= 0) if rises else all(np.diff(bounds) <= 0)
    assert bounds[0] != bounds[-1]


def test_a_wider_gap_to_the_best_action_means_fewer_clucb_rounds() -> None:
    bounds = [theory.conservative_rounds_bound(gap_floor=gap, **SAFE, **ODD) for gap in (0.0, 0.1, 0.6)]
    assert bounds[0] > bounds[1] > bounds[2]


def test_the_price_of_safety_does_not_grow_with_the_horizon() -> None:
    prices = [
        theory.clucb_regret_bound(T, **SAFE, **PLAIN) - theory.lucb_regret_bound(T, **PLAIN) for T in (1, 1000, 10**6)
    ]
    assert prices == pytest.approx([theory.conservative_rounds_bound(**SAFE, **PLAIN)] * 3, rel=1e-9)


def test_every_example_of_the_theory_page_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "theory.md"
    code = "\n\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL))
    examples = doctest.DocTestParser().get_doctest(code, {}, "theory.md", str(page), 0)
    assert len(examples.examples) >= 8
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples).failed == 0
