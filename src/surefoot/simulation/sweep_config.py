"""A sweep from a TOML file. An unknown key is refused, with the nearest name that is known."""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from surefoot.errors import ConfigError
from surefoot.hints import nearest
from surefoot.linear.radius import RADII
from surefoot.safety.constraints import Constraint
from surefoot.safety.facts_gate import GATES, OPTIMISMS
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.rewards import Bernoulli, Bounded, Gaussian, Rewards
from surefoot.simulation.sweep import Part, Sweep
from surefoot.simulation.worlds import WORLDS, Baseline, World

REWARDS: dict[str, type[Rewards]] = {"gaussian": Gaussian, "bernoulli": Bernoulli, "bounded": Bounded}
SPEC_NUMBERS = ("delta", "ridge", "floor_share", "realised_share", "exploration")
SPEC_WORDS = {"radius": RADII, "gate": GATES, "optimism": OPTIMISMS}
SPEC_PAIRS = {"reward_bounds": "every single reward", "reward_range": "every mean reward"}
SPEC_KEYS = ("policy", "name", "alpha", *SPEC_NUMBERS, "knows_baseline", *SPEC_WORDS, *SPEC_PAIRS, "constraint")
TOP_KEYS = ("title", "runs", "horizon", "seed", "seeds", "watched", "worlds", "policies")


def read_sweep(path: Path) -> Sweep:
    """The sweep that a TOML file describes.

    Parameters
    ----------
    path : Path
        The file; docs/simulation.md shows its keys.

    Returns
    -------
    Sweep
        Ready for `run_sweep`.

    Raises
    ------
    ConfigError
        If the file is missing, is not TOML, or holds an unknown key or an invalid value.

    Examples
    --------
    >>> import tempfile
    >>> text = '''
    ... runs = 2
    ... horizon = 20
    ... worlds.small = {kind = "paper", actions = 20}
    ... policies = [{policy = "CLUCB", alpha = [0.05, 0.1]}]
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sweep.toml"
    ...     _ = file.write_text(text)
    ...     sweep = read_sweep(file)
    >>> sweep.title, sweep.rounds
    ('sweep', 80)
    """
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
    seeds = _list("seeds", data.get("seeds", [data.get("seed", 0)]))
    watched = tuple(_number("watched", alpha) for alpha in _list("watched", data.get("watched", [])))
    worlds = _table("worlds", data["worlds"])
    specs = [spec for entry in _list("policies", data["policies"], "tables ([[policies]])") for spec in _specs(entry)]
    parts = [
        Part(
            name=name,
            world=_world(name, entry),
            specs=specs,
            runs=data["runs"],
            horizon=data["horizon"],
            seed=seed,
            watched=watched,
        )
        for name, entry in worlds.items()
        for seed in seeds
    ]
    return Sweep(parts, title=str(data.get("title", title)))


def _world(name: str, entry: Any) -> World:
    where = f"worlds.{name}"
    table = dict(_table(where, entry))
    kind = _kind(where, table, WORLDS)
    if "baseline" in table:
        baseline = _table(f"{where}.baseline", table["baseline"])
        _known(f"{where}.baseline", baseline, ("rank", "action"))
        table["baseline"] = Baseline(**baseline)
    if "rewards" in table:
        rewards = dict(_table(f"{where}.rewards", table["rewards"]))
        table["rewards"] = _kind(f"{where}.rewards", rewards, REWARDS)(**rewards)
    world: World = kind(**table)
    return world


def _kind(where: str, table: dict[str, Any], kinds: Mapping[str, Any]) -> Any:
    """The class that a table names by its `kind`, which is taken out; what is left must be settings of that class."""
    kind = str(table.pop("kind", None))
    if kind not in kinds:
        raise ConfigError(f"`{where}.kind` must be known, but got {kind!r}. {nearest(kind, kinds)}")
    _known(where, table, [setting.name for setting in fields(kinds[kind])])
    return kinds[kind]


def _specs(entry: Any) -> list[Spec]:
    table = _table("policies", entry)
    _known("policies", table, SPEC_KEYS)
    if "policy" not in table:
        raise ConfigError("Each of `policies` must have a key `policy`, the name of the policy.")
    settings = {key: _setting(key, value) for key, value in table.items() if key != "alpha"}
    alphas = table["alpha"] if isinstance(table.get("alpha"), list) else [table.get("alpha")]
    return [Spec(alpha=None if alpha is None else _number("policies.alpha", alpha), **settings) for alpha in alphas]


def _setting(key: str, value: Any) -> Any:
    """One setting of a policy, of the right type; whether its value is valid is for the policy to say."""
    where = f"policies.{key}"
    if key in SPEC_NUMBERS:
        return _number(where, value)
    if key in SPEC_WORDS:
        return _word(where, value, SPEC_WORDS[key])
    if key in SPEC_PAIRS:
        if not isinstance(value, list) or len(value) != 2:
            raise ConfigError(
                f"`{where}` must be [low, high], between which {SPEC_PAIRS[key]} lies, but got {value!r}."
            )
        return tuple(_number(where, end) for end in value)
    if key == "constraint":
        return _constraint(where, value)
    kind, words = (bool, "true or false") if key == "knows_baseline" else (str, "a text")
    if not isinstance(value, kind) or value == "":
        raise ConfigError(f"`{where}` must be {words}, but got {value!r}.")
    return value


def _constraint(where: str, value: Any) -> Any:
    """A name, or a table with a name and the constraint's own settings."""
    table = value if isinstance(value, Mapping) else {"name": value}
    name = _word(f"{where}.name" if table is value else where, table.get("name"), Constraint.known)
    kind: Any = Constraint.known[name]
    own = [setting.name for setting in fields(kind)]
    _known(where, table, ("name", *own))
    for key in own:
        if key not in table:
            raise ConfigError(
                f"`{where}` {name!r} must say its {key!r}, but does not: {{name = {name!r}, {key} = ...}}."
            )
        _number(f"{where}.{key}", table[key])
    return dict(table) if own else name


def _number(where: str, value: Any) -> float:
    # `true` would pass for 1, since a bool is an int.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"`{where}` must be a number, but got {value!r}.")
    return value


def _word(where: str, value: Any, known: Collection[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise ConfigError(f"`{where}` must be known, but got {value!r}. {nearest(str(value), known)}")
    return value


def _known(where: str, table: Mapping[str, Any], keys: Collection[str]) -> None:
    for key in table:
        if key not in keys:
            raise ConfigError(f"Every key of {where} must be known, but got {key!r}. {nearest(key, keys)}")


def _table(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"`{where}` must be a table of keys and values, but got {value!r}.")
    return value


def _list(where: str, value: Any, of: str = "numbers between brackets") -> list[Any]:
    if not isinstance(value, list):
        raise ConfigError(f"`{where}` must be a list of {of}, but got {value!r}.")
    return value
