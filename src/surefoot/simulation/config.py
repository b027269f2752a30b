"""A sweep from a TOML file. Every key is known or refused, with the nearest name that is."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from surefoot.errors import ConfigError
from surefoot.simulation.environments import ArmsWorld, Baseline, ContextualWorld, PaperWorld, World
from surefoot.simulation.rewards import Bernoulli, Bounded, Gaussian, Rewards
from surefoot.simulation.specs import Spec, nearest
from surefoot.simulation.sweep import Part, Sweep

WORLDS: dict[str, tuple[type[World], tuple[str, ...]]] = {
    "paper": (PaperWorld, ("instance",)),
    "contextual": (ContextualWorld, ("sign",)),
    "arms": (ArmsWorld, ("low", "high")),
}
REWARDS: dict[str, tuple[type[Rewards], tuple[str, ...]]] = {
    "gaussian": (Gaussian, ("sigma",)),
    "bernoulli": (Bernoulli, ()),
    "bounded": (Bounded, ("width",)),
}
SPEC_KEYS = ("policy", "alpha", "delta", "ridge", "floor_share", "knows_baseline")
TOP_KEYS = ("title", "runs", "horizon", "seed", "seeds", "watched", "worlds", "policies")


def read_sweep(path: Path) -> Sweep:
    """The sweep that a TOML file describes."""
    try:
        data = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise ConfigError(f"`{path}` must be a TOML file, but there is none. Check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"`{path}` must be valid TOML, but is not: {error}") from None
    return sweep_from(data, title=path.stem)


def sweep_from(data: Mapping[str, Any], *, title: str) -> Sweep:
    """The sweep that plain data describe."""
    _known("the file", data, TOP_KEYS)
    for key in ("runs", "horizon", "worlds", "policies"):
        if key not in data:
            raise ConfigError(f"`{key}` must be given, but the file has no such key.")
    if "seed" in data and "seeds" in data:
        raise ConfigError("`seed` and `seeds` must not be given together.")
    seeds = data.get("seeds", [data.get("seed", 0)])
    worlds = _table("worlds", data["worlds"])
    specs = [spec for entry in _list("policies", data["policies"]) for spec in _specs(entry)]
    parts = [
        Part(
            name=name,
            world=_world(name, entry),
            specs=specs,
            runs=data["runs"],
            horizon=data["horizon"],
            seed=seed,
            watched=tuple(data.get("watched", ())),
        )
        for name, entry in worlds.items()
        for seed in seeds
    ]
    return Sweep(parts, title=str(data.get("title", title)))


def _world(name: str, entry: Any) -> World:
    given = _table(f"worlds.{name}", entry)
    kind: Any
    kind, extra = _choose(f"worlds.{name}", given, WORLDS)
    _known(f"worlds.{name}", given, ("kind", "dim", "actions", "baseline", "rewards", "delay", *extra))
    settings = {key: value for key, value in given.items() if key not in ("kind", "baseline", "rewards")}
    if "baseline" in given:
        chosen = _table(f"worlds.{name}.baseline", given["baseline"])
        _known(f"worlds.{name}.baseline", chosen, ("rank", "action"))
        settings["baseline"] = Baseline(**chosen)
    if "rewards" in given:
        chosen = _table(f"worlds.{name}.rewards", given["rewards"])
        reward, keys = _choose(f"worlds.{name}.rewards", chosen, REWARDS)
        _known(f"worlds.{name}.rewards", chosen, ("kind", *keys))
        settings["rewards"] = reward(**{key: value for key, value in chosen.items() if key != "kind"})
    world: World = kind(**settings)
    return world


def _specs(entry: Any) -> list[Spec]:
    given = _table("policies", entry)
    _known("policies", given, SPEC_KEYS)
    if "policy" not in given:
        raise ConfigError("Each of `policies` must have a key `policy`, the name of the policy.")
    alphas = given.get("alpha")
    rest = {key: value for key, value in given.items() if key != "alpha"}
    return [Spec(alpha=alpha, **rest) for alpha in (alphas if isinstance(alphas, list) else [alphas])]


def _choose(where: str, given: Mapping[str, Any], known: Mapping[str, tuple[Any, tuple[str, ...]]]) -> Any:
    kind = str(given.get("kind"))
    if kind not in known:
        raise ConfigError(f"`{where}.kind` must be known, but got {kind!r}. {nearest(kind, list(known))}")
    return known[kind]


def _known(where: str, given: Mapping[str, Any], keys: Iterable[str]) -> None:
    for key in given:
        if key not in keys:
            raise ConfigError(f"Every key of {where} must be known, but got {key!r}. {nearest(key, list(keys))}")


def _table(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"`{where}` must be a table of keys and values, but got {value!r}.")
    return value


def _list(where: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ConfigError(f"`{where}` must be a list of tables ([[{where}]]), but got {value!r}.")
    return value
