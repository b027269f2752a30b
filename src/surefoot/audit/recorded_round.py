"""What an event claims, in the audit's own words: plain data between the raw events and the checks."""

import math
from dataclasses import dataclass, field

import numpy as np

from surefoot.audit.compensated_sums import Matrix, Vector


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

    @property
    def size(self) -> float:
        """Size of the numbers that were added up."""
        return math.fsum(abs(piece.bound) for piece in self.pieces)


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
    def offered(self) -> "OfferedRound":
        """The round without its proof."""
        return OfferedRound(self.rows, self.baseline, self.known, self.action, self.is_learner)

    @property
    def margin(self) -> float:
        """What is guaranteed above what is required; inf where nothing is."""
        return math.inf if self.required == -math.inf else self.guaranteed - self.required


@dataclass(frozen=True, slots=True)
class OfferedRound:
    """What could have been played in a round, and what was decided."""

    rows: Matrix
    baseline: int
    known: float | list[float] | None
    action: int
    is_learner: bool

    @property
    def displaced(self) -> Vector:
        """Features of the baseline; of a round without one, those that were decided."""
        row: Vector = self.rows[self.baseline if self.baseline >= 0 else self.action]
        return row


@dataclass
class RoundProblems:
    """What is wrong with one event, as (check, sentence)."""

    found: list[tuple[str, str]] = field(default_factory=list)

    def add(self, what: str, text: str) -> None:
        """Note one."""
        self.found.append((what, text))


def near(a: float, b: float, size: float, share: float = 1e-9) -> bool:
    """Whether two numbers differ by rounding alone, relative to the size of what they are made of.

    An infinite one is near to itself only: otherwise it would buy an infinite tolerance.
    """
    return a == b or abs(a - b) <= share * (abs(a) + abs(b) + size) < math.inf


def apart(a: Vector, b: Vector, size: float, share: float = 1e-9) -> bool:
    """Whether two vectors differ by more than rounding."""
    return a.shape != b.shape or not float(np.linalg.norm(a - b)) <= share * size < math.inf
