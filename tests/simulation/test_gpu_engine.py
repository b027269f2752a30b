"""The engine on a GPU: its kernels compile without one, and where there is one the bits are a CPU's."""

import importlib.util
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from surefoot.core import gpu_program, native
from surefoot.core.gpu_program import Compiler, program, source, sources
from surefoot.errors import ConfigError, WorkerError
from surefoot.linear.radius import RADII
from surefoot.simulation import ArmsWorld, Baseline, ContextualWorld, PaperWorld, Spec, simulate
from surefoot.simulation import engine as cpu
from surefoot.simulation.engine import ChunkTask
from surefoot.simulation.gpu_engine import (
    TYPES,
    WHICH,
    Device,
    GpuExecutor,
    are_ordinary,
    engine_of,
    is_ordinary,
    refusal,
    set_up,
)
from surefoot.simulation.sweep import Part, Sweep, run_sweep

ALPHAS = (0.05, 0.4)
SPECS = [
    Spec("LUCB"),
    *(Spec("CLUCB", alpha=alpha) for alpha in ALPHAS),
    *(Spec("CLUCB2", alpha=alpha, floor_share=1.0) for alpha in ALPHAS),
    *(Spec("SafeLUCB", alpha=alpha, floor_share=0.5) for alpha in ALPHAS),
]


def has_gpu() -> bool:
    if importlib.util.find_spec("cupy") is None:
        return False
    import cupy

    try:
        return bool(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


needs_gpu = pytest.mark.skipif(not has_gpu(), reason="there is no GPU")


@pytest.mark.parametrize(
    ("policy", "actions"),
    [("PaperPolicy", 128), ("PaperPolicy", 129), pytest.param("SafeLucb", 128, marks=pytest.mark.long)],
)
def test_the_core_compiles_for_a_gpu(policy: str, actions: int) -> None:
    engine = engine_of(policy, actions=actions)
    assert engine.dealt == (policy == "PaperPolicy" and actions == 128)
    # The architecture of a virtual machine: what a device's own compiler needs minutes for is left out.
    options = engine.options("compute_90")
    made = Compiler().compile(source(), sources(dealt=engine.dealt), options, kind="PTX").decode()
    assert ".entry play" in made
    assert ".entry draw" in made
    # Nothing is fused but what says so, for a CPU fuses nothing.
    assert all("// exact" in line for line in made.splitlines() if "fma.rn.f64" in line)
    assert ("// exact" in made) == engine.dealt


def test_what_does_not_compile_says_why() -> None:
    engine = replace(engine_of("PaperPolicy"), policy="no_such_policy")
    with pytest.raises(ConfigError, match="no_such_policy"):
        Compiler().compile(source(), sources(dealt=True), engine.options("compute_90"), kind="PTX")


def test_structs_that_the_host_writes_otherwise_do_not_compile() -> None:
    engine = engine_of("PaperPolicy")
    wrong = replace(engine, task_bytes=engine.task_bytes + 8)
    with pytest.raises(ConfigError, match="static assertion failed"):
        Compiler().compile(source(), sources(dealt=True), wrong.options("compute_90"), kind="PTX")


def test_a_program_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled: list[Any] = []

    def compile_(self: Compiler, *given: Any, **more: Any) -> bytes:
        compiled.append(given)
        return b"code"

    monkeypatch.setattr(Compiler, "compile", compile_)
    engine = engine_of("PaperPolicy")
    assert program(engine, "sm_90").read_bytes() == b"code"
    assert program(engine, "sm_90") == program(engine, "sm_90")
    assert len(compiled) == 1
    program(engine, "sm_80")
    monkeypatch.setattr(gpu_program, "source", lambda: source() + "\n")
    program(engine, "sm_90")
    assert len(compiled) == 3


@pytest.mark.parametrize("refused", ["mkdir", "write"])
def test_a_cache_that_cannot_be_written_is_done_without(
    refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Compiler, "compile", lambda *_, **__: b"code")
    if refused == "mkdir":
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    else:  # a folder that belongs to somebody else, who also left something there
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        name = program(engine_of("PaperPolicy"), "sm_70").name
        (tmp_path / "surefoot" / name).write_bytes(b"not ours")
        monkeypatch.setattr(gpu_program, "_elsewhere", {})
        owner = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: owner)
    architecture = "sm_90" if refused == "mkdir" else "sm_70"
    assert program(engine_of("PaperPolicy"), architecture).read_bytes() == b"code"


@pytest.mark.parametrize(
    ("world", "spec", "why"),
    [
        (PaperWorld(delay=3.0), Spec("LUCB"), "delayed rewards"),
        (ArmsWorld(actions=4, dim=4, baseline=Baseline(rank=2)), Spec("UCB"), "UCB is not one of"),
        (PaperWorld(), Spec("CLUCB2-exact", alpha=0.1), "not one of"),
        (ContextualWorld(), Spec("LUCB"), "for 4 dimensions, and this world has 8"),
        (PaperWorld(), Spec("SafeLUCB", alpha=0.1, reward_bounds=(0.0, 1.0)), "likelihood set"),
    ],
)
def test_what_a_gpu_cannot_play_it_says(world: Any, spec: Spec, why: str) -> None:
    assert refusal(world, [spec]) is not None
    assert why in str(refusal(world, [spec]))
    assert refusal(PaperWorld(), SPECS) is None


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is installed")
def test_without_cupy_one_is_told_what_to_install() -> None:
    with pytest.raises(ConfigError, match=r"surefoot\[gpu\]"):
        simulate(PaperWorld(), [Spec("LUCB")], runs=1, horizon=5, on="gpu")


class Played:
    """In a device's place: the CPU, and what it was asked."""

    def __init__(self, index: int) -> None:
        self.asked: list[list[int]] = []
        self.index = index

    def play(self, world: Any, policies: Any, *, runs: Any, **rest: Any) -> Any:
        self.asked.append(list(runs))
        if rest["seed"] == 13:
            raise ConfigError("bad luck")
        return cpu.play_chunk(world, policies, runs=runs, **rest)


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("surefoot.simulation.gpu_engine.Device", Played)
    with GpuExecutor(1) as made:
        yield made


def test_chunks_of_one_simulation_are_played_together(executor: Any) -> None:
    found = simulate(PaperWorld(), SPECS[:2], runs=50, horizon=60, on=executor)
    assert executor._device.asked == [list(range(50))]
    for here, there in zip(simulate(PaperWorld(), SPECS[:2], runs=50, horizon=60), found, strict=True):
        assert np.array_equal(here.measures["regret"], there.measures["regret"])


def test_chunks_of_one_part_of_a_sweep_are_played_together(executor: Any, tmp_path: Path) -> None:
    parts = [Part(name, PaperWorld(), SPECS[:2], runs=50, horizon=60) for name in ("one", "two")]
    run_sweep(Sweep(parts), tmp_path, on=executor)
    assert executor._device.asked == [list(range(50))] * 2


def test_chunks_of_two_simulations_are_not(executor: Any) -> None:
    world, specs = PaperWorld(), SPECS[:1]
    tasks = [
        ChunkTask(world, specs, [0, 1], 5, seed, [0.1], np.array(points, dtype=np.int64))
        for seed, points in ((0, [5]), (1, [5]), (1, [4, 5]), (0, [5]))
    ]
    answers = [future.result() for future in [executor.submit(task) for task in tasks]]
    assert len(executor._device.asked) == 4
    assert np.array_equal(answers[0][0], answers[3][0])
    assert not np.array_equal(answers[0][0], answers[1][0])


def test_what_is_refused_the_threads_play(executor: Any) -> None:
    world = PaperWorld(delay=2.0)
    with pytest.warns(RuntimeWarning, match="so the CPU does: delayed rewards"):
        (found,) = simulate(world, SPECS[:1], runs=3, horizon=30, on=executor)
    assert executor._device.asked == []
    (here,) = simulate(world, SPECS[:1], runs=3, horizon=30)
    assert np.array_equal(here.measures["regret"], found.measures["regret"])
    assert executor.submit(len, "abc").result() == 3


def test_an_error_of_the_device_is_the_caller_s(executor: Any) -> None:
    with pytest.raises(ConfigError, match="bad luck"):
        simulate(PaperWorld(), SPECS[:1], runs=30, horizon=5, seed=13, on=executor)


def test_it_ends_with_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.simulation.gpu_engine.Device", Played)
    executor = GpuExecutor(0)
    task = ChunkTask(PaperWorld(), SPECS[:1], [0], 5, 0, [], np.array([5], dtype=np.int64))
    futures = [executor.submit(task) for _ in range(3)]
    executor.shutdown()
    assert all(future.done() for future in futures)
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(task)


def test_what_has_not_begun_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.simulation.gpu_engine.Device", Played)
    monkeypatch.setattr("surefoot.simulation.gpu_engine.MOST_RUNS", 1)  # each by itself
    executor = GpuExecutor(0)
    task = ChunkTask(PaperWorld(), SPECS[:1], range(40), 2_000, 0, [], np.array([5], dtype=np.int64))
    futures = [executor.submit(task) for _ in range(50)]
    executor.shutdown(cancel_futures=True)
    assert all(future.done() for future in futures)
    assert futures[-1].cancelled()


def test_runs_are_set_up_alone_as_among_others() -> None:
    world, specs = PaperWorld(), [Spec("LUCB"), Spec("CLUCB2", alpha=0.1, floor_share=0.5)]
    some, alone = set_up(world, specs, 3, range(5), 1).of(slice(2, 4)), set_up(world, specs, 3, [2, 3], 1)
    assert some.settings == alone.settings
    assert some.settings[1][0] != some.settings[1][1]
    assert [one.noise_seed for one in some.realisations] == [one.noise_seed for one in alone.realisations]


TINY, HUGE = 2.0**-61, 2.0**61


@pytest.mark.parametrize(
    ("features", "told", "is_dealt"),
    [
        ([0.0, -0.5, 1e-12, 1e12], {}, True),
        ([0.0, TINY, 1.0, 1.0], {}, False),
        ([0.0, -HUGE, 1.0, 1.0], {}, False),
        ([0.0, 1.0, np.inf, 1.0], {}, False),
        ([0.0, 1.0, np.nan, 1.0], {}, False),
        ([0.0, 1.0, 1.0, 1.0], {"ridge": TINY}, False),
        ([0.0, 1.0, 1.0, 1.0], {"ridge": HUGE}, False),
        ([0.0, 1.0, 1.0, 1.0], {"misfit": 0.1}, False),
        ([0.0, 1.0, 1.0, 1.0], {"exploration": 1.0}, False),
    ],
)
def test_vectors_are_dealt_where_numbers_and_settings_are_ordinary(
    features: list[float], told: dict[str, float], is_dealt: bool
) -> None:
    settings = native.LinearSettings()
    for name, value in told.items():
        setattr(settings, name, value)
    block = MagicMock(features=np.array([[features]]))
    ordinary = are_ordinary([block, block]) and is_ordinary(settings)
    assert engine_of("PaperPolicy", 0, ordinary).dealt == is_dealt


def test_a_lucb_that_explores_by_its_own_width_is_played_with_whole_vectors() -> None:
    specs = [Spec("LUCB"), Spec("LUCB", exploration=1.0)]
    assert [kind.is_ordinary for kind in set_up(PaperWorld(), specs, 3, range(2), 1).kinds] == [True, False]


class Off:
    """In the place of a simulation on a device: the CPU's, which a compiler that cannot be relied on has bent."""

    def __init__(self, _: Any, world: Any, horizon: int, watched: Any, points: Any) -> None:
        self.given: Any = {"horizon": horizon, "watched": watched, "checkpoints": points}
        self.world = world

    bent = "counts"

    def play(self, specs: Any, cast: Any) -> Any:
        runs = range(len(cast.realisations))
        played = cpu.play_chunk(self.world, specs, runs=runs, seed=0, **self.given)
        numbers = getattr(played, self.bent)[-1].reshape(-1)
        numbers[0] = np.nextafter(numbers[0], 1e9)
        return played


@pytest.mark.parametrize("bent", ["counts", "learned"])
def test_a_device_whose_bits_differ_is_not_believed(bent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Off, "bent", bent)
    monkeypatch.setattr("surefoot.simulation.gpu_engine._Stage", Off)
    monkeypatch.setattr(Device, "__post_init__", lambda _: None)
    monkeypatch.setattr(Device, "_cupy", MagicMock())
    points = np.array([700], dtype=np.int64)
    with pytest.raises(WorkerError, match=r"CLUCB, α = 0\.05 the first 512 rounds differ"):
        Device(0).play(PaperWorld(), SPECS[:2], runs=range(9), horizon=700, seed=0, watched=[0.05], checkpoints=points)


def equal(world: Any, specs: list[Spec], runs: int, horizon: int) -> None:
    points = cpu.default_checkpoints(horizon)
    given: Any = {"runs": range(runs), "horizon": horizon, "seed": 3, "watched": ALPHAS, "checkpoints": points}
    assert all(Device(0).play(world, specs, **given).equals(cpu.play_chunk(world, specs, **given)))


@needs_gpu
@pytest.mark.long
def test_the_bits_of_the_paper_s_world_are_a_cpu_s() -> None:
    equal(PaperWorld(), SPECS, 200, 40_000)


@needs_gpu
@pytest.mark.long
def test_the_bits_of_a_world_that_changes_are_a_cpu_s() -> None:
    equal(ContextualWorld(dim=4), [replace(spec, floor_share=0.0) for spec in SPECS], 16, 2_000)


@needs_gpu
@pytest.mark.long
@pytest.mark.parametrize("radius", ["paper", "logdet", "amm", "dual", "residual"])
def test_the_bits_of_every_radius_are_a_cpu_s(radius: str) -> None:
    equal(PaperWorld(), [replace(spec, radius=radius) for spec in SPECS], 32, 4_000)


def test_lanes_share_no_set_that_each_chooses_for_itself() -> None:
    assert engine_of("SafeLucb", RADII["amm"]).team > 1
    assert engine_of("SafeLucb", RADII["dual"]).team == 1
    assert engine_of("PaperPolicy", fixed=False).team == 1


def test_the_paper_s_policies_are_numbered_as_in_the_core() -> None:
    (found,) = re.findall(r"enum class Which \{ (.*?) \}", sources()["paper_policy.hpp"])
    assert tuple(found.upper().split(", ")) == WHICH


def test_a_program_is_for_one_radius_and_one_kind_of_rows() -> None:
    options = engine_of("PaperPolicy", RADII["logdet"], fixed=False).options("sm_90")
    assert "-DRADIUS=1" in options
    assert "-DIS_FIXED=false" in options


def test_every_policy_is_tried() -> None:
    assert set(TYPES) == {spec.policy for spec in SPECS}
