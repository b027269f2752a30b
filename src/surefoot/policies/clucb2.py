"""CLUCB2: the paper's Algorithm 2, for a baseline whose rewards are unknown."""

import copy
import math
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, Vector
from surefoot.errors import ConfigError, InputError
from surefoot.linear.actions import ActionSet
from surefoot.linear.ellipsoid import Ball, Ellipsoid, newest_set, snapshot
from surefoot.linear.nested import Nested, Split
from surefoot.policies.decision import FREE, HELD_OUT, HOLD, Decision
from surefoot.policies.delta_split import WATCH_SHARE
from surefoot.policies.linear_certificate import Promise
from surefoot.policies.linear_policy import CONTRADICTION, UNKNOWN, Known, LinearPolicy
from surefoot.policies.open_baseline import DrawnBaseline
from surefoot.policies.policy import arguments
from surefoot.policies.settlement import OpenRound
from surefoot.safety.certificate import Certificate
from surefoot.safety.facts import Fact, Linear
from surefoot.safety.gates import FLOOR, question_of, unknown_proof
from surefoot.safety.proof import Proof, assemble


class CLUCB2(LinearPolicy):
    """Conservative linear UCB with unknown baseline rewards.  (paper, Algorithm 2)

    Bounds the baseline's reward by the same data, and learns from every round.

    Parameters
    ----------
    dim : int
        Number of features of an action.
    alpha : float
        Share of the baseline's reward you accept losing.
    delta : float
        Probability that the guarantee may fail.
    noise : float
        Sub-Gaussian scale of a reward.
    ridge : float
        Regulariser lambda.
    theta_bound : float
        B: bound on the length of theta.
    feature_bound : float
        D: bound on the length of every feature row.
    reward_floor : float
        A mean reward that the baseline never falls below. One that is too high voids the guarantee; 0 is always safe.
    nesting : {"exact", "latest"}
        "exact" works over the intersection of all ellipsoids, as the paper's proof needs; its cost grows with the
        rounds. "latest" works over the newest one (the paper's Remark 3): as safe, as fast as CLUCB, and not the exact
        CLUCB2.
    radius : str
        Radius of the confidence set (`surefoot.linear.radius`); "paper" by default.
    holdout : float, optional
        Share of rounds in which a coin lets the baseline play although the learner may; 0.02 turns the watch on, which
        raises the alarm when rewards drift. Off by default.
    watch_share : float
        Share of delta for false alarms of the watch; spent only with a holdout.
    seed : int, optional
        For simulations: coins that can be repeated. Left out, they come from the system.
    settle_after, default_reward : int and float, optional
        Rounds after which a missing reward is learned as `default_reward` (0).

    Raises
    ------
    ConfigError
        If a setting is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> policy = CLUCB2(dim=2, alpha=0.1, delta=0.01, noise=0.1, ridge=1.0, theta_bound=1.0, feature_bound=1.0)
    >>> decision = policy.decide(np.array([[1.0, 0.0], [0.6, 0.0]]), baseline=1)
    >>> decision.source, round(decision.certificate.margin, 3)
    ('baseline', -1.54)
    >>> policy.observe(decision, 0.5)
    """

    _rule = "CLUCB2"
    _prove = staticmethod(unknown_proof)

    def __init__(
        self,
        *,
        dim: int,
        alpha: float,
        delta: float,
        noise: float,
        ridge: float,
        theta_bound: float,
        feature_bound: float,
        reward_floor: float = 0.0,
        nesting: Literal["exact", "latest"] = "exact",
        radius: str = "paper",
        holdout: float | None = None,
        watch_share: float = WATCH_SHARE,
        seed: int | None = None,
        settle_after: int | None = None,
        default_reward: float | None = None,
    ) -> None:
        settings = arguments(locals())
        if nesting not in ("exact", "latest"):
            raise ConfigError(
                f"`nesting` must be 'exact' or 'latest', but got {nesting!r}. 'exact' is the paper's; 'latest' is fast."
            )
        super().__init__(**settings)
        if nesting == "exact" and radius == "dual":
            raise ConfigError("`radius='dual'` needs `nesting='latest'`: the exact nest keeps one ellipsoid a round.")
        self._nested = Nested(Ball(float(theta_bound)), dim=self.dim) if nesting == "exact" else None
        self._is_direct = self._nested is None

    @property
    def confidence_set(self) -> Ball | Ellipsoid | Nested:  # type: ignore[override]
        """Where theta lies with probability 1 - delta; with exact nesting, the intersection of every set so far."""
        # A copy: the nest goes on growing.
        return copy.deepcopy(self._nested) if self._nested is not None else newest_set(self._core)

    def _read_known(self, reward: Any) -> Known:
        if reward is not None:
            raise InputError(
                f"`baseline_reward` must not be given to CLUCB2, but got {reward!r}. It treats that reward as "
                "unknown; where it is known use CLUCB."
            )
        return UNKNOWN

    def _decide_drawn(self, rows: Matrix, today: DrawnBaseline, known: Known, order: int) -> Decision:
        if self._nested is not None:
            raise InputError("`baseline` must not be drawn with `nesting='exact'`; take `nesting='latest'`.")
        return super()._decide_drawn(rows, today, known, order)

    def _decide_rows(self, rows: Matrix, is_catalogue: bool, baseline: int, known: Known, order: int) -> Decision:
        if self._nested is None:
            return super()._decide_rows(rows, is_catalogue, baseline, known, order)
        # The core checks this on its own way; here it must come before anything is booked.
        self._check_lengths(rows)
        action, upper = self._nested.optimistic(rows)
        action = order if order >= 0 else action
        evidence = self._core.pose(rows[action], rows[baseline])
        is_safe, proof = self._judge_nested(self._nested, evidence)
        is_learner = order >= 0 or (order == FREE and is_safe)
        if self._nested.is_empty:
            self.report_breach("contradiction", CONTRADICTION)
        if self._alarm is not None:
            evidence.guaranteed = -math.inf
        self._core.book(rows[action], rows[baseline], is_learner, evidence)
        certify = partial(
            Certificate,
            evidence.guaranteed,
            evidence.required,
            action,
            upper,
            proof,
            is_held=order == HOLD,
            is_held_out=order == HELD_OUT and evidence.guaranteed >= evidence.required,
        )
        features, row = evidence.features, action if is_learner else baseline
        record = self._record(features, -math.inf, self._rounds + 1)
        return self._counted(row, is_learner, features, certify, True, (), record)

    def _judge_nested(self, nested: Nested, evidence: Any) -> tuple[bool, "partial[Proof]"]:
        splits = nested.split(evidence.played), nested.split(evidence.conserved), nested.split(-evidence.displaced)
        # The largest of what is owed is minus the least of its negative.
        is_safe = bool(self._core.weigh_up(splits[0].value, splits[1].value, -splits[2].value, evidence))
        if nested.is_empty:  # anything follows from a contradiction, so nothing is promised
            evidence.guaranteed = -math.inf
            return False, partial(Proof, question_of(self._promise, evidence), (), -math.inf)
        return is_safe, partial(_nested_proof, self._promise, evidence, splits)

    def _decide_over(self, actions: ActionSet, baseline: int | ArrayLike | None, known: Known, order: int) -> Decision:
        if self._nested is not None:
            raise InputError(
                f"A {type(actions).__name__} needs `nesting='latest'`, but this CLUCB2 is exact: its set is an "
                "intersection, over which only finitely many rows can be searched. Give rows, or use 'latest'."
            )
        return super()._decide_over(actions, baseline, known, order)

    def _learn_round(self, entry: OpenRound, reward: float) -> None:
        if self._watch is None and self._nested is not None:
            self._enter_set(entry[0], reward, entry[1])
        else:
            super()._learn_round(entry, reward)

    def _enter_set(self, features: bytes, reward: float, is_learner: bool) -> None:
        if self._nested is None:
            super()._enter_set(features, reward, is_learner)
        else:
            self._nest(self._nested, np.frombuffer(features)[None], [reward])

    def _enter(self, rows: Matrix, rewards: Vector) -> None:
        if self._nested is None:
            super()._enter(rows, rewards)
        else:
            self._nest(self._nested, rows, rewards.tolist())

    def _nest(self, nested: Nested, rows: Matrix, rewards: list[float]) -> None:
        """Learn, and add the current set to the nest: one per round, and one for a whole warm start."""
        # On a copy first, so that a failure on the way leaves the set and the nest as they were.
        learned = self._core.ridge.copy()
        for row, reward in zip(rows, rewards, strict=True):
            learned.absorb(row, reward)
        newest = snapshot(self._settings, learned)
        assert isinstance(newest, Ellipsoid)
        nested.add(newest)
        self._core.assign_ridge(learned)

    def arrays(self) -> dict[str, Any]:
        """As of every linear policy, and the nest."""
        return {**super().arrays(), **(self._nested.state() if self._nested is not None else {})}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Take back what `arrays` returned."""
        super().restore(arrays)
        if self._nested is not None:
            self._nested.restore(arrays)


def _nested_proof(promise: Promise, evidence: Any, splits: tuple[Split, Split, Split]) -> Proof:
    """Algorithm 2 as a split over every set of the nest."""
    alpha, conserved = promise.alpha, evidence.conserved
    played, kept, owed = splits
    parts: list[tuple[Fact, Vector]] = list(played.pieces)
    if evidence.kept >= evidence.owed:
        parts.append((Linear(conserved, evidence.kept, FLOOR), alpha * conserved))
    else:
        parts += [(known, alpha * piece) for known, piece in kept.pieces]
    parts += [(known, (1 - alpha) * piece) for known, piece in owed.pieces]
    return assemble(question_of(promise, evidence), parts, Ball(promise.theta_bound))
