"""The calls of the API as plain values, shared by both clients: what to send, and how to read the answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import httpx
import msgspec

from surefoot.client.models import REFUSED, Decision, EventHead, GuardDecision, Receipt, Voided, named
from surefoot.client.offline_queue import BOOKING, CONFIRMATION, REWARD, Entry, void_path
from surefoot.client.service_error import ServiceError
from surefoot.errors import InputError
from surefoot.ids import new_id

T = TypeVar("T")
Actions = Mapping[str, Sequence[float]] | Sequence[str]
RewardValue = float | Mapping[str, float]
EXPERIMENTS = "/v1/experiments"
UNREACHED = "Played the baseline: the service could not be reached in time."


class ApiCall(msgspec.Struct, Generic[T]):
    """One request, and how its answer is read."""

    method: str
    path: str
    body: dict[str, Any] | None
    read: Callable[[httpx.Response], T]

    @property
    def experiment(self) -> str:
        """The experiment that it is about."""
        return self.path.split("/")[3] if self.path != EXPERIMENTS else str((self.body or {})["name"])


def question(
    actions: Actions | None,
    *,
    catalogue: str | None = None,
    baseline: Any = None,
    proposal: Any = None,
    unit: str | None = None,
    prediction: RewardValue | None = None,
    baseline_reward: float | Sequence[float] | None = None,
    context: Mapping[str, Any] | None = None,
    context_features: Sequence[float] | None = None,
    decision_id: str | None = None,
) -> dict[str, Any]:
    """The body of a decision. Its id is chosen here, so that asking again is safe."""
    if proposal is not None and baseline is None:
        raise InputError("`baseline` must be given beside a `proposal`: what you would play today.")
    found: dict[str, Any] = {"decision_id": decision_id or new_id()}
    optional = {
        "proposal": proposal,
        "unit": unit,
        "prediction": _plain_value(prediction),
        "actions": None if actions is None else named(actions),
        "catalogue": catalogue,
        "baseline": baseline,
        "baseline_reward": baseline_reward if baseline_reward is None or isinstance(baseline_reward, (int, float))
        else [float(entry) for entry in baseline_reward],
        "context": None if context is None else dict(context),
        "context_features": None if context_features is None else [float(entry) for entry in context_features],
    }  # fmt: skip
    return found | {key: value for key, value in optional.items() if value is not None}


def decide(experiment: str, body: dict[str, Any]) -> ApiCall[Any]:
    """Decide one round: a `Decision`, or a `GuardDecision` where a proposal was sent."""
    kind = GuardDecision if "proposal" in body else Decision
    return ApiCall("POST", f"{_path(experiment)}/decisions", body, lambda answer: _read(answer, kind))


def reward(experiment: str, decision_id: str, value: RewardValue) -> ApiCall[Receipt]:
    """Send one reward; a refusal is a receipt, too."""

    def read(answer: httpx.Response) -> Receipt:
        return _receipt(decision_id, value, _read(answer, dict[str, Any])["results"][0])

    # By the route for batches, where a refusal is an entry of the answer and not an error.
    waiting = rewarded(experiment, decision_id, value)
    return ApiCall("POST", f"{_path(experiment)}/{REWARD}", waiting.body, read)


def register(experiment: str, actions: Actions, feature_map: Mapping[str, Any] | None) -> ApiCall[str]:
    """Register a catalogue."""
    body: dict[str, Any] = {"actions": named(actions)}
    if feature_map is not None:
        body["feature_map"] = dict(feature_map)
    path = f"{_path(experiment)}/catalogues"
    return ApiCall("POST", path, body, lambda answer: str(_read(answer, dict[str, Any])["catalogue"]))


def create_experiment(name: str, settings: Mapping[str, Any], fields: Mapping[str, Any]) -> ApiCall[dict[str, Any]]:
    """Create an experiment."""
    return _plain("POST", EXPERIMENTS, {"name": name, "settings": dict(settings), **fields})


def read_experiment(name: str) -> ApiCall[dict[str, Any]]:
    """Where an experiment stands."""
    return _plain("GET", _path(name))


def set_mode(name: str, mode: str, reason: str, *, despite_doubt: bool) -> ApiCall[dict[str, Any]]:
    """Change the mode."""
    body = {"mode": mode, "reason": reason} | ({"despite_doubt": True} if despite_doubt else {})
    return _plain("PUT", f"{_path(name)}/mode", body)


def abandon(experiment: str, decision_id: str, reason: str) -> ApiCall[dict[str, Any]]:
    """Settle a decision without its reward."""
    return _plain("POST", f"{_path(experiment)}/decisions/{decision_id}/abandon", {"reason": reason})


def void(experiment: str, decision_id: str, action: Any, reason: str) -> ApiCall[Voided]:
    """Say what was really played."""
    entry = voided(experiment, decision_id, action, reason)
    return ApiCall("POST", f"{_path(experiment)}/{entry.kind}", entry.body, lambda answer: _read(answer, Voided))


def acknowledge(name: str, response: str, reason: str, alarm_round: int) -> ApiCall[dict[str, Any]]:
    """Answer an experiment's alarm."""
    body = {"response": response, "reason": reason, "alarm_round": alarm_round}
    return _plain("POST", f"{_path(name)}/acknowledgements", body)


def read_decision(experiment: str, decision_id: str) -> ApiCall[dict[str, Any]]:
    """A decision with its explanation, its question and its proof."""
    return _plain("GET", f"{_path(experiment)}/decisions/{decision_id}")


def read_head(experiment: str, number: int | None) -> ApiCall[EventHead | None]:
    """The newest head of an experiment, or the one at a number; None where there is no such event any more."""

    def read(answer: httpx.Response) -> EventHead | None:
        is_missing = answer.status_code == 404 and problem(answer).type == "/problems/unknown-event"
        return None if is_missing else _read(answer, EventHead)

    at = "" if number is None else f"?number={number}"
    return ApiCall("GET", f"{_path(experiment)}/head{at}", None, read)


def booking(entry: Entry) -> ApiCall[dict[str, Any]]:
    """The call that sends an entry of the queue."""
    return _plain("POST", f"{_path(entry.experiment)}/{entry.kind}", entry.body)


def fallback(body: dict[str, Any], names: Sequence[str]) -> Decision | GuardDecision:
    """The baseline, chosen here.

    It keeps the id of the question: if the service has decided it after all, booking it says what was really played.
    """
    if "proposal" in body:
        return _guard_fallback(body)
    if not names:
        raise InputError(
            "`actions` must be known here for a fallback: give them, register the catalogue here, or name the "
            "experiment's configuration (`use`)."
        )
    chosen = body.get("baseline") or names[0]
    if chosen not in names:
        raise InputError(f"`baseline` must be one of the actions, but got {chosen!r:.80}.")
    return Decision(
        decision_id=body["decision_id"],
        action_id=chosen,
        action=list(names).index(chosen),
        source="baseline",
        explanation=UNREACHED,
        is_fallback=True,
    )


def _guard_fallback(book: dict[str, Any]) -> GuardDecision:
    return GuardDecision(
        decision_id=book["decision_id"],
        action=book["baseline"],
        source="baseline",
        unit=book.get("unit"),
        explanation=UNREACHED,
        is_held=True,
        is_fallback=True,
    )


def booked(experiment: str, body: dict[str, Any]) -> Entry:
    """A round that waits to be booked."""
    return Entry(experiment, BOOKING, body["decision_id"], body)


def voided(experiment: str, decision_id: str, action: Any, reason: str) -> Entry:
    """What was really played, waiting to be said."""
    body = {"reason": reason} | ({} if action is None else {"action": action})
    return Entry(experiment, void_path(decision_id), decision_id, body)


def confirmed(experiment: str, decision_ids: list[str]) -> Entry:
    """Rounds that were played as decided, waiting to be said."""
    return Entry(experiment, CONFIRMATION, decision_ids[0], {"decision_ids": decision_ids})


def rewarded(experiment: str, decision_id: str, value: RewardValue) -> Entry:
    """A reward that waits to be sent."""
    body = {"rewards": [{"decision_id": decision_id, "value": _plain_value(value)}]}
    return Entry(experiment, REWARD, decision_id, body)


def problem(answer: httpx.Response) -> ServiceError:
    """The service's refusal as an error."""
    try:
        found = msgspec.json.decode(answer.content, type=dict[str, Any])
    except msgspec.MsgspecError:
        found = {}
    text = found.get("detail") or found.get("title") or f"The service answered {answer.status_code}."
    return ServiceError(str(text), type=str(found.get("type", "")), status=answer.status_code, problem=found)


def _path(experiment: str) -> str:
    return f"{EXPERIMENTS}/{experiment}"


def _plain(method: str, path: str, body: dict[str, Any] | None = None) -> ApiCall[dict[str, Any]]:
    return ApiCall(method, path, body, lambda answer: _read(answer, dict[str, Any]))


def _read(answer: httpx.Response, kind: type[T]) -> T:
    if answer.status_code >= 400:
        raise problem(answer)
    return msgspec.json.decode(answer.content, type=kind)


def queued(decision_id: str, value: RewardValue) -> Receipt:
    """The receipt of a reward that waits."""
    return Receipt(decision_id, _plain_value(value), is_queued=True)


def _receipt(decision_id: str, value: RewardValue, found: dict[str, Any]) -> Receipt:
    refusal = found.get("problem")
    if refusal is None:
        return msgspec.convert(found["receipt"], Receipt)
    if refusal["type"] not in REFUSED:
        raise ServiceError(refusal["detail"], type=refusal["type"], status=refusal["status"], problem=refusal)
    return Receipt(decision_id, _plain_value(value), refused=REFUSED[refusal["type"]])


def _plain_value(value: Any) -> Any:
    """A reward or a prediction as JSON: a number, or numbers by metric."""
    if value is None:
        return None
    return {str(name): float(one) for name, one in value.items()} if isinstance(value, Mapping) else float(value)
