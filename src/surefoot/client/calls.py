"""What a client says to the service, without any I/O: both clients drive the same calls.

A call is a generator. It yields requests (`ApiRequest`), which are answered with a response or with the error that came
in its place, and seconds to sleep; its result is what the caller gets. So how often something is tried, when the
baseline is played instead, and what waits to be sent, is said once.
"""

import logging
import os
import random
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import httpx
import msgspec

from surefoot.client.kept_heads import KeptHeads
from surefoot.client.offline_queue import BOOKING, CONFIRMATION, REWARD, Entry, OfflineQueue, PlayedRounds, void_path
from surefoot.errors import ConfigError, InputError, SurefootError
from surefoot.ids import new_id
from surefoot.rounds import Answer, Receipt
from surefoot.rounds.answers import EventHead
from surefoot.scalars import count, positive

T = TypeVar("T")
Call: TypeAlias = Generator["ApiRequest[Any] | float", "httpx.Response | httpx.HTTPError | None", T]
Actions: TypeAlias = Mapping[str, Sequence[float]] | Sequence[str]
RewardValue: TypeAlias = float | Mapping[str, float]
EXPERIMENTS = "/v1/experiments"
UNREACHED = "Played the baseline: the service could not be reached in time."
RETRIED = frozenset({408, 429, 502, 503, 504})
# Nothing is wrong with the request: an operator has archived the experiment, or restored a journal from before.
GONE = frozenset({"/problems/unknown-experiment", "/problems/unknown-catalogue"})
LOG = logging.getLogger("surefoot.client")
REFUSED: dict[str, Any] = {
    "/problems/unknown-decision": "unknown",
    "/problems/reward-conflict": "conflict",
    "/problems/reward-too-late": "too_late",
    "/problems/reward-abandoned": "abandoned",
    "/problems/reward-out-of-range": "out_of_range",
}


class ServiceError(SurefootError):
    """A request that the service refused, or could not answer.

    Parameters
    ----------
    message : str
        What went wrong, for people.
    type : str
        The stable type of the problem, such as "/problems/invalid"; "" if the service was not reached.
    status : int
        The HTTP status; 0 if there is none.
    problem : dict, optional
        The whole problem document.

    Examples
    --------
    >>> ServiceError("There is no such experiment", type="/problems/unknown-experiment", status=404).status
    404
    """

    def __init__(self, message: str, *, type: str = "", status: int = 0, problem: dict[str, Any] | None = None) -> None:  # noqa: A002
        super().__init__(message)
        self.type, self.status, self.problem = type, status, problem or {}

    @property
    def is_callers(self) -> bool:
        """Whether the request itself was wrong: sent again, it would be refused again.

        A token that has expired can be renewed, an experiment can be gone, and a refusal that is not the service's own
        comes from a proxy.
        """
        is_own = self.type.startswith("/problems/") and self.type not in GONE
        return is_own and 400 <= self.status < 500 and self.status not in (401, 403)


class LostError(Exception):
    """No usable answer in time."""

    def __init__(self, error: ServiceError) -> None:
        super().__init__(str(error))
        self.error = error


class ApiRequest(msgspec.Struct, Generic[T]):
    """One request, how its answer is read, and how many seconds it may take."""

    method: str
    path: str
    body: dict[str, Any] | None
    read: Callable[[httpx.Response], T]
    seconds: float = 0.0

    @property
    def experiment(self) -> str:
        """The experiment that it is about."""
        return self.path.split("/")[3] if self.path != EXPERIMENTS else str((self.body or {})["name"])


class Calls:
    """The calls of one client, and what it remembers: where the service is, what waits to be sent, and receipts."""

    def __init__(
        self,
        url: str | None,
        token: str | None,
        timeout: float,
        patience: float,
        queue: int,
        receipts: Path | str | None = None,
        on_failure: Callable[[str, ServiceError], object] | None = None,
    ) -> None:
        self.url = (url or os.environ.get("SUREFOOT_URL", "")).rstrip("/")
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError(f"`url` must be the service's address, such as http://127.0.0.1:8080, but got {url!r}.")
        self.timeout = positive("timeout", timeout, hint="timeout is in seconds; after it the baseline is played.")
        self.patience = positive(
            "patience", patience, hint="patience is in seconds, for everything but decisions and rewards."
        )
        self.later = OfflineQueue(count("queue", queue, hint="queue is the number of requests that may wait."))
        self.heads = KeptHeads(receipts)
        self.played = PlayedRounds(queue)
        self.failures, self._counting = Counter[str](), threading.Lock()
        self._on_failure, self._failed = on_failure, dict[str, tuple[str, int]]()
        self.headers = {"content-type": "application/json"}
        secret = token or os.environ.get("SUREFOOT_TOKEN")
        if secret:
            self.headers["authorization"] = f"Bearer {secret}"
        self._catalogues: dict[str, list[str]] = {}
        self._configured: dict[str, tuple[list[str], str | None]] = {}

    def decide(self, experiment: str, actions: Actions | None, arguments: Mapping[str, Any]) -> Call[Answer]:
        """One decision; without an answer in time the baseline, which waits to be booked."""
        body = decision_body(actions, **arguments)
        unsaid = self.played.of(experiment)
        if unsaid:
            body["confirms"] = unsaid
        # What was played alone stays so: the service could still answer otherwise, until it has heard of it.
        if not self.later.holds(experiment, body["decision_id"]):
            try:
                answer = yield from self._ask(_post(experiment, "decisions", body, Answer), self.timeout)
            except LostError:
                pass
            else:
                if answer.confirm_within is not None:
                    self.played.add(experiment, answer.decision_id)
                return answer
        body.pop("confirms", None)  # said with another decision
        return self._fall_back(experiment, body)

    def reward(self, experiment: str, decision_id: str, value: RewardValue) -> Call[Receipt]:
        """One reward; a refusal is a receipt, too."""

        def read(response: httpx.Response) -> Receipt:
            outcome = _read(response, dict[str, Any])["results"][0]
            refusal = outcome.get("problem")
            if refusal is None:
                return msgspec.convert(outcome["receipt"], Receipt)
            if refusal["type"] not in REFUSED:
                raise ServiceError(refusal["detail"], type=refusal["type"], status=refusal["status"], problem=refusal)
            return Receipt(decision_id=decision_id, value=plain, refused=REFUSED[refusal["type"]])

        plain = _plain_value(value)
        # By the route for batches, where a refusal is an entry of the answer and not an error.
        body = {"rewards": [{"decision_id": decision_id, "value": plain}]}
        # A reward must not overtake the booking of its own round, which the service does not know yet.
        if not self.later.holds(experiment, decision_id):
            try:
                request = ApiRequest("POST", f"{_path(experiment)}/{REWARD}", body, read)
                receipt = yield from self._ask(request, self.timeout)
                self.played.confirmed(experiment, [decision_id])
                return receipt
            except LostError:
                pass
        self.later.put(Entry(experiment, REWARD, decision_id, body))
        return Receipt(decision_id=decision_id, value=plain, is_queued=True)

    def void(self, experiment: str, decision_id: str, action: Any, reason: str) -> Call[Receipt]:
        """The word that a round was not played as decided; it waits if the service is away."""
        body = {"reason": reason} | ({} if action is None else {"action": action})
        try:
            request = _post(experiment, void_path(decision_id), body, Receipt)
            receipt = yield from self._ask(request, self.timeout)
            self.played.confirmed(experiment, [decision_id])
            return receipt
        except LostError:
            self.later.put(Entry(experiment, void_path(decision_id), decision_id, body))
        return Receipt(decision_id=decision_id, is_queued=True)

    def register(self, experiment: str, actions: Actions, feature_map: Mapping[str, Any] | None) -> Call[str]:
        """A catalogue."""
        body: dict[str, Any] = {"actions": named(actions)}
        if feature_map is not None:
            body["feature_map"] = dict(feature_map)
        answer = yield from self._patiently(_post(experiment, "catalogues", body, dict[str, Any]))
        catalogue = str(answer["catalogue"])
        self._catalogues[catalogue] = [str(name) for name in actions]
        return catalogue

    def abandon(self, experiment: str, decision_id: str, reason: str) -> Call[Receipt]:
        """Settle a decision without its reward."""
        request = _post(experiment, f"decisions/{decision_id}/abandon", {"reason": reason}, Receipt)
        return (yield from self._patiently(request))

    def create_experiment(
        self, name: str, settings: Mapping[str, Any] | None, configuration: str | Path | None, fields: dict[str, Any]
    ) -> Call[dict[str, Any]]:
        """A new experiment."""
        if configuration is not None:
            fields = {"configuration": self.use(name, configuration), **fields}
        body = {"name": name, "settings": dict(settings or {}), **fields}
        return (yield from self._patiently(ApiRequest("POST", EXPERIMENTS, body, _reader(dict[str, Any]))))

    def experiment(self, name: str) -> Call[dict[str, Any]]:
        """Where an experiment stands."""
        return (yield from self._patiently(ApiRequest("GET", _path(name), None, _reader(dict[str, Any]))))

    def set_mode(self, name: str, mode: str, reason: str, despite_doubt: bool) -> Call[dict[str, Any]]:
        """Another mode."""
        body = {"mode": mode, "reason": reason} | ({"despite_doubt": True} if despite_doubt else {})
        request = ApiRequest("PUT", f"{_path(name)}/mode", body, _reader(dict[str, Any]))
        return (yield from self._patiently(request))

    def acknowledge(self, name: str, response: str, reason: str, alarm_round: int) -> Call[dict[str, Any]]:
        """The answer to an alarm."""
        body = {"response": response, "reason": reason, "alarm_round": alarm_round}
        return (yield from self._patiently(_post(name, "acknowledgements", body, dict[str, Any])))

    def decision(self, experiment: str, decision_id: str) -> Call[dict[str, Any]]:
        """A decision with its explanation, its request and its proof."""
        path = f"{_path(experiment)}/decisions/{decision_id}"
        return (yield from self._patiently(ApiRequest("GET", path, None, _reader(dict[str, Any]))))

    def check(self, experiment: str) -> Call[EventHead | None]:
        """The newest receipt, if the service still has its event."""

        def read(response: httpx.Response) -> EventHead | None:
            is_missing = response.status_code == 404 and problem(response).type == "/problems/unknown-event"
            return None if is_missing else _read(response, EventHead)

        kept = self.heads.newest(experiment)
        if kept is None:
            return None
        request = ApiRequest("GET", f"{_path(experiment)}/head?number={kept.number}", None, read)
        return self.heads.check(experiment, (yield from self._patiently(request)))

    def flush(self, seconds: float) -> Call[bool]:
        """Send what waits; whether all of it was sent."""
        deadline = time.monotonic() + seconds
        self._say_played()
        while (entry := self.later.peek()) is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            try:
                yield from self._ask(_post(entry.experiment, entry.kind, entry.body, dict[str, Any]), left)
            except LostError as lost:
                if lost.error.type not in GONE:
                    return False
                self.later.refused.append(str(lost))
            except ServiceError as error:
                # Refused for good: it would be refused again and again, and hold all others up.
                self.later.refused.append(str(error))
            self.later.done(entry)
        return True

    def use(self, experiment: str, configuration: str | Path) -> str:
        """Know an experiment's configuration, so that the baseline can be played while the service is away."""
        try:
            text = Path(configuration).read_text(encoding="utf-8")
            actions = tomllib.loads(text)["actions"]
            self._configured[experiment] = [str(name) for name in actions["names"]], actions.get("baseline")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"`{configuration}` must be an experiment.toml with its actions, but: {error}.") from None
        return text

    def _patiently(self, request: ApiRequest[T]) -> Call[T]:
        try:
            return (yield from self._ask(request, self.patience))
        except LostError as lost:
            raise lost.error from None

    def _ask(self, request: ApiRequest[T], seconds: float) -> Call[T]:
        """Try until the time is up, with growing pauses, and never sooner than the service says."""
        deadline, failed = time.monotonic() + seconds, 0
        while True:
            request.seconds = max(0.001, deadline - time.monotonic())
            response = yield request
            if isinstance(response, httpx.Response):
                if response.status_code not in RETRIED:
                    return self._answer(request, response)
                error, rest = problem(response), max(pause(failed), _retry_after(response))
            else:
                error = ServiceError(f"The service must answer, but did not: {type(response).__name__}.")
                rest = pause(failed)
            if time.monotonic() + rest >= deadline:
                raise self._lost(request, error)
            failed += 1
            yield rest

    def _answer(self, request: ApiRequest[T], response: httpx.Response) -> T:
        """What the service answered; whatever is not the caller's own mistake is as if it had not answered."""
        try:
            answer = request.read(response)
            self.heads.keep(request.experiment, answer)
        except ServiceError as error:
            if error.is_callers:
                raise
            raise self._lost(request, error) from None
        except (ValueError, LookupError, TypeError, AttributeError):
            text = f"The service must answer in its own words, but something else came with {response.status_code}."
            raise self._lost(request, ServiceError(text, status=response.status_code)) from None
        self.played.confirmed(request.experiment, (request.body or {}).get("confirms", ()))
        self._failed.pop(request.experiment, None)
        return answer

    def _lost(self, request: ApiRequest[Any], error: ServiceError) -> LostError:
        """The failure of a request, which is counted, logged and reported."""
        experiment, failure = request.experiment, (error.type, error.status)
        with self._counting:
            self.failures[experiment] += 1
        # Once for each kind of failure until it has passed: in an outage every request fails.
        if self._failed.get(experiment) != failure:
            self._failed[experiment] = failure
            LOG.warning("No answer for %r, so the baseline is played: %s", experiment, error)
        if self._on_failure is not None:
            try:
                self._on_failure(experiment, error)
            except Exception:
                LOG.exception("`on_failure` raised; the baseline is played all the same.")
        return LostError(error)

    def _say_played(self) -> None:
        """Queue what no decision has said yet."""
        for experiment in self.played.experiments():
            while unsaid := self.played.of(experiment):
                self.later.put(Entry(experiment, CONFIRMATION, unsaid[0], {"decision_ids": unsaid}))
                self.played.confirmed(experiment, unsaid)

    def _fall_back(self, experiment: str, body: dict[str, Any]) -> Answer:
        """The baseline, chosen here.

        It keeps the id of the request: if the service has decided it after all, booking it says what was really played.
        """
        names, baseline = self._configured.get(experiment, ([], None))
        if baseline is not None:
            body.setdefault("baseline", baseline)
        action, name = body.get("baseline"), None
        if "proposal" not in body:
            if "actions" in body:
                names = [one["id"] for one in body["actions"]]
            elif "catalogue" in body:
                names = self._catalogues.get(str(body["catalogue"]), [])
            if not names:
                raise InputError(
                    "`actions` must be known here for a fallback: give them, register the catalogue here, or name the "
                    "experiment's configuration (`use`)."
                )
            name = names[0] if action is None else action
            if name not in names:
                raise InputError(f"`baseline` must be one of the actions, but got {name!r:.80}.")
            action = names.index(name)
        self.later.put(Entry(experiment, BOOKING, body["decision_id"], body))
        return Answer(
            decision_id=body["decision_id"],
            action=action,
            action_id=name,
            source="baseline",
            unit=body.get("unit"),
            explanation=UNREACHED,
            is_held=True,
            is_fallback=True,
        )


def decision_body(
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
    sent = {key: value for key, value in optional.items() if value is not None}
    return {"decision_id": decision_id or new_id(), **sent}


def named(actions: Any) -> list[dict[str, Any]]:
    """Actions as the service takes them: {"id": features, ...}, or names alone for plain arms.

    >>> named({"blue": [0.6, 0.1]}), named(["blue", "red"])
    ([{'id': 'blue', 'features': [0.6, 0.1]}], [{'id': 'blue'}, {'id': 'red'}])
    """
    if isinstance(actions, dict):
        return [{"id": name, "features": [float(entry) for entry in row]} for name, row in actions.items()]
    return [{"id": str(name)} for name in actions]


def problem(response: httpx.Response) -> ServiceError:
    """The service's refusal as an error."""
    try:
        document = msgspec.json.decode(response.content, type=dict[str, Any])
    except msgspec.MsgspecError:
        document = {}
    text = document.get("detail") or document.get("title") or f"The service answered {response.status_code}."
    type_ = str(document.get("type", ""))
    return ServiceError(str(text), type=type_, status=response.status_code, problem=document)


def pause(attempt: int) -> float:
    """Seconds before the next attempt: exponential backoff with jitter."""
    return float(min(2.0, 0.02 * 2**attempt) * random.uniform(0.5, 1.0))


def _retry_after(response: httpx.Response) -> float:
    """Seconds that a service asks its callers to stay away."""
    seconds = response.headers.get("retry-after", "")
    return float(seconds) if seconds.isdigit() else 0.0  # a date comes from a proxy


def _path(experiment: str) -> str:
    return f"{EXPERIMENTS}/{experiment}"


def _post(experiment: str, path: str, body: dict[str, Any], kind: type[T]) -> ApiRequest[T]:
    return ApiRequest("POST", f"{_path(experiment)}/{path}", body, _reader(kind))


def _reader(kind: type[T]) -> Callable[[httpx.Response], T]:
    return lambda response: _read(response, kind)


def _read(response: httpx.Response, kind: type[T]) -> T:
    if response.status_code >= 400:
        raise problem(response)
    return msgspec.json.decode(response.content, type=kind)


def _plain_value(value: Any) -> Any:
    """A reward or a prediction as JSON: a number, or numbers by metric."""
    if value is None:
        return None
    return {str(name): float(one) for name, one in value.items()} if isinstance(value, Mapping) else float(value)
