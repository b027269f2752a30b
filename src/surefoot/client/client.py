"""A blocking client that always has an action to play, even if the service is down."""

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import httpx

from surefoot.client import requests
from surefoot.client.administration import Administration
from surefoot.client.models import Decision, EventHead, GuardDecision, Receipt, Voided
from surefoot.client.requests import Actions, ApiCall, RewardValue
from surefoot.client.retries import RETRIED, UNSETTLED, Attempts, LostError, pause
from surefoot.client.service_error import ServiceError

T = TypeVar("T")


class Client(Administration):
    """Decisions and rewards of a service, for any number of threads.

    `decide` always returns an action: if the service gives none within `timeout` seconds, retries included, it is the
    baseline, and the round is booked when the service is back. Rewards that cannot be sent wait, too, in `later`.
    Mistakes of the caller raise `ServiceError`.

    Parameters
    ----------
    url : str, optional
        The service's address; by default the environment's SUREFOOT_URL.
    token : str, optional
        By default the environment's SUREFOOT_TOKEN.
    timeout : float
        Seconds for a decision or a reward, retries included.
    patience : float
        Seconds for every other call, retries included.
    queue : int
        Requests that may wait in memory; beyond that the oldest are dropped and counted (`later.lost`).
    receipts : Path or str, optional
        A file in which the newest heads are kept, for `surefoot audit --expect`; in memory (`heads`) they always are.
    transport : httpx.BaseTransport, optional
        For tests.

    Raises
    ------
    ConfigError
        If the address or a number is invalid.

    Examples
    --------
    >>> from surefoot import Client
    >>> shop = Client("http://127.0.0.1:9", timeout=0.05)        # nobody listens there
    >>> decision = shop.decide("shop", {"blue": [0.6, 0.1], "red": [0.9, 0.3]}, decision_id="visit-1")
    >>> decision.action_id, decision.is_fallback
    ('blue', True)
    >>> shop.reward("shop", decision.decision_id, 1.0).is_queued, len(shop.later)
    (True, 2)
    >>> shop.close(0.0)
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        timeout: float = 0.5,
        patience: float = 30.0,
        queue: int = 10_000,
        receipts: Path | str | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(url, token, timeout, patience, queue, receipts)
        self._http = httpx.Client(base_url=self.url, headers=self.headers, transport=transport, trust_env=False)
        self._teller: threading.Thread | None = None
        self._telling, self._closing = threading.Lock(), threading.Event()

    @overload
    def decide(
        self,
        experiment: str,
        actions: Actions | None = None,
        *,
        catalogue: str | None = None,
        baseline: str | None = None,
        baseline_reward: float | Sequence[float] | None = None,
        context: Mapping[str, Any] | None = None,
        context_features: Sequence[float] | None = None,
        decision_id: str | None = None,
    ) -> Decision: ...

    @overload
    def decide(
        self,
        experiment: str,
        *,
        baseline: Any,
        proposal: Any,
        unit: str | None = None,
        prediction: RewardValue | None = None,
        context: Mapping[str, Any] | None = None,
        decision_id: str | None = None,
    ) -> GuardDecision: ...

    def decide(self, experiment: str, actions: Actions | None = None, **kwargs: Any) -> Any:
        """Decide one round; without an answer in time, the baseline is played and booked later.

        Parameters
        ----------
        experiment : str
            The experiment.
        actions : mapping of str to features, or sequence of str, optional
            The actions by name; names alone for plain arms.
        catalogue : str, optional
            What `register` returned, in place of `actions`.
        baseline : str or any JSON value, optional
            The action you would play today; by default the first. For a guard the action itself.
        baseline_reward : float or (low, high), optional
            Mean reward of the baseline in this round, where the policy takes it.
        context : mapping, optional
            JSON data to keep beside the decision.
        context_features : sequence of float, optional
            The context, for a catalogue with a feature map.
        decision_id : str, optional
            Your id of the decision; asking again with it is safe.
        proposal : any JSON value
            For a guard: the action that is to be let in.
        unit : str, optional
            For a guard with `unit_window`: whom the reward belongs to, if that is more than this visit.
        prediction : float or mapping, optional
            For a guard: the reward that you expect of the baseline, of several metrics by name.

        Returns
        -------
        Decision or GuardDecision
            What to play; `is_fallback` if it was chosen here.

        Raises
        ------
        ServiceError
            If the service refuses the question.
        InputError
            If a fallback is needed and the actions are not known here.
        """
        body = self.confirming(experiment, requests.question(actions, **kwargs))
        # What was played alone stays so: the service could still answer otherwise, until it has heard of it.
        if not self.later.holds(experiment, body["decision_id"]):
            try:
                return self._ask(requests.decide(experiment, body), self.timeout)
            except LostError:
                pass
        told = self.fall_back(experiment, body)
        self._tell_soon()
        return told

    def reward(self, experiment: str, decision_id: str, value: RewardValue) -> Receipt:
        """Send the reward of a decision; if the service cannot be reached, it waits.

        Parameters
        ----------
        experiment : str
            The experiment.
        decision_id : str
            The decision.
        value : float or mapping
            The reward; of a guard with several metrics a number for each, by name.

        Returns
        -------
        Receipt
            Whether it was accepted, refused, or queued.
        """
        # A reward must not overtake the booking of its own round, which the service does not know yet.
        if not self.later.holds(experiment, decision_id):
            try:
                return self._ask(requests.reward(experiment, decision_id, value), self.timeout)
            except LostError:
                pass
        self.later.put(requests.rewarded(experiment, decision_id, value))
        self._tell_soon()
        return requests.queued(decision_id, value)

    def register(self, experiment: str, actions: Actions, *, feature_map: Mapping[str, Any] | None = None) -> str:
        """Register actions that stay the same.

        Parameters
        ----------
        experiment : str
            The experiment.
        actions : mapping of str to features
            The actions by name.
        feature_map : mapping, optional
            How a context and an action's features become a row (docs/service.md).

        Returns
        -------
        str
            The catalogue's name, for `decide`.
        """
        catalogue = self._patiently(requests.register(experiment, actions, feature_map))
        self.know(catalogue, actions)
        return catalogue

    def void(self, experiment: str, decision_id: str, action: Any = None, *, reason: str = "") -> Voided:
        """Say that a round was not played as decided; until its reward was sent. If the service is away, it waits.

        Parameters
        ----------
        experiment : str
            The experiment.
        decision_id : str
            The decision.
        action : str, int or any JSON value, optional
            What was played, by name or index; of a guard the action itself. The baseline by default.
        reason : str
            Why; kept in the journal.

        Returns
        -------
        Voided
            Whether the round was moved, or the word is queued.
        """
        try:
            return self._ask(requests.void(experiment, decision_id, action, reason), self.timeout)
        except LostError:
            self.later.put(requests.voided(experiment, decision_id, action, reason))
        self._tell_soon()
        return Voided(decision_id, is_queued=True)

    def abandon(self, experiment: str, decision_id: str, *, reason: str = "") -> dict[str, Any]:
        """Settle a decision without its reward, so that no other reward waits for it (`Policy.abandon`).

        Parameters
        ----------
        experiment : str
            The experiment.
        decision_id : str
            The decision.
        reason : str
            Why; kept in the journal.

        Returns
        -------
        dict
            The answer of the service.
        """
        return self._patiently(requests.abandon(experiment, decision_id, reason))

    def check(self, experiment: str) -> EventHead | None:
        """Check that the service still has the newest event that it gave a receipt for.

        Parameters
        ----------
        experiment : str
            The experiment.

        Returns
        -------
        EventHead or None
            The receipt; None if there is none yet.

        Raises
        ------
        ReceiptError
            If the event is gone, or is another one: the journal was rewritten, or an older copy was restored.
        """
        kept = self.heads.newest(experiment)
        if kept is None:
            return None
        return self.heads.check(experiment, self._patiently(requests.read_head(experiment, kept.number)))

    def flush(self, seconds: float = 30.0) -> bool:
        """Send what waits.

        Parameters
        ----------
        seconds : float
            How long to try.

        Returns
        -------
        bool
            Whether all of it was sent.
        """
        deadline = time.monotonic() + seconds
        with self._telling:
            self.say_played()
            while (entry := self.later.peek()) is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                try:
                    self._ask(requests.booking(entry), left)
                except LostError:
                    return False
                except ServiceError as error:
                    if error.status in UNSETTLED or error.status >= 500:
                        return False
                    # Refused for good: it would be refused again and again, and hold all others up.
                    self.later.refuse(error)
                self.later.done(entry)
        return True

    def close(self, seconds: float = 5.0) -> None:
        """Send what waits, and close the connections.

        Parameters
        ----------
        seconds : float
            How long to try.
        """
        if self._http.is_closed:
            return
        # First of all, so that the thread in the background makes room for the last flush.
        self._closing.set()
        if seconds > 0:
            self.flush(seconds)
        self._http.close()
        self.heads.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _patiently(self, call: ApiCall[T]) -> T:
        try:
            return self._ask(call, self.patience)
        except LostError as lost:
            raise lost.error from None

    def _ask(self, call: ApiCall[T], seconds: float) -> T:
        attempts = Attempts(seconds)
        while True:
            try:
                answer = self._http.request(call.method, call.path, json=call.body, timeout=attempts.left)
                if answer.status_code not in RETRIED:
                    read = call.read(answer)
                    self.keep(call, read)
                    return read
                rest = attempts.refused(answer)
            except httpx.HTTPError as error:
                rest = attempts.failed(error)
            time.sleep(rest)

    def _tell_soon(self) -> None:
        if self._teller is None or not self._teller.is_alive():
            self._teller = threading.Thread(target=self._tell, name="surefoot client", daemon=True)
            self._teller.start()

    def _tell(self) -> None:
        attempt = 0
        while len(self.later) and not self._closing.wait(pause(attempt) * 5):
            try:
                attempt = 0 if self.flush(1.0) else attempt + 1  # short, for `close` waits for the same lock
            except RuntimeError:  # the connections were closed meanwhile
                return
