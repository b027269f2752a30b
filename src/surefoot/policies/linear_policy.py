"""What all linear policies share: a state in the core, and the one way from features to a decision.

A subclass names its rule in the core (`core/registry.hpp`) and the proof that goes with its gate.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy import ndarray
from numpy.typing import ArrayLike

from surefoot.arrays import LARGEST, Matrix, Vector, count, finite_array, real_array
from surefoot.core import native
from surefoot.errors import AssumptionError, InputError
from surefoot.linear.actions import LENGTH_TOLERANCE, ActionSet, Catalogue, rows_in
from surefoot.linear.ellipsoid import Ball, Ellipsoid, newest_set, snapshot
from surefoot.linear.ridge import Ridge, sized
from surefoot.policies import linear_state
from surefoot.policies.coin import draw_coin
from surefoot.policies.linear_certificate import Promise, certify
from surefoot.policies.linear_settings import linear_settings, read_known_reward
from surefoot.policies.open_baseline import DrawnBaseline, most_telling, read_drawn
from surefoot.policies.orders import FREE, HOLD
from surefoot.policies.policy import Decision, Policy
from surefoot.safety.alarm import AlarmKind
from surefoot.safety.ledger import Ledger
from surefoot.safety.proof import Proof

OPTIONAL = ("alpha", "reward_floor", "radius", "misspecification", "reward_bounds", "exploration")
CONTRADICTION = "No theta is left that satisfies both the data and everything declared: one declaration is not true."


class LinearPolicy(Policy):
    """A policy over linear rewards <theta, phi>: parts in common, algorithms in the subclasses."""

    needs_baseline: ClassVar[bool] = True
    needs_baseline_reward: ClassVar[bool] = False
    _rule: ClassVar[str]  # its name in the core

    def __init__(
        self,
        *,
        dim: int,
        delta: float,
        noise: float,
        ridge: float,
        theta_bound: float,
        feature_bound: float,
        settle_after: int | None = None,
        default_reward: float | None = None,
        **extra: Any,
    ) -> None:
        given = {"dim": dim, "delta": delta, "noise": noise, "ridge": ridge}
        given |= {"theta_bound": theta_bound, "feature_bound": feature_bound, **extra}
        super().__init__(given, settle_after=settle_after, default_reward=default_reward)
        self.dim = count("dim", dim, hint="dim is the number of features of one action.")
        told = linear_settings(
            dim=self.dim,
            delta=delta,
            noise=noise,
            ridge=ridge,
            theta_bound=theta_bound,
            feature_bound=feature_bound,
            **{name: extra[name] for name in OPTIONAL if name in extra},
        )
        told.watchful = True
        self._core = sized(self._rule, self.dim)(self.dim, told)
        self._settings = self._core.settings
        self._promise = Promise(self._settings.alpha, self._settings.theta_bound)
        self._ledger = Ledger(dim=self.dim, core=self._core.ledger)
        self._memory = self._core.memory
        self._catalogue: Catalogue | None = None
        # What is known of this round's baseline reward, where a policy can do without.
        self._told: tuple[float, float] = (0.0, math.inf)
        self._declared_mean = 0.0  # of this round's baseline, where the policy needs it
        self._learns_all = False  # whether rewards are learned that do not enter the confidence set
        # Whether the core takes rows and baseline as they are given; one that is not needed counts only where it plays.
        self._is_direct = self.needs_baseline
        # Of the class, where each decision would look for them along all of its bases.
        self._is_told_mean, self._prover = self.needs_baseline_reward, self._prove

    @staticmethod
    @abstractmethod
    def _prove(promise: Any, evidence: Any, known: Ball | Ellipsoid, /) -> Proof:
        """The gate's condition as a split over facts."""

    @property
    def core(self) -> Any:
        """Its state and steps in the core, which simulations and replays drive directly."""
        return self._core

    @property
    def ledger(self) -> Ledger:
        """What has been played."""
        return self._ledger

    @property
    def ridge(self) -> Ridge:
        """What has been learned so far; a copy, since decisions rest on the policy's own."""
        return Ridge(dim=self.dim, ridge=self._settings.ridge, core=self._core.ridge.copy())

    @property
    def confidence_set(self) -> Ball | Ellipsoid:
        """Where theta lies, for all rounds at once with probability 1 - delta."""
        return newest_set(self._core)

    def decide(
        self,
        features: ArrayLike | ActionSet,
        *,
        baseline: int | ArrayLike | None = None,
        baseline_reward: Any = None,
        hold: bool = False,
    ) -> Decision:
        """Choose an action; `features` is an array with one row per action, or an action set.

        `baseline` is the row that is played today; where today's strategy draws, one chance per row; where it may play
        any of several rows, the set of them; in a set without rows, its feature vector. With `hold` the baseline is
        played whatever the gate says, and the certificate tells what it would have said.
        """
        order = self._order(hold) if hold or self._alarm is not None else FREE
        return self._decide(features, baseline, baseline_reward, order)

    def _recall(self, features: Any, baseline: Any, baseline_reward: Any, action: int | None) -> Decision:
        has_rows = not isinstance(features, ActionSet) or isinstance(features, Catalogue)
        if not has_rows and action is not None and action >= 0:
            raise InputError("A learner's decision can only be recalled over rows, but this set has none.")
        order = HOLD if action is None else action
        declared, length = self._settings.feature_bound, _longest(features)
        # A length that is not finite is refused by `_decide`, as always.
        if not declared * (1.0 + LENGTH_TOLERANCE) < length < np.inf:
            return self._decide(features, baseline, baseline_reward, order)
        # It was played, so it counts; what was declared of it is not true.
        self._settings.feature_bound = length
        try:
            decision = self._decide(features, baseline, baseline_reward, order)
        finally:
            self._settings.feature_bound = declared
        text = f"Round {decision.round} had a row of length {length:.6g}, beyond feature_bound={declared:.6g}."
        self.report_breach("features", text)
        return decision

    def _decide(self, features: Any, baseline: Any, baseline_reward: Any, order: int) -> Decision:
        # The usual case first, without a call.
        is_plain = self._is_told_mean and type(baseline_reward) is float and 0.0 <= baseline_reward <= LARGEST
        known = baseline_reward if is_plain else self._read_baseline_reward(baseline_reward)
        self._declared_mean, is_array = known, type(features) is ndarray
        if self._is_direct and type(baseline) is int and (is_array or features is self._catalogue):
            rows, (low, high) = features if is_array else features.rows, self._told
            found = self._core.decide_given(rows, not is_array, baseline, known, low, high, order)
            if found is not None:
                return self._concluded(found, rows, baseline, order)
        # What the core does not take as it stands is converted here, or refused. The cheap test first: ActionSet is
        # abstract, and isinstance is slow there.
        catalogue = features if not is_array and isinstance(features, Catalogue) else None
        if catalogue is None and not is_array and isinstance(features, ActionSet):
            return self._decide_over(features, baseline, known, order)
        rows = real_array("features", features, ndim=2) if catalogue is None else catalogue.rows
        self._check_shape(rows)
        self._check_order(rows, order)
        if self.needs_baseline or order == HOLD:
            if isinstance(baseline, (set, frozenset)):
                share, core = 1.0 - self._settings.alpha, self._core
                baseline = most_telling(baseline, rows, share, core.ridge, core.radius)
            if (drawn := read_drawn(baseline, rows.shape[0])) is not None:
                return self._decide_drawn(rows, drawn, known, order)
        row = self._read_baseline(baseline, rows.shape[0], order)
        if catalogue is not None:
            self._adopt(catalogue)
        return self._decide_rows(rows, catalogue is not None, row, known, order)

    def warm_start(self, features: ArrayLike, rewards: ArrayLike) -> None:
        """Learn from the baseline's own history before the first round: one logged row and reward each.

        They enter the confidence set by the same argument as later rounds (the paper's Remark 1), provided that what
        was logged was chosen without looking at the reward. The ledger, which counts from the first decision, does not
        change.
        """
        if self._rounds > 0 or self._core.ridge.count > 0:
            raise InputError(
                f"`warm_start` must come before the first decision, but {self._rounds} were made and "
                f"{self._core.ridge.count} observations learned. Start a new policy."
            )
        rows = finite_array("features", features, ndim=2)
        self._check_shape(rows)
        values = finite_array("rewards", rewards, ndim=1)
        if values.size != rows.shape[0] or np.abs(values).max() > LARGEST:
            raise InputError(
                f"`rewards` must hold one number within +-{LARGEST:g} for each of {rows.shape[0]} rows, "
                f"but got shape {values.shape}."
            )
        bad = native.first_bad_row(rows, self._settings.feature_bound)
        if bad is not None:
            raise self._bad_row(rows, bad)
        self._enter(rows, values)

    def _learn_row(self, features: Vector, reward: float) -> None:
        if native.first_bad_row(features[None], self._settings.feature_bound) is not None:
            raise self._bad_row(features[None], 0)
        self._enter(features[None], np.array([reward]))
        self._catalogue = None  # its scores are those of before

    def _enter(self, rows: Matrix, rewards: Vector) -> None:
        self._core.enter(rows, rewards)

    def _decide_rows(self, rows: Matrix, is_catalogue: bool, baseline: int, known: float, order: int) -> Decision:
        found = self._core.decide(rows, is_catalogue, baseline, known, *self._told, order)
        return self._concluded(found, rows, baseline, order)

    def _decide_drawn(self, rows: Matrix, today: DrawnBaseline, known: float, order: int) -> Decision:
        coin, offered, row = draw_coin(self._config.get("seed"), self._rounds + 1), today.offer(rows), rows.shape[0]
        found = self._core.decide(offered, False, row, known, *self._told, order)
        if found[0] >= 0 and not (found[1] and found[0] < row):  # the baseline plays
            row = today.draw(coin)
            found, offered = today.played(found, row, rows), rows
        decision = self._concluded(found, offered, row, order)
        self._settlement.drew(decision.round)
        return decision

    def _decide_over(self, actions: ActionSet, baseline: int | ArrayLike | None, known: float, order: int) -> Decision:
        if actions.dim != self.dim:
            raise InputError(
                f"The action set must have dim={self.dim}, but this {type(actions).__name__} has dim={actions.dim}."
            )
        displaced = self._read_baseline_vector(actions, baseline, order)
        actions.check_length(self._settings.feature_bound)
        best = actions.optimistic(snapshot(self._settings, self._core.ridge))
        chosen = np.ascontiguousarray(best.features, dtype=np.float64)
        found = self._core.conclude(chosen, displaced, best.upper, known, *self._told, order)
        return self._concluded(found, None, -1, order, best.method, best.gap)

    def _concluded(
        self, found: Any, rows: Matrix | None, baseline: int, order: int, method: str = "rows", gap: float = 0.0
    ) -> Decision:
        """The decision of a round that the core has booked; of a row that breaks a rule, the error."""
        proposal, is_learner, features, teaches, is_refuted, evidence = found
        if proposal < 0 and rows is not None:
            raise self._bad_row(rows, -1 - proposal)
        if is_refuted and self._alarm is None:
            self._raise_alarm()
        if self._alarm is not None and self.keeps_floor:  # anything follows from a contradiction: nothing is promised
            evidence.guaranteed = -np.inf
        # Evidence is kept as it stood; the certificate is written out when somebody asks for it.
        kept = (self._prover, self._promise, evidence, proposal, order, method, gap)
        row = proposal if is_learner else baseline
        return self._counted(row, is_learner, features, certify, teaches or self._learns_all, kept)

    def _raise_alarm(self) -> None:
        """Say what the step has found."""
        if self._memory.refuted != native.TOO_HIGH:
            self.report_breach("contradiction", CONTRADICTION)
            return
        text = (
            f"The baseline of round {self._rounds + 1} is declared to earn more on average than any theta of length "
            f"theta_bound={self._settings.theta_bound:.6g} allows for its features."
        )
        self.report_breach("baseline_reward", text)

    def report_breach(self, kind: AlarmKind, text: str) -> None:
        """Raise the alarm: something that was declared has been contradicted. The first one stands."""
        super().report_breach(kind, text)
        self._memory.refuted = max(1.0, self._memory.refuted)  # does not overwrite TOO_HIGH

    def _teaches(self, is_learner: bool) -> bool:
        return bool(self._core.teaches(is_learner))

    def _learn_record(self, record: bytes, reward: float, is_learner: bool) -> None:
        self._core.learn(record, reward, is_learner)

    def _learn(self, features: Vector, reward: float, is_learner: bool) -> None:
        self._core.learn(features.tobytes(), reward, is_learner)

    def _rebook(
        self,
        round_: int,
        features: Any,
        baseline: int | None,
        baseline_reward: Any,
        decided: tuple[int, bool],
        played: int,
    ) -> bytes:
        rows = rows_in(features)
        self._check_shape(rows)
        row, was_learner = decided
        self._check_order(rows, max(row, played))
        self._settlement.check_voidable(round_)
        self._check_decided(round_, rows[row])

        # A policy without a baseline books what it plays in its place.
        def displaced(action: int, is_learner: bool) -> Any:
            return rows[baseline if self.needs_baseline or not is_learner else action]

        is_learner, known, told = played != baseline, *self._read_told(baseline_reward)
        # Before a restart there was another ledger, whose rounds are charged at their worst.
        if round_ > self._rounds - self._ledger.learner_rounds - self._ledger.baseline_rounds:
            was, now = displaced(row, was_learner), displaced(played, is_learner)
            try:
                self._core.rebook(rows[row], was, was_learner, rows[played], now, is_learner, known, *told)
            except ValueError as error:
                raise InputError(f"`features` and `baseline` must be those of round {round_}, but {error}.") from None
        return bytes(rows[played].tobytes())

    def _read_told(self, baseline_reward: Any) -> tuple[float, tuple[float, float]]:
        """The baseline's mean where it is needed, and what is known of it where a policy can do without."""
        return self._read_baseline_reward(baseline_reward), (0.0, np.inf)

    def _adopt(self, catalogue: Catalogue) -> None:
        if self._catalogue is not None and self._catalogue.digest == catalogue.digest:
            return
        catalogue.check_length(self._settings.feature_bound)
        self._core.adopt(catalogue.rows)
        # Last: what raises above leaves the old catalogue and its scores together.
        self._catalogue = catalogue

    def _check_shape(self, rows: Matrix) -> None:
        if rows.shape[1] != self.dim or rows.shape[0] == 0:
            raise InputError(
                f"`features` must have at least one row and dim={self.dim} columns, but got shape {rows.shape}. "
                "Give one row per action."
            )

    def _check_order(self, rows: Matrix, order: int) -> None:
        if order >= rows.shape[0]:
            raise InputError(f"`0 <= action < {rows.shape[0]}` must hold for {rows.shape[0]} actions, but got {order}.")

    def _bad_row(self, rows: Matrix, row: int) -> InputError:
        bound = self._settings.feature_bound
        if not np.isfinite(rows[row]).all():
            return InputError(
                f"`features` must be finite, but row {row} is {rows[row]}. Drop that action or impute its features."
            )
        length = math.hypot(*rows[row].tolist())  # squares of large entries would overflow
        return AssumptionError(
            f"Every feature row must satisfy `||row|| <= feature_bound`, but row {row} has length {length:.6g}, "
            f"which is {length - bound:.3g} more than feature_bound={bound:.6g}. "
            "Rescale the features or declare a larger bound."
        )

    def _read_baseline(self, baseline: int | ArrayLike | None, rows: int, order: int) -> int:
        if not self.needs_baseline and order != HOLD:
            return -1
        if type(baseline) is not int:
            if isinstance(baseline, bool) or not isinstance(baseline, (int, np.integer)):
                raise InputError(
                    f"`baseline` must be a row index, but got {baseline!r}. It is the action you would play today."
                )
            baseline = int(baseline)
        if not 0 <= baseline < rows:
            raise InputError(
                f"`0 <= baseline < {rows}` must hold for {rows} actions, but got baseline={baseline}. "
                "It is the row of the action you would play today."
            )
        return baseline

    def _read_baseline_vector(self, actions: ActionSet, baseline: int | ArrayLike | None, order: int) -> Vector:
        if not self.needs_baseline and order != HOLD:
            return np.zeros(self.dim)
        if baseline is None:
            raise InputError("`baseline` must be given: the feature vector of the action you would play today.")
        vector = finite_array("baseline", baseline, ndim=1)
        if vector.size != self.dim or not actions.contains(vector):
            raise InputError(
                f"`baseline` must be a point of the action set with dim={self.dim}, but got {vector}. "
                "It is the feature vector of the action you would play today."
            )
        return vector

    def _read_baseline_reward(self, reward: float | None) -> float:
        if not self.needs_baseline_reward:
            return 0.0
        if reward is None:
            raise InputError(
                f"`baseline_reward` must be given to {type(self).__name__}: the mean reward of the baseline's action. "
                "Where it is unknown use CLUCB2."
            )
        return read_known_reward(reward)

    def _feature_size(self) -> int:
        return self.dim

    def _arrays(self) -> dict[str, Any]:
        return linear_state.arrays_of(self._core, self._catalogue)

    def _restore(self, arrays: Mapping[str, Any]) -> None:
        self._catalogue = linear_state.restore(self._core, arrays, self.dim)


def _longest(features: Any) -> float:
    rows = features.rows if isinstance(features, Catalogue) else features
    if not isinstance(rows, ndarray) or rows.ndim != 2 or rows.size == 0:
        return 0.0
    return float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max()))
