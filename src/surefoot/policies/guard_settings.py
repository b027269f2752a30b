"""What a guard is told, read and checked: metrics, shares, windows, rewards and actions."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surefoot.arrays import count, finite
from surefoot.errors import AssumptionError, ConfigError
from surefoot.safety.metric import Metric, floor, read_metric

REWARD = "reward"  # the name of the metric where there is but one


def read_metrics(
    alpha: float | None,
    bounds: Sequence[float],
    baseline_ceiling: float | None,
    reserve: float,
    default: float | None,
    metrics: Mapping[str, Any] | None,
) -> dict[str, Metric]:
    """What is promised: of one reward by `alpha`, or of several by `metrics`."""
    if metrics is None:
        if alpha is None:
            raise ConfigError("`alpha` must be given, or `metrics` with one alpha each: the share that may be lost.")
        try:
            low, high = bounds
        except (TypeError, ValueError):
            raise ConfigError(f"`reward_bounds` must be (low, high), but got {bounds!r:.80}.") from None
        return {
            REWARD: floor(low, high, alpha=alpha, baseline_ceiling=baseline_ceiling, default=default, reserve=reserve)
        }
    if alpha is not None or baseline_ceiling is not None or reserve != 0.0 or default is not None:
        raise ConfigError("With `metrics`, alpha, baseline_ceiling, reserve and default belong to each metric.")
    if not isinstance(metrics, Mapping) or not metrics or not all(isinstance(name, str) and name for name in metrics):
        raise ConfigError(f"`metrics` must map names to floors and ceilings, but got {metrics!r:.80}.")
    return {name: read_metric(name, given) for name, given in metrics.items()}


def scaled(name: str, metric: Metric, reward: Mapping[str, Any]) -> float:
    """The reward of a metric as a share of its highest; NaN where it is missing and has no default."""
    if name not in reward:
        return math.nan if metric.default is None else metric.default / metric.high
    value = finite(name, reward[name], hint="Leave a metric out where it is not known: it counts at its worst.")
    if not metric.low <= value <= metric.high:
        raise AssumptionError(
            f"`{metric.low:g} <= {name} <= {metric.high:g}` was declared, but a reward of {value:g} came in. "
            "The promise rests on these bounds: cut the reward to them, or declare wider ones for a new guard."
        )
    return value / metric.high


def read_share(name: str, share: Any) -> float:
    """A share of the rounds, from 0 to 1."""
    value = finite(name, share, hint="It is a share of the rounds.")
    if not 0.0 <= value <= 1.0:
        raise ConfigError(f"`0 <= {name} <= 1` must hold, but got {share!r}.")
    return value


def read_window(name: str, rounds: int | None) -> int | None:
    """A number of rounds, or none."""
    return None if rounds is None else count(name, rounds, hint=f"{name} is a number of rounds.")


def check_word(name: str, word: Any, words: Sequence[Any]) -> None:
    """Raise unless the word is one of those known."""
    if word not in words:
        raise ConfigError(f"`{name}` must be one of {', '.join(map(repr, words))}, but got {word!r:.80}.")


def is_same(baseline: Any, proposal: Any) -> bool:
    """Whether two actions of any kind are equal."""
    if isinstance(baseline, np.ndarray) or isinstance(proposal, np.ndarray):
        return bool(np.array_equal(baseline, proposal))
    return bool(baseline == proposal)
