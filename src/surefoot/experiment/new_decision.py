"""A decision that was just written: what its answer tells; the rest is read from the event when somebody asks for it.

A proof is as long as the rest of a record, and few callers read it: it goes from the core into the event as bytes, and
never becomes objects on the way.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

from surefoot.records import Asked, CertificateRecord, DecisionRecord, Guarded, ModeName, Source
from surefoot.values import Value


class Verdict(Value, frozen=True):
    """What the gate said of the proposal: a certificate without its proof.

    Attributes
    ----------
    guaranteed, required, proposal, optimism, method, gap
        As in `surefoot.Certificate`.
    """

    guaranteed: float
    required: float
    proposal: int
    optimism: float
    method: str = "rows"
    gap: float = 0.0

    @property
    def margin(self) -> float:
        """guaranteed - required; inf where nothing is required."""
        return math.inf if self.required == -math.inf else self.guaranteed - self.required


class NewDecision(Value, frozen=True):
    """A decision as its answer tells it, with the fields of its record but for the proof.

    Attributes
    ----------
    decision_id, round, mode, asked, action, source, certificate, is_held, is_fallback, draw
        As in `surefoot.records.DecisionRecord`; `asked` may be without the features, which are in the event.
    """

    decision_id: str
    round: int
    mode: ModeName
    asked: Asked
    action: int
    source: Source
    certificate: Verdict | CertificateRecord
    is_held: bool
    is_fallback: bool
    draw: float | None
    _read: Callable[[], DecisionRecord]

    @property
    def record(self) -> DecisionRecord:
        """The whole record, read from what was written."""
        return self._read()


AnyRound: TypeAlias = DecisionRecord | NewDecision | Guarded
