"""fit_baseline: intervals cover the truth, doubts are raised where they should be and rarely elsewhere."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from surefoot.errors import ConfigError
from surefoot.experiment.configuration import Configuration, read_configuration
from surefoot.linear.encoding import CategoricalColumn, Encoder, NumericColumn
from surefoot.linear.features import Disjoint
from surefoot.replay.baseline_fit import Fit, configuration_of, fit_baseline
from surefoot.replay.doubts import SURE
from surefoot.replay.log import ContextLog, RowMaker
from surefoot.replay.table_log import TableLog, read_log

WORLD = np.random.default_rng(99)
THETA = WORLD.uniform(0.1, 0.5, size=6)


def log_of(
    seed: int,
    *,
    rows: int = 1_500,
    drift: float = 0.0,
    curve: float = 0.0,
    memory: float = 0.0,
    heavy: bool = False,
    skewed: bool = False,
) -> ContextLog:
    """Two actions, two context columns, a linear reward with noise 0.3; each argument breaks one assumption."""
    rng = np.random.default_rng([5, seed])
    contexts = rng.uniform(0, 0.7, size=(rows, 2))
    actions = rng.integers(0, 2, size=rows)
    phi = Disjoint(actions=2, context_dim=2, context_bound=1.0)
    played = RowMaker(phi, 2)(contexts)[np.arange(rows), actions]
    noise = rng.standard_t(2.5, size=rows) if heavy else rng.normal(size=rows)
    for t in range(1, rows if memory else 0):
        noise[t] += memory * noise[t - 1]
    rewards = played @ THETA + 0.3 * noise + drift * np.linspace(0, 1, rows)
    rewards += curve * (contexts[:, 0] - 0.35) ** 2
    chances = np.full(rows, 0.5) if not skewed else np.full(rows, 0.35)
    return ContextLog(contexts=contexts, phi=phi, rewards=rewards, actions=actions, baselines=0, propensities=chances)


def doubtful(fit: Fit) -> set[str]:
    return {doubt.assumption.split(":")[0].split()[0] for doubt in fit.doubts if doubt.is_doubtful}


def test_intervals_cover_reward_noise_and_theta_at_their_level() -> None:
    runs, level = 200, 0.9
    hits = np.zeros(3)
    # The baseline's mean over all contexts: theirs are uniform in [0, 0.7].
    reward = THETA[0] + 0.35 * (THETA[1] + THETA[2])
    for seed in range(runs):
        fit = fit_baseline(log_of(seed), level=level)
        truths = (reward, 0.3, float(np.linalg.norm(THETA)))
        found = (fit.baseline_reward, fit.noise, fit.theta_norm)
        hits += [estimate.low <= truth <= estimate.high for estimate, truth in zip(found, truths, strict=True)]
    least = binom.ppf(1e-4, runs, level)
    assert (hits >= least).all(), hits
    assert (hits[:2] <= binom.ppf(1 - 1e-4, runs, level)).all(), hits


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        ({"drift": 0.4}, "No"),
        ({"curve": 4.0}, "Linearity"),
        ({"memory": 0.5}, "Independence"),
        ({"heavy": True}, "Light"),
        ({"skewed": True}, "Propensities"),
    ],
)
def test_what_is_broken_is_doubted(broken: dict[str, float], name: str) -> None:
    assert name in doubtful(fit_baseline(log_of(0, rows=3_000, **broken)))  # type: ignore[arg-type]


def test_what_holds_is_seldom_doubted() -> None:
    runs = 100
    raised = sum(
        bool(doubtful(fit_baseline(log_of(seed))) & {"No", "Linearity", "Independence", "Light", "Propensities"})
        for seed in range(runs)
    )
    # Five tests, each wrong at most once in a thousand times.
    assert raised <= binom.ppf(1 - 1e-4, runs, 5 * SURE)


def test_rare_actions_and_a_poor_baseline_are_doubted() -> None:
    log = log_of(0, rows=40)
    assert "Coverage" in doubtful(fit_baseline(log))
    batch = next(log.batches())
    poor = ContextLog(
        contexts=np.zeros((40, 2)), phi=log.phi, rewards=batch.rewards[:, 0] - 5, actions=batch.actions, baselines=0
    )
    assert "The" in doubtful(fit_baseline(poor))


def test_a_declared_range_is_held_against_the_log() -> None:
    log = log_of(0)
    assert "Range" in doubtful(fit_baseline(log))  # seen, not known
    assert "Range" not in doubtful(fit_baseline(log, reward_bounds=(-5.0, 5.0)))
    assert "Range" in doubtful(fit_baseline(log, reward_bounds=(0.0, 1.0)))
    assert fit_baseline(log, reward_bounds=(-5.0, 5.0)).declared.noise == 5.0


def clicks(path: Path, rows: int = 2_000) -> Path:
    rng = np.random.default_rng(1)
    plan, shown = rng.choice(["basic", "pro"], rows), rng.choice(["banner", "mail"], rows)
    chance = 0.2 + 0.3 * ((plan == "pro") & (shown == "mail"))
    sold = (rng.random(rows) < chance).astype(int)
    age = rng.integers(18, 70, rows)
    pl.DataFrame({"age": age, "plan": plan, "action": shown, "reward": sold, "propensity": 0.5}).write_csv(path)
    return path


def test_the_configuration_survives_its_file_and_builds_the_policy(tmp_path: Path) -> None:
    log = read_log(clicks(tmp_path / "clicks.csv"), baseline="banner")
    assert isinstance(log, TableLog)
    fit = fit_baseline(log)
    made = configuration_of(fit, log, policy="CLUCB", alpha=0.1, delta=0.01, ridge=1.0)
    read = read_configuration(made.write(tmp_path / "experiment.toml"))
    assert read == made
    policy = read.new_policy()
    rows = read.rows({"age": 33, "plan": "pro"})
    assert rows.shape == (2, log.dim)
    decision = policy.decide(rows, baseline=read.baseline_row, baseline_reward=read.baseline_reward)
    policy.observe(decision, 1.0)
    # The log's own contexts give the log's own features: replay and production see the same rows.
    first = pl.read_csv(tmp_path / "clicks.csv").row(0, named=True)
    np.testing.assert_array_equal(read.rows(first), next(log.batches()).features[0])
    with pytest.raises(ConfigError, match="must not exist yet"):
        made.write(tmp_path / "experiment.toml")


@pytest.mark.parametrize("policy", ["LUCB", "CLUCB", "CLUCB2"])
def test_every_policy_can_be_configured(policy: str) -> None:
    configuration = Configuration(
        policy=policy, alpha=0.1, delta=0.01, noise=0.5, ridge=1.0, theta_bound=1.0, feature_bound=1.5,
        baseline_reward=0.2, actions=("a", "b", 'c "quoted"'), baseline="b",
        encoder=Encoder((NumericColumn("x", 0.0, 1e-7), CategoricalColumn("y", ("ü", "\n")))),
        action_features={"a": (1.0,), "b": (2.0,), 'c "quoted"': (3.0,)},
    )  # fmt: skip
    assert type(configuration.new_policy()).__name__ == policy
    assert configuration.rows({"x": 0.5, "y": "ü"}).shape == (3, 8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("alpha", "alhpa"), "Did you mean 'alpha'"),
        (('policy = "CLUCB2"', 'policy = "CLUCB3"'), "Did you mean 'CLUCB'"),
        (("[actions]", "[actons]"), "Did you mean 'actions'"),
        (("names", "nams"), "missing or wrong: 'names'"),
        (("noise = ", "noise = = "), "must be valid TOML"),
    ],
)
def test_a_configuration_with_a_mistake_is_refused(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    made = Configuration("CLUCB2", 0.1, 0.01, 0.5, 1.0, 1.0, 1.5, 0.2, ("a", "b"), "a", Encoder(()))
    path = tmp_path / "experiment.toml"
    path.write_text(made.to_toml().replace(*change, 1))
    with pytest.raises(ConfigError, match=message):
        read_configuration(path).new_policy()
