"""Restoring: an older copy takes the journal's place only by a person's word, and begins paused.

What was acknowledged after the copy was made is lost: decisions that were played, rewards that were learned. The ledger
knows nothing of them, so that nothing is proved until a person has looked and lets the learner in again. Where heads
tell how many events are lost, a guard's banks pay for as many rounds at their worst.

What was erased after the copy was made is in it again. So a server lists its erasures beside the heads that it keeps
outside: by the references of decisions, which are salted hashes and, once the salt is erased, say nothing of anybody.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import msgspec

from surefoot.errors import ConfigError
from surefoot.experiment.experiment import Experiment
from surefoot.experiment.operator_words import take_over
from surefoot.experiment.reading import MOST_IDS
from surefoot.experiment.removal import delete
from surefoot.experiment.sealing import find_reference, reference
from surefoot.journal import Event, Head, Journal, View
from surefoot.journal.copying import heads_of
from surefoot.journal.events import JOURNAL
from surefoot.journal.journal_chain import DELETED, Restored, Tombstone, lost_heads, note_restored
from surefoot.rounds import decode
from surefoot.rounds.events import ERASED, Created, Erased


class Erasure(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an erasure took, as it is kept outside of the journal.

    number, hash: the event that says so, of the experiment's chain; of the journal's own where all of it was removed
    decisions:    references of those that were erased
    """

    experiment: str
    number: int
    hash: str
    decisions: list[str] = []
    is_whole: bool = False

    @property
    def chain(self) -> str:
        """The chain that says so."""
        return JOURNAL if self.is_whole else self.experiment


class Restoration(NamedTuple):
    """What a restore did: which heads are lost, and how many texts were erased again, 0 of what was removed whole."""

    lost: dict[str, Head]
    erased: dict[str, int]


def erased_beside(heads: Path | str) -> Path:
    """The list of erasures that stands beside a file of heads."""
    return Path(f"{heads}.erased")


def read_erased(path: Path) -> list[Erasure]:
    """The erasures of a list; none where there is no list."""
    try:
        return [msgspec.json.decode(line, type=Erasure) for line in path.read_bytes().splitlines()]
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(
            f"{path} must be the list of erasures that a server keeps beside its heads: {error}."
        ) from None


def erasures(view: View, after: Head | None = None) -> list[Erasure]:
    """What a chain says was erased, oldest first; after an event, if the chain still has it."""
    first = 0 if after is None or not view.follows(after) else after.number
    if view.name == JOURNAL:
        stones = ((event, msgspec.json.decode(event.payload, type=Tombstone)) for event in _since(view, DELETED, first))
        return [Erasure(stone.name, *event.head, is_whole=True) for event, stone in stones]
    return [Erasure(view.name, *event.head, _references(view, event)) for event in _since(view, ERASED, first)]


def _since(view: View, kind: str, first: int) -> list[Event]:
    """The events of a kind after a number, oldest first."""
    limit = 16
    while True:
        newest = view.newest_of(kind, limit)
        if len(newest) < limit or newest[-1].number <= first:
            return [*takewhile(lambda event: event.number > first, newest)][::-1]
        limit *= 4


def _references(view: View, event: Event) -> list[str]:
    """The decisions whose texts an event says were erased, be it the round's or that of what was really played."""
    about = (view.page(number - 1, 1)[0] for number in decode(event, Erased).events)
    return sorted({reference(one) for one in about})


def restore(
    journal: Journal,
    *,
    by: str,
    reason: str,
    known: Mapping[str, Head] | None = None,
    accept_loss: bool = False,
    erased: Iterable[Erasure] = (),
    clock: Callable[[], float] = time.time,
) -> Restoration:
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
    erased : iterable of Erasure
        What was erased, some of it after the copy was made: it is erased again.
    clock : callable
        Tells the time in seconds since 1970.

    Returns
    -------
    Restoration
        The heads that are lost, and what was erased again.

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
    (Restoration(lost={}, erased={}), 'paused')
    """
    if not by.strip() or not reason.strip():
        raise ConfigError("`by` and `reason` must say who restores the journal, and why: an auditor will ask.")
    check_unshared(journal)
    lost = check_loss(journal, known, accept_loss=accept_loss)
    stood = {name: head.number for name, head in heads_of(journal).items()}
    again = _erase_again(journal, erased, by=by, reason=reason, clock=clock)
    for name in journal.names():
        missing = max(0, lost[name].number - stood[name]) if name in lost else 0
        why = f"restored from a copy: {reason}"
        Experiment.open(journal, name, clock=clock).transact(partial(take_over, lost=missing, reason=why, by=by))
    # Last: until it is there no server takes the copy, so that one that was cut short is restored again.
    record = Restored(by, reason, {name: (head.number, head.hash) for name, head in lost.items()}, stood)
    note_restored(journal, record, time=clock())
    return Restoration(lost, again)


def _erase_again(
    journal: Journal, erased: Iterable[Erasure], *, by: str, reason: str, clock: Callable[[], float]
) -> dict[str, int]:
    why, counts, decisions = f"erased before the restore: {reason}", dict[str, int](), dict[str, set[str]]()
    for one in erased:
        if one.is_whole and one.experiment in journal.names():
            delete(journal, one.experiment, by=by, reason=why, clock=clock)
            counts[one.experiment] = 0
        decisions.setdefault(one.experiment, set()).update(one.decisions)
    for name in sorted(decisions.keys() & set(journal.names())):
        experiment, view = Experiment.open(journal, name, clock=clock), journal.view(name)
        there = [one for one in sorted(decisions[name]) if find_reference(experiment.settings, view, one) is not None]
        parts = (there[at : at + MOST_IDS] for at in range(0, len(there), MOST_IDS))
        if count := sum(experiment.erase(part, by=by, reason=why) for part in parts):
            counts[name] = count
    return counts


def check_unshared(journal: Journal) -> None:
    """Raise if shards meet in the journal: what they have spent since the copy was made would be leased again."""
    shared = [name for name in journal.names() if decode(next(journal.view(name).read(limit=1)), Created).is_hub]
    if shared:
        text = ", ".join(map(repr, shared))
        raise ConfigError(
            f"A copy of a journal where shards meet must not go on, but {text} is shared: leases that were spent since "
            "it was made would be granted a second time. If the journal itself is gone, start a new experiment, by a "
            f"new name; what else is in the copy is restored once you `surefoot experiment archive` {text} out of it."
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
        text = ", ".join(f"{name!r} had event {head.number} and ends with {ends[name]}" for name, head in lost.items())
        raise ConfigError(
            f"The copy must hold everything that is known from outside, but {text}. Find a newer copy, or accept the "
            "loss (`--accept-loss`)."
        )
