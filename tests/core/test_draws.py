"""Draws by place: the published answers of Philox, the right distributions, and neighbours that know nothing of it."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from surefoot.arrays import Vector
from surefoot.core import native
from surefoot.core.native import normal_at, philox, uniform_at

CHANCE = 1e-6  # of a false alarm, in each test
COUNT = 20_000


@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
    ids=["zeros", "ones", "digits of pi"],
)
def test_philox_gives_the_published_answers(counter: list[int], key: list[int], answer: list[int]) -> None:
    assert philox(counter, key) == answer


def test_a_draw_is_a_function_of_its_place_and_of_all_of_it() -> None:
    place = {"seed": 3 << 40, "stream": 5, "run": 7, "round_": 11 << 40}
    assert uniform_at(**place) == uniform_at(**place)
    others = [uniform_at(**{**place, name: value + (1 << bit)}) for name, value in place.items() for bit in (0, 30)]
    wide = [uniform_at(**{**place, name: place[name] ^ (1 << 63)}) for name in ("seed", "round_")]
    assert len({uniform_at(**place), *others, *wide}) == 1 + len(others) + len(wide)


def test_draws_are_the_bits_of_philox() -> None:
    first, second, _, _ = philox([11, 1, 7, 5], [3, 2])
    assert uniform_at(3 + (2 << 32), 5, 7, 11 + (1 << 32)) == ((second << 32 | first) >> 11) * 2.0**-53


def test_draws_of_many_rounds_are_those_of_each_to_the_bit() -> None:
    """In groups, whose last one is not full; tails of all sizes are among them."""
    first, count = 11 << 40, 30_001
    many = native.normals(5 << 33, first, count)
    assert (np.abs(many) > 3.9).any()
    assert many.tobytes() == np.array([normal_at(5 << 33, 0, 0, first + i) for i in range(count)]).tobytes()


def series(draw: Callable[..., float], along: str, **fixed: int) -> Vector:
    place = {"seed": 1, "stream": 0, "run": 0, "round_": 0} | fixed
    return np.array([draw(**{**place, along: i}) for i in range(COUNT)])


@pytest.mark.parametrize("along", ["round_", "run", "stream", "seed"])
def test_draws_follow_their_distribution(along: str) -> None:
    uniform, normal = series(uniform_at, along), series(normal_at, along)
    limit = stats.kstwo.isf(CHANCE, COUNT)
    assert stats.kstest(uniform, "uniform").statistic < limit
    assert stats.kstest(normal, "norm").statistic < limit
    assert stats.kstest(normal * 1.1, "norm").statistic > limit
    assert uniform.min() >= 0.0
    assert uniform.max() < 1.0
    assert np.isfinite(normal).all()


@pytest.mark.parametrize(("along", "beside"), [*itertools.permutations(["round_", "run", "stream", "seed"], 2)])
def test_neighbours_are_independent(along: str, beside: str) -> None:
    """Correlations of normal draws and of their squares, with the next along the series and with the one beside it."""
    one, other = series(normal_at, along), series(normal_at, along, **{beside: 2})
    # Each correlation of n independent pairs is about normal with variance 1/n.
    limit = stats.norm.isf(CHANCE / 2) / math.sqrt(COUNT - 1)
    for shape in (np.asarray, np.square):
        x, y = shape(one), shape(other)
        assert abs(np.corrcoef(x, y)[0, 1]) < limit
        assert abs(np.corrcoef(x[1:], x[:-1])[0, 1]) < limit


def test_a_uniform_draw_uses_all_of_its_53_bits() -> None:
    bits = (series(uniform_at, "round_") * 2.0**53).astype(np.int64)
    ones = np.array([((bits >> i) & 1).sum() for i in range(53)])
    low, high = stats.binom.ppf(CHANCE / 106, COUNT, 0.5), stats.binom.isf(CHANCE / 106, COUNT, 0.5)
    assert ((ones >= low) & (ones <= high)).all()
