"""Handwritten digits as a bandit: a guess pays 1 if it is right, so the mean of every action is known.

The pictures are scikit-learn's `load_digits`, which others collected. The baseline was fitted to a few of them, which
are not played, and is right in about half of the rounds.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from surefoot import Guard
from surefoot.arrays import Matrix, Vector
from surefoot.learners import GuardedLearner, Learner, Proposal

ALPHA, DELTA = 0.1, 0.05
TRAINED_ON = 20
ACTIONS = list(range(10))


class Digits(NamedTuple):
    """Rounds: a picture, the digit it shows, and the baseline's guess."""

    pictures: Matrix
    labels: Vector
    baselines: Vector

    def rounds(self, number: int, seed: int) -> "Digits":
        rows = np.random.default_rng(seed).integers(len(self.labels), size=number)
        return Digits(*(column[rows] for column in self))


class Run(NamedTuple):
    """Mean rewards of each round, of what was played and of the baseline."""

    means: Vector
    baselines: Vector

    @property
    def rounds_below(self) -> int:
        return int((self.means.cumsum() < (1.0 - ALPHA) * self.baselines.cumsum() - 1e-9).sum())

    @property
    def worst_share(self) -> float:
        owed = self.baselines.cumsum()
        return float((self.means.cumsum()[owed > 0] / owed[owed > 0]).min())

    @property
    def lift(self) -> float:
        return float(self.means.sum() / self.baselines.sum() - 1.0)

    def __str__(self) -> str:
        return f"worst share {self.worst_share:.3f}, lift {self.lift:+.1%}, {self.rounds_below} rounds below the floor"


class Recorder:
    """A learner whose last proposal can be asked for, so that its mean is known whatever the coin says."""

    def __init__(self, learner: Any) -> None:
        self.learner, self.learn = learner, learner.learn
        self.last: Any = None

    def sample(self, context: Any, actions: Sequence[Any]) -> Proposal:
        if hasattr(self.learner, "sample"):
            drawn: Proposal = self.learner.sample(context, actions)
        else:
            drawn = certain(self.learner.propose(context, actions), actions)
        self.last = drawn.action
        return drawn

    def propose(self, context: Any, actions: Sequence[Any]) -> Any:
        return self.sample(context, actions).action


def certain(action: Any, actions: Sequence[Any]) -> Proposal:
    return Proposal(action, [float(one == action) for one in actions])


def load() -> Digits:
    pictures, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(labels))
    pictures, labels = pictures[order] / 16.0, labels[order]
    weak = LogisticRegression().fit(pictures[:TRAINED_ON], labels[:TRAINED_ON])
    return Digits(pictures[TRAINED_ON:], labels[TRAINED_ON:], weak.predict(pictures[TRAINED_ON:]))


def run_guarded(
    learner: Learner, data: Digits, *, seed: int, before: Callable[[int], Any] = lambda number: None, **settings: Any
) -> Run:
    """The promise's means, its coin averaged."""
    recorder = Recorder(learner)
    driver = GuardedLearner(recorder, Guard(alpha=ALPHA, delta=DELTA, seed=seed, **settings))
    means = []
    for number, (picture, label, baseline) in enumerate(zip(*data, strict=True)):
        before(number)
        decision = driver.decide(picture, ACTIONS, int(baseline))
        driver.observe(decision, float(decision.action == label))
        share = decision.share
        means.append(share * float(recorder.last == label) + (1.0 - share) * float(baseline == label))
    return Run(np.array(means), (data.baselines == data.labels).astype(float))


def run_unguarded(learner: Learner, data: Digits, *, before: Callable[[int], Any] = lambda number: None) -> Run:
    """The learner plays from the first round on."""
    recorder, means = Recorder(learner), []
    for number, (picture, label, _) in enumerate(zip(*data, strict=True)):
        before(number)
        drawn = recorder.sample(picture, ACTIONS)
        reward = float(drawn.action == label)
        recorder.learn(picture, drawn.action, reward, drawn.probabilities[drawn.action], actions=ACTIONS)
        means.append(reward)
    return Run(np.array(means), (data.baselines == data.labels).astype(float))
