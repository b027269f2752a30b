"""One theta per action: as quick as that many small problems, and the same answers as one large one."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from surefoot import Disjoint
from surefoot.replay import ArrayLog, Declared, read_log, replay
from surefoot.replay.log import Batch, ContextLog, RowMaker
from surefoot.replay.replayed_policy import FULL, REJECTION, guarded, log_player
from surefoot.simulation import Spec
from surefoot.simulation.policy_specs import as_specs

ACTIONS, WIDTH, ROWS = 5, 11, 600
DECLARED = Declared(noise=0.2, theta_bound=2.0, baseline_reward=0.4)


def logs() -> tuple[ArrayLog, ArrayLog]:
    """A log with one theta per action, and the same one seen in coordinates in which no feature is zero."""
    rng = np.random.default_rng(3)
    phi = Disjoint(actions=ACTIONS, context_dim=WIDTH, context_bound=1.0)
    contexts = rng.random((ROWS, WIDTH)) / np.sqrt(WIDTH)
    rewards = contexts @ rng.random((WIDTH, ACTIONS)) + 0.05 * rng.normal(size=(ROWS, ACTIONS))
    # Rows of different lengths: actions never played would tie otherwise, and rounding would decide.
    rows = RowMaker(phi, WIDTH)(contexts) * (1 - 0.01 * np.arange(ACTIONS))[:, None]
    turn, _ = np.linalg.qr(rng.normal(size=(phi.dim, phi.dim)))
    blocks, whole = (
        ArrayLog(features=seen, actions=0, rewards=rewards, baselines=1, feature_bound=phi.bound * (1 + 1e-9))
        for seen in (rows, rows @ turn)
    )
    return blocks, whole


@pytest.mark.parametrize(
    "spec",
    [
        Spec("LUCB"),
        Spec("CLUCB", alpha=0.3),
        Spec("CLUCB2", alpha=0.3, radius="amm"),
        Spec("SafeLUCB", alpha=0.3, ridge=0.3),
        Spec("SafeLUCB", alpha=0.3, ridge=0.3, gate="joint"),
        Spec("SafeLUCB", alpha=0.3, reward_range=(-1.0, 2.0), optimism="facts", radius="residual"),
    ],
    ids=lambda spec: f"{spec.policy}-{spec.gate}-{spec.optimism}",
)
def test_blocks_decide_as_the_whole_matrix_does(spec: Spec) -> None:
    blocks, whole = (replay(log, [spec], declared=DECLARED, evaluator="full")[0] for log in logs())
    assert blocks.learner_share == whole.learner_share > 0
    for name, estimate in blocks.main.items():
        assert estimate.value == pytest.approx(whole.main[name].value, rel=1e-9)
    if spec.gate == "facts" and spec.policy == "SafeLUCB":
        return  # a search for facts may end anywhere beyond what is asked
    np.testing.assert_allclose(blocks.curves["margin"], whole.curves["margin"], rtol=1e-6, atol=1e-6)


def test_rows_of_one_theta_per_action_are_those_of_the_map() -> None:
    contexts = np.random.default_rng(0).random((7, 3)) / 2
    for intercept in (True, False):
        phi = Disjoint(actions=4, context_dim=3, context_bound=1.0, intercept=intercept)
        np.testing.assert_array_equal(RowMaker(phi, 3)(contexts), np.stack([phi(context) for context in contexts]))


QUIET = Declared(noise=0.02, theta_bound=1.0, baseline_reward=0.3)
POLICIES = [
    Spec("LUCB"),
    Spec("LUCB", exploration=0.7),
    Spec("CLUCB", alpha=0.95),
    Spec("CLUCB2", alpha=0.95, radius="amm"),
    Spec("SafeLUCB", alpha=0.95, ridge=0.3),
    Spec("SafeLUCB", alpha=0.95, reward_bounds=(0.0, 1.0)),
    guarded(0.95, delta=0.01, ridge=1.0, reward_bounds=(0.0, 1.0)),
]


def tables(*, intercept: bool, offered: bool) -> tuple[ContextLog, Batch, Batch]:
    """A log with zeros in its contexts, whole and compact; now and then an action is not offered."""
    rng, rounds = np.random.default_rng(5), 300
    contexts = rng.random((rounds, WIDTH)) * (rng.random((rounds, WIDTH)) < 0.4) / np.sqrt(WIDTH)
    phi = Disjoint(actions=ACTIONS, context_dim=WIDTH, context_bound=1.0, intercept=intercept)
    rewards = (rng.random((rounds, ACTIONS)) < 0.2 + 0.1 * np.arange(ACTIONS)).astype(np.float64)
    played = rng.integers(0, ACTIONS, rounds)
    log = ContextLog(contexts=contexts, phi=phi, rewards=rewards, actions=played, baselines=1)
    (whole,), (compact,) = log.batches(), log.compact_batches()
    if offered:
        mask = rng.random((rounds, ACTIONS)) < 0.7
        mask[:, 1] = mask[np.arange(rounds), played] = True
        whole, compact = (replace(one, offered=mask) for one in (whole, compact))
    return log, whole, compact


@pytest.mark.parametrize("entry", POLICIES, ids=lambda entry: entry.label)
@pytest.mark.parametrize(("mode", "offered"), [(REJECTION, False), (FULL, False), (FULL, True)])
@pytest.mark.parametrize("intercept", [True, False])
def test_contexts_alone_give_the_bits_of_whole_rows(entry: Any, mode: int, offered: bool, intercept: bool) -> None:
    log, whole, compact = tables(intercept=intercept, offered=offered)
    assert (compact.blocks, compact.features.shape[1]) == (ACTIONS, 1)
    (spec,) = as_specs([entry])
    found = [
        log_player(spec, QUIET, log, mode=mode, seed=0).play(batch, batch.rewards, np.arange(len(batch)) % 7 != 3)
        for batch in (whole, compact)
    ]
    for name in ("chosen", "fates", "margins"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name))
    # A floor may keep the learner out for so few rows.
    assert entry.alpha is not None or len(set(found[0].chosen.tolist())) > 2


def test_a_table_is_replayed_by_its_contexts() -> None:
    table = pl.DataFrame({"x": [0.0, 0.5, 1.0, 0.2] * 5, "action": ["a", "b"] * 10, "reward": [0.0, 1.0, 1.0, 0.0] * 5})
    log = read_log(table, baseline="a")
    (whole,), (compact,) = log.batches(), log.compact_batches()
    np.testing.assert_array_equal(np.stack([compact.rows(t) for t in range(len(compact))]), whole.features)
    assert compact.features.shape == (20, 1, 2)
    assert (compact.part(3, 5).blocks, whole.blocks) == (2, 0)


def test_a_core_refuses_contexts_that_do_not_fill_its_dimensions() -> None:
    log, _, compact = tables(intercept=True, offered=False)
    player = log_player(Spec("LUCB"), DECLARED, log, mode=FULL, seed=0)
    for wrong in (replace(compact, blocks=ACTIONS + 1), replace(compact, features=compact.features[:, :, 1:].copy())):
        with pytest.raises(ValueError, match=r"dimension|numbers|size|must"):
            player.play(wrong, wrong.rewards, np.ones(len(wrong), dtype=np.bool_))
