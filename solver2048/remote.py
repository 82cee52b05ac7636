"""A solution far away: files below a URL, read by ranges of bytes through obstore.

obstore reads http, https, S3 and other stores alike, checks the status and the range of an answer
before its body (so that a server that ignores ranges sends no whole file), and says how large the
file is by the answer itself. fsspec would take what comes, and a dozen packages with it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from .errors import RemoteFailed, SolutionDamaged, UsageError
from .location import Location

CLIENT_OPTIONS: dict[str, Any] = {
    "allow_http": True,
    "connect_timeout": timedelta(seconds=5),
    "read_timeout": timedelta(seconds=10),
    "timeout": timedelta(seconds=60),
}
RETRY_CONFIG: dict[str, Any] = {"max_retries": 2, "retry_timeout": timedelta(seconds=10)}
MAX_CONNECTIONS = 8

_CAUSES = (
    (r"kind: Timeout|operation timed out|TimedOut", "no answer in time"),
    (r"kind: Connect", "no connection"),
    (r"following redirect", "too many redirects"),
    (r"Range request not supported", "the server ignores ranges and would send whole files"),
    (r"Requested .*, got .*", "the server sent another range than asked for"),
    (r"[45]\d\d [A-Z][A-Za-z ]+", None),
    (r"end of file before message length|IncompleteMessage|decoding response body|request or "
     r"response body", "the answer was cut off"),
)  # fmt: skip
"""What an error of obstore is at heart; None: what was found says it."""


class RemoteLocation(Location):
    """The files below a URL. Raises UsageError for one that cannot be read, or without obstore."""

    needs_catalogues = True

    def __init__(self, url: str) -> None:
        try:
            import obstore
        except ImportError:
            raise UsageError(
                f"to read {url} needs obstore: python -m pip install 'solver2048[remote]'"
            ) from None
        self._url = url.rstrip("/")
        try:
            connect: Any = obstore.store.from_url
            self._store: Any = connect(
                self._url, client_options=CLIENT_OPTIONS, retry_config=RETRY_CONFIG
            )
        except (obstore.exceptions.BaseError, ValueError) as error:
            raise UsageError(f"{url} cannot be read: {_first_line(error)}") from None

    def __str__(self) -> str:
        return self._url

    def shown(self, name: str) -> str:
        return f"{self._url}/{name}"

    def read(self, name: str) -> bytes | None:
        found = self._get(name, {})
        return None if found is None else found[0]

    def read_tail(self, name: str, num_bytes: int) -> tuple[bytes, int] | None:
        return self._get(name, {"range": {"suffix": num_bytes}})

    def read_ranges(self, name: str, size: int, ranges: list[tuple[int, int]]) -> list[bytes]:
        if len(ranges) == 1:
            return [self._read_range(name, size, ranges[0])]
        with ThreadPoolExecutor(min(len(ranges), MAX_CONNECTIONS)) as pool:
            return list(pool.map(lambda part: self._read_range(name, size, part), ranges))

    def _read_range(self, name: str, size: int, part: tuple[int, int]) -> bytes:
        found = self._get(name, {"range": part})
        if found is None:
            raise SolutionDamaged(f"{self.shown(name)} is missing")
        if found[1] != size:
            raise SolutionDamaged(f"{self.shown(name)} has {found[1]} bytes, expected {size}")
        return found[0]

    def _get(self, name: str, options: dict[str, Any]) -> tuple[bytes, int] | None:
        """The bytes of an answer and the size of the file; None if it is not there."""
        import obstore

        with self._failures(name):
            try:
                answer = obstore.get(self._store, name, options=options)  # type: ignore[arg-type]
            except FileNotFoundError:
                return None
            start, stop = answer.range
            data = bytes(answer.bytes())
            if len(data) != stop - start:
                raise RemoteFailed(f"{self.shown(name)}: the answer was cut off")
            return data, int(answer.meta["size"])

    @contextlib.contextmanager
    def _failures(self, name: str) -> Iterator[None]:
        """Raise RemoteFailed for whatever goes wrong."""
        from obstore.exceptions import BaseError

        try:
            yield
        # Not all that the library raises is of its own kind.
        except (BaseError, OSError) as error:
            raise RemoteFailed(f"{self.shown(name)}: {_cause(error)}") from None


def _cause(error: Exception) -> str:
    text = str(error)
    for pattern, words in _CAUSES:
        if found := re.search(pattern, text):
            return words or found.group()
    return _first_line(error)


def _first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0]
