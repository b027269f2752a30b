"""From raw payloads to the audit's own words; a payload that cannot be read says why."""

from typing import Any

import msgspec
import numpy as np

from surefoot import records
from surefoot.audit.compensated_sums import Matrix, Vector
from surefoot.audit.recorded_round import RecordedPiece, RecordedProof, RecordedRound

_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(record) for kind, record in records.RECORDS.items()
}


def read_payload(kind: str, payload: bytes) -> Any:
    """What an event holds; raises `ValueError` where it is not one of its kind."""
    if kind not in _DECODERS:
        raise ValueError(f"there is no kind of event called {kind!r}")
    return _DECODERS[kind].decode(payload)


def read_round(decision: records.DecisionRecord, rows: Matrix) -> RecordedRound:
    """A decision over these rows."""
    seen = decision.certificate
    return RecordedRound(
        round=decision.round,
        rows=rows,
        baseline=-1 if decision.asked.baseline is None else decision.asked.baseline,
        known=decision.asked.baseline_reward,
        action=decision.action,
        source=decision.source,
        proposal=seen.proposal,
        guaranteed=float(seen.guaranteed),
        required=float(seen.required),
        optimism=float(seen.optimism),
        is_held=decision.is_held,
        proof=read_proof(seen.proof),
        draw=decision.draw,
    )


def read_proof(proof: records.ProofRecord) -> RecordedProof:
    """A proof as it is written."""
    return RecordedProof(
        question=_vector(proof.question),
        pieces=tuple(_piece(piece) for piece in proof.pieces),
        value=float(proof.value),
    )


def _piece(piece: records.PieceRecord) -> RecordedPiece:
    fact, vector, bound = piece.fact, _vector(piece.vector), float(piece.bound)
    if isinstance(fact, records.EllipsoidRecord):
        center = None if fact.center is None else _vector(fact.center)
        whitener = None if fact.whitener is None else np.array(fact.whitener, dtype=np.float64)
        return RecordedPiece(
            "ellipsoid",
            "ellipsoid",
            vector,
            bound,
            fact.radius,
            fact.observations,
            center=center,
            whitener=whitener,
        )
    if isinstance(fact, records.BallRecord):
        return RecordedPiece("ball", "ball", vector, bound, fact.radius)
    point = None if fact.point is None else _vector(fact.point)
    return RecordedPiece(
        "linear", fact.name, vector, bound, normal=_vector(fact.normal), level=float(fact.level), point=point
    )


def _vector(values: list[float]) -> Vector:
    return np.array(values, dtype=np.float64)
