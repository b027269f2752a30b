"""How a client behaves when the service is slow or away."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from surefoot.client import requests
from surefoot.client.kept_heads import KeptHeads
from surefoot.client.models import Decision, Receipt, Voided
from surefoot.client.offline_queue import OfflineQueue
from surefoot.client.played_rounds import PlayedRounds
from surefoot.client.requests import Actions, ApiCall
from surefoot.errors import ConfigError
from surefoot.scalars import count, positive


class ClientOptions:
    """What both clients share: where the service is, how long it may take, and what waits to be sent."""

    def __init__(
        self,
        url: str | None,
        token: str | None,
        timeout: float,
        patience: float,
        queue: int,
        receipts: Path | str | None = None,
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
        self.headers = {"content-type": "application/json"}
        secret = token or os.environ.get("SUREFOOT_TOKEN")
        if secret:
            self.headers["authorization"] = f"Bearer {secret}"
        self._catalogues: dict[str, list[str]] = {}
        self._configured: dict[str, tuple[list[str], str | None]] = {}

    def confirming(self, experiment: str, body: dict[str, Any]) -> dict[str, Any]:
        """A question that also says what was played since the last one."""
        unsaid = self.played.of(experiment)
        return {**body, "confirms": unsaid} if unsaid else body

    def keep(self, call: ApiCall[Any], answer: Any) -> None:
        """Keep what an answer of the service means beyond its caller: its receipt, and what it has heard of."""
        self.heads.keep(call.experiment, answer)
        if call.body is not None and "confirms" in call.body:
            self.played.said(call.experiment, call.body["confirms"])
        if isinstance(answer, Decision) and answer.confirm_within is not None:
            self.played.add(call.experiment, answer.decision_id)
        elif isinstance(answer, Receipt | Voided):
            self.played.said(call.experiment, [answer.decision_id])

    def say_played(self) -> None:
        """Queue what no question has said yet."""
        for experiment in self.played.experiments():
            while unsaid := self.played.of(experiment):
                self.later.put(requests.confirmed(experiment, unsaid))
                self.played.said(experiment, unsaid)

    def names(self, experiment: str, body: Mapping[str, Any]) -> Sequence[str]:
        """The names of a question's actions, as far as they are known here."""
        if "actions" in body:
            return [action["id"] for action in body["actions"]]
        if "catalogue" in body:
            return self._catalogues.get(str(body["catalogue"]), [])
        return self._configured.get(experiment, ([], None))[0]

    def fall_back(self, experiment: str, body: dict[str, Any]) -> Any:
        """The baseline, chosen here; the round waits to be booked."""
        baseline = self._configured.get(experiment, ([], None))[1]
        if baseline is not None and "baseline" not in body:
            body = {**body, "baseline": baseline}
        body = {name: told for name, told in body.items() if name != "confirms"}  # said with another question
        told = requests.fallback(body, self.names(experiment, body))
        self.later.put(requests.booked(experiment, body))
        return told

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
        try:
            text = Path(configuration).read_text(encoding="utf-8")
            actions = tomllib.loads(text)["actions"]
            self._configured[experiment] = [str(name) for name in actions["names"]], actions.get("baseline")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"`{configuration}` must be an experiment.toml with its actions, but: {error}.") from None
        return text

    def know(self, catalogue: str, actions: Actions) -> None:
        """Remember a catalogue's names, for fallbacks."""
        self._catalogues[catalogue] = [str(name) for name in actions]
