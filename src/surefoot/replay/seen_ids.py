"""Ids seen so far, in eight bytes each: what is needed to find a duplicate in a log larger than memory."""

import numpy as np
from numpy.typing import NDArray


class SeenIds:
    """64-bit digests of ids in sorted runs of doubling length, so that a million ids cost twenty searches, not a set.

    Two different ids share a digest with a chance of about n^2 / 2^65: 3 in a million for ten million ids.
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.uint64]] = []

    def repeated(self, digests: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of them came before, here or in an earlier call; all are remembered."""
        # Stable, so that of equal ones the first counts as new.
        order = np.argsort(digests, kind="stable")
        ordered = digests[order]
        again = np.zeros(digests.size, dtype=np.bool_)
        again[order[1:]] = ordered[1:] == ordered[:-1]
        for run in self._runs:
            place = np.searchsorted(run, digests)
            # Beyond the end; any entry will do for a comparison that fails.
            place[place == run.size] = 0
            again |= run[place] == digests
        self._remember(ordered)
        return again

    def _remember(self, ordered: NDArray[np.uint64]) -> None:
        if ordered.size:
            self._runs.append(ordered)
        while len(self._runs) > 1 and self._runs[-2].size <= 2 * self._runs[-1].size:
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            merged.sort(kind="stable")
            self._runs.append(merged)
