"""Experiments: create, list, read, change of mode; and the catalogues of their actions."""

from collections.abc import Mapping
from typing import Any

import msgspec
from litestar import Request, Response, get, post, put
from litestar.handlers import HTTPRouteHandler

from surefoot.errors import InputError, JournalError
from surefoot.experiment import Status
from surefoot.experiment.configuration import Configuration, configuration_in
from surefoot.policies import Policy
from surefoot.policies.by_name import make_policy
from surefoot.rounds.events import Created
from surefoot.service import requests, responses
from surefoot.service.authorization import visit_of
from surefoot.service.catalogues import Catalogues, refuse_size
from surefoot.service.problems import Fault, ProblemError
from surefoot.service.registry import OpenExperiment, Registry
from surefoot.service.requests import body_of
from surefoot.service.routes.route_options import ExperimentName, also, guarded, problems

TAGS = ["experiments"]


class ExperimentSettings(msgspec.Struct):
    """What an experiment was created with; `history_rows` were learned before the first decision.

    `forked_from` is the experiment that these rows came from, if any, and `by` who created it.
    """

    policy: str
    settings: dict[str, Any]
    mode: str
    software: str
    reward_window: float | None
    default_reward: float | None
    reward_bounds: tuple[float, float] | None
    history_rows: int
    description: str
    configuration: str | None = None
    confirm_within: float | None = None
    by: str = ""
    forked_from: str | None = None


def routes(registry: Registry, catalogues: Catalogues) -> list[HTTPRouteHandler]:
    """The handlers."""
    limits = registry.settings.limits

    async def status(opened: OpenExperiment) -> Status:
        return await registry.run(opened.look)

    @post(
        "/v1/experiments",
        **guarded("admin", TAGS, "createExperiment", body=requests.CreateExperiment),
        responses=also(200, Status, "It was created before, with the same settings; its mode may be another by now.")
        | problems("experiment-exists", "broken-assumption", "outcome-unknown", body=True),
    )
    async def create(request: Request[Any, Any, Any]) -> Response[Status]:
        """Begin an experiment; it starts in shadow, unless `mode` says otherwise."""
        data = await body_of(request, requests.CreateExperiment)
        policy = policy_of(data) if data.configuration is None else configured(data, data.configuration)
        history = None if data.history is None else (data.history.features, data.history.rewards)
        visit = visit_of(request.scope)
        if not visit.may_see(data.name):
            raise ProblemError("not-allowed", "This token is for other experiments.")
        settings: dict[str, Any] = {
            "mode": data.mode,
            "actions": data.actions,
            "reward_window": data.reward_window,
            "default_reward": data.default_reward,
            "reward_bounds": data.reward_bounds,
            "description": data.description,
            "by": visit.by,
            "feature_names": data.feature_names,
            "reward_unit": data.reward_unit,
        }
        is_new = data.name not in await registry.names()
        if data.ledger == "sharded":
            single = ("history", "configuration", "confirm_within")
            if any(getattr(data, field) is not None for field in single):
                raise InputError(f"{', '.join(f'`{field}`' for field in single)} must be left out of a sharded ledger.")
            opened = await registry.create_shared(data.name, policy, skew=data.skew, **settings)
        else:
            opened = await registry.create(
                data.name,
                policy,
                **settings,
                history=history,
                despite_doubt=data.despite_doubt,
                sealed=data.sealed,
                confirm_within=data.confirm_within,
            )
        visit.notes["experiment"] = data.name
        return Response(await status(opened), status_code=201 if is_new else 200)

    def policy_of(data: requests.CreateExperiment) -> Policy:
        # Checked before the policy is made, which allocates the square of it.
        for name in ("dim", "arms", "metrics"):
            size = data.settings.get(name, 1)
            refuse_dim(len(size) if isinstance(size, dict) else size, f"settings.{name}")
        refuse_seed(data.settings)
        policy: Policy = make_policy(data.policy, data.settings)
        return policy

    def configured(data: requests.CreateExperiment | requests.ForkExperiment, text: str) -> Configuration:
        if data.settings:
            raise InputError("`settings` must be left out where a `configuration` is given, which has them.")
        configuration = configuration_in(text)
        refuse_dim(configuration.phi.dim, "configuration")
        return configuration

    def refuse_dim(dim: Any, place: str) -> None:
        if isinstance(dim, int) and dim > limits.dimensions:
            rule = f"at most {limits.dimensions} are taken, but got {dim}"
            raise ProblemError("invalid", f"In `{place}`, {rule}.", [Fault(place, rule)])

    @get("/v1/experiments", **guarded("read", TAGS, "listExperiments"), responses=problems())
    async def list_(request: Request[Any, Any, Any]) -> responses.Experiments:
        """All experiments at a glance; those that cannot be read apart, with the reason."""
        listed = responses.Experiments([])
        visit = visit_of(request.scope)
        for name in filter(visit.may_see, await registry.names()):
            try:
                listed.experiments.append(await status(await registry.find(name)))
            except JournalError as error:
                registry.note_damage(name, error)
                if name not in registry.health.damaged:  # it is the journal that fails
                    raise
                listed.damaged.append(responses.DamagedExperiment(name, registry.health.damaged[name]))
        return listed

    @get(
        "/v1/experiments/{name:str}",
        **guarded("read", TAGS, "readExperiment"),
        responses=problems("unknown-experiment"),
    )
    async def read(name: ExperimentName) -> Status:
        """Where an experiment stands."""
        return await status(await registry.find(name))

    @get(
        "/v1/experiments/{name:str}/settings",
        **guarded("read", TAGS, "readSettings"),
        responses=problems("unknown-experiment"),
    )
    async def settings(name: ExperimentName) -> ExperimentSettings:
        """What an experiment was created with."""
        return settings_read((await registry.find(name)).experiment.settings)

    @post(
        "/v1/experiments/{name:str}/forks",
        **guarded("admin", TAGS, "forkExperiment", body=requests.ForkExperiment),
        responses=problems(
            "unknown-experiment",
            "experiment-exists",
            "unknown-decision",
            "broken-assumption",
            "outcome-unknown",
            body=True,
        ),
    )
    async def fork(name: ExperimentName, request: Request[Any, Any, Any]) -> responses.ForkedExperiment:
        """Begin another experiment with what this one has learned; says what is lost. This one goes on as it is."""
        data = await body_of(request, requests.ForkExperiment)
        visit = visit_of(request.scope)
        if not visit.may_see(data.name):
            raise ProblemError("not-allowed", "This token is for other experiments.")
        refuse_seed(data.settings)
        refuse_dim(data.settings.get("dim", 1), "settings.dim")
        configuration = None if data.configuration is None else configured(data, data.configuration)
        kept = {
            field: getattr(data, field)
            for field in ("reward_window", "default_reward", "confirm_within", "description")
        }
        opened, forked = await registry.fork(
            name,
            data.name,
            policy=configuration,
            changes=data.settings or None,
            corrections=data.corrections,
            mode=data.mode,
            reason=data.reason,
            by=visit.by,
            **{field: value for field, value in kept.items() if value is not None},
        )
        visit.notes.update(experiment=name, fork=data.name)
        return responses.ForkedExperiment(await status(opened), forked.carried, list(forked.lost))

    @put(
        "/v1/experiments/{name:str}/mode",
        **guarded("admin", TAGS, "changeMode", body=requests.ChangeMode),
        responses=problems("unknown-experiment", "mode-conflict", "broken-assumption", "outcome-unknown", body=True),
    )
    async def change_mode(name: ExperimentName, request: Request[Any, Any, Any]) -> Status:
        """Go over to another mode; the status' `allowed_modes` tell which."""
        data = await body_of(request, requests.ChangeMode)
        opened, visit = await registry.find(name), visit_of(request.scope)
        why = {"reason": data.reason, "by": visit.by, "despite_doubt": data.despite_doubt}
        await registry.run(opened.experiment.set_mode, data.mode, **why)
        visit.notes.update(experiment=name, mode=data.mode)
        return await status(opened)

    @post(
        "/v1/experiments/{name:str}/acknowledgements",
        **guarded("admin", TAGS, "acknowledgeAlarm", body=requests.Acknowledge),
        status_code=200,
        responses=problems("unknown-experiment", "alarm-conflict", "outcome-unknown", body=True),
    )
    async def acknowledge(name: ExperimentName, request: Request[Any, Any, Any]) -> Status:
        """Answer the alarm, with a reason that is kept; the status' `alarm_responses` tell how it may be answered."""
        data = await body_of(request, requests.Acknowledge)
        opened, visit = await registry.find(name), visit_of(request.scope)
        answer = {"reason": data.reason, "by": visit.by, "alarm_round": data.alarm_round}
        await registry.run(opened.experiment.acknowledge, data.response, **answer)
        visit.notes.update(experiment=name, response=data.response)
        return await status(opened)

    @post(
        "/v1/experiments/{name:str}/erasures",
        **guarded("admin", TAGS, "erase", body=requests.Erase),
        status_code=200,
        responses=problems("unknown-experiment", "unknown-decision", "outcome-unknown", body=True),
    )
    async def erase(name: ExperimentName, request: Request[Any, Any, Any]) -> responses.ErasureReceipt:
        """Erase ids, names, units and contexts for good; the audit stays clean, and says that it was done."""
        data = await body_of(request, requests.Erase)
        opened, visit = await registry.find(name), visit_of(request.scope)
        about = {"person": data.person, "before": data.before, "by": visit.by, "reason": data.reason}
        erased = await registry.run(opened.experiment.erase, data.decision_ids, **about)
        registry.note_soon()
        visit.notes.update(experiment=name, erased=erased)
        return responses.ErasureReceipt(erased, await registry.head(name), registry.journal.is_forgetting)

    @post(
        "/v1/experiments/{name:str}/catalogues",
        **guarded("decide", TAGS, "registerCatalogue", body=requests.RegisterCatalogue),
        responses=problems("unknown-experiment", "broken-assumption", "outcome-unknown", body=True),
    )
    async def register(name: ExperimentName, request: Request[Any, Any, Any]) -> responses.Registered:
        """Register actions that stay the same; its name is the hash of its content, so that twice is once."""
        data = await body_of(request, requests.RegisterCatalogue)
        refuse_size(len(data.actions), max(len(action.features or ()) for action in data.actions), limits)
        opened = await registry.find(name)
        if not opened.takes_rows:
            raise InputError("`actions` are not registered for a guard: its decisions bring `baseline` and `proposal`.")
        digest, known = await catalogues.register(opened, data)
        return responses.Registered(digest, len(known.names), known.dim)

    return [create, list_, read, settings, fork, change_mode, acknowledge, erase, register]


def settings_read(created: Created) -> ExperimentSettings:
    """The settings without the rows of the history, which may be many, and without what is a shard's own."""
    values = {name: getattr(created, name) for name in ExperimentSettings.__struct_fields__ if hasattr(created, name)}
    return ExperimentSettings(
        **values,
        history_rows=0 if created.history is None else len(created.history.rewards),
        forked_from=None if created.origin is None else created.origin.experiment,
    )


def refuse_seed(settings: Mapping[str, Any]) -> None:
    """Raise where a request would choose the coins."""
    if settings.get("seed") is not None:
        rule = "`seed` must be left out: the promise rests on coins that nobody foresees, so they come from the system."
        raise ProblemError("invalid", rule, [Fault("settings.seed", rule)])
