"""The certificate of a linear decision, written out from what was kept of it only when somebody asks."""

from collections.abc import Callable
from functools import partial
from typing import Any

from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.policies.orders import HELD_OUT, HOLD
from surefoot.safety.certificate import Certificate
from surefoot.safety.proof import Proof

Prover = Callable[[Any, Any, Ball | Ellipsoid], Proof]


def certify(
    prover: Prover, settings: Any, evidence: Any, proposal: int, order: int, method: str = "rows", gap: float = 0.0
) -> Certificate:
    """The certificate of a round, from the core's `evidence` of it."""
    guaranteed, required = evidence.guaranteed, evidence.required
    return Certificate(
        guaranteed,
        required,
        proposal,
        evidence.optimism,
        partial(_prove, prover, settings, evidence),
        method,
        gap,
        order == HOLD,
        order == HELD_OUT and guaranteed >= required,
    )


def _prove(prover: Prover, settings: Any, evidence: Any) -> Proof:
    known: Ball | Ellipsoid = Ball(settings.theta_bound)
    if evidence.observations > 0:
        known = Ellipsoid(evidence.center, evidence.whitener, evidence.radius, evidence.observations)
    return prover(settings, evidence, known)
