"""The edges of a server: signed leases out, logs in."""

import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from surefoot.edge.bundle import AnyHead, BankHead, Bundle, BundleHead, coins_secret, digest_of, read_head, sign
from surefoot.edge.edge_chain import EdgeChain, LeaseTerms
from surefoot.edge.edge_entries import HandedEntry, read_handed
from surefoot.edge.edge_messages import EdgeLease, HandInEntries, JoinEdge
from surefoot.errors import AssumptionError, ConfigError, JournalError
from surefoot.experiment import Experiment, ShardedExperiment
from surefoot.experiment.lease_hub import Granted, Room
from surefoot.experiment.policy_by_name import is_guard
from surefoot.journal import Head
from surefoot.journal.signatures import SigningKey
from surefoot.records import BankLease
from surefoot.service.registry import Registry
from surefoot.service.shards import sharded

AROUND = 4096  # bytes of a request around its entries, at most


class Edges:
    """Every edge whose chain this server has open; any server of the hub can take in the log of any edge."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._chains: dict[tuple[str, str], EdgeChain] = {}
        self._opening = threading.Lock()

    def join(self, experiment: Experiment, asked: JoinEdge, actions: bytes | None, *, by: str) -> EdgeLease:
        """Let an edge in, with a first lease; the same again if its answer was lost."""
        shop, limits = sharded(experiment), self._registry.settings.limits
        _check_kind(shop, asked)
        key = self._key()
        room, log = Room(limits.edges, limits.edges_per_token), digest_of(asked.token.encode())
        coins = _Coins(key, shop, asked.shard, log)
        granted = shop.hub.join(asked.shard, asked.token, by=by, room=room, commit=coins.commit)
        digest = None if actions is None else digest_of(actions)
        chain = self._chain(shop, asked.shard, asked.token, granted.record.since)
        bundle = self._bundle(shop, log, granted, digest, coins)
        return self._answer(shop, chain.head, msgspec.structs.replace(bundle, actions=actions))

    def take(self, experiment: Experiment, shard: str, given: HandInEntries) -> EdgeLease:
        """Take in entries of an edge's log, and lease to it anew once its lease has ended."""
        shop, key = sharded(experiment), self._key()
        told = _head_of(shop, given, key)
        meant = shop.name, shard, shop.settings.hub, digest_of(given.token.encode())
        if (told.experiment, told.shard, told.hub, told.log) != meant:
            raise ConfigError(f"Edge {shard!r} of {shop.name!r} must hand in by its own lease, but this is another's.")
        shop.hub.check_granted(shard, given.token, told.lease.number)
        chain = self._chain(shop, shard, given.token, told.lease.since)
        entries, coins = read_handed(given.entries), _Coins(key, shop, shard, told.log)
        _check_moments(entries, shop.hub.now(), told.skew)
        secret = coins.secret(told.lease.number) if isinstance(told, BankHead) else None
        terms = LeaseTerms(told.lease.number, told.mode, told.expires, secret)
        head, due = chain.take_in(entries, terms, follows=given.follows)
        if due is None:
            return self._answer(shop, head)
        leaving = msgspec.structs.replace(due, leaves=given.leaves)
        granted = shop.hub.take(leaving, sent=given.sent, commit=coins.commit)
        if granted is None:
            return self._answer(shop, head)
        return self._answer(shop, head, self._bundle(shop, told.log, granted, told.actions, coins))

    def _bundle(
        self, shop: ShardedExperiment, log: str, granted: Granted, actions: str | None, coins: "_Coins"
    ) -> Bundle:
        created, record, mode = shop.settings, granted.record, shop.status().mode
        assert created.hub is not None
        # What was said at another server holds for edges at once, and so does a pause that the hub has not heard of.
        if granted.mode.event and mode != "paused":
            mode = granted.mode.mode
        told: dict[str, Any] = {
            "experiment": shop.name, "hub": created.hub, "shard": record.shard, "log": log, "mode": mode,
            "skew": created.skew or 0.0, "expires": shop.hub.now() + self._registry.settings.edge_seconds,
            "entry_bytes": max(0, self._registry.settings.limits.body_bytes - AROUND) * 3 // 4,  # in base64
            "reward_bounds": created.reward_bounds, "actions": actions, "reward_window": created.reward_window,
            "default_reward": created.default_reward,
        }  # fmt: skip
        state = _whole(granted.data)
        if isinstance(record, BankLease):
            return sign(BankHead(lease=record, **told), state, self._key(), coins=coins.secret(record.number))
        return sign(BundleHead(lease=record, **told), state, self._key())

    def _answer(self, shop: ShardedExperiment, head: Head, bundle: Bundle | None = None) -> EdgeLease:
        return EdgeLease(number=head.number, hash=head.hash, now=shop.hub.now(), bundle=bundle)

    def _chain(self, shop: ShardedExperiment, shard: str, token: str, since: float) -> EdgeChain:
        with self._opening:
            if (shop.name, shard) not in self._chains:
                made = EdgeChain(self._registry.shards.hub, shop.hub, shard, token, since=since)
                self._chains[shop.name, shard] = made
            found = self._chains[shop.name, shard]
        found.check_token(token)
        return found

    def _key(self) -> SigningKey:
        key = self._registry.heads.key
        if key is None:
            raise ConfigError("`signing_key` must be set for a server with edges: they check whose lease they go by.")
        return key


def _check_moments(entries: Sequence[HandedEntry], now: float, skew: float) -> None:
    """Raise for what is from the future: nothing of the edge could be taken in until then, were it in its chain."""
    latest = max((entry.moment for entry in entries), default=now)
    if not latest <= now + skew / 2:
        raise AssumptionError(
            f"An edge's clock must agree with the service's within half of skew={skew:g} seconds, but an entry is of "
            f"moment={latest!r}, and it is {now!r}. Set its clock; what it has stamped is taken in once it has passed."
        )


def _is_guarded(shop: ShardedExperiment) -> bool:
    return is_guard(shop.settings.policy)


def _head_of(shop: ShardedExperiment, given: HandInEntries, key: SigningKey) -> AnyHead:
    if _is_guarded(shop):
        return read_head(given.head, given.signature, key, BankHead)
    return read_head(given.head, given.signature, key, BundleHead)


def _check_kind(shop: ShardedExperiment, asked: JoinEdge) -> None:
    """Raise before an edge is let in that could not use its lease."""
    if (asked.kind == "guard") != _is_guarded(shop):
        policy, edge = ("a guard", "GuardEdge") if _is_guarded(shop) else ("SafeLUCB", "Edge")
        raise ConfigError(
            f"An edge must decide for the experiment's policy, but {shop.name!r} has {policy}: open it by "
            f"`surefoot.edge.{edge}`."
        )
    if asked.catalogue is not None and _is_guarded(shop):
        raise ConfigError("`catalogue` must be left out for a guard: each of its decisions names its two actions.")


class _Coins:
    """The secrets of one edge's coins, lease by lease."""

    def __init__(self, key: SigningKey, shop: ShardedExperiment, shard: str, log: str) -> None:
        self._key, self._told = key, (shop.settings.hub or "", shard, log)

    def secret(self, lease: int) -> bytes:
        """What the coins of a lease follow from."""
        return coins_secret(self._key, *self._told, lease)

    def commit(self, lease: int) -> str:
        """What everybody may know of it before the coins have fallen."""
        return digest_of(self.secret(lease))


def _whole(state: bytes | None) -> bytes:
    if state is None:
        raise JournalError("The set of a lease must be where the shards meet, but was lost: join by a new name.")
    return state
