"""The contract of every policy, whatever it decides over: rounds, late rewards, the alarm, and its state.

A policy has five verbs: decide, recall, settle (`observe`, `abandon`), move (`void`) and freeze (`state`).
"""

import inspect
import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import LARGEST, Matrix, Vector, finite, finite_array
from surefoot.errors import AlarmError, DecisionError, InputError, StateError
from surefoot.policies.decision import ALARMED, FREE, HOLD, Decision, GuardDecision, Source, check_recalled, round_of
from surefoot.policies.settlement import OpenRound, Reward, Settlement, read_settlement
from surefoot.safety.alarm import Alarm, AlarmKind, Response
from surefoot.safety.certificate import Certificate, unproved
from surefoot.values import short

STATE_FORMAT = 1
SETTLING = ("settle_after", "default_reward")
Round: TypeAlias = Decision | GuardDecision | int


class Policy(ABC):
    """A policy: what to play in each round, and what is learned of its rewards.

    One of your own takes its settings to `super().__init__`, and has `decide`, `learn`, `arrays` and `restore`
    (docs/own-policy.md).

    `decide` counts the round in the ledger at once; `observe` may follow at any time and in any order. Rewards are
    learned in the order of the decisions: one that comes early waits until every earlier round is settled, by its
    reward, by `abandon` or, with `settle_after=n`, by `default_reward` n rounds later. Until then a round is pending:
    in the ledger, not in the confidence set. A call that raises has changed nothing. Same calls, same bits.
    """

    dim: int = 0  # entries of the features of a round; 0 where their number is not checked

    # By name, so that a saved state finds the class that wrote it.
    _registry: ClassVar[dict[str, type["Policy"]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Policy._registry[cls.__name__] = cls

    def __init__(self, settings: Mapping[str, Any], settlement: Settlement | None = None) -> None:
        window, default = settings.get("settle_after"), settings.get("default_reward")
        if settlement is None:
            settlement = read_settlement(window, default)
            if window is None:
                settings = {name: one for name, one in settings.items() if name not in SETTLING}
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
        return self.play(features, int(action), proposal=int(action), is_held=source == "baseline")

    def play(self, features: ArrayLike, row: int, *, proposal: int, is_held: bool = False) -> Decision:
        """End `decide` of a policy that keeps no floor, and so has nothing to prove: count the round.

        Parameters
        ----------
        features : array_like of shape (actions, dim)
            What was offered.
        row : int
            What is played of it.
        proposal : int
            What the learner would have played.
        is_held : bool
            Whether the baseline plays.

        Returns
        -------
        Decision
            The decision, with a certificate that claims nothing.
        """
        played = np.array(features, dtype=np.float64)[row]
        return self.conclude(row, not is_held, played, partial(unproved, played.size, proposal, is_held))

    def conclude(
        self, row: int, is_learner: bool, features: bytes | Vector, certify: Callable[..., Certificate]
    ) -> Decision:
        """End `decide` of a policy that keeps a floor: count the round.

        Parameters
        ----------
        row : int
            What is played.
        is_learner : bool
            Whether that is the learner's proposal.
        features : ndarray of shape (dim,) or bytes
            Those of what is played.
        certify : callable
            Returns the `surefoot.safety.Certificate` that proves it; called when somebody reads it.

        Returns
        -------
        Decision
            The decision.
        """
        record = features if isinstance(features, bytes) else np.asarray(features, dtype=np.float64).tobytes()
        return self._counted(row, is_learner, record, certify, True)

    def learn(self, features: Vector, reward: float, is_learner: bool) -> None:
        """Learn one reward; `observe` calls it in the order of the decisions, however late rewards come.

        Parameters
        ----------
        features : ndarray of shape (dim,)
            Those of what was played.
        reward : float
            What it brought.
        is_learner : bool
            Whether the learner played.

        Raises
        ------
        NotImplementedError
            If this policy learns from its own rounds alone, as a guard does.
        """
        raise NotImplementedError(f"{type(self).__name__} learns from its own rounds alone.")

    @abstractmethod
    def arrays(self) -> dict[str, Any]:
        """Everything that was learned, as copies of plain arrays and numbers; `state` adds the rest."""

    @abstractmethod
    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take back what `arrays` returned.

        Parameters
        ----------
        arrays : mapping
            With its entries, among others.
        """

    def _record_size(self) -> int:
        """How many numbers are kept of an open round; 0 if that is not checked."""
        return self.dim

    def _learn_round(self, entry: OpenRound, reward: Any) -> None:
        """Learn the reward of a round from what was kept of it."""
        record, is_learner, _ = entry
        self.learn(np.frombuffer(record).copy(), reward, is_learner)

    def _learn_row(self, features: Vector, reward: float) -> None:
        self.learn(features, reward, True)

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
        _, is_learner, teaches = entry
        if is_turn:
            try:
                self._learn_round(entry, value)
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

    def void(
        self,
        decision: Round,
        features: Any = None,
        *,
        baseline: int | None = None,
        baseline_reward: Any = None,
        action: int,
        source: Source,
        played: int,
    ) -> None:
        """Move a round without a reward to what was really played, so that ledger and later proofs are about that.

        Its reward, when it comes, is learned as that of the row that was played. Decisions made meanwhile stand. Valid
        only if nothing has influenced this call that the round's reward, or the reward of a round decided after it, can
        have influenced.

        Parameters
        ----------
        decision : Decision or int
            The decision or the number of its round.
        features, baseline, baseline_reward
            As they were given to `decide`.
        action : int
            The row that was decided.
        source : {"learner", "baseline"}
            Who decided it.
        played : int
            The row that was played instead.

        Raises
        ------
        DecisionError
            If the decision is another policy's, was never made, or is settled.
        InputError
            If the round cannot have been decided, or played, like this.
        """
        round_ = round_of(decision, self._id)
        self._settlement.check_open(round_, self._rounds, "voided")
        check_recalled(action, source, baseline)
        check_recalled(played, "learner", baseline)
        if self._settlement.find(round_)[1] != (source == "learner"):
            other = "baseline" if source == "learner" else "learner"
            raise InputError(f"Round {round_} was decided by the {other}, but `source` is {source!r}.")
        decided = int(action), source == "learner"
        record = self.rebook(round_, features, baseline, baseline_reward, decided, int(played))
        self._settlement.played(round_, record, played != baseline)

    def rebook(
        self,
        round_: int,
        features: Any,
        baseline: int | None,
        baseline_reward: Any,
        decided: tuple[int, bool],
        played: int,
    ) -> bytes:
        """Move an open round in the ledger to the row that was really played, for `void`.

        A policy without a ledger has nothing to move: a copy of it tells what it would have kept.

        Parameters
        ----------
        round_ : int
            The round.
        features, baseline, baseline_reward
            As they were given to `decide`.
        decided : tuple of int and bool
            The row that was decided, and whether the learner played it.
        played : int
            The row that was played instead.

        Returns
        -------
        bytes
            The features of that row, by which the reward is learned.
        """
        again = type(self).from_state(self.state())
        source: Source = "baseline" if played == baseline else "learner"
        again.recall(features, baseline=baseline, baseline_reward=baseline_reward, action=played, source=source)
        return again._settlement.find(again._rounds)[0]

    def _check_decided(self, round_: int, row: Vector) -> None:
        """Raise if an open round was not decided with these features: another one would be taken out of the ledger."""
        kept = self._settlement.find(round_)[0]
        if not kept.startswith(row.tobytes()):
            raise InputError(
                f"`features` and `action` must be those of round {round_}, but its features were others. "
                "Give what was given to `decide`."
            )

    def learn_logged(self, features: ArrayLike, reward: float) -> None:
        """Learn a row that somebody else played, such as a row of a log; it counts in no ledger.

        Parameters
        ----------
        features : array_like of shape (dim,)
            The row that was played.
        reward : float
            What it brought.

        Raises
        ------
        InputError
            If the row or the reward is not finite, or the row has another length.
        """
        row = finite_array("features", features, ndim=1)
        if row.size != (self.dim or row.size):
            raise InputError(f"`features` must have {self.dim} entries, but got {row.size}.")
        value = finite("reward", reward, hint="Leave out a row whose reward is not known.")
        self._learn_row(row.copy(), value)

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

    def _learn_due(self) -> None:
        """Learn waiting rewards in the order of the decisions, up to the first round that is not settled."""
        while (due := self._settlement.take()) is not None:
            round_, entry, value = due
            try:
                self._learn_round(entry, value)
            except Exception:
                self._settlement.put_back(*due)
                raise
            self._settlement.entered(round_, value)

    def _order(self, hold: bool) -> int:
        """The order that a call of `decide` gives to the compiled step."""
        if hold:
            return HOLD
        return ALARMED if self._alarm is not None and self.keeps_floor else FREE

    def _counted(
        self,
        row: int,
        is_learner: bool,
        features: bytes,
        certify: Callable[..., Certificate],
        teaches: bool,
        evidence: tuple[Any, ...] = (),
        record: bytes | None = None,
    ) -> Decision:
        """The same where it is known whether the reward is learned, and what is kept for it beside the features.

        The certificate is `certify(*evidence)`, when somebody asks for it.
        """
        self._rounds = round_ = self._rounds + 1
        settlement = self._settlement
        settlement.decided(round_, features if record is None else record, is_learner, teaches)
        if settlement.settle_after is not None:
            self._learn_due()
        return Decision(round_, "learner" if is_learner else "baseline", features, self._id, row, certify, evidence)

    def state(self) -> dict[str, Any]:
        """Everything this policy knows, as plain arrays, numbers and strings; `from_state` continues from it."""
        return {
            "format": STATE_FORMAT,
            "policy": type(self).__name__,
            "id": self._id,
            "settings": self.settings,
            "rounds": self._rounds,
            "restarts": self._restarts,
            "alarm": {} if self._alarm is None else self._alarm.plain(),
            **self._settlement.state(),
            **self.arrays(),
        }

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
        if not isinstance(state, Mapping) or state.get("format") != STATE_FORMAT:
            form = state.get("format") if isinstance(state, Mapping) else state
            raise StateError(
                f"`format` must be {STATE_FORMAT}, but got {form!r}. "
                "This state is not surefoot's, or was written by a version that this one cannot read."
            )
        kind = Policy._registry.get(str(state.get("policy")))
        if kind is None or not issubclass(kind, cls):
            raise StateError(f"This state is of a {state.get('policy')!r} policy and cannot become a {cls.__name__}.")
        try:
            policy = kind(**state["settings"])
            policy._id, policy._rounds = str(state["id"]), int(state["rounds"])
            policy._restarts = int(state["restarts"])
            policy._alarm = Alarm(**state["alarm"]) if state["alarm"] else None
            policy.restore(state)
            policy._settlement.restore(state, policy._record_size())
        except (KeyError, TypeError, IndexError, ValueError, OverflowError) as error:
            raise StateError(f"This state is incomplete or damaged: {error!r}. Restore it from a full copy.") from error
        return policy

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled through the state, so that there is one format, with one set of checks.
        return _unpickle, (self.state(),)

    def __repr__(self) -> str:
        # What was said, and how far it is: settings at their defaults would hide both.
        defaults = {name: one.default for name, one in inspect.signature(type(self)).parameters.items()}
        inner = [f"{key}={short(one)}" for key, one in self._config.items() if _plain(one) != _plain(defaults.get(key))]
        return f"{type(self).__name__}({', '.join([*inner, f'rounds={self.rounds}'])})"


def arguments(scope: Mapping[str, Any], *optional: str) -> dict[str, Any]:
    """The arguments of a constructor: its `locals()`, before it assigns anything; `optional` ones only where given."""
    absent = {"self", "__class__", *(name for name in optional if scope[name] is None)}
    return {name: value for name, value in scope.items() if name not in absent}


def _plain(value: Any) -> Any:
    """As a saved state has it: a list for a tuple."""
    return list(value) if isinstance(value, tuple) else value


def _unpickle(state: Mapping[str, Any]) -> Policy:
    return Policy.from_state(state)


def shaped(saved: Any, shape: tuple[int, ...], name: str) -> Matrix:
    """A saved array of exactly that shape, as the core takes it."""
    if np.shape(saved) != shape:
        raise StateError(f"`{name}` must have shape {shape}, but got {np.shape(saved)}.")
    return np.ascontiguousarray(saved, dtype=np.float64)
