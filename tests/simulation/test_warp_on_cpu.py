"""The programs of a GPU, lane by lane on a CPU: the bits are the core's, and lanes meet wherever they must."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.core import gpu_program
from surefoot.errors import ConfigError, WorkerError
from surefoot.simulation import ArmsWorld, ContextualWorld, PaperWorld, Spec, World, gpu_engine
from surefoot.simulation.engine import play_chunk
from surefoot.simulation.rewards import Bernoulli
from tests.simulation.warp_on_cpu import CXX, Compiler, WarpError, cupy

pytestmark = pytest.mark.skipif(shutil.which(CXX) is None, reason=f"there is no {CXX}")

ALPHAS = (0.05, 0.4)
PAPER = [
    Spec("LUCB"),
    *(Spec("CLUCB", alpha=alpha) for alpha in ALPHAS),
    *(Spec("CLUCB2", alpha=alpha, floor_share=1.0) for alpha in ALPHAS),
]
SAFE = [Spec("SafeLUCB", alpha=alpha, floor_share=0.5) for alpha in ALPHAS]
LONG = 1_100  # rounds: V is folded every 16 observations, and M made anew after 1,024


def with_radius(radius: str, specs: list[Spec] = PAPER) -> list[Spec]:
    return [replace(spec, radius=radius) for spec in specs]


Play = Callable[..., bool]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture
def is_equal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Plays on a warp and on a CPU. The runs of five policies fill one warp, and a part of a second one."""

    def play(world: World, specs: list[Spec], horizon: int, *, runs: int = 2, order: int = 1, **compiler: Any) -> bool:
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
        monkeypatch.setattr(gpu_program, "Compiler", lambda: Compiler(**compiler))
        monkeypatch.setattr(gpu_engine, "TRIAL_ROUNDS", 20)
        monkeypatch.setitem(sys.modules, "cupy", cupy(order))
        points = np.array([horizon // 3, horizon], dtype=np.int64)
        given: Any = {"runs": range(runs), "horizon": horizon, "seed": 3, "watched": ALPHAS, "checkpoints": points}
        try:
            there = gpu_engine.Device(0).play(world, specs, **given)
        except WorkerError:  # the first rounds differ
            return False
        return all(there.equals(play_chunk(world, specs, **given)))

    return play


@pytest.mark.parametrize("order", [2, *(pytest.param(order, marks=pytest.mark.long) for order in (1, *range(3, 13)))])
def test_lanes_in_any_order_have_the_bits_of_a_cpu(is_equal: Play, order: int) -> None:
    assert is_equal(PaperWorld(), PAPER, LONG, order=order)


LUCB = [Spec("LUCB")]
OTHERS = [
    pytest.param(PaperWorld(actions=40), PAPER, id="too few rows for a list"),
    pytest.param(PaperWorld(actions=101, dim=3), PAPER, id="three dimensions"),
    pytest.param(PaperWorld(), [Spec("LUCB", exploration=1.0)], id="a constant radius"),
    pytest.param(ContextualWorld(dim=5), LUCB, id="rows that change"),
    *(
        pytest.param(world, specs, id=name, marks=pytest.mark.long)
        for world, specs, name in (
            (PaperWorld(dim=2), PAPER, "two dimensions"),
            (PaperWorld(dim=8, rewards=Bernoulli()), PAPER, "eight dimensions, clicks"),
            (PaperWorld(dim=16), PAPER, "sixteen dimensions"),
            (ArmsWorld(), PAPER, "plain arms"),
            (PaperWorld(), with_radius("logdet"), "logdet"),
            (PaperWorld(), with_radius("amm"), "amm"),
            (PaperWorld(), with_radius("residual"), "residual"),
            (PaperWorld(), with_radius("dual"), "dual"),
            (ContextualWorld(), [replace(spec, floor_share=0.0) for spec in PAPER], "rows that change, all policies"),
            (PaperWorld(), SAFE, "SafeLUCB"),
            (PaperWorld(dim=8), with_radius("amm", SAFE), "SafeLUCB, amm"),
        )
    ),
]


@pytest.mark.parametrize(("world", "specs"), OTHERS)
def test_every_program_has_the_bits_of_a_cpu(is_equal: Play, world: World, specs: list[Spec]) -> None:
    assert is_equal(world, specs, 200)


def test_lanes_meet_before_they_touch_what_others_wrote(is_equal: Play) -> None:
    assert is_equal(PaperWorld(), PAPER, 120, watched=True)


@pytest.mark.long
@pytest.mark.parametrize(("world", "specs"), [pytest.param(PaperWorld(), PAPER, id="paper"), *OTHERS])
def test_lanes_of_every_program_meet(is_equal: Play, world: World, specs: list[Spec]) -> None:
    assert is_equal(world, specs, LONG if specs == PAPER else 200, watched=True)


SHUFFLE = "for (int apart = W / 2; apart > 0; apart /= 2) {\n      found"
MEETING = "    for (int at = lane; at < places; at += W) work(at);\n    meet();"


def test_a_lane_that_does_not_come_is_missed(is_equal: Play) -> None:
    changed = {"warp_team.hpp": (SHUFFLE, f"if (threadIdx.x != 5) {SHUFFLE}")}
    with pytest.raises(WarpError, match=r"wait for others that do not come: .*4 in shfl_xor"):
        is_equal(PaperWorld(), LUCB, 100, changed=changed)


def test_a_meeting_that_is_left_out_is_missed(is_equal: Play) -> None:
    changed = {"warp_team.hpp": (MEETING, MEETING.removesuffix("\n    meet();"))}
    with pytest.raises(WarpError, match=r"(reads|writes) what was (written|read) by lane"):
        is_equal(PaperWorld(), LUCB, 100, changed=changed, watched=True)


@pytest.mark.parametrize(
    ("header", "old", "new"),
    [
        pytest.param(
            "scores.hpp",
            "means[k] += center",
            "means[k] += (center + 1e-12)",
            id="a mean that is a little off",
            marks=pytest.mark.long,
        ),
        # Counts alone would not show it.
        pytest.param("exact.hpp", " + x_low * y_low}", "}", id="a product without all that its rounding lost"),
    ],
)
def test_other_formulas_have_other_bits(is_equal: Play, header: str, old: str, new: str) -> None:
    assert not is_equal(PaperWorld(), PAPER, 400, changed={header: (old, new)})


def test_what_does_not_compile_says_why(is_equal: Play) -> None:
    with pytest.raises(ConfigError, match="no_such_name"):
        is_equal(PaperWorld(), LUCB, 5, changed={"warp_team.hpp": ("return {lane,", "return {no_such_name,")})
