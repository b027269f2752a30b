"""Which policies `surefoot replay` plays, and what each is told."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from surefoot.arrays import positive
from surefoot.errors import ConfigError
from surefoot.experiment.experiment_toml import Configuration
from surefoot.hints import nearest
from surefoot.replay.guarded_lucb import EXPLORATION, GUARD
from surefoot.replay.replayed_policy import PLAYABLE
from surefoot.simulation.policy_specs import Spec

FREE = "LUCB"


def bounds_known(evaluator: str, range_: tuple[float, float] | None) -> dict[str, Any]:
    """What SafeLUCB may know of rewards within a range: their bounds, or that of their means.

    Beside another strategy it is taught by rows that it did not play, which its set by likelihood does not take in.
    """
    return {} if range_ is None else {"reward_range" if evaluator == "importance" else "reward_bounds": range_}


def specs_of(
    policies: Sequence[str] | None,
    told: Configuration | None,
    alphas: Sequence[float],
    exploration: float | None,
    bounds: tuple[float, float] | None,
    **known: Any,
) -> list[Spec]:
    """The linear policies by name; LUCB both with the radius for which its regret is bounded and as it is often run."""
    specs, shared = list[Spec](), {name: known[name] for name in ("delta", "ridge")}
    for name in policies or (PLAYABLE if told is None else (told.policy,)):
        if name not in (*PLAYABLE, GUARD):
            known_names = nearest(name, (*PLAYABLE, GUARD))
            raise ConfigError(f"`--policy` must be one that replay can play, but got {name!r}. {known_names}")
        if name == FREE:
            radii = _radii(told, exploration, bounds)
            specs += [Spec(FREE, exploration=one, name=_free(one) or "", **shared) for one in radii]
        elif name != GUARD:
            specs += [Spec(name, alpha=alpha, **(known if name == "SafeLUCB" else shared)) for alpha in alphas]
    return specs if told is None else [_as_told(spec, told) for spec in specs]


def check_exploration(exploration: float | None, entries: Sequence[Any]) -> None:
    """Refuse a radius that none of the policies takes."""
    if exploration is None:
        return
    positive("exploration", exploration, hint="exploration is LinUCB's alpha, such as 1.")
    if not any(
        (isinstance(one, Spec) and one.policy == FREE) or getattr(one, "name", None) == GUARD for one in entries
    ):
        raise ConfigError(
            f"`--exploration` must be given for {FREE} or {GUARD} alone, but neither plays. Leave it out, or add "
            f"`--policy {FREE}`."
        )


def _radii(
    told: Configuration | None, exploration: float | None, bounds: tuple[float, float] | None
) -> list[float | None]:
    """LUCB's radii: the one that was asked for or goes live, else the proved one (None), and the largest reward."""
    if exploration is not None:
        return [exploration]
    if told is not None and told.policy == FREE:
        return [told.exploration]
    return [None, EXPLORATION * max(map(abs, bounds or (0.0, 1.0)))]


def _free(exploration: float | None) -> str | None:
    return None if exploration is None else f"{FREE}, radius {exploration:g}"


def _as_told(spec: Spec, told: Configuration) -> Spec:
    """With what else the configuration says of its own policy, so that what is replayed is what goes live."""
    if spec.policy != told.policy:
        return spec
    own = told.spec()
    radius = None if spec.exploration is not None else own.radius
    return replace(spec, radius=radius, floor_share=own.floor_share)
