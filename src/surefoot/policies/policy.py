"""The contract of every policy: decide, observe, state."""

import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Vector, finite
from surefoot.errors import AlarmError, StateError
from surefoot.policies.decision import Decision as Decision
from surefoot.policies.decision import Source as Source
from surefoot.policies.decision import check_recalled, round_of
from surefoot.policies.linear_step import ALARMED, FREE, HOLD
from surefoot.policies.saved_state import read_kind, restored, saved
from surefoot.policies.saved_state import refill as refill
from surefoot.policies.settlement import Settlement, read_settlement
from surefoot.safety.alarm import Alarm, AlarmKind, Response
from surefoot.safety.certificate import Certificate


class Policy(ABC):
    """The contract of every policy.

    `decide` counts the round in the ledger at once; `observe` may follow at any time and in any order. Rewards are
    learned in the order of the decisions: one that comes early waits until every earlier round is settled, by its
    reward, by `abandon` or, with `settle_after=n`, by `default_reward` n rounds later. Until then a round is pending:
    in the ledger, not in the confidence set. A call that raises has changed nothing. Same calls, same bits.
    """

    _registry: ClassVar[dict[str, type["Policy"]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Policy._registry[cls.__name__] = cls

    def __init__(
        self, settings: Mapping[str, Any], *, settle_after: int | None = None, default_reward: float | None = None
    ) -> None:
        self._id = secrets.token_hex(8)
        self._config = dict(settings)
        if settle_after is not None:
            self._config |= {"settle_after": settle_after, "default_reward": default_reward}
        self._rounds = 0
        self._settlement = read_settlement(settle_after, default_reward)
        self._alarm: Alarm | None = None
        self._restarts = 0
        self._lowest_reward = -math.inf  # that a learner's round may bring

    @abstractmethod
    def decide(
        self,
        features: ArrayLike,
        *,
        baseline: int | None = None,
        baseline_reward: Any = None,
        hold: bool = False,
    ) -> Decision:
        """Choose an action for this round.

        Parameters
        ----------
        features : array_like of shape (actions, dim)
            One row per action.
        baseline : int, optional
            Row of the action you would play today. Policies that keep a floor need it.
        baseline_reward : float or (low, high), optional
            Mean reward of the baseline in this round, where the policy takes it.
        hold : bool
            Play the baseline whatever the gate says; the certificate tells what it would have allowed.

        Returns
        -------
        Decision
            The action to play, with its certificate.

        Raises
        ------
        InputError
            If features or baseline break a rule; AssumptionError if they contradict what was declared.
        """

    def recall(
        self,
        features: ArrayLike,
        *,
        baseline: int | None = None,
        baseline_reward: Any = None,
        action: int,
        source: Source,
    ) -> Decision:
        """Count a round again as it was decided before, to restore a policy from a journal.

        The round counts as played whatever the gate says today, so a newer version never rewrites the past.

        Parameters
        ----------
        features, baseline, baseline_reward
            As in `decide`.
        action : int
            The row that was played.
        source : {"learner", "baseline"}
            Who played it.

        Returns
        -------
        Decision
            The decision, with the number of its round.

        Raises
        ------
        InputError
            If `source` or `action` is invalid, or a baseline round played another row than the baseline's.
        """
        check_recalled(action, source, baseline)
        return self._recall(features, baseline, baseline_reward, int(action) if source == "learner" else None)

    @abstractmethod
    def _recall(self, features: Any, baseline: Any, baseline_reward: Any, action: int | None) -> Decision:
        """Count a round in which the learner played that row or, if it is None, the baseline its own."""

    @abstractmethod
    def _learn(self, features: Vector, reward: float, is_learner: bool) -> None:
        """Learn the reward of one decided round."""

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

    def observe(self, decision: Decision | int, reward: float) -> None:
        """Take the reward of a decision, at any time and in any order.

        It is learned at once if every earlier round is settled, and otherwise as soon as that is so (`pending`,
        `waiting`).

        Parameters
        ----------
        decision : Decision or int
            The decision or, after a restart, the number of its round.
        reward : float
            The reward received.

        Raises
        ------
        DecisionError
            If the decision is another policy's, was never made, or is settled.
        InputError
            If the reward is not a finite number.
        """
        round_ = round_of(decision, self._id)
        self._settlement.check_open(round_, self._rounds, "observed")
        value = finite("reward", reward, hint="Leave the decision pending until its reward is known.")
        settlement = self._settlement
        entry, is_turn = settlement.rewarded(round_, value)
        features, is_learner, teaches = entry
        if is_turn:
            try:
                self._learn(np.frombuffer(features).copy(), value, is_learner)
            except Exception:
                settlement.put_back(round_, entry)
                raise
            if settlement.rewards:
                self._learn_due()
        if value < self._lowest_reward and is_learner and teaches:
            self._report_low(value)

    def examine(self, round_: int, reward: float) -> None:
        """Raise the alarm if a reward that will be observed later contradicts what was declared.

        Parameters
        ----------
        round_ : int
            A pending round.
        reward : float
            The reward that came in.
        """
        is_learner, teaches = self._settlement.find(round_)[1:]
        if reward < self._lowest_reward and is_learner and teaches:
            self._report_low(reward)

    def _report_low(self, reward: float) -> None:
        lowest = f"lowest_reward={self._lowest_reward:.6g}"
        self.report_breach("reward", f"A reward of {reward:.6g} came in, below the declared {lowest}.")

    def abandon(self, decision: Decision | int) -> None:
        """Settle a decision without its reward, so that no other reward waits for it.

        The round still counts in the ledger. Valid only if neither the reward nor anything that came after it has
        influenced this call. Where it is bad news that gets lost, use `settle_after` with a `default_reward` instead.

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
        self._learn_due()

    def report_breach(self, kind: AlarmKind, text: str) -> None:
        """Raise the alarm: something that was declared has been contradicted.

        The first alarm stands. Only rows that are too long replace its kind, because no worst case can be charged for
        them.

        Parameters
        ----------
        kind : {"contradiction", "reward", "baseline_reward", "features"}
            What was contradicted.
        text : str
            What happened, for people.
        """
        if self._alarm is None:
            self._alarm = Alarm(kind, self._rounds, text)
        elif kind == "features" and self._alarm.kind != kind:
            self._alarm = Alarm(kind, self._alarm.round, f"{self._alarm.text} {text}")

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
                self._learn(np.frombuffer(features).copy(), value, is_learner)
            except Exception:
                self._settlement.put_back(*due)
                raise

    def _order(self, hold: bool) -> int:
        """The order that a call of `decide` gives to the compiled step."""
        if hold:
            return HOLD
        return ALARMED if self._alarm is not None and self.keeps_floor else FREE

    def _decided(self, row: int, is_learner: bool, features: Vector, certify: Callable[[], Certificate]) -> Decision:
        self._rounds = round_ = self._rounds + 1
        self._settlement.decided(round_, features.tobytes(), is_learner, self._teaches(is_learner))
        if self._settlement.settle_after is not None:
            self._learn_due()
        shown = features[:]
        shown.flags.writeable = False
        return Decision(round_, "learner" if is_learner else "baseline", shown, self._id, row, certify)

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
        kind = Policy._registry.get(name)
        if kind is None or not issubclass(kind, cls):
            raise StateError(f"This state is of a {name!r} policy and cannot become a {cls.__name__}.")
        return restored(kind, state)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.state(),)

    def __repr__(self) -> str:
        inner = ", ".join(f"{key}={value!r}" for key, value in self._config.items())
        return f"{type(self).__name__}({inner})"


def _unpickle(state: Mapping[str, Any]) -> Policy:
    return Policy.from_state(state)
