"""The likelihood set of bounded rewards, from scratch: forecasts, losses, and the tangent at any point.

prod p^y (1 - p)^(1 - y) / (e^y (1 - e)^(1 - y)) is a supermartingale at the truth, for forecasts p made before their
rewards y. The audit makes its own forecasts, by the same rule: its set holds whatever was written down.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surefoot.audit.compensated_sums import Matrix, UnboundedSum, Vector
from surefoot.audit.confidence_sets import EPS
from surefoot.audit.recorded_proof import LinearFact

LIKELIHOOD = "likelihood of the rewards"
ROOM = 1024  # distinct rows whose losses are kept exactly
FAR = 1e9  # in lengths of theta: no honest point lies there
EDGE = 1e-6  # below it -ln x is continued by its parabola
LEAST = 1e-6  # of a forecast, and from 1
GROWTH = 1.15  # of the squared width by which rows are proposed, with the logarithm of the rewards seen
RARE = 0.2  # rewards, in units of their bounds: below it proposals have no need to promise more
FEW = 64.0  # rounds that do not tell yet whether rewards are rare
PRIOR = 4.0  # rewards at the rate of all arms, with which the cautious forecast begins
OPTIMISM = 0.25  # of ln(1/delta)


@dataclass(frozen=True)
class LikelihoodDeclarations:
    """What was declared, as far as the set depends on it; `bounds` are those of single rewards."""

    dim: int
    delta: float
    bounds: tuple[float, float]
    highest_mean: float
    theta_bound: float
    feature_bound: float


class Forecasts:
    """The row's own rate, a linear model and the rate of all rows, mixed by how well they did."""

    def __init__(self) -> None:
        self.rewards, self.rounds = 0.0, 0.0
        self._trust, self._forecast = np.full(3, 1.0 / 3.0), np.zeros(3)

    @property
    def rate(self) -> float:
        """Of all rows; half a reward is told in advance."""
        return (self.rewards + 0.5) / (self.rounds + 1.0)

    def of(self, rewards: float, rounds: float, linear: float) -> float:
        """The forecast for a row that brought so many rewards in so many rounds."""
        rate = self.rate
        highest = min(4.0 * rate, 1.0 - 0.25 * (1.0 - rate))
        modelled = rate if self.rewards < 4.0 else min(max(linear, 0.25 * rate), highest)
        forecast = np.array([(rewards + 0.5) / (rounds + 0.5 / rate), modelled, rate])
        self._forecast = np.clip(forecast, LEAST, 1.0 - LEAST)
        return float(self._trust @ self._forecast)

    def learn(self, reward: float) -> None:
        """Trust those more that foresaw it."""
        trust = self._trust * np.exp(-loss(self._forecast, reward))
        shared = 1.0 / (self.rounds + 3.0)
        self._trust = (1.0 - shared) * trust / trust.sum() + shared / 3.0
        self.count(reward)

    def count(self, reward: float) -> None:
        """A reward that was not forecast tells of the rate of all rows."""
        self.rewards += reward
        self.rounds += 1.0


class RebuiltLikelihood:
    """{theta: loss(theta) <= spent + ln(1/delta)} after the rewards that were learned."""

    _room: float = ROOM

    def __init__(self, declared: LikelihoodDeclarations) -> None:
        self._declared = declared
        self._low, self._scale = declared.bounds[0], 1.0 / (declared.bounds[1] - declared.bounds[0])
        self._highest = min(1.0, (declared.highest_mean - self._low) * self._scale)
        self._forecasts, self._spent = Forecasts(), UnboundedSum()
        reach = declared.feature_bound * self._scale
        self._ridge = max(declared.dim / declared.theta_bound**2, 1e-4 * reach**2)
        self._gram, self._moment = self._ridge * np.eye(declared.dim), np.zeros(declared.dim)
        self._theta: Vector = np.zeros(declared.dim)  # of the linear model
        self._places: dict[bytes, int] = {}
        self._rows = np.zeros((0, declared.dim))
        self._counts = np.zeros((0, 2))  # successes and failures of each row
        self._constant, self._linear = 0.0, np.zeros(declared.dim)
        self._square = np.zeros((declared.dim, declared.dim))
        # How many parabolas these are, what their constants are made of, and their bends times squared lengths of rows.
        self._gone, self._gone_size, self._gone_reach = 0, 0.0, 0.0

    @property
    def _allowed(self) -> float:
        return self._spent.value + math.log(1.0 / self._declared.delta)

    def _unit(self, mean: Vector) -> Vector:
        return np.asarray(self._scale * (mean - self._low))

    def learn(self, x: Vector, reward: float) -> bool:
        """Take in a reward; whether it lies within the bounds."""
        if not self._low <= reward <= self._declared.bounds[1]:
            return False
        y = self._scale * (reward - self._low)
        key = (x + 0.0).tobytes()
        place = self._places.get(key, -1)
        successes, failures = self._counts[place] if place >= 0 else (0.0, 0.0)
        forecast = self._forecasts.of(successes, successes + failures, self._foreseen(x, successes, failures))
        variance = max(forecast, self._forecasts.rate) * (1.0 - forecast)
        self._spent.add(float(loss(np.array(forecast), y)))
        self._forecasts.learn(y)
        if place < 0:
            if len(self._rows) == self._room:
                self._make_room()
            place = self._places[key] = len(self._rows)
            self._rows, self._counts = np.vstack([self._rows, x]), np.vstack([self._counts, np.zeros(2)])
        self._counts[place] += (y, 1.0 - y)
        self._follow(x, reward, self._scale**2 / variance)
        return True

    def _foreseen(self, x: Vector, successes: float, failures: float) -> float:
        """What a model of all rows says of this one, in units of the bounds."""
        return float(self._unit(self._theta @ x))

    def _follow(self, x: Vector, reward: float, weight: float) -> None:
        """Teach that model."""
        self._gram += weight * np.outer(x, x)
        self._moment += weight * reward * x
        self._theta = np.asarray(np.linalg.solve(self._gram, self._moment), dtype=np.float64)

    def touched(self, point: Vector | None) -> list[LinearFact]:
        """The tangent at a point: <theta, normal> >= level over the set."""
        bound = self._declared.theta_bound
        if point is None or point.shape != (self._declared.dim,) or not _length(point) <= FAR * bound:
            return []
        means = self._unit(self._rows @ point)
        (hits, hit_slopes), (misses, miss_slopes) = minus_log(means), minus_log(1.0 - means)
        successes, failures = self._counts.T
        slopes = successes * hit_slopes - failures * miss_slopes
        heights = successes * hits + failures * misses - slopes * (means + self._scale * self._low)
        gradient = self._linear + 2.0 * self._square @ point
        normal = -self._scale * (slopes @ self._rows) - gradient
        gone = self._constant - float(point @ self._square @ point)
        allowed = self._allowed
        level, length = math.fsum([*heights.tolist(), gone, -allowed]), _length(point)
        reach = bound * float(np.abs(slopes) @ np.linalg.norm(self._rows, axis=1)) * self._scale
        size = float(np.abs(heights).sum()) + abs(gone) + allowed + reach
        # Parabolas were added up plainly. A point that they hardly bend towards may be as long as a prover likes.
        rounded = (self._gone + 16) * (self._gone_size + 2.0 * self._gone_reach * length * (length + bound))
        return [LinearFact(normal, level, EPS * (64 * size + rounded), level + 1e-9 * size)]

    def uppers(self, rows: Matrix) -> list[Vector]:
        """What proposals may have been scored by: the linear model and one of two widths. No promise rests on it."""
        squares = np.einsum("ij,ji->i", rows, np.linalg.solve(self._gram, rows.T))
        return [np.asarray(rows @ self._theta + width * np.sqrt(squares)) for width in self._widths()]

    def _widths(self) -> list[float]:
        forecasts = self._forecasts
        width = math.sqrt(max(0.5 * math.log(1.0 / self._declared.delta), GROWTH * math.log(1.0 + forecasts.rewards)))
        if forecasts.rewards < RARE * (forecasts.rounds + FEW):
            return [width]
        # A row of two thirds of the largest length promises what was earned so far, or it would never be tried.
        earned = self._low + forecasts.rewards / (forecasts.rounds * self._scale)
        # Journals that were begun before that was so have the plain width.
        return [max(width, 1.5 * earned * math.sqrt(self._ridge) / self._declared.feature_bound), width]

    def _make_room(self) -> None:
        """Rows without a reward leave for parabolas, and if that is not enough, the oldest quarter."""
        self._leave(self._counts[:, 0] <= 0.0)
        if len(self._rows) > ROOM - ROOM // 4:
            self._leave(np.arange(len(self._rows)) < ROOM // 4)
        self._places = {(row + 0.0).tobytes(): place for place, row in enumerate(self._rows)}

    def _leave(self, goes: NDArray[np.bool_]) -> None:
        for row, (successes, failures) in zip(self._rows[goes], self._counts[goes], strict=True):
            least = EDGE + 1e-3 * self._forecasts.rate
            mean = min(max(float(self._unit(self._theta @ row)), least), max(0.9 * self._highest, least))
            rest = -(self._scale * self._low) - mean
            # From 0 on, -ln(1 - e) bends at least as it does at 0.
            self._add(row, rest, -failures * math.log(1.0 - mean), failures / (1.0 - mean), 0.5 * failures)
            room = self._highest - mean
            bend = (room / mean - math.log1p(room / mean)) / room**2 if room > 0.0 else 0.0
            self._add(row, rest, -successes * math.log(mean), -successes / mean, successes * max(0.0, bend))
        self._rows, self._counts = self._rows[~goes], self._counts[~goes]

    def _add(self, row: Vector, rest: float, value: float, slope: float, bend: float) -> None:
        """value + slope u + bend u^2 with u = scale <theta, x> + rest."""
        self._gone += 1
        self._gone_size += abs(value) + abs(slope * rest) + bend * rest * rest
        self._gone_reach += bend * self._scale**2 * float(row @ row)
        self._constant += value + slope * rest + bend * rest * rest
        self._linear += (slope + 2.0 * bend * rest) * self._scale * row
        self._square += bend * self._scale**2 * np.outer(row, row)


def _length(vector: Vector) -> float:
    return math.hypot(*vector.tolist())


def loss(forecast: Vector, reward: float) -> Vector:
    """-ln of the probability that a forecast gave to the reward."""
    return np.asarray(-reward * np.log(forecast) - (1.0 - reward) * np.log(1.0 - forecast))


def minus_log(x: Vector) -> tuple[Vector, Vector]:
    """-ln x and its slope, below EDGE those of its second-order polynomial there."""
    inside, beyond = np.maximum(x, EDGE), np.minimum(x - EDGE, 0.0)
    values = -np.log(inside) - beyond / EDGE + 0.5 * (beyond / EDGE) ** 2
    return values, -1.0 / inside + beyond / EDGE**2


class RebuiltArmLikelihood(RebuiltLikelihood):
    """The joint set of plain arms, whose features are the axes: no linear model, and no arm leaves for want of room."""

    _room = math.inf

    def __init__(self, arms: int, delta: float, bounds: tuple[float, float]) -> None:
        self.bounds, self.reach = bounds, math.sqrt(arms) * max(map(abs, bounds))
        super().__init__(LikelihoodDeclarations(arms, delta, bounds, bounds[1], self.reach, 1.0))
        self._opportunity = OPTIMISM * math.log(1.0 / delta)

    def count(self, reward: float) -> bool:
        """Take in a reward of an arm whose mean is known, which tells of the rate alone; False if out of bounds."""
        is_possible = self.bounds[0] <= reward <= self.bounds[1]
        if is_possible:
            self._forecasts.count(float(self._unit(np.array(reward))))
        return is_possible

    def upper(self, arm: int) -> float:
        """What an arm is proposed by: kl(m, e) >= (e - m)^2 / (2 e (1 - m)) for e >= m."""
        axis = np.zeros(self._declared.dim)
        axis[arm] = 1.0
        place = self._places.get(axis.tobytes())
        if place is None:  # its rewards were all beyond the bounds, and none was learned
            return self.bounds[1]
        successes, failures = self._counts[place]
        mean = successes / (successes + failures)
        width = (1.0 - mean) * self._opportunity / (successes + failures)
        return float(self._low + min(1.0, mean + width + math.sqrt(width * (width + 2.0 * mean))) / self._scale)

    def _foreseen(self, x: Vector, successes: float, failures: float) -> float:
        return (successes + PRIOR) / (successes + failures + PRIOR / self._forecasts.rate)

    def _follow(self, x: Vector, reward: float, weight: float) -> None:
        """There is no model beside the counts."""
