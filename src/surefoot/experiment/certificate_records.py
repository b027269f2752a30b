"""Certificates as plain data: what a policy proved, in numbers that anyone can add up again."""

import math
from functools import partial
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from surefoot import records
from surefoot.core import native
from surefoot.errors import StateError
from surefoot.experiment.new_decision import NewDecision, Verdict
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.policies import Decision
from surefoot.policies.linear_certificate import certify
from surefoot.records import number
from surefoot.safety.certificate import Certificate
from surefoot.safety.facts import Fact, Linear
from surefoot.safety.facts_gate import safe_proof
from surefoot.safety.likelihood import LIKELIHOOD, Tangent
from surefoot.safety.proof import Piece, Proof


def written(certificate: Certificate, *, with_sets: bool) -> records.CertificateRecord:
    """The certificate and its whole proof; `with_sets` writes out ellipsoids that their count does not determine."""
    return records.CertificateRecord(
        guaranteed=number(certificate.guaranteed),
        required=number(certificate.required),
        proposal=certificate.proposal,
        optimism=number(certificate.optimism),
        proof=proof_record(certificate.proof, with_sets=with_sets),
        method=certificate.method,
        gap=float(certificate.gap),
    )


def certified(decision: Decision, *, with_sets: bool) -> tuple[Verdict | records.CertificateRecord, Any]:
    """What is told of a decision's certificate, and the certificate as it is written, with its whole proof."""
    if not with_sets and decision._certify is certify:
        prover, promise, evidence, proposal, _, method, gap = decision._evidence
        # Bytes, where the core has made the proof: as objects they would take longer than all the rest of a decision.
        if prover is safe_proof and method == "rows" and evidence.action == proposal:
            found = native.certificate_json(evidence, promise.theta_bound, gap, LIKELIHOOD)
            if found is not None:
                verdict = Verdict(evidence.guaranteed, evidence.required, proposal, evidence.optimism, method, gap)
                return verdict, msgspec.Raw(found)
    record = written(decision.certificate, with_sets=with_sets)
    return record, record


def explained(made: records.DecisionRecord | NewDecision) -> str:
    """The reason for the decision, in one sentence."""
    found = made.certificate
    return Certificate(
        float(found.guaranteed),
        float(found.required),
        found.proposal,
        float(found.optimism),
        partial(_recorded, made),
        found.method,
        found.gap,
        made.is_held,
        made.draw is not None and made.source == "baseline",
    ).explain()


def proof_record(proof: Proof, *, with_sets: bool) -> records.ProofRecord:
    """A proof as plain data."""
    pieces = [
        records.PieceRecord(
            fact=_fact(piece.fact, with_sets),
            vector=piece.vector.tolist(),
            bound=number(piece.bound),
        )
        for piece in proof.pieces
    ]
    return records.ProofRecord(question=proof.question.tolist(), value=number(proof.value), pieces=pieces)


def _fact(fact: Fact, with_sets: bool) -> records.Fact:
    if isinstance(fact, Ellipsoid):
        center, whitener = (fact.center.tolist(), fact.whitener.tolist()) if with_sets else (None, None)
        return records.EllipsoidRecord(
            observations=fact.observations, radius=float(fact.radius), center=center, whitener=whitener
        )
    if isinstance(fact, Ball):
        return records.BallRecord(radius=float(fact.radius))
    if isinstance(fact, Linear):
        point = fact.point.tolist() if isinstance(fact, Tangent) else None
        return records.LinearRecord(name=fact.name, normal=fact.normal.tolist(), level=number(fact.level), point=point)
    raise StateError(f"A journal keeps balls, ellipsoids and linear facts, but this proof rests on a {fact.name!r}.")


class _Named:
    """A fact of which only the name is needed."""

    def __init__(self, fact: records.Fact) -> None:
        self.name = fact.name if isinstance(fact, records.LinearRecord) else str(fact.__struct_config__.tag)

    def lower(self, q: ArrayLike, /) -> float:
        """Nothing: what the fact says is the record's."""
        return -math.inf


def _recorded(made: records.DecisionRecord | NewDecision) -> Proof:
    """The recorded split with names for facts: to be read, not to be checked; the audit does that."""
    proof = (made.record if isinstance(made, NewDecision) else made).certificate.proof
    pieces = tuple(Piece(_Named(piece.fact), np.array(piece.vector), float(piece.bound)) for piece in proof.pieces)
    return Proof(np.array(proof.question), pieces, float(proof.value))
