"""An edge of a guard: coins that are drawn in an app's own process, under a signed lease of the bank."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

try:
    import httpx
except ImportError as error:
    raise ImportError("The edge needs httpx. Install it with: pip install 'surefoot[edge]'") from error

from surefoot.client.models import GuardDecision
from surefoot.edge.base_edge import UNWRITTEN, BaseEdge
from surefoot.edge.edge_entries import Drawn, PlayedEntry
from surefoot.edge.guard_edge_journal import GuardEdgeJournal
from surefoot.edge.guard_edge_rounds import fingerprint_drawn
from surefoot.edge.own_ids import check_same, read_own_id
from surefoot.errors import DecisionConflictError, DecisionError, DecisionSettledError, JournalError, SurefootError
from surefoot.experiment.guard_question import plain_prediction, read_metrics, write_action
from surefoot.experiment.guard_reward import is_within

LONGEST_NUMBER = 20  # bytes, and what stands around it


class GuardEdge(BaseEdge[GuardEdgeJournal]):
    """Lets a proposal act under a guard's floor in this process, whether the service answers or not.

    The lease holds a part of the bank, and the secret that its coins follow from: each round has one coin, which the
    service finds again when the log is handed in. So none is drawn twice, whoever ends the process.

    Parameters
    ----------
    url, experiment, shard, log, key, token, every, seconds, timeout, sync, in_background, clock, transport
        As of `Edge`; the experiment's policy is a `Guard`.

    Raises
    ------
    ConfigError, AssumptionError, JournalUnavailableError
        As `Edge`.

    Examples
    --------
    >>> GuardEdge("http://127.0.0.1:8080", experiment="models", shard="app-1", log="app-1.log", key="no-such.pub")
    Traceback (most recent call last):
    surefoot.errors.ConfigError: There must be an Ed25519 public key in PEM form at no-such.pub, but: ...
    """

    _kind, _opens = "guard", GuardEdgeJournal

    def __init__(
        self,
        url: str | None = None,
        *,
        experiment: str,
        shard: str,
        log: Path | str,
        key: Path | str,
        token: str | None = None,
        every: int = 1000,
        seconds: float = 60.0,
        timeout: float = 10.0,
        sync: bool = False,
        in_background: bool = True,
        clock: Callable[[], float] = time.time,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(
            url,
            experiment=experiment,
            shard=shard,
            log=log,
            key=key,
            token=token,
            every=every,
            seconds=seconds,
            timeout=timeout,
            sync=sync,
            in_background=in_background,
            clock=clock,
            transport=transport,
        )

    @property
    def share(self) -> float:
        """The probability with which the next proposal would be played, unless the lease has expired or ended."""
        return self._journal.shard.share if self._head.mode == "guarded" else 0.0

    def decide(
        self,
        *,
        baseline: Any,
        proposal: Any,
        prediction: float | Mapping[str, float] | None = None,
        decision_id: str | None = None,
    ) -> GuardDecision:
        """Draw the coin of one round, in memory and into the log, and say which of the two actions to play.

        Parameters
        ----------
        baseline, proposal : any JSON value but None
            The action you would play today, and the one that is to be let in. Equal ones are the baseline's.
        prediction : float or mapping, optional
            The reward that you expect of the baseline in this round; of several metrics by name.
        decision_id : str, optional
            Your own id of the round, known to this edge alone: the same question again is the same round and the same
            coin. By default the edge gives one, such as app-1:12.

        Returns
        -------
        GuardDecision
            What to play, and with which probability; `explanation` tells why where the lease has ended.

        Raises
        ------
        InputError
            If the question breaks a rule, or is too large to be handed in; nothing is written then.
        DecisionConflictError
            If the id stands for another question.
        """
        own = None if decision_id is None else read_own_id(decision_id, self.shard)
        pair = write_action("baseline", baseline), write_action("proposal", proposal)
        predicted = plain_prediction(prediction, self._metrics)
        named = sum(len(name) + LONGEST_NUMBER for name in predicted) if isinstance(predicted, dict) else 0
        self._check_fits("`baseline` and `proposal`", len(pair[0]) + len(pair[1]) + named)
        with self._lock:
            made = self._decide(pair, predicted, own)
        if self._in_background:
            self._look_after()
        return made

    def _decide(self, pair: tuple[bytes, bytes], predicted: Any, own: str | None) -> GuardDecision:
        journal, mode = self._journal, self._head.mode
        asked = b"" if own is None else fingerprint_drawn(*pair, predicted)
        found = None if own is None else journal.rounds.own.find(own)
        if found is not None:
            check_same(found, asked)
            return found.again()
        baseline, proposal = map(msgspec.json.decode, pair)
        if journal.error is not None:
            return _uncounted(baseline, journal.error)
        now = self._now()
        journal.close_windows(now)
        made, is_expired = journal.decide(baseline, proposal, predicted, now), journal.is_expired(now)
        entry = Drawn(made.round, now, *pair, predicted, made.share, made.source == "learner", is_expired, own)
        try:
            journal.write(entry)
        except JournalError as error:
            return _uncounted(baseline, error)
        journal.rounds.decided(entry, mode, asked)
        return GuardDecision(
            own or f"{self.shard}:{made.round}",
            made.action,
            made.source,
            made.probability,
            made.share,
            mode=mode,
            round=made.round,
            explanation=self._explained(is_expired),
            is_held=is_expired or mode != "guarded",
            is_fallback=is_expired,
        )

    def void(self, decision_id: str, action: Any = None) -> bool:
        """Say that something else was played than was decided, before its reward is known.

        The round stays as it is, coin, side and share: the banks compare what was assigned, whatever came of it
        (intention to treat). So it can be said after the round was handed in, too.

        Parameters
        ----------
        decision_id : str
            The decision's id.
        action : any JSON value, optional
            What was played; by default the baseline.

        Returns
        -------
        bool
            False where nothing is to be noted: it was played as decided, or this was said before.

        Raises
        ------
        DecisionError
            If there is no such decision, or it is from before the log began anew.
        DecisionSettledError
            If its reward has come, or its window has closed.
        DecisionConflictError
            If something else was said before.
        JournalError
            If the log cannot be written, as of `reward`.
        """
        told = None if action is None else write_action("action", action)
        with self._lock:
            round_, now = self._round_of(decision_id), self._now()
            if round_ is None:
                raise DecisionError(f"A decision must exist to be voided, but none has the id {decision_id!r:.80}.")
            decided = self._journal.decided(round_)
            if decided is None:
                raise DecisionError(
                    f"A decision must be in the log to be voided, but {decision_id!r} is from before it began anew. It "
                    "stays with the side that its coin chose, which is all that the bank compares; nothing is to be "
                    "done but to report its reward."
                )
            return self._void(decision_id, decided, None if told == decided.baseline else told, now)

    def _void(self, decision_id: str, decided: Drawn, played: bytes | None, now: float) -> bool:
        before = self._journal.rounds.played.get(decided.round)
        if before is not None:
            if before.action == played:
                return False
            raise DecisionConflictError(f"A decision is voided once, but {decision_id!r} was before, otherwise.")
        if (decided.baseline if played is None else played) == decided.played:
            return False
        if self._journal.rounds.settled_as(decided.round, now) is not None:
            raise DecisionSettledError(
                f"A decision must be without a reward to be voided, but {decision_id!r} is settled: its reward has "
                "come or its window has closed. What was played can no longer be noted; the round counts as it is."
            )
        self._journal.void(decided, PlayedEntry(decided.round, now, played))
        return True

    @property
    def _metrics(self) -> tuple[str, ...]:
        return tuple(self._journal.shard.policy.metrics)

    def _read_reward(self, value: Any) -> dict[str, float]:
        return read_metrics("reward", value, self._metrics)[1]

    def _is_within(self, reward: dict[str, float]) -> bool:
        return is_within(self._journal.shard.policy, reward)


def _uncounted(baseline: Any, error: SurefootError) -> GuardDecision:
    """The baseline, without a round: the coin of the next one has been shown to nobody."""
    told = UNWRITTEN.format(error)
    return GuardDecision("", baseline, "baseline", explanation=told, is_held=True, is_fallback=True)
