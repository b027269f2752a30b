"""The watch: a share of the rounds goes to the baseline by a coin, and a test tells when the world has changed.

A freed learner hardly plays the baseline again, so nobody would see that it has become better. The held-out rounds
show it, and the bets of `core/drift.hpp` on all rewards raise the alarm.
"""

import math

from surefoot.arrays import finite, fraction
from surefoot.core.native import Bets
from surefoot.errors import ConfigError, InputError
from surefoot.policies.coin import draw_coin
from surefoot.policies.guard_decision import Source

WATCH_SHARE = 0.1  # of delta, for false alarms of the watch


class Watch:
    """The holdout's coin and the bets of one policy.

    holdout: the share of rounds that go to the baseline although the learner is allowed to play
    share:   of delta, for false alarms
    """

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

    def take(self, is_learner: bool, error: float, round_: float) -> None:
        """Bet on one reward: `error` is what it lies above its prediction, in units of the noise."""
        self.bets.bet(is_learner, error, round_)

    def evidence(self, surprises: float, noise: float, ridge: float, theta_bound: float) -> float:
        """The logarithm of the evidence against one theta."""
        return self.bets.log_evidence(surprises, noise, ridge, theta_bound)

    def forget(self) -> None:
        """Begin anew, after a restart."""
        self.bets = Bets()

    def describe(self, noise: float, delta: float) -> str:
        """What was seen, in words."""
        return describe(self.bets, noise, delta)


def describe(bets: Bets, noise: float, delta: float) -> str:
    """What the wealthiest bettor has seen, in words."""
    seen = bets.seen_by_best(noise)
    who, way = "learner" if seen.is_learner else "baseline", "above" if seen.shift > 0 else "below"
    return (
        f"Rewards have drifted: since about round {seen.since}, {seen.rounds} rewards of the {who} lay on average "
        f"{abs(seen.shift):.3g} {way} what all earlier ones predict. Under one theta the chance of such an alarm, at "
        f"any time, is at most {delta:.3g}."
    )


def read_watch(holdout: float | None, share: float, seed: int | None, misspecification: float) -> Watch | None:
    """The watch of a new policy, its settings checked; None where nothing is held out."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise ConfigError(f"`seed` must be a whole number or None, but got {seed!r}. None draws from the system.")
    if holdout is None or finite("holdout", holdout, hint="It is a share of the rounds; None is off.") == 0.0:
        return None
    if misspecification != 0.0:
        raise ConfigError(
            f"`holdout` needs misspecification=0, but got {misspecification}. The watch tests whether rewards follow "
            "one theta; where they need not, it has nothing to test."
        )
    return Watch(holdout, share, seed)


def is_alarming(evidence: float, delta: float) -> bool:
    """Whether evidence, as a logarithm, has reached 1/delta."""
    return evidence >= -math.log(delta)
