"""One decide and observe of CLUCB against the plain NumPy version of the same policy, in one run."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import cycle

import numpy as np

import surefoot
from bench.plain import Array, PlainCLUCB, settings
from bench.timing import HEADER, Ratio, compare, seconds_per_round


class Stage:
    """Features, mean rewards and two policies that play them."""

    def __init__(self, actions: int, dim: int, *, fixed: bool) -> None:
        rng = np.random.default_rng(0)
        theta = np.abs(rng.normal(size=dim))
        theta /= np.linalg.norm(theta)
        self.draws = [np.abs(rng.normal(size=(actions, dim))) for _ in range(1 if fixed else 8)]
        self.bound = float(max(np.linalg.norm(rows, axis=1).max() for rows in self.draws))
        self.means = [(rows @ theta).tolist() for rows in self.draws]
        self.dim, self.fixed = dim, fixed

    def rounds(self) -> Iterator[tuple[Array, list[float]]]:
        """Features and mean rewards, over and over."""
        return cycle(zip(self.draws, self.means, strict=True))

    def ours(self, rounds: int) -> Callable[[], float]:
        """A measurement of surefoot's side, in seconds per round."""
        policy = surefoot.CLUCB(**settings(self.dim, self.bound))
        catalogue = surefoot.Catalogue(self.draws[0])
        stream = self.rounds()

        def play(count: int) -> None:
            for _ in range(count):
                rows, means = next(stream)
                decision = policy.decide(catalogue if self.fixed else rows, baseline=3, baseline_reward=means[3])
                policy.observe(decision, means[decision.action] + 0.01)

        return lambda: seconds_per_round(play, rounds)

    def plain(self, rounds: int, *, blas: bool) -> Callable[[], float]:
        """A measurement of NumPy's side, in seconds per round."""
        policy = PlainCLUCB(**settings(self.dim, self.bound), blas=blas)
        stream = self.rounds()

        def play(count: int) -> None:
            for _ in range(count):
                rows, means = next(stream)
                action, is_learner = policy.decide(rows, 3, means[3])
                policy.observe(rows[action], is_learner, means[action] + 0.01)

        return lambda: seconds_per_round(play, rounds)


def ratios() -> list[Ratio]:
    """The four sizes of the bar; at 1000 x 128 the plain side is the faster of its two forms."""
    found = []
    for actions, dim, fixed, bar, rounds in [
        (100, 4, False, 3.0, 2000),
        (20, 50, False, 3.0, 1000),
        (1000, 128, False, 1.0, 150),
        (1000, 128, True, 8.0, 1000),
    ]:
        stage = Stage(actions, dim, fixed=fixed)
        what = f"decide + observe, {actions} actions x {dim} dims, {'catalogue' if fixed else 'changing features'}"
        found.append(compare(what, stage.ours(rounds), stage.plain(rounds, blas=dim >= 100), bar=bar, turns=11))
    return found


def growth() -> str:
    """Cost per round early and late in a long run: it must not grow with the number of rounds."""
    stage = Stage(100, 4, fixed=False)
    play = stage.ours(2000)
    play()
    early = statistics.median(play() for _ in range(5))
    for _ in range(60):
        play()
    late = statistics.median(play() for _ in range(5))
    return f"cost per round after 130,000 rounds / after 10,000 rounds: {late / early:.2f} (1 = it does not grow)"


def import_times() -> str:
    """Seconds that importing takes in a fresh process, and that a first decision takes with machine code cached."""
    lines = []
    decide = (
        "p = surefoot.CLUCB(dim=2, alpha=.1, delta=.1, noise=1., ridge=1., theta_bound=1., feature_bound=1.);"
        "p.decide([[1., 0.]], baseline=0, baseline_reward=.5)"
    )
    for what, code in [
        ("a bare interpreter", "pass"),
        ("import numpy", "import numpy"),
        ("import surefoot", "import surefoot"),
        ("from surefoot import CLUCB", "from surefoot import CLUCB"),
        ("... and a first decision, machine code cached", f"import surefoot; {decide}"),
    ]:
        taken = []
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            taken.append(time.perf_counter() - start)
        lines.append(f"{what:<50} {statistics.median(taken):.3f} s")
    return "\n".join(lines)


def main() -> bool:
    """Print everything; true where every bar holds."""
    found = ratios()
    print(HEADER)
    for ratio in found:
        print(ratio.row())
    print(growth())
    print(import_times())
    return all(ratio.holds for ratio in found)
