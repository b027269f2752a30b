"""Whether a hand-in can be what it says it is, before anything of it is counted: the coordinator believes no sums."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.arrays import Vector
from surefoot.errors import InputError
from surefoot.leases.lease import HandIn, LeasedRound
from surefoot.policies import SafeLUCB

ROUNDING = 1e-9  # of the size of what is added up: sums are made in different orders


def check_values(given: Any, dim: int) -> None:
    """Raise unless every value can be worked with: another shard would fail on it later."""
    if not isinstance(given, HandIn):
        raise InputError(f"What is handed in must be a HandIn, but got {given!r:.80}. `Shard.hand_in` makes one.")
    if not _is_row(given.question, dim) or not _is_number(given.level) or not _is_number(given.through):
        raise _refused(given, "its question, level or moment is not finite or has another dimension")
    if not _is_number(given.moved) or given.moved < 0:
        raise _refused(given, f"rounds that were moved cost at least 0, and not {given.moved!r}")
    if not all(_is_round(made, dim) for made in given.rounds):
        raise _refused(given, "a round has values that are not finite, or another dimension")
    if not all(_is_reward(*entry) for entry in given.rewards):
        raise _refused(given, "a reward is not finite, or of no round")


def check_sums(given: HandIn, policy: SafeLUCB, leased: float) -> None:
    """Raise unless the question is what the rounds add up to, and the level can be true of it."""
    if given.level < -leased - given.moved:
        raise _refused(given, f"its level of {given.level!r} is below minus the lease of {leased!r}")
    most = 4.0 * float(policy.settings["theta_bound"]) * float(policy.settings["feature_bound"]) * len(given.rounds)
    if given.moved > most:
        raise _refused(given, f"rounds that were moved cost {most!r} at most, and not {given.moved!r}")
    if given.alarm is not None:  # from then on a shard carries no proof on
        return
    total, size = _question(given.rounds, float(policy.settings["alpha"]), policy.dim)
    rounding = ROUNDING * (size + 1.0)
    if float(np.linalg.norm(total - given.question)) > rounding:
        raise _refused(given, "its rounds add up to another question")
    if given.level > float(policy.settings["theta_bound"]) * (float(np.linalg.norm(total)) + rounding):
        raise _refused(given, f"its level of {given.level!r} is more than any theta allows")


def _refused(given: HandIn, problem: str) -> InputError:
    return InputError(
        f"A hand-in must be what the shard did, but {problem}: shard {given.shard!r}, lease {given.lease!r}. Nothing "
        "was taken in."
    )


def _question(rounds: Sequence[LeasedRound], alpha: float, dim: int) -> tuple[Vector, float]:
    """What rounds add up to, z + alpha w - (1 - alpha) v, and the size of what was added."""
    if not rounds:
        return np.zeros(dim), 0.0
    played, displaced = (np.array([getattr(made, name) for made in rounds]) for name in ("played", "displaced"))
    is_learner = np.array([made.is_learner for made in rounds])[:, None]
    total = np.where(is_learner, played - (1.0 - alpha) * displaced, alpha * displaced).sum(axis=0)
    return total, float(np.linalg.norm(played, axis=1).sum() + np.linalg.norm(displaced, axis=1).sum())


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, (int, float)) and math.isfinite(value)


def _is_row(row: Any, dim: int) -> bool:
    is_vector = isinstance(row, np.ndarray) and row.dtype == np.float64 and row.shape == (dim,)
    return is_vector and bool(np.isfinite(row).all())


def _is_round(made: LeasedRound, dim: int) -> bool:
    known = made.baseline_reward
    pair: Any = known if isinstance(known, tuple) else (known, known)
    is_known = known is None or (len(pair) == 2 and all(map(_is_number, pair)) and pair[0] <= pair[1])
    is_whole = isinstance(made.number, int) and _is_number(made.moment) and isinstance(made.is_learner, bool)
    return is_whole and is_known and _is_row(made.played, dim) and _is_row(made.displaced, dim)


def _is_reward(number: Any, reward: Any) -> bool:
    return isinstance(number, int) and number >= 1 and (reward is None or _is_number(reward))
