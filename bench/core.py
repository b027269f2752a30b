"""One decide and observe of CLUCB against plain NumPy versions of the same policy, in one run; and the first round."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle

import numpy as np

import surefoot
from bench.plain import Array, CachedCLUCB, PlainCLUCB, TextbookCLUCB, settings
from bench.timing import HEADER, Ratio, compare, one_core, seconds_per_round

FIRST_BAR = 0.7


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

    def plain(self, rounds: int, make: Callable[..., PlainCLUCB] = PlainCLUCB) -> Callable[[], float]:
        """A measurement of NumPy's side, in seconds per round."""
        policy = make(**settings(self.dim, self.bound))
        stream = self.rounds()

        def play(count: int) -> None:
            for _ in range(count):
                rows, means = next(stream)
                action, is_learner = policy.decide(rows, 3, means[3])
                policy.observe(rows[action], is_learner, means[action] + 0.01)

        return lambda: seconds_per_round(play, rounds)


def ratios() -> list[Ratio]:
    """Fresh rows at three sizes, then a catalogue; each side on one core, but for the line that says otherwise."""
    found = []
    for actions, dim, bar, rounds in [(100, 4, 4.0, 2000), (20, 50, 4.0, 1000), (1000, 128, 2.5, 150)]:
        stage = Stage(actions, dim, fixed=False)
        what = f"decide + observe, {actions} actions x {dim} dims, changing features"
        ours = stage.ours(rounds)
        with one_core():
            found.append(compare(what, ours, stage.plain(rounds), bar=bar, turns=11))
            textbook = stage.plain(rounds, TextbookCLUCB)
            found.append(compare("  against NumPy before profiling", ours, textbook, bar=None, turns=11))
    # The last of the three: BLAS shares its product among all cores, which our step does not.
    found.append(compare("  against NumPy on all cores", ours, stage.plain(rounds), bar=1.0, turns=11))
    return found + catalogue_ratios()


def catalogue_ratios() -> list[Ratio]:
    """Rows that stay the same: against scoring all of them anew in every round, and against keeping their scores."""
    stage = Stage(1000, 128, fixed=True)
    ours = stage.ours(1000)
    what = "decide + observe, 1000 actions x 128 dims, catalogue"
    with one_core():
        anew = compare(f"{what}, NumPy scores anew", ours, stage.plain(150), bar=30.0, turns=11)
        kept = stage.plain(1000, partial(CachedCLUCB, stage.draws[0]))
        return [anew, compare("  against NumPy that keeps the scores", ours, kept, bar=None, turns=11)]


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


LINEAR = "dim=2, delta=.1, noise=1., ridge=1., theta_bound=1., feature_bound=1."
ROUND = "d = p.decide([[1., 0.], [0., 1.]], baseline=0); p.observe(d, .5)"
GUARDED = "d = p.decide(baseline=[1., 0.], proposal=[0., 1.]); p.observe(d, .5)"
FIRST = {
    "LUCB": f"p = surefoot.LUCB({LINEAR}); {ROUND}",
    "CLUCB": f"p = surefoot.CLUCB({LINEAR}, alpha=.1); {ROUND.replace('=0)', '=0, baseline_reward=.5)')}",
    "CLUCB2, exact": f"p = surefoot.CLUCB2({LINEAR}, alpha=.1); {ROUND}",
    "CLUCB2, latest": f"p = surefoot.CLUCB2({LINEAR}, alpha=.1, nesting='latest'); {ROUND}",
    "SafeLUCB": f"p = surefoot.SafeLUCB({LINEAR}, alpha=.1, reward_range=(0, 1)); {ROUND}",
    "SafeLUCB, residual": f"p = surefoot.SafeLUCB({LINEAR}, alpha=.1, radius='residual'); {ROUND}",
    "SafeLUCB, catalogue": f"p = surefoot.SafeLUCB({LINEAR}, alpha=.1); "
    + ROUND.replace("[[1., 0.], [0., 1.]]", "surefoot.Catalogue([[1., 0.], [0., 1.]])"),
    "UCB": f"p = surefoot.UCB(arms=2); {ROUND}",
    "ConservativeUCB": f"p = surefoot.ConservativeUCB(arms=2, alpha=.1, delta=.1); {ROUND}",
    "Guard": f"p = surefoot.Guard(alpha=.1, delta=.05); {GUARDED}",
}


def fresh_process(code: str, *, turns: int = 7) -> float:
    """Seconds of an interpreter that runs this and ends; one reading where that takes longer than three seconds."""
    taken = list[float]()
    while len(taken) < turns and max(taken, default=0.0) < 3.0:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def first_decisions() -> bool:
    """Seconds from the start of a process to the end of a policy's first round, for every policy."""
    for what, code in [
        ("a bare interpreter", "pass"),
        ("import numpy", "import numpy"),
        ("import surefoot", "import surefoot"),
        ("from surefoot import CLUCB", "from surefoot import CLUCB"),
    ]:
        print(f"{what:<50} {fresh_process(code):.3f} s")
    holds = True
    for name, code in FIRST.items():
        seconds = fresh_process(f"import surefoot; {code}")
        holds &= seconds < FIRST_BAR
        verdict = "holds" if seconds < FIRST_BAR else "DOES NOT HOLD"
        print(f"{f'import and first round, {name}':<50} {seconds:.3f} s (bar {FIRST_BAR} s)  {verdict}")
    return holds


def main() -> bool:
    """Print everything; true where every bar holds."""
    found = ratios()
    print(HEADER)
    for ratio in found:
        print(ratio.row())
    print(growth())
    return first_decisions() and all(ratio.holds for ratio in found)
