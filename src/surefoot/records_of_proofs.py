"""Proofs as events hold them: a question in pieces, and the fact that bounds each."""

from typing import TypeAlias

from surefoot.record_format import Number, Record


class EllipsoidRecord(Record, tag_field="kind", tag="ellipsoid"):
    """||theta - center||_V <= radius, after the first `observations` rewards that the policy learned.

    The radius holds what rounding may have done. `whitener` is given where the set is not the one of the policy's own
    ridge (radius "dual"): whitener^T whitener = V_a^-1 with V_a = sum x x^T + a I for some a > 0.
    """

    observations: int
    radius: float
    center: list[float] | None = None
    whitener: list[list[float]] | None = None


class BallRecord(Record, tag_field="kind", tag="ball"):
    """||theta|| <= radius."""

    radius: float


class LinearRecord(Record, tag_field="kind", tag="linear"):
    """<theta, normal> >= level; `name` says why, and `point` where the likelihood set is touched."""

    name: str
    normal: list[float]
    level: Number
    point: list[float] | None = None


Fact: TypeAlias = EllipsoidRecord | BallRecord | LinearRecord


class PieceRecord(Record):
    """A part of the question, and the lower bound that the fact gives for it."""

    fact: Fact
    vector: list[float]
    bound: Number


class ProofRecord(Record):
    """That <theta, question> >= value: the pieces add up to the question, the bounds to the value."""

    question: list[float]
    value: Number
    pieces: list[PieceRecord]
