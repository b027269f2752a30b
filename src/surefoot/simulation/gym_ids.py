"""Gymnasium ids of our worlds, such as `surefoot/Paper-v0`; the settings of a world are arguments of `gymnasium.make`.

They are known once `surefoot.simulation.gym` is imported, which Gymnasium does by itself for an id like
`surefoot.simulation.gym:surefoot/Paper-v0`. Gymnasium 1.0 has given up the entry points of packages.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefoot.simulation.gym import BanditEnv

WORLDS = {
    "Arms": "ArmsWorld",
    "Contextual": "ContextualWorld",
    "Drifting": "DriftingWorld",
    "Misspecified": "MisspecifiedWorld",
    "Paper": "PaperWorld",
}
IDS = tuple(f"surefoot/{name}-v0" for name in WORLDS)


def make_env(world: str, *, horizon: int = 1000, feature_limit: float | None = None, **settings: Any) -> "BanditEnv":
    """The environment of a world by name, with the settings of that world."""
    from surefoot import simulation

    made = getattr(simulation, WORLDS[world])(**settings)
    return simulation.BanditEnv(made, horizon=horizon, feature_limit=feature_limit)


def register_envs() -> None:
    """Make every id known to Gymnasium; those that are known stay as they are."""
    from gymnasium.envs.registration import register, registry

    for name, id_ in zip(WORLDS, IDS, strict=True):
        if id_ not in registry:
            register(id_, entry_point=f"{__name__}:make_env", kwargs={"world": name})
