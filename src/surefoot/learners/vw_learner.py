"""A Vowpal Wabbit workspace as a learner: contextual bandits over actions with features, exploration included."""

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.errors import ConfigError, MissingPackageError
from surefoot.learners.learner import Proposal, SamplingLearner, StatefulLearner, draw, position_of

try:
    import vowpalwabbit
except ImportError as error:
    raise MissingPackageError("VWLearner needs Vowpal Wabbit: pip install 'surefoot[vw]'") from error

RESERVED = re.compile(r"[\s:|]")  # what separates features, values and namespaces
CONTEXT, ACTION = "c", "a"


class VWLearner(SamplingLearner, StatefulLearner):
    """A Vowpal Wabbit workspace with `--cb_explore_adf`, such as `--squarecb`.

    Its own exploration stays inside the proposal. For what was played it is told the probability over both draws,
    its own and the guard's coin: p(action) = share q(action) + (1 - share) [action is the baseline's], where q is what
    the workspace predicted. That is the propensity which makes its importance weights honest; q alone would not be.
    Costs are negative rewards.

    Contexts and actions are mappings, rows of numbers or single values. Those of the context form the namespace `c`,
    those of an action `a`; `-q ca` lets them interact.

    Parameters
    ----------
    workspace : vowpalwabbit.Workspace or str
        A workspace, or the arguments of a new one.
    seed : int, optional
        Of the draws. Left out, they come from the system.

    Raises
    ------
    ConfigError
        If the workspace does not return probabilities of actions.

    Examples
    --------
    >>> learner = VWLearner("--cb_explore_adf --squarecb -q ca --quiet", seed=1)
    >>> for _ in range(200):
    ...     learner.learn({"hour": 9}, "mail", 0.1, 0.5, actions=["mail", "call"])
    ...     learner.learn({"hour": 9}, "call", 0.9, 0.5, actions=["mail", "call"])
    >>> mail, call = learner.sample({"hour": 9}, ["mail", "call"]).probabilities
    >>> call > 0.8
    True
    """

    def __init__(self, workspace: Any, *, seed: int | None = None) -> None:
        self.workspace = vowpalwabbit.Workspace(workspace) if isinstance(workspace, str) else workspace
        kind = self.workspace.get_prediction_type()
        if kind != self.workspace.pACTION_PROBS:
            raise ConfigError("The workspace must predict probabilities of actions: give it --cb_explore_adf.")
        self._arguments = workspace if isinstance(workspace, str) else self.workspace.get_arguments()
        self._rng = np.random.default_rng(seed)

    def propose(self, context: Any, actions: Sequence[Any]) -> Any:
        """An action, drawn as the workspace explores; see `Learner.propose`."""
        return self.sample(context, actions).action

    def sample(self, context: Any, actions: Sequence[Any]) -> Proposal:
        """The same with its probabilities; see `SamplingLearner.sample`."""
        return draw(actions, self.workspace.predict(examples(context, actions)), self._rng)

    def learn(self, context: Any, action: Any, reward: float, probability: float, *, actions: Sequence[Any]) -> None:
        """One step of the workspace, with the cost -reward; see `Learner.learn`."""
        lines = examples(context, actions)
        played = 1 + position_of(actions, action)  # after the line that all share
        # The line says which action it is: with --cb_explore_adf the number before the cost does not.
        lines[played] = f"0:{-reward:.9g}:{probability:.9g} {lines[played]}"
        self.workspace.learn(lines)

    def state(self) -> dict[str, Any]:
        """The model as Vowpal Wabbit writes it, and the generator of the draws."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.vw"
            self.workspace.save(str(path))
            return {"model": path.read_bytes(), "random": self._rng.bit_generator.state}

    def restore(self, state: Any) -> None:
        """Continue from what `state` returned.

        Parameters
        ----------
        state : mapping
            Of a learner with the same arguments.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.vw"
            path.write_bytes(state["model"])
            self.workspace = vowpalwabbit.Workspace(f"{self._arguments} -i {path}")
        self._rng.bit_generator.state = state["random"]


def examples(context: Any, actions: Sequence[Any]) -> list[str]:
    """A round in Vowpal Wabbit's text format: one line that all actions share, and one for each.

    >>> examples({"hour": 9, "city": "New York"}, ["mail", {"price": 2.5}])
    ['shared |c hour:9 city=New_York', '|a value=mail', '|a price:2.5']
    """
    return [f"shared |{CONTEXT} {feature_text(context)}", *(f"|{ACTION} {feature_text(action)}" for action in actions)]


def feature_text(value: Any) -> str:
    """Features in Vowpal Wabbit's text format: numbers by their size, all else by name.

    >>> feature_text([0.5, 0, -2]), feature_text("a|b:c"), feature_text(None)
    ('0:0.5 2:-2', 'value=a_b_c', '')
    """
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return " ".join(_feature(str(name), one) for name, one in value.items())
    if isinstance(value, (list, tuple, np.ndarray)):
        return " ".join(_feature(str(name), one) for name, one in enumerate(value) if one != 0)
    return f"value={_plain(value)}"


def _feature(name: str, value: Any) -> str:
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    return f"{_plain(name)}:{float(value):.9g}" if is_number else f"{_plain(name)}={_plain(value)}"


def _plain(value: Any) -> str:
    return RESERVED.sub("_", str(value))
