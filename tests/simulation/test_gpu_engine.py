"""The engine on a GPU: its kernels compile without one, and where there is one the bits are a CPU's."""

import importlib.util
import os
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from surefoot.core import gpu_program
from surefoot.core.gpu_program import Compiler, program, source, sources
from surefoot.errors import ConfigError, WorkerError
from surefoot.linear.radius import RADII
from surefoot.simulation import ArmsWorld, Baseline, ContextualWorld, PaperWorld, Spec, simulate
from surefoot.simulation import engine as cpu
from surefoot.simulation.engine import ChunkTask
from surefoot.simulation.gpu_engine import TYPES, Device, GpuExecutor, engine_of, refusal, set_up
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


LUCB = engine_of("Lucb", RADII["paper"], fixed=True, dim=4)


@pytest.mark.parametrize(
    ("policy", "dim", "fixed"),
    [
        ("Clucb2", 5, False),
        *(
            pytest.param(policy, dim, fixed, marks=pytest.mark.long)
            for policy in TYPES.values()
            for dim, fixed in ((2, True), (4, True), (8, False), (16, True))
        ),
    ],
)
def test_the_core_compiles_for_a_gpu(policy: str, dim: int, fixed: bool) -> None:
    # The architecture of a virtual machine: what a device's own compiler needs minutes for is left out.
    options = engine_of(policy, RADII["amm"], fixed=fixed, dim=dim).options("compute_90")
    code = Compiler().compile(source(), sources(), options, kind="PTX").decode()
    assert ".entry play" in code
    assert ".entry draw" in code
    assert "fma.rn.f64" not in code  # a CPU fuses nothing


def test_what_does_not_compile_says_why() -> None:
    engine = replace(LUCB, policy="no_such_policy")
    with pytest.raises(ConfigError, match="no_such_policy"):
        Compiler().compile(source(), sources(), engine.options("compute_90"), kind="PTX")


def test_structs_that_the_host_writes_otherwise_do_not_compile() -> None:
    wrong = replace(LUCB, task_bytes=LUCB.task_bytes + 8)
    with pytest.raises(ConfigError, match="static assertion failed"):
        Compiler().compile(source(), sources(), wrong.options("compute_90"), kind="PTX")


def test_a_program_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled: list[Any] = []

    def compile_(self: Compiler, *given: Any, **more: Any) -> bytes:
        compiled.append(given)
        return b"code"

    monkeypatch.setattr(Compiler, "compile", compile_)
    assert program(LUCB, "sm_90").read_bytes() == b"code"
    assert program(LUCB, "sm_90") == program(LUCB, "sm_90")
    assert len(compiled) == 1
    program(LUCB, "sm_80")
    monkeypatch.setattr(gpu_program, "source", lambda: source() + "\n")
    program(LUCB, "sm_90")
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
        name = program(LUCB, "sm_70").name
        (tmp_path / "surefoot" / name).write_bytes(b"not ours")
        monkeypatch.setattr(gpu_program, "_elsewhere", {})
        owner = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: owner)
    architecture = "sm_90" if refused == "mkdir" else "sm_70"
    assert program(LUCB, architecture).read_bytes() == b"code"


@pytest.mark.parametrize(
    ("world", "spec", "why"),
    [
        (PaperWorld(delay=3.0), Spec("LUCB"), "delayed rewards"),
        (ArmsWorld(actions=4, dim=4, baseline=Baseline(rank=2)), Spec("UCB"), "UCB is not one of"),
        (PaperWorld(), Spec("CLUCB2-exact", alpha=0.1), "not one of"),
        (ContextualWorld(dim=17), Spec("LUCB"), "for up to 16 dimensions, and this world has 17"),
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


class FakeDevice:
    """In a device's place: the CPU, which notes the runs that it played."""

    def __init__(self, index: int) -> None:
        self.played: list[list[int]] = []
        self.index = index

    def play(self, world: Any, policies: Any, *, runs: Any, **rest: Any) -> Any:
        self.played.append(list(runs))
        if rest["seed"] == 13:
            raise ConfigError("bad luck")
        return cpu.play_chunk(world, policies, runs=runs, **rest)


@pytest.fixture
def executor(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("surefoot.simulation.gpu_engine.Device", FakeDevice)
    with GpuExecutor(1) as made:
        yield made


def test_chunks_of_one_simulation_are_played_together(executor: Any) -> None:
    found = simulate(PaperWorld(), SPECS[:2], runs=50, horizon=60, on=executor)
    assert executor.device.played == [list(range(50))]
    for here, there in zip(simulate(PaperWorld(), SPECS[:2], runs=50, horizon=60), found, strict=True):
        assert np.array_equal(here.measures["regret"], there.measures["regret"])


def test_chunks_of_one_part_of_a_sweep_are_played_together(executor: Any, tmp_path: Path) -> None:
    parts = [Part(name, PaperWorld(), SPECS[:2], runs=50, horizon=60) for name in ("one", "two")]
    run_sweep(Sweep(parts), tmp_path, on=executor)
    assert executor.device.played == [list(range(50))] * 2


def test_chunks_of_two_simulations_are_not(executor: Any) -> None:
    world, specs = PaperWorld(), SPECS[:1]
    tasks = [
        ChunkTask(world, specs, [0, 1], 5, seed, [0.1], np.array(points, dtype=np.int64))
        for seed, points in ((0, [5]), (1, [5]), (1, [4, 5]), (0, [5]))
    ]
    answers = [future.result() for future in [executor.submit(task) for task in tasks]]
    assert len(executor.device.played) == 4
    assert np.array_equal(answers[0][0], answers[3][0])
    assert not np.array_equal(answers[0][0], answers[1][0])


def test_what_is_refused_the_threads_play(executor: Any) -> None:
    world = PaperWorld(delay=2.0)
    with pytest.warns(RuntimeWarning, match="so the CPU does: delayed rewards"):
        (found,) = simulate(world, SPECS[:1], runs=3, horizon=30, on=executor)
    assert executor.device.played == []
    (here,) = simulate(world, SPECS[:1], runs=3, horizon=30)
    assert np.array_equal(here.measures["regret"], found.measures["regret"])
    assert executor.submit(len, "abc").result() == 3


def test_an_error_of_the_device_is_the_caller_s(executor: Any) -> None:
    with pytest.raises(ConfigError, match="bad luck"):
        simulate(PaperWorld(), SPECS[:1], runs=30, horizon=5, seed=13, on=executor)


def test_it_ends_with_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.simulation.gpu_engine.Device", FakeDevice)
    executor = GpuExecutor(0)
    task = ChunkTask(PaperWorld(), SPECS[:1], [0], 5, 0, [], np.array([5], dtype=np.int64))
    futures = [executor.submit(task) for _ in range(3)]
    executor.shutdown()
    assert all(future.done() for future in futures)
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(task)


def test_what_has_not_begun_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.simulation.gpu_engine.Device", FakeDevice)
    monkeypatch.setattr("surefoot.simulation.gpu_engine.MOST_RUNS", 1)  # each by itself
    executor = GpuExecutor(0)
    task = ChunkTask(PaperWorld(), SPECS[:1], range(40), 2_000, 0, [], np.array([5], dtype=np.int64))
    futures = [executor.submit(task) for _ in range(50)]
    executor.shutdown(cancel_futures=True)
    assert all(future.done() for future in futures)
    assert futures[-1].cancelled()


def test_runs_are_set_up_alone_as_among_others() -> None:
    world, specs = PaperWorld(), [Spec("LUCB"), Spec("CLUCB2", alpha=0.1, floor_share=0.5)]
    among, alone = set_up(world, specs, 3, range(5), 1), set_up(world, specs, 3, [2, 3], 1)
    assert [settings[2:4] for settings in among.settings] == alone.settings
    assert alone.settings[1][0] != alone.settings[1][1]
    assert [one.noise_seed for one in among.realisations[2:4]] == [one.noise_seed for one in alone.realisations]


class Off:
    """In the place of a simulation on a device: the CPU's, which a compiler that cannot be relied on has bent."""

    def __init__(self, _: Any, world: Any, horizon: int, watched: Any, points: Any) -> None:
        self.given: Any = {"horizon": horizon, "watched": watched, "checkpoints": points}
        self.world = world

    bent = "counts"

    def play(self, specs: Any, setup: Any) -> Any:
        runs = range(len(setup.realisations))
        played = cpu.play_chunk(self.world, specs, runs=runs, seed=0, **self.given)
        numbers = getattr(played, self.bent)[-1].reshape(-1)
        numbers[0] = np.nextafter(numbers[0], 1e9)
        return played


@pytest.mark.parametrize("bent", ["counts", "learned"])
def test_a_device_whose_bits_differ_is_not_believed(bent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Off, "bent", bent)
    monkeypatch.setattr("surefoot.simulation.gpu_engine.Stage", Off)
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
@pytest.mark.parametrize("dim", [2, 3, 5, 8, 16])
def test_the_bits_of_other_dimensions_are_a_cpu_s(dim: int) -> None:
    equal(PaperWorld(dim=dim), SPECS, 32, 4_000)


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
    assert engine_of("SafeLucb", RADII["amm"], fixed=True, dim=4).team > 1
    assert engine_of("SafeLucb", RADII["dual"], fixed=True, dim=4).team == 1
    assert engine_of("Lucb", RADII["paper"], fixed=False, dim=4).team == 1


def test_a_program_is_for_one_radius_one_dimension_and_one_kind_of_rows() -> None:
    options = engine_of("Lucb", RADII["logdet"], fixed=False, dim=7).options("sm_90")
    assert {"-DPOLICY=Lucb", "-DRADIUS=1", "-DIS_FIXED=0", "-DDIM=7"} <= set(options)


def test_every_policy_is_tried() -> None:
    assert set(TYPES) == {spec.policy for spec in SPECS}
