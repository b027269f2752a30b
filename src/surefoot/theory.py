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

from surefoot import arrays
from surefoot.guard_limit import GuardLimit as GuardLimit
from surefoot.guard_limit import guard_limit as guard_limit
from surefoot.lemmas import elliptical_potential as elliptical_potential
from surefoot.lemmas import lemma2_bound as lemma2_bound
from surefoot.lemmas import lemma3_bound as lemma3_bound
from surefoot.theory_settings import ROUNDS_HINT, checked_ceiling, declared_model, tolerance


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

    Returns
    -------
    float
        The radius beta.

    Raises
    ------
    ConfigError
        If a number is out of range, or the theorem does not cover it.

    Examples
    --------
    >>> round(radius(0, dim=4, delta=0.001, noise=1.0, ridge=1.0, theta_bound=1.0, feature_bound=4.0), 4)
    7.2421
    """
    k = arrays.count("observations", observations, least=0, hint="It counts the rewards that the set has learned.")
    return declared_model(dim, delta, noise, ridge, theta_bound, feature_bound).radius(k)


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

    Returns
    -------
    float
        The bound on rounds.

    Raises
    ------
    ConfigError
        If a number is out of range, or the theorem does not cover it.

    Examples
    --------
    >>> setting = dict(dim=4, delta=0.001, noise=1.0, ridge=1.0, theta_bound=0.5, feature_bound=2.0)
    >>> f"{conservative_rounds_bound(alpha=0.1, reward_floor=0.5, gap_floor=0.1, **setting):.5g}"
    '7.8728e+07'
    """
    model = declared_model(dim, delta, noise, ridge, theta_bound, feature_bound)
    model.require_small_ridge()
    loss = tolerance(alpha, reward_floor, gap_floor)
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

    Returns
    -------
    float
        The bound on rounds.

    Raises
    ------
    ConfigError
        If a number is out of range, or the theorem does not cover it.

    Examples
    --------
    >>> setting = dict(dim=4, delta=0.001, noise=1.0, ridge=1.0, theta_bound=0.5, feature_bound=2.0)
    >>> f"{clucb2_conservative_rounds_bound(alpha=0.1, reward_floor=0.5, **setting):.5g}"
    '3.0955e+08'
    """
    model = declared_model(dim, delta, noise, ridge, theta_bound, feature_bound)
    model.require_small_ridge()
    widest = model.theta_bound * model.feature_bound
    g = model.dim * model.scale(cap=widest, least=6) / tolerance(alpha, reward_floor)
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

    Returns
    -------
    float
        The bound on regret.

    Raises
    ------
    ConfigError
        If a number is out of range, or the theorem does not cover it.

    Examples
    --------
    >>> setting = dict(dim=4, delta=0.001, noise=1.0, ridge=1.0, theta_bound=0.5, feature_bound=2.0)
    >>> round(lucb_regret_bound(40_000, **setting), 1)
    33855.7
    """
    model = declared_model(dim, delta, noise, ridge, theta_bound, feature_bound)
    T = arrays.count("rounds", rounds, hint=ROUNDS_HINT)
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

    Returns
    -------
    float
        The bound on regret.

    Raises
    ------
    ConfigError
        If a number is out of range, or the theorem does not cover it.

    Examples
    --------
    >>> setting = dict(dim=4, delta=0.001, noise=1.0, ridge=1.0, theta_bound=0.5, feature_bound=2.0)
    >>> f"{clucb_regret_bound(40_000, alpha=0.1, reward_floor=0.5, gap_floor=0.1, gap_ceiling=0.2, **setting):.5g}"
    '1.578e+07'
    """
    gap_ceiling = checked_ceiling(gap_ceiling, gap_floor)
    model = declared_model(dim, delta, noise, ridge, theta_bound, feature_bound)
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

    Returns
    -------
    float
        The bound on regret.

    Raises
    ------
    ConfigError
        If a number is out of range, or the theorem does not cover it.

    Examples
    --------
    >>> setting = dict(dim=4, delta=0.001, noise=1.0, ridge=1.0, theta_bound=0.5, feature_bound=2.0)
    >>> f"{clucb2_regret_bound(40_000, alpha=0.1, reward_floor=0.5, gap_ceiling=0.2, **setting):.5g}"
    '6.1944e+07'
    """
    gap_ceiling = checked_ceiling(gap_ceiling)
    model = declared_model(dim, delta, noise, ridge, theta_bound, feature_bound)
    played = clucb2_conservative_rounds_bound(alpha=alpha, reward_floor=reward_floor, **model._asdict())
    return lucb_regret_bound(rounds, **model._asdict()) + gap_ceiling * played
