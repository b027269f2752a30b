"""The chain of an edge, kept by the service where the shards meet: every round of its log, decided once more.

The same lease comes to the same action, a guard's to the same share and the same coin, to the bit. So a log that says
otherwise is refused, and what is handed in to the coordinator is what this chain proves. The audit reads it as that of
any other shard.
"""

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from surefoot import records
from surefoot.edge.edge_entries import (
    Decided,
    Drawn,
    HandedEntry,
    LeaseBegan,
    LeaseHandedIn,
    PlayedEntry,
    Rewarded,
    VoidedEntry,
)
from surefoot.errors import ConfigError, InputError, SurefootError
from surefoot.experiment.answer import Answer, Receipt
from surefoot.experiment.decide import decide
from surefoot.experiment.experiment import SNAPSHOT_EVERY
from surefoot.experiment.guard_decide import decide_guarded
from surefoot.experiment.guard_question import GuardQuestion, metric_names, read_guarded, read_metrics
from surefoot.experiment.guard_reward import receive_metrics
from surefoot.experiment.lease_forms import AnyHandedIn, AnyLeaseRecord
from surefoot.experiment.lease_hub import LeaseHub
from surefoot.experiment.modes import change_mode
from surefoot.experiment.question import Question, read
from surefoot.experiment.reward import Refuser, abandon, receive
from surefoot.experiment.shard_chain import accept_lease, begin_chain, end_lease, shard_state
from surefoot.experiment.shard_state import ShardState
from surefoot.experiment.state import decode
from surefoot.experiment.transacted_state import Call, TransactedState, caught_up
from surefoot.experiment.unit_of_work import UnitOfWork
from surefoot.experiment.void import void
from surefoot.journal import Event, Head, Journal
from surefoot.leases import LeasedGuard
from surefoot.records import ModeName
from surefoot.records_of_leases import edge_chain

REASON = "as the server that gave the lease"
# Events that follow from entries, and are none.
BETWEEN = (records.MODE, records.SNAPSHOT, records.CLOSED, records.SETTLED)


class LeaseTerms(NamedTuple):
    """What the signed head of a lease says that its rounds depend on; `coins` is a guard's secret."""

    lease: int
    mode: ModeName
    expires: float
    coins: bytes | None = None


class EdgeChain(TransactedState):
    """One edge's rounds, as the service has taken them in."""

    def __init__(self, journal: Journal, hub: LeaseHub, shard: str, token: str, *, since: float) -> None:
        chain = edge_chain(hub.name, shard)
        begin_chain(journal, chain, hub, shard, time=since, token=token)
        # Time is the edge's: every entry brings its own.
        super().__init__(journal, chain, caught_up(None, journal.view(chain)), lambda: 0.0, SNAPSHOT_EVERY)
        self.shard, self._hub = shard, hub
        self._alone = threading.Lock()
        state = shard_state(self._state)
        self._token, self._form = state.token, state.form

    def check_token(self, token: str) -> None:
        """Raise unless an edge comes with the log that it joined with."""
        if token != self._token:
            raise ConfigError(
                f"Edge {self.shard!r} must come with the log that it joined with, but this is another one. Join by a "
                "name that no shard has had; the lease of a log that is gone stays charged."
            )

    @property
    def head(self) -> Head:
        """Where the chain stands: the receipt of everything before."""
        return self._journal.head(self.name)

    def take_in(
        self, entries: Sequence[HandedEntry], terms: LeaseTerms, *, follows: int
    ) -> tuple[Head, AnyHandedIn | None]:
        """Take in entries that come after an event, once; where they end, and what is due once the lease has ended."""
        began = next((entry.lease for entry in entries if isinstance(entry, LeaseBegan)), None)
        if began is not None and began != terms.lease:
            raise InputError(
                f"The entries must be under lease {terms.lease}, which they came with, but lease {began} began."
            )
        granted = None if began is None else self._hub.granted(self.shard, began, self._form)
        keys = [
            f"{kind}:{self._id(entry.round)}"
            for entry in entries
            if isinstance(entry, Decided | Drawn | Rewarded | VoidedEntry | PlayedEntry)
            for kind in "drv"
        ]
        with self._alone:
            return self._run(Call(lambda turn: self._take(turn, entries, follows, granted, terms), keys=keys))

    def _take(
        self,
        turn: UnitOfWork,
        entries: Sequence[HandedEntry],
        follows: int,
        granted: tuple[AnyLeaseRecord, bytes] | None,
        terms: LeaseTerms,
    ) -> tuple[Head, AnyHandedIn | None]:
        state = shard_state(turn.state)
        known, head = self._known(turn, entries, follows)
        for entry in entries[known:]:
            if not entry.moment >= state.time:
                raise _refused(entry, f"its moment is before {state.time!r}, where the chain stands")
            turn.now = entry.moment
            while turn.close_windows():  # the edge closed them before this entry, too
                pass
            self._take_one(turn, entry, granted, terms)
            head = state.head
        return head, state.due

    def _take_one(
        self, turn: UnitOfWork, entry: HandedEntry, granted: tuple[AnyLeaseRecord, bytes] | None, terms: LeaseTerms
    ) -> None:
        state = shard_state(turn.state)
        if isinstance(entry, Decided):
            self._decide(turn, entry)
        elif isinstance(entry, Drawn):
            self._draw(turn, entry, terms)
        elif isinstance(entry, Rewarded):
            self._settle(turn, entry)
        elif isinstance(entry, VoidedEntry | PlayedEntry):
            moved = void(turn, self._id(entry.round), _played(entry), "by the edge", "")
            if moved is not True:
                raise _refused(entry, f"its round is not moved: {moved or 'nothing is to be'}")
        elif isinstance(entry, LeaseBegan):
            if granted is None:
                raise _refused(entry, "that lease is over")
            if entry.lease != (0 if state.lease is None else state.lease.number) + 1 or _is_leased(state):
                raise _refused(entry, "another lease is next")
            accept_lease(turn, *granted)
            # An experiment does not go back to shadow; what it means is the same.
            change_mode(turn, "paused" if terms.mode == "shadow" != state.mode else terms.mode, REASON, "")
        else:
            if state.lease is None or entry.lease != state.lease.number or not _is_leased(state):
                raise _refused(entry, "it is not the lease that the edge has")
            end_lease(turn, entry.is_untimed, terms.coins)

    def _decide(self, turn: UnitOfWork, entry: Decided) -> None:
        told = entry.baseline, entry.known, self._id(entry.round), entry.names, _context(entry)
        question = Question(entry.matrix(), *told)
        asked = read(question, is_fallback=entry.is_expired)
        answer = decide(turn, asked)
        if isinstance(answer, SurefootError):
            raise _refused(entry, str(answer))
        assert isinstance(answer, Answer)
        if answer.is_repeat or (answer.round, answer.action) != (entry.round, entry.action):
            raise _refused(entry, f"its lease decides on action {answer.action} in round {answer.round}")

    def _draw(self, turn: UnitOfWork, entry: Drawn, terms: LeaseTerms) -> None:
        state = shard_state(turn.state)
        if not isinstance(state.policy, LeasedGuard):
            raise _refused(entry, "only a guard draws a coin")
        # Whoever could say otherwise would choose by the coin which rounds have one.
        if _is_leased(state) and (terms.lease, entry.moment >= terms.expires) != (state.lease.number, entry.is_expired):
            raise _refused(entry, f"its lease expires at {terms.expires!r}")
        pair = _json("baseline", entry.baseline), _json("proposal", entry.proposal)
        question = GuardQuestion(*pair, self._id(entry.round), None, entry.prediction, _context(entry))
        asked = read_guarded(question, metric_names(state.created), is_fallback=entry.is_expired)
        state.policy.coins = terms.coins
        answer = decide_guarded(turn, asked)
        if isinstance(answer, SurefootError):
            raise _refused(entry, str(answer))
        told = answer.round, answer.share, answer.source == "learner"
        if answer.is_repeat or told != (entry.round, entry.share, entry.is_learner):
            raise _refused(entry, f"its lease draws for the {answer.source} at a share of {answer.share!r}")

    def _settle(self, turn: UnitOfWork, entry: Rewarded) -> None:
        if entry.value is None:
            done = abandon(turn, self._id(entry.round), "by the edge", "")
            if done is not True:
                raise _refused(entry, "its round is not open")
            return
        receipt = self._receive(turn, self._id(entry.round), entry.value)
        if not receipt.is_accepted or receipt.is_repeat:
            raise _refused(entry, f"its reward is refused: {receipt.refused or 'it is a repeat'}")

    def _receive(self, turn: UnitOfWork, decision_id: str, value: float | dict[str, float]) -> Receipt:
        if isinstance(turn.state.policy, LeasedGuard):
            values = read_metrics(decision_id, value, metric_names(turn.state.created))[1]
            return receive_metrics(turn, Refuser(), decision_id, values)
        if isinstance(value, dict):
            raise InputError(f"A reward must be a number, but got {value!r:.80}: only a guard has metrics.")
        return receive(turn, Refuser(), decision_id, value)

    def _id(self, round_: int) -> str:
        return f"{self.shard}:{round_}"

    def _known(self, turn: UnitOfWork, entries: Sequence[HandedEntry], follows: int) -> tuple[int, Head]:
        """How many of the entries the chain has already, since an answer was lost, and where these end."""
        if follows == turn.state.head.number:
            return 0, turn.state.head
        events = turn.transaction.read(max(0, follows - 1))
        first = next(events, None)
        if follows < 1 or first is None:
            raise InputError(f"`follows` must be the number of an event of the edge's chain, but got {follows}.")
        head = first.head
        events = (event for event in events if event.kind not in BETWEEN)
        known = 0
        for entry, event in zip(entries, events, strict=False):
            if not self._is_same(entry, event):
                raise ConfigError(
                    f"The entries of edge {self.shard!r} must follow what it handed in before, but differ from it: "
                    "its log is a copy, from before or of another machine's. Begin a new log, by a new name."
                )
            known, head = known + 1, event.head
        return known, head

    def _is_same(self, entry: HandedEntry, event: Event) -> bool:
        if event.time != entry.moment and not isinstance(entry, LeaseBegan):
            return False
        if isinstance(entry, Decided) and event.kind == records.DECISION:
            made = decode(event, records.DecisionRecord)
            told = made.round, made.action, made.is_fallback, made.asked.baseline, made.asked.baseline_reward
            same = entry.round, entry.action, entry.is_expired, entry.baseline, entry.known
            if made.asked.context != _context(entry):
                return False
            return told == same and np.array_equal(np.array(made.asked.features), entry.matrix())
        if isinstance(entry, Drawn) and event.kind == records.GUARDED:
            drawn = decode(event, records.Guarded)
            ask = drawn.asked
            given = _json("baseline", entry.baseline), _json("proposal", entry.proposal), entry.prediction
            coin = drawn.round, drawn.share, drawn.source == "learner", drawn.is_fallback
            if (ask.baseline, ask.proposal, ask.prediction) != given or ask.context != _context(entry):
                return False
            return coin == (entry.round, entry.share, entry.is_learner, entry.is_expired)
        if isinstance(entry, Rewarded) and event.kind == records.METRIC_REWARD:
            earned = decode(event, records.MetricReward)
            return (earned.decision_id, earned.values) == (self._id(entry.round), entry.value)
        if isinstance(entry, Rewarded) and event.kind == records.REWARD:
            paid = decode(event, records.RewardRecord)
            return (paid.decision_id, paid.value) == (self._id(entry.round), entry.value)
        if isinstance(entry, Rewarded) and event.kind == records.ABANDONED:
            return entry.value is None and event.key == f"r:{self._id(entry.round)}"
        if isinstance(entry, VoidedEntry | PlayedEntry) and event.kind == records.VOIDED:
            moved = decode(event, records.Voided)
            return (moved.decision_id, moved.action) == (self._id(entry.round), _played(entry))
        if isinstance(entry, LeaseBegan) and event.kind == self._form.leased:
            return decode(event, self._form.lease).number == entry.lease
        if isinstance(entry, LeaseHandedIn) and event.kind == records.LEASE_ENDED:
            ended = decode(event, records.LeaseEnded)
            return (ended.lease, ended.untimed) == (entry.lease, entry.is_untimed)
        return False


def _json(name: str, action: bytes) -> Any:
    """An action of a guard, which an altered log may not hold."""
    try:
        return msgspec.json.decode(action)
    except msgspec.MsgspecError as error:
        raise InputError(f"`{name}` must be an action in JSON, but: {error}.") from None


def _played(entry: VoidedEntry | PlayedEntry) -> Any:
    """What was played in place of what was decided; None for a guard's baseline."""
    if isinstance(entry, VoidedEntry):
        return entry.action
    return None if entry.action is None else _json("action", entry.action)


def _context(entry: Decided | Drawn) -> dict[str, str] | None:
    """The caller's own id is kept as a note: nothing keeps one from being used twice, and no log may stop at that."""
    return None if entry.decision_id is None else {"decision_id": entry.decision_id}


def _is_leased(state: ShardState) -> bool:
    return state.lease is not None and state.due is None


def _refused(entry: HandedEntry, problem: str) -> InputError:
    told = {name: getattr(entry, name) for name in ("round", "lease", "moment") if hasattr(entry, name)}
    return InputError(
        f"An edge's log must be what its leases decide, but {problem} ({type(entry).__name__}, "
        f"{msgspec.json.encode(told).decode()}). Nothing was taken in."
    )
