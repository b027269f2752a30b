"""Work in strips of columns and side by side: any dimension, whatever is left beside whole strips; and ties."""

import numpy as np
import pytest

from surefoot.linear.ridge import Ridge
from tests.linear.test_catalogue import keeping, proposal


@pytest.mark.parametrize("dim", [*range(1, 20), 24, 31, 32, 33, 40, 47])
def test_the_state_equals_a_fresh_solve_in_every_dimension(dim: int) -> None:
    rng = np.random.default_rng(dim)
    count = 2 * dim + 37
    state, rows, rewards = Ridge(dim=dim, ridge=0.3), rng.normal(size=(count, dim)), rng.normal(size=count)
    for row, reward in zip(rows, rewards.tolist(), strict=True):
        state.core.absorb(row, reward)
    gram = 0.3 * np.eye(dim) + rows.T @ rows
    whitener = state.core.whitener
    np.testing.assert_allclose(state.core.gram, gram, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(whitener.T @ whitener @ gram, np.eye(dim), atol=1e-10)
    np.testing.assert_allclose(gram @ state.theta, rows.T @ rewards, rtol=1e-9, atol=1e-9)
    assert not np.triu(whitener, 1).any()


@pytest.mark.parametrize("dim", [3, 4])
def test_among_equal_rows_of_a_short_list_the_first_is_proposed(dim: int) -> None:
    rng = np.random.default_rng(dim)
    half = rng.normal(size=(80, dim))
    rows = np.concatenate([half, half])
    core, with_list = keeping(Ridge(dim=dim, ridge=0.3), rows), 0
    theta = rng.normal(size=dim)
    for _ in range(600):
        with_list += len(core.catalogue_scores()[2]) > 1
        row, _ = proposal(core, rows)
        assert row < 80
        core.learn(rows[row].tobytes(), float(rows[row] @ theta), True)
    assert with_list > 300
