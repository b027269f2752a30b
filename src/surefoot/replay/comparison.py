"""Policies side by side on one log, each declared alike, and what is written of them: `surefoot replay` as a call."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from surefoot.arrays import positive
from surefoot.atomic_files import write_together
from surefoot.errors import ConfigError
from surefoot.experiment.configuration import Configuration
from surefoot.hints import nearest
from surefoot.replay.baseline_fit import fit_baseline
from surefoot.replay.doubts import Doubt
from surefoot.replay.evaluation import EvaluatorName, Progress, ReplayOutcome, evaluator_named, replay
from surefoot.replay.log import Log
from surefoot.replay.propensities import with_estimates
from surefoot.replay.replayed_policy import EXPLORATION, GUARD, PLAYABLE, Declared, guarded
from surefoot.replay.verdict import once, verdict_of
from surefoot.simulation.policy_specs import Spec

FREE = "LUCB"
GUARD_ROWS = 20_000  # of a log up to which a guard is played unasked
PER_DAY = "per_day is how many rounds your traffic has a day."


@dataclass(frozen=True)
class Comparison:
    """What `compare` found: outcomes, what the policies were told, what speaks against the log, and the verdict."""

    log: Log
    outcomes: list[ReplayOutcome]
    settings: dict[str, object]
    doubts: list[Doubt]
    verdict: tuple[str, bool] | None

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        bad = self.log.bad
        return {
            "verdict": None if self.verdict is None else {"text": self.verdict[0], "is_good": self.verdict[1]},
            "settings": self.settings,
            "bad_rows": {"count": bad.count, "shown": [{"line": at, "reason": why} for at, why in bad.shown]},
            "doubts": [doubt.as_dict() for doubt in self.doubts],
            "actions": {name: estimate.as_dict() for name, estimate in self.outcomes[0].actions.items()},
            "policies": [outcome.as_dict() for outcome in self.outcomes],
        }

    def write(self, folder: Path) -> None:
        """Write report.html, replay.json and the figures, all of them or none."""
        try:
            from surefoot.replay.report import FIGURES, draw, report_html
        except ModuleNotFoundError as missing:
            raise ConfigError(f"Figures need matplotlib, but {missing.name} is missing. Use --json.") from None
        # Everything is made before anything is written.
        files = {f"{name}.png": draw(name, self.outcomes) for name in FIGURES}
        page = report_html(self.log, self.outcomes, settings=self.settings, doubts=self.doubts, verdict=self.verdict)
        files |= {"report.html": page.encode(), "replay.json": json.dumps(self.as_dict(), ensure_ascii=False).encode()}
        try:
            write_together(folder, files)
        except OSError as error:
            raise ConfigError(
                f"The report must be written to `{folder}`, but that failed: {error.strerror}. Nothing was left there; "
                "name another folder (`--out`)."
            ) from None


def compare(
    log: Log,
    *,
    policies: Sequence[str] | None = None,
    configuration: Configuration | None = None,
    alphas: Sequence[float] | None = None,
    evaluator: EvaluatorName = "rejection",
    uniform: bool = False,
    reward_bounds: tuple[float, float] | None = None,
    noise: float | None = None,
    theta_bound: float | None = None,
    baseline_reward: float | None = None,
    delta: float | None = None,
    ridge: float | None = None,
    exploration: float | None = None,
    level: float = 0.95,
    seed: int = 0,
    per_day: float | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Replay several policies on a log; what they are told comes from a configuration, or from a fit to the log.

    Parameters
    ----------
    log : Log
        What `read_log` returned.
    policies : sequence of str, optional
        Names; by default that of the configuration, else every policy that replay can play. LUCB is played with the
        radius for which its regret is bounded, and as it is often run.
    configuration : Configuration, optional
        Whose policy is played and whose declarations hold. A log read with its encoder, actions and baseline fits it.
    alphas : sequence of float, optional
        Shares at risk; by default that of the configuration, else 0.1.
    evaluator, uniform, level, seed, progress
        As in `replay`.
    reward_bounds : (low, high), optional
        Bounds that no single reward leaves.
    noise, theta_bound, baseline_reward : float, optional
        Declarations in place of those of the configuration or the fit.
    delta, ridge, exploration : float, optional
        Settings of the policies; `exploration` is LUCB's radius as a constant.
    per_day : float, optional
        Rounds of your traffic a day, by which the verdict tells the wait in days.

    Returns
    -------
    Comparison
        Outcomes, doubts and verdict.

    Raises
    ------
    ConfigError
        If a setting is invalid or belongs to no policy that plays.
    EvidenceError
        If the log cannot answer.

    Examples
    --------
    >>> from surefoot.replay import ArrayLog
    >>> log = ArrayLog(
    ...     features=[[[1.0, 0.0], [0.0, 1.0]]] * 80, actions=[0, 1] * 40, rewards=[0.2, 0.9] * 40, baselines=0
    ... )
    >>> found = compare(log, policies=["LUCB"], uniform=True, reward_bounds=(0.0, 1.0))
    >>> [outcome.spec.name for outcome in found.outcomes]
    ['LUCB', 'LUCB, radius 1']
    """
    evaluator = evaluator_named(evaluator)
    day = None if per_day is None else positive("per_day", per_day, hint=PER_DAY)
    range_ = reward_bounds or (configuration.reward_bounds if configuration else None)
    if alphas is None:
        alphas = (configuration.alpha,) if configuration else (0.1,)
    if delta is None:
        delta = configuration.delta if configuration else 0.001
    if ridge is None and configuration is not None:
        ridge = configuration.ridge
    declared, doubts = _declared(log, configuration, range_, level, uniform=uniform and evaluator != "full")
    bounds = range_ or declared.reward_bounds
    # Beside another strategy SafeLUCB is taught by rows that it did not play, which its set by likelihood does not
    # take in: it may then know the range of means alone.
    known = {} if range_ is None else {"reward_range" if evaluator == "importance" else "reward_bounds": range_}
    entries: list[Any] = [
        *specs_of(policies, configuration, alphas, exploration, bounds, delta=delta, ridge=ridge, **known)
    ]
    if GUARD in policies if policies else _can_guard(log, evaluator, bounds):
        if bounds is None:
            raise ConfigError("`--reward-bounds` must be given for a guard: its promise rests on them alone.")
        explored: dict[str, Any] = {} if exploration is None else {"exploration": exploration}
        entries += [guarded(one, delta=delta, ridge=ridge or 1.0, reward_bounds=bounds, **explored) for one in alphas]
    _check_exploration(exploration, entries)
    declared = Declared(
        declared.noise if noise is None else noise,
        declared.theta_bound if theta_bound is None else theta_bound,
        declared.baseline_reward if baseline_reward is None else baseline_reward,
        range_,
    )
    outcomes = replay(
        log, entries, declared=declared, evaluator=evaluator, uniform=uniform, seed=seed, level=level, progress=progress
    )
    settings: dict[str, object] = {
        "log": log.name,
        "rows": log.rows,
        "evaluator": evaluator,
        "actions": ", ".join(log.actions),
        "context": ", ".join(log.context),
        "left out of the context": "; ".join(f"{name} ({why})" for name, why in log.left_out.items()),
        "features of an action": log.dim,
        "noise": declared.noise,
        "theta_bound": declared.theta_bound,
        "feature_bound": log.feature_bound,
        "baseline_reward": declared.baseline_reward,
        "reward_bounds": declared.reward_bounds,
        "delta": delta,
        "ridge": ridge,
        "uniform": uniform,
        "seed": seed,
    }
    if exploration is not None:
        settings["exploration"] = exploration
    every = once([*doubts, *(doubt for outcome in outcomes for doubt in outcome.doubts)])
    return Comparison(log, outcomes, settings, every, verdict_of(outcomes, per_day=day, doubts=doubts))


def _declared(
    log: Log, configuration: Configuration | None, range_: tuple[float, float] | None, level: float, *, uniform: bool
) -> tuple[Declared, Sequence[Doubt]]:
    if configuration is not None:
        numbers = configuration.noise, configuration.theta_bound, configuration.baseline_reward
        return Declared(*numbers, range_), with_estimates((), log)
    fit = fit_baseline(log, level=level, reward_bounds=range_, uniform=uniform)
    return fit.declared, fit.doubts


def _can_guard(log: Log, evaluator: str, bounds: tuple[float, float] | None) -> bool:
    """Whether a guard's row stands beside the others unasked: it plays in Python, and learns from its own rounds."""
    is_short = (log.rows or GUARD_ROWS + 1) <= GUARD_ROWS
    return evaluator != "importance" and is_short and bounds is not None and bounds[0] >= 0


def specs_of(
    policies: Sequence[str] | None,
    configuration: Configuration | None,
    alphas: Sequence[float],
    exploration: float | None,
    bounds: tuple[float, float] | None,
    **known: Any,
) -> list[Spec]:
    """The linear policies by name; LUCB both with the radius for which its regret is bounded and as it is often run."""
    specs, shared = list[Spec](), {name: known[name] for name in ("delta", "ridge")}
    for name in policies or (PLAYABLE if configuration is None else (configuration.policy,)):
        if name not in (*PLAYABLE, GUARD):
            known_names = nearest(name, (*PLAYABLE, GUARD))
            raise ConfigError(f"`--policy` must be one that replay can play, but got {name!r}. {known_names}")
        if name == FREE:
            for radius in _radii(configuration, exploration, bounds):
                label = "" if radius is None else f"{FREE}, radius {radius:g}"
                specs.append(Spec(FREE, exploration=radius, name=label, **shared))
        elif name != GUARD:
            specs += [Spec(name, alpha=alpha, **(known if name == "SafeLUCB" else shared)) for alpha in alphas]
    return specs if configuration is None else [_configured(spec, configuration) for spec in specs]


def _check_exploration(exploration: float | None, entries: Sequence[Spec]) -> None:
    """Refuse a radius that none of the policies takes."""
    if exploration is None:
        return
    positive("exploration", exploration, hint="exploration is LinUCB's alpha, such as 1.")
    if not any(one.policy == FREE or one.name == GUARD for one in entries):
        raise ConfigError(
            f"`--exploration` must be given for {FREE} or {GUARD} alone, but neither plays. Leave it out, or add "
            f"`--policy {FREE}`."
        )


def _radii(
    configuration: Configuration | None, exploration: float | None, bounds: tuple[float, float] | None
) -> list[float | None]:
    """LUCB's radii: the one that was asked for or goes live, else the proved one (None), and the largest reward."""
    if exploration is not None:
        return [exploration]
    if configuration is not None and configuration.policy == FREE:
        return [configuration.exploration]
    return [None, EXPLORATION * max(map(abs, bounds or (0.0, 1.0)))]


def _configured(spec: Spec, configuration: Configuration) -> Spec:
    """With what else the configuration says of its own policy, so that what is replayed is what goes live."""
    if spec.policy != configuration.policy:
        return spec
    own = configuration.spec()
    radius = None if spec.exploration is not None else own.radius
    return replace(spec, radius=radius, floor_share=own.floor_share)
