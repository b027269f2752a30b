"""The bank of the guard: a lower bound, valid at every moment, of the slack that was earned so far.

Round s plays the proposal with probability p, else the baseline; U says which, y is the reward, divided by its upper
bound. For a floor (sign +1: at least 1 - alpha of the baseline's reward) and for a ceiling (sign -1: at most 1 + alpha
of its cost) the slack of the round is

    d = sign p mu_a + (alpha - sign p) mu_b,        g = sign U y + (1 - U) y (alpha - sign p)/(1 - p) + (U - p) h

with E[g | past] = d for every h that is fixed before the coin. Where g >= -k and rate k < 1,

    E[1 + rate g] = 1 + rate d <= exp(rate d),

so the products of (1 + rate g) exp(-rate d) are supermartingales whatever the means do, and so is their average over a
grid of rates. By Ville's inequality the slack S = sum d satisfies, at all times at once with probability 1 - delta,

    sum over rates of exp(log_wealth - rate S) < rates/delta,    log_wealth = sum ln(1 + rate g).

The bound L is the S at which both sides are equal. A rate that is too high for a round books it at its worst, which
needs no data. (docs/mathematics.md, "The guard"; the logarithm is never looser than the quadratic of Fan, Grama and
Liu 2015 that stands in its place in Howard et al. 2021.)
"""

import math

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_apart
from surefoot.errors import StateError

RATES = 12
RATE_GRID = tuple(4.0 * 2.13**-i for i in range(RATES))
NEAR_RUIN = 0.98  # a rate takes a round in while rate * k stays below this
WORKING = 0.8  # RATE is the lowest one that alone proves this share of the best bound
NEWTON = 4  # steps towards L; each of them is a valid bound

# Settings of one metric; rewards are divided by their upper bound.
SIGN, ALPHA, LOW, MOST_BASELINE, EVENT, RESERVE, IS_PLAYED, COIN_EVENT, SETTINGS = range(9)

# The head of a bank, then the logarithm of the wealth of every rate. BOUND is L, of the rounds that have entered; OWED
# what the others may cost at worst; CARRIED the bank as it was proved before; COINS the variance of the coins; PLAYED
# the bank of the actions played. The means, and the spreads of rewards around what was predicted of them, are estimates
# for the ramp, on which no proof rests.
(
    TOTAL, BOUND, RATE, CARRIED, OWED, ENTERED, COINS, PLAYED,
    LEARNER_COUNT, LEARNER_MEAN, LEARNER_SPREAD, BASELINE_COUNT, BASELINE_MEAN, BASELINE_SPREAD, WEALTH,
) = range(15)  # fmt: skip

BELOW_ONE = 1.0 - 2.0**-50
ROUNDING = 1e-14  # given away of every logarithm: at least fifty roundings of a number near 1
MEMORY = 5000.0  # rewards that the estimated means reach back


@compiled
def slope_of(settings: Vector, p: float) -> float:
    """What a reward of the baseline counts, played by chance 1 - p: (alpha - sign p)/(1 - p)."""
    return float((settings[ALPHA] - settings[SIGN] * p) / (1.0 - p))


@compiled
def worst_of(settings: Vector, p: float) -> float:
    """The most that a round may cost on average, whatever the means: -d at its largest, at least 0."""
    sign, low, most = settings[SIGN], settings[LOW], settings[MOST_BASELINE]
    baseline = settings[ALPHA] - sign * p
    learner = p * low if sign > 0.0 else -p
    return float(max(0.0, -(learner + min(baseline * low, baseline * most))))


@compiled
def free_share(settings: Vector, budget: float) -> float:
    """The largest p whose worst is at most `budget`; for a floor at least alpha, whatever the budget."""
    alpha, low, most = settings[ALPHA], settings[LOW], settings[MOST_BASELINE]
    if not budget >= 0.0:  # nor may a number that is none open the gate
        budget = 0.0
    # A little less than that, so that rounding does not make a share cost what it must not.
    if settings[SIGN] > 0.0:
        return float(min(1.0, BELOW_ONE * (alpha * most + budget) / (most - low))) if most > low else 1.0
    return float(min(1.0, BELOW_ONE * (alpha * low + budget) / (1.0 - low))) if low < 1.0 else 1.0


@compiled
def worst_of_playing(settings: Vector) -> float:
    """The most that one round of the learner may cost, once its coin has fallen."""
    if settings[SIGN] > 0.0:
        return float(max(0.0, (1.0 - settings[ALPHA]) * settings[MOST_BASELINE] - settings[LOW]))
    return float(max(0.0, 1.0 - (1.0 + settings[ALPHA]) * settings[LOW]))


@compiled
def balance_of(settings: Vector, bank: Vector, p: float, prediction: float) -> float:
    """h: what takes the coin's own luck out of g, as far as means can be predicted.

    The learner is expected to be better than a prediction of the baseline by as much as it was so far. At p <= alpha a
    floor needs no balance: there g >= 0, and no bet can be lost.
    """
    if p == 0.0 or (settings[SIGN] > 0.0 and p <= settings[ALPHA]):
        return 0.0
    return float(prediction * slope_of(settings, p) - settings[SIGN] * predicted_learner(settings, bank, prediction))


@compiled
def predicted_learner(settings: Vector, bank: Vector, prediction: float) -> float:
    """What the learner is expected to earn where that is predicted of the baseline."""
    return float(min(max(prediction + bank[LEARNER_MEAN] - bank[BASELINE_MEAN], settings[LOW]), 1.0))


@compiled
def largest_loss(settings: Vector, p: float, balance: float) -> float:
    """k: how far below 0 the estimate g may fall, whatever the coin."""
    learner = least_of(settings, p, balance, True) if p > 0.0 else 0.0
    return float(max(0.0, -learner, -least_of(settings, p, balance, False)))


@compiled
def least_of(settings: Vector, p: float, balance: float, is_learner: bool) -> float:
    """The least that g can be once the coin has fallen: what a round counts whose reward is missing."""
    if is_learner:
        return float((settings[LOW] if settings[SIGN] > 0.0 else -1.0) + (1.0 - p) * balance)
    slope = slope_of(settings, p)
    return float(min(slope, slope * settings[LOW]) - p * balance)


@compiled
def estimate_of(settings: Vector, p: float, balance: float, is_learner: bool, reward: float) -> float:
    """g, the unbiased estimate of the round's slack."""
    if is_learner:
        return float(settings[SIGN] * reward + (1.0 - p) * balance)
    return float(reward * slope_of(settings, p) - p * balance)


@compiled
def available(settings: Vector, bank: Vector) -> float:
    """What may be spent: what is proved of the slack, with every round that has not entered at its worst.

    For the promise on the actions played, the bank of these. Rounding of the sums is given away.
    """
    held = bank[PLAYED] if settings[IS_PLAYED] > 0.0 else bank[CARRIED]
    return float(held - 1e-12 * (abs(held) + bank[OWED] + abs(bank[TOTAL])))


@compiled
def allowed(settings: Vector, bank: Vector) -> float:
    """The gate: the largest p that is proved to be safe in this round."""
    budget = available(settings, bank)
    if settings[IS_PLAYED] > 0.0:
        return 1.0 if budget >= worst_of_playing(settings) else 0.0
    return free_share(settings, budget)


@compiled
def charge(settings: Vector, bank: Vector, p: float, is_learner: bool) -> None:
    """Book a round that is decided, at its worst until its reward is settled."""
    worst = worst_of(settings, p)
    bank[OWED] += worst
    bank[CARRIED] = max(bank[CARRIED] - worst, bank[BOUND] + settings[RESERVE] - bank[OWED])
    if settings[IS_PLAYED] > 0.0:
        bank[COINS] += p * (1.0 - p)
        if is_learner:
            bank[PLAYED] -= worst_of_playing(settings)
        bank[PLAYED] = max(bank[PLAYED], bank[CARRIED] - coin_luck(settings, bank[COINS]))


@compiled
def coin_luck(settings: Vector, variance: float) -> float:
    """How far the coins may have fallen against us: sum (U - p)(mu_a - mu_b) >= -this, at all times at once."""
    if variance == 0.0:
        return 0.0
    least, spread = math.inf, 1.0 - settings[LOW]
    for i in range(RATES):
        rate = RATE_GRID[i] / spread
        cost = math.expm1(rate * spread) - rate * spread
        least = min(least, (cost * variance + settings[COIN_EVENT]) / rate)
    return float(least)


@compiled_apart
def enter(
    settings: Vector,
    bank: Vector,
    p: float,
    balance: float,
    worst: float,
    prediction: float,
    is_learner: bool,
    reward: float,
) -> None:
    """Take in the next round in the order of decisions; a reward that is NaN is missing, and counts at its least."""
    loss, least = largest_loss(settings, p, balance), least_of(settings, p, balance, is_learner)
    estimate = least if math.isnan(reward) else max(least, estimate_of(settings, p, balance, is_learner, reward))
    bank[TOTAL] += estimate
    bank[OWED] = max(0.0, bank[OWED] - worst)
    bank[ENTERED] += 1.0
    for i in range(RATES):
        rate = RATE_GRID[i]
        term = math.log1p(rate * estimate) if rate * loss < NEAR_RUIN else -rate * worst
        wealth = bank[WEALTH + i]
        bank[WEALTH + i] = wealth + term - (ROUNDING * (1.0 + abs(term)) + 2.3e-16 * abs(wealth))
    bound_slack(settings, bank)
    bank[CARRIED] = max(bank[CARRIED], bank[BOUND] + settings[RESERVE] - bank[OWED])
    if settings[IS_PLAYED] > 0.0:
        bank[PLAYED] = max(bank[PLAYED], bank[CARRIED] - coin_luck(settings, bank[COINS]))
    if not math.isnan(reward):
        expected = predicted_learner(settings, bank, prediction) if is_learner else prediction
        _remember(bank, LEARNER_COUNT if is_learner else BASELINE_COUNT, reward, expected)


@compiled
def bound_slack(settings: Vector, bank: Vector) -> None:
    """L, and the rate to work with."""
    event, best = settings[EVENT], 0.0
    alone = single_bound(bank, WEALTH, event)
    for i in range(RATES):
        if (bank[WEALTH + i] - event) / RATE_GRID[i] >= (WORKING if alone > 0.0 else 1.0) * alone:
            best = RATE_GRID[i]
    bank[BOUND], bank[RATE] = mixture_bound(bank, WEALTH, event), best


@compiled
def single_bound(wealths: Vector, at: int, event: float) -> float:
    """What the best rate proves by itself."""
    bound = -math.inf
    for i in range(RATES):
        bound = max(bound, (wealths[at + i] - event) / RATE_GRID[i])
    return bound


@compiled
def mixture_bound(wealths: Vector, at: int, event: float) -> float:
    """Newton's steps from the best single rate; the curve is convex, so each stays on the side that is proved."""
    bound = single_bound(wealths, at, event)
    for _ in range(NEWTON):
        total, slope = 0.0, 0.0
        for i in range(RATES):
            rate = RATE_GRID[i]
            part = math.exp(wealths[at + i] - rate * bound - event)
            total += part
            slope += rate * part
        if total > 1.0:
            bound += math.log(total) * total / slope
    return bound - 1e-13 * (1.0 + abs(bound))


@compiled
def _remember(bank: Vector, at: int, reward: float, expected: float) -> None:
    bank[at] = min(bank[at] + 1.0, MEMORY)
    bank[at + 1] += (reward - bank[at + 1]) / bank[at]
    bank[at + 2] += ((reward - expected) ** 2 - bank[at + 2]) / bank[at]


def new_bank(settings: Vector) -> Vector:
    """A bank with nothing in it but the reserve."""
    bank = np.zeros(WEALTH + RATES)
    bank[BOUND], bank[RATE] = -settings[EVENT] / RATE_GRID[0], RATE_GRID[0]
    bank[CARRIED] = bank[PLAYED] = settings[RESERVE]
    # Half a success in one trial: the means decide nothing but how fast the share grows.
    bank[[LEARNER_COUNT, BASELINE_COUNT]] = 1.0
    bank[[LEARNER_MEAN, BASELINE_MEAN]], bank[[LEARNER_SPREAD, BASELINE_SPREAD]] = 0.5, 0.25
    return bank


def check_banks(banks: Matrix) -> None:
    """Raise where saved banks cannot be such: compiled code trusts these numbers."""
    if not (np.isfinite(banks).all() and (banks[:, [OWED, ENTERED, COINS]] >= 0.0).all()):
        raise StateError("`banks` must hold finite numbers, and owe nothing below 0, but do not.")
    if not (banks[:, [LEARNER_COUNT, BASELINE_COUNT]] >= 1.0).all():
        raise StateError("`banks` must have counted at least one reward of each side, but have not.")
