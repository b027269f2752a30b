"""What every policy has in common, whatever it decides over: rounds, late rewards, the alarm, and its state."""

import inspect
import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeAlias

from surefoot.arrays import LARGEST, finite
from surefoot.errors import AlarmError, DecisionError, StateError
from surefoot.policies.decision import Decision, round_of
from surefoot.policies.guard_decision import GuardDecision
from surefoot.policies.saved_state import read_kind, restored, saved
from surefoot.policies.settlement import Reward, Settlement
from surefoot.safety.alarm import Alarm, AlarmKind, Response

Round: TypeAlias = Decision | GuardDecision | int


class BasePolicy(ABC):
    """The contract of every policy.

    `decide` counts the round in the ledger at once; `observe` may follow at any time and in any order. Rewards are
    learned in the order of the decisions: one that comes early waits until every earlier round is settled, by its
    reward, by `abandon` or, with `settle_after=n`, by `default_reward` n rounds later. Until then a round is pending:
    in the ledger, not in the confidence set. A call that raises has changed nothing. Same calls, same bits.
    """

    # By name, so that a saved state finds the class that wrote it.
    _registry: ClassVar[dict[str, type["BasePolicy"]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        BasePolicy._registry[cls.__name__] = cls

    def __init__(self, settings: Mapping[str, Any], settlement: Settlement) -> None:
        self._id = secrets.token_hex(8)
        self._config = dict(settings)
        self._rounds = 0
        self._settlement = settlement
        self._alarm: Alarm | None = None
        self._restarts = 0
        self._lowest_reward = -math.inf  # that a learner's round may bring
        self._checks_rewards = False  # whether one may contradict what was declared
        self._bounds: tuple[float, float] | None = None  # of a single reward, where they were declared

    @abstractmethod
    def _learn_record(self, record: bytes, reward: Any, is_learner: bool) -> None:
        """Learn the reward of a round from what was kept of it."""

    @classmethod
    def _completed(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Settings that an earlier version wrote, completed by what that version did without them."""
        return dict(settings)

    @abstractmethod
    def _feature_size(self) -> int:
        """Length of the features of one decision."""

    @abstractmethod
    def _arrays(self) -> dict[str, Any]:
        """Everything a subclass remembers, as copies of plain arrays and numbers."""

    @abstractmethod
    def _restore(self, arrays: Mapping[str, Any]) -> None:
        """Restore what `_arrays` returned."""

    @property
    def id(self) -> str:
        """Names the policy in its decisions: kept by `state` and pickle, different for every new policy."""
        return self._id

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return dict(self._config)

    @property
    def keeps_floor(self) -> bool:
        """Whether this policy promises a floor; LUCB and UCB do not."""
        return self._config.get("alpha") is not None

    @property
    def rounds(self) -> int:
        """Rounds decided so far."""
        return self._rounds

    @property
    def pending(self) -> tuple[int, ...]:
        """Rounds that were decided and are not settled yet, oldest first; includes `waiting`."""
        return tuple(self._settlement.open_rounds)

    @property
    def waiting(self) -> tuple[int, ...]:
        """Pending rounds whose reward has come and waits for an earlier round to be settled, oldest first."""
        return tuple(self._settlement.waiting)

    @property
    def settlement(self) -> Settlement:
        """The open rounds and their counts, for callers that ask often."""
        return self._settlement

    @property
    def held_up_by(self) -> int | None:
        """The round that every reward of `waiting` waits for: observe or abandon it. None if no reward waits."""
        return self._settlement.held_up_by

    @property
    def alarm(self) -> Alarm | None:
        """What contradicted a declaration; while it is on, a policy that keeps a floor plays only the baseline."""
        return self._alarm

    @property
    def is_refuted(self) -> bool:
        """Whether the alarm is on: data and declarations contradict each other."""
        return self._alarm is not None

    @property
    def responses(self) -> tuple[Response, ...]:
        """How the alarm may be answered; empty if none is on."""
        return () if self._alarm is None else ("stay",)

    @property
    def restarts(self) -> int:
        """How often an alarm was answered by relearning or by a new promise."""
        return self._restarts

    def observe(self, decision: Round, reward: Any) -> None:
        """Take the reward of a decision, at any time and in any order.

        It is learned at once if every earlier round is settled, and otherwise as soon as that is so (`pending`,
        `waiting`).

        Parameters
        ----------
        decision : Decision or int
            The decision or, after a restart, the number of its round.
        reward : float
            The reward received; a guard with several metrics takes a mapping of their names to numbers.

        Raises
        ------
        DecisionError
            If the decision is another policy's, was never made, or is settled.
        InputError
            If the reward is not a finite number.
        """
        # The usual cases first, without a call: this runs on every reward.
        is_own = type(decision) is Decision and decision.policy == self._id
        round_ = decision.round if is_own else round_of(decision, self._id)  # type: ignore[union-attr]
        # A guard, which reads rewards in its own way, decides by another kind of decision.
        is_plain = is_own and type(reward) is float and -LARGEST <= reward <= LARGEST
        settlement, value = self._settlement, reward if is_plain else self._read_reward(reward)
        entry, is_turn = settlement.rewarded(round_, value, self._rounds)
        features, is_learner, teaches = entry
        if is_turn:
            try:
                self._learn_record(features, value, is_learner)
            except Exception:
                # A call that raises has changed nothing: the round is open again, and first in line.
                settlement.put_back(round_, entry)
                raise
            if settlement.rewards:
                self._learn_due()
        if is_learner and teaches and self._checks_rewards:
            self._check_declared(value)

    def _read_reward(self, reward: Any) -> Reward:
        """A reward as it is learned, or an InputError."""
        return finite("reward", reward, hint="Leave the decision pending until its reward is known.")

    def examine(self, round_: int, reward: Reward) -> None:
        """Raise the alarm if a reward that will be observed later contradicts what was declared.

        Parameters
        ----------
        round_ : int
            A pending round.
        reward : float
            The reward that came in.
        """
        is_learner, teaches = self._settlement.find(round_)[1:]
        if is_learner and teaches:
            self._check_declared(reward)

    def _check_declared(self, reward: Reward) -> None:
        """Raise the alarm if the reward of a learner's round contradicts what was declared."""
        if isinstance(reward, float) and reward < self._lowest_reward:
            lowest = f"lowest_reward={self._lowest_reward:.6g}"
            self.report_breach("reward", f"A reward of {reward:.6g} came in, below the declared {lowest}.")
        if isinstance(reward, float) and self._bounds and not self._bounds[0] <= reward <= self._bounds[1]:
            text = f"A reward of {reward:.6g} came in, beyond the declared reward_bounds={self._bounds!r}."
            self.report_breach("reward", text)

    def abandon(self, decision: Round) -> None:
        """Settle a decision without its reward, so that no other reward waits for it.

        The round still counts in the ledger. Valid only if nothing has influenced this call that the round's reward, or
        the reward of a round decided after it, can have influenced. Where it is bad news that gets lost, use
        `settle_after` with a `default_reward` instead.

        Parameters
        ----------
        decision : Decision or int
            The decision or the number of its round.

        Raises
        ------
        DecisionError
            If the decision is another policy's, was never made, or is settled.
        """
        round_ = round_of(decision, self._id)
        self._settlement.check_open(round_, self._rounds, "abandoned")
        self._settlement.abandoned(round_)
        # It may be the one that others were waiting for.
        self._learn_due()

    def exclude(self, decision: Round) -> None:
        """Let the round that was decided last teach nothing; it counts, and its reward may come.

        For a round that was played before it could be decided: the order in which such rounds are reported may follow
        their rewards, and data in that order prove nothing.

        Parameters
        ----------
        decision : Decision or int
            The decision or the number of its round.

        Raises
        ------
        DecisionError
            If another round was decided last.
        """
        round_ = round_of(decision, self._id)
        self._settlement.check_open(round_, self._rounds, "excluded")
        if round_ != self._rounds:
            raise DecisionError(
                f"Only the round that was decided last can be excluded, which is {self._rounds}, but got {round_}: "
                "whether a round teaches is fixed when it is decided."
            )
        self._settlement.exclude(round_)

    def report_breach(self, kind: AlarmKind, text: str) -> None:
        """Raise the alarm: something that was declared has been contradicted.

        The first alarm stands. Only rows that are too long replace its kind, because no worst case can be charged for
        them.

        Parameters
        ----------
        kind : {"contradiction", "reward", "baseline_reward", "features", "drift", "void"}
            What was contradicted.
        text : str
            What happened, for people.
        """
        if self._alarm is None:
            self._alarm = Alarm(kind, self._rounds, text)
        elif kind == "features" and self._alarm.kind != kind:
            self._alarm = Alarm(kind, self._alarm.round, f"{self._alarm.text} {text}")

    def recall_alarm(self, alarm: Alarm) -> None:
        """Have an alarm on that was raised before, to restore a policy from a journal.

        Parameters
        ----------
        alarm : Alarm
            The alarm as it was.
        """
        self.report_breach(alarm.kind, alarm.text)
        self._alarm = alarm

    def acknowledge(self, response: Response) -> None:
        """Answer the alarm. `surefoot.safety.alarm` says what each response means.

        Parameters
        ----------
        response : {"stay", "relearn", "renew"}
            Stay on the baseline, learn again under the same promise, or start a new promise; one of `responses`.

        Raises
        ------
        AlarmError
            If no alarm is on, or this policy cannot give that response.
        """
        if self._alarm is None:
            raise AlarmError(f"There must be an alarm to acknowledge, but none is on after {self._rounds} rounds.")
        if response not in self.responses:
            raise AlarmError(
                f"This alarm of a {type(self).__name__} can be answered by {' or '.join(self.responses)}, but got "
                f"{response!r}. Only SafeLUCB keeps a share of delta for restarts, and relearning must charge a worst "
                "case: there is none after rows that are too long, nor with 'realised_path'."
            )
        if response == "stay":
            return
        self._restart(keep_promise=response == "relearn")
        # Rounds decided before the restart may have been played in another world.
        self._settlement.stop_teaching()
        self._alarm = None
        self._restarts += 1

    def _restart(self, *, keep_promise: bool) -> None:
        """Forget what was learned; with `keep_promise` the rounds so far are charged at their worst case."""
        raise NotImplementedError(f"{type(self).__name__} cannot restart.")

    def _teaches(self, is_learner: bool) -> bool:
        """Whether the reward of the round just decided will be learned."""
        return True

    def _learn_due(self) -> None:
        """Learn waiting rewards in the order of the decisions, up to the first round that is not settled."""
        while (due := self._settlement.take()) is not None:
            _, (features, is_learner, _), value = due
            try:
                self._learn_record(features, value, is_learner)
            except Exception:
                self._settlement.put_back(*due)
                raise

    def state(self) -> dict[str, Any]:
        """Everything this policy knows, as plain arrays, numbers and strings; `from_state` continues from it."""
        return saved(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The policy that a saved state describes; it continues to the bit as if it had never stopped.

        Parameters
        ----------
        state : mapping
            What `state` returned.

        Returns
        -------
        Policy
            Of the class that was saved, which must be this class or a subclass.

        Raises
        ------
        StateError
            If the state is of another class or version, or damaged.
        """
        name = read_kind(state)
        kind = BasePolicy._registry.get(name)
        if kind is None or not issubclass(kind, cls):
            raise StateError(f"This state is of a {name!r} policy and cannot become a {cls.__name__}.")
        return restored(kind, state)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled through the state, so that there is one format, with one set of checks.
        return _unpickle, (self.state(),)

    def __repr__(self) -> str:
        # What was said, and how far it is: settings at their defaults would hide both.
        defaults = {name: one.default for name, one in inspect.signature(type(self)).parameters.items()}
        inner = [f"{key}={one!r}" for key, one in self._config.items() if _plain(one) != _plain(defaults.get(key))]
        return f"{type(self).__name__}({', '.join([*inner, f'rounds={self.rounds}'])})"


def _plain(value: Any) -> Any:
    """As a saved state has it: a list for a tuple."""
    return list(value) if isinstance(value, tuple) else value


def _unpickle(state: Mapping[str, Any]) -> BasePolicy:
    return BasePolicy.from_state(state)
