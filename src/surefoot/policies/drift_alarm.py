"""The watch: a share of the rounds goes to the baseline by a coin, and a test tells when the world has changed.

A freed learner hardly plays the baseline again, so nobody would see that it has become better. The held-out rounds
show it, and the bets of `core/drift.hpp` on all rewards raise the alarm.
"""

import math
import struct
from typing import Any

from surefoot.arrays import finite, fraction
from surefoot.core.native import Bets
from surefoot.errors import ConfigError, InputError
from surefoot.policies.coin import draw_coin, read_seed
from surefoot.policies.decision import Source

KNOWN = struct.Struct("=dd")  # what follows the features of an open round: its declared mean, and its number


class Watch:
    """The holdout's coin and the bets of one policy.

    holdout: the share of rounds that go to the baseline although the learner is allowed to play
    share:   of delta, for false alarms
    """

    EXTRA = KNOWN.size // 8  # numbers that are kept of an open round beside its features

    def __init__(self, holdout: float, share: float, seed: int | None) -> None:
        hint = "holdout is the share of rounds in which the baseline is played by a coin; 0.02 is 2%."
        self.holdout = fraction("holdout", holdout, hint=hint)
        self.share = fraction("watch_share", share, hint="watch_share is the share of delta for false alarms.")
        self.seed = seed
        self.bets = Bets()

    def draw(self, round_: int) -> float:
        """The coin of a round, uniform in [0, 1): below `holdout` it is the baseline's."""
        return draw_coin(self.seed, round_)

    def probability(self, source: Source) -> float:
        """The chance of whoever played a round in which the learner was allowed to."""
        return self.holdout if source == "baseline" else 1.0 - self.holdout

    def check_draw(self, draw: float, source: Source) -> None:
        """Raise unless the coin chose whoever played."""
        if not 0.0 <= draw < 1.0 or (draw < self.holdout) != (source == "baseline"):
            raise InputError(f"A coin of {draw!r} with holdout={self.holdout:g} cannot have let the {source} play.")

    def record(self, features: bytes, known: float, round_: int) -> bytes:
        """What is kept of an open round; `known` is -inf where its reward enters the confidence set."""
        return features + KNOWN.pack(known, round_)

    def read(self, record: bytes) -> tuple[bytes, float, float]:
        """The features, the known mean and the number of a round that `record` wrote."""
        known, round_ = KNOWN.unpack_from(record, len(record) - KNOWN.size)
        return record[: -KNOWN.size], known, round_

    def take(self, is_learner: bool, error: float, round_: float) -> None:
        """Bet on one reward: `error` is what it lies above its prediction, in units of the noise."""
        self.bets.bet(is_learner, error, round_)

    def alarm(self, ridge: Any, settings: Any, delta: float) -> str | None:
        """What was seen, in words, once the evidence against one theta has reached 1/delta."""
        evidence = self.bets.log_evidence(ridge.surprises, settings.noise, settings.ridge, settings.theta_bound)
        if evidence < -math.log(delta):
            return None
        seen = self.bets.seen_by_best(settings.noise)
        who, way = "learner" if seen.is_learner else "baseline", "above" if seen.shift > 0 else "below"
        return (
            f"Rewards have drifted: since about round {seen.since}, {seen.rounds} rewards of the {who} lay on average "
            f"{abs(seen.shift):.3g} {way} what all earlier ones predict. Under one theta the chance of such an alarm, "
            f"at any time, is at most {delta:.3g}."
        )

    def forget(self) -> None:
        """Begin anew, after a restart."""
        self.bets = Bets()


def read_watch(holdout: float | None, share: float, seed: int | None, misspecification: float) -> Watch | None:
    """The watch of a new policy, its settings checked; None where nothing is held out."""
    seed = read_seed(seed)
    if holdout is None or finite("holdout", holdout, hint="It is a share of the rounds; None is off.") == 0.0:
        return None
    if misspecification != 0.0:
        raise ConfigError(
            f"`holdout` needs misspecification=0, but got {misspecification}. The watch tests whether rewards follow "
            "one theta; where they need not, it has nothing to test."
        )
    return Watch(holdout, share, seed)
