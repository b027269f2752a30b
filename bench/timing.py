"""How ratios are measured: both sides in turn, many times, and the median of the ratios."""

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class Ratio:
    """A measured ratio and the bar that it must reach, if there is one."""

    what: str
    ours: float
    theirs: float
    ratio: float
    bar: float | None

    @property
    def holds(self) -> bool:
        """Whether the bar is reached; without one, yes."""
        return self.bar is None or self.ratio >= self.bar

    def row(self) -> str:
        """One line of the table."""
        bar = "" if self.bar is None else f"{self.bar:.1f}"
        verdict = "" if self.bar is None else "holds" if self.holds else "DOES NOT HOLD"
        ours, theirs = f"{self.ours * 1e6:,.1f}", f"{self.theirs * 1e6:,.1f}"
        return f"{self.what:<76} {ours:>12} {theirs:>12} {self.ratio:>8.2f} {bar:>6}  {verdict}".rstrip()


HEADER = f"{'what (microseconds per round)':<76} {'surefoot':>12} {'plain':>12} {'ratio':>8} {'bar':>6}"


def compare(
    what: str, ours: Callable[[], float], theirs: Callable[[], float], *, bar: float | None, turns: int = 9
) -> Ratio:
    """Each side returns its seconds per round; a noisy neighbour hits both, so ratios of neighbours count."""
    ours(), theirs()
    pairs = [(_rested(ours), _rested(theirs)) for _ in range(turns)]
    ratio = statistics.median(b / a for a, b in pairs)
    return Ratio(what, statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs), ratio, bar)


def one_core() -> AbstractContextManager[object]:
    """Keep NumPy's BLAS to one core, as surefoot's own steps are."""
    limits: AbstractContextManager[object] = threadpool_limits(1)
    return limits


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
