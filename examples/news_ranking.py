"""News: which article leads the page.

Editors lead with the freshest article. A learner knows what each reader likes and what each article is about, and
could do better; but while it finds out, readers leave. Without a floor it falls below 90% of the editors' clicks at
first. With one it does not, and ends up as well.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import surefoot

TOPICS, ARTICLES, READERS, ALPHA = 12, 8, 6000, 0.1
rng = np.random.default_rng(4)
# What nobody knows: how much a reader's own topic adds to the clicks, topic by topic, and how much freshness does.
theta = np.array([*rng.choice([-0.15, 0.0, 0.35], size=TOPICS), 0.45, 0.2])

visits = []
for _ in range(READERS):
    topics, freshness = rng.integers(TOPICS, size=ARTICLES), np.sort(rng.random(ARTICLES))[::-1]  # the freshest first
    is_liked = np.eye(TOPICS)[topics] * (rng.random(ARTICLES) < 0.5)[:, None]
    visits.append((np.column_stack([is_liked, freshness, np.ones(ARTICLES)]) / 3**0.5, rng.random()))
theta = theta * 3**0.5 / 2

declared: dict[str, Any] = {"dim": TOPICS + 2, "delta": 0.01, "noise": 0.5, "theta_bound": 2.0, "feature_bound": 1.0}
policies = {
    "no floor (LUCB)": surefoot.LUCB(ridge=1.0, **declared),
    "under a floor (SafeLUCB)": surefoot.SafeLUCB(alpha=ALPHA, reward_bounds=(0, 1), **declared),
}

figure, ax = plt.subplots(figsize=(6.4, 3.2))
for name, policy in policies.items():
    earned, owed = [], []
    for rows, luck in visits:
        decision = policy.decide(rows, baseline=0)  # article 0 is the freshest
        policy.observe(decision, float(luck < rows[decision.action] @ theta))
        earned.append(rows[decision.action] @ theta)
        owed.append(rows[0] @ theta)
    kept = np.cumsum(earned) / np.cumsum(owed)
    print(f"{name}: at worst {kept.min():.0%} of the editors' clicks, {kept[-1]:.0%} in the end")
    readers = np.unique(np.geomspace(1, READERS, 200).astype(int))
    ax.plot(readers, kept[readers - 1], label=name)

ax.axhline(1 - ALPHA, color="tab:red", linestyle="--", linewidth=1, label="the floor")
ax.set(xscale="log", xlabel="readers", ylabel="clicks so far, as a\nshare of the editors'")
ax.yaxis.set_major_formatter("{x:.0%}")
ax.legend()
figure.savefig("news_ranking.svg")
