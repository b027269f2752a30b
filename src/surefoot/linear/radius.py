"""The radius beta of the confidence set, in five kinds, and the set that needs none; formulas are in `core/radius.hpp`.

Each holds for all rounds at once with probability 1 - delta, under its own assumptions:

paper      Kazerouni et al., below eq. (5). sigma-sub-Gaussian noise, ||theta|| <= B, ||x|| <= D; d >= 2.
logdet     Abbasi-Yadkori et al. (2011), Theorem 2. The same without D, at the volume that the data really span.
amm        Flynn et al. (2023), the analytic bound of their adaptive martingale mixtures. As logdet, never larger.
dual       Flynn et al. (2023), their convex set by duality: the same event as amm, read at any ridge a >= 0.
residual   Jun and Kim (2024), LOSAN. `noise` may be pessimistic, 1/2 for rewards in [0, 1]: small residuals shrink it.
likelihood No ellipsoid: the likelihood-ratio set of bounded rewards (`core/likelihood.hpp`), without a noise scale.
best       amm and likelihood, each with half of delta: what bounds a question better is used.
"""

from surefoot.core import native
from surefoot.errors import ConfigError

# In the order of the core's `Radius`.
RADII = {name: code for code, name in enumerate(("paper", "logdet", "amm", "dual", "residual", "likelihood", "best"))}
BY_LIKELIHOOD = ("likelihood", "best")  # those that use the likelihood set of bounded rewards
ELLIPSOIDS = tuple(name for name in RADII if name not in BY_LIKELIHOOD)


def paper_radius(
    observations: float,
    dim: int,
    delta: float,
    noise: float,
    ridge: float,
    theta_bound: float,
    feature_bound: float,
) -> float:
    """beta = sigma sqrt(d ln((1 + (k+1) D^2/lambda) / delta)) + sqrt(lambda) B, k observations in the set.

    >>> round(paper_radius(0, 4, 0.001, 1.0, 1.0, 1.0, 4.0), 4)
    7.2421
    """
    settings = native.LinearSettings()
    settings.delta, settings.noise, settings.ridge = delta, noise, ridge
    settings.theta_bound, settings.feature_bound = theta_bound, feature_bound
    return float(native.paper_radius(observations, dim, settings))


def read_radius(radius: str, *, dim: int, misspecification: float, is_bounded: bool = False) -> int:
    """The code of a radius by name, where it is valid; `is_bounded` where single rewards have declared bounds."""
    if radius not in RADII:
        names = RADII if is_bounded else ELLIPSOIDS
        raise ConfigError(f"`radius` must be one of {', '.join(names)}, but got {radius!r}.")
    if radius in BY_LIKELIHOOD and not is_bounded:
        raise ConfigError(
            f"`reward_bounds` must be given with radius={radius!r}: the likelihood set is made of rewards in known "
            "bounds. Give SafeLUCB reward_bounds=(0, 1) for clicks, or take 'amm'."
        )
    if radius == "paper" and dim == 1:
        raise ConfigError(
            "`dim >= 2` must hold with the paper's radius, but got dim=1. There it is smaller than the theorem it "
            "rests on allows; take `radius='amm'`, or pad the only feature with a zero."
        )
    if radius in ("dual", "residual", *BY_LIKELIHOOD) and misspecification > 0:
        raise ConfigError(
            f"`misspecification` must be 0 with radius={radius!r}, but got {misspecification}. That radius reads the "
            "rewards themselves, whose error it cannot tell from noise; take 'amm'."
        )
    return RADII[radius]
