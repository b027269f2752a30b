"""Snapshots: what one says must be what the events say, for whoever opens the experiment goes on from there.

Compared here is what can be told without the code that wrote it: where it stands, the mode, who played how often, and
the answer to the alarm. `surefoot audit` also replays the events, and compares all of it.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from surefoot.audit.findings import AuditCounts
from surefoot.journal.events import Event
from surefoot.rounds import events

FORMAT = 3


class _Policy(msgspec.Struct):
    policy: str
    id: str
    rounds: int


class _Counts(msgspec.Struct):
    learner_rounds: int
    baseline_rounds: int
    held_rounds: int
    rewards: int
    abandoned: int
    voided: int = 0


class _Snapshot(msgspec.Struct):
    format: int
    number: int
    hash: str
    time: float
    mode: str
    policy: _Policy
    counts: _Counts
    answer: events.Acknowledged | None


def snapshot_faults(
    data: bytes, event: Event, created: events.Created, mode: str, tally: AuditCounts, policy: str
) -> Iterator[str]:
    """What the attachment of a snapshot says otherwise than the events before it, a sentence each.

    `policy` is the one that decides, which of a shard is a leased one.
    """
    try:
        # Arrays are opaque here.
        snapshot = msgspec.msgpack.decode(data, type=_Snapshot, ext_hook=lambda code, raw: None)
    except msgspec.MsgspecError as error:
        yield f"it cannot be read as a state: {error}"
        return
    if snapshot.format != FORMAT:  # nobody goes on from a state of another format
        return
    answers = [answer for _, _, answer in tally.answers]
    expected: dict[str, tuple[Any, Any]] = {
        "head": ((snapshot.number, snapshot.hash), (event.number - 1, event.previous)),
        "mode": (snapshot.mode, mode),
        "policy": ((snapshot.policy.policy, snapshot.policy.id), (policy, created.policy_id)),
        "rounds": (snapshot.policy.rounds, tally.decisions),
        "learner's rounds": (snapshot.counts.learner_rounds, tally.learner),
        "baseline's rounds": (snapshot.counts.baseline_rounds, tally.baseline),
        "held rounds": (snapshot.counts.held_rounds, tally.held),
        "rewards": (snapshot.counts.rewards, tally.rewards),
        "abandoned rounds": (snapshot.counts.abandoned, tally.abandoned),
        "voided rounds": (snapshot.counts.voided, tally.voided),
        "answer to the alarm": (snapshot.answer, answers[-1] if answers else None),
    }
    for what, (said, known) in expected.items():
        if said != known:
            yield f"of its {what} it says {said!r:.90}, but the events say {known!r:.90}"
