"""The certificate of a linear decision, written out from what was kept of it only when somebody asks."""

from collections.abc import Callable
from functools import partial

from surefoot.arrays import Vector
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.linear.radius import THETA_BOUND
from surefoot.policies.linear_step import HELD_OUT, HOLD
from surefoot.safety.certificate import Certificate
from surefoot.safety.paper_gates import GUARANTEED, OPTIMISM, RADIUS, REQUIRED
from surefoot.safety.proof import Proof

Prover = Callable[[Vector, Vector, Ball | Ellipsoid, int], Proof]


def certify(
    prover: Prover,
    settings: Vector,
    record: Vector,
    frozen: Vector,
    observations: int,
    dim: int,
    proposal: int,
    method: str,
    gap: float,
    order: int,
) -> Certificate:
    """The certificate of a round, from its `record` and the `frozen` set it rested on."""
    evidence = partial(_prove, prover, settings, record, frozen, observations, dim)
    guaranteed, required, optimism = float(record[GUARANTEED]), float(record[REQUIRED]), float(record[OPTIMISM])
    is_held, is_held_out = order == HOLD, order == HELD_OUT and guaranteed >= required
    return Certificate(guaranteed, required, proposal, optimism, evidence, method, gap, is_held, is_held_out)


def _prove(prover: Prover, settings: Vector, record: Vector, frozen: Vector, observations: int, dim: int) -> Proof:
    known: Ball | Ellipsoid = Ball(float(settings[THETA_BOUND]))
    if observations > 0:
        known = Ellipsoid(frozen[:dim], frozen[dim:].reshape(dim, dim), float(record[RADIUS]), observations)
    return prover(settings, record, known, dim)
