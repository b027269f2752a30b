"""Any world as a Gymnasium environment, and any environment under a guard.

Our worlds have ids, such as `surefoot/Paper-v0`; the settings of a world are arguments of `gymnasium.make`. The ids are
known once this module is imported, which Gymnasium does by itself for an id like
`surefoot.simulation.gym:surefoot/Paper-v0`: Gymnasium 1.0 has given up the entry points of packages.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.arrays import count, positive
from surefoot.errors import ConfigError, InputError, MissingPackageError
from surefoot.policies.guard import Guard
from surefoot.simulation.rewards import reward_of
from surefoot.simulation.worlds import WORLDS, Block, PaperWorld, Realisation, World

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:
    raise MissingPackageError(
        "BanditEnv needs Gymnasium. Install it with: pip install 'surefoot[simulation]'"
    ) from error

NORMAL_LIMIT = 40.0  # a standard normal number lies outside with a probability below 1e-349

IDS = tuple(f"surefoot/{name.title()}-v0" for name in WORLDS)

Observation = dict[str, Any]
Info = dict[str, Any]
Action = int | np.integer[Any]


class BanditEnv(gymnasium.Env[Observation, Action]):
    """A world as a Gymnasium environment, so that other learners play the same rounds.

    `reset` draws a realisation, a step plays one of its rounds, and the horizon truncates. An observation holds the
    `features` (actions, dim) of the coming round and the row that the `baseline` would play. `info` holds what only the
    world knows of that round: the `means` of all actions, the `best` of them, and the `baseline_reward`. `step` adds
    the `regret` of the round just played and the `delay` of its reward: rewards are returned at once whatever the
    world's delay, so to simulate late ones keep each for that many rounds.

    A realisation comes from `np_random`: the same seed gives the same episode to the bit. To play the rounds that the
    engine plays in run 3 under seed 7, reset with `options={"seed_sequence": np.random.SeedSequence(7,
    spawn_key=(3,))}`.

    Our worlds have Gymnasium ids, to which settings are given by name: `gymnasium.make("surefoot/Paper-v0", actions=20,
    horizon=100)`, and likewise `Contextual`, `Arms`, `Drifting` and `Misspecified`.

    Parameters
    ----------
    world : World
        Where the rounds come from.
    horizon : int
        Rounds of an episode.
    feature_limit : float, optional
        Bound on every single feature in every realisation; by default taken from the world.

    Raises
    ------
    ConfigError
        If an argument is invalid.

    Examples
    --------
    >>> from surefoot.simulation import PaperWorld
    >>> env = BanditEnv(PaperWorld(actions=20), horizon=100)
    >>> observation, info = env.reset(seed=1)
    >>> observation["features"].shape
    (20, 4)
    >>> _, reward, terminated, truncated, _ = env.step(observation["baseline"])
    >>> terminated, truncated
    (False, False)
    """

    def __init__(self, world: World, *, horizon: int = 1000, feature_limit: float | None = None) -> None:
        if not isinstance(world, World):
            raise ConfigError(f"`world` must be a World, but got {world!r}.")
        self.world = world
        self.horizon = count("horizon", horizon, hint="horizon is the number of rounds of an episode.")
        limit = _limit_of(world) if feature_limit is None else feature_limit
        positive("feature_limit", limit, hint="feature_limit bounds every single feature in every realisation.")
        box = spaces.Box(-limit, limit, shape=(world.actions, world.dim), dtype=np.float64)
        self.observation_space = spaces.Dict({"features": box, "baseline": spaces.Discrete(world.actions)})
        self.action_space = spaces.Discrete(world.actions)
        self.render_mode = None
        self._limit = limit
        self._realisation: Realisation | None = None
        self._round = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Draw a new realisation from `np_random`, or from `options["seed_sequence"]`, and show its first round."""
        # Checked first: a call that raises must have changed nothing.
        own = _seed_sequence(options or {})
        super().reset(seed=seed)
        if own is None:
            # 128 bits, as many as a SeedSequence takes from the system.
            own = np.random.SeedSequence(self.np_random.integers(2**32, size=4).tolist())
        self._realisation, self._round = self.world.realise(own), 0
        return self._show(self._realisation)

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, Info]:
        """Play one round; the observation is of the next one."""
        if self._realisation is None or self._round >= self.horizon:
            raise gymnasium.error.ResetNeeded("`reset` must be called before the first step and after the horizon.")
        if not self.action_space.contains(action):
            raise InputError(f"`0 <= action < {self.world.actions}` must hold, but got {action!r}.")
        played, rewards, row = self._block, self._realisation.rewards, int(action)
        mean = float(played.means[0, row])
        reward = float(reward_of(rewards.kind, rewards.scale, mean, float(played.draws[0])))
        self._round += 1
        # After the last round, too: Gymnasium wants an observation with every step.
        observation, info = self._show(self._realisation)
        info |= {"regret": float(played.means[0].max()) - mean, "delay": int(played.delays[0])}
        return observation, reward, False, self._round >= self.horizon, info

    def _show(self, realisation: Realisation) -> tuple[Observation, Info]:
        block = self._block = realisation.take(1)
        self._check(block)
        baseline, means = int(block.baselines[0]), block.means[0].copy()
        # Copies: who keeps what was returned must not see it change, nor change the world.
        observation = {"features": block.features[0].copy(), "baseline": baseline}
        return observation, {"means": means, "best": float(means.max()), "baseline_reward": float(means[baseline])}

    def _check(self, block: Block) -> None:
        largest = float(np.abs(block.features).max())
        if largest > self._limit:
            raise ConfigError(
                f"Every feature must lie within {self._limit:.6g} of zero, but round {self._round + 1} has one of size "
                f"{largest:.6g}. Declare a larger bound in the world, or give `feature_limit`."
            )


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
        self._observation: Any = None

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        """Start a new episode; the guard continues, since its promise covers all rounds."""
        self._observation, info = self.env.reset(**kwargs)
        return self._observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Play one round: the action, or the baseline's in its place."""
        decision = self.guard.decide(baseline=self._baseline(self._observation), proposal=action)
        self._observation, reward, terminated, truncated, info = self.env.step(decision.action)
        self.guard.observe(decision, float(reward))
        info |= {"played": decision.action, "source": decision.source}
        info |= {"probability": decision.probability, "share": decision.share}
        return self._observation, reward, terminated, truncated, info


def _limit_of(world: World) -> float:
    """What bounds every feature in every realisation. The paper's are normal, so that only each run has a bound."""
    if isinstance(world, PaperWorld):
        return NORMAL_LIMIT
    return world.realise(np.random.SeedSequence(0)).feature_bound


def _seed_sequence(options: dict[str, Any]) -> np.random.SeedSequence | None:
    unknown = sorted(set(options) - {"seed_sequence"})
    sequence = options.get("seed_sequence")
    if unknown or not (sequence is None or isinstance(sequence, np.random.SeedSequence)):
        raise InputError(f"`options` may hold only a `seed_sequence`, a numpy SeedSequence, but got {options!r}.")
    return sequence


def make_env(world: str, *, horizon: int = 1000, feature_limit: float | None = None, **settings: Any) -> BanditEnv:
    """The environment of a world by name, with the settings of that world."""
    return BanditEnv(WORLDS[world](**settings), horizon=horizon, feature_limit=feature_limit)


for _name, _id in zip(WORLDS, IDS, strict=True):
    if _id not in gymnasium.registry:
        gymnasium.register(_id, entry_point=f"{__name__}:make_env", kwargs={"world": _name})
