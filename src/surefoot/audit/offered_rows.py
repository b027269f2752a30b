"""Which action rows were ever offered: what a declared range may be applied to."""

import numpy as np

from surefoot.audit.compensated_sums import Matrix, Vector


class OfferedRows:
    """A set of rows in eight bytes each, by Python's salted hash: nobody can prepare a row that collides."""

    def __init__(self) -> None:
        self._recent: set[int] = set()
        self._old = np.zeros(0, dtype=np.int64)
        self._last: bytes | None = None

    def add(self, rows: Matrix) -> None:
        """Note every row of a round; a catalogue that stays the same costs nothing."""
        data = rows.tobytes()
        if data == self._last:
            return
        self._last = data
        # Adding 0.0 turns -0.0 into 0.0: rows that are equal must have equal bytes.
        self._recent.update(hash(row.tobytes()) for row in rows + 0.0)
        if len(self._recent) > 65536 + self._old.size // 4:
            merged = np.concatenate([self._old, np.fromiter(self._recent, dtype=np.int64)])
            self._old, self._recent = np.unique(merged), set()

    def __contains__(self, row: Vector) -> bool:
        key = hash((row + 0.0).tobytes())
        at = int(np.searchsorted(self._old, key))
        return key in self._recent or (at < self._old.size and int(self._old[at]) == key)
