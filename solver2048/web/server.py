"""The service on a socket, until it is told to stop."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Mapping

import uvicorn

from ..errors import UsageError
from .answers import ServedSolution
from .app import make_app

# Bounds on what clients can hold: connections at once, bytes of a request's head, seconds idle.
MAX_CONNECTIONS = 512
MAX_HEAD_BYTES = 16 * 1024
IDLE_SECONDS = 5
STOP_SECONDS = 5


def serve(
    served: Mapping[str, ServedSolution],
    host: str,
    port: int,
    announce: Callable[[str], None],
) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that are running then are still answered.

    announce : told the address once connections are accepted; port 0 is any free one
    """
    config = uvicorn.Config(
        make_app(served),
        http="h11",
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    with listen(host, port) as listener:
        announce(address(listener))
        # uvicorn raises the signal that stopped it again, once it has stopped: that is no error.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        uvicorn.Server(config).run(sockets=[listener])


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections. Raises UsageError."""
    try:
        family, _, _, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(place[:2], family=family, backlog=MAX_CONNECTIONS)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"cannot listen on {host}, port {port}: {reason}; choose others with --host and --port"
        ) from None


def address(listener: socket.socket) -> str:
    """The address to open in a browser."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
