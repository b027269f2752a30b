"""LiteLLM: of two models in a model group, the guard's coin says which one answers; for the proxy and the SDK.

In the proxy's YAML, `guard` is the instance made from `callback_settings.surefoot`; in Python:

    models = GuardedModels(experiment, baseline="openai/big", proposal="openai/small")
    router = litellm.Router(model_list, plugins=[models])
    litellm.callbacks.append(models)

Cost in dollars and latency in seconds come from LiteLLM's success event where the guard has metrics of these names.
What else it measures, such as quality, comes from a scorer, or is sent later with the decision's id. A request that
surefoot cannot decide in time is answered by the baseline, as is the retry of a request whose model has failed, and
every request while the journal is away.
"""

import asyncio
import inspect
import logging
import math
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack
from typing import Any, Self

from surefoot.client import RemoteHub
from surefoot.errors import (
    ConfigError,
    InputError,
    JournalError,
    JournalUnavailableError,
    OutcomeUnknownError,
    SurefootError,
)
from surefoot.experiment.asynchronous import AsyncExperiment
from surefoot.experiment.experiment import Experiment
from surefoot.ids import new_id
from surefoot.journal import open_journal
from surefoot.policies.by_name import make_policy
from surefoot.rounds import Answer, Receipt

try:
    import litellm
    from litellm.constants import LITELLM_PROXY_ADMIN_NAME
    from litellm.integrations.custom_logger import CustomLogger
except ImportError as error:
    raise ImportError(
        "surefoot's models for LiteLLM need it. Install it with: pip install 'surefoot[litellm]'"
    ) from error

SIGNAL = "surefoot"  # under which a decision is found among the request's routing signals
METADATA = ("metadata", "litellm_metadata")  # newer endpoints have the second
NARROWED = "_routing_plugin_candidate_models"  # where LiteLLM keeps the candidates from one attempt to the next
DECISION_HEADER = "x-surefoot-decision-id"
UNITS = ("session_id", "user_api_key_end_user_id", "user_api_key_user_id")  # of a request's metadata, the first there
OPTIONS = ("mode", "reward_window", "description", "sealed")  # of an experiment; the other settings are the guard's
MOST_DECISIONS = 10_000  # that are kept in case a request is tried again, and as many ids of callers
REST = 2.0  # seconds after a failure of the journal in which nobody waits for it
AWAY = (JournalUnavailableError, OutcomeUnknownError)
log = logging.getLogger("surefoot.litellm")


class GuardedModels(CustomLogger):  # type: ignore[misc]
    """A routing plugin and a logger: every request for the model group is a round of a guard.

    Parameters
    ----------
    experiment : Experiment or callable
        An experiment with a guard, or a function that opens it: where that finds the journal away, the baseline answers
        until it is back. If it has a `unit_window`, the request's session or user is the unit.
    baseline, proposal : str
        `litellm_params.model` of today's model and of the one that is to be let in. In a model group that has only one
        of them the proposal never answers beside others.
    deadline : float
        Seconds after which a request goes to the baseline, whatever is decided.
    scorer : callable, optional
        Called with what LiteLLM's success event has, `kwargs` and the response, once the caller has its answer; returns
        rewards by metric. It may be a coroutine function. A round whose scorer fails waits for feedback.

    Raises
    ------
    ConfigError
        If the experiment has no guard, or both models are the same.

    Examples
    --------
    >>> import surefoot
    >>> guard = surefoot.Guard(alpha=0.1, delta=0.05)
    >>> chat = surefoot.Experiment.create(surefoot.open_journal("memory:"), "chat", guard)
    >>> GuardedModels(chat, baseline="openai/big", proposal="openai/small").proposal
    'openai/small'
    """

    def __init__(
        self,
        experiment: Experiment | Callable[[], Experiment],
        *,
        baseline: str,
        proposal: str,
        deadline: float = 1.0,
        scorer: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        super().__init__()
        if baseline == proposal:
            raise ConfigError(f"`baseline` and `proposal` must be two models, but both are {baseline!r}.")
        self.baseline, self.proposal, self.deadline, self.scorer = baseline, proposal, deadline, scorer
        self.experiment: Experiment | None = None  # until the journal is there
        # What is in a request's metadata may be its caller's own words: a retry is known by what was decided here.
        self._decisions: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._callers_ids = OrderedDict[str, None]()
        self._tasks, self._said = set[asyncio.Task[Any]](), set[str]()
        self._rests_until = math.inf  # the baseline answers at once; 0 while the journal works
        open_ = experiment if callable(experiment) else lambda: experiment
        try:
            self._begin(open_())
        except AWAY as error:
            log.error("surefoot's journal is away, and %s answers until it is back: %s", baseline, error)
            threading.Thread(target=self._open, args=(open_,), name="surefoot", daemon=True).start()

    def _begin(self, experiment: Experiment) -> None:
        if not experiment.kind.draws:
            raise ConfigError(
                f"A model is let in by a Guard, but {experiment.name!r} has {experiment.settings.policy}."
            )
        guard = experiment.settings.settings
        self._metrics = guard["metrics"] or {}
        self._takes_units = guard["unit_window"] is not None
        self._calls = AsyncExperiment(experiment)
        self._decide = self._calls.decide
        if "opentelemetry.sdk" in sys.modules:  # whoever loads it wants spans
            from surefoot.integrations.otel import traced

            self._decide = traced(self._decide)
        self.experiment = experiment
        self._rests_until = 0.0

    def _open(self, open_: Callable[[], Experiment]) -> None:
        """Try again until the journal is there, in a thread of its own."""
        while self.experiment is None:
            time.sleep(REST)
            try:
                self._begin(open_())
            except AWAY:
                continue
            except Exception as error:  # such as an experiment that was created otherwise
                self._say_once(f"surefoot cannot begin, and {self.baseline} answers: {error}")
            else:
                log.warning("surefoot's journal is back, and the guard decides")

    def _say_once(self, words: str) -> None:
        if words not in self._said:
            self._said.add(words)
            log.error(words)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The models by what a configuration file says; the experiment is made if the journal does not have it.

        Parameters
        ----------
        settings : mapping
            baseline, proposal and deadline as above; scorer, its module and name, as LiteLLM takes callbacks; journal,
            its address, and name, the experiment's; mode, reward_window, description and sealed as in
            `Experiment.create`; the rest are settings of `surefoot.Guard`. In place of the latter and the options, for
            several gateways with one promise (`Experiment.join`): hub, a journal's address or a service's; shard, this
            gateway's name; and of a service its public key.

        Returns
        -------
        GuardedModels
            Ready to route.

        Raises
        ------
        ConfigError
            If a setting is missing or invalid.
        JournalConflictError
            If the experiment was made with other settings.
        """
        rest = dict(settings)
        missing = [name for name in ("baseline", "proposal", "journal", "name") if not rest.get(name)]
        if missing:
            raise ConfigError(
                f"`callback_settings.surefoot` must have {', '.join(missing)}, but has {', '.join(rest)}."
            )
        models = {name: rest.pop(name) for name in ("baseline", "proposal", "deadline", "scorer") if name in rest}
        if isinstance(models.get("scorer"), str):
            models["scorer"] = _function(models["scorer"])
        address, name = rest.pop("journal"), rest.pop("name")
        if "hub" in rest:
            _check_shard(rest)
            return cls(lambda: _joined(rest, name, address), **models)
        options = {option: rest.pop(option) for option in OPTIONS if option in rest}
        guard = make_policy("Guard", rest, advice="Give them in `callback_settings.surefoot`.")
        if "cost" in (guard.settings["metrics"] or {}):
            options["reward_unit"] = {"cost": "USD"}  # as LiteLLM counts it

        def open_() -> Experiment:
            with ExitStack() as stack:
                journal = stack.enter_context(open_journal(address))
                experiment = Experiment.create(journal, name, guard, or_open=True, **options)
                stack.pop_all()
            return experiment

        return cls(open_, **models)

    async def run(self, context: Any) -> Any:
        """Narrow the candidates to the model that answers; LiteLLM calls it for every attempt of a request."""
        candidates = set(context.candidate_models)
        # Where LiteLLM counts tokens there is no group; what it mirrors is answered already, and has the same signal.
        is_request = "model_group" in context.metadata and not context.metadata.get("is_silent_experiment")
        claimed = _signal({"metadata": context.metadata}).get("decision_id") if is_request else None
        earlier = self._decisions.get(claimed) if isinstance(claimed, str) else None
        if not {self.baseline, self.proposal} <= candidates:
            if earlier is not None:
                decision_id = earlier.pop("decision_id")  # which takes it out of the response's header
                del self._decisions[decision_id]
                await self._in_time(self._note("abandon", decision_id, "No model has answered but a fallback."))
            return self._one_sided(context, candidates)
        signal = {"model": self.baseline}
        try:
            if earlier is not None:
                signal = await self._retried(earlier)
            elif is_request and not self._rests():
                signal = await self._decided(context.metadata)
        except (TimeoutError, JournalError):
            self._rests_until = time.monotonic() + REST
            log.exception("surefoot could not decide, so %s answers for %g seconds", self.baseline, REST)
        except InputError as error:  # in what the caller has sent
            log.warning("surefoot could not decide, so %s answers: %s", self.baseline, error)
        except Exception:  # whatever it is, callers of the gateway must not feel it
            log.exception("surefoot could not decide, so %s answers", self.baseline)
        context.candidate_models = [signal["model"]]
        context.signals[SIGNAL] = signal
        return context

    def _one_sided(self, context: Any, candidates: set[str]) -> Any:
        """A group without one of the models, which may be mistyped: the proposal does not answer beside others."""
        names = ", ".join(sorted(candidates))
        if self.baseline in candidates and len(candidates) > 1:
            self._say_once(f"{self.baseline} alone answers for the models {names}, which lack {self.proposal}.")
            context.candidate_models = [self.baseline]
            context.signals[SIGNAL] = {"model": self.baseline}
        elif self.proposal in candidates and len(candidates) > 1:
            self._say_once(f"{self.proposal} does not answer for the models {names}, which lack {self.baseline}.")
            context.candidate_models = [model for model in context.candidate_models if model != self.proposal]
        return context

    async def async_filter_deployments(
        self, model: str, healthy_deployments: Any, messages: Any, request_kwargs: Any = None, *_: Any, **__: Any
    ) -> Any:
        """Where LiteLLM falls back to a group that is not guarded, forget what the first one was narrowed to."""
        for name in METADATA:
            metadata = (request_kwargs or {}).get(name) or {}
            is_ours = set(metadata.get(NARROWED) or ()) <= {self.baseline, self.proposal}
            if is_ours and SIGNAL not in (metadata.get("routing_plugin_signals") or {}):
                metadata.pop(NARROWED, None)
        return healthy_deployments

    def _rests(self) -> bool:
        """Whether the journal has just failed; after a while one request tries it, and the others do not wait."""
        now = time.monotonic()
        if now < self._rests_until:
            return True
        if self._rests_until:
            self._rests_until = now + self.deadline + REST
        return False

    async def _decided(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """One decision; where it takes too long, the baseline, and a correction in case it is made later."""
        unit = _unit(metadata) if self._takes_units else None
        decision_id = self._new_decision_id(metadata)
        deciding = self._keep(
            self._decide(decision_id=decision_id, baseline=self.baseline, proposal=self.proposal, unit=unit)
        )
        try:
            done, _ = await asyncio.wait({deciding}, timeout=self.deadline)
        except asyncio.CancelledError:
            self._keep(self._correct_late(deciding, "Its caller has hung up, and no model has answered."))
            raise
        if not done:
            self._keep(self._correct_late(deciding, "It was decided too late, and the baseline answered."))
            raise TimeoutError(f"A decision must not take more than {self.deadline:g} seconds.")
        answer: Answer = deciding.result()
        self._rests_until = 0.0
        signal = {"model": answer.action, "decision_id": decision_id, "share": answer.share}
        _remember(self._decisions, decision_id, signal)
        return signal

    def _new_decision_id(self, metadata: Mapping[str, Any]) -> str:
        """The caller's own, but once: one coin must not decide for all requests that bear the same id."""
        own = metadata.get("decision_id") or (metadata.get("requester_metadata") or {}).get("decision_id")
        if not own or str(own) in self._callers_ids:
            return new_id()
        _remember(self._callers_ids, str(own), None)
        return str(own)

    async def _retried(self, signal: dict[str, Any]) -> dict[str, Any]:
        """Another attempt goes to the baseline; the coin stays as it fell, and the journal says what was played."""
        if signal["model"] != self.baseline:
            signal["model"] = self.baseline
            reason = "The proposed model has failed, and the baseline answers."
            await self._in_time(self._note("void", signal["decision_id"], reason))
        return signal

    async def _correct_late(self, deciding: asyncio.Task[Answer], reason: str) -> None:
        """Say that the proposal did not answer, and that no reward comes."""
        try:
            answer = await deciding
        except SurefootError:
            return
        if answer.action != self.baseline:
            await self._note("void", answer.decision_id, reason)
        await self._note("abandon", answer.decision_id, reason)

    async def _note(self, verb: str, decision_id: str, reason: str) -> None:
        if verb == "abandon" and self._takes_units:
            return  # of the whole unit, whose coin would fall again; a visit without a reward adds nothing to it
        try:
            await self._calls.run(getattr(self.experiment, verb), decision_id, reason=reason)
        except SurefootError as error:
            log.warning("the journal does not say of decision %s: %s (%s)", decision_id, reason, error)

    def _keep(self, call: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """A task that is not collected before its end."""
        task = asyncio.ensure_future(call)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _in_time(self, call: Coroutine[Any, Any, None]) -> None:
        """Wait for it as long as a request may; it goes on by itself."""
        await asyncio.wait({self._keep(call)}, timeout=self.deadline)

    def _finished(self, request: Mapping[str, Any]) -> str | None:
        """The decision of a request that will not be tried again, if it was made here and for it."""
        decision_id = _signal(request).get("decision_id")
        is_ours = isinstance(decision_id, str) and self._decisions.pop(decision_id, None) is not None
        return decision_id if is_ours else None

    async def reward(self, decision_id: str, value: float | Mapping[str, float]) -> Receipt:
        """Send what was measured of an answer, such as its quality, minutes or days later.

        Parameters
        ----------
        decision_id : str
            The decision, as in the response's header `x-surefoot-decision-id`, or your own `metadata.decision_id`.
        value : float or mapping
            The reward; of several metrics some or all of those that LiteLLM does not measure.

        Returns
        -------
        Receipt
            Whether it was accepted, and why not.

        Raises
        ------
        JournalUnavailableError
            If the journal has been away since the start; send it again.
        """
        if self.experiment is None:
            raise JournalUnavailableError("The journal must be there to take a reward, but is away. Send it again.")
        return await self._calls.reward(decision_id, value)

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any]:
        """Keep the models' cached answers apart: LiteLLM's cache has one for the whole group."""
        if litellm.cache is not None and kwargs.get("model") in (self.baseline, self.proposal):
            control = kwargs.get("cache") or {}
            metadata = kwargs.get("metadata") or {}
            namespaces = (control.get("namespace"), metadata.get("redis_namespace"), litellm.cache.namespace)
            namespace = ":".join([*[one for one in namespaces if one][:1], kwargs["model"]])
            kwargs["cache"] = {**control, "namespace": namespace}
        return kwargs

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Send cost and latency, each cut at the highest that was declared, and have the answer scored."""
        decision_id = self._finished(kwargs.get("litellm_params") or {})
        if decision_id is None:
            return
        measured = {"cost": kwargs.get("response_cost"), "latency": (end_time - start_time).total_seconds()}
        if "cost" in self._metrics and not measured["cost"] and not kwargs.get("cache_hit"):
            self._say_once(
                f"LiteLLM knows no cost of {kwargs.get('model')}, and counts {measured['cost']}. Give its deployment "
                "`input_cost_per_token` and `output_cost_per_token`."
            )
        values = {
            name: min(float(value), self._metrics[name]["high"])
            for name, value in measured.items()
            if name in self._metrics and value is not None
        }
        if values:
            await self._send(decision_id, values)
        if self.scorer is not None:
            self._keep(self._scored(decision_id, kwargs, response_obj))

    async def _scored(self, decision_id: str, kwargs: Any, response: Any) -> None:
        assert self.scorer is not None
        try:
            values = await asyncio.to_thread(self.scorer, kwargs, response)
            if inspect.isawaitable(values):
                values = await values
        except Exception:
            log.exception("the scorer failed on %s, whose round waits for feedback", decision_id)
        else:
            await self._send(decision_id, values)

    async def _send(self, decision_id: str, values: Any) -> None:
        try:
            refused = (await self._calls.reward(decision_id, values)).refused
        except SurefootError as error:
            log.warning("%r of %s is lost: %s", values, decision_id, error)
        else:
            if refused is not None:
                log.warning("%r of %s was refused: %s", values, decision_id, refused)

    async def async_post_call_failure_hook(self, request_data: Any, *_: Any, **__: Any) -> None:
        """Settle the round of a request that no model answered, at its worst; the proxy calls it after all retries."""
        decision_id = self._finished(request_data)
        if decision_id is not None:
            await self._in_time(self._note("abandon", decision_id, "No model has answered."))

    async def async_post_call_response_headers_hook(self, data: Any, *_: Any, **__: Any) -> dict[str, str] | None:
        """The decision's id, for whoever sends the rest of the reward."""
        decision_id = _signal(data).get("decision_id")
        return None if decision_id is None else {DECISION_HEADER: decision_id}


def _function(path: str) -> Any:
    """What a dotted path names, as LiteLLM finds callbacks: beside the proxy's configuration, or in a package."""
    from litellm.proxy.types_utils.utils import get_instance_fn

    proxy = sys.modules.get("litellm.proxy.proxy_server")
    try:
        return get_instance_fn(path, getattr(proxy, "user_config_file_path", None))
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"`scorer` must be a function by its module and name, but got {path!r}: {error}.") from None


def _check_shard(settings: Mapping[str, Any]) -> None:
    if not {"hub", "shard"} <= set(settings) <= {"hub", "shard", "key"}:
        raise ConfigError(
            f"With a `hub`, `callback_settings.surefoot` must have `shard`, and of a service `key`, but has "
            f"{', '.join(settings)}. The guard's settings are those of the experiment at the hub."
        )


def _joined(settings: Mapping[str, Any], name: str, address: str) -> Experiment:
    """A shard of an experiment whose promise several gateways share; what it promises is said at the hub."""
    with ExitStack() as stack:
        url, token = str(settings["hub"]), os.environ.get("SUREFOOT_TOKEN")
        hub: Any = None
        if url.startswith(("http://", "https://")):
            hub = RemoteHub(url, key=settings.get("key", ""), token=token)
            stack.callback(hub.close)
        else:
            hub = stack.enter_context(open_journal(url))
        experiment = Experiment.join(hub, name, stack.enter_context(open_journal(address)), shard=settings["shard"])
        stack.pop_all()
    return experiment


def _check_proxy(settings: Mapping[str, Any]) -> None:
    """Raise where the proxy's configuration would leave the proposal without a guard."""
    from litellm.proxy.proxy_server import proxy_config

    config, own = proxy_config.get_config_state(), f"{__name__}.guard"
    for section, key in (("router_settings", "plugins"), ("litellm_settings", "callbacks")):
        if own not in ((config.get(section) or {}).get(key) or ()):
            raise ConfigError(f"`{section}` must have `{key}: [{own}]`, but has not: it guards, and it measures.")
    if (config.get("general_settings") or {}).get("store_model_in_db"):
        return  # more models may come from there
    groups = dict[str, list[str]]()
    for one in config.get("model_list") or ():
        groups.setdefault(one["model_name"], []).append(one["litellm_params"]["model"])
    if not any({settings.get("baseline"), settings.get("proposal")} <= {*models, None} for models in groups.values()):
        raise ConfigError(
            f"A model group of `model_list` must have both {settings.get('baseline')} and {settings.get('proposal')}, "
            f"but got {', '.join(f'{name}: {models}' for name, models in groups.items()) or 'none'!s:.400}. Name both "
            "as their `litellm_params.model` does."
        )


def _unit(metadata: Mapping[str, Any]) -> str | None:
    """Whose request it is: of its session, user or key; the owner of the master key is nobody."""
    names = (metadata.get(name) for name in UNITS)
    return next((str(name) for name in names if name and name != LITELLM_PROXY_ADMIN_NAME), None)


def _remember(table: OrderedDict[str, Any], key: str, value: Any) -> None:
    table[key] = value
    while len(table) > MOST_DECISIONS:
        table.popitem(last=False)


def _signal(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """What `run` left in a request's metadata."""
    for name in METADATA:
        metadata = request.get(name)
        signals = metadata.get("routing_plugin_signals") if isinstance(metadata, Mapping) else None
        found = signals.get(SIGNAL) if isinstance(signals, Mapping) else None
        if isinstance(found, Mapping):
            return found
    return {}


def _add_route(models: GuardedModels) -> None:
    """`POST /surefoot/rewards` of the proxy, for those who have a key that may call it."""
    from fastapi import Depends, Request
    from litellm.proxy._types import ProxyException
    from litellm.proxy.auth.user_api_key_auth import user_api_key_auth
    from litellm.proxy.proxy_server import app

    async def rewards(request: Request) -> dict[str, Any]:
        try:
            body = await request.json()
            if not isinstance(body, dict) or not {"decision_id", "value"} <= set(body):
                raise InputError('A reward is {"decision_id": "...", "value": {"quality": 0.9}}.')
            receipt = await models.reward(body["decision_id"], body["value"])
        except JournalError as error:
            raise ProxyException(str(error), "internal_server_error", "value", 503) from None
        except (SurefootError, ValueError, RecursionError) as error:
            raise ProxyException(str(error), "invalid_request_error", "value", 400) from None
        if receipt.refused is not None:
            code = 404 if receipt.refused == "unknown" else 409
            raise ProxyException(f"The reward was refused: {receipt.refused}.", "invalid_request_error", "value", code)
        return {"decision_id": receipt.decision_id, "is_repeat": receipt.is_repeat}

    rewards.__annotations__["request"] = Request
    app.add_api_route("/surefoot/rewards", rewards, methods=["POST"], dependencies=[Depends(user_api_key_auth)])


def __getattr__(name: str) -> Any:
    """`guard`: the models of a proxy's configuration, made when the proxy first asks for them."""
    if name != "guard":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    settings = litellm.callback_settings.get("surefoot") or {}
    is_proxy = "litellm.proxy.proxy_server" in sys.modules
    if is_proxy:
        _check_proxy(settings)
    models = GuardedModels.from_settings(settings)
    if is_proxy:
        _add_route(models)
    globals()["guard"] = models
    return models
