"""A policy of your own: Thompson sampling, beside ours.

A policy is a class with a `decide` and a memory. Written once, it plays in every simulation beside the policies of
the library, on the same worlds and the same noise. Thompson sampling is good, and keeps no floor.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import surefoot
from surefoot.simulation import Baseline, Gaussian, PaperWorld, Problem, Spec, simulate


class ThompsonSampling(surefoot.Policy):
    """Plays the row that is best for a theta drawn from the posterior."""

    def __init__(self, *, dim: int, noise: float = 0.1, seed: int = 0) -> None:
        super().__init__({"dim": dim, "noise": noise, "seed": seed})
        self.dim, self.noise, self.seed = dim, noise, seed
        self._gram, self._sums = np.eye(dim), np.zeros(dim)

    def decide(self, features: Any, *, baseline: Any = None, baseline_reward: Any = None, hold: bool = False) -> Any:
        """Draws a theta, and plays its best row."""
        rows, cov = np.asarray(features, dtype=float), np.linalg.inv(self._gram)
        rng = np.random.default_rng([self.seed, self.rounds])
        theta = cov @ self._sums + self.noise * np.linalg.cholesky(cov) @ rng.normal(size=self.dim)
        best = int(np.argmax(rows @ theta))
        return self.play(rows, baseline if hold else best, proposal=best, is_held=hold)

    def learn(self, features: Any, reward: float, is_learner: bool) -> None:
        """Updates the posterior."""
        self._gram += np.outer(features, features)
        self._sums += reward * features

    def arrays(self) -> dict[str, Any]:
        """What it has learned."""
        return {"gram": self._gram.copy(), "sums": self._sums.copy()}

    def restore(self, arrays: Any) -> None:
        """Takes it back."""
        self._gram[:], self._sums[:] = arrays["gram"], arrays["sums"]


def thompson(problem: Problem) -> ThompsonSampling:
    """A new one for each run."""
    return ThompsonSampling(dim=problem.dim, seed=problem.seed)


world = PaperWorld(actions=20, rewards=Gaussian(0.1), baseline=Baseline(rank=3))
outcomes = simulate(world, [thompson, Spec("LUCB"), Spec("SafeLUCB", alpha=0.1)], runs=10, horizon=500, watched=[0.1])

figure, ax = plt.subplots(figsize=(6.4, 3.0))
for outcome in outcomes:
    worst = outcome.measures["worst_share"].mean(axis=0)
    ax.plot(outcome.checkpoints, worst, label=outcome.spec.label)
    print(f"{outcome.spec.label}: {int((outcome.violations[:, -1] > 0).sum())} of 10 runs below the floor")
ax.axhline(0.9, color="tab:red", linestyle="--", linewidth=1, label="the floor")
ax.set(xscale="log", xlabel="rounds", ylabel="least earned so far, as a\nshare of the baseline")
ax.yaxis.set_major_formatter("{x:.0%}")
ax.legend(loc="center right", bbox_to_anchor=(1.0, 0.6))
figure.savefig("own_policy.svg")
