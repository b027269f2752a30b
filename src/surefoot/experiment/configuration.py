"""The experiment's configuration, as TOML: one file from the log to the service. Its schema lives here.

policy, alpha, delta, noise, theta_bound, feature_bound, baseline_reward, reward_floor
ridge, radius, exploration, reward_bounds, reward_window, default_reward   where they are not the policy's own
doubt       what in the log spoke against a linear model
[actions]   names, baseline, and per name its features where actions have any
[[context]] name, and either low and high (a number; has_gaps where it may be missing), levels (a label) or
            buckets (labels that are hashed)

`fit-baseline` writes it; `replay`, `plan`, `experiment create` and the client read it, and the service keeps it with
the experiment: what was replayed is what goes live, contexts are encoded alike, and rewards have the same bounds.
"""

import inspect
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.arrays import Matrix
from surefoot.atomic_files import whole_file
from surefoot.errors import AssumptionError, ConfigError, InputError
from surefoot.hints import nearest
from surefoot.linear.encoding import CategoricalColumn, Column, Encoder, HashedColumn, NumericColumn
from surefoot.linear.features import FeatureMap, Interactions, OneHot, map_of
from surefoot.policies import Policy
from surefoot.policies.by_name import policy_class
from surefoot.policies.linear_settings import read_number
from surefoot.rounds.events import Created

if TYPE_CHECKING:
    from surefoot.simulation.policy_specs import Spec

NUMBERS = ("alpha", "delta", "noise", "theta_bound", "feature_bound", "baseline_reward", "reward_floor")
CHOSEN = (
    "ridge",
    "radius",
    "exploration",
    "reward_bounds",
    "reward_window",
    "default_reward",
    "doubt",
)  # left out where they are not
ALWAYS = "always"  # the weight that counts in every context
UNGUARDED = "LUCB"  # keeps no floor, and so has nothing to lose by a wrong model
TOP = ("policy", *NUMBERS, *CHOSEN, "actions", "context")


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a running policy is told, how a context becomes feature rows, and how long a reward is waited for.

    `Experiment.create` takes one in place of a policy; `read_configuration` reads one from its file, and
    `surefoot.replay.configuration_of` makes one from a log.

    Attributes
    ----------
    policy, alpha, delta, noise, ridge, theta_bound, feature_bound, radius, exploration
        The policy and its settings; None leaves one to the policy.
    baseline_reward, reward_floor : float
        The baseline's mean reward, and the least that it is declared to be.
    actions, baseline, action_features
        The names of the actions, today's among them (None where it changes), and features of each where there are any.
    encoder : Encoder
        How a context becomes numbers.
    reward_bounds, reward_window, default_reward
        Of rewards, as in `Experiment.create`.
    doubt : str
        What in the log spoke against a linear model.

    Examples
    --------
    >>> from surefoot.experiment.configuration import configuration_in
    >>> numbers = {"alpha": 0.1, "delta": 0.01, "noise": 0.5, "theta_bound": 1.0, "feature_bound": 1.0}
    >>> numbers |= {"baseline_reward": 0.3, "reward_floor": 0.0}
    >>> lines = [f"{name} = {value}" for name, value in numbers.items()]
    >>> lines += ["policy = 'LUCB'", "[actions]", "names = ['blue', 'red']", "baseline = 'blue'"]
    >>> configuration_in(chr(10).join(lines)).actions
    ('blue', 'red')
    """

    policy: str
    alpha: float
    delta: float
    noise: float
    ridge: float | None
    theta_bound: float
    feature_bound: float
    baseline_reward: float
    actions: tuple[str, ...]
    baseline: str | None
    encoder: Encoder
    reward_floor: float = 0.0
    action_features: Mapping[str, tuple[float, ...]] | None = field(default=None)
    radius: str | None = None
    reward_bounds: tuple[float, float] | None = None
    reward_window: float | None = None
    default_reward: float | None = None
    doubt: str = ""
    exploration: float | None = None

    def __post_init__(self) -> None:
        if self.exploration is None:
            return
        read_number("exploration", self.exploration)
        if self.policy != UNGUARDED:
            raise ConfigError(
                f"`exploration` must not be given for {self.policy}, which proposes by its confidence set: it is a "
                f"setting of {UNGUARDED}. Leave it out."
            )

    @property
    def phi(self) -> FeatureMap:
        """The feature map."""
        return map_of(self.actions, self.encoder.dim, self.action_features)

    @property
    def baseline_row(self) -> int:
        """Row of the baseline's action, where that is one action."""
        if self.baseline is None:
            raise ConfigError(
                "`baseline` must be an action, but this configuration's baseline changes from row to row."
            )
        return self.actions.index(self.baseline)

    def rows(self, context: Mapping[str, Any] | None = None, *, is_stored: bool = False) -> Matrix:
        """The feature rows of one context, in the order of `actions`.

        Parameters
        ----------
        context : mapping, optional
            Its values by name.
        is_stored : bool
            Whether it was taken before, and is not refused any more.

        Returns
        -------
        ndarray of shape (actions, dim)
            The rows.
        """
        phi = self.phi
        return phi() if isinstance(phi, OneHot) else phi(self.encoder.encode_one(context or {}, is_stored=is_stored))

    def new_policy(self) -> Policy:
        """The policy, told all that it takes."""
        kind: Any = policy_class(self.policy)
        settings = {"dim": self.phi.dim, "nesting": "latest", **{name: getattr(self, name) for name in NUMBERS}}
        names = ("ridge", "radius", "exploration", "reward_bounds")
        chosen = {name: getattr(self, name) for name in names}
        parameters = inspect.signature(kind).parameters
        settings |= {name: value for name, value in chosen.items() if value is not None}
        if self.ridge is None and "ridge" in parameters and parameters["ridge"].default is inspect.Parameter.empty:
            settings["ridge"] = 1.0  # the paper's policies have none of their own
        policy: Policy = kind(**{name: value for name, value in settings.items() if name in parameters})
        return policy

    def spec(self) -> "Spec":
        """The same policy for `replay`, which tells it the same numbers."""
        from surefoot.simulation.policy_specs import Spec

        settings: dict[str, Any] = {"delta": self.delta, "ridge": self.ridge}
        if self.policy != UNGUARDED:
            settings["alpha"] = self.alpha
        else:
            settings["exploration"] = self.exploration
        if self.exploration is None:  # else `radius` is that of certificates alone, which a replay has not
            settings["radius"] = self.radius
        if self.policy == "SafeLUCB":
            settings["reward_bounds"] = self.reward_bounds
        if self.reward_floor > 0 and self.baseline_reward > 0:
            settings["floor_share"] = self.reward_floor / self.baseline_reward
        return Spec(self.policy, **settings)

    def arguments(self, request: Mapping[str, Any], *, is_stored: bool = False) -> dict[str, Any]:
        """The arguments of `decide` for a request that brings a context, with rows, names and baseline.

        Parameters
        ----------
        request : mapping
            The request; where it names actions, they are those that are offered in this round.
        is_stored : bool
            Whether it was taken before, and is not refused any more.

        Returns
        -------
        dict
            The arguments.

        Raises
        ------
        InputError
            If it names no baseline where one is needed.
        """
        names = list(self.actions) if request.get("actions") is None else list(request["actions"])
        places = [self._place(name) for name in names]
        baseline = self.baseline if request.get("baseline") is None else request["baseline"]
        if baseline is None:
            raise InputError("`baseline` must be given: in this experiment it changes from round to round.")
        known = request.get("baseline_reward")
        if known is None and getattr(policy_class(self.policy), "needs_baseline_reward", False):
            known = self.baseline_reward
        rows = self.rows(request.get("context"), is_stored=is_stored)[places]
        return {**request, "features": rows, "actions": names, "baseline": baseline, "baseline_reward": known}

    def _place(self, name: Any) -> int:
        if name not in self.actions:
            raise InputError(
                f"`actions` must be those of the experiment's configuration, but got {name!r:.80}. "
                f"{nearest(str(name), self.actions)}"
            )
        return self.actions.index(name)

    def refuse_doubt(self) -> None:
        """Raise where the log spoke against the model that the policy's promise rests on.

        Raises
        ------
        AssumptionError
            If it did, and the policy keeps a floor.
        """
        if self.doubt and self.policy != UNGUARDED:
            raise AssumptionError(not_linear(self.doubt, self.policy, self.alpha, self.delta, self.reward_bounds))

    def to_toml(self) -> str:
        """As text."""
        # Texts and lists of JSON are valid TOML.
        lines = [f"policy = {json.dumps(self.policy)}"]
        lines += [f"{name} = {_number(getattr(self, name))}" for name in NUMBERS]
        lines += [f"{name} = {_text(value)}" for name in CHOSEN if (value := getattr(self, name)) not in (None, "")]
        lines += ["", "[actions]", f"names = {_text(list(self.actions))}"]
        if self.baseline is not None:
            lines.append(f"baseline = {_text(self.baseline)}")
        if self.action_features is not None:
            lines.append(f"features = {_text([list(self.action_features[name]) for name in self.actions])}")
        for part in self.encoder.parts:
            lines += ["", "[[context]]", f"name = {_text(part.name)}"]
            if isinstance(part, NumericColumn):
                lines += [f"low = {_number(part.low)}", f"high = {_number(part.high)}"]
                lines += ["has_gaps = true"] if part.has_gaps else []
            elif isinstance(part, HashedColumn):
                lines.append(f"buckets = {part.buckets}")
            else:
                lines.append(f"levels = {_text(list(part.levels))}")
        return "\n".join(lines) + "\n"

    def write(self, path: str | Path) -> Path:
        """Write the file, whole or not at all.

        Parameters
        ----------
        path : str or Path
            A file that does not exist yet.

        Returns
        -------
        Path
            The same.

        Raises
        ------
        ConfigError
            If it exists.
        """
        place = Path(path)
        if place.exists():
            raise ConfigError(f"`{place}` must not exist yet, but it does. Remove it first, or choose another name.")
        place.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(place) as file:
            file.write(self.to_toml().encode())
        return place


def read_configuration(path: str | Path) -> Configuration:
    """The experiment's configuration in a TOML file.

    Parameters
    ----------
    path : str or Path
        A file that `Configuration.write` or `surefoot fit-baseline --out` wrote.

    Returns
    -------
    Configuration
        Makes the policy, and maps a context to feature rows.

    Raises
    ------
    ConfigError
        If the file is missing, is not TOML, or holds an unknown key or an invalid value.

    Examples
    --------
    >>> read_configuration("missing.toml")
    Traceback (most recent call last):
    surefoot.errors.ConfigError: `missing.toml` must be a TOML file, but there is none. Check the path.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"`{path}` must be a TOML file, but there is none. Check the path.") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"`{path}` must be valid TOML, but is not: {error}") from None
    return configuration_in(text, str(path))


def configuration_in(text: str, name: str = "configuration") -> Configuration:
    """The same from its text; `name` is what messages call it."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"`{name}` must be valid TOML, but is not: {error}") from None
    for key in data:
        if key not in TOP:
            raise ConfigError(f"Every key of `{name}` must be known, but got {key!r}. {nearest(key, TOP)}")
    try:
        actions = data["actions"]
        names = tuple(str(name) for name in actions["names"])
        features, bounds = actions.get("features"), data.get("reward_bounds")
        numbers: dict[str, Any] = {name: float(data[name]) for name in NUMBERS}
        numbers |= {name: _maybe(data.get(name)) for name in ("ridge", "reward_window", "default_reward")}
        return Configuration(
            policy=str(data["policy"]),
            **numbers,
            actions=names,
            baseline=actions.get("baseline"),
            encoder=Encoder(_parts(data.get("context", []))),
            action_features=None if features is None else dict(zip(names, map(tuple, features), strict=True)),
            radius=data.get("radius"),
            reward_bounds=None if bounds is None else _pair(*bounds),
            doubt=str(data.get("doubt", "")),
            exploration=_real("exploration", data.get("exploration")),
        )
    except (KeyError, TypeError, ValueError) as error:
        why = str(error).removesuffix(".")  # our own errors are whole sentences
        raise ConfigError(f"`{name}` must be a whole configuration, but this is missing or wrong: {why}.") from None


def not_linear(doubt: str, policy: str, alpha: float, delta: float, bounds: tuple[float, float] | None) -> str:
    """Why a linear policy is not taken, and what to take instead."""
    low, high = ("LOW", "HIGH") if bounds is None else (f"{bounds[0]:g}", f"{bounds[1]:g}")
    return (
        f"What {policy} promises rests on mean rewards that are linear in the features, but the log speaks against it: "
        f"{doubt}. Let a guard decide, which assumes no model: surefoot experiment create JOURNAL NAME --policy Guard "
        f"--set alpha={alpha:g} --set delta={delta:g} --set 'reward_bounds=[{low}, {high}]' --mode guarded. Or "
        f"take {policy} all the same, without its promise (`despite_doubt`, `--despite-doubt`)."
    )


def _maybe(value: Any) -> float | None:
    return None if value is None else float(value)


def _real(name: str, value: Any) -> float | None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise ValueError(f"`{name}` must be a number, not {value!r}")
    return _maybe(value)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"`buckets` must be a whole number, not {value!r}")
    return value


def _pair(low: Any, high: Any) -> tuple[float, float]:
    return float(low), float(high)


def _parts(entries: Any) -> tuple[Column, ...]:
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("`context` must be a list of tables: write [[context]] above each")
    parts = tuple(map(_part, entries))
    if len({part.name for part in parts}) < len(parts):
        raise ValueError("every column of `[[context]]` must have a name of its own")
    return parts


def _part(entry: Mapping[str, Any]) -> Column:
    keys = {"buckets"} if "buckets" in entry else {"levels"} if "levels" in entry else {"low", "high", "has_gaps"}
    if odd := sorted(set(entry) - keys - {"name"}):
        raise ValueError(f"a column of `[[context]]` has {' or '.join(sorted(keys))}, and not {', '.join(odd)}")
    if "buckets" in entry:
        return HashedColumn(str(entry["name"]), _whole(entry["buckets"]))
    if "levels" in entry:
        if not isinstance(entry["levels"], list):
            raise ValueError(f"`levels` must be a list, not {entry['levels']!r}")
        return CategoricalColumn(str(entry["name"]), tuple(str(level) for level in entry["levels"]))
    low, high = _pair(entry["low"], entry["high"])
    if not low <= high:
        raise ValueError(f"`low <= high` must hold in `[[context]]`, not {low:g} and {high:g}")
    return NumericColumn(str(entry["name"]), low, high, bool(entry.get("has_gaps", False)))


def _text(value: Any) -> str:
    # TOML forbids what JSON leaves as it is: the one control character beyond the first 32, and halves of a pair.
    if isinstance(value, float):
        return _number(value)
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ConfigError(f"Names must be text that can be written down, but got {value!r:.80}.")
    return text


def _number(value: float) -> str:
    text = repr(float(value))
    return text if "e" not in text or "." in text else text.replace("e", ".0e")


def feature_names(created: Created) -> list[str] | None:
    """The names that were given, or those of the configuration's columns; None where there are none."""
    if created.configuration is not None:
        configuration = configuration_in(created.configuration)
        return column_names(configuration.phi, configuration.actions, configuration.encoder)
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
