"""Prices: more revenue, with a ceiling on refunds.

A new price may earn more per visitor, and nobody knows how much of it will come back. Two promises at once: revenue
stays above 95% of today's, and refunds below 120% of today's. Each is a metric of the guard, and the certificate says
which one holds the rollout back.
"""

from collections import Counter

import matplotlib.pyplot as plt
import numpy as np

import surefoot

VISITORS, TODAY, NEW = 30_000, 20.0, 24.0
rng = np.random.default_rng(2)
guard = surefoot.Guard(
    delta=0.05,
    metrics={
        "revenue": surefoot.floor(0, 30, alpha=0.05),
        "refunds": surefoot.ceiling(0, 30, alpha=0.2, reserve=100.0),  # a first try may cost 100 in all
    },
    seed=3,
)
shares, binds = [], Counter[str]()
for _ in range(VISITORS):
    decision = guard.decide(baseline=TODAY, proposal=NEW)
    price = float(decision.action)
    bought = rng.random() < (0.31 if price == NEW else 0.30)
    is_back = bought and rng.random() < (0.06 if price == NEW else 0.08)
    guard.observe(decision, {"revenue": price * bought, "refunds": price * is_back})
    shares.append(guard.share)
    binds[decision.certificate.binds] += 1

low, high = guard.lift_intervals["revenue"]
print(f"revenue per visitor: {low:+.2f} to {high:+.2f}")
print(f"what held it back: {', '.join(f'{metric} in {rounds:,} rounds' for metric, rounds in binds.most_common())}")
figure, ax = plt.subplots(figsize=(6.4, 3.0))
ax.plot(range(0, VISITORS, 300), np.reshape(shares, (-1, 300)).mean(axis=1))
ax.set(xlabel="visitors", ylabel="share of the new price", ylim=(0, 1))
ax.yaxis.set_major_formatter("{x:.0%}")
figure.savefig("prices.svg")
