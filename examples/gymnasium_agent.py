"""Gymnasium: an agent that goes wrong, under a guard.

`GuardedEnv` wraps any environment of single rewards. The agent's action becomes a proposal; the guard plays it or the
baseline's, and `info` says which. The agent here is epsilon-greedy and knows nothing of the guard. Halfway through, a
bug makes it play the worst arm it knows: the guard takes the traffic back.
"""

from typing import Any

import gymnasium
import matplotlib.pyplot as plt
import numpy as np

import surefoot
import surefoot.simulation.gym  # makes the ids known
from surefoot.simulation import Baseline, Bernoulli, GuardedEnv

STEPS, BUG, ALPHA = 6000, 3000, 0.1
settings: dict[str, Any] = {
    "actions": 6,
    "dim": 6,
    "rewards": Bernoulli(),
    "baseline": Baseline(rank=3),
    "horizon": STEPS,
}


def run(env: Any) -> np.ndarray:
    """What was earned in each step, as the environment knows it: regret tells how far a step was from the best."""
    rng, sums, counts, regrets = np.random.default_rng(3), np.ones(6), np.ones(6), []
    env.reset(seed=2)
    for step in range(STEPS):
        means = sums / counts
        best = int(np.argmax(means) if step < BUG else np.argmin(means))
        action = int(rng.integers(6)) if rng.random() < 0.1 else best
        _, reward, _, _, info = env.step(action)
        played = int(info.get("played", action))
        sums[played], counts[played] = sums[played] + reward, counts[played] + 1
        regrets.append(info["regret"])
    return np.cumsum(regrets)


plain = gymnasium.make("surefoot/Arms-v0", **settings)
guarded = GuardedEnv(gymnasium.make("surefoot/Arms-v0", **settings), surefoot.Guard(alpha=ALPHA, delta=0.05, seed=3))
figure, ax = plt.subplots(figsize=(6.4, 3.0))
for name, env in {"the agent alone": plain, "under a guard": guarded}.items():
    regret = run(env)
    print(f"{name}: regret {regret[BUG - 1]:.0f} before the bug, {regret[-1] - regret[BUG - 1]:.0f} after it")
    ax.plot(range(0, STEPS, 30), regret[::30], label=name)
ax.axvline(BUG, color="0.6", linewidth=1)
ax.set(xlabel="steps", ylabel="regret so far")
ax.legend()
figure.savefig("gymnasium_agent.svg")
