"""Modules that were renamed are still found by their old names, with a warning that says the new one."""

import importlib
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import surefoot
from surefoot._renamed import RENAMED
from surefoot.replay.baseline_fit import fit_baseline
from surefoot.replay.batch import ArrayLog
from surefoot.replay.estimators import replay
from surefoot.replay.replayed_policy import Declared
from surefoot.simulation.guard_plan import plan_guard
from surefoot.simulation.plan_worlds import PlanWorld
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.rollout_plan import plan

SOURCE = Path(surefoot.__file__).parent


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_leads_to_the_module_of_today_and_warns(old: str) -> None:
    new, parent = RENAMED[old], old.rpartition(".")[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module(f"surefoot.{parent}")
    sys.modules.pop(f"surefoot.{old}", None)
    with pytest.warns(DeprecationWarning, match=f"is called `surefoot.{new}` now"):
        found = importlib.import_module(f"surefoot.{old}")
    assert found is importlib.import_module(f"surefoot.{new}")
    del sys.modules[f"surefoot.{old}"]


def test_a_function_that_had_the_name_of_its_old_module_can_still_be_called() -> None:
    code = (
        "import warnings; warnings.simplefilter('ignore'); import surefoot.replay.history\n"
        "from surefoot.replay import ArrayLog, history\n"
        "log = ArrayLog(features=[[[1.0, 0.0]]] * 3, actions=[0] * 3, rewards=[1.0] * 3, baselines=0)\n"
        "assert len(history(log)[1]) == 3"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_old_name_is_the_name_of_a_module_of_today() -> None:
    taken = [old for old in RENAMED if (SOURCE / (old.replace(".", "/") + ".py")).exists()]
    assert taken == []


def test_the_bounds_of_single_rewards_are_still_read_by_their_old_name() -> None:
    told: Any = {"noise": 0.5, "theta_bound": 1.0, "baseline_reward": 0.2}
    with pytest.warns(DeprecationWarning, match="`reward_range` is called `reward_bounds` now"):
        declared = Declared(reward_range=(0.0, 1.0), **told)  # type: ignore[call-arg]
    assert declared == Declared(reward_bounds=(0.0, 1.0), **told)
    with pytest.warns(DeprecationWarning, match="`reward_bounds` now"):
        assert declared.reward_range == (0.0, 1.0)  # type: ignore[attr-defined]
    log = ArrayLog(
        features=[[[1.0, 0.0], [0.0, 1.0]]] * 30, actions=[0, 1, 1] * 10, rewards=[1.0, 0.0, 1.0] * 10, baselines=0
    )
    with pytest.warns(DeprecationWarning, match="`reward_bounds` now"):
        assert fit_baseline(log, reward_range=(0.0, 2.0)).reward_bounds == (0.0, 2.0)  # type: ignore[call-arg]
    with pytest.warns(DeprecationWarning, match="'importance' now"):
        replay(log, [Spec("LUCB")], declared=declared, evaluator="shadow", uniform=True)  # type: ignore[arg-type]


def test_importing_surefoot_warns_of_nothing_and_loads_no_policy() -> None:
    code = "import sys, surefoot; sys.exit(any(name.startswith('surefoot.policies') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_lift_of_a_plan_is_still_read_by_its_old_name() -> None:
    told: Any = {"baseline_reward": 0.3, "per_day": 100, "alphas": [0.2], "delta": 0.05, "days": 1, "runs": 2}
    with pytest.warns(DeprecationWarning, match="`gain` is called `lift` now"):
        before = plan_guard(gain=0.3, **told)  # type: ignore[call-arg]
    assert before == plan_guard(lift=0.3, **told)
    told = {"dim": 4, "actions": 5, "baseline_reward": 0.3}
    with pytest.warns(DeprecationWarning, match="`gain` is called `lift` now"):
        world = PlanWorld(gain=0.2, **told)  # type: ignore[call-arg]
    assert world == PlanWorld(lift=0.2, **told)
    more: Any = {"noise": 0.5, "per_day": 100, "days": 1, "alphas": [0.2], "policies": ["paper"], "runs": 2}
    with pytest.warns(DeprecationWarning, match="`gain` is called `lift` now"):
        assert plan(gain=0.2, **told, **more).settings["lift"] == 0.2  # type: ignore[call-arg]
