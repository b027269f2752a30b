"""The experiment's configuration, as TOML: everything that a running policy has to be told. Its schema lives here.

policy, alpha, delta, noise, ridge, theta_bound, feature_bound, baseline_reward, reward_floor
[actions]   names, baseline, and per name its features where actions have any
[[context]] name, and either low and high (a number; has_gaps where it may be missing) or levels (a label)
"""

import inspect
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot.arrays import Matrix
from surefoot.errors import AssumptionError, ConfigError
from surefoot.experiment.policy_by_name import policy_kind
from surefoot.hints import nearest
from surefoot.linear.features import FeatureMap, OneHot
from surefoot.policies import Policy
from surefoot.replay.baseline_fit import Fit
from surefoot.replay.diagnostics import LINEARITY
from surefoot.replay.encoding import CategoricalColumn, Encoder, NumericColumn
from surefoot.replay.log_files import TableLog, map_of
from surefoot.simulation.atomic_files import whole_file

NUMBERS = ("alpha", "delta", "noise", "ridge", "theta_bound", "feature_bound", "baseline_reward", "reward_floor")
UNGUARDED = "LUCB"  # keeps no floor, and so has nothing to lose by a wrong model
TOP = ("policy", *NUMBERS, "actions", "context")


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a running policy is told, and how a context becomes feature rows."""

    policy: str
    alpha: float
    delta: float
    noise: float
    ridge: float
    theta_bound: float
    feature_bound: float
    baseline_reward: float
    actions: tuple[str, ...]
    baseline: str | None
    encoder: Encoder
    reward_floor: float = 0.0
    action_features: Mapping[str, tuple[float, ...]] | None = field(default=None)

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

    def rows(self, context: Mapping[str, Any] | None = None) -> Matrix:
        """The feature rows of one context, in the order of `actions`."""
        phi = self.phi
        return phi() if isinstance(phi, OneHot) else phi(self.encoder.encode_one(context or {}))

    def new_policy(self) -> Policy:
        """The policy, told all that it takes."""
        kind: Any = policy_kind(self.policy)
        told = {"dim": self.phi.dim, "nesting": "latest", **{name: getattr(self, name) for name in NUMBERS}}
        taken = inspect.signature(kind).parameters
        made: Policy = kind(**{name: value for name, value in told.items() if name in taken})
        return made

    def to_toml(self) -> str:
        """As text."""
        # Texts and lists of JSON are valid TOML.
        lines = [f"policy = {json.dumps(self.policy)}"]
        lines += [f"{name} = {_number(getattr(self, name))}" for name in NUMBERS]
        lines += ["", "[actions]", f"names = {json.dumps(list(self.actions), ensure_ascii=False)}"]
        if self.baseline is not None:
            lines.append(f"baseline = {json.dumps(self.baseline, ensure_ascii=False)}")
        if self.action_features is not None:
            table = [list(self.action_features[name]) for name in self.actions]
            lines.append(f"features = {json.dumps(table)}")
        for part in self.encoder.parts:
            lines += ["", "[[context]]", f"name = {json.dumps(part.name, ensure_ascii=False)}"]
            if isinstance(part, NumericColumn):
                lines += [f"low = {_number(part.low)}", f"high = {_number(part.high)}"]
                lines += ["has_gaps = true"] if part.has_gaps else []
            else:
                lines.append(f"levels = {json.dumps(list(part.levels), ensure_ascii=False)}")
        return "\n".join(lines) + "\n"

    def write(self, path: str | Path) -> Path:
        """Write the file, whole or not at all; one that exists is left alone."""
        place = Path(path)
        if place.exists():
            raise ConfigError(f"`{place}` must not exist yet, but it does. Remove it first, or choose another name.")
        place.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(place) as file:
            file.write(self.to_toml().encode())
        return place


def configuration_of(
    fit: Fit,
    log: TableLog,
    *,
    policy: str,
    alpha: float,
    delta: float,
    ridge: float,
    despite_doubt: bool = False,
) -> Configuration:
    r"""The experiment's configuration that a fit suggests.

    Parameters
    ----------
    fit : Fit
        What `fit_baseline` returned.
    log : TableLog
        The log that was fitted, a table read by `read_log`.
    policy : str
        Name of the policy.
    alpha : float
        Share of the baseline's reward you accept losing.
    delta : float
        Probability that the guarantee may fail.
    ridge : float
        Regulariser lambda.
    despite_doubt : bool
        Take a linear policy with a floor although the log speaks against a linear model.

    Returns
    -------
    Configuration
        Writes itself as TOML, makes the policy, and maps a context to feature rows.

    Raises
    ------
    AssumptionError
        If the baseline's mean reward is negative in the log, or linearity is doubtful.

    Examples
    --------
    >>> import tempfile
    >>> from surefoot.replay import fit_baseline, read_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "log.csv"
    ...     _ = path.write_text("action,reward,age\n" + "red,0.2,30\nblue,0.7,40\n" * 20)
    ...     log = read_log(path, baseline="red")
    ...     found = configuration_of(fit_baseline(log), log, policy="SafeLUCB", alpha=0.1, delta=0.01, ridge=1.0)
    >>> sorted(found.actions), found.baseline
    (['blue', 'red'], 'red')
    """
    declared = fit.declared
    if fit.is_linearity_doubtful and policy != UNGUARDED and not despite_doubt:
        raise AssumptionError(_not_linear(fit, policy, alpha, delta))
    one = None if log.follows_log or log.columns.baseline else log.actions[log.baseline_row]
    return Configuration(
        policy=policy,
        alpha=alpha,
        delta=delta,
        noise=declared.noise,
        ridge=ridge,
        theta_bound=declared.theta_bound,
        feature_bound=log.feature_bound,
        baseline_reward=declared.baseline_reward,
        actions=log.actions,
        baseline=one,
        encoder=log.encoder,
        action_features=log.action_features,
    )


def _not_linear(fit: Fit, policy: str, alpha: float, delta: float) -> str:
    seen = next(doubt.seen for doubt in fit.doubts if doubt.assumption == LINEARITY)
    low, high = fit.reward_bounds
    return (
        f"What {policy} promises rests on mean rewards that are linear in the features, but the log speaks against it: "
        f"{seen}. Let a guard decide, which assumes no model: surefoot experiment create JOURNAL NAME --policy Guard "
        f"--set alpha={alpha:g} --set delta={delta:g} --set 'reward_bounds=[{low:g}, {high:g}]' --mode guarded. Or "
        f"take {policy} all the same, without its promise (`despite_doubt`, `--despite-doubt`)."
    )


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
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"`{path}` must be a TOML file, but there is none. Check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"`{path}` must be valid TOML, but is not: {error}") from None
    for key in data:
        if key not in TOP:
            raise ConfigError(f"Every key of `{path}` must be known, but got {key!r}. {nearest(key, TOP)}")
    try:
        given = data["actions"]
        names = tuple(str(name) for name in given["names"])
        features = given.get("features")
        return Configuration(
            policy=str(data["policy"]),
            **{name: float(data[name]) for name in NUMBERS},
            actions=names,
            baseline=given.get("baseline"),
            encoder=Encoder(tuple(_part(entry) for entry in data.get("context", ()))),
            action_features=None if features is None else dict(zip(names, map(tuple, features), strict=True)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"`{path}` must be a whole configuration, but this is missing or wrong: {error}.") from None


def _part(entry: Mapping[str, Any]) -> NumericColumn | CategoricalColumn:
    if "levels" in entry:
        return CategoricalColumn(str(entry["name"]), tuple(str(level) for level in entry["levels"]))
    has_gaps = bool(entry.get("has_gaps", False))
    return NumericColumn(str(entry["name"]), float(entry["low"]), float(entry["high"]), has_gaps)


def _number(value: float) -> str:
    text = repr(float(value))
    return text if "e" not in text or "." in text else text.replace("e", ".0e")
