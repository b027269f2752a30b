"""A new guard from the settings of a request, and what no request may set."""

from collections.abc import Mapping
from typing import Any

from surefoot.experiment.policy_by_name import make_any_policy
from surefoot.policies import Guard, Policy
from surefoot.service.problems import Fault, ProblemError
from surefoot.service.settings import Limits


def new_guard(settings: Mapping[str, Any], limits: Limits) -> Policy | Guard:
    """A guard whose coins come from the system; unknown and missing settings are named."""
    refuse_seed(settings)
    metrics = settings.get("metrics")
    if isinstance(metrics, Mapping) and len(metrics) > limits.dimensions:
        rule = f"at most {limits.dimensions} metrics are taken, but got {len(metrics)}"
        raise ProblemError("invalid", f"In `settings`, {rule}.", [Fault("settings.metrics", rule)])
    return make_any_policy("Guard", settings)


def refuse_seed(settings: Mapping[str, Any]) -> None:
    """Raise where a request would choose the coins."""
    if settings.get("seed") is not None:
        rule = "`seed` must be left out: the promise rests on coins that nobody foresees, so they come from the system."
        raise ProblemError("invalid", rule, [Fault("settings.seed", rule)])
