"""What an event claims, in the audit's own words: plain data between raw payloads and the checks."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np

from surefoot.audit.compensated_sums import Matrix, Vector
from surefoot.audit.findings import Findings
from surefoot.journal.events import Event
from surefoot.rounds import events


@dataclass(frozen=True, slots=True)
class RecordedPiece:
    """A part of the question, the fact that is said to bound it, and the bound."""

    kind: str  # "ellipsoid", "ball" or "linear"
    name: str
    vector: Vector
    bound: float
    radius: float = 0.0
    observations: int = 0
    normal: Vector | None = None
    level: float = 0.0
    center: Vector | None = None
    whitener: Matrix | None = None
    point: Vector | None = None


@dataclass(frozen=True, slots=True)
class RecordedProof:
    """The recorded proof: that <theta, question> >= value."""

    question: Vector
    pieces: tuple[RecordedPiece, ...]
    value: float


NO_PROOF = RecordedProof(np.zeros(0), (), 0.0)


@dataclass(frozen=True, slots=True)
class RecordedRound:
    """One recorded decision."""

    round: int
    rows: Matrix
    baseline: int
    known: float | list[float] | None
    action: int
    source: str
    proposal: int
    guaranteed: float
    required: float
    optimism: float
    is_held: bool
    proof: RecordedProof
    draw: float | None = None

    @property
    def is_learner(self) -> bool:
        """Whether the learner's proposal was played."""
        return self.source == "learner"

    @property
    def displaced(self) -> Vector:
        """Features of the baseline; of a round without one, those that were decided."""
        row: Vector = self.rows[self.baseline if self.baseline >= 0 else self.action]
        return row

    @property
    def margin(self) -> float:
        """What is guaranteed above what is required; inf where nothing is."""
        return math.inf if self.required == -math.inf else self.guaranteed - self.required

    def without_proof(self) -> "RecordedRound":
        """The same for whoever keeps it until its reward has come."""
        return replace(self, proof=NO_PROOF)


@dataclass
class RoundProblems:
    """What is wrong with one event, as (check, sentence)."""

    listed: list[tuple[str, str]] = field(default_factory=list)

    def add(self, what: str, text: str) -> None:
        """Note one."""
        self.listed.append((what, text))

    def report(self, event: Event, findings: Findings) -> None:
        """Make them findings."""
        for what, text in self.listed:
            findings.add(event.number, what, text)


def near(a: float, b: float, size: float, share: float = 1e-9) -> bool:
    """Whether two numbers differ by rounding alone, relative to the size of what they are made of.

    An infinite one is near to itself only: otherwise it would buy an infinite tolerance.
    """
    return a == b or abs(a - b) <= share * (abs(a) + abs(b) + size) < math.inf


def apart(a: Vector, b: Vector, size: float, share: float = 1e-9) -> bool:
    """Whether two vectors differ by more than rounding."""
    return a.shape != b.shape or not float(np.linalg.norm(a - b)) <= share * size < math.inf


_DECODERS: dict[bool, dict[str, msgspec.json.Decoder[Any]]] = {
    is_pair: {kind: msgspec.json.Decoder(record) for kind, record in records.items()}
    for is_pair, records in ((False, events.ROWS_RECORDS), (True, events.PAIR_RECORDS))
}


def read_payload(kind: str, payload: bytes, *, is_pair: bool = False) -> Any:
    """What an event holds, of a guard's experiment or another; raises `ValueError` where it is not one of its kind."""
    decoders = _DECODERS[is_pair]
    if kind not in decoders:
        raise ValueError(f"there is no kind of event called {kind!r} in an experiment of this kind")
    return decoders[kind].decode(payload)


def read_round(decision: events.RowsRound, rows: Matrix) -> RecordedRound:
    """A decision over these rows."""
    certificate = decision.certificate
    if certificate.proof is None:
        raise ValueError("a round must have its proof")
    return RecordedRound(
        round=decision.round,
        rows=rows,
        baseline=-1 if decision.request.baseline is None else decision.request.baseline,
        known=decision.request.baseline_reward,
        action=decision.action,
        source=decision.source,
        proposal=certificate.proposal,
        guaranteed=float(certificate.guaranteed),
        required=float(certificate.required),
        optimism=float(certificate.optimism),
        is_held=decision.is_held,
        proof=read_proof(certificate.proof),
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
