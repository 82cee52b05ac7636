"""The files of the page: a fixed table, read once, so that no request names a file."""

from __future__ import annotations

import hashlib
from importlib import resources

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
}

FILES = {
    "/": "index.html",
    "/api": "api.html",
    "/api/v1/openapi.json": "openapi.json",
    **{
        f"/static/{name}": name
        for name in ("page.css", "main.js", "rules.js", "game.js", "board_view.js",
                     "values_view.js", "editor.js", "service.js", "api.js", "icon.svg")
    },
}  # fmt: skip
"""What is served where."""


def file_routes() -> list[Route]:
    """A route for every file of the page."""
    folder = resources.files(__package__) / "files"
    return [_route(path, name, (folder / name).read_bytes()) for path, name in FILES.items()]


def _route(path: str, name: str, content: bytes) -> Route:
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    # Asked for again each time, answered in a few bytes: page and service always fit together.
    headers = {"etag": etag, "cache-control": "no-cache"}
    media_type = TYPES[name.rsplit(".", 1)[1]]

    async def answer(request: Request) -> Response:
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=media_type)

    return Route(path, answer, name=name)
