"""The edges of a server: signed leases out, events in, each made once more before it counts."""

import hashlib
import hmac
import threading
from functools import partial

import msgspec

from surefoot.errors import AssumptionError, ConfigError, InputError
from surefoot.experiment import Experiment
from surefoot.experiment.edge_upload import RepeatedChain, UploadedEvent
from surefoot.journal.signatures import SigningKey
from surefoot.rounds import encode
from surefoot.service.registry import Registry
from surefoot.service.shared_experiments import leases_of
from surefoot.sharing.edge_messages import (
    EdgeOrigin,
    EdgeStanding,
    JoinEdge,
    SignedLease,
    UploadEvents,
    coin_secret,
    lease_proof,
)
from surefoot.sharing.hub import EdgeTerms, Granted, Hub, Room

AROUND = 4096  # bytes of a request around its events, at most


class Edges:
    """Every edge whose chain this server has open; any server of the hub can take in the events of any edge."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._chains: dict[tuple[str, str], RepeatedChain] = {}
        self._opening = threading.Lock()

    def read(self, experiment: Experiment) -> EdgeOrigin:
        """What an edge begins its chain with."""
        hub: Hub = leases_of(experiment).hub
        created, link = hub.created()
        return EdgeOrigin(encode(created), link, hub.now())

    def join(self, experiment: Experiment, data: JoinEdge, *, by: str) -> EdgeStanding:
        """Let an edge in, with a first lease; the same again if its answer was lost."""
        hub, limits = leases_of(experiment).hub, self._registry.settings.limits
        room = Room(limits.edges, limits.edges_per_token)
        granted = hub.join(
            data.shard, data.token, by=by, room=room, terms=self._terms(experiment, data.shard, data.token)
        )
        head = self._chain(experiment, data.shard, data.token).head
        lease = self._signed(experiment, data.shard, granted)
        return EdgeStanding(head.number, head.hash, hub.now(), lease)

    def take(self, experiment: Experiment, shard: str, data: UploadEvents) -> EdgeStanding:
        """Take in events of an edge's chain, and lease to it anew once its lease has ended."""
        hub: Hub = leases_of(experiment).hub
        proof = lease_proof(self._key(), experiment.settings.hub or "", shard, data.token, data.lease)
        hub.check_granted(shard, data.token, data.lease, is_proved=hmac.compare_digest(proof, data.proof))
        if data.is_opening:
            hub.confirm(shard, data.token, data.lease, is_ended=data.is_ended)
        chain, now, skew = self._chain(experiment, shard, data.token), hub.now(), experiment.settings.skew or 0.0
        try:
            uploaded = msgspec.msgpack.decode(data.events, type=list[UploadedEvent])
        except msgspec.MsgspecError as error:
            raise InputError(
                f"`events` must be a list of [kind, key, time, payload] in msgpack, but: {error}."
            ) from None
        head, due = chain.head, None
        if uploaded or data.is_ended:
            if not uploaded and head.number == 0:
                raise ConfigError(f"Edge {shard!r} has no events here: its lease cannot have ended.")
            if uploaded and not max(event.time for event in uploaded) <= now + skew / 2:
                raise AssumptionError(
                    f"An edge's clock must agree with its service's within half of skew={skew:g} seconds, but an event "
                    f"is of {max(event.time for event in uploaded)!r}, and it is {now!r}. Set its clock; what it has "
                    "stamped is taken in once that time has come."
                )
            head, due = chain.take_in(uploaded, follows=data.follows)
        if due is None or not data.is_ended:
            return EdgeStanding(head.number, head.hash, now)
        hand_in = msgspec.structs.replace(due, leaves=data.leaves)
        granted = hub.take(hand_in, sent=data.sent, terms=self._terms(experiment, shard, data.token))
        lease = None if granted is None else self._signed(experiment, shard, granted)
        return EdgeStanding(head.number, head.hash, hub.now(), lease, has_left=lease is None)

    def _terms(self, experiment: Experiment, shard: str, token: str) -> EdgeTerms:
        expires = leases_of(experiment).hub.now() + self._registry.settings.edge_seconds
        # In base64, which takes four bytes for three.
        most = max(0, self._registry.settings.limits.body_bytes - AROUND) * 3 // 4
        proof = partial(lease_proof, self._key(), experiment.settings.hub or "", shard, token)
        if not experiment.kind.draws:
            return EdgeTerms(expires, most, proof)
        secret = self._secret_of(experiment, shard)
        return EdgeTerms(expires, most, proof, lambda block: hashlib.sha256(secret(block)).hexdigest())

    def _secret_of(self, experiment: Experiment, shard: str) -> "partial[bytes]":
        return partial(coin_secret, self._key(), experiment.settings.hub or "", shard)

    def _signed(self, experiment: Experiment, shard: str, granted: Granted) -> SignedLease:
        lease = granted.lease
        blocks = range(lease.block, lease.block + len(lease.coins or ()))
        secrets = tuple(self._secret_of(experiment, shard)(block) for block in blocks)
        hub = experiment.settings.hub or ""
        return SignedLease.sign(experiment.name, hub, granted._replace(secrets=secrets), self._key())

    def _chain(self, experiment: Experiment, shard: str, token: str) -> RepeatedChain:
        hub: Hub = leases_of(experiment).hub
        with self._opening:
            known = self._chains.get((experiment.name, shard))
            if known is None or known.token != token:
                secret_of = self._secret_of(experiment, shard)
                known = RepeatedChain(self._registry.shared.hub, hub, shard, token, secret_of)
                self._chains[experiment.name, shard] = known
            return known

    def _key(self) -> SigningKey:
        key = self._registry.heads.key
        if key is None:
            raise ConfigError("`signing_key` must be set for a server with edges: they check whose lease they go by.")
        return key
