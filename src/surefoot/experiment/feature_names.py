"""What the weights of a linear policy, or the arms of another, are called."""

from collections.abc import Sequence

from surefoot.errors import ConfigError
from surefoot.experiment.experiment_toml import configuration_in
from surefoot.experiment.question import read_text
from surefoot.linear.encoding import Encoder
from surefoot.linear.features import FeatureMap, Interactions, OneHot
from surefoot.policies.base_policy import BasePolicy
from surefoot.records import Created

LONGEST = 200  # characters
ALWAYS = "always"  # the weight that counts in every context


def read_feature_names(names: Sequence[str] | None, policy: BasePolicy, *, is_configured: bool) -> list[str] | None:
    """The names as the journal keeps them: one for each weight or arm."""
    if names is None:
        return None
    if is_configured:
        raise ConfigError("`feature_names` must be left out where a configuration is given, which names its columns.")
    size = policy.settings.get("dim", policy.settings.get("arms"))
    if size is None:
        raise ConfigError(f"`feature_names` are for policies with features or arms, but got {type(policy).__name__}.")
    found = [] if isinstance(names, str) else [read_text("feature_names", name) for name in names]
    if (
        len(found) != size
        or len(set(found)) != size
        or not all(name.strip() and len(name) <= LONGEST for name in found)
    ):
        raise ConfigError(
            f"`feature_names` must be {size} different names of 1 to {LONGEST} characters, one for each feature or "
            f"arm, but got {names!r:.200}."
        )
    return found


def feature_names(created: Created) -> list[str] | None:
    """The names that were given, or those of the configuration's columns; None where there are none."""
    if created.configuration is not None:
        told = configuration_in(created.configuration)
        return column_names(told.phi, told.actions, told.encoder)
    return created.feature_names


def column_names(phi: FeatureMap, actions: Sequence[str], encoder: Encoder) -> list[str]:
    """One name for each weight, in the order of the rows.

    >>> from surefoot.linear.encoding import NumericColumn
    >>> from surefoot.linear.features import Disjoint
    >>> phi, encoder = Disjoint(actions=2, context_dim=1, context_bound=1.0), Encoder((NumericColumn("age", 20, 60),))
    >>> column_names(phi, ("red", "blue"), encoder)
    ['red, always', 'red, age', 'blue, always', 'blue, age']
    """
    context = [ALWAYS, *encoder.names]
    if isinstance(phi, OneHot):
        return list(actions)
    if isinstance(phi, Interactions):
        own = [f"feature {place} of the action" for place in range(1, phi.action_features.shape[1] + 1)]
        # A map needs a context; where there is none it has one column that is always 0.
        context = context if len(context) > 1 else [ALWAYS, "no context"]
        return [name if not action else f"{name} x {action}" for name in context for action in ["", *own]]
    return [f"{action}, {name}" for action in actions for name in context]
