"""A recorded proof against facts that the audit rebuilt: pieces add up, facts are true, bounds are what they give.

The bound of every piece is computed again from the rebuilt fact, and the sum of these own bounds is the verdict: what
was written down must agree with it, and must never claim more.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from surefoot.audit.compensated_sums import Vector
from surefoot.audit.confidence_sets import EPS, FINE, RebuiltSet
from surefoot.audit.recorded_round import RecordedPiece, RecordedProof, RoundProblems, apart, near

PROVED = "proof of an earlier round"
NOTHING = -math.inf, -math.inf
UNUSABLE = 1e300  # the radius of a set that rounding has spoilt: it says nothing
# Shares of what everything played so far could be worth: how far vectors may miss each other, which is charged all the
# same, and how far what is written down may differ from what it was computed of.
MISSED, CLAIMED = 1e-9, 1e-6


@dataclass(frozen=True, slots=True)
class Tolerances:
    """The units of every tolerance, which no proof can raise.

    worth: what everything played so far could be worth, by all that is known
    size:  the same by the ball alone, in which rounding is counted: it may be far more
    """

    worth: float
    size: float

    @property
    def rounding(self) -> float:
        """What rounding may have done to the question."""
        return 4 * EPS * self.size

    @property
    def tolerated(self) -> float:
        """What the learner may be short of: the audit and the policy give rounding away in different ways."""
        return 64 * EPS * self.size

    @property
    def gap(self) -> float:
        """How far vectors may miss each other, times B."""
        return MISSED * self.worth + 64 * EPS * self.size

    @property
    def blur(self) -> float:
        """How far numbers that are written down may lie apart."""
        return CLAIMED * self.worth + 64 * EPS * self.size


Sets = Callable[[int], Sequence[RebuiltSet]]


@dataclass(frozen=True, slots=True)
class LinearFact:
    """The fact <theta, normal> >= level.

    error: what rounding may have done to both, so that <theta, normal> >= level - error is certain
    claimed_level: the most that a record may claim, where that is another level; it may claim less
    """

    normal: Vector
    level: float
    error: float = 0.0
    claimed_level: float | None = None

    @property
    def claimed(self) -> float:
        """The level that a record claims."""
        return self.level if self.claimed_level is None else self.claimed_level


Facts = Callable[[str, Vector, Vector | None], Sequence[LinearFact]]


class ProofChecker:
    """Bounds pieces by rebuilt facts, and notes where the record says otherwise.

    sets:  the confidence sets that a proof may use, by their number of observations
    facts: the linear facts of a name, given the normal and the point that a piece claims
    scale: the units of every tolerance
    """

    def __init__(self, theta_bound: float, sets: Sets, facts: Facts, scale: Tolerances) -> None:
        self._theta_bound, self._sets, self._facts, self._scale = theta_bound, sets, facts, scale

    def check(self, claim: RecordedProof, question: Vector, problems: RoundProblems, enough: float = math.inf) -> float:
        """What the pieces of the proof really prove of the question, all rounding given away.

        What they miss of it, and what of a piece lies beside its fact, is charged to the ball. Bounds are computed with
        more digits where that may decide whether the sum reaches `enough`, or what is claimed.
        """
        if claim.question.shape != question.shape or any(p.vector.shape != question.shape for p in claim.pieces):
            problems.add("pieces", f"question and pieces must have {question.size} entries, but one does not")
            return -math.inf
        missing = np.array([math.fsum(column) for column in _columns(question, claim.pieces)])
        gap, length = float(np.linalg.norm(missing)), float(np.linalg.norm(claim.question - question))
        if self._theta_bound * length > self._scale.gap:
            text = f"the proof must answer the round's own question, but differs from it by {length:.3g}"
            problems.add("question", text)
        if self._theta_bound * gap > self._scale.gap:
            problems.add("pieces", f"the pieces must add up to the question, but miss it by {gap:.3g}")
        added = math.fsum(piece.bound for piece in claim.pieces)
        if claim.value != added and not abs(claim.value - added) <= self._scale.blur + max(0.0, -CLAIMED * added):
            problems.add("value", f"the bounds add up to {added:.12g}, but the proof claims {claim.value:.12g}")
        lengths = math.fsum(float(np.linalg.norm(piece.vector)) for piece in claim.pieces)
        charged = self._theta_bound * (gap * (1 + 8 * EPS) + 4 * EPS * lengths)
        is_link = any(piece.name == PROVED for piece in claim.pieces)  # what it gives away is handed on
        share = math.inf if enough == -math.inf else 1e-3 * FINE if is_link else FINE
        own, plain = self._sum(claim, problems, share)
        if own - charged < enough or claim.value > plain - self._theta_bound * gap + self._scale.blur:
            # The first pass has noted the problems of the pieces.
            own, plain = self._sum(claim, RoundProblems(), 0.0)
        if claim.value > plain - self._theta_bound * gap + self._scale.blur:
            problems.add("value", f"the pieces prove {plain:.12g}, but the proof claims {claim.value:.12g}")
        return own - charged

    def _sum(self, claim: RecordedProof, problems: RoundProblems, share: float) -> tuple[float, float]:
        bounds = [self._bound(index, piece, problems, share) for index, piece in enumerate(claim.pieces)]
        own = [bound for bound, _ in bounds]
        return math.fsum(own) - 4 * EPS * math.fsum(map(abs, own)), math.fsum(plain for _, plain in bounds)

    def _bound(self, index: int, piece: RecordedPiece, problems: RoundProblems, share: float) -> tuple[float, float]:
        """What the fact really gives for a piece, all rounding given away; and what a record may say that it gives."""
        faults: list[str] = []
        if piece.kind == "ellipsoid":
            bounds = self._by_ellipsoid(piece, faults, share)
        elif piece.kind == "ball":
            bounds = self._by_ball(piece, faults)
        else:
            bounds = self._by_line(piece, faults)
        for text in faults:
            what, _, rest = text.partition(": ")
            problems.add(what, f"piece {index}, by the {piece.name}: {rest}")
        return bounds

    def _by_ball(self, piece: RecordedPiece, faults: list[str]) -> tuple[float, float]:
        if not near(piece.radius, self._theta_bound, 0.0, 1e-12):
            faults.append(f"radius: the ball's radius is {self._theta_bound:.12g}, but {piece.radius:.12g} is claimed")
        own = -self._theta_bound * float(np.linalg.norm(piece.vector))
        _compare(piece.bound, own, own, abs(own), 1e-9, faults)
        return own * (1 + 16 * EPS), own

    def _by_line(self, piece: RecordedPiece, faults: list[str]) -> tuple[float, float]:
        assert piece.normal is not None
        length = float(np.linalg.norm(piece.normal))
        lines = [
            line
            for line in self._facts(piece.name, piece.normal, piece.point)
            if not apart(piece.normal, line.normal, length + float(np.linalg.norm(line.normal)))
        ]
        if lines:
            return self._along(piece, min(lines, key=lambda line: abs(line.claimed - piece.level)), faults)
        faults.append("fact: no such fact can be rebuilt from the events before this one")
        return NOTHING

    def _along(self, piece: RecordedPiece, line: LinearFact, faults: list[str]) -> tuple[float, float]:
        normal, level, claimed = line.normal, line.level, line.claimed
        size = self._theta_bound * float(np.linalg.norm(normal))
        if not (near(piece.level, claimed, size) or (line.claimed_level is not None and piece.level <= claimed)):
            faults.append(f"fact: its level is {claimed:.12g}, but {piece.level:.12g} is claimed")
        square = float(normal @ normal)
        weight = float(piece.vector @ normal) / square if square > 0 else 0.0
        off = self._theta_bound * float(np.linalg.norm(piece.vector - weight * normal))
        if weight < 0 or off > self._scale.gap:
            faults.append("fact: the piece must be a nonnegative multiple of the fact's normal, but is not")
        if not weight >= 0:
            return NOTHING
        # 0 times an infinite level would be NaN.
        most, written, own = (weight * one if weight else 0.0 for one in (max(level, claimed), piece.level, level))
        _compare(piece.bound, most, written, weight * size, 1e-9, faults)
        return own - off - weight * line.error - 16 * EPS * abs(own), most - off

    def _by_ellipsoid(self, piece: RecordedPiece, faults: list[str], share: float) -> tuple[float, float]:
        sets = self._sets(piece.observations)
        if not sets:
            faults.append(f"fact: no confidence set of {piece.observations} observations may be used in this round")
            return NOTHING
        tried: list[tuple[list[str], RebuiltSet]] = []
        for known in sets:  # all of them hold at once
            problems: list[str] = []
            self._compare_set(piece, known, problems)
            tried.append((problems, known))
            if not problems and known.blur < 1e-9:
                break
        fewest = min(len(problems) for problems, _ in tried)
        alike = [(problems, known) for problems, known in tried if len(problems) == fewest]
        faults.extend(alike[0][0])
        return max(known.at_least(piece.vector, share) for _, known in alike)

    def _compare_set(self, piece: RecordedPiece, known: RebuiltSet, faults: list[str]) -> None:
        """Whether a piece is by this set."""
        mean, width = known.mean_and_width(piece.vector)
        if not is_radius_of(piece.radius, known):
            faults.append(
                f"radius: after {known.observations} observations it is {known.radius:.12g}, "
                f"but {piece.radius:.12g} is claimed"
            )
        if piece.center is not None and known.distance(piece.center) > 1e3 * known.rounding + 1e-6:
            faults.append("center: the estimate is not the one that the learned rewards give")
        if piece.whitener is not None and piece.radius < UNUSABLE and not known.is_whitened_by(piece.whitener):
            faults.append("whitener: it must be lower triangular and belong to the learned features, but is not so")
        own = mean - known.radius * width
        size = known.size(piece.vector) + abs(piece.radius) * width
        expected = mean - piece.radius * width if piece.radius < UNUSABLE else piece.bound
        _compare(piece.bound, own, expected, size, known.rounding, faults)


def _columns(question: Vector, pieces: Sequence[RecordedPiece]) -> list[tuple[float, ...]]:
    return list(zip(question.tolist(), *((-piece.vector).tolist() for piece in pieces), strict=True))


def is_radius_of(claimed: float, known: RebuiltSet) -> bool:
    """Whether a radius is this set's, widened by no more than what a guard against rounding may add.

    With `dual` the guard is inside the root, as a share of the energies whose difference it holds.
    """
    if claimed == UNUSABLE:
        return True
    drift = known.widest_guard
    guarded = math.sqrt(known.radius**2 + 16.0 * drift * known.energy)
    most = (guarded + 4.0 * drift * (math.sqrt(known.energy) + known.radius)) * (1.0 + 4.0 * drift)
    least = known.radius * (1.0 - 1e-9)
    return bool(least - known.radius_rounding <= claimed <= most + known.radius_rounding)


def _compare(claimed: float, most: float, expected: float, size: float, share: float, faults: list[str]) -> None:
    """A bound must not claim more than the fact gives, and must be what the recorded numbers give."""
    if claimed == most == expected:
        return
    if not claimed <= most + share * (size + abs(most)):
        faults.append(f"bound: the fact gives {most:.12g}, but {claimed:.12g} is claimed")
    elif not near(claimed, expected, size, share):
        faults.append(f"bound: the recorded numbers give {expected:.12g}, but {claimed:.12g} is written")
