"""The audit of an experiment that shards share: all chains together, by what they share."""

from collections.abc import Iterable, Mapping

import msgspec

from surefoot.audit.chain import HeadSearch
from surefoot.audit.declarations import GUARDS
from surefoot.audit.report import Report, SharedReport
from surefoot.audit.shared_bank import SharedBank
from surefoot.audit.shared_chain import SharedChain
from surefoot.audit.shared_floor import SharedFloor
from surefoot.errors import JournalCorruptedError
from surefoot.journal import Journal, View
from surefoot.rounds import events


def audit_shards(
    hub: Journal, name: str, journals: Mapping[str, Journal], *, expect: Iterable[str] = ()
) -> SharedReport:
    """Check an experiment whose floor is shared: the chain where its shards meet, and the chain of each.

    Parameters
    ----------
    hub : Journal
        Where the shards meet; it may be open read-only.
    name : str
        The experiment.
    journals : mapping of str to Journal
        The journals of the shards by their names; the chains of edges are found where the shards meet.
    expect : iterable of str
        Hashes that must be in one of the chains, such as the heads of earlier audits.

    Returns
    -------
    SharedReport
        What was checked, and every finding.

    Raises
    ------
    JournalNotFoundError
        If a journal has no such experiment.

    Examples
    --------
    >>> import surefoot
    >>> from surefoot.experiment import create_shared
    >>> hub = surefoot.open_journal("memory:")
    >>> policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, noise=0.5, theta_bound=1.0, feature_bound=1.0)
    >>> create_shared(hub, "shop", policy)
    >>> audit_shards(hub, "shop", {}).is_clean
    True
    """
    view = hub.view(name)
    created = declared(view)
    kind = SharedBank if created is not None and created.policy in GUARDS else SharedFloor
    floor: SharedChain = kind(hub, name, journals, HeadSearch(hashes=expect))
    for event in view.read(verify=False):
        floor.take(event)
    floor.chain.end(view.head)
    reports = {}
    for shard, member in floor.shards.items():
        if member.auditor is not None and member.view is not None:
            member.auditor.chain.end(member.view.head)
            reports[shard] = member.auditor.report(f"{name} ({shard})")
    for shard in sorted(set(journals) - set(floor.shards)):
        floor.findings.add(0, "unknown", f"a journal of shard {shard!r} is given, which never joined here")
    floor.end()
    floor.expected.end(floor.chain.head.number, floor.findings)
    missing = tuple(shard for shard, member in floor.shards.items() if member.auditor is None)
    own = Report(name, floor.created, floor.tally, floor.findings, floor.chain.head, floor.coins)
    return SharedReport(own, reports, missing)


def declared(view: View) -> events.Created | None:
    """What the first event says; None where it cannot be read, which an audit finds."""
    try:
        return msgspec.json.decode(next(iter(view.read(limit=1, verify=False))).payload, type=events.Created)
    except (msgspec.MsgspecError, StopIteration, JournalCorruptedError):
        return None
