"""Where chains stand: receipts for everything that happened, to be kept outside and held against the journal later."""

from typing import Annotated, Any

from litestar import Request, get
from litestar.handlers import HTTPRouteHandler
from litestar.params import QueryParameter

from surefoot.errors import JournalNotFoundError
from surefoot.journal import Head
from surefoot.journal.events import JOURNAL
from surefoot.service.problems import ProblemError
from surefoot.service.registry import Registry
from surefoot.service.responses import NamedHead
from surefoot.service.routes.route_options import TOKEN, ExperimentName, problems

TAGS = ["reading"]
NUMBER = "number"
EventNumber = Annotated[int | None, QueryParameter(description="Of an event that must exist.", ge=1, le=2**62)]


def routes(registry: Registry) -> list[HTTPRouteHandler]:
    """The handlers; heads hold no data, so that both apps and readers may ask for what their token is about."""

    def check_question(request: Request[Any, Any, Any]) -> None:
        # A word that is spelt wrong must not be answered with the newest head, as if none had been asked for.
        if unknown := sorted(set(request.query_params) - {NUMBER}):
            raise ProblemError("invalid", f"A head is asked for by `{NUMBER}` alone, but got {unknown[0]!r:.80}.")

    def head_at(name: str, number: int | None) -> Head:
        view = registry.journal.view(name)
        if number is None:
            return view.head
        found = next(view.read(number - 1, limit=1), None)
        if found is None:
            raise ProblemError("unknown-event", f"{name!r} ends with event {view.head.number}.")
        return found.head

    @get(
        "/v1/experiments/{name:str}/head",
        security=TOKEN,
        tags=TAGS,
        operation_id="readHead",
        responses=problems("unknown-experiment", "unknown-event", "invalid"),
    )
    async def head(request: Request[Any, Any, Any], name: ExperimentName, number: EventNumber = None) -> NamedHead:
        """Number and hash of the newest event, or of the event of that number; signed where the server has a key."""
        check_question(request)
        return registry.heads.signed(name, await registry.run(head_at, name, number))

    @get(
        "/v1/head",
        security=TOKEN,
        tags=TAGS,
        operation_id="readJournalHead",
        responses=problems("unknown-event", "invalid"),
    )
    async def journal_head(request: Request[Any, Any, Any], number: EventNumber = None) -> NamedHead:
        """The head of the journal's own chain, which vouches for the heads of all experiments that it has noted."""
        check_question(request)
        try:
            return registry.heads.signed(JOURNAL, await registry.run(head_at, JOURNAL, number))
        except JournalNotFoundError:
            raise ProblemError("unknown-event", "The journal has no experiment yet.") from None

    return [head, journal_head]
