"""The same client for asyncio."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import httpx

from surefoot.client import requests
from surefoot.client.client_options import ClientOptions
from surefoot.client.models import Decision, EventHead, GuardDecision, Receipt, Voided
from surefoot.client.requests import Actions, ApiCall, RewardValue
from surefoot.client.retries import RETRIED, UNSETTLED, Attempts, LostError, pause
from surefoot.client.service_error import ServiceError

T = TypeVar("T")


class AsyncClient(ClientOptions):
    """`Client` for asyncio: the same calls, awaited, with the same promises.

    Parameters
    ----------
    url, token, timeout, patience, queue, receipts
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
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(url, token, timeout, patience, queue, receipts)
        limits = httpx.Limits(max_connections=1000, max_keepalive_connections=100)
        self._http = httpx.AsyncClient(
            base_url=self.url, headers=self.headers, transport=transport, trust_env=False, limits=limits
        )
        self._teller: asyncio.Task[None] | None = None
        self._telling = asyncio.Lock()

    @overload
    async def decide(
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
    async def decide(
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

    async def decide(self, experiment: str, actions: Actions | None = None, **kwargs: Any) -> Any:
        """Decide one round; without an answer in time, the baseline is played and booked later.

        Parameters
        ----------
        experiment, actions, catalogue, baseline, baseline_reward, context, context_features, decision_id
            As in `Client.decide`.
        proposal, unit, prediction
            For a guard, as in `Client.decide`.

        Returns
        -------
        Decision or GuardDecision
            What to play; `is_fallback` if it was chosen here.
        """
        body = self.confirming(experiment, requests.question(actions, **kwargs))
        # What was played alone stays so: the service could still answer otherwise, until it has heard of it.
        if not self.later.holds(experiment, body["decision_id"]):
            try:
                return await self._ask(requests.decide(experiment, body), self.timeout)
            except LostError:
                pass
        told = self.fall_back(experiment, body)
        self._tell_soon()
        return told

    async def reward(self, experiment: str, decision_id: str, value: RewardValue) -> Receipt:
        """Send the reward of a decision; if the service cannot be reached, it waits.

        Parameters
        ----------
        experiment, decision_id, value
            As in `Client.reward`.

        Returns
        -------
        Receipt
            Whether it was accepted, refused, or queued.
        """
        # A reward must not overtake the booking of its own round, which the service does not know yet.
        if not self.later.holds(experiment, decision_id):
            try:
                return await self._ask(requests.reward(experiment, decision_id, value), self.timeout)
            except LostError:
                pass
        self.later.put(requests.rewarded(experiment, decision_id, value))
        self._tell_soon()
        return requests.queued(decision_id, value)

    async def register(self, experiment: str, actions: Actions, *, feature_map: Mapping[str, Any] | None = None) -> str:
        """Register actions that stay the same.

        Parameters
        ----------
        experiment, actions, feature_map
            As in `Client.register`.

        Returns
        -------
        str
            The catalogue's name, for `decide`.
        """
        catalogue = await self._patiently(requests.register(experiment, actions, feature_map))
        self.know(catalogue, actions)
        return catalogue

    async def create_experiment(
        self,
        name: str,
        settings: Mapping[str, Any] | None = None,
        *,
        configuration: str | Path | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Create an experiment; needs an admin's token.

        Parameters
        ----------
        name, settings, configuration, fields
            As in `Client.create_experiment`.

        Returns
        -------
        dict
            The experiment as the service shows it.
        """
        if configuration is not None:
            fields = {"configuration": self.use(name, configuration), **fields}
        return await self._patiently(requests.create_experiment(name, settings or {}, fields))

    async def experiment(self, name: str) -> dict[str, Any]:
        """Where an experiment stands.

        Parameters
        ----------
        name
            As in `Client.experiment`.

        Returns
        -------
        dict
            Its status, as the service shows it.
        """
        return await self._patiently(requests.read_experiment(name))

    async def set_mode(self, name: str, mode: str, *, reason: str = "", despite_doubt: bool = False) -> dict[str, Any]:
        """Change the mode of an experiment; needs an admin's token.

        Parameters
        ----------
        name, mode, reason, despite_doubt
            As in `Client.set_mode`.

        Returns
        -------
        dict
            The answer of the service.
        """
        return await self._patiently(requests.set_mode(name, mode, reason, despite_doubt=despite_doubt))

    async def void(self, experiment: str, decision_id: str, action: Any = None, *, reason: str = "") -> Voided:
        """Say that a round was not played as decided; until its reward was sent. If the service is away, it waits.

        Parameters
        ----------
        experiment, decision_id, action, reason
            As in `Client.void`.

        Returns
        -------
        Voided
            Whether the round was moved, or the word is queued.
        """
        try:
            return await self._ask(requests.void(experiment, decision_id, action, reason), self.timeout)
        except LostError:
            self.later.put(requests.voided(experiment, decision_id, action, reason))
        self._tell_soon()
        return Voided(decision_id, is_queued=True)

    async def abandon(self, experiment: str, decision_id: str, *, reason: str = "") -> dict[str, Any]:
        """Settle a decision without its reward, so that no other reward waits for it (`Policy.abandon`).

        Parameters
        ----------
        experiment, decision_id, reason
            As in `Client.abandon`.

        Returns
        -------
        dict
            The answer of the service.
        """
        return await self._patiently(requests.abandon(experiment, decision_id, reason))

    async def acknowledge(self, name: str, response: str, *, reason: str, alarm_round: int) -> dict[str, Any]:
        """Answer the alarm; needs an admin's token.

        Parameters
        ----------
        name, response, reason, alarm_round
            As in `Client.acknowledge`.

        Returns
        -------
        dict
            The answer of the service.
        """
        return await self._patiently(requests.acknowledge(name, response, reason, alarm_round))

    async def decision(self, experiment: str, decision_id: str) -> dict[str, Any]:
        """A decision with its explanation, its question and its proof.

        Parameters
        ----------
        experiment, decision_id
            As in `Client.decision`.

        Returns
        -------
        dict
            The decision, as the service shows it.
        """
        return await self._patiently(requests.read_decision(experiment, decision_id))

    async def check(self, experiment: str) -> EventHead | None:
        """Check that the service still has the newest event that it gave a receipt for.

        Parameters
        ----------
        experiment
            As in `Client.check`.

        Returns
        -------
        EventHead or None
            The receipt; None if there is none yet.
        """
        kept = self.heads.newest(experiment)
        if kept is None:
            return None
        return self.heads.check(experiment, await self._patiently(requests.read_head(experiment, kept.number)))

    async def flush(self, seconds: float = 30.0) -> bool:
        """Send what waits.

        Parameters
        ----------
        seconds
            As in `Client.flush`.

        Returns
        -------
        bool
            Whether all of it was sent.
        """
        deadline = time.monotonic() + seconds
        async with self._telling:
            self.say_played()
            while (entry := self.later.peek()) is not None:
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                try:
                    await self._ask(requests.booking(entry), left)
                except LostError:
                    return False
                except ServiceError as error:
                    if error.status in UNSETTLED or error.status >= 500:
                        return False
                    # Refused for good: it would be refused again and again, and hold all others up.
                    self.later.refuse(error)
                self.later.done(entry)
        return True

    async def close(self, seconds: float = 5.0) -> None:
        """Send what waits, and close the connections.

        Parameters
        ----------
        seconds
            As in `Client.close`.
        """
        if self._http.is_closed:
            return
        if self._teller is not None:
            # It may be asleep, or hold the lock that the last flush needs.
            self._teller.cancel()
            await asyncio.gather(self._teller, return_exceptions=True)
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

    async def _patiently(self, call: ApiCall[T]) -> T:
        try:
            return await self._ask(call, self.patience)
        except LostError as lost:
            raise lost.error from None

    async def _ask(self, call: ApiCall[T], seconds: float) -> T:
        attempts = Attempts(seconds)
        while True:
            try:
                answer = await self._http.request(call.method, call.path, json=call.body, timeout=attempts.left)
                if answer.status_code not in RETRIED:
                    read = call.read(answer)
                    self.keep(call, read)
                    return read
                rest = attempts.refused(answer)
            except httpx.HTTPError as error:
                rest = attempts.failed(error)
            await asyncio.sleep(rest)

    def _tell_soon(self) -> None:
        if self._teller is None or self._teller.done():
            self._teller = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        attempt = 0
        while len(self.later):
            await asyncio.sleep(pause(attempt) * 5)
            attempt = 0 if await self.flush(self.patience) else attempt + 1
