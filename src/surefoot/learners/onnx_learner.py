"""A model in the ONNX format as a learner: it scores the actions, and the best is proposed. It does not learn."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Vector
from surefoot.errors import ConfigError, InputError, MissingPackageError
from surefoot.learners.learner import StatefulLearner

Feed: TypeAlias = Callable[[Any, Sequence[Any]], ArrayLike]


class OnnxLearner(StatefulLearner):
    """An ONNX Runtime session that scores actions. To swap the model, assign a new `session`.

    Parameters
    ----------
    session : onnxruntime.InferenceSession, path or bytes
        The model. A path or bytes are loaded with `onnxruntime`.
    labels : sequence, optional
        The actions that the model's scores belong to, in their order, as of a classifier. Left out, the model must
        return one score for each action that is offered.
    feed : callable, optional
        Takes context and actions, and returns what the model's input takes. By default the context as one row.
    output : str, optional
        Name of the output with the scores; the last one by default.

    Raises
    ------
    ConfigError
        If the model has several inputs, or no such output.

    Examples
    --------
    >>> import numpy as np
    >>> from skl2onnx import to_onnx
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]], dtype=np.float32)
    >>> model = LogisticRegression().fit(X, [0, 0, 1, 1])
    >>> learner = OnnxLearner(to_onnx(model, X, options={"zipmap": False}).SerializeToString(), labels=["mail", "call"])
    >>> learner.propose([2.5], ["mail", "call"])
    'call'
    """

    def __init__(
        self, session: Any, *, labels: Sequence[Any] | None = None, feed: Feed | None = None, output: str | None = None
    ) -> None:
        self._feed = (lambda context, actions: [context]) if feed is None else feed
        self._places = None if labels is None else {label: place for place, label in enumerate(labels)}
        self._output = output
        self.session = session

    @property
    def session(self) -> Any:
        """The model that proposes."""
        return self._session

    @session.setter
    def session(self, session: Any) -> None:
        model = session if hasattr(session, "run") else _open(session)
        inputs, outputs = model.get_inputs(), [one.name for one in model.get_outputs()]
        if len(inputs) != 1 or (self._output is not None and self._output not in outputs):
            raise ConfigError(
                f"The model must have one input and the output with the scores, {self._output or 'any'}, but has the "
                f"inputs {[one.name for one in inputs]} and the outputs {outputs}."
            )
        self._input, self._dtype = inputs[0].name, np.float64 if "double" in inputs[0].type else np.float32
        self._scores = outputs[-1] if self._output is None else self._output
        self._session = model

    def propose(self, context: Any, actions: Sequence[Any]) -> Any:
        """The action with the highest score, the first of those that are equal; see `Learner.propose`."""
        return actions[int(np.argmax(self.scores(context, actions)))]

    def scores(self, context: Any, actions: Sequence[Any]) -> Vector:
        """What the model says of each action.

        Parameters
        ----------
        context, actions
            As in `Learner.propose`.

        Returns
        -------
        ndarray
            One number per action.

        Raises
        ------
        InputError
            If the model does not score every action, or one of the scores is not finite.
        """
        values = np.asarray(self._feed(context, actions), dtype=self._dtype)
        (output,) = self._session.run([self._scores], {self._input: values})
        scores = np.asarray(output, dtype=np.float64).ravel()
        if self._places is not None and scores.size == len(self._places):
            scores = scores[[self._place(action) for action in actions]]
        if scores.size != len(actions) or not np.isfinite(scores).all():
            raise InputError(
                f"The model must give a finite score for each of {len(actions)} actions, but got {scores}."
            )
        return scores

    def _place(self, action: Any) -> int:
        assert self._places is not None
        if action not in self._places:
            raise InputError(f"Every action must be one of the model's labels, but got {action!r:.80}.")
        return self._places[action]

    def learn(self, context: Any, action: Any, reward: float, probability: float, *, actions: Sequence[Any]) -> None:
        """Learn nothing: the model is as it was trained; see `Learner.learn`."""

    def state(self) -> dict[str, Any]:
        """Nothing: the model is not part of it."""
        return {}

    def restore(self, state: Any) -> None:
        """Nothing to do.

        Parameters
        ----------
        state : mapping
            What `state` returned.
        """


def _open(model: Any) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingPackageError(
            "OnnxLearner needs ONNX Runtime. Install it with: pip install 'surefoot[onnx]'"
        ) from error
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
