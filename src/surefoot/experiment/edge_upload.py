"""The chain of an edge where the shards meet: each event is made once more, by the verb that made it.

An edge decides in its own process and uploads its events. Here they are not believed but repeated: under the lease that
it had, each verb must write the same event, to the bit, or nothing is taken in. What is handed in to the other shards
is what this chain comes to. Private texts stay at the edge: a sealed event holds nothing that they are needed for.
"""

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from surefoot.errors import ConfigError, InputError, JournalNotFoundError, SurefootError
from surefoot.experiment import decisions, rewards
from surefoot.experiment.kinds import Ask
from surefoot.experiment.lease_renewal import accept_lease, adopt_mode, end_lease
from surefoot.experiment.sealing import find_decision
from surefoot.experiment.snapshots import caught_up
from surefoot.experiment.state import ShardLease, State
from surefoot.experiment.turn import Turn
from surefoot.journal import Head, Journal, Transaction
from surefoot.journal.events import Event, next_event
from surefoot.linear.actions import Catalogue
from surefoot.policies.by_name import make_policy
from surefoot.policies.coin import coin_of
from surefoot.rounds import decode, encode, events
from surefoot.rounds.events import BLOCK, LeaseEnded, Mode, ModeName, edge_chain
from surefoot.sharing.hub import Hub
from surefoot.sharing.pots import pot_of

SecretOf = Callable[[int], bytes]  # the secret of a block of an edge's coins, by its number


class UploadedEvent(msgspec.Struct, array_like=True, frozen=True):
    """An event of an edge's chain, as it is sent: its number and hash follow from those before."""

    kind: str
    key: str | None
    time: float
    payload: bytes


class RepeatedChain:
    """One edge's rounds, as they were taken in."""

    def __init__(self, journal: Journal, hub: Hub, shard: str, token: str, secret_of: SecretOf) -> None:
        self.name, self.shard = edge_chain(hub.name, shard), shard
        self._journal, self._hub, self.token, self._secret_of = journal, hub, token, secret_of
        self._state: State | None = None
        self._lease_mode = 0, 0  # the newest lease, and the event of the hub that says its mode
        self._alone = threading.Lock()

    @property
    def head(self) -> Head:
        """Where the chain stands: the receipt of everything before."""
        try:
            return self._journal.head(self.name)
        except JournalNotFoundError:
            return Head(0, "")

    def take_in(self, uploaded: Sequence[UploadedEvent], *, follows: int) -> tuple[Head, Any]:
        """Take in events that come after one of this number, once; where they end, and what is due to be handed in."""
        with self._alone:
            rest = list(uploaded)
            if follows == 0 and rest and self.head.number == 0:
                self._begin(rest.pop(0))
                follows = 1
            return self._journal.transact(self.name, lambda transaction: self._take(transaction, rest, follows))

    def _begin(self, first: UploadedEvent) -> None:
        created, link = self._hub.created()
        policy = pot_of(make_policy(created.policy, created.settings)).shard_policy
        own = msgspec.structs.replace(created, policy=policy, shard=self.shard, token=self.token, hub=link)
        if first.kind != events.CREATED or first.payload != encode(own):
            raise InputError(
                f"The chain of edge {self.shard!r} must begin with the experiment it joined, but does not."
            )
        self._journal.create(self.name, first.payload, time=first.time)

    def _take(self, transaction: Transaction, uploaded: Sequence[UploadedEvent], follows: int) -> tuple[Head, Any]:
        state, self._state = self._state, None
        state = caught_up(state, transaction)
        if state.shard is None or state.shard.token != self.token:
            raise ConfigError(
                f"Edge {self.shard!r} must come with the journal that it joined with, but this is another one. Join by "
                "a name that no shard has had; the lease of a journal that is gone stays charged."
            )
        coins = _RevealedCoins(self, state)
        for event in uploaded[self._known(transaction, uploaded, follows) :]:
            self._repeat(transaction, state, event, coins)
        self._state = state
        assert state.shard is not None
        return state.head, state.shard.due

    def _known(self, transaction: Transaction, uploaded: Sequence[UploadedEvent], follows: int) -> int:
        """How many of the events the chain has already, since an answer was lost."""
        if follows == transaction.head.number:
            return 0
        if not 0 <= follows < transaction.head.number:
            raise InputError(f"`follows` must be the number of an event of the edge's chain, but got {follows}.")
        known = list(transaction.read(follows, limit=len(uploaded)))
        for sent, event in zip(uploaded, known, strict=False):
            if sent != UploadedEvent(event.kind, event.key, event.time, event.payload):
                raise ConfigError(
                    f"The events of edge {self.shard!r} must follow what it handed in before, but differ from it: its "
                    "journal is a copy, from before or of another machine's. Begin a new one, by a new name."
                )
        return len(known)

    def _repeat(self, transaction: Transaction, state: State, sent: UploadedEvent, coins: "_RevealedCoins") -> None:
        if not sent.time >= state.time:
            raise self._refused(sent, f"it is of {sent.time!r}, but the chain has come to {state.time!r}")
        turn = Turn(transaction, state, sent.time, {}, coins)
        repeat = REPEAT.get(sent.kind, _word if sent.kind in events.WORDS else None)
        if repeat is None:
            raise self._refused(sent, "an edge does not write such events")
        try:
            expected = next_event(
                self.name, transaction.head, kind=sent.kind, payload=sent.payload, time=sent.time, key=sent.key
            )
            result = repeat(self, turn, expected)
        except (SurefootError, msgspec.MsgspecError, ValueError) as error:  # also rows that are none
            raise self._refused(sent, str(error)) from None
        if isinstance(result, SurefootError):
            raise self._refused(sent, str(result))
        if transaction.head != expected.head:
            raise self._refused(sent, "its lease comes to another one")

    def _refused(self, sent: UploadedEvent, problem: str) -> InputError:
        return InputError(
            f"An edge's events must be what its leases decide, but {problem} (a {sent.kind!r} at {sent.time!r}). "
            "Nothing was taken in."
        )

    def granted(self, lease: events.Lease) -> bytes:
        """What a lease that the hub gave was frozen with."""
        known = self._hub.granted(self.shard, lease.number)
        if known is None or known[0] != lease:
            raise InputError(f"lease {lease.number} is over, or another one was granted")
        return known[1]

    def secret(self, block: int) -> bytes:
        """The secret of a block of coins."""
        return self._secret_of(block)

    def hub_mode(self, number: int) -> ModeName:
        """The mode of all shards that an event of the hub says."""
        return self._hub.mode_at(number)

    def check_mode(self, shard: ShardLease) -> None:
        """Raise if the edge has passed over the mode that came with its lease."""
        lease = 0 if shard.lease is None else shard.lease.number
        if self._lease_mode[0] != lease:
            self._lease_mode = lease, self._hub.mode_of_lease(self.shard, lease)
        if shard.shared_mode < self._lease_mode[1]:
            raise InputError(f"the mode must be what event {self._lease_mode[1]} of the hub says")


class _RevealedCoins:
    """The coins of an edge, where its secrets are known, in one transaction."""

    def __init__(self, chain: RepeatedChain, state: State) -> None:
        self._chain, self._state, self.block = chain, state, 0
        self._begun: dict[str, tuple[int, bytes]] = {}  # by commitment, the event that began a block, and its secret

    def draw(self, turn: Turn, round_: int) -> float:
        """The coin of a decision; its block's event must stand in the chain already."""
        shard = self._state.shard
        lease = None if shard is None else shard.lease
        at = round_ // BLOCK - (0 if lease is None else lease.block)
        if lease is None or lease.coins is None or not 0 <= at < len(lease.coins):
            return float("nan")
        if lease.coins[at] not in self._begun:
            for event in turn.transaction.newest_of(events.COINS, 2):
                if decode(event, events.CoinBlock).commitment == lease.coins[at]:
                    self._begun[lease.coins[at]] = event.number, self._chain.secret(round_ // BLOCK)
        if lease.coins[at] not in self._begun:
            raise InputError(f"the block of round {round_} has not begun")
        self.block, secret = self._begun[lease.coins[at]]
        return coin_of(secret, round_)


def _round(chain: RepeatedChain, turn: Turn, event: Event) -> None:
    state = turn.state
    assert state.shard is not None
    chain.check_mode(state.shard)
    record: Any = decode(event, state.kind.round)
    request, features, catalogue = record.request, getattr(record.request, "features", None), None
    rows = None if features is None else np.array(features, dtype=np.float64)
    if getattr(request, "catalogue", None) is not None:
        catalogue = state.catalogue(request.catalogue, turn.transaction)
    if features is not None:
        request = msgspec.structs.replace(request, features=None)
    key = event.key or ""
    ask = Ask(
        record.decision_id, key, request, rows, catalogue, record.is_fallback,
        forecast=getattr(record, "forecast", None),
    )  # fmt: skip
    decisions.decide_new(turn, ask, request, None, record.decision_id)


def _catalogue(chain: RepeatedChain, turn: Turn, event: Event) -> None:
    record = decode(event, events.CatalogueRows)
    decisions.register(turn, Catalogue(record.rows))


def _coins(chain: RepeatedChain, turn: Turn, event: Event) -> None:
    record, shard = decode(event, events.CoinBlock), turn.state.shard
    lease = None if shard is None else shard.lease
    served = {} if lease is None else {one: BLOCK * at for at, one in enumerate(lease.coins or (), lease.block)}
    if record.commitment is None or served.get(record.commitment) != record.first:
        raise InputError("a block of coins must be of the lease")
    for number, secret in record.revealed:
        began = next(turn.transaction.read(max(0, number - 1), limit=1), None)
        committed = None if began is None else decode(began, events.CoinBlock).commitment
        if hashlib.sha256(bytes.fromhex(secret)).hexdigest() != committed:
            raise InputError(f"the secret of the block that event {number} began must be revealed as it was")
    turn.write(events.COINS, record)


def _reward(chain: RepeatedChain, turn: Turn, event: Event) -> Any:
    record = decode(event, events.Reward)
    if record.refused is not None:  # it changes nothing, and of an id that is sealed nobody here knows more
        turn.write(events.REWARD, record)
        turn.state.counts.rewarded(record, event.time)
        return None
    values = {name: float(one) for name, one in record.values.items()}
    receipt = rewards.reward(turn, record.decision_id, values, None)
    return None if receipt.is_accepted else InputError(f"its reward is refused: {receipt.refused}")


def _abandoned(chain: RepeatedChain, turn: Turn, event: Event) -> Any:
    record = decode(event, events.Abandoned)
    return rewards.abandon(turn, record.decision_id, record.reason, record.by)


def _voided(chain: RepeatedChain, turn: Turn, event: Event) -> Any:
    record, state = decode(event, events.Voided), turn.state
    if state.kind.stays_put and state.created.is_sealed and record.action is not None:
        decision = find_decision(state.created, turn.transaction, record.decision_id)
        if decision is None or turn.transaction.find(f"r:{record.decision_id}") is not None:
            raise InputError("a round is voided before its reward has come")
        state.voided(record, decision, turn.transaction, turn.now)
        turn.write(events.VOIDED, record, f"v:{record.decision_id}")
        return None
    return decisions.void(turn, record.decision_id, record.action, record.reason, record.by)


def _corrected(chain: RepeatedChain, turn: Turn, event: Event) -> Any:
    record = decode(event, events.Corrected)
    values = {name: float(one) for name, one in record.values.items()}
    return rewards.correct(turn, record.decision_id, values, record.reason, record.by)


def _mode(chain: RepeatedChain, turn: Turn, event: Event) -> None:
    number = decode(event, Mode).shared or 0
    adopt_mode(turn, chain.hub_mode(number), number)


def _word(chain: RepeatedChain, turn: Turn, event: Event) -> None:
    turn.write(event.kind, decode(event, turn.state.kind.records[event.kind]), event.key)


def _leased(chain: RepeatedChain, turn: Turn, event: Event) -> None:
    lease, shard = decode(event, events.Lease), turn.state.shard
    assert shard is not None
    before = 0 if shard.lease is None else shard.lease.number
    if lease.number != before + 1 or (shard.lease is not None and shard.due is None):
        raise InputError("another lease is next")
    accept_lease(turn, lease, chain.granted(lease))


def _ended(chain: RepeatedChain, turn: Turn, event: Event) -> None:
    record, shard = decode(event, LeaseEnded), turn.state.shard
    assert shard is not None
    if shard.lease is None or shard.due is not None:
        raise InputError("there is no lease to be ended")
    end_lease(turn, is_untimed=record.untimed)


REPEAT: dict[str, Callable[[RepeatedChain, Turn, Event], Any]] = {
    events.CATALOGUE: _catalogue,
    events.COINS: _coins,
    events.ROUND: _round,
    events.VISIT: _round,
    events.REWARD: _reward,
    events.SETTLED: lambda _, turn, event: turn.close_windows(),
    events.ABANDONED: _abandoned,
    events.VOIDED: _voided,
    events.CORRECTED: _corrected,
    events.MODE: _mode,
    events.SNAPSHOT: lambda _, turn, event: turn.snapshot(),
    events.LEASED: _leased,
    events.LEASE_ENDED: _ended,
}
