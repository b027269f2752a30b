"""What LUCB, CLUCB and CLUCB2 share: a ridge state, a ledger, and the one way from features to a decision.

A subclass is a compiled `step` (propose, ask the gate, book) and the proof that goes with its gate.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, Vector, count, finite, finite_array, fraction, nonnegative, positive, real_array
from surefoot.compiled import Compiled
from surefoot.errors import AssumptionError, ConfigError, InputError
from surefoot.linear.actions import ActionSet, Catalogue
from surefoot.linear.ellipsoid import Ball, Ellipsoid, snapshot
from surefoot.linear.radius import (
    ALPHA,
    DELTA,
    FEATURE_BOUND,
    NOISE,
    REWARD_FLOOR,
    RIDGE,
    SETTINGS,
    THETA_BOUND,
    radius_of,
)
from surefoot.linear.ridge import COUNT, Ridge, absorb, check_state
from surefoot.linear.ridge import HEAD as FROZEN_FROM  # center and whitener stand side by side from here
from surefoot.linear.scores import learn_catalogue, score_rows
from surefoot.policies.base import Decision, Policy, refill
from surefoot.safety.certificate import Certificate
from surefoot.safety.gates import BETA, GUARANTEED, OPTIMISM, RADIUS, REQUIRED, new_record, vectors_of
from surefoot.safety.ledger import Ledger
from surefoot.safety.proof import Proof

MOST_RESOLVED = 1e15  # the largest ratio of a squared feature to the ridge that float64 can add up

Prover = Callable[[Vector, Vector, Ball | Ellipsoid], Proof]


class LinearPolicy(Policy):
    """A policy over linear rewards <theta, phi>: parts in common, algorithms in the subclasses."""

    needs_baseline: ClassVar[bool] = True
    needs_baseline_reward: ClassVar[bool] = False
    learns_baseline_rounds: ClassVar[bool] = True
    _step: ClassVar[Compiled[..., tuple[int, bool]]]
    _judge: ClassVar[Compiled[..., bool]]

    def __init__(
        self,
        *,
        dim: int,
        delta: float,
        noise: float,
        ridge: float,
        theta_bound: float,
        feature_bound: float,
        **extra: Any,
    ) -> None:
        given = {"dim": dim, "delta": delta, "noise": noise, "ridge": ridge}
        super().__init__({**given, "theta_bound": theta_bound, "feature_bound": feature_bound, **extra})
        self.dim = count("dim", dim, hint="dim is the number of features of one action.")
        if self.dim == 1:
            raise ConfigError(
                "`dim >= 2` must hold with the paper's radius, but got dim=1. There it is smaller than the theorem it "
                "rests on allows; add a constant feature, or pad the only one with a zero."
            )
        self._settings = setting_array(
            alpha=extra.get("alpha"),
            delta=delta,
            noise=noise,
            ridge=ridge,
            theta_bound=theta_bound,
            feature_bound=feature_bound,
            reward_floor=extra.get("reward_floor", 0.0),
        )
        self._ridge = Ridge(dim=self.dim, ridge=float(ridge))
        self._ledger = Ledger(dim=self.dim)
        self._state, self._book = self._ridge.buffer, self._ledger.buffer
        self._run_step = type(self)._step.dispatcher
        self._run_absorb = absorb.dispatcher
        self._catalogue: Catalogue | None = None
        self._catalogue_scores = self._scratch = np.zeros((3, 0))
        self._frozen: Vector | None = None

    @staticmethod
    @abstractmethod
    def _prove(settings: Vector, record: Vector, known: Ball | Ellipsoid, /) -> Proof:
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
        baseline_reward: float | None = None,
    ) -> Decision:
        """Choose an action; `features` is an array with one row per action, or an action set.

        `baseline` is the row that is played today; in a set without rows, its feature vector.
        """
        known = self._read_baseline_reward(baseline_reward)
        if type(features) is not np.ndarray and isinstance(features, ActionSet):
            if isinstance(features, Catalogue):
                return self._decide_catalogue(features, baseline, known)
            return self._decide_over(features, baseline, known)
        rows = real_array("features", features, ndim=2)
        self._check_shape(rows)
        row = self._read_baseline(baseline, rows.shape[0])
        return self._decide_rows(rows, False, self._scratch_for(rows.shape[0]), row, known)

    def _decide_catalogue(self, catalogue: Catalogue, baseline: int | ArrayLike | None, known: float) -> Decision:
        self._check_shape(catalogue.rows)
        row = self._read_baseline(baseline, catalogue.rows.shape[0])
        self._adopt(catalogue)
        return self._decide_rows(catalogue.rows, True, self._catalogue_scores, row, known)

    def _decide_rows(self, rows: Matrix, cached: bool, scores: Matrix, baseline: int, known: float) -> Decision:
        record = new_record(self.dim)
        action, is_learner = self._run_step(
            self._settings, self._state, self._book, rows, cached, scores, baseline, known, record
        )
        if action < 0:
            raise self._bad_row(rows, -1 - action)
        return self._conclude(action if is_learner else baseline, action, is_learner, record)

    def _decide_over(self, actions: ActionSet, baseline: int | ArrayLike | None, known: float) -> Decision:
        if actions.dim != self.dim:
            raise InputError(
                f"The action set must have dim={self.dim}, but this {type(actions).__name__} has dim={actions.dim}."
            )
        displaced = self._read_baseline_vector(actions, baseline)
        actions.check_length(float(self._settings[FEATURE_BOUND]))
        best = actions.optimistic(self.confidence_set)
        record = new_record(self.dim)
        record[OPTIMISM], record[BETA] = best.upper, radius_of(self._settings, self._state)
        is_learner = type(self)._judge(self._settings, self._state, self._book, best.features, displaced, known, record)
        return self._conclude(-1, -1, is_learner, record, method=best.method, gap=best.gap)

    def _conclude(
        self, row: int, proposal: int, is_learner: bool, record: Vector, *, method: str = "rows", gap: float = 0.0
    ) -> Decision:
        # Evidence is kept as it stood; the certificate is written out when somebody asks for it.
        frozen = self._frozen
        if frozen is None:
            frozen = self._frozen = self._state[FROZEN_FROM : FROZEN_FROM + self.dim * (self.dim + 1)].copy()
        seen = int(self._state[COUNT])
        certify = partial(_certify, self._prove, self._settings, record, frozen, seen, proposal, method, gap)
        return self._decided(row, is_learner, record[-self.dim :], certify)

    def _learn(self, features: Vector, reward: float, is_learner: bool) -> None:
        if not (is_learner or self.learns_baseline_rounds):
            return
        if self._catalogue is None:
            self._run_absorb(self._state, features, reward)
        else:
            rows, columns = self._catalogue.rows, self._catalogue.columns
            learn_catalogue(self._state, features, reward, rows, columns, self._catalogue_scores)
        self._frozen = None

    def _scratch_for(self, rows: int) -> Matrix:
        if self._scratch.shape[1] != rows:
            self._scratch = np.zeros((3, rows))
        return self._scratch

    def _adopt(self, catalogue: Catalogue) -> None:
        if self._catalogue is not None and self._catalogue.digest == catalogue.digest:
            return
        catalogue.check_length(float(self._settings[FEATURE_BOUND]))
        scores = np.zeros((3, catalogue.rows.shape[0]))
        score_rows(self._state, catalogue.rows, scores)
        self._catalogue, self._catalogue_scores = catalogue, scores

    def _check_shape(self, rows: Matrix) -> None:
        if rows.shape[1] != self.dim or rows.shape[0] == 0:
            raise InputError(
                f"`features` must have at least one row and dim={self.dim} columns, but got shape {rows.shape}. "
                "Give one row per action."
            )

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

    def _read_baseline(self, baseline: int | ArrayLike | None, rows: int) -> int:
        if not self.needs_baseline:
            return 0
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

    def _read_baseline_vector(self, actions: ActionSet, baseline: int | ArrayLike | None) -> Vector:
        if not self.needs_baseline:
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
        arrays: dict[str, Any] = {"ridge": self._state.copy(), "ledger": self._book.copy()}
        if self._catalogue is not None:
            arrays["catalogue"] = self._catalogue.rows.copy()
            arrays["catalogue_scores"] = self._catalogue_scores.copy()
        return arrays

    def _restore(self, arrays: Mapping[str, Any]) -> None:
        refill(self._state, arrays["ridge"], "ridge")
        refill(self._book, arrays["ledger"], "ledger")
        check_state(self._state, dim=self.dim, ridge=float(self._settings[RIDGE]))
        if "catalogue" in arrays:
            catalogue = Catalogue(arrays["catalogue"])
            self._check_shape(catalogue.rows)
            scores = np.zeros((3, catalogue.rows.shape[0]))
            refill(scores, arrays["catalogue_scores"], "catalogue_scores")
            self._catalogue, self._catalogue_scores = catalogue, scores


def setting_array(
    *,
    alpha: float | None,
    delta: float,
    noise: float,
    ridge: float,
    theta_bound: float,
    feature_bound: float,
    reward_floor: float,
) -> Vector:
    """Checked settings as compiled code reads them; without a floor to keep, alpha is None."""
    settings = np.zeros(SETTINGS)
    settings[DELTA] = fraction("delta", delta, hint="delta is the chance that the guarantee fails.")
    settings[NOISE] = positive("noise", noise, hint="noise is the sub-Gaussian scale of a reward.")
    settings[RIDGE] = positive("ridge", ridge, hint="ridge is the regulariser lambda; 1.0 is usual.")
    settings[THETA_BOUND] = positive("theta_bound", theta_bound, hint="theta_bound bounds ||theta||.")
    settings[FEATURE_BOUND] = positive(
        "feature_bound", feature_bound, hint="feature_bound bounds the length of every feature row."
    )
    if not 1e-100 <= settings[FEATURE_BOUND] <= 1e100:
        raise ConfigError(
            f"`1e-100 <= feature_bound <= 1e100` must hold, but got {feature_bound}. Rescale the features."
        )
    if settings[FEATURE_BOUND] / math.sqrt(settings[RIDGE]) > math.sqrt(MOST_RESOLVED):
        raise ConfigError(
            f"`feature_bound**2 <= {MOST_RESOLVED:g} * ridge` must hold, but got {feature_bound=}, {ridge=}. "
            "Floating point cannot hold the ridge beside such features: rescale them, or take a larger ridge."
        )
    if alpha is not None:
        hint = "alpha is the share of the baseline's reward you accept losing; 0.05 keeps 95%."
        settings[ALPHA] = fraction("alpha", alpha, hint=hint)
    hint = "reward_floor is a mean reward the baseline never falls below; 0 is always safe."
    settings[REWARD_FLOOR] = nonnegative("reward_floor", reward_floor, hint=hint)
    return settings


def read_known_reward(reward: float) -> float:
    """A known mean reward of the baseline: a finite number of at least 0."""
    value = finite("baseline_reward", reward, hint="It is the mean reward of the baseline's action.")
    if value < 0:
        raise AssumptionError(
            f"`baseline_reward >= 0` must hold, but got {value}. Keeping a share of a negative reward means nothing: "
            "add a constant to every reward so that the baseline's is never negative."
        )
    return value


def _certify(
    prover: Prover,
    settings: Vector,
    record: Vector,
    frozen: Vector,
    observations: int,
    proposal: int,
    method: str,
    gap: float,
) -> Certificate:
    evidence = partial(_evidence, prover, settings, record, frozen, observations)
    guaranteed, required, optimism = float(record[GUARANTEED]), float(record[REQUIRED]), float(record[OPTIMISM])
    return Certificate(guaranteed, required, proposal, optimism, evidence, method, gap)


def _evidence(prover: Prover, settings: Vector, record: Vector, frozen: Vector, observations: int) -> Proof:
    dim = vectors_of(record).shape[1]
    known: Ball | Ellipsoid = Ball(float(settings[THETA_BOUND]))
    if observations > 0:
        known = Ellipsoid(frozen[:dim], frozen[dim:].reshape(dim, dim), float(record[RADIUS]), observations)
    return prover(settings, record, known)
