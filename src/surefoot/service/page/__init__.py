"""The page at `/`: experiments for people to look at. The service's app mounts `handlers`.

Plain HTML, CSS and JavaScript, read from this package when the app is made: nothing is built, and nothing is loaded
from elsewhere. The page holds no data: it asks the API, with the viewer's token.
"""

import hashlib
from importlib import resources
from typing import Any

from litestar import Request, Response, get
from litestar.exceptions import NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath
from litestar.types import ControllerRouterHandler

from surefoot.service.openapi import document
from surefoot.service.page.reference import render
from surefoot.service.routes.route_options import operations

KINDS = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class File:
    """A file of the page; its tag changes with its content, so that browsers never show an old one."""

    def __init__(self, name: str, content: bytes) -> None:
        self.content, self.media_type = content, KINDS[name.rpartition(".")[2]]
        self.tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'

    def answer(self, request: Request[Any, Any, Any]) -> Response[bytes]:
        """The file, or that the browser has it already (304)."""
        headers = {"ETag": self.tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(b"", status_code=304, headers=headers, media_type=self.media_type)
        return Response(self.content, headers=headers, media_type=self.media_type)


def files() -> dict[str, File]:
    """The files of the page, by name."""
    home = resources.files(__package__) / "static"
    return {entry.name: File(entry.name, entry.read_bytes()) for entry in home.iterdir() if entry.is_file()}


def handlers() -> list[ControllerRouterHandler]:
    """Handlers of the page and of its static files; none of them holds data, and none asks for a token."""
    known = files()
    return [_index(known["index.html"]), _static(known), _reference()]


def _index(page: File) -> HTTPRouteHandler:
    @get("/", include_in_schema=False)
    async def index(request: Request[Any, Any, Any]) -> Response[bytes]:
        """The page."""
        return page.answer(request)

    return index


def _reference() -> HTTPRouteHandler:
    drawn: list[File] = []  # when it is first asked for: the document is that of all routes

    @get("/api", include_in_schema=False, sync_to_thread=True)
    def reference(request: Request[Any, Any, Any]) -> Response[bytes]:
        """The API, to read."""
        if not drawn:
            drawn.append(File("api.html", render(document(request.app), operations(request.app))))
        return drawn[0].answer(request)

    return reference


def _static(known: dict[str, File]) -> HTTPRouteHandler:
    @get("/static/{name:str}", include_in_schema=False)
    async def static(name: FromPath[str], request: Request[Any, Any, Any]) -> Response[bytes]:
        """A file that the page is made of."""
        # Names are looked up among files read at the start: none reaches the file system.
        if name not in known:
            raise NotFoundException
        return known[name].answer(request)

    return static
