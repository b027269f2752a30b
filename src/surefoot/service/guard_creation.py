"""A new guard from the settings of a request."""

from collections.abc import Mapping
from typing import Any

from surefoot.errors import ConfigError, SurefootError
from surefoot.policies import Guard
from surefoot.service.problems import Fault, ProblemError
from surefoot.service.settings import Limits


def new_guard(settings: Mapping[str, Any], limits: Limits) -> Guard:
    """A guard whose coins come from the system; unknown and missing settings are named."""
    if settings.get("seed") is not None:
        rule = "`seed` must be left out: the promise rests on coins that nobody foresees, so they come from the system."
        raise ProblemError("invalid", rule, [Fault("settings.seed", rule)])
    metrics = settings.get("metrics")
    if isinstance(metrics, Mapping) and len(metrics) > limits.dimensions:
        rule = f"at most {limits.dimensions} metrics are taken, but got {len(metrics)}"
        raise ProblemError("invalid", f"In `settings`, {rule}.", [Fault("settings.metrics", rule)])
    try:
        return Guard(**settings)
    except SurefootError:
        raise
    except (TypeError, ValueError) as error:
        text = str(error).split(")", 1)[-1].strip() or str(error)
        raise ConfigError(f"`settings` must be those of Guard: {text}.") from None
