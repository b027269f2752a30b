"""The engine: policies over many realisations, in compiled loops on every core.

Runs are split into chunks. A chunk unrolls its realisations block by block and plays every policy through the same
rounds with the same noise, so that policies are compared on equal terms. What a run does depends only on its seed and
its number, never on threads, chunks or blocks. Counts are kept at checkpoints only: memory does not grow with the
horizon.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, count
from surefoot.core import native
from surefoot.errors import ConfigError, PolicyError
from surefoot.linear.actions import Catalogue
from surefoot.policies.linear_policy import LinearPolicy
from surefoot.simulation.policy_specs import Problem, Spec, as_specs, played_row, seed_of_run
from surefoot.simulation.rewards import reward_of
from surefoot.simulation.workers import Progress, Where, check_version, completed, reported, version_of_code, workers_on
from surefoot.simulation.worlds import Block, Realisation, World

BLOCK = 16_000  # rounds unrolled at once: more would be memory that malloc asks the system for anew
BLOCK_NUMBERS = 2_000_000  # at most so many features unrolled at once
CHUNK = 20  # runs that one task plays
MOST = 2**31 - 1  # runs, and rounds of a run: what a GPU counts with
# In the order of the core's `Tally`; violations follow, one column per watched alpha.
MEASURES = ("regret", "earned", "owed", "baseline_rounds", "last_baseline", "worst_share")


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What one policy did in a simulation.

    Attributes
    ----------
    spec : Spec
        The policy.
    checkpoints : ndarray
        Rounds at which counts were kept.
    watched : tuple of float
        The alphas by which violations are counted.
    measures : dict of str to ndarray of shape (runs, checkpoints)
        "regret", "earned", "owed", "baseline_rounds", "last_baseline" and "worst_share", each up to the checkpoint.
    violations : ndarray of shape (runs, checkpoints, watched)
        Rounds so far in which less than (1 - alpha) of the baseline's reward had been earned.

    Examples
    --------
    >>> from surefoot.simulation import ArmsWorld, Baseline, Spec, simulate
    >>> (ucb,) = simulate(ArmsWorld(actions=3, dim=3, baseline=Baseline(rank=2)), [Spec("UCB")], runs=2, horizon=10)
    >>> ucb.measures["regret"].shape == (2, len(ucb.checkpoints))
    True
    """

    spec: Spec
    checkpoints: NDArray[np.int64]
    watched: tuple[float, ...]
    measures: dict[str, Matrix]
    violations: NDArray[np.float64]


def default_checkpoints(horizon: int, *, points: int = 160) -> NDArray[np.int64]:
    """Rounds at which counts are kept: evenly spaced in the logarithm, with the powers of ten.

    Parameters
    ----------
    horizon : int
        Rounds of a run.
    points : int
        How many rounds to space, about.

    Returns
    -------
    ndarray of int
        Sorted round numbers; the last one is the horizon.

    Examples
    --------
    >>> default_checkpoints(20, points=4)
    array([ 1,  3,  7, 10, 20])
    """
    spaced = np.round(np.geomspace(1, horizon, points)).astype(np.int64)
    tens = [t for t in (10, 100, 1_000, 10_000, 100_000) if t <= horizon]
    return np.unique(np.concatenate([spaced, np.array([*tens, horizon], dtype=np.int64)]))


class Runner:
    """One of the core's policies in one realisation: what its object holds, in the core's own loop."""

    def __init__(self, spec: Spec, problem: Problem, rows: Matrix | None = None, *, lanes: int = 0) -> None:
        self.core = spec.new_policy(problem).core
        self.is_told = spec.knows_baseline
        self._keeps_floor, self._lanes = spec.is_conservative, lanes
        if spec.is_linear:
            # The means are the world's own: no row can contradict what was declared.
            self.core.settings.watchful = False
            if rows is not None:
                self.core.adopt(rows)

    def play(
        self,
        block: Block,
        realisation: Realisation,
        tally: Any,
        checkpoints: NDArray[np.int64],
        kept: Matrix,
        trace: NDArray[np.int64],
    ) -> None:
        """Play one block of rounds."""
        if self._keeps_floor:
            check_owed(block)
        failed = self.core.play(
            block.features,
            block.means,
            block.baselines,
            block.draws,
            block.delays,
            bool(block.delays.any()),
            self.is_told,
            realisation.rewards.kind,
            realisation.rewards.scale,
            tally,
            checkpoints,
            kept,
            trace,
            self._lanes,
        )
        if failed is not None:
            raise too_long(realisation, failed)


class ObjectRunner:
    """One policy object in one realisation, with the same counts and the same late rewards as the compiled loop."""

    def __init__(self, spec: Spec, problem: Problem, rows: Matrix | None = None, *, run: int = 0) -> None:
        self.policy = spec.new_policy(problem)
        self._tells = spec.tells(self.policy)
        self._spec, self._run = spec, run
        # A catalogue is not an array, so only policies that know of it get one.
        takes_catalogue = isinstance(self.policy, LinearPolicy) or not spec.is_own
        self._catalogue = Catalogue(rows) if rows is not None and takes_catalogue else None
        self._pending: list[tuple[int, Any, float]] = []

    def play(
        self,
        block: Block,
        realisation: Realisation,
        tally: Any,
        checkpoints: NDArray[np.int64],
        kept: Matrix,
        trace: NDArray[np.int64],
    ) -> None:
        """Play one block of rounds."""
        features = block.features.view()
        features.flags.writeable = False  # a policy of your own must not change the world by accident
        for t in range(block.draws.size):
            k = 0 if len(block.features) == 1 else t
            round_ = int(tally.round) + 1
            baseline = int(block.baselines[t])
            owed = float(block.means[k, baseline])
            try:
                self._learn_due(round_)
                rows: Any = self._catalogue if self._catalogue is not None else features[k]
                decision = self.policy.decide(rows, baseline=baseline, baseline_reward=owed if self._tells else None)
                row, is_learner = played_row(decision, block.means.shape[1], baseline)
                mean = float(block.means[k, row])
                reward = reward_of(realisation.rewards.kind, realisation.rewards.scale, mean, block.draws[t])
                if block.delays[t] > 0:
                    self._pending.append((round_ + int(block.delays[t]), decision, reward))
                else:
                    self.policy.observe(decision, reward)
            except Exception as error:
                if not self._spec.is_own:
                    raise
                raise PolicyError(
                    f"{self._spec.name!r} failed in run {self._run}, round {round_}: "
                    f"{type(error).__name__}: {error!s:.300}"
                ) from error
            tally.count(mean, float(block.means[k].max()), owed, is_learner)
            if t < trace.size:
                trace[t] = row if is_learner else -1 - row
            kept[checkpoints == round_] = tally.row()

    def _learn_due(self, round_: int) -> None:
        # In the order of decisions, which is the order of the list.
        due = [late for late in self._pending if late[0] <= round_]
        self._pending = [late for late in self._pending if late[0] > round_]
        for _, decision, reward in due:
            self.policy.observe(decision, reward)


def check_owed(block: Block) -> None:
    """Refuse a baseline whose mean is negative, where a floor is kept."""
    if (least := _least_owed(block)) < 0:
        raise ConfigError(
            "The baseline's mean reward must never be negative where a floor is kept, but in this world it is "
            f"{least:.6g}. Add a constant to every reward."
        )


def too_long(realisation: Realisation, round_: int) -> ConfigError:
    """The error of a world whose rows break their own bound."""
    return ConfigError(
        f"Feature rows must be no longer than the world's feature_bound={realisation.feature_bound:.6g}, "
        f"but in round {round_} one is. Declare a larger bound in the world."
    )


def _least_owed(block: Block) -> float:
    """The least mean of the baseline in these rounds, or of all actions where that is not negative."""
    if len(block.means) == 1:  # the same ones in all rounds
        least = float(block.means.min())
        return least if least >= 0 else float(block.means[0].take(block.baselines).min())
    return float(block.means[np.arange(block.draws.size), block.baselines].min())


class Played(NamedTuple):
    """What some runs came to: for each policy the counts (runs, checkpoints, tally), and what every run learned."""

    counts: list[NDArray[np.float64]]
    learned: list[NDArray[np.float64]]

    @classmethod
    def joined(cls, several: Sequence["Played"]) -> "Played":
        """The runs of several, one after the other."""
        return cls(
            *([np.concatenate(parts) for parts in zip(*lists, strict=True)] for lists in zip(*several, strict=True))
        )

    def equals(self, other: "Played") -> list[bool]:
        """For each policy, whether both have the same bits."""
        return [
            all(np.array_equal(mine, its) for mine, its in zip(own, others, strict=True))
            for own, others in zip(zip(*self, strict=True), zip(*other, strict=True), strict=True)
        ]


def learned_size(dim: int) -> int:
    """How many numbers `learned_by` returns in a dimension."""
    return (5 + dim) * dim + 1


def learned_by(core: Any) -> NDArray[np.float64]:
    """Theta, M, b, z, v and w of a linear policy, and the UCB of the row that it proposed last.

    Any rounding of any round shows in them.
    """
    ridge, ledger = core.ridge, core.ledger
    parts = (ridge.theta, ridge.whitener, ridge.moment, ledger.played, ledger.displaced, ledger.conserved)
    return np.concatenate([*(np.ravel(part) for part in parts), [core.last_optimism]])


def play_chunk(
    world: World,
    specs: Sequence[Spec],
    *,
    runs: Sequence[int],
    horizon: int,
    seed: int,
    watched: Sequence[float],
    checkpoints: NDArray[np.int64],
    blocks: int = BLOCK,
) -> Played:
    """Play some runs to the horizon: for each policy the counts (runs, checkpoints, tally).

    And, of compiled linear policies, what every run has learned in the end.
    """
    alphas = [float(alpha) for alpha in watched]
    kept = [np.zeros((len(runs), checkpoints.size, len(MEASURES) + len(alphas))) for _ in specs]
    learned = [np.zeros((len(runs), learned_size(world.dim))) for _ in specs]
    nothing = np.zeros(0, dtype=np.int64)
    for place, realisation in enumerate(world.realisations(seed, runs)):
        runners: list[Runner | ObjectRunner] = []
        tallies = [native.Tally(alphas) for _ in specs]
        for block in _unroll(world, realisation, horizon, blocks):
            # A policy may know something of the first round, such as the baseline's mean.
            if not runners:
                problem = realisation.problem(block, seed=seed_of_run(seed, runs[place]))
                rows = block.features[0] if world.fixed else None
                runners = [
                    Runner(spec, problem, rows)
                    if spec.is_compiled
                    else ObjectRunner(spec, problem, rows, run=runs[place])
                    for spec in specs
                ]
            for runner, tally, counts in zip(runners, tallies, kept, strict=True):
                runner.play(block, realisation, tally, checkpoints, counts[place], nothing)
        for spec, runner, ends in zip(specs, runners, learned, strict=True):
            if isinstance(runner, Runner) and spec.is_linear:
                ends[place] = learned_by(runner.core)
    return Played(kept, learned)


@dataclass(frozen=True, eq=False)
class ChunkTask:
    """Some runs to play wherever there is room; a worker with another version of surefoot refuses.

    A task is told its version when it is sent: so the package is read where work leaves a process, and nowhere else,
    for on a cold disk that takes most of a second.
    """

    world: World
    policies: Sequence[Spec]
    runs: Sequence[int]
    horizon: int
    seed: int
    watched: Sequence[float]
    checkpoints: NDArray[np.int64]
    code: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "code": self.code or version_of_code()}

    def __call__(self) -> Any:
        """Play, and hand in the counts."""
        check_version(self.code)
        return self.hand_in(self.play())

    def play(self) -> list[NDArray[np.float64]]:
        """For each policy the counts (runs, checkpoints, tally)."""
        return play_chunk(
            self.world,
            self.policies,
            runs=self.runs,
            horizon=self.horizon,
            seed=self.seed,
            watched=self.watched,
            checkpoints=self.checkpoints,
        ).counts

    def hand_in(self, counts: list[NDArray[np.float64]]) -> Any:
        """Return the counts as the task's answer; a subclass may keep them elsewhere."""
        return counts


def check_scale(runs: int, horizon: int, seed: int) -> None:
    """Refuse numbers that nothing can be simulated with."""
    hints = {"runs": "runs is the number of realisations.", "horizon": "horizon is the number of rounds of a run."}
    for name, value in (("runs", runs), ("horizon", horizon)):
        if count(name, value, hint=hints[name]) > MOST:
            raise ConfigError(f"`{name}` must be at most {MOST:,}, but got {name}={value}. {hints[name]}")
    count("seed", seed, least=0, hint="A seed is any whole number; the same one gives the same bits.")


def simulate(
    world: World,
    specs: Sequence[Any],
    *,
    runs: int,
    horizon: int,
    seed: int = 0,
    watched: Sequence[float] = (),
    checkpoints: NDArray[np.int64] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    on: Where = None,
) -> list[Outcome]:
    """Play every policy through the same realisations.

    Parameters
    ----------
    world : World
        Where realisations are drawn from.
    specs : sequence of Spec, str, Policy or callable
        The policies. One of surefoot's by name plays compiled; a new policy object, or a function from a `Problem` to
        one, plays in Python. A `Spec` gives it settings and a name.
    runs : int
        Number of realisations.
    horizon : int
        Rounds of a run.
    seed : int
        The same seed gives the same bits, on any number of threads.
    watched : sequence of float
        Alphas by which violations are counted, in addition to the policies' own.
    checkpoints : ndarray of int, optional
        Rounds at which counts are kept; `default_checkpoints` by default.
    threads : int, optional
        All cores by default.
    progress : callable, optional
        Called with the rounds done and the rounds in all, of all policies and runs together.
    on : str or concurrent.futures.Executor, optional
        Where the runs are played, in place of `threads`: "local:4", "ray", "ray://host:port", "dask://host:port", or an
        executor; the bits are the same everywhere.

    Returns
    -------
    list of Outcome
        One per policy, in the same order.

    Raises
    ------
    ConfigError
        If a setting is invalid, a policy cannot play in this world, or the world breaks its own bounds.
    PolicyError
        If a policy of your own fails, with its name, run and round.
    WorkerError
        If the workers of `on` cannot be reached, or were lost too often.

    Examples
    --------
    >>> from surefoot.simulation import ArmsWorld, Baseline
    >>> world = ArmsWorld(actions=3, dim=3, baseline=Baseline(rank=2))
    >>> specs = [Spec("UCB"), Spec("ConservativeUCB", alpha=0.1)]
    >>> [outcome.spec.name for outcome in simulate(world, specs, runs=2, horizon=50)]
    ['UCB', 'ConservativeUCB']
    """
    check_scale(runs, horizon, seed)
    points = default_checkpoints(horizon) if checkpoints is None else checkpoints
    policies = as_specs(specs)
    alphas = sorted({*watched, *(spec.alpha for spec in policies if spec.alpha is not None)})
    for spec in policies:
        spec.check(world)
    tasks = [ChunkTask(world, policies, chunk, horizon, seed, alphas, points) for chunk in chunks_of(runs)]
    with workers_on(on, threads=threads) as executor:
        rounds = [len(task.runs) * horizon * len(policies) for task in tasks]
        answers = reported(completed(executor, tasks), rounds, progress)
        # In the order of the chunks, not of their ends: the place of a run must not depend on workers.
        done = [kept for _, kept in sorted(answers, key=lambda answer: answer[0])]
    return [outcome(spec, points, alphas, [part[i] for part in done]) for i, spec in enumerate(policies)]


def outcome(
    spec: Spec, checkpoints: NDArray[np.int64], watched: Sequence[float], parts: Sequence[NDArray[np.float64]]
) -> Outcome:
    """Join the chunks of one policy."""
    measures = {name: np.concatenate([part[:, :, i] for part in parts]) for i, name in enumerate(MEASURES)}
    violations = np.concatenate([part[:, :, len(MEASURES) :] for part in parts])
    return Outcome(spec, checkpoints, tuple(watched), measures, violations)


def chunks_of(runs: int) -> list[range]:
    """Run numbers, in the order in which tasks take them."""
    return [range(start, min(start + CHUNK, runs)) for start in range(0, runs, CHUNK)]


def _unroll(world: World, realisation: Realisation, horizon: int, blocks: int) -> Iterator[Block]:
    per_round = 1 if world.fixed else world.actions * world.dim
    size = max(1, min(blocks, BLOCK_NUMBERS // per_round))
    for start in range(0, horizon, size):
        yield realisation.take(min(size, horizon - start))
