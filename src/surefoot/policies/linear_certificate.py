"""The certificate of a linear decision, written out from what was kept of it only when somebody asks."""

import copyreg
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.linear.ridge import sized
from surefoot.policies.decision import HELD_OUT, HOLD
from surefoot.safety.certificate import Certificate
from surefoot.safety.proof import Proof

NUMBERS = ("guaranteed", "required", "optimism", "radius", "kept", "owed", "observations")
VECTORS = ("played", "conserved", "displaced", "question", "features", "split", "points")


class Promise(NamedTuple):
    """What a proof needs to know of a policy's settings."""

    alpha: float
    theta_bound: float


Prover = Callable[[Promise, Any, Ball | Ellipsoid], Proof]


def _plain(evidence: Any) -> tuple[Any, tuple[dict[str, Any]]]:
    """Evidence as plain data: what is pickled must not depend on the build of the core that made it."""
    kept = {name: getattr(evidence, name) for name in (*NUMBERS, *VECTORS)}
    if evidence.observations > 0:
        kept |= {"center": evidence.center, "whitener": evidence.whitener}
    return _named, (kept,)


def _named(kept: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(**kept)


for _kind in {sized("Evidence", 4), sized("Evidence", 0)}:
    copyreg.pickle(_kind, _plain)


def certify(
    prover: Prover, promise: Promise, evidence: Any, proposal: int, order: int, method: str = "rows", gap: float = 0.0
) -> Certificate:
    """The certificate of a round, from the core's `evidence` of it."""
    guaranteed, required = evidence.guaranteed, evidence.required
    return Certificate(
        guaranteed,
        required,
        proposal,
        evidence.optimism,
        partial(_prove, prover, promise, evidence),
        method,
        gap,
        order == HOLD,
        order == HELD_OUT and guaranteed >= required,
    )


def _prove(prover: Prover, promise: Promise, evidence: Any) -> Proof:
    known: Ball | Ellipsoid = Ball(promise.theta_bound)
    if evidence.observations > 0:
        known = Ellipsoid(evidence.center, evidence.whitener, evidence.radius, evidence.observations)
    return prover(promise, evidence, known)
