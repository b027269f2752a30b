"""The Gymnasium environment: it passes Gymnasium's own checks, and its episodes are the engine's rounds to the bit."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

import surefoot
from surefoot.errors import ConfigError, InputError
from surefoot.simulation.engine import simulate
from surefoot.simulation.gym import IDS, BanditEnv, GuardedEnv
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.rewards import Bernoulli
from surefoot.simulation.worlds import ArmsWorld, ContextualWorld, PaperWorld, World
from tests.simulation.test_environments import every_world, function_world


def seed_of(run: int, *, seed: int = 7) -> dict[str, Any]:
    return {"seed_sequence": np.random.SeedSequence(seed, spawn_key=(run,))}


def episode(env: BanditEnv, *, spoil: bool = False, **reset: Any) -> Iterator[Any]:
    """Everything that an episode returns, as plain values, under actions that go round."""
    observation, info = env.reset(**reset)
    reward, truncated, step = 0.0, False, 0
    while True:
        means = info.pop("means")
        yield observation["features"].tobytes(), observation["baseline"], means.tobytes(), info, reward
        if spoil:
            observation["features"][:] = means[:] = np.nan
        if truncated:
            return
        observation, reward, terminated, truncated, info = env.step((3 * step) % env.world.actions)
        assert terminated is False
        step += 1


@every_world
def test_gymnasiums_own_checks_pass_without_a_warning(world: World) -> None:
    entry = "surefoot.simulation.gym:BanditEnv"
    spec = EnvSpec(id="surefoot/Bandit-v0", entry_point=entry, kwargs={"world": world, "horizon": 10})
    env = gymnasium.make(spec, disable_env_checker=True).unwrapped
    assert env.spec is not None  # without one the checker leaves out determinism and render modes
    check_env(env)


@pytest.mark.parametrize("id_", IDS)
def test_a_registered_id_makes_an_environment_that_passes_the_checks(id_: str) -> None:
    env = gymnasium.make(id_, horizon=7, disable_env_checker=True)
    assert env.spec is not None
    assert env.spec.id == id_
    bandit = env.unwrapped
    assert isinstance(bandit, BanditEnv)
    assert (bandit.horizon, type(bandit.world).__name__) == (7, f"{id_.removeprefix('surefoot/')[:-3]}World")
    check_env(bandit)


def test_settings_of_a_world_are_arguments_of_make() -> None:
    env = gymnasium.make("surefoot/Paper-v0", actions=20, dim=3, rewards=Bernoulli()).unwrapped
    assert isinstance(env, BanditEnv)
    assert env.world == PaperWorld(actions=20, dim=3, rewards=Bernoulli())
    with pytest.raises(ConfigError, match="dim"):
        gymnasium.make("surefoot/Paper-v0", dim=1)


def test_gymnasium_alone_finds_the_ids() -> None:
    """The module before the colon registers them: the program itself imports nothing of surefoot."""
    made = "gymnasium.make('surefoot.simulation.gym:surefoot/Drifting-v0', horizon=3)"
    code = f"import gymnasium; print({made}.reset(seed=1)[0]['baseline'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) in range(20)


@every_world
def test_every_observation_lies_in_the_space_and_the_space_can_be_sampled(world: World) -> None:
    env = BanditEnv(world, horizon=30)
    assert np.isfinite(env.observation_space.sample()["features"]).all()
    for seed in range(5):
        observation, _ = env.reset(seed=seed)
        truncated = False
        while not truncated:
            assert observation in env.observation_space
            observation, _, _, truncated, _ = env.step(observation["baseline"])
        assert observation in env.observation_space


@every_world
def test_the_same_seed_plays_the_same_episodes_to_the_bit(world: World) -> None:
    first, second = BanditEnv(world, horizon=12), BanditEnv(world, horizon=12)
    seeded = [list(episode(env, seed=3)) for env in (first, second)]
    continued = [list(episode(env)) for env in (first, second)]
    assert seeded[0] == seeded[1]
    assert continued[0] == continued[1]
    assert len({str(played) for played in (seeded[0], continued[0], list(episode(first)))}) == 3


@every_world
def test_an_episode_is_the_rounds_of_its_realisation(world: World) -> None:
    env, rounds = BanditEnv(world, horizon=15), 15
    block = world.realisations(7, [4])[0].take(rounds + 1)
    observation, info = env.reset(options=seed_of(4))
    for t in range(rounds + 1):
        k = 0 if world.fixed else t
        means = block.means[k]
        assert observation["features"].tobytes() == block.features[k].tobytes()
        assert observation["baseline"] == block.baselines[t]
        assert info["means"].tobytes() == means.tobytes()
        assert (info["best"], info["baseline_reward"]) == (means.max(), means[block.baselines[t]])
        if t < rounds:
            action = t % world.actions
            observation, _, _, truncated, info = env.step(action)
            assert truncated == (t + 1 == rounds)
            assert info["delay"] == block.delays[t]
            assert info["regret"] == means.max() - means[action]


PLAYERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "LUCB": (surefoot.LUCB, {}),
    "CLUCB": (surefoot.CLUCB, {"alpha": 0.3}),
    "CLUCB2": (surefoot.CLUCB2, {"alpha": 0.3, "nesting": "latest"}),
}
PLAYED: dict[str, World] = {
    "paper": PaperWorld(actions=15),
    "any sign": ContextualWorld(actions=12, dim=3, sign="any"),
    "arms, clicks": ArmsWorld(rewards=Bernoulli()),
}


def decide(policy: Any, features: Any, baseline: int, known: float) -> Any:
    settings = {"baseline_reward": known} if isinstance(policy, surefoot.CLUCB) else {}
    return policy.decide(features, baseline=baseline, **settings)


@pytest.mark.parametrize("name", PLAYERS)
@pytest.mark.parametrize("world", PLAYED.values(), ids=PLAYED.keys())
def test_a_policy_plays_through_the_environment_as_it_plays_the_realisation(name: str, world: World) -> None:
    rounds, (kind, extra) = 80, PLAYERS[name]
    realisation = world.realisations(7, [2])[0]
    block = realisation.take(rounds)
    settings = {"dim": world.dim, **realisation.problem(block).settings(ridge=1.0, delta=0.1), **extra}
    direct, through = kind(**settings), kind(**settings)
    env = BanditEnv(world, horizon=rounds)
    observation, info = env.reset(options=seed_of(2))
    for t in range(rounds):
        k, b = (0 if world.fixed else t), int(block.baselines[t])
        ours = decide(direct, block.features[k], b, block.means[k, b])
        theirs = decide(through, observation["features"], observation["baseline"], info["baseline_reward"])
        assert (theirs.action, theirs.source) == (ours.action, ours.source)
        mean, draw = block.means[k, ours.action], block.draws[t]
        expected = float(draw < mean) if world.rewards == Bernoulli() else mean + world.rewards.noise * draw
        observation, reward, _, _, info = env.step(theirs.action)
        assert reward == expected
        direct.observe(ours, expected)
        through.observe(theirs, float(reward))
    assert direct.ridge.core.save().tobytes() == through.ridge.core.save().tobytes()


def test_a_policy_in_the_environment_has_the_regret_that_the_engine_counts() -> None:
    world, rounds = ContextualWorld(actions=12, dim=3, sign="any"), 100
    outcome = simulate(world, [Spec("LUCB", delta=0.1)], runs=3, horizon=rounds, seed=7, threads=1)[0]
    env = BanditEnv(world, horizon=rounds)
    for run in range(3):
        (realisation,) = world.realisations(7, [run])
        settings = realisation.problem(realisation.take(1)).settings(ridge=1.0, delta=0.1)
        policy, regret, truncated = surefoot.LUCB(dim=3, **settings), 0.0, False
        observation, _ = env.reset(options=seed_of(run))
        while not truncated:
            decision = policy.decide(observation["features"])
            observation, reward, _, truncated, info = env.step(decision.action)
            policy.observe(decision, float(reward))
            regret += info["regret"]
        assert regret == pytest.approx(outcome.measures["regret"][run, -1], rel=1e-12)


@every_world
def test_what_was_returned_belongs_to_the_caller(world: World) -> None:
    kept, spoiled = (BanditEnv(world, horizon=8) for _ in range(2))
    assert list(episode(kept, seed=1)) == list(episode(spoiled, seed=1, spoil=True))


def test_a_step_needs_a_reset_before_and_none_is_played_after_the_horizon() -> None:
    env = BanditEnv(PaperWorld(), horizon=2)
    with pytest.raises(gymnasium.error.ResetNeeded, match="`reset` must be called"):
        env.step(0)
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(2)] == [False, True]
    with pytest.raises(gymnasium.error.ResetNeeded, match="after the horizon"):
        env.step(0)
    env.reset()
    assert env.step(0)[3] is False


@pytest.mark.parametrize("action", [-1, 100, 1.5, "3", None])
def test_an_action_outside_the_space_is_refused_and_plays_nothing(action: Any) -> None:
    env, other = BanditEnv(PaperWorld(), horizon=5), BanditEnv(PaperWorld(), horizon=5)
    for each in (env, other):
        each.reset(seed=0)
    with pytest.raises(InputError, match="`0 <= action < 100` must hold, but got"):
        env.step(action)
    assert env.step(np.int64(3))[1] == other.step(3)[1]


@pytest.mark.parametrize("options", [{"seed": 3}, {"seed_sequence": 3}])
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="`options` may hold only a `seed_sequence`"):
        BanditEnv(PaperWorld()).reset(options=options)


def test_settings_that_no_episode_can_have_are_refused() -> None:
    with pytest.raises(ConfigError, match="`world` must be a World, but got 3"):
        BanditEnv(3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="`horizon` must be a whole number >= 1, but got horizon=0"):
        BanditEnv(PaperWorld(), horizon=0)
    with pytest.raises(ConfigError, match="`feature_limit > 0` must hold"):
        BanditEnv(PaperWorld(), feature_limit=-1.0)


def test_a_feature_outside_the_space_is_refused_and_a_wider_space_takes_it() -> None:
    world = function_world(feature_bound=0.1)
    with pytest.raises(ConfigError, match=r"within 0\.1 of zero, but round 1 has one of size 0\..*`feature_limit`"):
        BanditEnv(world).reset(seed=0)
    env = BanditEnv(world, feature_limit=0.6)
    assert env.reset(seed=0)[0] in env.observation_space


def test_several_environments_run_side_by_side() -> None:
    envs = gymnasium.vector.SyncVectorEnv([lambda: BanditEnv(PaperWorld(), horizon=5)] * 3)
    observation, _ = envs.reset(seed=1)
    assert observation["features"].shape == (3, 100, 4)
    alone = BanditEnv(PaperWorld(), horizon=5)
    assert (alone.reset(seed=2)[0]["features"] == observation["features"][1]).all()
    _, rewards, _, _, _ = envs.step(np.array([4, 5, 6]))
    assert rewards[1] == alone.step(5)[1]


def test_without_gymnasium_the_import_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "surefoot.simulation.gym")
    with pytest.raises(ImportError, match=r"pip install 'surefoot\[simulation\]'"):
        importlib.import_module("surefoot.simulation.gym")


def test_a_guarded_environment_plays_what_the_coin_says_and_keeps_the_floor() -> None:
    world = ArmsWorld(actions=3, dim=3, rewards=Bernoulli())
    guard = surefoot.Guard(alpha=0.2, delta=0.05, seed=1)
    env = GuardedEnv(BanditEnv(world, horizon=3000), guard)
    observation, info = env.reset(seed=4)
    means, baseline = info["means"], observation["baseline"]
    slack, sources, worst = 0.0, [], (baseline + 1) % 3
    for _ in range(3000):
        _, _, _, _, info = env.step(worst)
        assert info["played"] == (worst if info["source"] == "learner" else baseline)
        slack += info["share"] * (means[worst] - means[baseline]) + 0.2 * means[baseline]
        sources.append(info["source"])
        assert slack >= 0.0
    assert 0 < sources.count("learner") < 3000
    assert guard.rounds == 3000
    several = surefoot.Guard(delta=0.1, metrics={name: surefoot.floor(0, 1, alpha=0.1) for name in "ab"})
    with pytest.raises(ConfigError, match="one metric"):
        GuardedEnv(BanditEnv(world), several)
