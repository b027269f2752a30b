"""One policy on a log: by its compiled step where it has one, else as the object that it is."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector, nonnegative, positive
from surefoot.core import native
from surefoot.errors import AssumptionError, ConfigError, PolicyError
from surefoot.policies import LUCB, Guard
from surefoot.policies.decision import GuardDecision
from surefoot.replay.log import Batch, Log
from surefoot.simulation.engine import Runner
from surefoot.simulation.policy_specs import EXACT, LINEAR, Problem, Spec, played_row

PLAYABLE = tuple(name for name in LINEAR if name != EXACT)
# How a logged round answers a decision, and what became of a row; in the order of the core's `Evaluator` and `Fate`.
REJECTION, IMPORTANCE, FULL = range(3)
REJECTED, BASELINE, LEARNER = range(3)


@dataclass(frozen=True, slots=True)
class Declared:
    """What a policy is told before it starts, from knowledge or from `fit_baseline`.

    Parameters
    ----------
    noise : float
        Sub-Gaussian scale of a reward.
    theta_bound : float
        Bound on the length of theta.
    baseline_reward : float
        The baseline's mean reward. CLUCB is told it, and reports draw the floor by it where the log cannot say what the
        baseline would have earned in a round.
    reward_bounds : (low, high), optional
        Range of rewards.

    Raises
    ------
    ConfigError
        If a number is out of range.

    Examples
    --------
    >>> Declared(noise=0.5, theta_bound=1.0, baseline_reward=0.3).reward_bounds is None
    True
    """

    noise: float
    theta_bound: float
    baseline_reward: float
    reward_bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        positive("noise", self.noise, hint="noise is the sub-Gaussian scale of a reward.")
        positive("theta_bound", self.theta_bound, hint="theta_bound bounds ||theta||.")
        nonnegative("baseline_reward", self.baseline_reward, hint="Add a constant to every reward so that it is not.")
        if self.reward_bounds is not None and not self.reward_bounds[0] < self.reward_bounds[1]:
            raise ConfigError(f"`low < high` must hold for `reward_bounds`, but got {self.reward_bounds}.")


@dataclass(frozen=True, slots=True, eq=False)
class PlayedRows:
    """What became of the rows of a batch: the row chosen, REJECTED, BASELINE or LEARNER, and the gate's margin.

    differs: of a guard, whether the learner proposed another action than the baseline's
    """

    chosen: NDArray[np.int64]
    fates: NDArray[np.int64]
    margins: Vector
    differs: NDArray[np.bool_] | None = None


def log_player(spec: Spec, declared: Declared, log: Log, *, mode: int, seed: int) -> "ReplayedPolicy | ReplayedObject":
    """The compiled loop for a policy by name, the policy object for one of your own."""
    player = ReplayedObject if spec.is_own else ReplayedPolicy
    return player(spec, problem_of(declared, log, seed=seed), mode=mode)


def problem_of(declared: Declared, log: Log, *, seed: int = 0) -> Problem:
    """What a policy may know of a log."""
    return Problem(
        dim=log.dim,
        actions=len(log.actions),
        noise=declared.noise,
        theta_bound=declared.theta_bound,
        feature_bound=log.feature_bound,
        baseline_reward=declared.baseline_reward,
        seed=seed,
    )


class ReplayedPolicy:
    """A policy by name. It learns along the batches that it is given."""

    def __init__(self, spec: Spec, problem: Problem, *, mode: int) -> None:
        if spec.policy not in PLAYABLE:
            raise ConfigError(
                f"`policy` must be one that replay can play, but got {spec.policy!r}. Known are {', '.join(PLAYABLE)}; "
                "plain arms are a log without context columns."
            )
        if problem.dim < 2:
            raise ConfigError("Features must have at least two columns for the paper's radius, but the log has one.")
        self._mode, self._baseline_reward = mode, problem.baseline_reward or 0.0
        self._runner = Runner(spec, problem)

    def play(self, batch: Batch, rewards: Matrix, usable: NDArray[np.bool_]) -> PlayedRows:
        """Take the policy through the rows of a batch whose lengths were checked."""
        played = PlayedRows(np.empty(len(batch), np.int64), np.empty(len(batch), np.int64), np.empty(len(batch)))
        self._runner.core.replay(
            self._mode,
            batch.features,
            batch.baselines,
            self._baseline_reward,
            self._runner.is_told,
            batch.actions,
            np.ascontiguousarray(rewards),
            usable,
            played.chosen,
            played.fates,
            played.margins,
            np.zeros(0, np.bool_) if batch.offered is None else np.ascontiguousarray(batch.offered).reshape(-1),
            batch.blocks,
        )
        return played


class ReplayedObject:
    """A policy of somebody's own, at Python's speed. It learns along the batches that it is given."""

    def __init__(self, spec: Spec, problem: Problem, *, mode: int) -> None:
        self._spec, self._mode = spec, mode
        self._policy: Any = spec.new_policy(problem)
        self._known = problem.baseline_reward if spec.tells(self._policy) else None
        if mode == IMPORTANCE and not hasattr(self._policy, "learn_logged"):
            raise ConfigError(
                f"{spec.name!r} must have `learn_logged(features, reward)` for importance weighting, by which "
                "it learns what others played. A subclass of surefoot.Policy has it."
            )

    def play(self, batch: Batch, rewards: Matrix, usable: NDArray[np.bool_]) -> PlayedRows:
        """Take the policy through the rows of a batch."""
        size = len(batch)
        differs = np.zeros(size, np.bool_) if self._spec.name == GUARD else None
        played = PlayedRows(np.full(size, -1), np.full(size, REJECTED), np.full(size, np.nan), differs)
        for t in np.flatnonzero(usable).tolist():
            shown = batch.rows(t).view()
            # What is the log's must stay as it is, whatever a policy does with it.
            shown.flags.writeable = False
            try:
                self._round(batch, shown, rewards, t, played)
            except Exception as error:
                raise PolicyError(
                    f"{self._spec.name!r} failed in line {batch.lines[t]:,} of the log: "
                    f"{type(error).__name__}: {error!s:.300}"
                ) from error
        return played

    def _round(self, batch: Batch, rows: Matrix, rewards: Matrix, t: int, played: PlayedRows) -> None:
        baseline, logged = int(batch.baselines[t]), int(batch.actions[t])
        # On a copy, which is thrown away with a rejected round.
        policy: Any = copy.deepcopy(self._policy) if self._mode == REJECTION else self._policy
        places = np.arange(len(rows)) if batch.offered is None else np.flatnonzero(batch.offered[t])
        today = int(np.searchsorted(places, baseline))
        decision = policy.decide(rows[places], baseline=today, baseline_reward=self._known)
        place, is_learner = played_row(decision, places.size, today)
        row = int(places[place])
        played.chosen[t] = row
        if self._mode == REJECTION and row != logged:
            return
        self._policy = policy
        if self._mode == IMPORTANCE:
            # What it decided was not played, so that its reward will never come.
            self._policy.abandon(decision)
            self._policy.learn_logged(rows[logged], float(rewards[t, 0]))
        else:
            self._policy.observe(decision, float(rewards[t, row if self._mode == FULL else 0]))
        played.fates[t] = LEARNER if is_learner else BASELINE
        if played.differs is not None:
            played.differs[t] = decision.differs
        certificate = getattr(decision, "certificate", None)
        if certificate is not None and np.isfinite(certificate.required):
            played.margins[t] = certificate.guaranteed - certificate.required


def check_length(batch: Batch, bound: float) -> None:
    """Raise where a feature row is longer than the bound; done once for all policies that play the batch."""
    failed = native.first_long(batch.features, bound)
    if failed is not None:
        raise _too_long(batch, failed)


def _too_long(batch: Batch, at: int) -> AssumptionError:
    longest = float(np.linalg.norm(batch.features[at], axis=1).max())
    return AssumptionError(
        f"Feature rows must be finite and no longer than feature_bound, but in line {batch.lines[at]:,} one has length "
        f"{longest:.6g}. Declare a larger bound or rescale."
    )


GUARD = "Guard"
EXPLORATION = 1.0  # of the learner under a guard


@dataclass(frozen=True, slots=True)
class GuardedChoice:
    """The row that is played, who chose it, whether the sides wished for different ones, and the guard's decision."""

    action: int
    source: str
    differs: bool
    features: Matrix
    decision: GuardDecision


class GuardedLUCB:
    """Decides as a linear policy does, over rows; the promise is the guard's, and holds whatever rewards are."""

    def __init__(self, learner: LUCB, guard: Guard) -> None:
        self._learner, self._guard = learner, guard

    def __deepcopy__(self, memo: dict[int, Any]) -> "GuardedLUCB":
        # The learner knows no more after a decision than before it; only rewards teach it.
        return GuardedLUCB(self._learner, copy.deepcopy(self._guard, memo))

    def decide(self, rows: Matrix, *, baseline: int, baseline_reward: float | None = None) -> GuardedChoice:
        """Ask the learner for a row, and the guard which of the two to play."""
        wished = self._learner.decide(rows)
        self._learner.abandon(wished)
        decision = self._guard.decide(baseline=baseline, proposal=wished.action)
        # Where both would play the same there is no coin, and the learner has what it wished for.
        differs = wished.action != baseline
        is_learner = decision.source == "learner" or not differs
        row = int(wished.action if is_learner else baseline)
        return GuardedChoice(row, "learner" if is_learner else "baseline", differs, rows[row], decision)

    def observe(self, choice: GuardedChoice, reward: float) -> None:
        """The reward of what was played teaches both."""
        self._guard.observe(choice.decision, reward)
        self._learner.learn_logged(choice.features, reward)


def guarded(
    alpha: float, *, delta: float, ridge: float, reward_bounds: tuple[float, float], exploration: float = EXPLORATION
) -> Spec:
    """LUCB under a guard, for `replay` by rejection or on a full table.

    Parameters
    ----------
    alpha : float
        Share of the baseline's reward that may be at risk.
    delta : float
        Probability that the promise fails.
    ridge : float
        Regulariser of the learner.
    reward_bounds : (low, high)
        Range that no reward leaves; the lower end must not be negative.
    exploration : float
        The learner's, as in `Spec`, times the largest reward. The promise does not rest on it, so that it need not hold
        at all times.

    Returns
    -------
    Spec
        For `replay` and `simulate`.

    Examples
    --------
    >>> guarded(0.1, delta=0.01, ridge=1.0, reward_bounds=(0.0, 1.0)).label
    'Guard, α = 0.1'
    """
    # In units of the largest reward: an action that was never tried must promise as much.
    learner = Spec("LUCB", delta=delta, ridge=ridge, exploration=exploration * reward_bounds[1])

    def make(problem: Problem) -> GuardedLUCB:
        settings: dict[str, Any] = dict(learner.settings_in(problem))
        guard = Guard(alpha=alpha, delta=delta, reward_bounds=reward_bounds, seed=problem.seed)
        return GuardedLUCB(LUCB(dim=problem.dim, **settings), guard)

    return Spec(make, name=GUARD, alpha=alpha)
