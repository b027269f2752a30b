"""Feature rows of many contexts at once, from the feature maps of the library."""

import math

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix
from surefoot.linear.features import Disjoint, FeatureMap, OneHot


class RowMaker:
    """phi(x, a) for a block of contexts.

    Every map of the library is affine in the context, and so known from its own values at 0 and along each axis; with
    steps that are powers of two the block is equal to the map to the last bit. A map that is not affine is called row
    by row. Rows of `Disjoint` are zeros but for one block, and are written as such: their planes would be as large as
    the cube of what they hold.

    >>> from surefoot import Disjoint
    >>> RowMaker(Disjoint(actions=2, context_dim=1, context_bound=1.0), 1)(np.array([[0.5], [0.25]]))[1]
    array([[1.  , 0.25, 0.  , 0.  ],
           [0.  , 0.  , 1.  , 0.25]])
    """

    def __init__(self, phi: FeatureMap, context_dim: int) -> None:
        self.phi = phi
        self._context_dim = 0 if isinstance(phi, OneHot) else context_dim
        if type(phi) is Disjoint:
            self.is_affine = True
            return
        origin = self._one(np.zeros(self._context_dim))
        self._shape = origin.shape
        step = 2.0 ** math.floor(math.log2(getattr(phi, "context_bound", 1.0)))
        axes = [(self._one(step * axis) - origin) / step for axis in np.eye(self._context_dim)]
        self._planes = np.stack([origin, *axes]).reshape(1 + self._context_dim, -1)
        probe = np.full(self._context_dim, 0.3 * step / math.sqrt(max(1, self._context_dim)))
        self.is_affine = bool(np.array_equal(self._block(probe.reshape(1, -1))[0], self._one(probe)))

    def _one(self, context: NDArray[np.float64]) -> Matrix:
        return self.phi() if isinstance(self.phi, OneHot) else self.phi(context)

    def _block(self, contexts: Matrix) -> NDArray[np.float64]:
        with_one = np.hstack([np.ones((len(contexts), 1)), contexts])
        return (with_one @ self._planes).reshape(len(contexts), *self._shape)

    @property
    def blocks(self) -> int:
        """How many blocks hold the same context, one for each action; 0 where rows are made in another way."""
        return self.phi.actions if type(self.phi) is Disjoint else 0

    def contexts(self, contexts: Matrix) -> NDArray[np.float64]:
        """What stands in every block, (rounds, 1, width)."""
        assert type(self.phi) is Disjoint
        return np.ascontiguousarray(self._one_block(contexts, self.phi)[:, None])

    @staticmethod
    def _one_block(contexts: Matrix, phi: Disjoint) -> Matrix:
        return np.hstack([np.ones((len(contexts), 1)), contexts]) if phi.intercept else contexts

    @classmethod
    def _disjoint(cls, contexts: Matrix, phi: Disjoint) -> NDArray[np.float64]:
        block = cls._one_block(contexts, phi)
        rows = np.zeros((len(contexts), phi.actions, phi.dim))
        for action in range(phi.actions):
            start = action * block.shape[1]
            rows[:, action, start : start + block.shape[1]] = block
        return rows

    def __call__(self, contexts: Matrix) -> NDArray[np.float64]:
        """(rounds, actions, dim)."""
        contexts = contexts[:, : self._context_dim]
        if type(self.phi) is Disjoint:
            return self._disjoint(contexts, self.phi)
        if self.is_affine:
            return np.ascontiguousarray(self._block(contexts))
        return np.stack([self._one(context) for context in contexts])
