"""What a client asks of an experiment beside decisions and rewards: create it, read it, steer it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from surefoot.client import requests
from surefoot.client.client_options import ClientOptions
from surefoot.client.requests import ApiCall

T = TypeVar("T")


class Administration(ClientOptions):
    """The calls that may take as long as `patience` says."""

    def create_experiment(
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
            The experiment as the service shows it.
        """
        if configuration is not None:
            fields = {"configuration": self.use(name, configuration), **fields}
        return self._patiently(requests.create_experiment(name, settings or {}, fields))

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
        return self._patiently(requests.read_experiment(name))

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
            The answer of the service.
        """
        return self._patiently(requests.set_mode(name, mode, reason, despite_doubt=despite_doubt))

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
            The answer of the service.
        """
        return self._patiently(requests.acknowledge(name, response, reason, alarm_round))

    def decision(self, experiment: str, decision_id: str) -> dict[str, Any]:
        """A decision with its explanation, its question and its proof.

        Parameters
        ----------
        experiment : str
            The experiment.
        decision_id : str
            The decision.

        Returns
        -------
        dict
            The decision, as the service shows it.
        """
        return self._patiently(requests.read_decision(experiment, decision_id))

    def _patiently(self, call: ApiCall[T]) -> T:
        raise NotImplementedError
