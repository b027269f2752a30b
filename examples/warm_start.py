"""A warm start from a log.

What today's strategy did before can be learned before the first round, as long as it was chosen without looking at
its reward. The learner then starts where it would have been after all these rounds, and the floor holds as before.
"""

import matplotlib.pyplot as plt
import numpy as np

import surefoot

ROUNDS, RUNS, rates = 1500, 8, np.array([0.5, 0.35, 0.6])
offers = np.eye(3)  # offer 0 is shown today, with some rotation

figure, ax = plt.subplots(figsize=(6.4, 3.0))
for logged in (0, 1000, 5000):
    learner = np.zeros(ROUNDS)
    for run in range(RUNS):
        rng = np.random.default_rng([7, run])
        policy = surefoot.SafeLUCB(
            dim=3, alpha=0.05, delta=0.01, reward_bounds=(0, 1), theta_bound=3**0.5, feature_bound=1.0
        )
        if logged:
            shown = offers[rng.choice(3, size=logged, p=[0.8, 0.1, 0.1])]
            policy.warm_start(shown, (rng.random(logged) < shown @ rates).astype(float))
        for place in range(ROUNDS):
            decision = policy.decide(offers, baseline=0)
            policy.observe(decision, float(rng.random() < rates[decision.action]))
            learner[place] += (decision.source == "learner") / RUNS
    print(f"{logged:,} logged rounds: the learner played {learner.mean():.0%} of {ROUNDS:,} rounds")
    ax.plot(range(0, ROUNDS, 50), learner.reshape(-1, 50).mean(axis=1), label=f"{logged:,} logged rounds")

ax.set(xlabel="rounds", ylabel="the learner's share", ylim=(0, 1.02))
ax.yaxis.set_major_formatter("{x:.0%}")
ax.legend(loc="lower right")
figure.savefig("warm_start.svg")
