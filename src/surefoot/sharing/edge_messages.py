"""What an edge and its service say to each other: leases that travel, signed, and the events of the edge's chain.

Ed25519 signs the canonical JSON of a `LeaseMessage`, after the words `surefoot-lease/2` and a line break. The policy
that the edge decides by is an attachment of the lease's `digest`, and so signed with it.
"""

import hashlib
from typing import Annotated, Any

import msgspec

from surefoot.errors import ConfigError
from surefoot.journal import canonical
from surefoot.journal.signatures import PublicKey, SigningKey
from surefoot.rounds import Record
from surefoot.rounds.events import Lease, ModeName
from surefoot.sharing.hub import Granted, SharedMode

SIGNED, COINS, PROOF = b"surefoot-lease/2\n", b"surefoot-coins/2\n", b"surefoot-granted/2\n"


class LeaseMessage(Record):
    """A lease, whose it is, and the mode of all shards with the event of the hub that says so.

    hub: hash of the first event where the shards meet
    """

    experiment: str
    hub: str
    lease: Lease
    mode: ModeName
    mode_event: int


class SignedLease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A lease that can travel: the message, its signature, what the edge decides by, and the secrets of its coins."""

    message: bytes
    signature: str
    state: bytes
    secrets: list[bytes] = []

    @classmethod
    def sign(cls, experiment: str, hub: str, granted: Granted, key: SigningKey) -> "SignedLease":
        """A lease of this moment."""
        if granted.data is None:
            raise ConfigError("The state that a lease starts from must be at the hub, but is lost: join again.")
        mode = granted.mode
        message = canonical(
            LeaseMessage(experiment=experiment, hub=hub, lease=granted.lease, mode=mode.mode, mode_event=mode.event)
        )
        return cls(message, key.sign(SIGNED + message), granted.data, list(granted.secrets))

    def read(self, experiment: str, hub: str | None, shard: str, key: PublicKey) -> Granted:
        """The lease, if the service has signed it, it is for this edge, and nothing of it was exchanged."""
        if not key.has_signed(self.signature, SIGNED + self.message):
            raise ConfigError("A lease must be signed by the service, but this one is not: is it the right `key`?")
        message = msgspec.json.decode(self.message, type=LeaseMessage)
        lease = message.lease
        if (message.experiment, message.hub, lease.shard) != (experiment, hub or message.hub, shard):
            raise ConfigError(
                f"A lease must be for edge {shard!r} of {experiment!r}, but this one is for {lease.shard!r} of "
                f"{message.experiment!r}, or of another experiment of that name."
            )
        if hashlib.sha256(self.state).hexdigest() != lease.digest:
            raise ConfigError("The state that a lease starts from must be the one that was signed, but is not.")
        if [hashlib.sha256(secret).hexdigest() for secret in self.secrets] != (lease.coins or []):
            raise ConfigError("The secrets of a lease's coins must be those that it commits to, but are not.")
        return Granted(lease, self.state, SharedMode(message.mode, message.mode_event), tuple(self.secrets))


def coin_secret(key: SigningKey, hub: str, shard: str, block: int) -> bytes:
    """The secret of a block of an edge's coins: the same in every server of the hub, and in nobody else's hands.

    Ed25519 signs the same words with the same bits, so nothing has to be kept.
    """
    return _secret(key, COINS, {"hub": hub, "shard": shard, "block": block})


def lease_proof(key: SigningKey, hub: str, shard: str, token: str, lease: int) -> str:
    """By which every server of a hub knows a lease that one of them granted, though the hub's journal lost it."""
    return _secret(key, PROOF, {"hub": hub, "shard": shard, "token": token, "lease": lease}).hex()


def _secret(key: SigningKey, purpose: bytes, words: dict[str, Any]) -> bytes:
    return hashlib.sha256(bytes.fromhex(key.sign(purpose + canonical(words)))).digest()


class EdgeOrigin(msgspec.Struct, frozen=True):
    """What an edge begins its chain with: the experiment as it was created, the hash of that event, and the time."""

    created: bytes
    link: str
    now: float


class JoinEdge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Let an edge in, by a name that no shard has had; `token` is of its own journal."""

    shard: str
    token: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$", max_length=32)]


class UploadEvents(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Events of an edge's chain, those after event `follows`.

    events:     a list of [kind, key, time, payload] in msgpack
    lease:      the number of the edge's newest lease
    proof:      of that lease
    is_ended:   whether its rounds are complete
    is_opening: whether the edge has just been opened, and asks if it may go on
    leaves:     whether it takes no other lease
    sent:       its clock
    """

    token: str
    lease: int
    proof: str
    follows: int = 0
    events: bytes = b"\x90"
    is_ended: bool = False
    is_opening: bool = False
    leaves: bool = False
    sent: float = 0.0


class EdgeStanding(msgspec.Struct, frozen=True):
    """Where an edge's chain stands where the shards meet, the time there, and a lease where one was due."""

    number: int
    hash: str
    now: float
    lease: SignedLease | None = None
    has_left: bool = False
