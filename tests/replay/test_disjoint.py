"""One theta per action: as quick as that many small problems, and the same answers as one large one."""

import numpy as np
import pytest

from surefoot import Disjoint
from surefoot.replay import ArrayLog, Declared, replay
from surefoot.replay.feature_rows import RowMaker
from surefoot.simulation import Spec

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
