"""Policies as objects in the engine's rounds: those written in Python, and a check of those that are compiled."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix
from surefoot.errors import PolicyError
from surefoot.linear.actions import Catalogue
from surefoot.policies import CLUCB, CLUCB2, LUCB, UCB, ConservativeUCB, SafeLUCB
from surefoot.policies.arm_policy import ArmPolicy
from surefoot.policies.linear_policy import LinearPolicy
from surefoot.simulation.contestants import Entrant, Playable, needs_baseline_reward, played_row
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.problem import Problem
from surefoot.simulation.realisations import Block, Realisation
from surefoot.simulation.rewards import reward_of


class BlockRunner(Protocol):
    """One policy in one realisation, compiled or not: it plays block after block, and counts."""

    def play(
        self,
        block: Block,
        realisation: Realisation,
        tally: Any,
        checkpoints: NDArray[np.int64],
        kept: Matrix,
        trace: NDArray[np.int64],
    ) -> None:
        """Play one block of rounds; counts at checkpoints go to `kept`, actions to `trace` if that has room."""
        ...


def policy_of(spec: Spec, problem: Problem) -> LinearPolicy | ArmPolicy:
    """The policy object that a spec stands for."""
    mean, dim = problem.baseline_reward or 0.0, problem.dim
    told: dict[str, Any] = dict(spec.settings_in(problem))
    if spec.radius is not None and spec.policy not in ("UCB", "ConservativeUCB"):
        told["radius"] = spec.radius
    if spec.policy == "LUCB":
        return LUCB(dim=dim, **told)
    if spec.policy == "UCB":
        return UCB(arms=problem.actions, noise=told["noise"])
    assert spec.alpha is not None
    if spec.policy == "CLUCB":
        return CLUCB(dim=dim, alpha=spec.alpha, **told)
    if spec.policy == "ConservativeUCB":
        known = mean if spec.knows_baseline else None
        return ConservativeUCB(
            arms=problem.actions,
            alpha=spec.alpha,
            delta=spec.delta,
            noise=told["noise"],
            reward_bounds=spec.reward_bounds,
            baseline_reward=known,
        )
    if spec.policy == "SafeLUCB":
        floor = spec.floor_share * mean
        told["misspecification"] = problem.misspecification
        return SafeLUCB(dim=dim, alpha=spec.alpha, reward_floor=floor, **spec.safe_settings(), **told)
    nesting: Any = "exact" if spec.policy == "CLUCB2-exact" else "latest"
    return CLUCB2(dim=dim, alpha=spec.alpha, reward_floor=spec.floor_share * mean, nesting=nesting, **told)


def new_object(entrant: Entrant, problem: Problem) -> Playable:
    """The policy object of a spec or of a contestant."""
    return policy_of(entrant, problem) if isinstance(entrant, Spec) else entrant.new_policy(problem)


class ObjectRunner:
    """One policy object in one realisation, with the same counts and the same late rewards as the compiled loop."""

    def __init__(self, entrant: Entrant, problem: Problem, rows: Matrix | None = None, *, run: int = 0) -> None:
        self.policy = new_object(entrant, problem)
        if isinstance(entrant, Spec):
            knows = entrant.policy == "SafeLUCB" and entrant.knows_baseline
            self._tells = knows or needs_baseline_reward(self.policy)
        else:
            self._tells = entrant.tells(self.policy)
        self._entrant, self._run = entrant, run
        # A catalogue is not an array, so that only policies that know of it get one.
        takes_catalogue = isinstance(self.policy, LinearPolicy) or isinstance(entrant, Spec)
        self._catalogue = Catalogue(rows) if rows is not None and takes_catalogue else None
        self._pending: list[tuple[int, Any, float]] = []

    def play(
        self,
        block: Block,
        realisation: Realisation,
        tally: Any,
        checkpoints: NDArray[np.int64],
        kept: Matrix,
        trace: NDArray[np.int64],
    ) -> None:
        """Play one block of rounds."""
        shown = block.features.view()
        # A policy of somebody's own must not change the world by accident.
        shown.flags.writeable = False
        for t in range(block.draws.size):
            k = 0 if len(block.features) == 1 else t
            round_ = int(tally.round) + 1
            baseline = int(block.baselines[t])
            owed = float(block.means[k, baseline])
            try:
                self._learn_due(round_)
                rows: Any = self._catalogue if self._catalogue is not None else shown[k]
                decision = self.policy.decide(rows, baseline=baseline, baseline_reward=owed if self._tells else None)
                row, is_learner = played_row(decision, block.means.shape[1], baseline)
                mean = float(block.means[k, row])
                reward = reward_of(realisation.rewards.kind, realisation.rewards.scale, mean, block.draws[t])
                if block.delays[t] > 0:
                    self._pending.append((round_ + int(block.delays[t]), decision, reward))
                else:
                    self.policy.observe(decision, reward)
            except Exception as error:
                if isinstance(self._entrant, Spec):
                    raise
                raise PolicyError(
                    f"{self._entrant.policy!r} failed in run {self._run}, round {round_}: "
                    f"{type(error).__name__}: {error!s:.300}"
                ) from error
            tally.count(mean, float(block.means[k].max()), owed, is_learner)
            if t < trace.size:
                trace[t] = row if is_learner else -1 - row
            kept[checkpoints == round_] = tally.row()

    def _learn_due(self, round_: int) -> None:
        # In the order of decisions, since that is how they were put here.
        due = [entry for entry in self._pending if entry[0] <= round_]
        self._pending = [entry for entry in self._pending if entry[0] > round_]
        for _, decision, reward in due:
            self.policy.observe(decision, reward)
