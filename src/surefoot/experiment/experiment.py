"""An experiment: the one object that an app or a service drives.

>>> import surefoot
>>> policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, noise=0.5, theta_bound=1.0, feature_bound=1.0)
>>> journal = surefoot.open_journal("memory:")
>>> shop = Experiment.create(journal, "shop", policy, mode="guarded")
>>> answer = shop.decide([[0.6, 0.1], [0.9, 0.3]], baseline=0, decision_id="visit-1")
>>> answer.action, answer.source
(0, 'baseline')
>>> shop.reward("visit-1", 1.0).is_accepted
True
>>> Experiment.open(journal, "shop").status().rounds
1
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, Generic, Self, TypeVar

from numpy.typing import ArrayLike

from surefoot import records
from surefoot.errors import DecisionError, JournalReadOnlyError, SurefootError
from surefoot.experiment.acknowledge import acknowledge
from surefoot.experiment.answer import Answer, Receipt, or_raise
from surefoot.experiment.creation import read_settings
from surefoot.experiment.decide import decide
from surefoot.experiment.modes import change_mode
from surefoot.experiment.question import Question, Read, read, read_id, read_or_error, read_text
from surefoot.experiment.reward import Refuser, abandon, read_reward, receive
from surefoot.experiment.snapshots import rebuild
from surefoot.experiment.state import State, decode
from surefoot.experiment.status import Status, status_of
from surefoot.experiment.unit_of_work import MOST_CLOSED, Turn
from surefoot.journal import Journal, Transaction, View
from surefoot.linear.actions import Catalogue
from surefoot.policies import Policy
from surefoot.records import Created, ModeName, Response, encode
from surefoot.values import Value

T = TypeVar("T")
SNAPSHOT_EVERY = 2000


class Call(Value, Generic[T], frozen=True):
    """What is to be done in a turn, and the keys that it will look up; `closes` windows that are due before it."""

    act: Callable[[Turn], T]
    keys: Sequence[str] = ()
    closes: bool = True


class Experiment:
    """A policy whose every round is in a journal before anybody hears of it.

    May be used by any number of threads, and on PostgreSQL by any number of processes, at once. `clock` tells the time
    in seconds since 1970.
    """

    def __init__(self, journal: Journal, name: str, state: State, clock: Callable[[], float], every: int) -> None:
        self.name = name
        self._journal, self._clock, self._every = journal, clock, every
        # Touched inside transactions only, which run alone; None where it cannot be trusted any more.
        self._state: State | None = state
        self._created, self._refuser = state.created, Refuser()
        self._reading = threading.Lock()

    @classmethod
    def create(
        cls,
        journal: Journal,
        name: str,
        policy: Policy,
        *,
        mode: ModeName = "shadow",
        reward_window: float | None = None,
        default_reward: float | None = None,
        reward_bounds: Sequence[float] | None = None,
        history: tuple[ArrayLike, ArrayLike] | None = None,
        description: str = "",
        clock: Callable[[], float] = time.time,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> Self:
        """Begin an experiment with a new policy.

        Rewards are learned in the order of the decisions: with `reward_window` (seconds) when their window closes, and
        `default_reward` (0) where none came; without one as soon as every earlier round is settled. One outside of
        `reward_bounds` raises the alarm. `history` holds rows and rewards of the baseline from before.
        """
        created = read_settings(
            policy,
            mode=mode,
            reward_window=reward_window,
            default_reward=default_reward,
            reward_bounds=reward_bounds,
            history=history,
            description=description,
        )
        journal.create(name, encode(created), time=clock())
        return cls.open(journal, name, clock=clock, snapshot_every=snapshot_every)

    @classmethod
    def open(
        cls,
        journal: Journal,
        name: str,
        *,
        clock: Callable[[], float] = time.time,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> Self:
        """Take up an experiment where it stands: from its newest snapshot and the events since, to the bit."""
        return cls(journal, name, _caught_up(None, journal.view(name)), clock, snapshot_every)

    @property
    def settings(self) -> Created:
        """What the experiment was created with."""
        return self._created

    def decide(
        self,
        features: ArrayLike | Catalogue | None = None,
        *,
        baseline: int | str | None = None,
        baseline_reward: float | Sequence[float] | None = None,
        decision_id: str | None = None,
        actions: Sequence[str] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Decide one round; it is durable before it is returned.

        `features` has one row per action, or is a Catalogue; `actions` names the rows. Asking again with the same
        `decision_id` gives the same answer; with the same id and another question, `DecisionConflictError`.
        """
        question = read(Question(features, baseline, baseline_reward, decision_id, actions, context))
        return or_raise(self._run(Call(lambda turn: decide(turn, question), keys=[question.key])))

    def decide_all(self, questions: Sequence[Question]) -> list[Answer | SurefootError]:
        """Decide many rounds, in order, with one flush; a question that is refused has its error for an answer."""
        return self._run(self._deciding([read_or_error(question) for question in questions]))

    def book(
        self,
        features: ArrayLike | Catalogue | None = None,
        *,
        baseline: int | str | None = None,
        baseline_reward: float | Sequence[float] | None = None,
        decision_id: str,
        actions: Sequence[str] | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Answer:
        """Book a round in which the caller played the baseline on its own, while the experiment could not be reached.

        It counts and teaches as any round of the baseline; its window opens now. Booking twice is booking once.
        """
        question = Question(features, baseline, baseline_reward, decision_id, actions, context)
        ready = read(question, is_fallback=True)
        return or_raise(self._run(Call(lambda turn: decide(turn, ready), keys=[ready.key])))

    def reward(self, decision_id: str, value: float) -> Receipt:
        """Hand in the reward of a decision; the receipt tells whether it was accepted, and why not."""
        return self.reward_all([(decision_id, value)])[0]

    def reward_all(self, rewards: Sequence[tuple[str, float]]) -> list[Receipt]:
        """Hand in many rewards with one flush, each accepted or refused on its own."""
        return self._run(self._rewarding([read_reward(*reward) for reward in rewards]))

    def submit_decisions(
        self, ready: Sequence[Read | SurefootError], executor: Executor
    ) -> Future[list[Answer | SurefootError]]:
        """`decide_all` of questions that have been read, as a future (`Journal.submit`): for `AsyncExperiment`."""
        return self._submit(self._deciding(ready), executor)

    def submit_rewards(self, ready: Sequence[tuple[str, float]], executor: Executor) -> Future[list[Receipt]]:
        """`reward_all` of rewards that have been read, as a future."""
        return self._submit(self._rewarding(ready), executor)

    def abandon(self, decision_id: str, *, reason: str = "") -> bool:
        """Say that the reward of a decision will never be learned; false where that was said before.

        Valid only if nothing has led to this word that the reward can have influenced (`Policy.abandon`).
        """
        known, why = read_id(decision_id), read_text("reason", reason)
        keys = [f"d:{known}", f"r:{known}"]
        return or_raise(self._run(Call(lambda turn: abandon(turn, known, why), keys=keys)))

    def acknowledge(self, response: Response, *, reason: str, by: str = "", alarm_round: int | None = None) -> None:
        """Answer the alarm: "stay" on the baseline, "relearn", or "renew" the promise (`surefoot.safety.alarm`).

        `alarm_round` names the alarm that is meant (`Status.alarm_round`): another one is not answered by mistake, and
        answering the same one twice in the same words is answering it once.
        """
        why, who = read_text("reason", reason), read_text("by", by)
        error = self._run(Call(lambda turn: acknowledge(turn, response, why, who, alarm_round)))
        if error is not None:
            raise error

    def close_windows(self) -> int:
        """Learn what is due by the clock, and return how many windows closed; every other call closes some as well."""
        total, closed = 0, MOST_CLOSED
        while closed == MOST_CLOSED:
            total += (closed := self._run(Call(lambda turn: turn.close_windows(), closes=False)))
        return total

    def set_mode(self, mode: ModeName, *, reason: str = "") -> ModeName:
        """Go over to another mode (`surefoot.experiment.modes`); returns the one before."""
        why = read_text("reason", reason)
        return or_raise(self._run(Call(lambda turn: change_mode(turn, mode, why))))

    def find(self, decision_id: str) -> Answer:
        """A decision that was made before."""
        found = self._journal.find(self.name, f"d:{read_id(decision_id)}")
        if found is None:
            raise DecisionError(f"Experiment {self.name!r} has no decision {decision_id!r:.80}.")
        return Answer(decode(found, records.Decision), found.time, is_repeat=True)

    def status(self) -> Status:
        """Where the experiment stands, other processes' events included."""
        return self._look(lambda state: status_of(self.name, state))

    def policy_state(self) -> dict[str, Any]:
        """Everything the policy knows, as `Policy.state` gives it."""
        return self._look(lambda state: state.policy.state())

    def snapshot(self) -> None:
        """Keep a snapshot now, so that the next one to open need not replay what came since the last."""
        self._run(Call(lambda turn: turn.snapshot()))

    def _deciding(self, ready: Sequence[Read | SurefootError]) -> "Call[list[Answer | SurefootError]]":
        def act(turn: Turn) -> list[Answer | SurefootError]:
            return [decide(turn, entry) if isinstance(entry, Read) else entry for entry in ready]

        return Call(act, keys=[entry.key for entry in ready if isinstance(entry, Read)])

    def _rewarding(self, ready: Sequence[tuple[str, float]]) -> "Call[list[Receipt]]":
        # With a window what is known of a decision is at hand, except where a reward comes too late.
        needed = () if self._created.reward_window is not None else ready
        keys = [f"{kind}:{decision_id}" for decision_id, _ in needed for kind in "dr"]
        return Call(lambda turn: [receive(turn, self._refuser, *entry) for entry in ready], keys=keys)

    def _run(self, call: "Call[T]") -> T:
        return self._journal.transact(self.name, partial(self._answer, call), keys=call.keys)

    def _submit(self, call: "Call[T]", executor: Executor) -> Future[T]:
        return self._journal.submit(self.name, partial(self._answer, call), keys=call.keys, executor=executor)

    def _answer(self, call: "Call[T]", transaction: Transaction) -> T:
        try:
            turn = Turn(transaction, self._synced(transaction), self._clock())
            if call.closes:
                turn.close_windows()
            result = call.act(turn)
            if self._every and turn.is_snapshot_due(self._every):
                turn.snapshot()
            return result
        except BaseException:
            # How far the state got is not known: the next turn makes a new one from what is durable.
            self._state = None
            raise

    def _look(self, at: Callable[[State], T]) -> T:
        try:
            return self._journal.transact(self.name, lambda transaction: at(self._synced(transaction)))
        except JournalReadOnlyError:
            with self._reading:
                return at(self._synced(self._journal.view(self.name)))

    def _synced(self, view: View) -> State:
        state, self._state = self._state, None
        self._state = _caught_up(state, view)
        return self._state


def _caught_up(state: State | None, view: View) -> State:
    """The state at the view's head: as it is, after the events that it lacks, or from the start."""
    if state is not None and state.head == view.head:
        return state
    if state is None or not view.follows(state.head):
        state = rebuild(view)
    for event in view.read(state.head.number):
        state.apply(event, view)
    return state
