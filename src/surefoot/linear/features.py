"""Feature maps phi(x, a): from a context to one feature row per action, with the bound D that each implies.

Pass a map's `dim` and `bound` to a policy as `dim` and `feature_bound`, and its rows to `decide`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, Vector, count, finite_array, positive
from surefoot.errors import AssumptionError, InputError

_TOLERANCE = 1e-12  # rounding allowed when a context is measured against its bound


class FeatureMap(ABC):
    """phi: maps a context to one feature row per action.

    A map of your own defines `dim`, `bound` and `__call__`.
    """

    @property
    @abstractmethod
    def dim(self) -> int:
        """Length of a feature row."""

    @property
    @abstractmethod
    def bound(self) -> float:
        """D: the length that no row exceeds."""

    @abstractmethod
    def __call__(self, context: ArrayLike, /) -> Matrix:
        """One row per action."""


class _Contextual(FeatureMap):
    def __init__(self, context_dim: int, context_bound: float, *, intercept: bool) -> None:
        self.context_dim = count("context_dim", context_dim, hint="context_dim is the length of a context.")
        self.context_bound = positive("context_bound", context_bound, hint="context_bound bounds a context's length.")
        self.intercept = intercept

    def __repr__(self) -> str:
        size = f"context_dim={self.context_dim}, context_bound={self.context_bound:g}, dim={self.dim}"
        return f"{type(self).__name__}(actions={len(self(np.zeros(self.context_dim)))}, {size})"

    def _read(self, context: ArrayLike) -> Vector:
        x = finite_array("context", context, ndim=1)
        if x.size != self.context_dim:
            raise InputError(f"`context` must have {self.context_dim} entries, but got {x.size}.")
        length = float(np.linalg.norm(x))
        if length > self.context_bound * (1 + _TOLERANCE):
            raise AssumptionError(
                f"`||context|| <= context_bound` must hold, but its length is {length:.6g}, which is "
                f"{length - self.context_bound:.3g} more than context_bound={self.context_bound:.6g}. "
                "Rescale contexts or declare a larger bound."
            )
        return np.append(1.0, x) if self.intercept else x


class Shared(_Contextual):
    """phi(x, a) = (1, x, f_a): one theta for all actions, which are described by their own features f_a.

    D = sqrt(1 + context_bound^2 + max ||f_a||^2). The context shifts all actions alike; if it should change which one
    is best, use `Interactions` or `Disjoint`.

    Parameters
    ----------
    action_features : array_like of shape (actions, features)
        One row f_a per action.
    context_dim : int
        Length of a context.
    context_bound : float
        Bound on the Euclidean norm of a context; a longer one raises AssumptionError.
    intercept : bool
        Whether rows begin with a constant 1.

    Raises
    ------
    InputError
        If the action features are empty or not finite.
    ConfigError
        If a dimension or bound is not positive.

    Examples
    --------
    >>> phi = Shared([[1.0], [2.0]], context_dim=2, context_bound=1.0)
    >>> phi([0.6, 0.8])
    array([[1. , 0.6, 0.8, 1. ],
           [1. , 0.6, 0.8, 2. ]])
    >>> phi.dim, round(phi.bound, 4)
    (4, 2.4495)
    """

    def __init__(
        self, action_features: ArrayLike, *, context_dim: int, context_bound: float, intercept: bool = True
    ) -> None:
        super().__init__(context_dim, context_bound, intercept=intercept)
        self.action_features = _read_actions(action_features)

    @property
    def dim(self) -> int:
        """1 + context_dim + features of an action."""
        return int(self.intercept) + self.context_dim + int(self.action_features.shape[1])

    @property
    def bound(self) -> float:
        """sqrt(1 + context_bound^2 + max ||f_a||^2)."""
        return math.hypot(self.intercept, self.context_bound, _longest(self.action_features))  # a bool counts as 1 or 0

    def __call__(self, context: ArrayLike, /) -> Matrix:
        """One row per action."""
        x = self._read(context)
        return np.hstack([np.broadcast_to(x, (len(self.action_features), x.size)), self.action_features])


class Disjoint(_Contextual):
    """phi(x, a) = (0, ..., (1, x), ..., 0): one block, and so one theta, per action.

    D = sqrt(1 + context_bound^2). What is learned about one action says nothing about another.

    Parameters
    ----------
    actions : int
        Number of actions.
    context_dim : int
        Length of a context.
    context_bound : float
        Bound on the Euclidean norm of a context; a longer one raises AssumptionError.
    intercept : bool
        Whether blocks begin with a constant 1.

    Raises
    ------
    ConfigError
        If a number or bound is not positive.

    Examples
    --------
    >>> phi = Disjoint(actions=2, context_dim=1, context_bound=3.0)
    >>> phi
    Disjoint(actions=2, context_dim=1, context_bound=3, dim=4)
    >>> phi([3.0])
    array([[1., 3., 0., 0.],
           [0., 0., 1., 3.]])
    """

    def __init__(self, *, actions: int, context_dim: int, context_bound: float, intercept: bool = True) -> None:
        super().__init__(context_dim, context_bound, intercept=intercept)
        self.actions = count("actions", actions, hint="actions is the number of actions.")

    @property
    def dim(self) -> int:
        """actions x (1 + context_dim)."""
        return self.actions * (self.intercept + self.context_dim)

    @property
    def bound(self) -> float:
        """sqrt(1 + context_bound^2)."""
        return math.hypot(self.intercept, self.context_bound)

    def __call__(self, context: ArrayLike, /) -> Matrix:
        """One row per action."""
        rows: Matrix = np.kron(np.eye(self.actions), self._read(context)).astype(np.float64)
        return rows


class Interactions(_Contextual):
    """phi(x, a) = (1, x) ⊗ (1, f_a): constant, context, action, and every product of the two.

    D = sqrt((1 + context_bound^2) (1 + max ||f_a||^2)), exactly the length of a product.

    Parameters
    ----------
    action_features : array_like of shape (actions, features)
        One row f_a per action.
    context_dim : int
        Length of a context.
    context_bound : float
        Bound on the Euclidean norm of a context; a longer one raises AssumptionError.

    Raises
    ------
    InputError
        If the action features are empty or not finite.
    ConfigError
        If a dimension or bound is not positive.

    Examples
    --------
    >>> phi = Interactions([[2.0], [5.0]], context_dim=1, context_bound=3.0)
    >>> phi([3.0])
    array([[ 1.,  2.,  3.,  6.],
           [ 1.,  5.,  3., 15.]])
    """

    def __init__(self, action_features: ArrayLike, *, context_dim: int, context_bound: float) -> None:
        super().__init__(context_dim, context_bound, intercept=True)
        self.action_features = _read_actions(action_features)

    @property
    def dim(self) -> int:
        """(1 + context_dim) x (1 + features of an action)."""
        return (1 + self.context_dim) * (1 + int(self.action_features.shape[1]))

    @property
    def bound(self) -> float:
        """sqrt((1 + context_bound^2)(1 + max ||f_a||^2))."""
        return math.hypot(1, self.context_bound) * math.hypot(1, _longest(self.action_features))

    def __call__(self, context: ArrayLike, /) -> Matrix:
        """One row per action."""
        x = self._read(context)
        actions = np.hstack([np.ones((len(self.action_features), 1)), self.action_features])
        rows: Matrix = np.einsum("i,aj->aij", x, actions).reshape(len(actions), self.dim)
        return rows


class OneHot(FeatureMap):
    """phi(a) = e_a: plain arms without context. D = 1.

    Parameters
    ----------
    actions : int
        Number of arms.

    Raises
    ------
    ConfigError
        If `actions` is not a positive whole number.

    Examples
    --------
    >>> OneHot(actions=2)()
    array([[1., 0.],
           [0., 1.]])
    """

    def __init__(self, *, actions: int) -> None:
        self.actions = count("actions", actions, hint="actions is the number of arms.")

    @property
    def dim(self) -> int:
        """The number of arms."""
        return self.actions

    @property
    def bound(self) -> float:
        """1."""
        return 1.0

    def __call__(self, context: ArrayLike | None = None, /) -> Matrix:
        """One unit row per arm; a context is ignored."""
        return np.eye(self.actions)


def map_of(actions: Sequence[str], width: int, action_features: Mapping[str, Sequence[float]] | None) -> FeatureMap:
    """The feature map of encoded contexts: products with the actions' own features where there are any."""
    if action_features is not None:
        table = [list(action_features[name]) for name in actions]
        return Interactions(table, context_dim=max(1, width), context_bound=1.0)
    if width == 0:
        return OneHot(actions=len(actions))
    return Disjoint(actions=len(actions), context_dim=width, context_bound=1.0)


def _read_actions(features: ArrayLike) -> Matrix:
    rows = finite_array("action_features", features, ndim=2).copy()
    if rows.size == 0:
        raise InputError(f"`action_features` must hold at least one action and feature, but got shape {rows.shape}.")
    return rows


def _longest(rows: Matrix) -> float:
    return max(math.hypot(*row) for row in rows)
