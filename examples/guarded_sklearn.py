"""scikit-learn: a naive Bayes model that learns while it acts.

Handwritten digits as a bandit: a guess pays 1 if it is right. Today's strategy is a model that was trained on 12
pictures and is right about half of the time. A new one starts from nothing and learns from what was played. Let in at
once it would be wrong for long; under a guard it never falls below 90% of today's.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB

import surefoot
from surefoot.learners import GuardedLearner, SklearnLearner

ROUNDS, DIGITS = 2500, list(range(10))
pictures, labels = load_digits(return_X_y=True)
today = LogisticRegression(max_iter=500).fit(pictures[:12], labels[:12])
order = np.random.default_rng(0).integers(12, len(labels), size=ROUNDS)
answers = today.predict(pictures[order])

learner = SklearnLearner(MultinomialNB(), actions=DIGITS, epsilon=0.1, seed=1)
guarded = GuardedLearner(learner, surefoot.Guard(alpha=0.1, delta=0.05, seed=1))
paid, owed, changed = [], [], []
for place, answer in zip(order, answers, strict=True):
    decision = guarded.decide(pictures[place], DIGITS, baseline=int(answer))
    guarded.observe(decision, float(decision.action == labels[place]))
    paid.append(decision.action == labels[place])
    owed.append(answer == labels[place])
    changed.append(decision.source == "learner")

kept = np.cumsum(paid)[49:] / np.cumsum(owed)[49:]
print(f"right answers: {np.mean(owed):.0%} today, {np.mean(paid):.0%} under the guard; ", end="")
print(f"at worst {kept.min():.0%} of today's")
figure, ax = plt.subplots(figsize=(6.4, 3.2))
ax.plot(range(50, ROUNDS + 1, 10), kept[::10], label="right answers, as a share of today's")
ax.plot(range(0, ROUNDS, 100), np.reshape(changed, (-1, 100)).mean(axis=1), label="rounds that the model changed")
ax.axhline(0.9, color="tab:red", linestyle="--", linewidth=1, label="the floor")
ax.set(xlabel="pictures", ylim=(0, None))
ax.yaxis.set_major_formatter("{x:.0%}")
ax.legend(loc="upper left", bbox_to_anchor=(0.0, 0.68))
figure.savefig("guarded_sklearn.svg")
