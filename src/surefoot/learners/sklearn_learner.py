"""Any scikit-learn estimator or pipeline that learns in steps, as a learner."""

import inspect
import math
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, Vector, finite, positive, real_array
from surefoot.errors import ConfigError, InputError, MissingPackageError
from surefoot.learners.learner import Proposal, SamplingLearner, StatefulLearner, draw

try:
    from sklearn.base import clone, is_classifier
    from sklearn.pipeline import Pipeline
except ImportError as error:
    raise MissingPackageError(
        "SklearnLearner needs scikit-learn. Install it with: pip install 'surefoot[sklearn]'"
    ) from error


class SklearnLearner(SamplingLearner, StatefulLearner):
    """A scikit-learn estimator with `partial_fit`, or a pipeline that ends in one.

    A classifier learns which action a context asks for: it is fitted to the actions that paid, each weighted by its
    reward over its probability, so that what is played often does not count more. A regressor is copied for each action
    and learns what that action pays; actions that were never played come first.

    Parameters
    ----------
    estimator : estimator or pipeline
        A classifier whose `partial_fit` takes sample_weight, or a regressor. It is copied, not changed. Steps of a
        pipeline with `partial_fit` learn along; others must need no fit.
    actions : sequence
        All actions that there are, each of which can be a key of a dictionary.
    epsilon : float
        The share of proposals that are drawn at random; without any, a classifier sees little that it does not know.
    features : callable, optional
        Takes a context, and returns its row of numbers. By default the context is one.
    max_weight : float
        The largest weight of a round, so that no rare one overturns a classifier.
    seed : int, optional
        Left out, draws come from the system.

    Raises
    ------
    ConfigError
        If the estimator cannot learn in steps, or a setting is invalid.

    Examples
    --------
    >>> from sklearn.linear_model import SGDRegressor
    >>> learner = SklearnLearner(SGDRegressor(random_state=0), actions=["mail", "call"], epsilon=0.1, seed=1)
    >>> for _ in range(100):
    ...     learner.learn([1.0, 0.5], "mail", 0.2, 0.5, actions=["mail", "call"])
    ...     learner.learn([1.0, 0.5], "call", 0.7, 0.5, actions=["mail", "call"])
    >>> learner.propose([1.0, 0.5], ["mail", "call"])
    'call'
    """

    def __init__(
        self,
        estimator: Any,
        *,
        actions: Sequence[Any],
        epsilon: float = 0.05,
        features: Callable[[Any], ArrayLike] | None = None,
        max_weight: float = 20.0,
        seed: int | None = None,
    ) -> None:
        self._classifies = _check_estimator(estimator)
        self._places = {action: place for place, action in enumerate(actions)}
        if not self._places:
            raise ConfigError("`actions` must hold all actions that there are, but it is empty.")
        self._epsilon = read_epsilon(epsilon)
        self._features = (lambda context: context) if features is None else features
        self._max_weight = positive("max_weight", max_weight, hint="max_weight is the largest weight of a round.")
        self._rng = np.random.default_rng(seed)
        self._models = [clone(estimator) for _ in range(1 if self._classifies else len(self._places))]
        self._is_fitted = [False] * len(self._models)

    def propose(self, context: Any, actions: Sequence[Any]) -> Any:
        """The best action by now, or one at random; see `Learner.propose`."""
        return self.sample(context, actions).action

    def sample(self, context: Any, actions: Sequence[Any]) -> Proposal:
        """The same with its probabilities; see `SamplingLearner.sample`."""
        places = [self._place(action) for action in actions]
        row = self._row(context)
        scores = self._class_scores(row)[places] if self._classifies else self._action_scores(row, places)
        return draw(actions, epsilon_greedy(scores, self._epsilon), self._rng)

    def learn(self, context: Any, action: Any, reward: float, probability: float, *, actions: Sequence[Any]) -> None:
        """One step of the estimator; see `Learner.learn`."""
        row, place = self._row(context), self._place(action)
        if not self._classifies:
            _fit_step(self._models[place], row, [reward], {})
            self._is_fitted[place] = True
        elif reward > 0.0:
            weight = min(reward / probability, self._max_weight)
            classes = np.arange(len(self._places))
            _fit_step(self._models[0], row, [place], {"classes": classes, "sample_weight": [weight]})
            self._is_fitted[0] = True

    def _class_scores(self, row: Matrix) -> Vector:
        """What the classifier thinks of each of all actions; the same of all before it has learned anything."""
        if not self._is_fitted[0]:
            return np.zeros(len(self._places))
        if hasattr(self._models[0], "predict_proba"):
            # Every fit names all classes, so the columns are the places of the actions.
            return np.asarray(self._models[0].predict_proba(row)[0], dtype=np.float64)
        return np.asarray(np.arange(len(self._places)) == self._models[0].predict(row)[0], dtype=np.float64)

    def _action_scores(self, row: Matrix, places: list[int]) -> Vector:
        return np.array(
            [float(self._models[one].predict(row)[0]) if self._is_fitted[one] else math.inf for one in places]
        )

    def _row(self, context: Any) -> Matrix:
        return real_array("context", self._features(context), ndim=1)[None, :]

    def _place(self, action: Any) -> int:
        try:
            return self._places[action]
        except (KeyError, TypeError):
            raise InputError(f"Every action must be one of those declared, but got {action!r:.80}.") from None

    def state(self) -> dict[str, Any]:
        """The estimators as pickled bytes, and the generator. Restore only what you have saved yourself."""
        return {"models": pickle.dumps((self._models, self._is_fitted)), "random": self._rng.bit_generator.state}

    def restore(self, state: Any) -> None:
        """Continue from what `state` returned.

        Parameters
        ----------
        state : mapping
            Of a learner that was made with the same arguments; it is unpickled, so it must be one of your own.
        """
        models, is_fitted = pickle.loads(state["models"])
        self._rng.bit_generator.state = state["random"]
        self._models, self._is_fitted = models, is_fitted


def _check_estimator(estimator: Any) -> bool:
    """Whether the estimator classifies; raises unless it can learn in steps."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not hasattr(last, "partial_fit") or not hasattr(last, "predict"):
        raise ConfigError(f"`estimator` must have partial_fit and predict, but got {estimator!r:.80}.")
    classifies = bool(is_classifier(last))
    if classifies and "sample_weight" not in inspect.signature(last.partial_fit).parameters:
        raise ConfigError(f"A classifier's partial_fit must take sample_weight, but that of {last!r:.80} does not.")
    return classifies


def _fit_step(model: Any, row: Matrix, target: list[Any], settings: dict[str, Any]) -> None:
    if not isinstance(model, Pipeline):
        model.partial_fit(row, target, **settings)
        return
    for _, step in model.steps[:-1]:
        if step is None or step == "passthrough":
            continue
        if hasattr(step, "partial_fit"):
            step.partial_fit(row)
        row = step.transform(row)
    model.steps[-1][1].partial_fit(row, target, **settings)


def read_epsilon(epsilon: Any) -> float:
    """A share of proposals that are drawn at random."""
    value = finite("epsilon", epsilon, hint="epsilon is the share of proposals that are drawn at random.")
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"`0 <= epsilon <= 1` must hold, but got {epsilon!r}. 0.05 explores in 5% of the proposals.")
    return value


def epsilon_greedy(scores: Vector, epsilon: float) -> Vector:
    """The best action, in a share epsilon any; those that are equally good share evenly.

    >>> epsilon_greedy(np.array([0.2, 0.9, 0.9, 0.1]), 0.2).tolist()
    [0.05, 0.45, 0.45, 0.05]
    """
    if np.isnan(scores).any():
        raise InputError(f"Every action must have a score, but got {scores}. The model may have seen too little.")
    best = scores == scores.max()
    shares: Vector = epsilon / scores.size + (1.0 - epsilon) * best / best.sum()
    return shares
