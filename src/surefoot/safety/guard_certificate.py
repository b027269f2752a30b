"""The certificate of a guard's decision: which share was allowed, which metric binds, and the proof."""

import math
from collections.abc import Sequence

from surefoot.core.native import Bank, MetricSettings, allowed, coin_luck, exp, read_banks
from surefoot.safety.bank_proof import RATES, BankProof, GuardProof
from surefoot.values import Value

CONDITION = "true with probability 1 - delta if rewards keep to their bounds and the coin is fair"


class GuardCertificate(Value, frozen=True):
    """Why a share of the rounds may go to the proposal.

    Attributes
    ----------
    share : float
        The probability with which the proposal was to be played.
    allowed : float
        The largest share that was proved to be safe.
    binds : str
        The metric that allowed least.
    proof : GuardProof
        What every bank holds, and what the round may cost it; `surefoot.check` verifies it.
    is_held : bool
        Whether the baseline was to be played whatever is allowed.
    is_same : bool
        Whether proposal and baseline were the same action.

    Examples
    --------
    >>> import surefoot
    >>> guard = surefoot.Guard(alpha=0.1, delta=0.05)
    >>> decision = guard.decide(baseline="today", proposal="new")
    >>> round(decision.certificate.share, 6), decision.certificate.is_safe
    (0.1, True)
    """

    share: float
    allowed: float
    binds: str
    proof: GuardProof
    is_held: bool = False
    is_same: bool = False

    @property
    def guaranteed(self) -> float:
        """The least that is left above the floor, in units of the highest reward, if the round is at its worst."""
        return self.proof.value

    @property
    def required(self) -> float:
        """What must be left: nothing more than 0."""
        return 0.0

    @property
    def margin(self) -> float:
        """`guaranteed`, since nothing more is required."""
        return self.guaranteed

    @property
    def is_safe(self) -> bool:
        """Whether any share was allowed."""
        return self.allowed > 0.0

    def explain(self) -> str:
        """The reason, in a sentence."""
        return explain_share(self.share, self.allowed, self.binds, self.guaranteed, self.is_held, self.is_same)


def explain_share(
    share: float, allowed: float, binds: str, left: float, is_held: bool, is_same: bool, source: str | None = None
) -> str:
    """The reason for a guard's decision, in one sentence; `source` says what the coin chose."""
    if is_held:
        return f"Played the baseline, as asked: a share of {allowed:.3g} would have been allowed."
    if share == 0.0:
        return without_share(allowed, binds, is_same=is_same)
    above = "exactly at" if abs(left) <= 1e-9 else f"at least {left:.4g} above"
    chosen = "" if source is None else f", and the coin chose the {source}"
    limit = "any is safe" if allowed >= 1.0 else f"{binds!r} allows {allowed:.3g}"
    return (
        f"The proposal had a share of {share:.3g}, where {limit}{chosen}: at worst this round leaves us {above} the "
        f"floor; {CONDITION}."
    )


def without_share(allowed: float, binds: str, *, is_same: bool) -> str:
    """Why a proposal had no share, in a sentence."""
    if is_same:
        return "Played the baseline, which is what was proposed: there is nothing to decide."
    if allowed <= 0.0:
        return f"Played the baseline: {binds!r} allows no share yet."
    return f"Played the baseline: the proposal got no share, though {binds!r} allows {allowed:.3g}."


def certified(
    names: tuple[str, ...],
    metrics: Sequence[MetricSettings],
    snapshot: bytes,
    share: float,
    is_held: bool,
    is_charged: bool = True,
    is_same: bool = False,
) -> GuardCertificate:
    """The certificate of a round, from the banks as they stood before it; what is paid for already costs nothing."""
    charged, paid, least, binds = share if is_charged else 0.0, list[BankProof](), math.inf, ""
    for name, settings, bank in zip(names, metrics, read_banks(snapshot), strict=True):
        paid.append(_bank_proof(name, settings, bank, charged))
        if (limit := allowed(settings, bank)) < least:
            least, binds = limit, name
    return GuardCertificate(share, least, binds, GuardProof(tuple(paid)), is_held, is_same)


def _bank_proof(name: str, settings: MetricSettings, bank: Bank, share: float) -> BankProof:
    return BankProof(
        metric=name,
        sign=settings.sign,
        alpha=settings.alpha,
        low=settings.low,
        most=settings.most_baseline,
        # What this metric may spend of delta, halves included: an event is ln(rates/delta).
        delta=RATES * exp(-settings.event),
        is_played=settings.is_played,
        share=share,
        log_wealth=tuple(bank.wealth),
        bound=bank.bound,
        owed=bank.owed,
        reserve=settings.reserve,
        carried=bank.played if settings.is_played else bank.carried,
        coins=coin_luck(settings, bank.coins) if settings.is_played else 0.0,
    )
