"""What must never be lost, as the audit knows it: what each constraint asks of a round, and how a report says it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefoot.audit.declarations import Declarations
    from surefoot.audit.ledger import AuditLedger

LARGEST = 1e100  # of a reward
Number = tuple[str, Callable[[Any], bool], str]


@dataclass(frozen=True)
class CheckedConstraint:
    """What must never be lost.

    says:          in a report, where {number} is the constraint's own
    number:        its own number: the setting, whether a value can be, and what it must
    granted:       what is given in advance, by the declarations, the ledger, and the learner's rounds and all rounds
    is_one_round:  whether it asks of this round alone
    is_received:   whether the learner's rounds count with the rewards they received
    """

    says: str
    number: Number | None = None
    granted: Callable[["Declarations", "AuditLedger", int, int], float] = lambda declared, sums, rounds, played: 0.0
    is_one_round: bool = False
    is_received: bool = False

    @property
    def carries_over(self) -> bool:
        """Whether what is proved of one round is a fact for the next."""
        return not (self.is_one_round or self.is_received)

    def amount(self, plain: Mapping[str, Any]) -> float:
        """Its own number, as it was declared; 0 if it has none."""
        return 0.0 if self.number is None else float(plain[self.number[0]])


def _rest_of_block(declared: "Declarations", sums: "AuditLedger", rounds: int, played: int) -> float:
    """The floor of the rounds that are left until the next checkpoint."""
    return declared.alpha * (-played % declared.amount) * max(declared.reward_floor, declared.reward_range[0])


def _received(declared: "Declarations", sums: "AuditLedger", rounds: int, played: int) -> float:
    """Rewards received; one that has not come yet is the lowest there can be."""
    return sums.received + (rounds - sums.rewarded_rounds) * declared.amount


CUMULATIVE = CheckedConstraint("At every round, everything earned so far makes {share}.")
RESERVE = CheckedConstraint(
    "At every round, everything earned so far, plus {number} in reserve, makes {share}.",
    ("granted", lambda x: 0 < x < math.inf, "be above 0"),
    lambda declared, sums, rounds, played: declared.amount,
)
CONSTRAINTS = {
    "cumulative": CUMULATIVE,
    "checkpoints": CheckedConstraint(
        "At every {number}th round, everything earned so far makes {share}.",
        ("every", lambda x: isinstance(x, int) and x >= 1, "be a whole number of at least 1"),
        _rest_of_block,
    ),
    "stagewise": CheckedConstraint(
        "In every single round, the action played is worth {share} in that round.", is_one_round=True
    ),
    "reserve": RESERVE,
    "realised_path": CheckedConstraint(
        "At every round, the learner's received rewards and the baseline's means make {share}.",
        ("lowest_reward", lambda x: abs(x) <= LARGEST, f"lie within +-{LARGEST:g}"),
        _received,
        is_received=True,
    ),
}


def plain_constraint(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The constraint that was declared, by its `name`, with its number."""
    value = settings.get("constraint") or "cumulative"
    return {"name": value} if isinstance(value, str) else dict(value)
