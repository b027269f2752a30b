"""The worlds of a plan: today's action earns what is known of it, and the best one as much more as is hoped for."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surefoot.arrays import Matrix, positive
from surefoot.linear.features import FeatureMap, OneHot
from surefoot.simulation.worlds import Baseline, Realisation, World


@dataclass(frozen=True)
class PlanWorld(World):
    """Random actions of which one, the baseline, earns `baseline_reward` and the best one `lift` more, as a share."""

    baseline: Baseline = field(default_factory=lambda: Baseline(action=0))
    baseline_reward: float = 0.5
    lift: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("baseline_reward", self.baseline_reward, hint="baseline_reward is what today's action earns.")
        positive("lift", self.lift, hint="lift is how much more the best action earns; 0.1 is 10%.")

    def realise(self, seed: np.random.SeedSequence) -> Realisation:
        """Draw rows with positive means; scale them to the best reward, and make row 0 the baseline."""
        rng, shared = self._parts(seed)
        theta = rng.standard_normal(self.dim)
        rows = rng.standard_normal((self.actions, self.dim))
        # Mirrored instead of drawn again: as likely, and as many rows as were asked for.
        rows[rows @ theta < 0] *= -1
        best = self.baseline_reward * (1 + self.lift)
        means = rows @ theta
        theta = theta * (best / means.max())
        means = rows @ theta
        # The action whose reward is nearest becomes the baseline; stretching its row makes that exact.
        order = np.argsort(-means, kind="stable")
        # Never the best row itself, which has to earn `lift` more.
        chosen = int(order[1:][np.argmin(np.abs(means[order[1:]] - self.baseline_reward))])
        rows[chosen] *= self.baseline_reward / means[chosen]
        rows[[0, chosen]] = rows[[chosen, 0]]
        return Realisation(
            rows=np.ascontiguousarray(rows),
            theta=theta,
            theta_bound=float(np.linalg.norm(theta)),
            feature_bound=float(np.linalg.norm(rows, axis=1).max()),
            **shared,
        )


@dataclass(frozen=True)
class MappedWorld(PlanWorld):
    """The same over the rows of a feature map that gives every action a theta of its own, and contexts drawn evenly.

    Action 0 is the baseline, whatever the context, and the others earn between half as much and the best.
    """

    phi: FeatureMap | None = None
    theta_bound: float = 0.0

    @property
    def fixed(self) -> bool:  # type: ignore[override]
        """Without a context all rounds are alike."""
        return isinstance(self.phi, OneHot)

    def realise(self, seed: np.random.SeedSequence) -> Realisation:
        """Draw the means of the actions."""
        assert self.phi is not None
        rng, shared = self._parts(seed)
        means = self.baseline_reward * rng.uniform(0.5, 1.0 + self.lift, self.actions)
        means[:2] = self.baseline_reward, self.baseline_reward * (1.0 + self.lift)
        theta = np.zeros((self.actions, self.dim // self.actions))
        theta[:, 0] = means
        told: dict[str, Any] = {
            "theta": theta.ravel(),
            "theta_bound": max(self.theta_bound, float(np.linalg.norm(means))),
            "feature_bound": self.phi.bound * (1 + 1e-9),
            **shared,
        }
        if isinstance(self.phi, OneHot):
            return Realisation(rows=np.eye(self.actions), **told)
        return Realisation(draw=self._rows, **told)

    def _rows(self, rng: np.random.Generator) -> Matrix:
        """Rows (1, x) in the block of each action, x drawn afresh in every round."""
        width, at = self.dim // self.actions, np.arange(self.actions)
        rows = np.zeros((self.actions, self.actions, width))
        rows[at, at, 0] = 1.0
        rows[at, at, 1:] = rng.random(width - 1) / math.sqrt(max(1, width - 1))
        return rows.reshape(self.actions, -1)
