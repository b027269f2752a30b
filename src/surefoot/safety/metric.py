"""Metrics: what a guard promises of each kind of reward, as a floor or as a ceiling."""

from math import isfinite
from typing import Any, Literal

from surefoot.arrays import finite, fraction, nonnegative
from surefoot.core.native import MetricSettings, log
from surefoot.errors import ConfigError
from surefoot.safety.bank_proof import RATES
from surefoot.values import Value

MetricKind = Literal["floor", "ceiling"]
Promise = Literal["mean", "played"]
KINDS: tuple[MetricKind, ...] = ("floor", "ceiling")
PROMISES: tuple[Promise, ...] = ("mean", "played")


class Metric(Value, frozen=True, eq=True):
    """One kind of reward, its bounds, and what is promised of it. Made by `floor` and `ceiling`.

    Attributes
    ----------
    kind : {"floor", "ceiling"}
        At least (1 - alpha), or at most (1 + alpha), of what the baseline would have brought.
    low, high : float
        Bounds that no single reward leaves; low >= 0.
    alpha : float
        The share at risk.
    baseline_ceiling : float or None
        The most that the baseline earns on average in any round, whatever is known when it is decided; None for `high`.
    default : float or None
        What is booked for a reward that lacks this metric; None books it at its worst.
    reserve : float
        What may be lost in addition, in all.

    Examples
    --------
    >>> import surefoot
    >>> surefoot.floor(0, 1, alpha=0.02).low
    0.0
    """

    kind: MetricKind
    low: float
    high: float
    alpha: float
    baseline_ceiling: float | None = None
    default: float | None = None
    reserve: float = 0.0

    def plain(self) -> dict[str, Any]:
        """Plain data from which `read_metric` makes the same."""
        return {name: getattr(self, name) for name in self.__struct_fields__}

    def settings(self, delta: float, promise: Promise) -> MetricSettings:
        """The numbers that the bank of this metric runs on.

        Parameters
        ----------
        delta : float
            What this metric may spend of delta.
        promise : {"mean", "played"}
            What the floor is kept by.

        Returns
        -------
        MetricSettings
            In units of the highest reward.
        """
        # Two events, the slack and the coins, have half each.
        spent = delta / 2.0 if promise == "played" else delta
        most = self.high if self.baseline_ceiling is None else self.baseline_ceiling
        event = log(RATES / spent)
        return MetricSettings(
            sign=1.0 if self.kind == "floor" else -1.0,
            alpha=self.alpha,
            low=self.low / self.high,
            most_baseline=most / self.high,
            event=event,
            reserve=self.reserve / self.high,
            is_played=promise == "played",
            coin_event=event,
        )


def floor(
    low: float,
    high: float,
    *,
    alpha: float,
    baseline_ceiling: float | None = None,
    default: float | None = None,
    reserve: float = 0.0,
) -> Metric:
    """A metric of which at least (1 - alpha) of the baseline's is promised: quality, clicks, revenue.

    Parameters
    ----------
    low, high : float
        Bounds that no single reward leaves; `0 <= low < high`.
    alpha : float
        The share of the baseline's reward that you accept losing.
    baseline_ceiling : float, optional
        The most that the baseline earns on average in any round, whatever is known when it is decided: its context, the
        proposal, a prediction. An average over visitors is not enough. By default `high`.
    default : float, optional
        What is booked for a reward that lacks this metric; by default the worst.
    reserve : float
        What you accept losing in addition, in all.

    Returns
    -------
    Metric
        For `surefoot.Guard(metrics={...})`.

    Raises
    ------
    ConfigError
        If a number is out of range.

    Examples
    --------
    >>> floor(0, 1, alpha=0.02).kind
    'floor'
    """
    return _checked("floor", low, high, alpha, baseline_ceiling, default, reserve)


def ceiling(low: float, high: float, *, alpha: float, default: float | None = None, reserve: float = 0.0) -> Metric:
    """A metric of which at most (1 + alpha) of the baseline's is promised: latency, refunds, cost.

    Parameters
    ----------
    low, high : float
        Bounds that no single value leaves; `0 <= low < high`.
    alpha : float
        By which share the baseline's may be exceeded.
    default : float, optional
        What is booked for a reward that lacks this metric; by default the worst.
    reserve : float
        What may be exceeded in addition, in all.

    Returns
    -------
    Metric
        For `surefoot.Guard(metrics={...})`.

    Raises
    ------
    ConfigError
        If a number is out of range.

    Examples
    --------
    >>> ceiling(0, 2.5, alpha=0.05).high
    2.5
    """
    return _checked("ceiling", low, high, alpha, None, default, reserve)


def read_metric(name: str, metric: Any) -> Metric:
    """A metric as it was given: one made by `floor` or `ceiling`, or its plain data."""
    if isinstance(metric, Metric):
        return metric
    try:
        fields = dict(metric)
        kind = fields.pop("kind")
    except (TypeError, ValueError, KeyError):
        raise ConfigError(
            f"The metric {name!r} must be a `floor(low, high, alpha=...)` or a `ceiling(...)`, but got {metric!r:.80}."
        ) from None
    unknown = set(fields) - set(Metric.__struct_fields__)
    if kind not in KINDS or unknown or not {"low", "high", "alpha"} <= set(fields):
        raise ConfigError(
            f"The metric {name!r} must have kind 'floor' or 'ceiling', low, high and alpha, but got {metric!r:.120}."
        )
    return _checked(
        kind, fields["low"], fields["high"], fields["alpha"], fields.get("baseline_ceiling"), fields.get("default"),
        fields.get("reserve", 0.0),
    )  # fmt: skip


def _checked(
    kind: MetricKind,
    low: float,
    high: float,
    alpha: float,
    baseline_ceiling: float | None,
    default: float | None,
    reserve: float,
) -> Metric:
    least = nonnegative("low", low, hint="A share of the baseline's reward has a meaning only for rewards >= 0.")
    most = nonnegative("high", high, hint="high is the most that a single reward can be.")
    if not least < most:
        raise ConfigError(f"`low < high` must hold for rewards, but got ({low!r}, {high!r}).")
    fraction("alpha", alpha, hint="alpha is the share of the baseline's that you accept losing; 0.05 keeps 95%.")
    granted = nonnegative("reserve", reserve, hint="reserve is what you accept losing in addition to alpha.")
    if not isfinite(granted / most):
        raise ConfigError(
            f"`reserve / high` must be a finite number, but got {reserve!r} / {high!r}. Declare rewards in larger "
            "units, or a smaller reserve."
        )
    for name, value in (("baseline_ceiling", baseline_ceiling), ("default", default)):
        if value is not None and not least <= finite(name, value, hint="It lies between low and high.") <= most:
            raise ConfigError(f"`low <= {name} <= high` must hold, but got {value!r} for ({least:g}, {most:g}).")
    if kind == "ceiling" and baseline_ceiling is not None:
        raise ConfigError(f"`baseline_ceiling` belongs to a floor, but got {baseline_ceiling!r} for a ceiling.")
    return Metric(
        kind, least, most, float(alpha), None if baseline_ceiling is None else float(baseline_ceiling),
        None if default is None else float(default), float(reserve),
    )  # fmt: skip
