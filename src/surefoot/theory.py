"""The bounds of Kazerouni et al., "Conservative Contextual Linear Bandits", as functions of the settings alone.

In the formulas: d = dim, sigma = noise, lambda = ridge, B = theta_bound, D = feature_bound, r_l = reward_floor,
Delta_l = gap_floor, Delta_h = gap_ceiling, beta = radius; alpha and delta are themselves. w is the norm of a feature
row in V^-1 before the row is learned, and M counts the learner rounds so far plus the one in question.

Bounds on rounds and regret hold together, with probability 1 - delta, under Assumptions 1 to 3: sub-Gaussian noise,
norms within B and D, every mean reward in [0, 1]. Where a printed bound is false, the function returns what the
repaired proof gives, and says so; docs/theory.md lists every slip.

`guard_limit` is what every guard needs, whoever wrote it.
"""

import math
from typing import NamedTuple

from surefoot import arrays
from surefoot.errors import ConfigError
from surefoot.guard_limit import GuardLimit as GuardLimit
from surefoot.guard_limit import guard_limit as guard_limit
from surefoot.linear.radius import paper_radius

_DIM_HINT = "It is the length of one feature row."
_RIDGE_HINT = "It is the weight of the ridge penalty; 1 is a common choice."
_FEATURE_HINT = "It bounds the Euclidean norm of every feature row."
_ROUNDS_HINT = "It is the horizon, in decisions."
_GAP_HINT = "The baseline is never better than the best action; 0 is always a gap_floor."
_CONSTANT_HINT = "The lemma is about positive constants."


class _DeclaredModel(NamedTuple):
    """The settings that every bound shares (Assumptions 1 and 2), checked by `_declared_model`."""

    dim: int
    delta: float
    noise: float
    ridge: float
    theta_bound: float
    feature_bound: float

    @property
    def reach(self) -> float:
        """W = D / sqrt(lambda), the largest w there is."""
        return self.feature_bound / math.sqrt(self.ridge)

    def radius(self, observations: int) -> float:
        """Radius beta, unchecked."""
        return paper_radius(observations, *self)

    def scale(self, *, cap: float, least: int) -> float:
        """Smallest G >= B sqrt(lambda) + sigma with cap <= G sqrt(d ln(least D^2 / (lambda delta)))."""
        log = math.log(least) + 2 * math.log(self.reach) - math.log(self.delta)
        return max(self.theta_bound * math.sqrt(self.ridge) + self.noise, cap / math.sqrt(self.dim * log))

    def require_small_ridge(self) -> None:
        """Theorems 2 and 4 absorb the 1 in 1 + M D^2 / lambda; Theorem 4 does so without saying."""
        if math.sqrt(self.ridge) > self.feature_bound:
            raise ConfigError(
                f"`ridge <= feature_bound**2` must hold, but got ridge={self.ridge}, "
                f"feature_bound={self.feature_bound}. "
                "A larger feature_bound is still a bound: pass feature_bound=math.sqrt(ridge) here."
            )


def _declared_model(
    dim: int, delta: float, noise: float, ridge: float, theta_bound: float, feature_bound: float
) -> _DeclaredModel:
    """The settings that every bound shares, checked."""
    dim = arrays.count("dim", dim, hint=_DIM_HINT)
    if dim == 1:
        raise ConfigError(
            "`dim >= 2` must hold for the paper's radius, but got dim=1. With d = 1 it lies below the theorem it comes "
            "from (Abbasi-Yadkori et al. 2011, Theorem 2): ln(1/delta) stands where 2 ln(1/delta) is proved, so its "
            "sets may fail more often than delta. Append a constant 0 to the features, or use another radius."
        )
    return _DeclaredModel(
        dim=dim,
        delta=arrays.fraction("delta", delta, hint="It is the probability that the guarantee fails; 0.001 is common."),
        noise=arrays.nonnegative("noise", noise, hint="It is the sub-Gaussian scale of the reward noise."),
        ridge=arrays.positive("ridge", ridge, hint=_RIDGE_HINT),
        theta_bound=arrays.positive("theta_bound", theta_bound, hint="It bounds the Euclidean norm of theta."),
        feature_bound=arrays.positive("feature_bound", feature_bound, hint=_FEATURE_HINT),
    )


def _tolerance(alpha: float, reward_floor: float, gap_floor: float = 0.0) -> float:
    """Least loss that one baseline round earns the right to: alpha r_l."""
    alpha = arrays.fraction("alpha", alpha, hint="It is the share of the baseline's reward you accept losing.")
    hint = "A baseline that may earn nothing never pays for exploring, so no number of its rounds is enough."
    floor = arrays.positive("reward_floor", reward_floor, hint=hint)
    gap = arrays.nonnegative("gap_floor", gap_floor, hint=_GAP_HINT)
    if floor + gap > 1 + 1e-9:
        raise ConfigError(
            f"`reward_floor + gap_floor <= 1` must hold, but got {reward_floor=}, {gap_floor=}. "
            "The theorems are for mean rewards in [0, 1]: divide rewards and noise by the largest mean reward."
        )
    return alpha * floor


def _checked_ceiling(gap_ceiling: float, gap_floor: float = 0.0) -> float:
    """Delta_h, checked."""
    ceiling = arrays.nonnegative("gap_ceiling", gap_ceiling, hint="It bounds the baseline's gap to the best action.")
    if not arrays.nonnegative("gap_floor", gap_floor, hint=_GAP_HINT) <= ceiling <= 1:
        raise ConfigError(
            f"`gap_floor <= gap_ceiling <= 1` must hold, but got {gap_floor=}, {gap_ceiling=}. "
            "Mean rewards lie in [0, 1], so 1 is always a gap_ceiling and 0 always a gap_floor."
        )
    return ceiling


def radius(
    observations: int, *, dim: int, delta: float, noise: float, ridge: float, theta_bound: float, feature_bound: float
) -> float:
    """Radius of the paper's confidence ellipsoid after k observations.  (below eq. confset1)

    beta = sigma sqrt(d ln((1 + (k + 1) D^2 / lambda) / delta)) + sqrt(lambda) B.
    CLUCB counts learner rounds only in k; LUCB and CLUCB2 count every round. Refused for d = 1.

    Parameters
    ----------
    observations : int
        Rewards learned so far, k.
    dim, delta, noise, ridge, theta_bound, feature_bound
        What was declared: d, delta, sigma, lambda, B and D.

    Examples
    --------
    >>> round(radius(0, dim=4, delta=0.001, noise=1.0, ridge=1.0, theta_bound=1.0, feature_bound=4.0), 4)
    7.2421
    """
    k = arrays.count("observations", observations, least=0, hint="It counts the rewards that the set has learned.")
    return _declared_model(dim, delta, noise, ridge, theta_bound, feature_bound).radius(k)


def conservative_rounds_bound(
    *,
    dim: int,
    alpha: float,
    delta: float,
    noise: float,
    ridge: float,
    theta_bound: float,
    feature_bound: float,
    reward_floor: float,
    gap_floor: float = 0.0,
) -> float:
    """Most rounds in which CLUCB plays the baseline, over any horizon.  (Theorem 2, corrected; needs lambda <= D^2)

    n_T <= 1 + [114 d^2 G^2 / c ln^2(64 d G D / (sqrt(lambda delta) c)) + E] / (alpha r_l), c = Delta_l + alpha r_l,
    G = max(B sqrt(lambda) + sigma, 1 / (2 sqrt(d ln(2 D^2 / (lambda delta))))), and
    E = 2 W beta(floor(W^2 / 4)) if W = D / sqrt(lambda) > 2, else 0.

    The paper prints G = B sqrt(lambda) + sigma, E = 0, and no division by alpha r_l. Its proof clips what the *set*
    says of a reward to [0, 1], but only true means lie there: with a tiny ridge CLUCB needs about BD / (alpha r_l)
    baseline rounds before it first explores, above that bound even when divided. Repaired: a learner round regrets at
    most min(1, 2 beta w), and the gate's pessimism is at most 2 beta (sqrt(M - 1) + W). Their sum fits into the paper's
    8 d G ln(2 M D^2 / (lambda delta)) sqrt(M) where W <= 2 sqrt(M), and E pays for the M below W^2 / 4.

    Parameters
    ----------
    dim, alpha, delta, noise, ridge, theta_bound, feature_bound
        What was declared: d, alpha, delta, sigma, lambda, B and D.
    reward_floor, gap_floor : float
        Least mean reward of the baseline, and least gap to the best action.

    Examples
    --------
    >>> setting = dict(dim=4, delta=0.001, noise=1.0, ridge=1.0, theta_bound=0.5, feature_bound=2.0)
    >>> f"{conservative_rounds_bound(alpha=0.1, reward_floor=0.5, gap_floor=0.1, **setting):.5g}"
    '7.8728e+07'
    """
    model = _declared_model(dim, delta, noise, ridge, theta_bound, feature_bound)
    model.require_small_ridge()
    loss = _tolerance(alpha, reward_floor, gap_floor)
    c = float(gap_floor) + loss
    scale = model.dim * model.scale(cap=0.5, least=2)
    log = math.log(64 * scale / c) + math.log(model.reach) - math.log(model.delta) / 2
    few = math.floor(model.reach * model.reach / 4)
    unclipped = 2 * model.reach * model.radius(few) if model.reach > 2 else 0.0
    return 1 + (114 * scale**2 / c * log**2 + unclipped) / loss


def clucb2_conservative_rounds_bound(
    *,
    dim: int,
    alpha: float,
    delta: float,
    noise: float,
    ridge: float,
    theta_bound: float,
    feature_bound: float,
    reward_floor: float,
) -> float:
    """Most rounds in which CLUCB2 plays the baseline, over any horizon.  (Theorem 4, corrected; needs lambda <= D^2)

    n_T <= 1 + max{2, 256 g^2 ln^2(10 g sqrt(D) / (lambda delta)^(1/4))}, g = d G / (alpha r_l), and
    G = max(B sqrt(lambda) + sigma, B D / sqrt(d ln(6 D^2 / (lambda delta)))).

    For CLUCB2 with nested sets and *given* this reward_floor. The constants 256 = 2^2 4^2 2^2 and 10 > sqrt(96) do
    follow from Lemmas 2 and 3. The paper prints G = B sqrt(lambda) + sigma, and no max with 2: it clips to 1 how widely
    the set disagrees on a reward, and takes beta >= 1; neither need hold. The sets lie in the ball, so they disagree
    by at most min(2 BD, 2 beta w) <= 2 max(beta, BD) min(1, w), which gives G. The 2 is the paper's own footnote
    (n < 3), lost on the way. It also covers ln(c1 c2) < 1: Lemma 3's inequality has no solution there, so n < 3, and
    the formula stays below 2 by itself (x |ln x| < 0.83 for x < sqrt(e)).

    Parameters
    ----------
    dim, alpha, delta, noise, ridge, theta_bound, feature_bound
        What was declared: d, alpha, delta, sigma, lambda, B and D.
    reward_floor : float
        Least mean reward of the baseline.

    Examples
    --------
    >>> setting = dict(dim=4, delta=0.001, noise=1.0, ridge=1.0, theta_bound=0.5, feature_bound=2.0)
    >>> f"{clucb2_conservative_rounds_bound(alpha=0.1, reward_floor=0.5, **setting):.5g}"
    '3.0955e+08'
    """
    model = _declared_model(dim, delta, noise, ridge, theta_bound, feature_bound)
    model.require_small_ridge()
    widest = model.theta_bound * model.feature_bound
    g = model.dim * model.scale(cap=widest, least=6) / _tolerance(alpha, reward_floor)
    log = math.log(10 * g) + math.log(model.reach) / 2 - math.log(model.delta) / 4
    return 1 + max(2.0, 256 * (g * log) ** 2)


def lucb_regret_bound(
    rounds: int, *, dim: int, delta: float, noise: float, ridge: float, theta_bound: float, feature_bound: float
) -> float:
    """Most regret that LUCB gathers in T rounds: max(1, 2 beta_T) sqrt(2 d T ln(1 + T D^2 / (lambda d))).

    Theorem 3 of Abbasi-Yadkori et al. (2011), redone for the paper's radius, beta_T = radius(T - 1), and any
    lambda > 0: a round regrets at most min(1, 2 beta w) <= max(1, 2 beta_T) min(1, w); sum by Cauchy-Schwarz and
    Lemma 1. It also bounds the regret of CLUCB and CLUCB2 over their learner rounds. A value above T is vacuous.

    The paper's own proposition is not offered: even with D^2 for D it is not proved for this policy. Its
    ln(lambda + m D^2 / d) stands where ln(1 + m D^2 / (lambda d)) is meant, so for lambda < 1 it can be zero or
    negative; and its bracket is the radius of Abbasi-Yadkori et al., smaller than the beta that the policy uses.

    Parameters
    ----------
    rounds : int
        Horizon, T.
    dim, delta, noise, ridge, theta_bound, feature_bound
        What was declared: d, delta, sigma, lambda, B and D.

    Examples
    --------
    >>> setting = dict(dim=4, delta=0.001, noise=1.0, ridge=1.0, theta_bound=0.5, feature_bound=2.0)
    >>> round(lucb_regret_bound(40_000, **setting), 1)
    33855.7
    """
    model = _declared_model(dim, delta, noise, ridge, theta_bound, feature_bound)
    T = arrays.count("rounds", rounds, hint=_ROUNDS_HINT)
    potential = elliptical_potential(T, dim=model.dim, ridge=model.ridge, feature_bound=model.feature_bound)
    return max(1.0, 2 * model.radius(T - 1)) * math.sqrt(T * potential)


def clucb_regret_bound(
    rounds: int,
    *,
    dim: int,
    alpha: float,
    delta: float,
    noise: float,
    ridge: float,
    theta_bound: float,
    feature_bound: float,
    reward_floor: float,
    gap_floor: float = 0.0,
    gap_ceiling: float = 1.0,
) -> float:
    """Most regret that CLUCB gathers in T rounds: lucb_regret_bound + Delta_h conservative_rounds_bound.  (Theorem 3)

    The second term, the price of safety, does not grow with T. The paper gives the same sum as an O(.), with
    1 / (Delta_l + alpha r_l) both inside K and beside it.

    Parameters
    ----------
    rounds : int
        Horizon, T.
    dim, alpha, delta, noise, ridge, theta_bound, feature_bound
        What was declared: d, alpha, delta, sigma, lambda, B and D.
    reward_floor, gap_floor, gap_ceiling : float
        Least mean reward of the baseline; least and largest gap to the best action.

    Examples
    --------
    >>> setting = dict(dim=4, delta=0.001, noise=1.0, ridge=1.0, theta_bound=0.5, feature_bound=2.0)
    >>> f"{clucb_regret_bound(40_000, alpha=0.1, reward_floor=0.5, gap_floor=0.1, gap_ceiling=0.2, **setting):.5g}"
    '1.578e+07'
    """
    gap_ceiling = _checked_ceiling(gap_ceiling, gap_floor)
    model = _declared_model(dim, delta, noise, ridge, theta_bound, feature_bound)
    played = conservative_rounds_bound(alpha=alpha, reward_floor=reward_floor, gap_floor=gap_floor, **model._asdict())
    return lucb_regret_bound(rounds, **model._asdict()) + gap_ceiling * played


def clucb2_regret_bound(
    rounds: int,
    *,
    dim: int,
    alpha: float,
    delta: float,
    noise: float,
    ridge: float,
    theta_bound: float,
    feature_bound: float,
    reward_floor: float,
    gap_ceiling: float = 1.0,
) -> float:
    """Most regret that CLUCB2 gathers in T rounds: lucb_regret_bound + Delta_h clucb2_conservative_rounds_bound.

    Theorem 4, as an explicit sum. Learner rounds keep LUCB's bound although the set also learns from baseline rounds:
    more data only shrinks w, and beta_T counts all T rounds.

    Parameters
    ----------
    rounds : int
        Horizon, T.
    dim, alpha, delta, noise, ridge, theta_bound, feature_bound
        What was declared: d, alpha, delta, sigma, lambda, B and D.
    reward_floor, gap_ceiling : float
        Least mean reward of the baseline; largest gap to the best action.

    Examples
    --------
    >>> setting = dict(dim=4, delta=0.001, noise=1.0, ridge=1.0, theta_bound=0.5, feature_bound=2.0)
    >>> f"{clucb2_regret_bound(40_000, alpha=0.1, reward_floor=0.5, gap_ceiling=0.2, **setting):.5g}"
    '6.1944e+07'
    """
    gap_ceiling = _checked_ceiling(gap_ceiling)
    model = _declared_model(dim, delta, noise, ridge, theta_bound, feature_bound)
    played = clucb2_conservative_rounds_bound(alpha=alpha, reward_floor=reward_floor, **model._asdict())
    return lucb_regret_bound(rounds, **model._asdict()) + gap_ceiling * played


def elliptical_potential(count: int, *, dim: int, ridge: float, feature_bound: float) -> float:
    """Most that k feature rows can surprise a ridge regression: sum_k min(1, w^2) <= 2 d ln(1 + k D^2 / (lambda d)).

    Lemma 1. It holds for every lambda > 0 and every sequence of rows no longer than D.

    Parameters
    ----------
    count : int
        Number of rows, k.
    dim, ridge, feature_bound
        d, lambda and D.

    Examples
    --------
    >>> round(elliptical_potential(1000, dim=4, ridge=1.0, feature_bound=4.0), 4)
    66.3544
    """
    k = arrays.count("count", count, least=0, hint="It counts feature rows.")
    d = arrays.count("dim", dim, hint=_DIM_HINT)
    ridge = arrays.positive("ridge", ridge, hint=_RIDGE_HINT)
    reach = arrays.positive("feature_bound", feature_bound, hint=_FEATURE_HINT) / math.sqrt(ridge)
    return 2 * d * math.log1p(k * reach * reach / d)


def lemma2_bound(c1: float, c2: float, c3: float) -> float:
    """Bound, over every m > 0, on g(m) = -c3 m + c1 sqrt(m) ln(c2 m).  (Lemma 2)

    16 c1^2 / (9 c3) ln^2(2 e c1 sqrt(c2) / c3) where c1 sqrt(c2) > c3, and 0 elsewhere.

    The printed proof takes m >= 2 and c2 > 1, to make g concave; in truth positive constants are enough. Where
    c2 m <= 1, g < 0. Beyond, g is concave with slope c1 sqrt(c2) - c3 at m = 1/c2. If that is not positive, g < 0
    everywhere: the bound is 0, whereas the printed log can be negative there and its square grow as c1 shrinks.
    If it is, the peak is interior, at some x = c3 sqrt(m) / (2 c1) > 0 where g = 4 c1^2 (x^2 - x) / c3, which is
    below 4 c1^2 x^2 / c3, and the paper's x <= (2/3) ln(2 e c1 sqrt(c2) / c3) holds.

    Parameters
    ----------
    c1, c2, c3 : float
        Positive constants.

    Examples
    --------
    >>> round(lemma2_bound(3.0, 5.0, 0.5), 4)
    588.8284
    >>> lemma2_bound(1.0, 4.0, 2.0)
    0.0
    """
    c1, c2, c3 = (arrays.positive(name, c, hint=_CONSTANT_HINT) for name, c in (("c1", c1), ("c2", c2), ("c3", c3)))
    log_ratio = math.log(c1) + math.log(c2) / 2 - math.log(c3)
    if log_ratio <= 0:
        return 0.0
    return 16 * c1 / c3 * c1 / 9 * (log_ratio + 1 + math.log(2)) ** 2


def lemma3_bound(c1: float, c2: float) -> float:
    """Bound on every x > 0 with x <= c1 ln(c2 x): x <= 2 c1 ln(c1 c2).  (Lemma 3)

    It asks for ln(c1 c2) >= 1. That is no loss: below it, no x satisfies the inequality.

    Parameters
    ----------
    c1, c2 : float
        Positive constants.

    Examples
    --------
    >>> round(lemma3_bound(2.0, 3.0), 4)
    7.167
    """
    c1, c2 = (arrays.positive(name, c, hint=_CONSTANT_HINT) for name, c in (("c1", c1), ("c2", c2)))
    log_product = math.log(c1) + math.log(c2)
    if log_product < 1:
        raise ConfigError(
            f"`ln(c1 * c2) >= 1` must hold, but got {c1=}, {c2=} with ln(c1 * c2) = {log_product:.6g}. "
            "Below 1 no x > 0 satisfies x <= c1 ln(c2 x), so there is nothing to bound."
        )
    return 2 * c1 * log_product
