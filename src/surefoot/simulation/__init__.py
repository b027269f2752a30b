"""Worlds and engines: what a policy would do, over many realisations at once."""

from typing import TYPE_CHECKING

from surefoot._lazy import lazy

if TYPE_CHECKING:
    from surefoot.simulation import rollout_plan as rollout_plan
    from surefoot.simulation.broken_worlds import DriftingWorld as DriftingWorld
    from surefoot.simulation.broken_worlds import MisspecifiedWorld as MisspecifiedWorld
    from surefoot.simulation.contestants import Contestant as Contestant
    from surefoot.simulation.contestants import Playable as Playable
    from surefoot.simulation.engine import Outcome as Outcome
    from surefoot.simulation.engine import default_checkpoints as default_checkpoints
    from surefoot.simulation.engine import simulate as simulate
    from surefoot.simulation.fleet import Fleet as Fleet
    from surefoot.simulation.fleet import FleetOutcome as FleetOutcome
    from surefoot.simulation.fleet import simulate_fleet as simulate_fleet
    from surefoot.simulation.guard_plan import GuardRollout as GuardRollout
    from surefoot.simulation.guard_plan import plan_guard as plan_guard
    from surefoot.simulation.guard_simulation import GuardOutcome as GuardOutcome
    from surefoot.simulation.guard_simulation import simulate_guard as simulate_guard
    from surefoot.simulation.guarded_env import GuardedEnv as GuardedEnv
    from surefoot.simulation.gym import BanditEnv as BanditEnv
    from surefoot.simulation.policy_specs import Spec as Spec
    from surefoot.simulation.problem import Problem as Problem
    from surefoot.simulation.realisations import Baseline as Baseline
    from surefoot.simulation.realisations import Block as Block
    from surefoot.simulation.realisations import FixedRealisation as FixedRealisation
    from surefoot.simulation.realisations import FreshRealisation as FreshRealisation
    from surefoot.simulation.realisations import Realisation as Realisation
    from surefoot.simulation.rewards import Bernoulli as Bernoulli
    from surefoot.simulation.rewards import Bounded as Bounded
    from surefoot.simulation.rewards import Gaussian as Gaussian
    from surefoot.simulation.rewards import Rewards as Rewards
    from surefoot.simulation.sweep import Part as Part
    from surefoot.simulation.sweep import Sweep as Sweep
    from surefoot.simulation.sweep import run_sweep as run_sweep
    from surefoot.simulation.sweep_config import read_sweep as read_sweep
    from surefoot.simulation.worlds import ArmsWorld as ArmsWorld
    from surefoot.simulation.worlds import ContextualWorld as ContextualWorld
    from surefoot.simulation.worlds import FunctionWorld as FunctionWorld
    from surefoot.simulation.worlds import PaperWorld as PaperWorld
    from surefoot.simulation.worlds import World as World

__getattr__, __dir__ = lazy(
    __name__,
    {
        "": ("rollout_plan",),
        "broken_worlds": ("DriftingWorld", "MisspecifiedWorld"),
        "contestants": ("Contestant", "Playable"),
        "engine": ("Outcome", "default_checkpoints", "simulate"),
        "fleet": ("Fleet", "FleetOutcome", "simulate_fleet"),
        "guard_plan": ("GuardRollout", "plan_guard"),
        "guard_simulation": ("GuardOutcome", "simulate_guard"),
        "guarded_env": ("GuardedEnv",),
        "gym": ("BanditEnv",),
        "policy_specs": ("Spec",),
        "problem": ("Problem",),
        "realisations": ("Baseline", "Block", "FixedRealisation", "FreshRealisation", "Realisation"),
        "rewards": ("Bernoulli", "Bounded", "Gaussian", "Rewards"),
        "sweep": ("Part", "Sweep", "run_sweep"),
        "sweep_config": ("read_sweep",),
        "worlds": ("ArmsWorld", "ContextualWorld", "FunctionWorld", "PaperWorld", "World"),
    },
)

__all__ = [
    "ArmsWorld",
    "BanditEnv",
    "Baseline",
    "Bernoulli",
    "Block",
    "Bounded",
    "Contestant",
    "ContextualWorld",
    "DriftingWorld",
    "FixedRealisation",
    "Fleet",
    "FleetOutcome",
    "FreshRealisation",
    "FunctionWorld",
    "Gaussian",
    "GuardOutcome",
    "GuardRollout",
    "GuardedEnv",
    "MisspecifiedWorld",
    "Outcome",
    "PaperWorld",
    "Part",
    "Playable",
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
    "simulate_fleet",
    "simulate_guard",
]
