"""The proof of a guard: that a round's share is paid for, at its worst, by slack that has been earned.

It rests on one fact for each metric, with probability 1 - delta true at all times at once: the slack S of the rounds
that have entered satisfies `sum over rates of exp(log_wealth - rate S) < rates/delta`. Who doubts the wealths adds them
up again from the rewards, as the audit does; the rest is arithmetic, and `surefoot.check` does it. What a bank is and
how a round enters it, with the proof, stands in `core/bank.hpp`; how large a share to ask for in `core/ramp.hpp`.
"""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

from surefoot.core.native import RATE_GRID as RATE_GRID
from surefoot.core.native import Bank
from surefoot.errors import ProofError, StateError
from surefoot.values import Value

RATES = len(RATE_GRID)
DIGITS = 30  # behind the point: rounding of the check is then far below what the bank has given away


class BankProof(Value, frozen=True):
    """What one metric's bank holds, in units of the highest reward, and what a round may cost it at worst.

    Attributes
    ----------
    metric : str
        Its name.
    sign, alpha, low, most : float
        What is promised: +1 for a floor and -1 for a ceiling, the share at risk, the bounds of a mean reward.
    delta : float
        What the bound may spend.
    is_played : bool
        Whether the promise is on the actions played.
    share : float
        The probability with which the round plays the proposal; 0 for a round that is paid for already.
    log_wealth : tuple of float
        Of every rate of the grid: what its bets on the rounds that have entered have made of 1.
    bound : float
        L, a lower bound of the slack of these rounds.
    owed : float
        What the rounds that were decided and have not entered may cost at worst.
    reserve : float
        What was granted in addition.
    carried : float
        What was proved before, less the worst of every round since.
    coins : float
        What the luck of the coins may have cost, where the promise is on the actions played; 0 otherwise.

    Examples
    --------
    >>> import surefoot
    >>> (bank,) = surefoot.Guard(alpha=0.1, delta=0.05).decide(baseline=0, proposal=1).certificate.proof.banks
    >>> bank.cost, bank.available
    (0.0, 0.0)
    """

    metric: str
    sign: float
    alpha: float
    low: float
    most: float
    delta: float
    is_played: bool
    share: float
    log_wealth: tuple[float, ...]
    bound: float
    owed: float
    reserve: float
    carried: float
    coins: float

    @property
    def cost(self) -> float:
        """What this round may cost at worst, whatever the means are."""
        if self.share == 0.0:
            return 0.0
        floor = self.sign > 0.0
        if self.is_played:
            return max(0.0, (1.0 - self.alpha) * self.most - self.low if floor else 1.0 - (1.0 + self.alpha) * self.low)
        weight = self.alpha - self.sign * self.share
        learner = self.share * self.low if floor else -self.share
        return max(0.0, -(learner + min(weight * self.low, weight * self.most)))

    @property
    def available(self) -> float:
        """What the bank can pay, by the bound or by what was proved before."""
        return max(self.bound + self.reserve - self.owed - self.coins, self.carried)

    @property
    def margin(self) -> float:
        """What is left if the round turns out at its worst."""
        return self.available - self.cost


class GuardProof(Value, frozen=True):
    """One bank for each metric; the round is paid for if every one of them can pay.

    Attributes
    ----------
    banks : tuple of BankProof
        In the order of the metrics.

    Examples
    --------
    >>> import surefoot
    >>> surefoot.check(surefoot.Guard(alpha=0.1, delta=0.05).decide(baseline=0, proposal=1).certificate.proof)
    """

    banks: tuple[BankProof, ...]

    @property
    def value(self) -> float:
        """What is left in the bank that binds."""
        return min((bank.margin for bank in self.banks), default=math.inf)

    def check(self) -> None:
        """Verify it: every bound follows from its wealths, and every bank can pay.

        What was carried over from earlier proofs, the reserve and the wealths are taken at their word; an audit adds
        them up again from the rewards.

        Raises
        ------
        ProofError
            If one does not.
        """
        if not self.banks:
            raise ProofError("A guard's proof must have a bank for every metric, but this one has none.")
        for bank in self.banks:
            try:
                _check_numbers(bank)
                _check_bound(bank)
                is_paid = _is_paid(bank)
            except (ArithmeticError, TypeError, ValueError) as error:
                # A proof may come from anywhere, with numbers that no bank has.
                raise ProofError(f"The bank of {bank.metric!r} cannot be computed with: {error!r:.80}.") from None
            if not is_paid:
                raise ProofError(
                    f"The bank of {bank.metric!r} must pay {bank.cost!r}, but holds {bank.available!r} only."
                )


def _check_numbers(bank: BankProof) -> None:
    numbers = (
        *bank.log_wealth, bank.bound, bank.owed, bank.reserve, bank.carried, bank.coins, bank.share, bank.alpha,
        bank.low, bank.most, bank.delta,
    )  # fmt: skip
    if len(bank.log_wealth) != len(RATE_GRID) or not all(map(math.isfinite, numbers)):
        raise ProofError(f"The bank of {bank.metric!r} must hold {len(RATE_GRID)} finite wealths, but does not.")
    if min(bank.owed, bank.reserve, bank.coins) < 0.0:
        raise ProofError(f"What the bank of {bank.metric!r} owes must not be negative, but is.")
    is_promise = abs(bank.sign) == 1.0 and 0.0 < bank.alpha < 1.0 and 0.0 < bank.delta < 1.0
    if not (is_promise and 0.0 <= bank.low <= bank.most <= 1.0 and 0.0 <= bank.share < 1.0):
        raise ProofError(f"The bank of {bank.metric!r} must be about a floor or a ceiling, but is not.")


def _is_paid(bank: BankProof) -> bool:
    """Whether the bank can pay the round, in exact fractions: one that is short by a rounding cannot."""
    share, alpha, low, most = map(Fraction, (bank.share, bank.alpha, bank.low, bank.most))
    is_floor = bank.sign > 0.0
    if share == 0:
        return True
    if bank.is_played:
        cost = (1 - alpha) * most - low if is_floor else 1 - (1 + alpha) * low
    else:
        weight = alpha - share if is_floor else alpha + share
        cost = -((share * low if is_floor else -share) + min(weight * low, weight * most))
    bound, reserve, owed, coins, carried = map(
        Fraction, (bank.bound, bank.reserve, bank.owed, bank.coins, bank.carried)
    )
    # A free share is safe whatever the bank holds, even if that is below 0.
    return cost <= 0 or cost <= max(bound + reserve - owed - coins, carried)


def _check_bound(bank: BankProof) -> None:
    """L follows if the mixture of wealths at S = L already reaches its limit, rates/delta."""
    with localcontext() as context:
        # However large the numbers are that cancel: they are a prover's choice.
        largest = max(map(abs, (1.0, RATE_GRID[0] * bank.bound, *bank.log_wealth)))
        context.prec = DIGITS + math.ceil(math.log10(largest))
        bound, limit = Decimal(bank.bound), len(RATE_GRID) / Decimal(bank.delta)
        parts = (
            (Decimal(wealth) - Decimal(rate) * bound).exp()
            for wealth, rate in zip(bank.log_wealth, RATE_GRID, strict=True)
        )
        if sum(parts) < limit:
            raise ProofError(f"The wealths of {bank.metric!r} must prove a slack of {bank.bound!r}, but prove less.")


def check_bank(bank: Bank) -> None:
    """Raise where a saved bank cannot be one: the core trusts these numbers."""
    if not all(map(math.isfinite, bank.save().tolist())) or min(bank.owed, bank.entered, bank.coins) < 0.0:
        raise StateError("`banks` must hold finite numbers, and owe nothing below 0, but do not.")
    sides = bank.learner, bank.baseline
    if min(min(side.count, side.rewards) for side in sides) < 1.0:
        raise StateError("`banks` must have counted at least one reward of each side, but have not.")
