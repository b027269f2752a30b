"""From raw payloads to the audit's own words; a payload that cannot be read says why."""

from typing import Any

import msgspec
import numpy as np

from surefoot.audit.compensated_sums import Matrix, Vector
from surefoot.audit.recorded_round import RecordedPiece, RecordedProof, RecordedRound
from surefoot.rounds import events

_SHARED: dict[str, Any] = {
    events.CREATED: events.Created, events.REWARD: events.Reward, events.SETTLED: events.Settled,
    events.ABANDONED: events.Abandoned, events.VOIDED: events.Voided, events.CORRECTED: events.Corrected,
    events.CONFIRMED: events.Confirmed, events.OVERDUE: events.Overdue, events.MODE: events.Mode,
    events.ACKNOWLEDGED: events.Acknowledged, events.ERASED: events.Erased, events.SNAPSHOT: events.Snapshot,
    events.JOINED: events.Joined, events.LEASED: events.Lease, events.LOST: events.Lost,
    events.LEASE_ENDED: events.LeaseEnded,
}  # fmt: skip
_ROWS = {events.CATALOGUE: events.CatalogueRows, events.ROUND: events.RowsRound, events.HANDED_IN: events.RowsHandIn}
_PAIR = {
    events.ROUND: events.PairRound, events.VISIT: events.PairRound, events.COINS: events.CoinBlock,
    events.HANDED_IN: events.PairHandIn,
}  # fmt: skip
_DECODERS: dict[bool, dict[str, msgspec.json.Decoder[Any]]] = {
    is_pair: {kind: msgspec.json.Decoder(record) for kind, record in {**_SHARED, **own}.items()}
    for is_pair, own in ((False, _ROWS), (True, _PAIR))
}


def read_payload(kind: str, payload: bytes, *, is_pair: bool = False) -> Any:
    """What an event holds, of a guard's experiment or another; raises `ValueError` where it is not one of its kind."""
    decoders = _DECODERS[is_pair]
    if kind not in decoders:
        raise ValueError(f"there is no kind of event called {kind!r} in an experiment of this kind")
    return decoders[kind].decode(payload)


def read_round(decision: events.RowsRound, rows: Matrix) -> RecordedRound:
    """A decision over these rows."""
    seen = decision.certificate
    if seen.proof is None:
        raise ValueError("a round must have its proof")
    return RecordedRound(
        round=decision.round,
        rows=rows,
        baseline=-1 if decision.request.baseline is None else decision.request.baseline,
        known=decision.request.baseline_reward,
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


def read_proof(proof: events.ProofRecord) -> RecordedProof:
    """A proof as it is written."""
    return RecordedProof(
        question=_vector(proof.question),
        pieces=tuple(_piece(piece) for piece in proof.pieces),
        value=float(proof.value),
    )


def _piece(piece: events.PieceRecord) -> RecordedPiece:
    fact, vector, bound = piece.fact, _vector(piece.vector), float(piece.bound)
    if isinstance(fact, events.EllipsoidRecord):
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
    if isinstance(fact, events.BallRecord):
        return RecordedPiece("ball", "ball", vector, bound, fact.radius)
    point = None if fact.point is None else _vector(fact.point)
    return RecordedPiece(
        "linear", fact.name, vector, bound, normal=_vector(fact.normal), level=float(fact.level), point=point
    )


def _vector(values: list[float]) -> Vector:
    return np.array(values, dtype=np.float64)
