"""LiteLLM: of two models in a model group, the guard's coin says which one answers; for the proxy and the SDK.

In the proxy's YAML, `guard` is the instance made from `callback_settings.surefoot`; in Python:

    models = GuardedModels(experiment, baseline="openai/big", proposal="openai/small")
    router = litellm.Router(model_list, plugins=[models])
    litellm.callbacks.append(models)

Cost in dollars and latency in seconds come from LiteLLM's success event where the guard has metrics of these names.
What else it measures, such as quality, is sent later with the decision's id. A request that surefoot cannot decide in
time is answered by the baseline, as is the retry of a request whose model has failed.
"""

import asyncio
import logging
import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Self

from surefoot.client import RemoteHub
from surefoot.errors import ConfigError, InputError, SurefootError
from surefoot.experiment.asynchronous import AsyncExperiment
from surefoot.experiment.experiment import Experiment
from surefoot.ids import new_id
from surefoot.journal import Journal, open_journal
from surefoot.policies.by_name import make_policy
from surefoot.rounds import Answer, Receipt

try:
    import litellm
    from litellm.integrations.custom_logger import CustomLogger
except ImportError as error:
    raise ImportError(
        "surefoot's models for LiteLLM need it. Install it with: pip install 'surefoot[litellm]'"
    ) from error

SIGNAL = "surefoot"  # under which a decision is found among the request's routing signals
DECISION_HEADER = "x-surefoot-decision-id"
UNITS = ("session_id", "user_api_key_end_user_id", "user_api_key_user_id")  # of a request's metadata, the first there
OPTIONS = ("mode", "reward_window", "description", "sealed")  # of an experiment; the other settings are the guard's
MOST_DECISIONS = 10_000  # that are kept in case a request is tried again
log = logging.getLogger("surefoot.litellm")


class GuardedModels(CustomLogger):  # type: ignore[misc]
    """A routing plugin and a logger: every request for the model group is a round of a guard.

    Parameters
    ----------
    experiment : Experiment
        An experiment with a guard. If it has a `unit_window`, the request's session or user is the unit.
    baseline, proposal : str
        `litellm_params.model` of today's model and of the one that is to be let in. Requests for model groups that do
        not have both are left alone.
    deadline : float
        Seconds after which a request goes to the baseline, whatever is decided.

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

    def __init__(self, experiment: Experiment, *, baseline: str, proposal: str, deadline: float = 1.0) -> None:
        super().__init__()
        if not experiment.kind.draws:
            raise ConfigError(
                f"A model is let in by a Guard, but {experiment.name!r} has {experiment.settings.policy}."
            )
        if baseline == proposal:
            raise ConfigError(f"`baseline` and `proposal` must be two models, but both are {baseline!r}.")
        self.experiment, self.baseline, self.proposal, self.deadline = experiment, baseline, proposal, deadline
        guard = experiment.settings.settings
        self._metrics = guard["metrics"] or {}
        self._takes_units = guard["unit_window"] is not None
        self._calls = AsyncExperiment(experiment)
        # What is in a request's metadata may be its caller's own words: a retry is known by what was decided here.
        self._decisions: OrderedDict[str, dict[str, Any]] = OrderedDict()

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The models by what a configuration file says; the experiment is made if the journal does not have it.

        Parameters
        ----------
        settings : mapping
            baseline, proposal and deadline as above; journal, its address, and name, the experiment's; mode,
            reward_window, description and sealed as in `Experiment.create`; the rest are settings of `surefoot.Guard`.
            Instead of all but the models, journal and name, for several gateways with one promise (`Experiment.join`):
            hub, a journal's address or a service's; shard, this gateway's name; and of a service its public key.

        Returns
        -------
        GuardedModels
            Ready to route.

        Raises
        ------
        ConfigError
            If a setting is missing or invalid, or the experiment was made with other settings.
        """
        rest = dict(settings)
        missing = [name for name in ("baseline", "proposal", "journal", "name") if not rest.get(name)]
        if missing:
            raise ConfigError(
                f"`callback_settings.surefoot` must have {', '.join(missing)}, but has {', '.join(rest)}."
            )
        models = {name: rest.pop(name) for name in ("baseline", "proposal", "deadline") if name in rest}
        journal, name = open_journal(rest.pop("journal")), rest.pop("name")
        if "hub" in rest:
            return cls(_joined(rest, name, journal), **models)
        options = {option: rest.pop(option) for option in OPTIONS if option in rest}
        guard = make_policy("Guard", rest, advice="Give them in `callback_settings.surefoot`.")
        if name not in journal.names():
            return cls(Experiment.create(journal, name, guard, **options), **models)
        experiment = Experiment.open(journal, name)
        if experiment.settings.settings != guard.settings:
            raise ConfigError(
                f"The settings of an experiment never change, but those of {name!r} are not what the file says. "
                "Choose another `name` to begin anew."
            )
        return cls(experiment, **models)

    async def run(self, context: Any) -> Any:
        """Narrow the candidates to the model that answers; LiteLLM calls it for every attempt of a request."""
        if not {self.baseline, self.proposal} <= set(context.candidate_models):
            return context
        claimed = _signal({"metadata": context.metadata}).get("decision_id")
        earlier = self._decisions.get(claimed) if isinstance(claimed, str) else None
        try:
            if earlier is None:
                signal = await self._decided(context.metadata)
            else:
                signal = await self._retried(earlier)
        except Exception:  # whatever it is, callers of the gateway must not feel it
            log.exception("surefoot could not decide, so %s answers", self.baseline)
            signal = {"model": self.baseline}
        context.candidate_models = [signal["model"]]
        context.signals[SIGNAL] = signal
        return context

    async def _decided(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """One decision; where it takes too long, the baseline, and a void in case it turns out otherwise."""
        unit = next((str(metadata[name]) for name in UNITS if metadata.get(name)), None) if self._takes_units else None
        decision_id = str(metadata.get("decision_id") or new_id())
        deciding = asyncio.ensure_future(
            self._calls.decide(decision_id=decision_id, baseline=self.baseline, proposal=self.proposal, unit=unit)
        )
        done, _ = await asyncio.wait({deciding}, timeout=self.deadline)
        if not done:
            deciding.add_done_callback(self._correct_late)
            raise TimeoutError(f"A decision must not take more than {self.deadline:g} seconds.")
        answer: Answer = deciding.result()
        signal = {"model": answer.action, "decision_id": decision_id, "share": answer.share}
        self._decisions[decision_id] = signal
        while len(self._decisions) > MOST_DECISIONS:
            self._decisions.popitem(last=False)
        return signal

    async def _retried(self, signal: Mapping[str, Any]) -> dict[str, Any]:
        """Another attempt goes to the baseline; the coin stays as it fell, and the journal says what was played."""
        if signal["model"] != self.baseline:
            reason = "The proposed model has failed, and the baseline answers."
            await self._note(self.experiment.void, signal["decision_id"], reason)
        return {**signal, "model": self.baseline}

    def _correct_late(self, deciding: "asyncio.Future[Answer]") -> None:
        if not deciding.cancelled() and deciding.exception() is None and deciding.result().action != self.baseline:
            reason = "It was decided too late, and the baseline answered."
            self._late = asyncio.ensure_future(self._note(self.experiment.void, deciding.result().decision_id, reason))

    async def _note(self, verb: Callable[..., bool], decision_id: str, reason: str) -> None:
        try:
            await self._calls.run(verb, decision_id, reason=reason)
        except SurefootError as error:
            log.warning("the journal does not say of decision %s: %s (%s)", decision_id, reason, error)

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
        """
        return await self._calls.reward(decision_id, value)

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Send cost and latency, each cut at the highest that was declared."""
        decision_id = self._finished(kwargs.get("litellm_params") or {})
        if decision_id is None:
            return
        measured = {"cost": kwargs.get("response_cost"), "latency": (end_time - start_time).total_seconds()}
        values = {
            name: min(float(value), self._metrics[name]["high"])
            for name, value in measured.items()
            if name in self._metrics and value is not None
        }
        try:
            receipt = await self._calls.reward(decision_id, values) if values else None
        except SurefootError as error:
            log.warning("cost and latency of %s are lost: %s", decision_id, error)
        else:
            if receipt is not None and receipt.refused is not None:
                log.warning("cost and latency of %s were refused: %s", decision_id, receipt.refused)

    async def async_post_call_failure_hook(self, request_data: Any, *_: Any, **__: Any) -> None:
        """Settle the round of a request that no model answered, at its worst; the proxy calls it after all retries."""
        decision_id = self._finished(request_data)
        if decision_id is not None:
            await self._note(self.experiment.abandon, decision_id, "No model has answered.")

    async def async_post_call_response_headers_hook(self, data: Any, *_: Any, **__: Any) -> dict[str, str] | None:
        """The decision's id, for whoever sends the rest of the reward."""
        decision_id = _signal(data).get("decision_id")
        return None if decision_id is None else {DECISION_HEADER: decision_id}


def _joined(settings: Mapping[str, Any], name: str, journal: Journal) -> Experiment:
    """A shard of an experiment whose promise several gateways share; what it promises is said at the hub."""
    if not {"hub", "shard"} <= set(settings) <= {"hub", "shard", "key"}:
        raise ConfigError(
            f"With a `hub`, `callback_settings.surefoot` must have `shard`, and of a service `key`, but has "
            f"{', '.join(settings)}. The guard's settings are those of the experiment at the hub."
        )
    address = str(settings["hub"])
    if not address.startswith(("http://", "https://")):
        return Experiment.join(open_journal(address), name, journal, shard=settings["shard"])
    hub = RemoteHub(address, key=settings.get("key", ""), token=os.environ.get("SUREFOOT_TOKEN"))
    return Experiment.join(hub, name, journal, shard=settings["shard"])


def _signal(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """What `run` left in a request's metadata; newer endpoints have it under another name."""
    for name in ("metadata", "litellm_metadata"):
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
        except (SurefootError, ValueError) as error:
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
    models = GuardedModels.from_settings(litellm.callback_settings.get("surefoot") or {})
    if "litellm.proxy.proxy_server" in sys.modules:
        _add_route(models)
    globals()["guard"] = models
    return models
