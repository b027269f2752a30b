"""What a caller is told: decisions and receipts, as typed data."""

from typing import Any, Literal

import msgspec


class Certificate(msgspec.Struct, frozen=True):
    """What the gate saw; None where a number is not finite. The learner was allowed exactly where margin >= 0."""

    guaranteed: float | None = None
    required: float | None = None
    margin: float | None = None
    proposal: int = -1
    proposal_id: str | None = None
    is_held: bool = False


class Decision(msgspec.Struct, frozen=True):
    """What to play. `is_fallback`: the service was not reached in time, and the baseline was chosen right here."""

    decision_id: str
    action_id: str
    action: int
    source: Literal["learner", "baseline"]
    mode: str = ""
    round: int = 0
    explanation: str = ""
    is_repeat: bool = False
    is_fallback: bool = False
    certificate: Certificate = Certificate()


class Receipt(msgspec.Struct, frozen=True):
    """What became of a reward; `is_queued`: it waits here until the service can be reached."""

    decision_id: str
    value: float
    refused: str | None = None
    is_repeat: bool = False
    is_queued: bool = False

    @property
    def is_accepted(self) -> bool:
        """Whether the reward counts, or will be handed in."""
        return self.refused is None


REFUSED = {
    "/problems/unknown-decision": "unknown",
    "/problems/reward-conflict": "conflict",
    "/problems/reward-too-late": "too_late",
    "/problems/reward-abandoned": "abandoned",
    "/problems/reward-out-of-range": "out_of_range",
}


def named(actions: Any) -> list[dict[str, Any]]:
    """Actions as the service takes them: {"id": features, ...}, or names alone for plain arms.

    >>> named({"blue": [0.6, 0.1]}), named(["blue", "red"])
    ([{'id': 'blue', 'features': [0.6, 0.1]}], [{'id': 'blue'}, {'id': 'red'}])
    """
    if isinstance(actions, dict):
        return [{"id": name, "features": [float(entry) for entry in row]} for name, row in actions.items()]
    return [{"id": str(name)} for name in actions]
