"""A lease as a signed bundle: what an edge may lose, by which frozen set, over which actions, and until when.

The head is signed: the words `surefoot-lease/1`, of a guard `surefoot-bank/1`, a newline, and its bytes. It names the
set, the actions and the secret of the coins by their SHA-256, and the edge's log by the hash of a token that never
leaves it but to hand in: so a bundle is of no use to anybody else.
"""

import hashlib
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar

import msgspec
import numpy as np
from msgspec import Meta

from surefoot.arrays import Matrix
from surefoot.errors import ConfigError, InputError
from surefoot.experiment.lease_forms import BANK, LINEAR
from surefoot.journal import canonical
from surefoot.journal.signatures import PublicKey, SigningKey
from surefoot.leases import GuardLease, Lease
from surefoot.linear.features import Interactions, Shared
from surefoot.records import ModeName
from surefoot.records_of_leases import BankLease, LeaseRecord

FORMAT = b"surefoot-lease/1\n"
BANK_FORMAT = b"surefoot-bank/1\n"
COINS = b"surefoot-coins/1\n"
MapKind = Literal["shared", "interactions"]
Hash = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$", max_length=64)]


class SignedHead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is signed of a bundle, beside the lease.

    hub:           hash of the event that created the experiment: of two of the same name, which one
    log:           SHA-256 of the token of the log that it is for
    mode:          the learner plays in guarded mode alone
    reward_bounds: a reward outside of these raises the alarm
    reward_window: seconds until what is known of a reward is learned, the default where none came; None waits for it
    skew:          seconds by which two clocks may differ
    expires:       from then on only the baseline plays, by the edge's clock
    entry_bytes:   size of an entry that the service takes in
    actions:       SHA-256 of the actions; None where each decision brings its own
    """

    experiment: str
    hub: Hash
    shard: str
    log: Hash
    mode: ModeName
    skew: float
    expires: float
    entry_bytes: int
    reward_bounds: tuple[float, float] | None = None
    actions: Hash | None = None
    reward_window: float | None = None
    default_reward: float | None = None


class BundleHead(SignedHead, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of a bundle for SafeLUCB."""

    lease: LeaseRecord


class BankHead(SignedHead, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of a bundle for a guard."""

    lease: BankLease


AnyHead: TypeAlias = BundleHead | BankHead
H = TypeVar("H", BundleHead, BankHead)
FORMATS: dict[type, bytes] = {BundleHead: FORMAT, BankHead: BANK_FORMAT}


class Bundle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A lease on its way to an edge: the signed `head`, the frozen set, and the actions with the first one.

    `coins` is the secret that a guard's coins follow from under this lease.
    """

    head: bytes
    signature: str
    state: bytes
    actions: bytes | None = None
    coins: bytes | None = None


class EdgeActions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The actions of a catalogue, and the map that makes rows of a context, if there is one."""

    names: list[str]
    rows: list[list[float]]
    feature_map: tuple[MapKind, int, float] | None = None


def map_of(kind: MapKind, rows: Any, context_dim: int, context_bound: float) -> Shared | Interactions:
    """The map from a context to rows, by its name."""
    made = Shared if kind == "shared" else Interactions
    return made(rows, context_dim=context_dim, context_bound=context_bound)


def digest_of(data: bytes) -> str:
    """The SHA-256 that bytes are named by."""
    return hashlib.sha256(data).hexdigest()


def sign(
    head: AnyHead, state: bytes, key: SigningKey, actions: bytes | None = None, coins: bytes | None = None
) -> Bundle:
    """A bundle with this head."""
    written = canonical(head)
    return Bundle(written, key.sign(FORMATS[type(head)] + written), state, actions, coins)


def coins_secret(key: SigningKey, hub: str, shard: str, log: str, lease: int) -> bytes:
    """The secret of the coins of one lease: the same in every server of the hub, and in nobody else's hands.

    Ed25519 signs the same words with the same bits, so nothing has to be kept.
    """
    told = canonical({"hub": hub, "shard": shard, "log": log, "lease": lease})
    return hashlib.sha256(bytes.fromhex(key.sign(COINS + told))).digest()


def read_head(head: bytes, signature: str, key: PublicKey | SigningKey, kind: type[H]) -> H:
    """What a head says, if that key has signed it."""
    if not key.has_signed(signature, FORMATS[kind] + head):
        raise ConfigError(
            "A lease must be signed by the service's key, but this one is not: it was forged or altered, or the key is "
            "another one. Compare the edge's `key` with the server's `signing_key`."
        )
    try:
        return msgspec.json.decode(head, type=kind)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"A lease must be one that this surefoot can read, but: {error}. Update it.") from None


class CheckedBundle(Generic[H]):
    """A bundle whose signature, address and content were checked."""

    def __init__(
        self, bundle: Bundle, key: PublicKey, kind: type[H], *, experiment: str, shard: str, token: str
    ) -> None:
        self.bundle = bundle
        self.head: H = read_head(bundle.head, bundle.signature, key, kind)
        told, meant = (self.head.experiment, self.head.shard), (experiment, shard)
        if told != meant or self.head.log != digest_of(token.encode()) or self.head.lease.shard != shard:
            raise ConfigError(
                f"A lease must be for this log, of edge {shard!r} of {experiment!r}, but this one is for another "
                f"({told[1]!r} of {told[0]!r}). A bundle works in the log that it was asked for by, and nowhere else."
            )
        if digest_of(bundle.state) != self.head.lease.digest:
            raise ConfigError("A lease must come with the set that its head names, but this one was altered.")
        if bundle.actions is not None and digest_of(bundle.actions) != self.head.actions:
            raise ConfigError("A lease must come with the actions that its head names, but these were altered.")


class OpenedBundle(CheckedBundle[BundleHead]):
    """A bundle for SafeLUCB."""

    def __init__(self, bundle: Bundle, key: PublicKey, **meant: str) -> None:
        super().__init__(bundle, key, BundleHead, **meant)

    def lease(self) -> Lease:
        """The lease, as a shard takes it."""
        return LINEAR.lease_of(self.head.lease, self.bundle.state)


class OpenedBank(CheckedBundle[BankHead]):
    """A bundle for a guard."""

    def __init__(self, bundle: Bundle, key: PublicKey, **meant: str) -> None:
        super().__init__(bundle, key, BankHead, **meant)
        coins = bundle.coins
        if coins is None or digest_of(coins) != self.head.lease.coins:
            raise ConfigError("A guard's lease must come with the coins that its head names, but these were altered.")
        self.coins = coins

    def lease(self) -> GuardLease:
        """The lease, as a shard takes it."""
        return BANK.lease_of(self.head.lease, self.bundle.state)


class OfferedActions:
    """What is offered where a decision names no actions of its own."""

    def __init__(self, data: bytes) -> None:
        told = msgspec.json.decode(data, type=EdgeActions)
        self.names = told.names
        self._rows = np.array(told.rows, dtype=np.float64)
        self._map = None if told.feature_map is None else map_of(told.feature_map[0], self._rows, *told.feature_map[1:])

    def rows(self, context: Any) -> Matrix:
        """One row per action."""
        if self._map is None:
            if context is not None:
                raise InputError("`context_features` must be left out: these actions have no feature map for them.")
            return self._rows
        if context is None:
            raise InputError(f"`context_features` must hold {self._map.context_dim} numbers for these actions.")
        return self._map(context)
