"""What we may risk: facts, proofs and certificates, constraints, the ledger, alarms.

`surefoot.prove` and `surefoot.check` find and verify proofs.
"""

from surefoot.safety.alarm import Alarm
from surefoot.safety.bank_proof import BankProof, GuardProof
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
from surefoot.safety.guard_certificate import GuardCertificate
from surefoot.safety.ledger import Ledger
from surefoot.safety.metric import Metric
from surefoot.safety.proof import Piece, Proof, assemble

__all__ = [
    "Alarm",
    "BankProof",
    "Box",
    "Certificate",
    "Checkpoints",
    "Constraint",
    "Cumulative",
    "Fact",
    "GuardCertificate",
    "GuardProof",
    "Ledger",
    "Linear",
    "Metric",
    "Piece",
    "Proof",
    "RealisedPath",
    "Reserve",
    "Stagewise",
    "assemble",
    "read_constraint",
]
