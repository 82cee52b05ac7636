"""Requests, read within limits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request

from .answers import Refusal, ServedSolution

MAX_BODY_BYTES = 256 * 1024
MAX_BOARDS = 1000
BODY_SECONDS = 10.0


async def read_json(request: Request) -> Any:
    """The body of a request as JSON. Raises Refusal."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind != "application/json":
        raise Refusal(415, "not_json", "the body must be of type application/json")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await _read_body(request)
    except TimeoutError:
        raise Refusal(408, "too_slow", f"the body took more than {BODY_SECONDS:g} s") from None
    except ClientDisconnect:
        raise Refusal(400, "incomplete_body", "the body ended early") from None
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "malformed_json", f"the body is no JSON: {error}") from None


async def _read_body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise Refusal(413, "body_too_large", f"a body may have {MAX_BODY_BYTES} bytes")
    return bytes(body)


def boards_of(document: Any) -> list[Any]:
    """The boards of a batch. Raises Refusal."""
    boards = document.get("boards") if isinstance(document, dict) else None
    if not isinstance(boards, list):
        raise Refusal(400, "malformed_batch", 'the body must be {"boards": [...]}')
    if len(boards) > MAX_BOARDS:
        raise Refusal(413, "batch_too_large", f"{len(boards)} boards; {MAX_BOARDS} may be asked")
    return boards


def named(served: Mapping[str, ServedSolution], name: Any) -> ServedSolution:
    """The solution of a name, the first one if there is no name. Raises Refusal."""
    if name is None:
        return next(iter(served.values()))
    if not isinstance(name, str) or name not in served:
        there = ", ".join(served)
        raise Refusal(404, "unknown_solution", f"no solution of that name; there are: {there}")
    return served[name]
