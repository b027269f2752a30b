"""Restoring: an older copy takes the journal's place only by a person's word, and begins paused.

What was acknowledged after the copy was made is lost: decisions that were played, rewards that were learned. The ledger
knows nothing of them, so that nothing is proved until a person has looked and lets the learner in again.
"""

import time
from collections.abc import Callable, Mapping

from surefoot.errors import ConfigError
from surefoot.experiment.experiment import Experiment
from surefoot.journal import Head, Journal
from surefoot.journal.copying import heads_of
from surefoot.journal.events import JOURNAL
from surefoot.journal.journal_chain import Restored, lost_heads, note_restored
from surefoot.rounds import decode
from surefoot.rounds.events import Created


def restore(
    journal: Journal,
    *,
    by: str,
    reason: str,
    known: Mapping[str, Head] | None = None,
    accept_loss: bool = False,
    clock: Callable[[], float] = time.time,
) -> dict[str, Head]:
    """Take a journal that was put back into use: pause every experiment that may play, and write that down.

    Parameters
    ----------
    journal : Journal
        The copy, where servers are going to find it.
    by, reason : str
        Who restores it, and why; kept in the journal.
    known : mapping of str to Head, optional
        The last heads that are known from outside, by experiment.
    accept_loss : bool
        Go on though these are not all there, or none is known.
    clock : callable
        Tells the time in seconds since 1970.

    Returns
    -------
    dict of str to Head
        The heads that are lost.

    Raises
    ------
    ConfigError
        If something is lost or nothing is known, and that was not accepted; if shards meet there; or nobody answers
        for it.

    Examples
    --------
    >>> import surefoot
    >>> copy = surefoot.open_journal("memory:")
    >>> shop = surefoot.Experiment.create(copy, "shop", surefoot.UCB(arms=2), mode="guarded")
    >>> restore(copy, by="ada", reason="the disk failed", accept_loss=True), shop.status().mode
    ({}, 'paused')
    """
    if not by.strip() or not reason.strip():
        raise ConfigError("`by` and `reason` must say who restores the journal, and why: an auditor will ask.")
    check_unshared(journal)
    lost = check_loss(journal, known, accept_loss=accept_loss)
    stood = {name: head.number for name, head in heads_of(journal).items()}
    for name in journal.names():
        experiment = Experiment.open(journal, name, clock=clock)
        if experiment.status().mode == "guarded":
            experiment.set_mode("paused", reason=f"restored from a copy: {reason}", by=by)
    # Last: until it is there no server takes the copy, so that one that was cut short is restored again.
    record = Restored(by, reason, {name: (head.number, head.hash) for name, head in lost.items()}, stood)
    note_restored(journal, record, time=clock())
    return lost


def check_unshared(journal: Journal) -> None:
    """Raise if shards meet in the journal: what they have spent since the copy was made would be leased again."""
    shared = [name for name in journal.names() if decode(next(journal.view(name).read(limit=1)), Created).is_hub]
    if shared:
        told = ", ".join(map(repr, shared))
        raise ConfigError(
            f"A copy of a journal where shards meet must not go on, but {told} is shared: leases that were spent since "
            "it was made would be granted a second time. If the journal itself is gone, start a new experiment, by a "
            f"new name; what else is in the copy is restored once you `surefoot experiment archive` {told} out of it."
        )


def check_loss(journal: Journal, known: Mapping[str, Head] | None, *, accept_loss: bool) -> dict[str, Head]:
    """The heads that a copy lacks; an error where there are any, or none is known, and that is not accepted."""
    lost = lost_heads(journal, known or {})
    if not accept_loss:
        _refuse(journal, known, lost)
    return lost


def _refuse(journal: Journal, known: Mapping[str, Head] | None, lost: Mapping[str, Head]) -> None:
    if known is None:
        raise ConfigError(
            "The last known heads must be given, as a file of heads or receipts, to tell what is lost. "
            "If there are none, say that you accept any loss (`--accept-loss`)."
        )
    if lost:
        ends = {name: journal.head(name).number if name in (*journal.names(), JOURNAL) else 0 for name in lost}
        told = ", ".join(f"{name!r} had event {head.number} and ends with {ends[name]}" for name, head in lost.items())
        raise ConfigError(
            f"The copy must hold everything that is known from outside, but {told}. Find a newer copy, or accept the "
            "loss (`--accept-loss`)."
        )
