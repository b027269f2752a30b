"""How adapters draw their proposals: probabilities from scores, and an action from probabilities."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Vector, finite
from surefoot.errors import ConfigError, InputError
from surefoot.learners.learner import Proposal


def read_epsilon(epsilon: Any) -> float:
    """A share of proposals that are drawn at random."""
    value = finite("epsilon", epsilon, hint="epsilon is the share of proposals that are drawn at random.")
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"`0 <= epsilon <= 1` must hold, but got {epsilon!r}. 0.05 explores in 5% of the proposals.")
    return value


def epsilon_greedy(scores: Vector, epsilon: float) -> Vector:
    """The best action, in a share epsilon any; those that are equally good share evenly.

    >>> epsilon_greedy(np.array([0.2, 0.9, 0.9, 0.1]), 0.2).tolist()
    [0.05, 0.45, 0.45, 0.05]
    """
    if np.isnan(scores).any():
        raise InputError(f"Every action must have a score, but got {scores}. The model may have seen too little.")
    best = scores == scores.max()
    shares: Vector = epsilon / scores.size + (1.0 - epsilon) * best / best.sum()
    return shares


def draw(actions: Sequence[Any], probabilities: ArrayLike, rng: np.random.Generator) -> Proposal:
    """One of the actions by their probabilities, which are brought to a sum of exactly 1."""
    odds = np.asarray(probabilities, dtype=np.float64)
    if odds.shape != (len(actions),) or not (odds >= 0.0).all() or not 0.99 < odds.sum() < 1.01:
        raise InputError(f"Each of {len(actions)} actions must have a probability, but got {probabilities!r:.80}.")
    # numpy refuses probabilities whose sum misses 1 by more than rounding.
    odds = odds / odds.sum()
    place = int(rng.choice(len(actions), p=odds))
    return Proposal(actions[place], odds.tolist())
