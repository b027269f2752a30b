"""The page at `/`: experiments for people to look at. `handlers` is mounted by the service's app."""

from litestar import MediaType, get
from litestar.handlers import HTTPRouteHandler
from litestar.types import ControllerRouterHandler


def handlers() -> list[ControllerRouterHandler]:
    """Handlers of the page and of its static files; none of them holds data, and none asks for a token."""
    return [_index()]


def _index() -> HTTPRouteHandler:
    @get("/", media_type=MediaType.HTML, include_in_schema=False)
    async def index() -> str:
        """Say where to go on."""
        return '<!doctype html><html lang="en"><title>surefoot</title><p><a href="/openapi.json">The API</a></p></html>'

    return index
