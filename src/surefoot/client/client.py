"""Clients that always have an action to play, even if the service is down: a blocking one, and one for asyncio."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast

import httpx

from surefoot.client.calls import Actions, Call, Calls, RewardValue, ServiceError, pause
from surefoot.rounds import Answer, Receipt
from surefoot.rounds.answers import EventHead

T = TypeVar("T")
P = ParamSpec("P")


class Shell:
    """What both clients are: the calls, and what they remember."""

    def __init__(
        self,
        url: str | None,
        token: str | None,
        timeout: float,
        patience: float,
        queue: int,
        receipts: Path | str | None,
        on_failure: Callable[[str, ServiceError], object] | None,
    ) -> None:
        self._calls = Calls(url, token, timeout, patience, queue, receipts, on_failure)
        self.later, self.heads, self.played = self._calls.later, self._calls.heads, self._calls.played
        self.failures = self._calls.failures

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._calls.url!r}, queued={len(self.later)})"

    def use(self, experiment: str, configuration: str | Path) -> str:
        """Know an experiment's configuration, so that the baseline can be played while the service is away.

        Parameters
        ----------
        experiment : str
            The experiment.
        configuration : str or Path
            Its experiment.toml.

        Returns
        -------
        str
            The file's text, as `create_experiment` sends it.

        Raises
        ------
        ConfigError
            If it cannot be read, or names no actions.
        """
        return self._calls.use(experiment, configuration)


class Client(Shell):
    """Decisions and rewards of a service, for any number of threads.

    `decide` always returns an action: if the service gives none within `timeout` seconds, retries included, or fails in
    any other way, a refused token included, it is the baseline, and the round is booked when the service is back.
    Rewards that cannot be sent wait, too, in `later`. Such failures are counted by experiment (`failures`) and logged.
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
    on_failure : callable, optional
        Is called with the experiment and a `ServiceError` for every request that got no usable answer, to raise an
        alert; `status` and `type` say why. What it raises is logged.
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
    >>> shop
    Client('http://127.0.0.1:9', queued=0)
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
        on_failure: Callable[[str, ServiceError], object] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(url, token, timeout, patience, queue, receipts, on_failure)
        base, headers = self._calls.url, self._calls.headers
        self._http = httpx.Client(base_url=base, headers=headers, transport=transport, trust_env=False)
        self._sender: threading.Thread | None = None
        self._sending, self._closing = threading.Lock(), threading.Event()

    def decide(self, /, experiment: str, actions: Actions | None = None, **request: Any) -> Answer:
        """Decide one round; without an answer in time, the baseline is played and booked later.

        Parameters
        ----------
        experiment : str
            The experiment.
        actions : mapping of str to features, or sequence of str, optional
            The actions by name; names alone for plain arms.
        request
            Of every policy: decision_id, your id of the decision (asking again with it is safe), and context, JSON data
            to keep beside it. Of a policy over rows or arms: catalogue, what `register` returned, in place of
            `actions`; context_features, for a catalogue with a feature map; baseline, the action you would play today
            (the first by default); baseline_reward, its mean reward in this round, where the policy takes it. Of a
            guard: baseline and proposal, the action of today and the one that is to be let in, any JSON values; unit,
            whom the reward belongs to, if that is more than this visit; prediction, the reward that you expect of the
            baseline, of several metrics by name.

        Returns
        -------
        Answer
            What to play; `is_fallback` if it was chosen here.

        Raises
        ------
        ServiceError
            If the service refuses the request.
        InputError
            If a fallback is needed and the actions are not known here.
        """
        return self._drive(self._calls.decide(experiment, actions, request))

    def reward(self, experiment: str, decision_id: str, value: RewardValue) -> Receipt:
        """Send the reward of a decision; if the service cannot be reached, it waits.

        Parameters
        ----------
        experiment : str
            The experiment.
        decision_id : str
            The decision.
        value : float or mapping
            The reward; of a guard with several metrics a number for each by name, all at once or as they come.

        Returns
        -------
        Receipt
            Whether it was accepted, refused, or queued.
        """
        return self._drive(self._calls.reward(experiment, decision_id, value))

    def void(self, experiment: str, decision_id: str, action: Any = None, *, reason: str = "") -> Receipt:
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
        Receipt
            Whether the round was moved (`is_repeat` if not), or the word is queued.
        """
        return self._drive(self._calls.void(experiment, decision_id, action, reason))

    def abandon(self, experiment: str, decision_id: str, *, reason: str = "") -> Receipt:
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
        Receipt
            With `is_repeat` if it was abandoned before.
        """
        return self._drive(self._calls.abandon(experiment, decision_id, reason))

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
        return self._drive(self._calls.register(experiment, actions, feature_map))

    def create_experiment(
        self,
        /,
        name: str,
        settings: Mapping[str, Any] | None = None,
        *,
        configuration: str | Path | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Create an experiment; needs an admin's token.

        Parameters
        ----------
        name : str
            A new name.
        settings : mapping, optional
            The policy's settings.
        configuration : str or Path, optional
            An experiment.toml, in place of policy and settings; decisions then need a `context` and no `actions`.
        fields : object
            Further fields of the request, such as `policy` or `mode`.

        Returns
        -------
        dict
            The experiment's status, as the service shows it.
        """
        return self._drive(self._calls.create_experiment(name, settings, configuration, fields))

    def experiment(self, name: str) -> dict[str, Any]:
        """Where an experiment stands.

        Parameters
        ----------
        name : str
            The experiment.

        Returns
        -------
        dict
            Its status, as the service shows it.
        """
        return self._drive(self._calls.experiment(name))

    def set_mode(self, name: str, mode: str, *, reason: str = "", despite_doubt: bool = False) -> dict[str, Any]:
        """Change the mode of an experiment; needs an admin's token.

        Parameters
        ----------
        name : str
            The experiment.
        mode : {"guarded", "paused"}
            The new mode.
        reason : str
            Why; kept in the journal.
        despite_doubt : bool
            Go over to guarded mode although the configuration's log spoke against a linear model.

        Returns
        -------
        dict
            The experiment's status, as the service shows it.
        """
        return self._drive(self._calls.set_mode(name, mode, reason, despite_doubt))

    def acknowledge(self, name: str, response: str, *, reason: str, alarm_round: int) -> dict[str, Any]:
        """Answer the alarm; needs an admin's token.

        Parameters
        ----------
        name : str
            The experiment.
        response : {"stay", "relearn", "renew"}
            Stay on the baseline, learn again under the same promise, or start a new promise.
        reason : str
            Why; kept in the journal.
        alarm_round : int
            Which alarm is meant, from `experiment(name)`, so that another one is not answered by mistake.

        Returns
        -------
        dict
            The experiment's status, as the service shows it.
        """
        return self._drive(self._calls.acknowledge(name, response, reason, alarm_round))

    def decision(self, experiment: str, decision_id: str) -> dict[str, Any]:
        """A decision with its explanation, its request and its proof.

        Parameters
        ----------
        experiment : str
            The experiment.
        decision_id : str
            The decision.

        Returns
        -------
        dict
            The answer, and the round as the journal holds it.
        """
        return self._drive(self._calls.decision(experiment, decision_id))

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
        return self._drive(self._calls.check(experiment))

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
        with self._sending:
            return self._run(self._calls.flush(seconds))

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

    def _drive(self, call: Call[T]) -> T:
        try:
            return self._run(call)
        finally:
            if len(self.later) and (self._sender is None or not self._sender.is_alive()):
                self._sender = threading.Thread(target=self._send_later, name="surefoot client", daemon=True)
                self._sender.start()

    def _run(self, call: Call[T]) -> T:
        response: httpx.Response | httpx.HTTPError | None = None
        while True:
            try:
                step = call.send(response)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, float):
                time.sleep(step)
                response = None
                continue
            try:
                response = self._http.request(step.method, step.path, json=step.body, timeout=step.seconds)
            except httpx.HTTPError as error:
                response = error

    def _send_later(self) -> None:
        attempt = 0
        while len(self.later) and not self._closing.wait(pause(attempt) * 5):
            try:
                attempt = 0 if self.flush(1.0) else attempt + 1  # short, for `close` waits for the same lock
            except RuntimeError:  # the connections were closed meanwhile
                return


def _awaited(
    call: Callable[Concatenate[Client, P], T],
) -> "Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]":
    """A call of `Client` as one of `AsyncClient`, whose `_drive` is a coroutine."""
    return cast("Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]", call)


class AsyncClient(Shell):
    """`Client` for asyncio: the same calls, awaited, with the same promises.

    Parameters
    ----------
    url, token, timeout, patience, queue, receipts, on_failure
        As in `Client`.
    transport : httpx.AsyncBaseTransport, optional
        For tests.

    Raises
    ------
    ConfigError
        If the address or a number is invalid.

    Examples
    --------
    >>> async def visit() -> str:
    ...     shop = AsyncClient("http://127.0.0.1:9", timeout=0.05)        # nobody listens there
    ...     decision = await shop.decide("shop", ["blue", "red"])
    ...     await shop.close(0.0)
    ...     return decision.action_id
    >>> asyncio.run(visit())
    'blue'
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
        on_failure: Callable[[str, ServiceError], object] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(url, token, timeout, patience, queue, receipts, on_failure)
        limits = httpx.Limits(max_connections=1000, max_keepalive_connections=100)
        base, headers = self._calls.url, self._calls.headers
        self._http = httpx.AsyncClient(
            base_url=base, headers=headers, transport=transport, trust_env=False, limits=limits
        )
        self._sender: asyncio.Task[None] | None = None
        self._sending = asyncio.Lock()

    decide = _awaited(Client.decide)
    reward = _awaited(Client.reward)
    void = _awaited(Client.void)
    abandon = _awaited(Client.abandon)
    register = _awaited(Client.register)
    create_experiment = _awaited(Client.create_experiment)
    experiment = _awaited(Client.experiment)
    set_mode = _awaited(Client.set_mode)
    acknowledge = _awaited(Client.acknowledge)
    decision = _awaited(Client.decision)
    check = _awaited(Client.check)

    async def flush(self, seconds: float = 30.0) -> bool:
        """Send what waits.

        Parameters
        ----------
        seconds
            As in `Client.flush`.

        Returns
        -------
        bool
            As there.
        """
        async with self._sending:
            return await self._run(self._calls.flush(seconds))

    async def close(self, seconds: float = 5.0) -> None:
        """Send what waits, and close the connections.

        Parameters
        ----------
        seconds
            As in `Client.close`.
        """
        if self._http.is_closed:
            return
        if self._sender is not None:
            # It may be asleep, or hold the lock that the last flush needs.
            self._sender.cancel()
            await asyncio.gather(self._sender, return_exceptions=True)
        if seconds > 0:
            await self.flush(seconds)
        await self._http.aclose()
        self.heads.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def _drive(self, call: Call[T]) -> T:
        try:
            return await self._run(call)
        finally:
            if len(self.later) and (self._sender is None or self._sender.done()):
                self._sender = asyncio.create_task(self._send_later())

    async def _run(self, call: Call[T]) -> T:
        response: httpx.Response | httpx.HTTPError | None = None
        while True:
            try:
                step = call.send(response)
            except StopIteration as end:
                result: T = end.value
                return result
            if isinstance(step, float):
                await asyncio.sleep(step)
                response = None
                continue
            try:
                response = await self._http.request(step.method, step.path, json=step.body, timeout=step.seconds)
            except httpx.HTTPError as error:
                response = error

    async def _send_later(self) -> None:
        attempt = 0
        while len(self.later):
            await asyncio.sleep(pause(attempt) * 5)
            attempt = 0 if await self.flush(self._calls.patience) else attempt + 1
