"""The same client for asyncio."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from surefoot.client.calls import Actions, Call, Calls, RewardValue, ServiceError, pause
from surefoot.rounds import Answer, Receipt
from surefoot.rounds.answers import EventHead

T = TypeVar("T")


class AsyncClient:
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
        self._calls = Calls(url, token, timeout, patience, queue, receipts, on_failure)
        self.later, self.heads, self.played = self._calls.later, self._calls.heads, self._calls.played
        self.failures = self._calls.failures
        limits = httpx.Limits(max_connections=1000, max_keepalive_connections=100)
        base, headers = self._calls.url, self._calls.headers
        self._http = httpx.AsyncClient(
            base_url=base, headers=headers, transport=transport, trust_env=False, limits=limits
        )
        self._teller: asyncio.Task[None] | None = None
        self._telling = asyncio.Lock()

    async def decide(self, experiment: str, actions: Actions | None = None, **request: Any) -> Answer:
        """Decide one round; without an answer in time, the baseline is played and booked later.

        Parameters
        ----------
        experiment, actions, request
            As in `Client.decide`.

        Returns
        -------
        Answer
            As there.
        """
        return await self._drive(self._calls.decide(experiment, actions, request))

    async def reward(self, experiment: str, decision_id: str, value: RewardValue) -> Receipt:
        """Send the reward of a decision; if the service cannot be reached, it waits.

        Parameters
        ----------
        experiment, decision_id, value
            As in `Client.reward`.

        Returns
        -------
        Receipt
            As there.
        """
        return await self._drive(self._calls.reward(experiment, decision_id, value))

    async def void(self, experiment: str, decision_id: str, action: Any = None, *, reason: str = "") -> Receipt:
        """Say that a round was not played as decided; until its reward was sent. If the service is away, it waits.

        Parameters
        ----------
        experiment, decision_id, action, reason
            As in `Client.void`.

        Returns
        -------
        Receipt
            As there.
        """
        return await self._drive(self._calls.void(experiment, decision_id, action, reason))

    async def abandon(self, experiment: str, decision_id: str, *, reason: str = "") -> Receipt:
        """Settle a decision without its reward, so that no other reward waits for it (`Policy.abandon`).

        Parameters
        ----------
        experiment, decision_id, reason
            As in `Client.abandon`.

        Returns
        -------
        Receipt
            As there.
        """
        return await self._drive(self._calls.abandon(experiment, decision_id, reason))

    async def register(self, experiment: str, actions: Actions, *, feature_map: Mapping[str, Any] | None = None) -> str:
        """Register actions that stay the same.

        Parameters
        ----------
        experiment, actions, feature_map
            As in `Client.register`.

        Returns
        -------
        str
            As there.
        """
        return await self._drive(self._calls.register(experiment, actions, feature_map))

    def use(self, experiment: str, configuration: str | Path) -> str:
        """Know an experiment's configuration, so that the baseline can be played while the service is away.

        Parameters
        ----------
        experiment, configuration
            As in `Client.use`.

        Returns
        -------
        str
            As there.
        """
        return self._calls.use(experiment, configuration)

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
            As there.
        """
        return await self._drive(self._calls.create_experiment(name, settings, configuration, fields))

    async def experiment(self, name: str) -> dict[str, Any]:
        """Where an experiment stands.

        Parameters
        ----------
        name
            As in `Client.experiment`.

        Returns
        -------
        dict
            As there.
        """
        return await self._drive(self._calls.experiment(name))

    async def set_mode(self, name: str, mode: str, *, reason: str = "", despite_doubt: bool = False) -> dict[str, Any]:
        """Change the mode of an experiment; needs an admin's token.

        Parameters
        ----------
        name, mode, reason, despite_doubt
            As in `Client.set_mode`.

        Returns
        -------
        dict
            As there.
        """
        return await self._drive(self._calls.set_mode(name, mode, reason, despite_doubt))

    async def acknowledge(self, name: str, response: str, *, reason: str, alarm_round: int) -> dict[str, Any]:
        """Answer the alarm; needs an admin's token.

        Parameters
        ----------
        name, response, reason, alarm_round
            As in `Client.acknowledge`.

        Returns
        -------
        dict
            As there.
        """
        return await self._drive(self._calls.acknowledge(name, response, reason, alarm_round))

    async def decision(self, experiment: str, decision_id: str) -> dict[str, Any]:
        """A decision with its explanation, its request and its proof.

        Parameters
        ----------
        experiment, decision_id
            As in `Client.decision`.

        Returns
        -------
        dict
            As there.
        """
        return await self._drive(self._calls.decision(experiment, decision_id))

    async def check(self, experiment: str) -> EventHead | None:
        """Check that the service still has the newest event that it gave a receipt for.

        Parameters
        ----------
        experiment
            As in `Client.check`.

        Returns
        -------
        EventHead or None
            As there.
        """
        return await self._drive(self._calls.check(experiment))

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
        async with self._telling:
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

    async def _drive(self, call: Call[T]) -> T:
        try:
            return await self._run(call)
        finally:
            if len(self.later) and (self._teller is None or self._teller.done()):
                self._teller = asyncio.create_task(self._tell())

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

    async def _tell(self) -> None:
        attempt = 0
        while len(self.later):
            await asyncio.sleep(pause(attempt) * 5)
            attempt = 0 if await self.flush(self._calls.patience) else attempt + 1
