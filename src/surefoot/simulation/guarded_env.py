"""A Gymnasium environment under a guard: what an agent does is only a proposal."""

from collections.abc import Callable
from typing import Any

from surefoot.errors import ConfigError
from surefoot.policies.guard import Guard

try:
    import gymnasium
except ImportError as error:
    raise ImportError("GuardedEnv needs Gymnasium. Install it with: pip install 'surefoot[simulation]'") from error


class GuardedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Any environment of single rewards, with a guard between the agent and the world.

    `step` takes the agent's action as a proposal, plays what the guard's coin says, and lets the guard observe the
    reward. `info` says what was `played`, its `source`, its `probability` and the `share` of that round. The promise is
    about rewards per step: it fits bandits, and episodes whose steps do not change what later steps can earn.

    Parameters
    ----------
    env : gymnasium.Env
        The environment; rewards must keep to the guard's bounds.
    guard : Guard
        With one metric.
    baseline : callable, optional
        The action you would play today, given an observation; by default `observation["baseline"]`.

    Raises
    ------
    ConfigError
        If the guard has several metrics.

    Examples
    --------
    >>> import surefoot
    >>> from surefoot.simulation import ArmsWorld, BanditEnv, Bernoulli
    >>> world = ArmsWorld(actions=3, dim=3, rewards=Bernoulli())
    >>> env = GuardedEnv(BanditEnv(world, horizon=50), surefoot.Guard(alpha=0.2, delta=0.05, seed=1))
    >>> observation, info = env.reset(seed=1)
    >>> *_, info = env.step(2)
    >>> info["source"], round(info["probability"], 6)
    ('baseline', 0.8)
    """

    def __init__(self, env: Any, guard: Guard, *, baseline: Callable[[Any], Any] | None = None) -> None:
        super().__init__(env)
        if len(guard.metrics) != 1:
            raise ConfigError(f"A guarded environment needs one metric, but got {', '.join(guard.metrics)}.")
        self.guard, self._baseline = guard, baseline or (lambda observation: observation["baseline"])
        self._shown: Any = None

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Start a new episode; the guard goes on, for its promise is about all rounds."""
        self._shown, info = self.env.reset(**kwargs)
        return self._shown, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one round: the action, or the baseline's in its place."""
        decision = self.guard.decide(baseline=self._baseline(self._shown), proposal=action)
        self._shown, reward, terminated, truncated, info = self.env.step(decision.action)
        self.guard.observe(decision, float(reward))
        told = {"source": decision.source, "probability": decision.probability, "share": decision.share}
        return self._shown, reward, terminated, truncated, info | {"played": decision.action} | told
