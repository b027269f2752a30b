"""Policies as objects in the engine's rounds: slow, for what is not compiled, and a check of what is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Vector
from surefoot.linear.actions import Catalogue
from surefoot.policies import CLUCB, CLUCB2, LUCB, UCB, ConservativeUCB, Policy, SafeLUCB
from surefoot.simulation import simulation_kernel
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.realisations import Block, Realisation
from surefoot.simulation.rewards import reward_of


def policy_of(spec: Spec, realisation: Realisation, first: Block) -> Policy:
    """The policy object that a spec stands for in one realisation."""
    mean = float(first.means[0, first.baselines[0]])
    actions, dim = first.features.shape[1:]
    told: dict[str, Any] = dict(spec.settings_in(realisation, dim))
    if spec.radius is not None and spec.policy not in ("UCB", "ConservativeUCB"):
        told["radius"] = spec.radius
    if spec.policy == "LUCB":
        return LUCB(dim=dim, **told)
    if spec.policy == "UCB":
        return UCB(arms=actions, noise=told["noise"])
    assert spec.alpha is not None
    if spec.policy == "CLUCB":
        return CLUCB(dim=dim, alpha=spec.alpha, **told)
    if spec.policy == "ConservativeUCB":
        known = mean if spec.knows_baseline else None
        return ConservativeUCB(
            arms=actions, alpha=spec.alpha, delta=spec.delta, noise=told["noise"], baseline_reward=known
        )
    if spec.policy == "SafeLUCB":
        floor = spec.floor_share * mean
        return SafeLUCB(dim=dim, alpha=spec.alpha, reward_floor=floor, **spec.safe_settings(), **told)
    nesting: Any = "exact" if spec.policy == "CLUCB2-exact" else "latest"
    return CLUCB2(dim=dim, alpha=spec.alpha, reward_floor=spec.floor_share * mean, nesting=nesting, **told)


class ObjectRunner:
    """One policy object in one realisation, with the same counts and the same late rewards as the compiled loop."""

    def __init__(self, spec: Spec, realisation: Realisation, first: Block, *, fixed: bool) -> None:
        self.policy = policy_of(spec, realisation, first)
        self._tells = spec.policy == "CLUCB" or (spec.policy == "SafeLUCB" and spec.knows_baseline)
        self._catalogue = Catalogue(first.features[0]) if fixed else None
        self._pending: list[tuple[int, Any, float]] = []

    def play(
        self,
        block: Block,
        realisation: Realisation,
        watched: Vector,
        tally: Vector,
        checkpoints: NDArray[np.int64],
        kept: NDArray[np.float64],
        trace: NDArray[np.int64],
    ) -> None:
        """One block of rounds."""
        for t in range(block.draws.size):
            k = 0 if len(block.features) == 1 else t
            round_ = int(tally[simulation_kernel.ROUND]) + 1
            self._learn_due(round_)
            baseline = int(block.baselines[t])
            owed = float(block.means[k, baseline])
            rows: Any = self._catalogue if self._catalogue is not None else block.features[k]
            decision = self.policy.decide(rows, baseline=baseline, baseline_reward=owed if self._tells else None)
            mean = float(block.means[k, decision.action])
            reward = reward_of.function(realisation.rewards.kind, realisation.rewards.scale, mean, block.draws[t])
            if block.delays[t] > 0:
                self._pending.append((round_ + int(block.delays[t]), decision, reward))
            else:
                self.policy.observe(decision, reward)
            is_learner = decision.source == "learner"
            simulation_kernel.count_round.function(tally, watched, mean, float(block.means[k].max()), owed, is_learner)
            if t < trace.size:
                trace[t] = decision.action if is_learner else -1 - decision.action
            kept[checkpoints == round_] = tally

    def _learn_due(self, round_: int) -> None:
        # In the order of decisions, since that is how they were put here.
        due = [entry for entry in self._pending if entry[0] <= round_]
        self._pending = [entry for entry in self._pending if entry[0] > round_]
        for _, decision, reward in due:
            self.policy.observe(decision, reward)
