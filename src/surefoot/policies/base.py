"""What every policy promises: decide, observe, state; and the decision that goes from one to the other."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, Vector, finite
from surefoot.errors import DecisionError, InputError, StateError
from surefoot.safety.certificate import Certificate
from surefoot.values import Value

Source = Literal["learner", "baseline"]
STATE_FORMAT = 1


class Decision(Value, frozen=True):
    """One round's decision: what to play, whose idea it was, and why it is safe."""

    round: int
    source: Source
    features: Vector
    policy: str
    _row: int
    _certify: Callable[[], Certificate]

    @property
    def certificate(self) -> Certificate:
        """What was guaranteed, what was required, and the proof."""
        return self._certify()

    @property
    def action(self) -> int:
        """Row of the features to play; an action set without rows has none, read `features` there."""
        if self._row < 0:
            raise InputError(
                "`action` is a row index, but this decision was made over a set without rows. "
                "Read `decision.features`, the feature vector to play."
            )
        return self._row


class Policy(ABC):
    """The contract of every policy.

    `decide` counts the round in the ledger at once; `observe` may follow at any later time and in any order, and
    until then the round is pending: counted by the ledger, unknown to the confidence set. A call that raises has
    changed nothing. Same calls, same bits.
    """

    _registry: ClassVar[dict[str, type["Policy"]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Policy._registry[cls.__name__] = cls

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._id = secrets.token_hex(8)
        self._config = dict(settings)
        self._rounds = 0
        # Rows as bytes: very many may wait for their rewards, and are joined in no time when the state is written down.
        self._pending: dict[int, tuple[bytes, bool]] = {}

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
    def rounds(self) -> int:
        """Rounds decided so far."""
        return self._rounds

    @property
    def pending(self) -> tuple[int, ...]:
        """The rounds that were decided and not yet observed, oldest first."""
        return tuple(sorted(self._pending))

    def observe(self, decision: Decision | int, reward: float) -> None:
        """Learn the reward of a decision of this policy, given as the decision or, after a restart, its round."""
        round_ = self._claim(decision)
        value = finite("reward", reward, hint="Leave the decision pending until its reward is known.")
        # Taken out first: interrupted in between, a reward may be lost, but it is never counted twice.
        features, is_learner = entry = self._pending.pop(round_)
        try:
            self._learn(np.frombuffer(features).copy(), value, is_learner)
        except Exception:
            self._pending[round_] = entry
            raise

    def _claim(self, decision: Decision | int) -> int:
        if isinstance(decision, Decision):
            if decision.policy != self._id:
                raise DecisionError(
                    f"`decision` must be one of this policy's ({self._id}), but it was made by policy "
                    f"{decision.policy}. Give it to the policy that made it."
                )
            round_ = decision.round
        elif isinstance(decision, (int, np.integer)) and not isinstance(decision, bool):
            round_ = int(decision)
        else:
            raise DecisionError(f"`decision` must be a Decision or the number of its round, but got {decision!r}.")
        if round_ not in self._pending:
            known = 1 <= round_ <= self._rounds
            reason = "it was observed before" if known else f"only rounds 1 to {self._rounds} were decided"
            raise DecisionError(
                f"A decision must be pending to be observed, but round {round_} is not: {reason}. "
                "Nothing was learned from this call."
            )
        return round_

    def _decided(self, row: int, is_learner: bool, features: Vector, certify: Callable[[], Certificate]) -> Decision:
        self._rounds = round_ = self._rounds + 1
        self._pending[round_] = (features.tobytes(), is_learner)
        shown = features[:]
        shown.flags.writeable = False
        return Decision(round_, "learner" if is_learner else "baseline", shown, self._id, row, certify)

    def state(self) -> dict[str, Any]:
        """Everything this policy knows, as plain arrays, numbers and strings; `from_state` continues from it."""
        rounds = sorted(self._pending)
        entries = [self._pending[round_] for round_ in rounds]
        return {
            "format": STATE_FORMAT,
            "policy": type(self).__name__,
            "id": self._id,
            "settings": dict(self._config),
            "rounds": self._rounds,
            "pending_rounds": np.array(rounds, dtype=np.int64),
            "pending_is_learner": np.array([is_learner for _, is_learner in entries], dtype=np.bool_),
            "pending_features": _rows([features for features, _ in entries]),
            **self._arrays(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The policy that `state` describes; it goes on as if it had never stopped, to the bit."""
        if not isinstance(state, Mapping) or state.get("format") != STATE_FORMAT:
            found = state.get("format") if isinstance(state, Mapping) else state
            raise StateError(
                f"`format` must be {STATE_FORMAT}, but got {found!r}. "
                "This state is not surefoot's, or was written by a version that this one cannot read."
            )
        name = state.get("policy")
        kind = Policy._registry.get(str(name))
        if kind is None or not issubclass(kind, cls):
            raise StateError(f"This state is of a {name!r} policy and cannot become a {cls.__name__}.")
        try:
            policy = kind(**state["settings"])
            policy._id = str(state["id"])
            policy._rounds = int(state["rounds"])
            policy._pending = dict(_pending_entries(state, policy._feature_size()))
            policy._restore(state)
        except (KeyError, TypeError, IndexError, ValueError) as error:
            raise StateError(f"This state is incomplete or damaged: {error!r}. Restore it from a full copy.") from error
        return policy

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.state(),)

    def __repr__(self) -> str:
        inner = ", ".join(f"{key}={value!r}" for key, value in self._config.items())
        return f"{type(self).__name__}({inner})"


def _pending_entries(state: Mapping[str, Any], dim: int) -> Iterator[tuple[int, tuple[bytes, bool]]]:
    rounds, flags = state["pending_rounds"], state["pending_is_learner"]
    rows = np.array(state["pending_features"], dtype=np.float64)
    if not len(rounds) == len(flags) == len(rows) or (len(rows) and rows.shape != (len(rounds), dim)):
        raise StateError(f"Pending rounds, flags and features must belong together and have dim={dim}.")
    for round_, flag, row in zip(rounds, flags, rows, strict=True):
        yield int(round_), (row.tobytes(), bool(flag))


def _rows(pending: list[bytes]) -> Vector | Matrix:
    return np.frombuffer(b"".join(pending)).reshape(len(pending), -1).copy() if pending else np.zeros(0)


def refill(buffer: Matrix, saved: Any, name: str) -> None:
    """Copy a saved array into a buffer of exactly its shape."""
    if np.shape(saved) != buffer.shape:
        raise StateError(f"`{name}` must have shape {buffer.shape}, but got {np.shape(saved)}.")
    buffer[:] = saved


def _unpickle(state: Mapping[str, Any]) -> Policy:
    return Policy.from_state(state)
