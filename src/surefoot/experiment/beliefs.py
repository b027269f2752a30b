"""What the learner believes: each coordinate of theta, or each arm, with its interval."""

from collections.abc import Sequence

import msgspec
import numpy as np

from surefoot.policies.arm_policy import SEEN, ArmPolicy, mean_of
from surefoot.policies.linear_policy import LinearPolicy


class Belief(msgspec.Struct, frozen=True):
    """One coordinate of theta, or the mean reward of one arm; null where nothing is known, or it has no name."""

    index: int
    estimate: float | None
    low: float | None
    high: float | None
    name: str | None = None


class Beliefs(msgspec.Struct, frozen=True):
    """Everything believed at once.

    kind:        "coordinate" of theta, or the mean reward of an "arm"; "none" for a guard, which has no model
    confidence:  the chance that all intervals hold, in all rounds at once; null where none are given
    """

    kind: str
    confidence: float | None
    observations: int
    beliefs: list[Belief]


NO_BELIEFS = Beliefs("none", None, 0, [])


def with_names(believed: Beliefs, names: Sequence[str] | None) -> Beliefs:
    """The same by the names of features or arms. Names are added when somebody reads: they may have been erased."""
    if names is None or len(names) != len(believed.beliefs):
        return believed
    named = [msgspec.structs.replace(one, name=name) for one, name in zip(believed.beliefs, names, strict=True)]
    return msgspec.structs.replace(believed, beliefs=named)


def coordinates(policy: LinearPolicy) -> Beliefs:
    """Of each coordinate of theta, by the confidence set."""
    region, bound, beliefs = policy.confidence_set, float(policy.settings["theta_bound"]), []
    ridge = policy.ridge  # a copy: taken once
    for index, axis in enumerate(np.eye(policy.dim)):
        low, high = max(region.lower(axis), -bound), min(region.upper(axis), bound)  # no longer was declared
        beliefs.append(Belief(index, float(ridge.theta[index]), low, high))
    return Beliefs("coordinate", 1 - float(policy.settings["delta"]), ridge.count, beliefs)


def arm_means(policy: ArmPolicy) -> Beliefs:
    """Of each arm, by its mean."""
    arms = policy.state()["arms"]
    means = [float(mean_of(arms, i)) if arms[SEEN, i] else None for i in range(arms.shape[1])]
    beliefs = [Belief(index, mean, None, None) for index, mean in enumerate(means)]
    return Beliefs("arm", None, int(arms[SEEN].sum()), beliefs)
