"""What we may risk: facts, proofs and certificates, constraints, the ledger, alarms.

`surefoot.prove` and `surefoot.check` find and verify proofs.
"""

from surefoot.safety.alarm import Alarm
from surefoot.safety.certificate import Certificate
from surefoot.safety.constraints import (
    Checkpoints,
    Constraint,
    Cumulative,
    RealisedPath,
    Reserve,
    Stagewise,
    read_constraint,
)
from surefoot.safety.facts import Box, Fact, Linear
from surefoot.safety.ledger import Ledger
from surefoot.safety.proof import Piece, Proof, assemble

__all__ = [
    "Alarm",
    "Box",
    "Certificate",
    "Checkpoints",
    "Constraint",
    "Cumulative",
    "Fact",
    "Ledger",
    "Linear",
    "Piece",
    "Proof",
    "RealisedPath",
    "Reserve",
    "Stagewise",
    "assemble",
    "read_constraint",
]
