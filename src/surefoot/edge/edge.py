"""An edge: an app's own shard, which decides in its own process and needs the service only to renew its lease."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

try:
    import httpx  # noqa: F401 (before what needs it says so of another extra)
except ImportError as error:
    raise ImportError("The edge needs httpx. Install it with: pip install 'surefoot[edge]'") from error

from surefoot.arrays import Matrix
from surefoot.client.models import Decision
from surefoot.edge.base_edge import SPARE, UNWRITTEN
from surefoot.edge.edge_entries import Decided
from surefoot.edge.edge_voids import EdgeVoids
from surefoot.edge.own_ids import check_same, fingerprint, read_own_id
from surefoot.errors import InputError, JournalError, SurefootError
from surefoot.experiment.question import read_actions, read_baseline, read_baseline_reward

LONGEST_NAME = 1000  # bytes of an action's


class Edge(EdgeVoids):
    """Decides between actions in this process, under a signed lease, whether the service answers or not.

    Every decision is in the log before it is returned. Leases are renewed in a thread of their own, which hands in what
    was decided; while the service is away the lease goes on, until it is spent or expires, and then the baseline plays.

    Parameters
    ----------
    url : str, optional
        The service's address; by default the environment's SUREFOOT_URL.
    experiment : str
        An experiment whose ledger is sharded.
    shard : str
        A name that no shard of it has had.
    log : Path or str
        The edge's own file: a new one, or that of an earlier process, which needs no service to go on. Its mark lies
        beside it, by the same name and `.mark`.
    key : Path or str
        The service's public key (PEM), which leases are checked with.
    token : str, optional
        By default the environment's SUREFOOT_TOKEN; its role is "decide".
    catalogue : str, optional
        Registered actions to decide between, where decisions bring none of their own.
    every, seconds : int and float
        Most decisions under one lease, and the time after which it is renewed.
    timeout : float
        Seconds for one request; no decision waits for it.
    sync : bool
        Whether each decision waits until the disk has it. Without, a lease is lost with the machine's power.
    in_background : bool
        Whether leases are renewed in a thread of their own; otherwise call `renew_if_due`.
    clock : callable
        Tells the time in seconds since 1970.
    transport : httpx.BaseTransport, optional
        For tests.

    Raises
    ------
    ConfigError
        If the log is a copy or an earlier state, or another edge's, or the lease is forged.
    AssumptionError
        If the log is new, and the clock is not that of the service.
    JournalUnavailableError
        If the log is new, and the service cannot be reached.

    Examples
    --------
    >>> Edge("http://127.0.0.1:8080", experiment="shop", shard="till-7", log="till-7.log", key="no-such.pub")
    Traceback (most recent call last):
    surefoot.errors.ConfigError: There must be an Ed25519 public key in PEM form at no-such.pub, but: ...
    """

    def decide(
        self,
        actions: Mapping[str, Sequence[float]] | ArrayLike | None = None,
        *,
        baseline: str | int | None = None,
        baseline_reward: float | Sequence[float] | None = None,
        context_features: Sequence[float] | None = None,
        decision_id: str | None = None,
    ) -> Decision:
        """Decide one round, in memory and into the log.

        Parameters
        ----------
        actions : mapping of str to features, or array_like of shape (actions, dim), optional
            What is offered; by default the actions of the lease's catalogue. An array is quickest.
        baseline : str or int, optional
            Name or row of the action you would play today; by default the first.
        baseline_reward : float or (low, high), optional
            Mean reward of the baseline in this round.
        context_features : sequence of float, optional
            The context, where the lease's catalogue has a feature map.
        decision_id : str, optional
            Your own id of the round, known to this edge alone: the same question again is the same round. By default
            the edge gives one, such as till-7:12.

        Returns
        -------
        Decision
            What to play; `explanation` tells why where the lease has ended. Its id is what to send the reward with.

        Raises
        ------
        InputError
            If the question breaks a rule, or is too large to be handed in; nothing is written then.
        DecisionConflictError
            If the id stands for another question.
        """
        own = None if decision_id is None else read_own_id(decision_id, self.shard)
        rows, names = self._rows_of(actions, context_features)
        row = read_baseline(0 if baseline is None else baseline, names, len(rows))
        assert row is not None
        known = read_baseline_reward(baseline_reward)
        self._check_size(rows, names)
        with self._lock:
            made = self._decide(rows, names, row, known, own)
        if self._in_background:
            self._look_after()
        return made

    def _decide(self, rows: Matrix, names: list[str] | None, row: int, known: Any, own: str | None) -> Decision:
        journal, head = self._journal, self._head
        asked = b"" if own is None else fingerprint(rows, names, row, known)
        found = None if own is None else journal.rounds.own.find(own)
        if found is not None:
            check_same(found, asked)
            return found.again()
        if journal.error is not None:
            return self._uncounted(row, names, journal.error)
        now = self._now()
        journal.close_windows(now)
        is_expired = max(now, self._clock()) >= head.expires or time.monotonic() >= self._until
        is_held = is_expired or head.mode != "guarded"
        decision = journal.shard.decide(rows, baseline=row, baseline_reward=known, moment=now, hold=is_held)
        action, is_learner = decision.action, decision.source == "learner"
        entry = Decided(
            decision.round, now, rows.tobytes(), len(rows), names, row, known, action, is_learner, is_expired, own
        )
        try:
            journal.write(entry)
        except JournalError as error:
            return self._uncounted(row, names, error)
        journal.rounds.decided(entry, head.mode, asked)
        return Decision(
            own or f"{self.shard}:{decision.round}",
            str(action) if names is None else names[action],
            action,
            decision.source,
            head.mode,
            decision.round,
            self._explained(is_expired),
            is_fallback=is_expired,
        )

    def _check_size(self, rows: Matrix, names: list[str] | None) -> None:
        least = rows.nbytes
        if least + LONGEST_NAME * len(rows) > self._head.entry_bytes - SPARE:
            self._check_fits("`actions`", least + sum(len(name.encode()) + 5 for name in names or ()))

    def _uncounted(self, row: int, names: list[str] | None, error: SurefootError) -> Decision:
        """The baseline, without a round: one more of it can only raise the ledger."""
        name = str(row) if names is None else names[row]
        return Decision("", name, row, "baseline", explanation=UNWRITTEN.format(error), is_fallback=True)

    def _rows_of(self, actions: Any, context: Any) -> tuple[Matrix, list[str] | None]:
        if actions is None:
            if self._offered is None:
                raise InputError("`actions` must be given: this edge was joined without a `catalogue` of actions.")
            return np.ascontiguousarray(self._offered.rows(context)), self._offered.names
        if context is not None:
            raise InputError("`context_features` must come without `actions`: they are for the lease's catalogue.")
        names = None
        if isinstance(actions, Mapping):
            names, actions = [str(name) for name in actions], list(actions.values())
        try:
            rows = np.ascontiguousarray(actions, dtype=np.float64)
        except (TypeError, ValueError):
            rows = np.zeros(0)
        if rows.ndim != 2 or not len(rows):
            raise InputError(f"`actions` must be rows of numbers, one per action, but got {actions!r:.80}.")
        return rows, read_actions(names, len(rows))
