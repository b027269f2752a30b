"""Experiments: create, list, read, change of mode; and the catalogues of their actions."""

from typing import Any

import msgspec
from litestar import Request, get, post, put
from litestar.handlers import HTTPRouteHandler

from surefoot.errors import InputError, JournalError
from surefoot.experiment.experiment_toml import Configuration, configuration_in
from surefoot.experiment.policy_by_name import make_policy
from surefoot.policies import Guard, Policy
from surefoot.records import Created
from surefoot.service import request_models, response_models
from surefoot.service.authorization import visit_of
from surefoot.service.catalogues import Catalogues, refuse_size
from surefoot.service.guard_creation import new_guard, refuse_seed
from surefoot.service.problems import Fault, ProblemError
from surefoot.service.registry import OpenExperiment, Registry
from surefoot.service.request_bodies import body_of
from surefoot.service.routes.route_options import ExperimentName, guarded, problems

TAGS = ["experiments"]


class SettingsRead(msgspec.Struct):
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

    async def summary(opened: OpenExperiment) -> response_models.Summary:
        return response_models.summary(await registry.run(opened.look), opened.experiment.settings)

    @post(
        "/v1/experiments",
        **guarded("admin", TAGS, "createExperiment", body=(request_models.CreateExperiment,)),
        responses=problems("experiment-exists", "broken-assumption", "outcome-unknown", body=True),
    )
    async def create(request: Request[Any, Any, Any]) -> response_models.Summary:
        """Begin an experiment; it starts in shadow, unless told otherwise."""
        data = await body_of(request, request_models.CreateExperiment)
        policy = policy_of(data) if data.configuration is None else configured(data, data.configuration)
        history = None if data.history is None else (data.history.features, data.history.rewards)
        visit = visit_of(request.scope)
        if not visit.may_see(data.name):
            raise ProblemError("not-allowed", "This token is for other experiments.")
        told: dict[str, Any] = {
            "mode": data.mode,
            "reward_window": data.reward_window,
            "default_reward": data.default_reward,
            "reward_bounds": data.reward_bounds,
            "description": data.description,
            "by": visit.by,
            "feature_names": data.feature_names,
        }
        if data.ledger == "sharded":
            single = ("history", "configuration", "confirm_within")
            if any(getattr(data, field) is not None for field in single):
                raise InputError(f"{', '.join(f'`{field}`' for field in single)} must be left out of a sharded ledger.")
            opened = await registry.create_sharded(data.name, policy, skew=data.skew, **told)
        else:
            opened = await registry.create(
                data.name,
                policy,
                **told,
                history=history,
                despite_doubt=data.despite_doubt,
                sealed=data.sealed,
                confirm_within=data.confirm_within,
            )
        visit.notes["experiment"] = data.name
        return await summary(opened)

    def policy_of(data: request_models.CreateExperiment) -> Policy | Guard:
        if data.policy == "Guard":
            return new_guard(data.settings, limits)
        dim = data.settings.get("dim", data.settings.get("arms", 1))
        if isinstance(dim, int):
            refuse_dim(dim, "settings")
        refuse_seed(data.settings)
        return make_policy(data.policy, data.settings)

    def configured(data: request_models.CreateExperiment | request_models.ForkExperiment, text: str) -> Configuration:
        if data.settings:
            raise InputError("`settings` must be left out where a `configuration` is given, which has them.")
        found = configuration_in(text)
        refuse_dim(found.phi.dim, "configuration")
        return found

    def refuse_dim(dim: int, place: str) -> None:
        # Checked before the policy is made, which allocates the square of it.
        if dim > limits.dimensions:
            rule = f"at most {limits.dimensions} dimensions are taken, but got {dim}"
            raise ProblemError("invalid", f"In `{place}`, {rule}.", [Fault(f"{place}.dim", rule)])

    @get("/v1/experiments", **guarded("read", TAGS, "listExperiments"), responses=problems())
    async def list_(request: Request[Any, Any, Any]) -> response_models.Experiments:
        """All experiments at a glance; those that cannot be read apart, with the reason."""
        found = response_models.Experiments([])
        visit = visit_of(request.scope)
        for name in filter(visit.may_see, await registry.names()):
            try:
                found.experiments.append(await summary(await registry.find(name)))
            except JournalError as error:
                registry.note_damage(name, error)
                if name not in registry.health.damaged:  # it is the journal that fails
                    raise
                found.damaged.append(response_models.DamagedExperiment(name, registry.health.damaged[name]))
        return found

    @get(
        "/v1/experiments/{name:str}",
        **guarded("read", TAGS, "readExperiment"),
        responses=problems("unknown-experiment"),
    )
    async def read(name: ExperimentName) -> response_models.Summary:
        """Where an experiment stands."""
        return await summary(await registry.find(name))

    @get(
        "/v1/experiments/{name:str}/settings",
        **guarded("read", TAGS, "readSettings"),
        responses=problems("unknown-experiment"),
    )
    async def settings(name: ExperimentName) -> SettingsRead:
        """What an experiment was created with."""
        return settings_read((await registry.find(name)).experiment.settings)

    @post(
        "/v1/experiments/{name:str}/forks",
        **guarded("admin", TAGS, "forkExperiment", body=(request_models.ForkExperiment,)),
        responses=problems(
            "unknown-experiment",
            "experiment-exists",
            "unknown-decision",
            "broken-assumption",
            "outcome-unknown",
            body=True,
        ),
    )
    async def fork(name: ExperimentName, request: Request[Any, Any, Any]) -> response_models.Forked:
        """Begin another experiment with what this one has learned; says what is lost. This one goes on as it is."""
        data = await body_of(request, request_models.ForkExperiment)
        visit = visit_of(request.scope)
        if not visit.may_see(data.name):
            raise ProblemError("not-allowed", "This token is for other experiments.")
        refuse_seed(data.settings)
        if isinstance(dim := data.settings.get("dim", 1), int):
            refuse_dim(dim, "settings")
        made = None if data.configuration is None else configured(data, data.configuration)
        told = {
            field: getattr(data, field)
            for field in ("reward_window", "default_reward", "confirm_within", "description")
        }
        opened, found = await registry.fork(
            name,
            data.name,
            policy=made,
            changes=data.settings or None,
            corrections=data.corrections,
            mode=data.mode,
            reason=data.reason,
            by=visit.by,
            **{field: value for field, value in told.items() if value is not None},
        )
        visit.notes.update(experiment=name, fork=data.name)
        return response_models.Forked(await summary(opened), found.carried, list(found.lost))

    @put(
        "/v1/experiments/{name:str}/mode",
        **guarded("admin", TAGS, "changeMode", body=(request_models.ChangeMode,)),
        responses=problems("unknown-experiment", "mode-conflict", "broken-assumption", "outcome-unknown", body=True),
    )
    async def change_mode(name: ExperimentName, request: Request[Any, Any, Any]) -> response_models.Summary:
        """Go over to another mode; the summary's `allowed_modes` tell which."""
        data = await body_of(request, request_models.ChangeMode)
        opened, visit = await registry.find(name), visit_of(request.scope)
        told = {"reason": data.reason, "by": visit.by, "despite_doubt": data.despite_doubt}
        await registry.run(opened.experiment.set_mode, data.mode, **told)
        visit.notes.update(experiment=name, mode=data.mode)
        return await summary(opened)

    @post(
        "/v1/experiments/{name:str}/acknowledgements",
        **guarded("admin", TAGS, "acknowledgeAlarm", body=(request_models.Acknowledge,)),
        status_code=200,
        responses=problems("unknown-experiment", "alarm-conflict", "outcome-unknown", body=True),
    )
    async def acknowledge(name: ExperimentName, request: Request[Any, Any, Any]) -> response_models.Summary:
        """Answer the alarm, with a reason that is kept; the summary's `alarm_responses` tell how it may be answered."""
        data = await body_of(request, request_models.Acknowledge)
        opened, visit = await registry.find(name), visit_of(request.scope)
        answer = {"reason": data.reason, "by": visit.by, "alarm_round": data.alarm_round}
        await registry.run(opened.experiment.acknowledge, data.response, **answer)
        visit.notes.update(experiment=name, response=data.response)
        return await summary(opened)

    @post(
        "/v1/experiments/{name:str}/erasures",
        **guarded("admin", TAGS, "erase", body=(request_models.Erase,)),
        status_code=200,
        responses=problems("unknown-experiment", "unknown-decision", "outcome-unknown", body=True),
    )
    async def erase(name: ExperimentName, request: Request[Any, Any, Any]) -> response_models.Erasure:
        """Erase ids, names, units and contexts for good; the audit stays clean, and says that it was done."""
        data = await body_of(request, request_models.Erase)
        opened, visit = await registry.find(name), visit_of(request.scope)
        told = {"person": data.person, "before": data.before, "by": visit.by, "reason": data.reason}
        erased = await registry.run(opened.experiment.erase, data.decision_ids, **told)
        visit.notes.update(experiment=name, erased=erased)
        return response_models.Erasure(erased, await registry.head(name), registry.journal.is_forgetting)

    @post(
        "/v1/experiments/{name:str}/catalogues",
        **guarded("decide", TAGS, "registerCatalogue", body=(request_models.Catalogue,)),
        responses=problems("unknown-experiment", "broken-assumption", "outcome-unknown", body=True),
    )
    async def register(name: ExperimentName, request: Request[Any, Any, Any]) -> response_models.Registered:
        """Register actions that stay the same; its name is the hash of its content, so that twice is once."""
        data = await body_of(request, request_models.Catalogue)
        refuse_size(data.actions, limits)
        opened = await registry.find(name)
        if opened.is_guard:
            raise InputError("`actions` are not registered for a guard: its decisions bring `baseline` and `proposal`.")
        digest, known = await catalogues.register(opened, data)
        return response_models.Registered(digest, len(known.names), known.dim)

    return [create, list_, read, settings, fork, change_mode, acknowledge, erase, register]


def settings_read(created: Created) -> SettingsRead:
    """The settings without the rows of the history, which may be many."""
    return SettingsRead(
        policy=created.policy,
        settings=created.settings,
        mode=created.mode,
        software=created.software,
        reward_window=created.reward_window,
        default_reward=created.default_reward,
        reward_bounds=created.reward_bounds,
        history_rows=0 if created.history is None else len(created.history.rewards),
        description=created.description,
        configuration=created.configuration,
        confirm_within=created.confirm_within,
        by=created.by,
        forked_from=None if created.origin is None else created.origin.experiment,
    )
