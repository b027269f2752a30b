"""What every policy promises: decide, observe, state; and the decision that goes from one to the other."""

import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Vector, finite
from surefoot.errors import AlarmError, DecisionError, InputError, StateError
from surefoot.policies.decision import Decision as Decision
from surefoot.policies.decision import Source as Source
from surefoot.policies.decision import round_of
from surefoot.policies.linear_step import ALARMED, FREE, HOLD
from surefoot.policies.saved_state import read_kind, restored, saved
from surefoot.policies.saved_state import refill as refill
from surefoot.policies.settlement import Settlement, read_settlement
from surefoot.safety.alarm import Alarm, AlarmKind, Response
from surefoot.safety.certificate import Certificate


class Policy(ABC):
    """The contract of every policy.

    `decide` counts the round in the ledger at once; `observe` may follow at any later time and in any order. Rewards
    are learned in the order of the decisions: one that comes early waits until every earlier round is settled, by its
    reward, by `abandon`, or, with `settle_after=n`, by `default_reward` once n more rounds were decided. Until then the
    round is pending: counted by the ledger, unknown to the confidence set. A call that raises has changed nothing.
    Same calls, same bits.
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
        """Choose an action for this round; `features` has one row per action, `baseline` is today's row.

        With `hold` the baseline is played whatever the gate says; the certificate tells what it would have said.
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
        """Take up a round that was decided before, as it was decided: for whoever restores a policy from a journal.

        Counts the round as played whatever the gate says today, so that a newer version never rewrites the past.
        """
        if source not in ("learner", "baseline"):
            raise InputError(f"`source` must be 'learner' or 'baseline', but got {source!r}.")
        if isinstance(action, bool) or not isinstance(action, (int, np.integer)) or action < 0:
            raise InputError(f"`action` must be a row index, but got {action!r}.")
        if source == "baseline" and action != baseline:
            raise InputError(f"A round of the baseline must have played its row {baseline}, but got {action=}.")
        return self._recall(features, baseline, baseline_reward, int(action) if source == "learner" else None)

    @abstractmethod
    def _recall(self, features: Any, baseline: Any, baseline_reward: Any, action: int | None) -> Decision:
        """Count a round in which the learner played that row, or where it is None the baseline its own."""

    @abstractmethod
    def _learn(self, features: Vector, reward: float, is_learner: bool) -> None:
        """Take in the reward of one decided round."""

    @classmethod
    def _completed(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Settings that an earlier version wrote, with what it did where they do not say it."""
        return dict(settings)

    @abstractmethod
    def _feature_size(self) -> int:
        """Length of the features of one decision."""

    @abstractmethod
    def _arrays(self) -> dict[str, Any]:
        """Everything a subclass remembers, as plain arrays and numbers that are copies."""

    @abstractmethod
    def _restore(self, arrays: Mapping[str, Any]) -> None:
        """Take back what `_arrays` gave."""

    @property
    def id(self) -> str:
        """Who made a decision: kept through `state` and pickle, new for every new policy."""
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
        """The rounds that were decided and whose reward is not settled yet, oldest first; `waiting` among them."""
        return tuple(self._settlement.open_rounds)

    @property
    def waiting(self) -> tuple[int, ...]:
        """The pending rounds whose reward has come and waits for an earlier round to be settled, oldest first."""
        return tuple(self._settlement.waiting)

    @property
    def settlement(self) -> Settlement:
        """The same in numbers, for whoever asks often: how many rounds are open, and how many rewards wait."""
        return self._settlement

    @property
    def held_up_by(self) -> int | None:
        """The round for which every reward of `waiting` waits: observe or abandon it. None where none waits."""
        return self._settlement.held_up_by

    @property
    def alarm(self) -> Alarm | None:
        """What has contradicted a declaration; while it is on, a policy that keeps a floor plays the baseline."""
        return self._alarm

    @property
    def is_refuted(self) -> bool:
        """Whether the alarm is on: data and declarations contradict each other."""
        return self._alarm is not None

    @property
    def responses(self) -> tuple[Response, ...]:
        """How the alarm that is on may be answered; nothing where there is none."""
        return () if self._alarm is None else ("stay",)

    @property
    def restarts(self) -> int:
        """How often an alarm was answered by learning anew, or by a new promise."""
        return self._restarts

    def observe(self, decision: Decision | int, reward: float) -> None:
        """Take the reward of a decision of this policy, given as the decision or, after a restart, its round.

        It may come at any time and in any order, and is learned in the order of the decisions: at once where every
        earlier round is settled, otherwise when that is so (`pending`, `waiting`).
        """
        round_ = self._claim(decision, "observed")
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
        """Raise the alarm where a reward that has come, and is to be observed later, contradicts what was declared."""
        is_learner, teaches = self._settlement.find(round_)[1:]
        if reward < self._lowest_reward and is_learner and teaches:
            self._report_low(reward)

    def _report_low(self, reward: float) -> None:
        lowest = f"lowest_reward={self._lowest_reward:.6g}"
        self.report_breach("reward", f"A reward of {reward:.6g} came in, below the declared {lowest}.")

    def abandon(self, decision: Decision | int) -> None:
        """Say that the reward of a decision will never be learned, so that no other waits for it.

        The round still counts in the ledger. Valid only if nothing has led to this word that the reward can have
        influenced: not the reward itself, and no row or reward that came after it. Where bad news is what gets lost,
        take `settle_after` with a `default_reward` instead.
        """
        round_ = self._claim(decision, "abandoned")
        self._settlement.abandoned(round_)
        self._learn_due()

    def report_breach(self, kind: AlarmKind, text: str) -> None:
        """Raise the alarm: something that was declared has been contradicted. The first one stands.

        But for rows that are too long: what was played then has no worst, and no answer may forget that.
        """
        if self._alarm is None:
            self._alarm = Alarm(kind, self._rounds, text)
        elif kind == "features" and self._alarm.kind != kind:
            self._alarm = Alarm(kind, self._alarm.round, f"{self._alarm.text} {text}")

    def acknowledge(self, response: Response) -> None:
        """Answer the alarm: "stay" on the baseline, "relearn" under the same promise, or "renew" the promise.

        See `surefoot.safety.alarm` for what each of them means, and which policies can do more than stay.
        """
        if self._alarm is None:
            raise AlarmError(f"There must be an alarm to acknowledge, but none is on after {self._rounds} rounds.")
        if response not in self.responses:
            raise AlarmError(
                f"This alarm of a {type(self).__name__} can be answered by {' or '.join(self.responses)}, but got "
                f"{response!r}. Only SafeLUCB keeps a share of delta for restarts, and what was spent must have a "
                "worst that can be charged: not so after rows that are too long, nor with 'realised_path'."
            )
        if response == "stay":
            return
        self._restart(keep_promise=response == "relearn")
        # Whatever was decided before the restart was played in another world, for all that is known.
        self._settlement.stop_teaching()
        self._alarm = None
        self._restarts += 1

    def _restart(self, *, keep_promise: bool) -> None:
        """Forget what was learned; with `keep_promise` the rounds spent so far are charged at their worst."""
        raise NotImplementedError(f"{type(self).__name__} has no answer but to stay.")

    def _teaches(self, is_learner: bool) -> bool:
        """Whether the reward of the round that was just decided will be learned from."""
        return True

    def _learn_due(self) -> None:
        """Learn what has come, in the order of the decisions, up to the first round that is not settled."""
        while (due := self._settlement.take()) is not None:
            _, (features, is_learner, _), value = due
            try:
                self._learn(np.frombuffer(features).copy(), value, is_learner)
            except Exception:
                self._settlement.put_back(*due)
                raise

    def _order(self, hold: bool) -> int:
        """What a call of `decide` orders."""
        if hold:
            return HOLD
        return ALARMED if self._alarm is not None and self.keeps_floor else FREE

    def _claim(self, decision: Decision | int, done: str) -> int:
        round_ = round_of(decision, self._id)
        if not self._settlement.awaits(round_):
            reason = "it was settled before"
            if round_ in self._settlement.rewards:
                reason = f"its reward has come, and waits for round {self.held_up_by}"
            elif not 1 <= round_ <= self._rounds:
                reason = f"only rounds 1 to {self._rounds} were decided"
            raise DecisionError(
                f"A decision must be pending without a reward to be {done}, but round {round_} is not: {reason}. "
                "Nothing was learned from this call."
            )
        return round_

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
        """The policy that `state` describes; it continues to the bit as if it had never stopped."""
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
