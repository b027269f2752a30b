"""Which number a learner learns from, where a guard may watch several metrics."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from surefoot.arrays import finite
from surefoot.errors import ConfigError
from surefoot.hints import nearest
from surefoot.safety.metric import Metric

Combine: TypeAlias = Callable[[Mapping[str, float]], float]

HINT = "It is what the learner maximises."


class LearnerReward:
    """From the rewards of a round to the one number that the learner maximises.

    chosen: a metric's name, or a function of all of them; None where there is but one
    """

    def __init__(self, metrics: Mapping[str, Metric], chosen: str | Combine | None) -> None:
        self._metrics = metrics
        self._combine = chosen if callable(chosen) else None
        self._name = next(iter(metrics))
        if self._combine is None:
            self._name = self._read_name(chosen)
        # Of a round whose reward never came; None where nothing was declared for it.
        is_declared = all(metric.default is not None for metric in metrics.values())
        self.default = self.read({}) if is_declared else None

    def _read_name(self, chosen: Any) -> str:
        names = ", ".join(self._metrics)
        if chosen is None and len(self._metrics) > 1:
            raise ConfigError(f"`reward` must say which metric the learner maximises: one of {names}, or a function.")
        name = self._name if chosen is None else chosen
        if name not in self._metrics:
            raise ConfigError(f"`reward` must be one of {names}, but got {name!r:.80}. {nearest(str(name), names)}")
        if self._metrics[name].kind == "ceiling":
            raise ConfigError(
                f"A learner maximises, but {name!r} has a ceiling. "
                f"Give a function, such as reward=lambda rewards: 1 - rewards[{name!r}]."
            )
        return str(name)

    def read(self, reward: Any) -> float | None:
        """The learner's number, or None where its metric is missing and has no default."""
        given = reward if isinstance(reward, Mapping) else {next(iter(self._metrics)): reward}
        rewards = {name: one.default for name, one in self._metrics.items() if one.default is not None} | dict(given)
        if self._combine is not None:
            return finite("reward", self._combine(rewards), hint=HINT)
        return finite("reward", rewards[self._name], hint=HINT) if self._name in rewards else None
