"""How ratios are measured: both sides in turn, many times, and the median of the ratios."""

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """A measured ratio and the bar that it must reach."""

    what: str
    ours: float
    theirs: float
    ratio: float
    bar: float

    @property
    def holds(self) -> bool:
        """Whether the bar is reached."""
        return self.ratio >= self.bar

    def row(self) -> str:
        """One line of the table."""
        verdict = "holds" if self.holds else "DOES NOT HOLD"
        ours, theirs = f"{self.ours * 1e6:,.1f}", f"{self.theirs * 1e6:,.1f}"
        return f"{self.what:<62} {ours:>12} {theirs:>12} {self.ratio:>8.2f} {self.bar:>6.1f}  {verdict}"


HEADER = f"{'what (microseconds per round)':<62} {'surefoot':>12} {'plain':>12} {'ratio':>8} {'bar':>6}"


def compare(what: str, ours: Callable[[], float], theirs: Callable[[], float], *, bar: float, turns: int = 9) -> Ratio:
    """Each side returns its seconds per round; a noisy neighbour hits both, so ratios of neighbours count."""
    ours(), theirs()
    pairs = [(_rested(ours), _rested(theirs)) for _ in range(turns)]
    ratio = statistics.median(b / a for a, b in pairs)
    return Ratio(what, statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs), ratio, bar)


def seconds_per_round(play: Callable[[int], None], rounds: int) -> float:
    """Wall time of `rounds` rounds, per round."""
    start = time.perf_counter()
    play(rounds)
    return (time.perf_counter() - start) / rounds


def at_once(callers: Sequence[Callable[[int], None]], rounds: int) -> None:
    """Callers in threads of their own, who share so many rounds; the first error of theirs is raised."""
    with ThreadPoolExecutor(len(callers)) as threads:
        list(threads.map(lambda play: play(rounds // len(callers)), callers))


def _rested(side: Callable[[], float]) -> float:
    # BLAS threads of the other side go on spinning for a while after their last product, and would slow this one down.
    time.sleep(0.15)
    return side()
