"""Routing: a small language model for a big one.

Easy prompts could go to a model that costs a tenth. A router guesses which are easy, and is wrong at times. The guard
keeps 98% of the big model's quality, whatever the router does, and looks at nothing but the scores. Here the router
gets better with every score.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np

import surefoot
from surefoot.learners import CallableLearner, GuardedLearner

PROMPTS, COST = 12_000, {"big": 1.0, "small": 0.1}
rng = np.random.default_rng(1)
scores = {
    length: [0.9, 1] for length in range(10)
}  # of the small model, by the prompt's length: their sum, and how many


def propose(length: int, models: Sequence[str]) -> str:
    """The small model wherever it has done nearly as well as the big one."""
    total, count = scores[length]
    return "small" if total / count > 0.87 else "big"


def learn(length: int, model: str, reward: float, probability: float, *, actions: Sequence[str]) -> None:
    """What the small model scored at this length."""
    if model == "small":
        scores[length][0] += reward
        scores[length][1] += 1


router = GuardedLearner(CallableLearner(propose, learn=learn), surefoot.Guard(alpha=0.02, delta=0.05, seed=1))
quality, reference, cost = [], [], []
for _ in range(PROMPTS):
    length = int(rng.integers(10))
    means = {"big": 0.90, "small": 0.97 - 0.02 * length}  # the small model is as good on short prompts only
    decision = router.decide(length, ["big", "small"], baseline="big")
    router.observe(decision, float(np.clip(means[decision.action] + 0.05 * rng.normal(), 0, 1)))
    quality.append(means[decision.action])
    reference.append(means["big"])
    cost.append(COST[decision.action])

kept = np.cumsum(quality) / np.cumsum(reference)
print(
    f"quality kept: at worst {kept.min():.1%}, {kept[-1]:.1%} in the end; "
    f"cost of the last thousand: {np.mean(cost[-1000:]):.0%}"
)
figure, (above, below) = plt.subplots(2, figsize=(6.4, 4.0), sharex=True)
above.plot(range(0, PROMPTS, 60), kept[::60])
above.axhline(0.98, color="tab:red", linestyle="--", linewidth=1, label="the floor")
above.set(ylabel="quality, as a share\nof the big model's")
above.legend()
below.plot(range(0, PROMPTS - 500, 60), [np.mean(cost[start : start + 500]) for start in range(0, PROMPTS - 500, 60)])
below.set(xlabel="prompts", ylabel="cost, as a share\nof the big model's", ylim=(0, 1.05))
for ax in (above, below):
    ax.yaxis.set_major_formatter("{x:.0%}")
figure.savefig("model_routing.svg")
