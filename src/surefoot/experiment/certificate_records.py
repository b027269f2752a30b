"""Certificates as plain data: what a policy proved, in numbers that anyone can add up again."""

import math
from functools import partial
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from surefoot import records
from surefoot.arrays import Matrix
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
    evidence = None if with_sets else _evidence(decision)
    if evidence is not None:
        # Bytes, where the core has made the proof: as objects they would take longer than all the rest of a decision.
        found = native.certificate_json(evidence, _reach(decision), 0.0, LIKELIHOOD)
        if found is not None:
            return _verdict(evidence), msgspec.Raw(found)
    record = written(decision.certificate, with_sets=with_sets)
    return record, record


def decided(
    decision: Decision, rows: Matrix, baseline: int, ref: str, *, is_held: bool, mode: str
) -> tuple[Verdict, bytes] | None:
    """What is told of the certificate of a sealed round, and all of its record, as bytes of the core's.

    None where it is to be made of objects (`records.DecisionRecord`), which have a word for everything.
    """
    evidence = _evidence(decision)
    if evidence is None:
        return None
    found = native.decision_json(
        evidence,
        _reach(decision),
        LIKELIHOOD,
        rows,
        baseline,
        decision.action,
        ref,
        is_held,
        mode,
        decision.round,
        decision.source,
    )
    return None if found is None else (_verdict(evidence), found)


def _evidence(decision: Decision) -> Any:
    """What the core writes the proof of a decision from; None where it is made of objects."""
    if decision._certify is not certify:
        return None
    prover, _, evidence, proposal, _, method, gap = decision._evidence
    is_of_rows = method == "rows" and gap == 0.0 and evidence.action == proposal
    return evidence if prover is safe_proof and is_of_rows else None


def _reach(decision: Decision) -> float:
    return float(decision._evidence[1].theta_bound)


def _verdict(evidence: Any) -> Verdict:
    return Verdict(evidence.guaranteed, evidence.required, evidence.action, evidence.optimism)


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
