"""A static file server on loopback that honours ranges, counts, and misbehaves on request."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class RangeServer:
    """Serves the files below a directory, for a `with` block.

    requests : (path, first byte, stop) of every answer; num_bytes : of all bodies
    fault : how to misbehave from now on, "" not at all: "no ranges", "cut", "hang", "wrong range",
        "loop", "moved", or an HTTP status
    only : whose paths end so misbehave
    """

    root: Path
    requests: list[tuple[str, int, int]] = field(default_factory=list)
    num_bytes: int = 0
    fault: str = ""
    only: str = ""

    def __enter__(self) -> RangeServer:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                server.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._lock = threading.Lock()
        self._is_closing = threading.Event()
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closing.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def take(self) -> tuple[int, int]:
        """Requests and bytes since the last call."""
        with self._lock:
            taken = len(self.requests), self.num_bytes
            self.requests, self.num_bytes = [], 0
        return taken

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        fault = self.fault if handler.path.endswith(self.only) else ""
        if fault == "hang":
            self._is_closing.wait(20)
            return
        if fault == "loop" or (fault == "moved" and not handler.path.startswith("/moved")):
            self._send(handler, 302, b"", {"Location": f"/moved{handler.path}"})
            return
        file = self.root / handler.path.removeprefix("/moved").lstrip("/")
        if fault.isdigit() or not file.is_file():
            self._send(handler, int(fault or 404), b"not for you")
            return
        data = file.read_bytes()
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", handler.headers.get("Range", ""))
        if asked is None or fault == "no ranges":
            with self._lock:
                self.requests.append((handler.path, 0, len(data)))
            self._send(handler, 200, data)
            return
        first, last = asked.groups()
        start = int(first) if first else max(len(data) - int(last), 0)
        stop = min(int(last) + 1, len(data)) if first and last else len(data)
        shown = start + (fault == "wrong range")
        with self._lock:
            self.requests.append((handler.path, start, stop))
        self._send(handler, 206, data[start:stop],
                   {"Content-Range": f"bytes {shown}-{stop - 1}/{len(data)}"},
                   is_cut=fault == "cut")  # fmt: skip

    def _send(self, handler: BaseHTTPRequestHandler, status: int, body: bytes,
              headers: dict[str, str] | None = None, *, is_cut: bool = False) -> None:  # fmt: skip
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            handler.send_header(name, value)
        handler.send_header("Last-Modified", handler.date_time_string(0))
        handler.end_headers()
        if is_cut:
            body = body[: len(body) // 2]
            handler.close_connection = True
        # In pieces: who reads no further than the headers is not sent the rest.
        for start in range(0, len(body), 1 << 14):
            try:
                handler.wfile.write(body[start : start + (1 << 14)])
            except OSError:
                break
            with self._lock:
                self.num_bytes += len(body[start : start + (1 << 14)])
            if status == 200:
                time.sleep(0.001)
