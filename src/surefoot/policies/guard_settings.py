"""A guard's settings and inputs, read and checked: metrics, shares, windows, rewards and actions."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surefoot.arrays import count, finite, fraction
from surefoot.errors import AssumptionError, ConfigError, InputError
from surefoot.safety.metric import Metric, floor, read_metric

LEAST_DELTA, LEAST_HOLDOUT = 1e-100, 1e-6
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
    return {name: read_metric(name, promise) for name, promise in metrics.items()}


def scaled(name: str, metric: Metric, reward: Mapping[str, Any]) -> float:
    """The reward of a metric as a share of its highest; NaN where it is missing and has no default, or None."""
    if name not in reward:
        return math.nan if metric.default is None else metric.default / metric.high
    if reward[name] is None:
        return math.nan
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
    if type(baseline) is str and type(proposal) is str:
        return baseline == proposal
    if isinstance(baseline, np.ndarray) or isinstance(proposal, np.ndarray):
        return bool(np.array_equal(baseline, proposal))
    try:
        # True == 1 in Python, and yet they are different actions.
        return isinstance(baseline, bool) == isinstance(proposal, bool) and bool(baseline == proposal)
    except ValueError:
        both = f"{baseline!r:.50} and {proposal!r:.50}"
        raise InputError(f"Actions must be comparable, but {both} are not. Name them by ids.") from None


def check_names(what: str, values: Mapping[str, Any], metrics: Mapping[str, Metric]) -> None:
    """Raise if a reward or a prediction names something that is not a metric."""
    unknown = [name for name in values if name not in metrics]
    if unknown:
        raise InputError(
            f"A {what} may name {', '.join(metrics)}, but got {unknown[0]!r:.80}. "
            'Of several metrics give a mapping such as {"quality": 0.9, "cost": 0.2}.'
        )


def check_units(metrics: Mapping[str, Metric], unit_window: int | None, settle_after: int | None) -> None:
    """Raise where units cannot be settled by their window, or what they earn leaves the bounds."""
    if unit_window is None:
        return
    if settle_after is not None:
        raise ConfigError("A unit is settled by `unit_window`: leave `settle_after` out, or the units.")
    costs = [name for name, metric in metrics.items() if metric.kind == "ceiling"]
    if costs:
        raise ConfigError(
            "A unit without a reward counts as 0, the best possible cost, so a ceiling needs a reward for every round, "
            f"but {costs[0]!r} is one. Leave `unit_window` out."
        )
    lifted = [name for name, metric in metrics.items() if metric.low > 0.0]
    if lifted:
        raise ConfigError(
            f"A unit without a reward counts as 0, so `low` must be 0 with `unit_window`, but {lifted[0]!r} has "
            f"low={metrics[lifted[0]].low:g}."
        )


def read_delta(delta: float) -> float:
    """The probability of failure."""
    value = fraction("delta", delta, hint="delta is the probability that the promise may fail.")
    if value < LEAST_DELTA:
        raise ConfigError(f"`delta >= {LEAST_DELTA:g}` must hold, but got {delta!r}.")
    return value


def read_holdout(share: float) -> float:
    """The least share of the baseline."""
    value = fraction("min_holdout", share, hint="min_holdout is what the baseline keeps; 0.02 is 2%.")
    if value < LEAST_HOLDOUT:
        raise ConfigError(
            f"`min_holdout >= {LEAST_HOLDOUT:g}` must hold, but got {share!r}. Without a holdout nothing is learned of "
            "the baseline."
        )
    return value


def read_prediction(
    prediction: float | Mapping[str, float] | None, metrics: Mapping[str, Metric]
) -> list[float] | None:
    """What is predicted of the baseline's rewards, as shares of the highest; NaN where nothing is said."""
    if prediction is None:
        return None
    if not isinstance(prediction, Mapping):
        # Of several metrics a bare number belongs to none, which `check_names` says.
        prediction = {next(iter(metrics)) if len(metrics) == 1 else "": prediction}
    check_names("prediction", prediction, metrics)
    hint = "It is the reward you expect of the baseline."
    numbers = {name: finite("prediction", value, hint=hint) for name, value in prediction.items()}
    return [
        # Cut, not refused: it changes the variance, not the validity.
        min(max(numbers[name], metric.low), metric.high) / metric.high if name in numbers else math.nan
        for name, metric in metrics.items()
    ]


def read_rewards(reward: Any, metrics: Mapping[str, Metric]) -> tuple[float, ...]:
    """A reward as one number for each metric, as shares of the highest; NaN where it is missing."""
    if not isinstance(reward, Mapping):
        if len(metrics) > 1:
            raise InputError(
                f"A reward must name its metrics, {', '.join(metrics)}, but got {reward!r:.80}. "
                'Give a mapping such as {"quality": 0.9, "cost": 0.2}.'
            )
        reward = {next(iter(metrics)): reward}
    check_names("reward", reward, metrics)
    return tuple(scaled(name, metric, reward) for name, metric in metrics.items())


def check_coin(share: float, draw: float, source: str, *, most: float, is_drawn: bool) -> None:
    """Raise unless a round can have been played like this; where actions are equal no coin is drawn."""
    is_coin = 0.0 <= draw < 1.0 and is_drawn if share > 0.0 else math.isnan(draw)
    if not (0.0 <= share <= most and is_coin and source == ("learner" if draw < share else "baseline")):
        raise InputError(f"A coin of {draw!r} at a share of {share!r} cannot have been played by the {source}.")
