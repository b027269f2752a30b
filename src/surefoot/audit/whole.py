"""An audit of all that a journal holds: the journal as a whole, its experiments with their shards, and snapshots."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from surefoot.audit.auditor import audit
from surefoot.audit.chain import ExpectedHead, HeadSearch, JournalReport, audit_journal
from surefoot.audit.report import Report
from surefoot.audit.shards import audit_shards, declared
from surefoot.errors import ConfigError, JournalNotFoundError, SurefootError
from surefoot.journal import Journal, View
from surefoot.journal.signatures import PublicKey
from surefoot.rounds.events import edge_chain

Replay = Callable[[View], Iterable[tuple[int, str]]]
Progress = Callable[[str, int, int], None]
JOURNALS = "the journals of its shards as `shards` (`--shard NAME=JOURNAL`)"


@dataclass(frozen=True)
class WholeReport:
    """The result of an audit of all that a journal holds.

    Attributes
    ----------
    journal : JournalReport
        Of the journal as a whole.
    experiments : list of Report
        Of each experiment; of one that shards share, of the chain where they meet, and then of each shard.

    Examples
    --------
    >>> WholeReport(JournalReport()).is_clean
    True
    """

    journal: JournalReport
    experiments: list[Report] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether everything fits."""
        return self.journal.is_clean and all(one.is_clean for one in self.experiments)

    def as_dicts(self) -> list[dict[str, Any]]:
        """Plain data for JSON; the journal as a whole comes last, where it has a chain of its own or findings."""
        own = [self.journal.as_dict()] if self.journal.head.number or not self.journal.is_clean else []
        return [one.as_dict() for one in self.experiments] + own


def audit_whole(
    journal: Journal,
    name: str | None = None,
    *,
    expect: Iterable[str | ExpectedHead] = (),
    keys: Sequence[PublicKey] = (),
    shards: Mapping[str, Journal] | None = None,
    replay: Replay | None = None,
    progress: Progress | None = None,
) -> WholeReport:
    """Check a journal as a whole, its experiments, and the chains of shards: what `surefoot audit` does.

    Parameters
    ----------
    journal : Journal
        The journal, which may be open read-only.
    name : str, optional
        The experiment; all of them by default.
    expect : iterable of str or ExpectedHead
        Hashes that must be in the chain of the one experiment, and heads of any that were kept outside.
    keys : sequence of PublicKey
        The server's keys: every one of these heads must be signed with one of them.
    shards : mapping of str to Journal, optional
        The journals of shards by their names, for the experiment that they share; edges are found by themselves.
    replay : callable, optional
        Replays the events of a chain by the code that goes on from its snapshots, and says where they differ, as event
        and sentence: `surefoot.experiment.snapshots.differing`. The audit itself shares no code with that.
    progress : callable, optional
        Called now and then with the experiment, the events checked, and how many there are.

    Returns
    -------
    WholeReport
        What was checked, and every finding.

    Raises
    ------
    JournalNotFoundError
        If there is no such experiment, or none at all.
    ConfigError
        If shards share one of several experiments, or the journals of its shards are not given.

    Examples
    --------
    >>> import surefoot
    >>> journal = surefoot.open_journal("memory:")
    >>> shop = surefoot.Experiment.create(journal, "shop", surefoot.UCB(arms=2))
    >>> audit_whole(journal).is_clean
    True
    """
    given = list(expect)
    hashes = [one for one in given if isinstance(one, str)]
    report = WholeReport(audit_journal(journal, expect=[one for one in given if not isinstance(one, str)], keys=keys))
    names = journal.names() if name is None else [name]
    if not names and report.journal.is_clean and not report.journal.deleted:
        raise JournalNotFoundError("The journal has no experiment to audit.")
    if len(names) > 1 and hashes:
        raise ConfigError(f"A hash belongs to one experiment: name one of {', '.join(names)}.")
    if _is_shared(journal, names):
        heads = [head.hash for head in report.journal.expected.get(names[0], ())]
        report.experiments.extend(_shared(journal, names[0], shards or {}, [*hashes, *heads], replay))
        return report
    if shards and names:
        raise ConfigError(f"Journals of shards are for an experiment that they share, but {names[0]!r} is not one.")
    for one in names:
        search = HeadSearch(report.journal.expected.get(one, ()), hashes)
        audited = audit(journal, one, expect=search, progress=None if progress is None else partial(progress, one))
        _replay(replay, journal.view(one), audited)
        report.experiments.append(audited)
    return report


def _is_shared(journal: Journal, names: list[str]) -> bool:
    """Whether the one experiment to audit is shared; an error where it is one of several, or a shard's own part."""
    for name in names:
        created = declared(journal.view(name))
        if created is None or created.skew is None:
            continue
        if created.shard is not None or len(names) > 1:
            whose = "" if created.shard is None else f", of which this is the chain of shard {created.shard!r}"
            raise ConfigError(
                f"The chains of shards must be audited together, but {name!r} is shared{whose}. Audit the journal "
                f"where they meet, by the experiment's name, and give {JOURNALS}."
            )
        return True
    return False


def _shared(
    hub: Journal, name: str, shards: Mapping[str, Journal], expect: list[str], replay: Replay | None
) -> list[Report]:
    """The reports of shards that share a floor, the chain where they meet first."""
    audited = audit_shards(hub, name, shards, expect=expect)
    if audited.missing and not shards:
        raise ConfigError(
            "The chains of shards must be audited together, but only that where they meet is given. Give "
            f"{JOURNALS}: {', '.join(audited.missing)}."
        )
    for shard, report in audited.shards.items():
        own = shards[shard].view(name) if shard in shards else hub.view(edge_chain(name, shard))
        _replay(replay, own, report)
    _replay(replay, hub.view(name), audited.hub)
    for shard in audited.missing:
        audited.hub.findings.add(0, "missing", f"the journal of shard {shard!r} is not among those given")
    return [audited.hub, *audited.shards.values()]


def _replay(replay: Replay | None, view: View, report: Report) -> None:
    """Compare snapshots with the events, by the code that goes on from them."""
    try:
        for event, text in () if replay is None else replay(view):
            report.findings.add(event, "snapshot", text)
    except (SurefootError, ValueError) as error:
        # Of an event that does not fit the audit has said so; and it does not know policies of one's own.
        if report.is_clean:
            report.findings.add(0, "replay", f"the events cannot be replayed: {error}")
