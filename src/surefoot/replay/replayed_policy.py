"""One policy on a log: the arrays and the compiled step that the policy object has, fed with logged rows."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot._renamed import takes_old_name
from surefoot.arrays import Matrix, Vector, nonnegative, positive
from surefoot.errors import AssumptionError, ConfigError
from surefoot.replay.batch import Batch
from surefoot.replay.replay_kernel import first_long, replay_block
from surefoot.simulation.engine import Runner
from surefoot.simulation.policy_specs import CODES, Spec
from surefoot.simulation.rewards import Gaussian
from surefoot.simulation.worlds import Baseline, Block, FreshRealisation

ARMS = ("UCB", "ConservativeUCB")
PLAYABLE = tuple(name for name, code in CODES.items() if code is not None and name not in ARMS)


@takes_old_name("reward_range", "reward_bounds")
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
    """What became of the rows of a batch: the row chosen, REJECTED, BASELINE or LEARNER, and the gate's margin."""

    chosen: NDArray[np.int64]
    fates: NDArray[np.int64]
    margins: Vector


class ReplayedPolicy:
    """A policy by name. It learns along the batches that it is given."""

    def __init__(self, spec: Spec, declared: Declared, first: Batch, *, feature_bound: float, mode: int) -> None:
        if spec.policy not in PLAYABLE:
            raise ConfigError(
                f"`policy` must be one that replay can play, but got {spec.policy!r}. Known are {', '.join(PLAYABLE)}; "
                "plain arms are a log without context columns."
            )
        if first.features.shape[2] < 2:
            raise ConfigError("Features must have at least two columns for the paper's radius, but the log has one.")
        self.spec, self._mode, self._rounds, self._declared = spec, mode, 0, declared
        self._runner = Runner(spec, *world_of(declared, first, feature_bound), fixed=False)
        self._before = self._runner.ledger.copy(), self._runner.memory.copy()

    def play(self, batch: Batch, rewards: Matrix, usable: NDArray[np.bool_]) -> PlayedRows:
        """Take the policy through the rows of a batch whose lengths were checked."""
        played = PlayedRows(np.empty(len(batch), np.int64), np.empty(len(batch), np.int64), np.empty(len(batch)))
        runner = self._runner
        failed = replay_block(
            self._mode,
            runner.kind,
            runner.settings,
            runner.state,
            runner.ledger,
            runner.memory,
            runner.arms,
            runner.scores,
            runner.record,
            runner.columns,
            *self._before,
            batch.features,
            batch.baselines,
            np.full(len(batch), self._declared.baseline_reward),
            runner.is_told,
            batch.actions,
            rewards,
            usable,
            self._rounds,
            played.chosen,
            played.fates,
            played.margins,
        )
        if failed >= 0:
            raise _too_long(batch, failed)
        self._rounds += int((played.fates > 0).sum())
        return played


def check_length(batch: Batch, bound: float) -> None:
    """Raise where a feature row is longer than the bound; done once for all policies that play the batch."""
    failed = first_long(batch.features, bound)
    if failed >= 0:
        raise _too_long(batch, failed)


def _too_long(batch: Batch, at: int) -> AssumptionError:
    longest = float(np.linalg.norm(batch.features[at], axis=1).max())
    return AssumptionError(
        f"Feature rows must be finite and no longer than feature_bound, but in line {batch.lines[at]:,} one has length "
        f"{longest:.6g}. Declare a larger bound or rescale."
    )


def world_of(declared: Declared, first: Batch, feature_bound: float) -> tuple[FreshRealisation, Block]:
    """A log as the simulator sees a world: what a policy is told of it, and its first round."""
    rows = first.features[:1]
    world = FreshRealisation(
        draw=lambda _: rows[0],
        theta=np.zeros(rows.shape[2]),  # never asked: rewards come from the log
        rewards=Gaussian(declared.noise),
        baseline=Baseline(action=int(first.baselines[0])),
        theta_bound=declared.theta_bound,
        feature_bound=feature_bound,
        delay=0.0,
        seed=np.random.SeedSequence(0),
    )
    means = np.full(rows.shape[:2], declared.baseline_reward)
    nothing = np.zeros(1)
    return world, Block(rows, means, first.baselines[:1], nothing, nothing.astype(np.int64))
