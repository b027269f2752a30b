"""What the API answers beside `Answer`, `Receipt` and `Status`, which are those of the library."""

import msgspec

from surefoot.experiment import Status
from surefoot.rounds import Answer, Receipt
from surefoot.rounds.answers import EventHead
from surefoot.rounds.events import PairRound, RowsRound
from surefoot.service.problems import ProblemDetails


class NamedHead(msgspec.Struct, frozen=True, omit_defaults=True):
    """A head and the experiment that it is of, as it is kept outside of the journal.

    signature: Ed25519, over the fields before it, where the server has a key
    key:       name of the key that has signed: the first 16 digits of the SHA-256 of the public key in DER form
    """

    experiment: str
    number: int
    hash: str
    time: float
    signature: str = ""
    key: str = ""


class ProvedDecision(msgspec.Struct):
    """A decision as its caller got it, and the round as the journal holds it, with the whole proof."""

    answer: Answer
    round: RowsRound | PairRound


class Confirmation(msgspec.Struct):
    """How many rounds waited for the word that they were played. `head` is the receipt."""

    confirmed: int
    head: EventHead


class ErasureReceipt(msgspec.Struct):
    """How many private texts were erased. `head` is the receipt.

    `is_on_disk` says that they are still in the log of a SQLite file, unreachable, since somebody reads the file; they
    leave it within seconds after that.
    """

    erased: int
    head: EventHead
    is_on_disk: bool = False


class BatchResult(msgspec.Struct, omit_defaults=True):
    """One entry of a batch: the decision, the receipt, or the problem."""

    decision: Answer | None = None
    receipt: Receipt | None = None
    problem: ProblemDetails | None = None


class BatchResults(msgspec.Struct):
    """The answers to a batch, in order."""

    results: list[BatchResult]


class Registered(msgspec.Struct):
    """A catalogue that decisions can refer to."""

    catalogue: str
    actions: int
    dim: int


class ForkedExperiment(msgspec.Struct):
    """A fork: the new experiment, how many rows it begins with, and what was not carried over, a sentence each."""

    experiment: Status
    carried: int
    lost: list[str]


class DamagedExperiment(msgspec.Struct):
    """An experiment that cannot be read, and why."""

    name: str
    reason: str


class Experiments(msgspec.Struct):
    """All experiments, by name."""

    experiments: list[Status]
    damaged: list[DamagedExperiment] = []
