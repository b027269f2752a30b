"""Sweeps: the table, resuming, refusing, and TOML files."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from surefoot.errors import ConfigError
from surefoot.simulation import sweep as sweeps
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.rewards import Bernoulli, Bounded, Gaussian
from surefoot.simulation.sweep import Part, Sweep, read_sweep, run_sweep, sweep_from
from surefoot.simulation.worlds import ArmsWorld, Baseline, ContextualWorld, FunctionWorld, PaperWorld

SPECS = [Spec("LUCB"), Spec("CLUCB", alpha=0.1), Spec("CLUCB2", alpha=0.1, floor_share=0.5)]


def small(runs: int = 30, horizon: int = 200, seed: int = 0) -> Sweep:
    return Sweep([Part("paper", PaperWorld(), SPECS, runs=runs, horizon=horizon, seed=seed, watched=(0.1, 0.4))])


def test_two_thread_counts_and_a_continued_sweep_give_identical_tables(tmp_path: Path) -> None:
    one = run_sweep(small(), tmp_path / "one", threads=1)
    two = run_sweep(small(), tmp_path / "two", threads=2)
    assert one.equals(two)
    cells = sorted((tmp_path / "one" / "cells").glob("*.npy"))
    assert len(cells) == 2
    cells[1].unlink()  # as if stopped after the first chunk
    (tmp_path / "one" / "results.csv").unlink()
    seen: list[tuple[int, int]] = []
    again = run_sweep(small(), tmp_path / "one", progress=lambda done, total: seen.append((done, total)))
    assert again.equals(one)
    assert seen[0][0] == 20 * 200 * 3
    assert seen[-1] == (30 * 200 * 3, 30 * 200 * 3)
    for name in ("results.csv", "results.parquet"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_sweep_killed_in_the_middle_goes_on_to_the_same_table(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; import sys; from tests.simulation.test_sweep import small;"
        "from surefoot.simulation.sweep import run_sweep; run_sweep(small(400, 4000), Path(sys.argv[1]), threads=1)"
    )
    killed = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", code, str(killed)], cwd=Path(__file__).parents[2])
    deadline = time.monotonic() + 120
    while len(list(killed.glob("cells/[!.]*.npy"))) < 2 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    done = len(list(killed.glob("cells/[!.]*.npy")))
    assert 2 <= done < 20, "the kill must have come in the middle"
    assert run_sweep(small(400, 4000), killed).equals(run_sweep(small(400, 4000), tmp_path / "whole"))


def test_a_folder_of_other_settings_is_refused_before_any_work(tmp_path: Path) -> None:
    run_sweep(small(), tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    with pytest.raises(ConfigError, match=r"holds a result of other settings. Nothing was changed"):
        run_sweep(small(seed=1), tmp_path / "out")
    assert before == {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match=r"it holds other files. Nothing was changed"):
        run_sweep(small(), tmp_path / "mine")


def test_results_of_another_version_are_refused_whichever_module_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sweep(small(), tmp_path / "out")
    room = shutil.copytree(
        Path(sweeps.__file__).parent, tmp_path / "room", ignore=shutil.ignore_patterns("__pycache__")
    )
    made_by = sweeps.code_of_results()
    monkeypatch.setattr(sweeps, "__file__", str(room / "sweep.py"))
    assert sweeps.code_of_results.__wrapped__() == made_by, "wherever it is installed"
    with (room / "worlds.py").open("a") as worlds:  # which draws the worlds, and is no part of the core
        worlds.write("# another draw\n")
    other = sweeps.code_of_results.__wrapped__()
    assert other != made_by
    monkeypatch.setattr(sweeps, "code_of_results", lambda: other)
    with pytest.raises(ConfigError, match=r"holds a result of another version of surefoot\. Nothing was changed"):
        run_sweep(small(), tmp_path / "out")


def test_doubling_the_runs_halves_the_variance(tmp_path: Path) -> None:
    """The squared standard error of a mean over n runs estimates sigma^2 / n; its own relative error is known."""
    errors = {}
    for runs in (200, 400):
        part = Part("paper", PaperWorld(), [Spec("LUCB")], runs=runs, horizon=300, seed=runs)
        table = run_sweep(Sweep([part]), tmp_path / str(runs))
        last = table.filter((pl.col("measure") == "regret") & (pl.col("round") == 300))
        errors[runs] = float(last["stderr"][0]) ** 2
    # ln of a sample variance has standard error about sqrt((kurtosis - 1) / n); 6 bounds the kurtosis seen here.
    spread = 5 * np.sqrt((6 - 1) / 200 + (6 - 1) / 400)
    assert abs(np.log(errors[200] / errors[400]) - np.log(2)) < spread


def test_the_table_says_what_the_outcomes_say(tmp_path: Path) -> None:
    table = run_sweep(small(), tmp_path / "out")
    assert table.columns[:9] == ["world", "policy", "alpha", "seed", "runs", "horizon", "round", "measure", "watched"]
    regret = table.filter((pl.col("measure") == "regret") & (pl.col("policy") == "LUCB"))
    per_round = table.filter((pl.col("measure") == "regret_per_round") & (pl.col("policy") == "LUCB"))
    assert (regret["mean"] / regret["round"]).to_list() == pytest.approx(per_round["mean"].to_list())
    assert (regret["q05"] <= regret["q50"]).all()
    assert (regret["q50"] <= regret["q95"]).all()
    violated = table.filter(pl.col("measure") == "violated_share")
    assert set(violated.filter(pl.col("policy") == "LUCB")["watched"]) == {0.1, 0.4}
    assert set(violated.filter(pl.col("policy") == "CLUCB")["watched"]) == {0.1}
    assert pl.read_csv(tmp_path / "out" / "results.csv").height == table.height


TOML = """
title = "two worlds"
runs = 4
horizon = 50
seeds = [1, 2]
watched = [0.1]

[worlds.paper]
kind = "paper"
instance = "as-written"
baseline = {rank = 3}
actions = 9

[worlds.clicks]
kind = "contextual"
sign = "any"
rewards = {kind = "bernoulli"}
delay = 2.5

[worlds.arms]
kind = "arms"
actions = 4
dim = 4
rewards = {kind = "bounded", width = 0.2}
baseline = {action = 1}

[[policies]]
policy = "LUCB"

[[policies]]
policy = "CLUCB"
alpha = [0.05, 0.1]
ridge = 0.3
"""


def test_a_toml_file_becomes_the_sweep_it_describes(tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(TOML)
    sweep = read_sweep(tmp_path / "sweep.toml")
    assert [(part.name, part.seed) for part in sweep.parts] == [
        ("paper", 1), ("paper", 2), ("clicks", 1), ("clicks", 2), ("arms", 1), ("arms", 2)
    ]  # fmt: skip
    assert sweep.parts[0].world == PaperWorld(instance="as-written", baseline=Baseline(rank=3), actions=9)
    assert sweep.parts[2].world == ContextualWorld(sign="any", rewards=Bernoulli(), delay=2.5)
    assert sweep.parts[4].world == ArmsWorld(actions=4, dim=4, rewards=Bounded(0.2), baseline=Baseline(action=1))
    assert list(sweep.parts[0].specs) == [
        Spec("LUCB"), Spec("CLUCB", alpha=0.05, ridge=0.3), Spec("CLUCB", alpha=0.1, ridge=0.3)
    ]  # fmt: skip
    table = run_sweep(sweep, tmp_path / "out")
    assert set(table["seed"]) == {1, 2}


def test_the_file_that_the_documentation_shows_is_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text()
    (tmp_path / "clicks.toml").write_text(page.split("```toml\n")[1].split("```")[0])
    specs = read_sweep(tmp_path / "clicks.toml").parts[0].specs
    assert [spec.name for spec in specs] == ["LUCB", "CLUCB", "CLUCB", "CLUCB", "SafeLUCB, weekly"]


GOOD: dict[str, Any] = {
    "runs": 2, "horizon": 5, "worlds": {"w": {"kind": "paper"}}, "policies": [{"policy": "LUCB"}]
}  # fmt: skip


def safe(**settings: Any) -> dict[str, Any]:
    return {"policies": [{"policy": "SafeLUCB", "alpha": 0.1, **settings}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"horizn": 5}, r"Every key of the file must be known, but got 'horizn'. Did you mean 'horizon'\?"),
        (
            {"worlds": {"w": {"kind": "papper"}}},
            r"`worlds.w.kind` must be known, but got 'papper'. Did you mean 'paper'\?",
        ),
        ({"worlds": {"w": {"kind": "paper", "instanse": "x"}}}, r"got 'instanse'. Did you mean 'instance'\?"),
        ({"worlds": {"w": {"kind": "paper", "instance": "x"}}}, r"`instance` must be 'as-written' or 'normalized'"),
        ({"worlds": {"w": {"kind": "paper", "baseline": {"rank": 101}}}}, r"`1 <= rank <= 100` must hold"),
        ({"worlds": {"w": {"kind": "paper", "rewards": {"kind": "gausian"}}}}, r"Did you mean 'gaussian'\?"),
        ({"worlds": {"w": 3}}, r"`worlds.w` must be a table"),
        ({"policies": [{"policy": "CLUBC", "alpha": 0.1}]}, r"but got 'CLUBC'. Did you mean 'CLUCB'\?"),
        ({"policies": [{"policy": "CLUCB", "alpa": 0.1}]}, r"got 'alpa'. Did you mean 'alpha'\?"),
        ({"policies": [{"alpha": 0.1}]}, r"must have a key `policy`"),
        ({"policies": {"policy": "LUCB"}}, r"`policies` must be a list of tables"),
        ({"policies": []}, r"at least one policy"),
        ({"horizon": 0}, r"`horizon` must be a whole number >= 1"),
        ({"runs": "many"}, r"`runs` must be a whole number >= 1"),
        ({"seed": 1, "seeds": [1]}, r"must not be given together"),
        ({"seeds": [-1]}, r"`seed` must be a whole number >= 0"),
        ({"watched": 0.1}, r"`watched` must be a list of numbers"),
        (safe(radius="ammm"), r"`policies.radius` must be known, but got 'ammm'. Did you mean 'amm'\?"),
        (safe(gate="fact"), r"`policies.gate` must be known, but got 'fact'. Did you mean 'facts'\?"),
        (safe(optimism="sets"), r"`policies.optimism` must be known, but got 'sets'. Did you mean 'set'\?"),
        (safe(constraint="cumulativ"), r"`policies.constraint` must be known, .* Did you mean 'cumulative'\?"),
        (safe(constraint={"name": "reserv"}), r"`policies.constraint.name` must be known.* Did you mean 'reserve'\?"),
        (safe(constraint="checkpoints"), r"'checkpoints' must say its 'every'"),
        (safe(constraint={"name": "checkpoints", "evry": 9}), r"got 'evry'. Did you mean 'every'\?"),
        (safe(constraint={"name": "checkpoints", "every": 0}), r"`every` must be a whole number >= 1"),
        (safe(constraint={"name": "reserve", "granted": "much"}), r"`policies.constraint.granted` must be a number"),
        (safe(constraint=3), r"`policies.constraint` must be known, but got 3"),
        (safe(reward_range=[0.0]), r"`policies.reward_range` must be \[low, high\]"),
        (safe(reward_range=[1.0, 0.0]), r"`low < high` must hold in reward_range"),
        (safe(realised_share=1.5), r"`0 <= realised_share < 1` must hold"),
        (safe(realised_share="half"), r"`policies.realised_share` must be a number"),
        (safe(knows_baseline=1), r"`policies.knows_baseline` must be true or false"),
        (safe(name=""), r"`policies.name` must be a text"),
        (safe(realized_share=0.1), r"got 'realized_share'. Did you mean 'realised_share'\?"),
        ({"policies": [{"policy": "CLUCB", "alpha": 0.1, "gate": "joint"}]}, r"`gate` must not be given for CLUCB"),
        (safe(alpha=[0.1, 0.1]), r"its own name or alpha, but SafeLUCB with alpha 0.1 is there 2 times"),
    ],
)
def test_a_file_with_a_mistake_is_refused_with_the_nearest_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        sweep_from({**GOOD, **change}, title="t")


def test_every_setting_of_safelucb_can_be_given_in_a_file() -> None:
    settings = {
        "name": "mine", "radius": "logdet", "gate": "joint", "optimism": "facts", "realised_share": 0.2,
        "knows_baseline": True, "constraint": {"name": "reserve", "granted": 3.0}, "reward_range": [0, 1],
    }  # fmt: skip
    (spec,) = sweep_from({**GOOD, **safe(**settings)}, title="t").parts[0].specs
    assert spec == Spec("SafeLUCB", alpha=0.1, **{**settings, "reward_range": (0, 1)})  # type: ignore[arg-type]


def test_variants_of_one_policy_stay_apart_in_the_table(tmp_path: Path) -> None:
    specs = [Spec("SafeLUCB", alpha=0.2), Spec("SafeLUCB", alpha=0.2, reward_range=(0, 1), name="with a range")]
    table = run_sweep(Sweep([Part("paper", PaperWorld(), specs, runs=3, horizon=300)]), tmp_path / "out")
    last = table.filter((pl.col("measure") == "baseline_rounds") & (pl.col("round") == 300))
    assert last["policy"].to_list() == ["SafeLUCB", "with a range"]
    assert last["mean"][1] < last["mean"][0]


def test_a_file_that_is_missing_or_broken_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must be a TOML file, but there is none"):
        read_sweep(tmp_path / "nothing.toml")
    (tmp_path / "broken.toml").write_text("runs = = 3")
    with pytest.raises(ConfigError, match="must be valid TOML"):
        read_sweep(tmp_path / "broken.toml")
    with pytest.raises(ConfigError, match="`runs` must be given"):
        sweep_from({key: value for key, value in GOOD.items() if key != "runs"}, title="t")


def test_gaussian_is_the_default_reward() -> None:
    assert sweep_from(GOOD, title="t").parts[0].world.rewards == Gaussian(1.0)


def test_two_functions_of_the_same_name_are_two_sweeps(tmp_path: Path) -> None:
    def sweep(scale: float) -> Sweep:
        world = FunctionWorld(
            dim=2, actions=2, baseline=Baseline(action=0), theta=(0.3, 0.3), feature_bound=1.0,
            function=lambda rng: scale * np.array([[0.5, 0.5], [0.1, rng.random()]]),
        )  # fmt: skip
        return Sweep([Part("mine", world, [Spec("LUCB")], runs=2, horizon=20)])

    run_sweep(sweep(0.1), tmp_path / "out")
    with pytest.raises(ConfigError, match="holds a result of other settings"):
        run_sweep(sweep(0.7), tmp_path / "out")
    run_sweep(sweep(0.1), tmp_path / "out")


def test_what_a_kill_or_a_power_cut_leaves_behind_does_not_stop_the_next_try(tmp_path: Path) -> None:
    whole = run_sweep(small(), tmp_path / "whole")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".settings.json.tmp").write_text("half")
    run_sweep(small(), tmp_path / "out")
    cell = sorted((tmp_path / "out" / "cells").glob("*.npy"))[0]
    cell.write_bytes(b"")
    assert run_sweep(small(), tmp_path / "out").equals(whole)
