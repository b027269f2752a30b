"""Problem details (RFC 9457): what went wrong, as data whose `type` never changes.

Types are relative references, `/problems/<word>`: stable names, which every server also explains at that path.
"""

from collections.abc import Sequence
from typing import Any, Self

import msgspec

from surefoot.errors import (
    AlarmError,
    AssumptionError,
    ConfigError,
    DecisionConflictError,
    DecisionError,
    DecisionSettledError,
    InputError,
    JournalBusyError,
    JournalConflictError,
    JournalCorruptedError,
    JournalError,
    JournalFullError,
    JournalNotFoundError,
    JournalReadOnlyError,
    JournalSchemaError,
    JournalUnavailableError,
    ModeError,
    OutcomeUnknownError,
    SurefootError,
)
from surefoot.rounds.events import Reason

MEDIA_TYPE = "application/problem+json"

# word: status, title, what to do
KINDS: dict[str, tuple[int, str, str]] = {
    "malformed": (400, "The request cannot be read", "Send JSON of the documented shape."),
    "no-token": (401, "A valid token is needed", "Send `Authorization: Bearer <token>`."),
    "not-allowed": (403, "The token's role does not allow this", "Use a token with the role that is named."),
    "wrong-host": (403, "A server without tokens answers loopback names only", "Ask for 127.0.0.1 or localhost."),
    "other-site": (403, "A page of another site has sent this", "Send it from this server's page, or a program."),
    "not-found": (404, "There is nothing at this address", "See /api for the routes."),
    "unknown-experiment": (404, "There is no such experiment", "GET /v1/experiments lists all experiments."),
    "unknown-decision": (404, "There is no such decision", "Use the decision_id of an answer."),
    "unknown-event": (404, "There is no event of that number", "Ask for the head without a number."),
    "unknown-catalogue": (404, "There is no such catalogue", "Register it again: its name is the hash of its content."),
    "method-not-allowed": (405, "This address does not take the method", "See /api for the routes."),
    "timeout": (408, "The request did not arrive in time", "Send it again, on a new connection."),
    "experiment-exists": (409, "The experiment exists already", "Choose another name, or use the one there is."),
    "decision-conflict": (409, "The decision_id stands for another question", "Use a new id for a new question."),
    "decision-settled": (409, "The decision is settled", "Nothing: its reward has come, or its window has closed."),
    "alarm-conflict": (409, "The alarm cannot be answered like this", "See `alarm_responses` of the experiment."),
    "mode-conflict": (409, "The mode cannot be changed like this", "See `allowed_modes` of the experiment."),
    "not-sharded": (409, "The experiment has one ledger", 'Create one with `ledger` "sharded" on a server of a hub.'),
    "rounds-open": (409, "Rounds wait for their rewards", "Wait for them, or abandon the rounds."),
    "reward-conflict": (409, "Another reward was accepted before", "Nothing: the first one stands."),
    "reward-too-late": (409, "The decision's window has closed", "Nothing: what was learned then stands."),
    "reward-abandoned": (409, "The decision was settled without its reward", "Nothing: it will not be learned."),
    "too-large": (413, "The request is too large", "Send less at once."),
    "media-type": (415, "The body must be application/json", "Send `Content-Type: application/json`."),
    "head-too-large": (431, "The head of the request is too large", "Send shorter headers, or a shorter address."),
    "invalid": (422, "The request breaks a rule", "The `errors` name the fields and their rules."),
    "broken-assumption": (
        422,
        "The request breaks an assumption of the guarantee",
        "Rescale, or change the declaration.",
    ),
    "reward-out-of-range": (422, "The reward is not finite, or too large", "Send a finite number."),
    "too-many-requests": (429, "Too many requests", "Wait as long as `Retry-After` says."),
    "internal": (500, "The server made a mistake", "Look for the request's id in its log."),
    "damaged-experiment": (
        503,
        "The experiment's events cannot be read",
        "Play the baseline. `surefoot audit` names the event; restore a backup.",
    ),
    "unavailable": (503, "The journal cannot be written now; nothing was changed", "Ask again with the same id."),
    "outcome-unknown": (503, "Written or not: contact was lost while committing", "Ask again with the same id."),
    "tokens-unreadable": (
        503,
        "The server cannot read its tokens",
        "Ask again: tokens that it has read before are taken, and its log says more.",
    ),
    "busy": (503, "Too much is waiting", "Ask again with the same id, after `Retry-After`."),
}

REFUSED: dict[Reason, str] = {
    "unknown": "unknown-decision",
    "conflict": "reward-conflict",
    "too_late": "reward-too-late",
    "out_of_range": "reward-out-of-range",
    "abandoned": "reward-abandoned",
}

# The first that fits: leaves before their parents.
ERRORS: tuple[tuple[type[SurefootError], str], ...] = (
    (AssumptionError, "broken-assumption"),
    (InputError, "invalid"),
    (ConfigError, "invalid"),
    (DecisionConflictError, "decision-conflict"),
    (DecisionSettledError, "decision-settled"),
    (DecisionError, "unknown-decision"),
    (AlarmError, "alarm-conflict"),
    (ModeError, "mode-conflict"),
    (JournalNotFoundError, "unknown-experiment"),
    (JournalConflictError, "experiment-exists"),
    (OutcomeUnknownError, "outcome-unknown"),
    (JournalBusyError, "unavailable"),
    (JournalFullError, "unavailable"),
    (JournalReadOnlyError, "unavailable"),
    (JournalUnavailableError, "unavailable"),
    (JournalCorruptedError, "damaged-experiment"),
    (JournalSchemaError, "damaged-experiment"),
    (JournalError, "internal"),
)


class Fault(msgspec.Struct, frozen=True):
    """A field of the request, and the rule that it breaks."""

    field: str
    rule: str


class ProblemDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """What went wrong. `type` is stable, `detail` is for people and may change."""

    type: str
    title: str
    status: int
    detail: str = ""
    errors: list[Fault] = []  # msgspec makes a new one each time
    request_id: str = ""


class ProblemError(Exception):
    """A request that is answered with a problem."""

    def __init__(self, word: str, detail: str = "", errors: Sequence[Fault] = (), **headers: str) -> None:
        super().__init__(detail)
        self.problem = problem(word, detail, errors)
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.problem.status in (429, 503):  # whoever is to come again is told when
            self.headers.setdefault("Retry-After", "1")

    @classmethod
    def of(cls, found: ProblemDetails) -> Self:
        """The error that is answered with this problem."""
        error = cls(found.type.rpartition("/")[2])
        error.problem = found
        return error


def problem(word: str, detail: str = "", errors: Sequence[Fault] = (), *, request_id: str = "") -> ProblemDetails:
    """The problem of this kind."""
    status, title, advice = KINDS[word]
    return ProblemDetails(f"/problems/{word}", title, status, detail or advice, list(errors), request_id)


def of_error(error: SurefootError) -> ProblemDetails:
    """The problem that an error of this package is; details of our own mistakes stay inside."""
    word = next((word for kind, word in ERRORS if isinstance(error, kind)), "internal")
    if KINDS[word][0] >= 500:
        return problem(word)
    return problem(word, str(error), [] if error.field is None else [Fault(error.field, str(error))])


def encode(found: Any) -> bytes:
    """The body of an answer."""
    return msgspec.json.encode(found)
