"""The edges of a server: signed leases out, logs in."""

import threading
from collections.abc import Sequence

import msgspec

from surefoot.edge.bundle import Bundle, BundleHead, digest_of, read_head, sign
from surefoot.edge.edge_chain import EdgeChain
from surefoot.edge.edge_entries import HandedEntry, read_handed
from surefoot.edge.edge_messages import EdgeLease, HandInEntries, JoinEdge
from surefoot.errors import AssumptionError, ConfigError, JournalError
from surefoot.experiment import Experiment, ShardedExperiment
from surefoot.experiment.lease_forms import AnyLeaseRecord
from surefoot.experiment.lease_hub import Granted, Room
from surefoot.experiment.policy_by_name import is_guard
from surefoot.journal import Head
from surefoot.journal.signatures import SigningKey
from surefoot.records import LeaseRecord
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
        shop, key, limits = self._shared(experiment), self._key(), self._registry.settings.limits
        room = Room(limits.edges, limits.edges_per_token)
        granted = shop.hub.join(asked.shard, asked.token, by=by, room=room)
        record = _of_floor(granted.record)
        digest = None if actions is None else digest_of(actions)
        chain = self._chain(shop, asked.shard, asked.token, record.since)
        head = self._head(shop, asked.token, granted, digest)
        return self._answer(
            shop, chain.head, msgspec.structs.replace(sign(head, _whole(granted.data), key), actions=actions)
        )

    def take(self, experiment: Experiment, shard: str, given: HandInEntries) -> EdgeLease:
        """Take in entries of an edge's log, and lease to it anew once its lease has ended."""
        shop, key = self._shared(experiment), self._key()
        told = read_head(given.head, given.signature, key)
        meant = shop.name, shard, shop.settings.hub, digest_of(given.token.encode())
        if (told.experiment, told.shard, told.hub, told.log) != meant:
            raise ConfigError(f"Edge {shard!r} of {shop.name!r} must hand in by its own lease, but this is another's.")
        chain = self._chain(shop, shard, given.token, told.lease.since)
        entries, lease = read_handed(given.entries), told.lease.number
        _check_moments(entries, shop.hub.now(), told.skew)
        head, due = chain.take_in(entries, follows=given.follows, lease=lease, mode=told.mode)
        if due is None:
            return self._answer(shop, head)
        granted = shop.hub.take(msgspec.structs.replace(due, leaves=given.leaves), sent=given.sent)
        if granted is None:
            return self._answer(shop, head)
        signed = self._head(shop, given.token, granted, told.actions)
        return self._answer(shop, head, sign(signed, _whole(granted.data), key))

    def _head(self, shop: ShardedExperiment, token: str, granted: Granted, actions: str | None) -> BundleHead:
        created, record, mode = shop.settings, _of_floor(granted.record), shop.status().mode
        assert created.hub is not None
        # What was said at another server holds for edges at once, and so does a pause that the hub has not heard of.
        if granted.mode.event and mode != "paused":
            mode = granted.mode.mode
        return BundleHead(
            experiment=shop.name,
            hub=created.hub,
            shard=record.shard,
            log=digest_of(token.encode()),
            lease=record,
            mode=mode,
            skew=created.skew or 0.0,
            expires=shop.hub.now() + self._registry.settings.edge_seconds,
            entry_bytes=max(0, self._registry.settings.limits.body_bytes - AROUND) * 3 // 4,  # in base64
            reward_bounds=created.reward_bounds,
            actions=actions,
            reward_window=created.reward_window,
            default_reward=created.default_reward,
        )

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

    def _shared(self, experiment: Experiment) -> ShardedExperiment:
        experiment = sharded(experiment)
        if is_guard(experiment.settings.policy):
            raise ConfigError(f"An edge decides for SafeLUCB, but {experiment.name!r} has a guard: ask a server.")
        return experiment

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


def _of_floor(record: AnyLeaseRecord) -> LeaseRecord:
    assert isinstance(record, LeaseRecord)
    return record


def _whole(state: bytes | None) -> bytes:
    if state is None:
        raise JournalError("The set of a lease must be where the shards meet, but was lost: join by a new name.")
    return state
