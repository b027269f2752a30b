"""What all linear policies share: a ridge state, a ledger, a memory, and the one way from features to a decision.

A subclass is a compiled `step` (propose, ask the gate, book) and the proof that goes with its gate.
"""

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import LARGEST, Matrix, Vector, count, finite_array, real_array
from surefoot.compiled import Compiled
from surefoot.errors import AssumptionError, InputError
from surefoot.linear.actions import ActionSet, Catalogue
from surefoot.linear.catalogue import learn_catalogue, restored_scores
from surefoot.linear.ellipsoid import Ball, Ellipsoid, snapshot
from surefoot.linear.radius import DUAL, FEATURE_BOUND, RADIUS_KIND, RIDGE, WATCHFUL, radius_of
from surefoot.linear.ridge import Ridge, absorb
from surefoot.linear.ridge_layout import COUNT, check_state
from surefoot.linear.ridge_layout import HEAD as FROZEN_FROM  # center and whitener stand side by side from here
from surefoot.linear.scores import LENGTH_TOLERANCE, first_bad_row, new_scores, score_rows
from surefoot.policies.linear_certificate import certify
from surefoot.policies.linear_settings import read_known_reward, setting_array
from surefoot.policies.linear_step import FREE, HOLD, TOO_HIGH
from surefoot.policies.policy import Decision, Policy, refill
from surefoot.safety.alarm import AlarmKind
from surefoot.safety.ledger import Ledger
from surefoot.safety.paper_gates import BETA, GUARANTEED, OPTIMISM, RECORD_HEAD, new_record
from surefoot.safety.proof import Proof
from surefoot.safety.safe_state import REFUTED, new_memory, restored_memory, set_at

CONTRADICTION = "No theta is left that satisfies both the data and everything declared: one declaration is not true."


class LinearPolicy(Policy):
    """A policy over linear rewards <theta, phi>: parts in common, algorithms in the subclasses."""

    needs_baseline: ClassVar[bool] = True
    needs_baseline_reward: ClassVar[bool] = False
    learns_baseline_rounds: ClassVar[bool] = True
    _step: ClassVar[Compiled[..., tuple[int, bool]]]
    _conclude: ClassVar[Compiled[..., bool]]

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
        self._settings = setting_array(
            dim=self.dim,
            alpha=extra.get("alpha"),
            delta=delta,
            noise=noise,
            ridge=ridge,
            theta_bound=theta_bound,
            feature_bound=feature_bound,
            reward_floor=extra.get("reward_floor", 0.0),
            radius=extra.get("radius", "paper"),
            misspecification=extra.get("misspecification", 0.0),
        )
        # A policy that plays, not a replay: see `_conclude` in linear_step.
        self._settings[WATCHFUL] = 1.0
        self._theta_bound = float(theta_bound)
        self._ridge = Ridge(dim=self.dim, ridge=float(ridge))
        self._ledger = Ledger(dim=self.dim)
        self._memory = new_memory(self.dim)
        self._state, self._book = self._ridge.buffer, self._ledger.buffer
        self._run_step = type(self)._step.dispatcher
        self._run_absorb = absorb.dispatcher
        self._catalogue: Catalogue | None = None
        self._catalogue_scores = self._scratch = new_scores(0)
        self._frozen: Vector | None = None

    @staticmethod
    @abstractmethod
    def _prove(settings: Vector, record: Vector, known: Ball | Ellipsoid, dim: int, /) -> Proof:
        """The gate's condition as a split over facts."""

    @property
    def ledger(self) -> Ledger:
        """What has been played."""
        return self._ledger

    @property
    def ridge(self) -> Ridge:
        """What has been learned."""
        return self._ridge

    @property
    def confidence_set(self) -> Ball | Ellipsoid:
        """Where theta lies, for all rounds at once with probability 1 - delta."""
        return snapshot(self._settings, self._state)

    def decide(
        self,
        features: ArrayLike | ActionSet,
        *,
        baseline: int | ArrayLike | None = None,
        baseline_reward: Any = None,
        hold: bool = False,
    ) -> Decision:
        """Choose an action; `features` is an array with one row per action, or an action set.

        `baseline` is the row that is played today; in a set without rows, its feature vector. With `hold` the baseline
        is played whatever the gate says, and the certificate tells what it would have said.
        """
        order = self._order(hold) if hold or self._alarm is not None else FREE
        return self._decide(features, baseline, baseline_reward, order)

    def _recall(self, features: Any, baseline: Any, baseline_reward: Any, action: int | None) -> Decision:
        if (
            action is not None
            and action >= 0
            and isinstance(features, ActionSet)
            and not isinstance(features, Catalogue)
        ):
            raise InputError("A learner's decision can only be recalled over rows, but this set has none.")
        order = HOLD if action is None else action
        declared, length = float(self._settings[FEATURE_BOUND]), _longest(features)
        # A length that is not finite is refused by `_decide`, as always.
        if not declared * (1.0 + LENGTH_TOLERANCE) < length < np.inf:
            return self._decide(features, baseline, baseline_reward, order)
        # It was played, so it counts; what was declared of it is not true.
        self._settings[FEATURE_BOUND] = length
        try:
            decision = self._decide(features, baseline, baseline_reward, order)
        finally:
            self._settings[FEATURE_BOUND] = declared
        text = f"Round {decision.round} had a row of length {length:.6g}, beyond feature_bound={declared:.6g}."
        self.report_breach("features", text)
        return decision

    def _decide(self, features: Any, baseline: Any, baseline_reward: Any, order: int) -> Decision:
        known = self._read_baseline_reward(baseline_reward)
        # The cheap test first: ActionSet is abstract, and isinstance is slow there.
        if type(features) is not np.ndarray and isinstance(features, ActionSet):
            if isinstance(features, Catalogue):
                return self._decide_catalogue(features, baseline, known, order)
            return self._decide_over(features, baseline, known, order)
        rows = real_array("features", features, ndim=2)
        self._check_shape(rows)
        row = self._read_baseline(baseline, rows.shape[0], order)
        return self._decide_rows(rows, False, self._scratch_for(rows.shape[0]), row, known, order)

    def warm_start(self, features: ArrayLike, rewards: ArrayLike) -> None:
        """Learn from the baseline's own history before the first round: one logged row and reward each.

        They enter the confidence set by the same argument as later rounds (the paper's Remark 1), provided that what
        was logged was chosen without looking at the reward. The ledger, which counts from the first decision, does not
        change.
        """
        if self._rounds > 0 or self._ridge.count > 0:
            raise InputError(
                f"`warm_start` must come before the first decision, but {self._rounds} were made and "
                f"{self._ridge.count} observations learned. Start a new policy."
            )
        rows = finite_array("features", features, ndim=2)
        self._check_shape(rows)
        values = finite_array("rewards", rewards, ndim=1)
        if values.size != rows.shape[0] or np.abs(values).max() > LARGEST:
            raise InputError(
                f"`rewards` must hold one number within +-{LARGEST:g} for each of {rows.shape[0]} rows, "
                f"but got shape {values.shape}."
            )
        bad = first_bad_row(rows, float(self._settings[FEATURE_BOUND]))
        if bad >= 0:
            raise self._bad_row(rows, bad)
        self._enter(rows, values)

    def _enter(self, rows: Matrix, rewards: Vector) -> None:
        for row, reward in zip(rows, rewards, strict=True):
            self._run_absorb(self._state, row, float(reward))
        self._frozen = None

    def _decide_catalogue(
        self, catalogue: Catalogue, baseline: int | ArrayLike | None, known: float, order: int
    ) -> Decision:
        self._check_shape(catalogue.rows)
        row = self._read_baseline(baseline, catalogue.rows.shape[0], order)
        self._adopt(catalogue)
        return self._decide_rows(catalogue.rows, True, self._catalogue_scores, row, known, order)

    def _decide_rows(
        self, rows: Matrix, cached: bool, scores: Matrix, baseline: int, known: float, order: int
    ) -> Decision:
        self._check_order(rows, order)
        record = self._new_record()
        action, is_learner = self._run_step(
            self._settings, self._state, self._book, self._memory, rows, cached, scores, baseline, known, order, record
        )
        if action < 0:
            raise self._bad_row(rows, -1 - action)
        return self._concluded(action if is_learner else baseline, action, is_learner, record, order)

    def _decide_over(self, actions: ActionSet, baseline: int | ArrayLike | None, known: float, order: int) -> Decision:
        if actions.dim != self.dim:
            raise InputError(
                f"The action set must have dim={self.dim}, but this {type(actions).__name__} has dim={actions.dim}."
            )
        displaced = self._read_baseline_vector(actions, baseline, order)
        actions.check_length(float(self._settings[FEATURE_BOUND]))
        best = actions.optimistic(snapshot(self._settings, self._state))
        record = self._new_record()
        record[OPTIMISM], record[BETA] = best.upper, radius_of(self._settings, self._state)
        is_learner = type(self)._conclude(
            self._settings, self._state, self._book, self._memory, np.zeros((0, self.dim)), best.features, displaced,
            known, order, record, self.dim,
        )  # fmt: skip
        return self._concluded(-1, -1, is_learner, record, order, method=best.method, gap=best.gap)

    def _new_record(self) -> Vector:
        return new_record(self.dim)

    def _concluded(
        self,
        row: int,
        proposal: int,
        is_learner: bool,
        record: Vector,
        order: int,
        *,
        method: str = "rows",
        gap: float = 0.0,
    ) -> Decision:
        if self._alarm is None and self._memory.item(REFUTED) > 0.0:
            self._raise_alarm()
        if self._alarm is not None and self.keeps_floor:  # anything follows from a contradiction: nothing is promised
            record[GUARANTEED] = -np.inf
        # Evidence is kept as it stood; the certificate is written out when somebody asks for it.
        frozen = self._frozen
        if frozen is None:
            frozen = self._state[FROZEN_FROM : FROZEN_FROM + self.dim * (self.dim + 1)].copy()
            if self._settings[RADIUS_KIND] != DUAL:
                self._frozen = frozen  # shared by all decisions until something is learned
            elif self._state[COUNT] > 0:  # there the set is chosen anew for every question
                at = set_at.function(self.dim)
                frozen = self._memory[at : at + self.dim * (self.dim + 1)].copy()
        seen = int(self._state[COUNT])
        written_out = partial(
            certify, self._prove, self._settings, record, frozen, seen, self.dim, proposal, method, gap, order
        )
        at = RECORD_HEAD + 3 * self.dim
        return self._decided(row, is_learner, record[at : at + self.dim], written_out)

    def _raise_alarm(self) -> None:
        """Say what the step has found."""
        if self._memory[REFUTED] != TOO_HIGH:
            self.report_breach("contradiction", CONTRADICTION)
            return
        text = (
            f"The baseline of round {self._rounds + 1} is declared to earn more on average than any theta of length "
            f"theta_bound={self._theta_bound:.6g} allows for its features."
        )
        self.report_breach("baseline_reward", text)

    def report_breach(self, kind: AlarmKind, text: str) -> None:
        """Raise the alarm: something that was declared has been contradicted. The first one stands."""
        super().report_breach(kind, text)
        self._memory[REFUTED] = max(1.0, float(self._memory[REFUTED]))  # does not overwrite TOO_HIGH

    def _teaches(self, is_learner: bool) -> bool:
        return is_learner or self.learns_baseline_rounds

    def _learn(self, features: Vector, reward: float, is_learner: bool) -> None:
        if self._catalogue is None:
            self._run_absorb(self._state, features, reward)
        else:
            rows, columns = self._catalogue.rows, self._catalogue.columns
            learn_catalogue(self._state, features, reward, rows, columns, self._catalogue_scores)
        self._frozen = None

    def _scratch_for(self, rows: int) -> Matrix:
        if self._scratch.shape[1] != rows:
            self._scratch = new_scores(rows)
        return self._scratch

    def _adopt(self, catalogue: Catalogue) -> None:
        if self._catalogue is not None and self._catalogue.digest == catalogue.digest:
            return
        catalogue.check_length(float(self._settings[FEATURE_BOUND]))
        scores = new_scores(catalogue.rows.shape[0])
        score_rows(self._state, catalogue.rows, scores)
        # Last: what raises above leaves the old catalogue and its scores together.
        self._catalogue, self._catalogue_scores = catalogue, scores

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
        bound = float(self._settings[FEATURE_BOUND])
        if not np.isfinite(rows[row]).all():
            return InputError(
                f"`features` must be finite, but row {row} is {rows[row]}. Drop that action or impute its features."
            )
        length = float(np.linalg.norm(rows[row]))
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
        arrays: dict[str, Any] = {
            "ridge": self._state.copy(),
            "ledger": self._book.copy(),
            "memory": self._memory.copy(),
        }
        if self._catalogue is not None:
            arrays["catalogue"] = self._catalogue.rows.copy()
            arrays["catalogue_scores"] = self._catalogue_scores.copy()
        return arrays

    def _restore(self, arrays: Mapping[str, Any]) -> None:
        refill(self._state, arrays["ridge"], "ridge")
        refill(self._book, arrays["ledger"], "ledger")
        refill(self._memory, restored_memory(arrays["memory"], self.dim), "memory")
        check_state(self._state, dim=self.dim, ridge=float(self._settings[RIDGE]))
        if "catalogue" in arrays:
            catalogue = Catalogue(arrays["catalogue"])
            self._check_shape(catalogue.rows)
            scores = restored_scores(np.asarray(arrays["catalogue_scores"]), catalogue.rows.shape[0])
            self._catalogue, self._catalogue_scores = catalogue, scores


def _longest(features: Any) -> float:
    rows = features.rows if isinstance(features, Catalogue) else features
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.size == 0:
        return 0.0
    return float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max()))
