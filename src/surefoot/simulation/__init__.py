"""Worlds and engines: what a policy would do, over many realisations at once."""

from typing import TYPE_CHECKING

from surefoot._lazy import lazy

if TYPE_CHECKING:
    from surefoot.simulation import rollout_plan as rollout_plan
    from surefoot.simulation.engine import Outcome as Outcome
    from surefoot.simulation.engine import default_checkpoints as default_checkpoints
    from surefoot.simulation.engine import simulate as simulate
    from surefoot.simulation.guard_simulation import GuardOutcome as GuardOutcome
    from surefoot.simulation.guard_simulation import GuardRollout as GuardRollout
    from surefoot.simulation.guard_simulation import plan_guard as plan_guard
    from surefoot.simulation.guard_simulation import simulate_guard as simulate_guard
    from surefoot.simulation.gym import BanditEnv as BanditEnv
    from surefoot.simulation.gym import GuardedEnv as GuardedEnv
    from surefoot.simulation.policy_specs import Problem as Problem
    from surefoot.simulation.policy_specs import Spec as Spec
    from surefoot.simulation.rewards import Bernoulli as Bernoulli
    from surefoot.simulation.rewards import Bounded as Bounded
    from surefoot.simulation.rewards import Gaussian as Gaussian
    from surefoot.simulation.rewards import Rewards as Rewards
    from surefoot.simulation.sweep import Part as Part
    from surefoot.simulation.sweep import Sweep as Sweep
    from surefoot.simulation.sweep import read_sweep as read_sweep
    from surefoot.simulation.sweep import run_sweep as run_sweep
    from surefoot.simulation.worlds import ArmsWorld as ArmsWorld
    from surefoot.simulation.worlds import Baseline as Baseline
    from surefoot.simulation.worlds import Block as Block
    from surefoot.simulation.worlds import ContextualWorld as ContextualWorld
    from surefoot.simulation.worlds import DriftingWorld as DriftingWorld
    from surefoot.simulation.worlds import FunctionWorld as FunctionWorld
    from surefoot.simulation.worlds import MisspecifiedWorld as MisspecifiedWorld
    from surefoot.simulation.worlds import PaperWorld as PaperWorld
    from surefoot.simulation.worlds import Realisation as Realisation
    from surefoot.simulation.worlds import World as World

__getattr__, __dir__ = lazy(
    __name__,
    {
        "": ("rollout_plan",),
        "engine": ("Outcome", "default_checkpoints", "simulate"),
        "guard_simulation": ("GuardOutcome", "GuardRollout", "plan_guard", "simulate_guard"),
        "gym": ("BanditEnv", "GuardedEnv"),
        "policy_specs": ("Problem", "Spec"),
        "rewards": ("Bernoulli", "Bounded", "Gaussian", "Rewards"),
        "sweep": ("Part", "Sweep", "read_sweep", "run_sweep"),
        "worlds": (
            "ArmsWorld",
            "Baseline",
            "Block",
            "ContextualWorld",
            "DriftingWorld",
            "FunctionWorld",
            "MisspecifiedWorld",
            "PaperWorld",
            "Realisation",
            "World",
        ),
    },
)

__all__ = [
    "ArmsWorld",
    "BanditEnv",
    "Baseline",
    "Bernoulli",
    "Block",
    "Bounded",
    "ContextualWorld",
    "DriftingWorld",
    "FunctionWorld",
    "Gaussian",
    "GuardOutcome",
    "GuardRollout",
    "GuardedEnv",
    "MisspecifiedWorld",
    "Outcome",
    "PaperWorld",
    "Part",
    "Problem",
    "Realisation",
    "Rewards",
    "Spec",
    "Sweep",
    "World",
    "default_checkpoints",
    "plan_guard",
    "read_sweep",
    "rollout_plan",
    "run_sweep",
    "simulate",
    "simulate_guard",
]
