"""What an edge and the service say to each other."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from surefoot.edge.bundle import Bundle, Hash
from surefoot.experiment.experiment_name import NAME_PATTERN, NAME_RULE

ShardName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=90,
        pattern=NAME_PATTERN,
        description=NAME_RULE,
    ),
]
Secret = Annotated[
    str, Meta(pattern=r"^[0-9a-f]{32}$", max_length=32, description="32 hexadecimal digits, drawn for the log.")
]


EdgeKind = Literal["floor", "guard"]


class JoinEdge(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Let an edge in, by a name that no shard has had.

    `token` is the secret of its log: whoever hands in must have it. `catalogue` names registered actions that the edge
    is to decide between; without one, its decisions bring their own. `kind` is what the edge can decide for: the floor
    of SafeLUCB, or a guard.
    """

    shard: ShardName
    token: Secret
    catalogue: Hash | None = None
    kind: EdgeKind = "floor"


class HandInEntries(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The next entries of an edge's log, in base64, as they were written.

    `head` and `signature` are those of its lease. `follows` is the number of the event that the entries come after, as
    the last answer said; the same entries may be sent again. `sent` is the edge's clock. With `leaves` the edge takes
    no other lease.
    """

    token: Secret
    head: bytes
    signature: str
    follows: Annotated[int, Meta(ge=0)]
    entries: bytes
    sent: float
    leaves: bool = False


class EdgeLease(msgspec.Struct, kw_only=True):
    """What an edge is answered.

    `number` and `hash` are the receipt: the newest event of its chain. `now` is the clock that shards share. `bundle`
    is its next lease, once the one before is handed in whole; null while it is not, or if it has left.
    """

    number: int
    hash: str
    now: float
    bundle: Bundle | None = None
