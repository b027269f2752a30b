"""A constraint of your own: nobody is left behind.

A new ranking is better for most customers and worse for a small group. A floor on the total lets it in: the gain of
the many pays for the loss of the few. If that must not be, say so as a metric. Here "group" is the reward where the
customer belongs to the group, and zero elsewhere, so its floor is a floor for these customers alone. Anything that
you can compute per round, with bounds, will do.
"""

import matplotlib.pyplot as plt
import numpy as np

import surefoot

CUSTOMERS, ALPHA = 20_000, 0.1
total, group = surefoot.floor(0, 1, alpha=ALPHA), surefoot.floor(0, 1, alpha=ALPHA)
means = {("old", False): 0.30, ("new", False): 0.45, ("old", True): 0.50, ("new", True): 0.25}

figure, ax = plt.subplots(figsize=(6.4, 3.2))
for name, metrics in {
    "a floor on the total": {"all": total},
    "and one on the group": {"all": total, "group": group},
}.items():
    rng, kept, owed = np.random.default_rng(5), [], []
    guard = surefoot.Guard(delta=0.05, metrics=metrics, seed=5)
    for _ in range(CUSTOMERS):
        is_member = bool(rng.random() < 0.2)
        decision = guard.decide(baseline="old", proposal="new")
        reward = float(rng.random() < means[decision.action, is_member])
        rewards = {"all": reward, "group": reward * is_member}
        guard.observe(decision, {metric: rewards[metric] for metric in metrics})
        kept.append(means[decision.action, is_member] * is_member)
        owed.append(means["old", is_member] * is_member)
    share = np.cumsum(kept)[99:] / np.cumsum(owed)[99:]
    print(f"{name}: the group kept {share[-1]:.0%}, and the new ranking has {guard.share:.0%} of the traffic")
    ax.plot(range(100, CUSTOMERS + 1, 100), share[::100], label=name)

ax.axhline(1 - ALPHA, color="tab:red", linestyle="--", linewidth=1, label="the group's floor")
ax.set(xlabel="customers", ylabel="what the group kept", ylim=(0.4, 1.05))
ax.yaxis.set_major_formatter("{x:.0%}")
ax.legend(loc="lower left")
figure.savefig("own_constraint.svg")
