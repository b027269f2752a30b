"""A world that changes: what each promise is worth.

In the middle of the run today's strategy becomes much better, for instance because a competitor closed. A floor is a
share of what today's strategy *would* earn, so the floor rises, too. SafeLUCB assumes that the world stays as it is,
and breaks its promise without noticing; the guard assumes nothing of the kind, keeps asking the baseline, and hands
the traffic back.
"""

import matplotlib.pyplot as plt
import numpy as np

import surefoot

ROUNDS, CHANGE, ALPHA = 16_000, 8000, 0.1
means = {False: np.array([0.3, 0.4]), True: np.array([0.7, 0.4])}  # today and new; before the change and after

figure, ax = plt.subplots(figsize=(6.4, 3.2))
linear = surefoot.SafeLUCB(dim=2, alpha=ALPHA, delta=0.05, reward_bounds=(0, 1), theta_bound=2**0.5, feature_bound=1.0)
guard = surefoot.Guard(alpha=ALPHA, delta=0.05, seed=6)
for name, policy in {"SafeLUCB, which assumes that nothing changes": linear, "a guard": guard}.items():
    rng, earned, owed = np.random.default_rng(6), [], []
    for place in range(ROUNDS):
        now = means[place >= CHANGE]
        decision = linear.decide(np.eye(2), baseline=0) if policy is linear else guard.decide(baseline=0, proposal=1)
        policy.observe(decision, float(rng.random() < now[decision.action]))
        earned.append(now[decision.action])
        owed.append(now[0])
    kept = np.cumsum(earned) / np.cumsum(owed)
    print(f"{name}: {kept[CHANGE - 1]:.0%} of today's strategy before the change, {kept[-1]:.0%} in the end")
    ax.plot(range(50, ROUNDS + 1, 50), kept[49::50], label=name)

ax.axvline(CHANGE, color="0.6", linewidth=1)
ax.axhline(1 - ALPHA, color="tab:red", linestyle="--", linewidth=1, label="the floor")
ax.set(xlabel="rounds", ylabel="earned so far, as a share\nof today's strategy")
ax.yaxis.set_major_formatter("{x:.0%}")
ax.legend(loc="upper right")
figure.savefig("drift.svg")
