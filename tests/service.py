"""The service as a process of its own, and plain requests to it."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

JSON = {"Content-Type": "application/json"}


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json["error"]["code"]


class Service:
    """A running service."""

    def __init__(self, process: subprocess.Popen, address: str, solutions: list[str], log: Path):
        self.process = process
        self.address = address
        self.solutions = solutions
        self.log = log

    @property
    def place(self) -> tuple[str, int]:
        parts = urlsplit(self.address)
        return parts.hostname, parts.port

    def ask(self, path, method="GET", body=None, headers=None) -> Answer:
        connection = http.client.HTTPConnection(*self.place, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            names = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, names, response.read())
        finally:
            connection.close()

    def board(self, text, solution=None) -> Answer:
        named = f"&solution={quote(solution)}" if solution else ""
        return self.ask(f"/api/v1/board?b={quote(text)}{named}")

    def post(self, document, headers=None) -> Answer:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return self.ask("/api/v1/boards", "POST", body, JSON | (headers or {}))


@contextmanager
def running(log: Path, *paths):
    """A service of some solutions on any free port."""
    command = [sys.executable, "-m", "solver2048", "serve", "--port", "0", "--json"]
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*command, *map(str, paths)], stdout=subprocess.PIPE, stderr=errors, text=True
        )
        with process:
            try:
                line = process.stdout.readline()
                assert line, log.read_text()
                yield Service(process, log=log, **json.loads(line))
            finally:
                process.kill()
