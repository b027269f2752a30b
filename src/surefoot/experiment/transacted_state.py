"""An experiment's state behind the journal's transactions: every call runs alone, on the true head, and is durable.

The state in memory carries the head that it stands for. Where that is not the journal's head it catches up, or is
rebuilt after a failure, as the contract of `surefoot.journal.contract` says.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from surefoot.errors import InputError, JournalReadOnlyError, SurefootError
from surefoot.experiment.answer import Answer, Receipt
from surefoot.experiment.confirm import charge_overdue
from surefoot.experiment.decide import decide
from surefoot.experiment.experiment_toml import configuration_in
from surefoot.experiment.guard_answer import GuardAnswer
from surefoot.experiment.guard_decide import decide_guarded
from surefoot.experiment.guard_question import GuardQuestion, ReadGuarded, metric_names, read_guarded, read_metrics
from surefoot.experiment.guard_reward import receive_metrics
from surefoot.experiment.question import Question, Read, read
from surefoot.experiment.reward import Refuser, read_reward, receive
from surefoot.experiment.sealing import is_sealed
from surefoot.experiment.snapshots import rebuild
from surefoot.experiment.state import State
from surefoot.experiment.unit_of_work import UnitOfWork
from surefoot.journal import Journal, Transaction, View
from surefoot.journal.private_text import by_alias
from surefoot.policies import Guard
from surefoot.values import Value

T = TypeVar("T")
AnyQuestion: TypeAlias = Question | GuardQuestion
AnyRead: TypeAlias = Read | ReadGuarded
AnyAnswer: TypeAlias = Answer | GuardAnswer


class Call(Value, Generic[T], frozen=True):
    """Work for one transaction, and the keys that it will look up; `closes` windows that are due first."""

    act: Callable[[UnitOfWork], T]
    keys: Sequence[str] = ()
    closes: bool = True


class TransactedState:
    """The state of one experiment, and the ways to work on it inside a transaction."""

    def __init__(self, journal: Journal, name: str, state: State, clock: Callable[[], float], every: int) -> None:
        self.name = name
        self._journal, self._clock, self._every = journal, clock, every
        # Used inside transactions only, which run alone; None once it cannot be trusted.
        self._state: State | None = state
        self._created, self._refuser = state.created, Refuser()
        # A journal that is read only has no transactions in which a call would be alone.
        self._reading = threading.Lock()
        self._is_guard, self._is_sealed = isinstance(state.policy, Guard), is_sealed(state.created)
        self._metrics = metric_names(state.created) if self._is_guard else ()
        told = state.created.configuration
        #: How contexts become rows, where the experiment was made by a configuration.
        self.configuration = None if told is None else configuration_in(told)

    def read_question(self, question: AnyQuestion, *, is_fallback: bool = False) -> AnyRead:
        """Check the form of a question, before anything is locked; the policy checks its content."""
        if self._is_guard:
            return read_guarded(question, self._metrics, is_fallback=is_fallback, sealed=self._is_sealed)
        if isinstance(question, GuardQuestion):
            raise InputError(f"Only a guard takes a `proposal`, but the policy is {self._created.policy}.")
        if self.configuration is not None and isinstance(question, Question) and question.features is None:
            question = self.configuration.asked(question)
        return read(question, is_fallback=is_fallback, sealed=self._is_sealed)

    def read_question_or_error(self, question: AnyQuestion) -> AnyRead | SurefootError:
        """The same, or the error instead of raising it."""
        try:
            return self.read_question(question)
        except SurefootError as error:
            return error

    def read_reward(self, decision_id: str, value: Any) -> tuple[str, Any]:
        """A decision's id and its reward: a number, or of a guard one for each metric."""
        return read_metrics(decision_id, value, self._metrics) if self._is_guard else read_reward(decision_id, value)

    def submit_decisions(
        self, ready: Sequence[AnyRead | SurefootError], executor: Executor
    ) -> Future[list[AnyAnswer | SurefootError]]:
        """`decide_all` of questions that have been read, as a future (`Journal.submit`): for `AsyncExperiment`."""
        return self._submit(self._deciding(ready), executor)

    def submit_rewards(self, ready: Sequence[tuple[str, Any]], executor: Executor) -> Future[list[Receipt]]:
        """`reward_all` of rewards that have been read, as a future."""
        return self._submit(self._rewarding(ready), executor)

    def _deciding(self, ready: Sequence[AnyRead | SurefootError]) -> "Call[list[AnyAnswer | SurefootError]]":
        keys = [entry.key for entry in ready if not isinstance(entry, SurefootError)]
        if self._is_sealed and self._created.confirm_within is not None:
            keys += [by_alias(one) for entry in ready if isinstance(entry, Read) for one in entry.confirms]
        return Call(lambda turn: [_decide(turn, entry) for entry in ready], keys=keys)

    def _rewarding(self, ready: Sequence[tuple[str, Any]]) -> "Call[list[Receipt]]":
        keys = self._reward_keys([decision_id for decision_id, _ in ready])
        take: Any = receive_metrics if self._is_guard else receive
        return Call(lambda turn: [take(turn, self._refuser, *entry) for entry in ready], keys=keys)

    def _reward_keys(self, decision_ids: list[str]) -> list[str]:
        """What rewards of these decisions are going to look up."""
        if self._is_sealed:
            return [by_alias(decision_id) for decision_id in decision_ids]
        # With a window, open decisions are in memory; only rewards that come too late need a lookup.
        needed = () if self._created.reward_window is not None and not self._is_guard else decision_ids
        return [f"{kind}:{decision_id}" for decision_id in needed for kind in "dr"]

    def _run(self, call: "Call[T]") -> T:
        return self._journal.transact(self.name, partial(self._answer, call), keys=call.keys)

    def _submit(self, call: "Call[T]", executor: Executor) -> Future[T]:
        return self._journal.submit(self.name, partial(self._answer, call), keys=call.keys, executor=executor)

    def _answer(self, call: "Call[T]", transaction: Transaction) -> T:
        try:
            turn = UnitOfWork(transaction, self._synced(transaction), self._clock())
            # First, so that a late reward finds its window closed.
            if call.closes:
                turn.close_windows()
            charge_overdue(turn)
            result = call.act(turn)
            if self._every and turn.is_snapshot_due(self._every):
                turn.snapshot()
            return result
        except BaseException:
            # How far the state got is unknown: the next transaction rebuilds it from what is durable.
            self._state = None
            raise

    def _look(self, at: Callable[[State], T]) -> T:
        try:
            return self._journal.transact(self.name, lambda transaction: at(self._synced(transaction)))
        except JournalReadOnlyError:
            with self._reading:
                return at(self._synced(self._journal.view(self.name)))

    def _synced(self, view: View) -> State:
        # None meanwhile: a state that fails on the way must not be used again.
        state, self._state = self._state, None
        self._state = caught_up(state, view)
        return self._state


def _decide(turn: UnitOfWork, entry: AnyRead | SurefootError) -> AnyAnswer | SurefootError:
    if isinstance(entry, SurefootError):
        return entry
    return decide(turn, entry) if isinstance(entry, Read) else decide_guarded(turn, entry)


def caught_up(state: State | None, view: View) -> State:
    """The state at the view's head: as it is, after the events that it lacks, or rebuilt."""
    if state is not None and state.head == view.head:
        return state
    if state is None or not view.follows(state.head):
        state = rebuild(view)
    for event in view.read(state.head.number):
        state.apply(event, view)
    return state
