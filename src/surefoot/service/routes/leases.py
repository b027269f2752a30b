"""Shards that share a floor: who is there, what each may lose, and what is proved of all of them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from litestar import Request, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import PathParameter

from surefoot.errors import DecisionError, InputError, JournalError, SurefootError
from surefoot.experiment import ShardedExperiment
from surefoot.experiment.decoding import decode
from surefoot.experiment.lease_forms import form_of
from surefoot.experiment.lift import earnings_of
from surefoot.experiment.policy_by_name import new_policy
from surefoot.journal import Journal
from surefoot.leases import Coordinator, GuardCoordinator
from surefoot.leases.merging import Member
from surefoot.policies import Guard
from surefoot.records import LOST, LeaseRecord, Lost
from surefoot.service.authorization import visit_of
from surefoot.service.lift_models import LiftStanding, lift_standing
from surefoot.service.problems import ProblemError
from surefoot.service.registry import Registry
from surefoot.service.request_bodies import body_of
from surefoot.service.request_models import LoseShard
from surefoot.service.routes.route_options import ExperimentName, guarded, problems
from surefoot.service.shards import sharded

TAGS = ["monitoring"]
MOST_LOSSES = 200  # that are looked up, the newest
ShardName = Annotated[str, PathParameter(description="The shard's name.", max_length=200)]


class ShardRead(msgspec.Struct):
    """A shard: `amount` is what it may lose under its lease, `rounds` and `through` are what it has handed in.

    Of a guard, `amounts` says it for each metric, in its own units, and `amount` for the one whose bank holds least.
    One that nobody waits for is away: it has left, or `lost_by` said so, for the reason `lost`.
    """

    name: str
    lease: int
    amount: float
    rounds: int
    through: float
    is_away: bool
    amounts: dict[str, float] = {}
    lost: str | None = None
    lost_by: str = ""


class SharedBankRead(msgspec.Struct):
    """The bank of one metric of a guard, in its own units: what it holds, and what is leased of it."""

    pot: float
    leased: float


class ShardsRead(msgspec.Struct):
    """The shards of an experiment; none where it has one ledger.

    `leased` is the sum of all leases, at most `pot`: what is proved of all rounds handed in, and a reserve. Of a guard
    `banks` says both for each metric, and the two are those of the one that holds least. `error` tells why this
    server's lease was not renewed when it was last tried. While the hub does not answer, `pot` and `leased` are null,
    and of the shards there is but this server, as its newest lease has it. `lift` is over the rounds of all servers, as
    far as they are merged, where a server's own summary is about its newest lease; null for a guard, whose summary
    says it, and before the learner's first round.
    """

    shard: str | None
    pot: float | None
    leased: float | None
    shards: list[ShardRead]
    error: str | None = None
    banks: dict[str, SharedBankRead] = {}
    lift: LiftStanding | None = None


def routes(registry: Registry) -> list[HTTPRouteHandler]:
    """The handlers."""

    async def found_at(experiment: ShardedExperiment) -> ShardsRead:
        error: SurefootError | None = None
        try:
            found: ShardsRead = await registry.run(experiment.coordinator, shards_of)
            if any(shard.is_away for shard in found.shards):
                await registry.run(tell_losses, registry.shards.hub, experiment.name, found)
        except JournalError as away:
            found, error = await registry.run(_own_lease, registry.journal, experiment), away
        found.shard = experiment.settings.shard
        error = experiment.lease_error or error
        found.error = None if error is None else str(error)
        return found

    @get(
        "/v1/experiments/{name:str}/shards",
        **guarded("read", TAGS, "readShards"),
        responses=problems("unknown-experiment"),
    )
    async def read(name: ExperimentName) -> ShardsRead:
        """Who shares the experiment's floor, and what each of them is leased."""
        experiment = (await registry.find(name)).experiment
        return (
            await found_at(experiment) if isinstance(experiment, ShardedExperiment) else ShardsRead(None, 0.0, 0.0, [])
        )

    @post(
        "/v1/experiments/{name:str}/shards/{shard:str}/loss",
        **guarded("admin", TAGS, "loseShard", body=(LoseShard,)),
        status_code=200,
        responses=problems("unknown-experiment", "not-sharded", "outcome-unknown", body=True),
    )
    async def lose(request: Request[Any, Any, Any], name: ExperimentName, shard: ShardName) -> ShardsRead:
        """Stop waiting for the rounds of a shard or an edge that is gone; its lease stays charged."""
        data = await body_of(request, LoseShard)
        experiment, visit = sharded((await registry.find(name)).experiment), visit_of(request.scope)
        await registry.run(experiment.lose, shard, reason=data.reason, by=visit.by)
        visit.notes.update(experiment=name, shard=shard)
        return await found_at(experiment)

    @post(
        "/v1/experiments/{name:str}/shards/{shard:str}/departure",
        **guarded("admin", TAGS, "leaveFloor"),
        status_code=200,
        responses=problems("unknown-experiment", "not-sharded", "rounds-open", "outcome-unknown"),
    )
    async def leave(request: Request[Any, Any, Any], name: ExperimentName, shard: ShardName) -> ShardsRead:
        """Have this server hand in its last rounds and leave for good: only the baseline plays here from then on."""
        experiment, visit = sharded((await registry.find(name)).experiment), visit_of(request.scope)
        if shard != experiment.settings.shard:
            raise InputError(
                f"A server leaves by itself, but {shard!r} was asked of {experiment.settings.shard!r}. Ask that one; "
                "one that is gone is lost (`loss`)."
            )
        try:
            await registry.run(experiment.leave)
        except DecisionError as error:
            raise ProblemError("rounds-open", str(error)) from None
        visit.notes.update(experiment=name, shard=shard)
        return await found_at(experiment)

    return [read, lose, leave]


def shards_of(coordinator: Coordinator | GuardCoordinator) -> ShardsRead:
    """What the coordinator knows of its shards."""
    members = sorted(coordinator.members.all.items())
    if isinstance(coordinator, GuardCoordinator):
        return _banks_of(coordinator, members)
    shards = [ShardRead(name, one.lease, one.amount, one.rounds, one.through, one.is_away) for name, one in members]
    lift = lift_standing(earnings_of(coordinator.policy).lift)
    return ShardsRead(None, coordinator.pot, coordinator.leased, shards, lift=lift)


def tell_losses(hub: Journal, name: str, found: ShardsRead) -> None:
    """Who said that nobody waits for a shard any more, and why."""
    said = dict[str, Lost]()
    for event in hub.view(name).newest_of(LOST, MOST_LOSSES):
        record = decode(event, Lost)
        said.setdefault(record.shard, record)  # the newest word of each comes first
    for shard in found.shards:
        if shard.is_away and shard.name in said:
            shard.lost, shard.lost_by = said[shard.name].reason, said[shard.name].by


def _own_lease(journal: Journal, experiment: ShardedExperiment) -> ShardsRead:
    """What a server knows by its own chain: the lease that it has, or had last."""
    created = experiment.settings
    form = form_of(created)
    event = journal.view(experiment.name).latest(form.leased)
    if event is None:
        return ShardsRead(None, None, None, [])
    lease = decode(event, form.lease)
    told = lease.shard, lease.number
    if isinstance(lease, LeaseRecord):
        own = ShardRead(*told, lease.amount, lease.merged, lease.since, is_away=False)
    else:
        guard = new_policy(created)
        assert isinstance(guard, Guard)
        highs = {name: metric.high for name, metric in guard.metrics.items()}
        least = min(zip(lease.amounts, highs, strict=True))[1]
        amounts = _in_units(highs, lease.amounts)
        own = ShardRead(*told, amounts[least], lease.merged, lease.since, is_away=False, amounts=amounts)
    return ShardsRead(None, None, None, [own])


def _in_units(highs: Mapping[str, float], amounts: Sequence[float]) -> dict[str, float]:
    """What each bank may lose, in the units of its metric."""
    return {name: high * amount for (name, high), amount in zip(highs.items(), amounts, strict=True)}


def _banks_of(coordinator: GuardCoordinator, members: list[tuple[str, Member]]) -> ShardsRead:
    highs = {name: metric.high for name, metric in coordinator.policy.metrics.items()}
    sums = zip(highs.items(), coordinator.pot, coordinator.leased, strict=True)
    banks = {name: SharedBankRead(high * pot, high * leased) for (name, high), pot, leased in sums}
    least = min(zip(coordinator.pot, highs, strict=True))[1]
    shards = []
    for name, one in members:
        amounts = _in_units(highs, one.amounts or [0.0] * len(highs))
        shards.append(ShardRead(name, one.lease, amounts[least], one.rounds, one.through, one.is_away, amounts))
    return ShardsRead(None, banks[least].pot, banks[least].leased, shards, banks=banks)
