"""The service: boards in, values out, and the page that asks it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .. import __version__
from .answers import Refusal, ServedSolution
from .bodies import MAX_BOARDS, MAX_BODY_BYTES, boards_of, named, read_json
from .page_files import file_routes

SECURITY_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}

# Values of a finished solution never change; another one may be served under its name tomorrow.
CACHED = "public, max-age=300"
HTTP_CODES = {404: "no_such_page", 405: "method_not_allowed"}


def make_app(served: Mapping[str, ServedSolution]) -> Starlette:
    """The service of some solutions, by name; the first is the default."""

    async def board(request: Request) -> Response:
        text = request.query_params.get("b")
        if text is None:
            raise Refusal(400, "no_board", "the parameter b must hold a board")
        solution = named(served, request.query_params.get("solution"))
        (answer,) = await solution.ask([text])
        if isinstance(answer, Refusal):
            raise answer
        return json_response(answer, caching=CACHED if solution.is_finished else "no-store")

    async def boards(request: Request) -> Response:
        document = await read_json(request)
        asked = boards_of(document)
        solution = named(served, document.get("solution"))
        results = await solution.ask(asked)
        bodies = [found.body if isinstance(found, Refusal) else found for found in results]
        return json_response({"solution": solution.name, "results": bodies})

    async def meta(request: Request) -> Response:
        return json_response({
            "version": __version__,
            "limits": {"boards": MAX_BOARDS, "body_bytes": MAX_BODY_BYTES},
            "solutions": [solution.meta for solution in served.values()],
        })  # fmt: skip

    async def healthz(request: Request) -> Response:
        return json_response({"status": "ok"})

    app = Starlette(
        routes=[
            Route("/api/v1/board", board),
            Route("/api/v1/boards", boards, methods=["POST"]),
            Route("/api/v1/meta", meta),
            Route("/healthz", healthz),
            *file_routes(),
        ],
        middleware=[Middleware(SecurityHeaders)],
        exception_handlers={Refusal: _refuse, HTTPException: _refuse_http},
    )
    app.router.redirect_slashes = False
    return app


def json_response(content: Any, status: int = 200, caching: str = "no-store") -> Response:
    """JSON in ASCII: whatever a message quotes can be sent."""
    body = json.dumps(content, allow_nan=False, separators=(",", ":"))
    headers = {"cache-control": caching}
    return Response(body, status, headers=headers, media_type="application/json")


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return json_response(error.body, error.status)


async def _refuse_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = HTTP_CODES.get(error.status_code, "bad_request")
    response = await _refuse(request, Refusal(error.status_code, code, error.detail))
    response.headers.update(error.headers or {})
    return response


class SecurityHeaders:
    """Adds the same headers to every response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        await self.app(scope, receive, send_with_headers)
