"""Requests that make no sense: a refusal each, never a 500 and never a traceback."""

from __future__ import annotations

import json
import random
import socket

TRIALS = 2000
PATHS = ["/", "/api", "/api/v1/board", "/api/v1/boards", "/api/v1/meta", "/healthz",
         "/docs", "/static/main.js", "/static/", "/api/v1/", "/../..", "/%00", "*", "http://x/",
         "/\x80", "//", "/?", "/#"]  # fmt: skip
METHODS = ["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "X"]
CELLS = ["2", "4", "8", ".", "0", "_", "3", "-2", "2.0", "1e99", "9" * 400, "NaN", "٢",
         "\u200b", "'", '"', "2 2", "512", "1024", "{}", "null", "\x00", "\ud800",
         "😀", "<b>", "%", "+", "\\", "\r\n"]  # fmt: skip
HEADERS = ["Content-Type", "Content-Length", "Host", "Accept", "If-None-Match", "Transfer-Encoding",
           "Expect", "Range", "Connection", "X-" + "y" * 300, "Cookie", "Origin",
           "Upgrade"]  # fmt: skip
VALUES = ["application/json", "text/html", "0", "-1", "99999999999999999999", "chunked", "close",
          "*", "", "100-continue", "bytes=0-", "websocket", "x" * 5000, "é", '"',
          "application/json; charset=x"]  # fmt: skip
NAMED = [b"", b"&solution=2x4", b"&solution=2x3", b"&solution=%00", b"&b=2", b"&&=&"]
ENDINGS = [b"%", b"%g0", b"%ff%fe", b"%c3"]


def fuzzed_text(rng) -> str:
    """A board, or something like one."""
    width, height = rng.choice([(4, 2), (3, 2), (rng.randint(1, 5), rng.randint(0, 4))])
    cells = CELLS[:4] if rng.random() < 0.5 else CELLS
    rows = [[rng.choice(cells) for _ in range(width)] for _ in range(height)]
    if rng.random() < 0.3:
        return json.dumps(rows)
    return rng.choice(["/", "\n", " / "]).join(rng.choice([" ", ",", ""]).join(row) for row in rows)


def fuzzed_value(rng, depth=0):
    """Any JSON value, boards among them."""
    kind = rng.randrange(10)
    if kind < 4 or depth > 4:
        return fuzzed_text(rng)
    if kind < 6:
        return [fuzzed_value(rng, depth + 1) for _ in range(rng.randint(0, 4))]
    if kind == 6:
        return {fuzzed_text(rng): fuzzed_value(rng, depth + 1) for _ in range(rng.randint(0, 3))}
    return rng.choice([None, True, -1, 0, 2, 10**30, 2**63, 1.5, float("nan"), float("inf"), "2 2"])


def fuzzed_body(rng) -> bytes:
    kind = rng.randrange(8)
    if kind == 0:
        return rng.randbytes(rng.randint(0, 300))
    if kind == 1:
        return rng.choice([b"[", b'{"boards":[', b'{"a":', b"[[2,"]) * rng.randint(1, 20_000)
    if kind == 2:
        return b'{"boards":[' + b"9" * rng.randint(1, 6000) + b"]}"
    names = ["2x4", "2x3-tile-64", fuzzed_value(rng)]
    document = {"boards": fuzzed_value(rng), "solution": rng.choice(names)}
    body = json.dumps(document if kind < 7 else fuzzed_value(rng)).encode()
    return body if rng.random() < 0.9 else body[: rng.randint(0, len(body))]


def percent(rng, text: str) -> bytes:
    """Text in an address: escaped, or nearly so."""
    raw = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.1:
        return raw.replace(b" ", b"+")
    keep = b"0123456789./,_[]" if rng.random() < 0.5 else b""
    escaped = b"".join(bytes([c]) if c in keep else b"%%%02x" % c for c in raw)
    return escaped if rng.random() < 0.9 else escaped + rng.choice(ENDINGS)


def fuzzed_request(rng) -> bytes:
    """A request as bytes, most of them HTTP."""
    kind = rng.randrange(20)
    if kind == 0:
        return rng.randbytes(rng.randint(1, 200)) + b"\r\n\r\n"
    board = b"b=" + percent(rng, fuzzed_text(rng))
    named = rng.choice(NAMED)
    method, path = rng.choice(METHODS[:3]), "/api/v1/board"
    if kind < 6:
        method, path = rng.choice(METHODS), rng.choice(PATHS)
    body, headers = b"", [b"Host: x"]
    if kind >= 14:
        method, path, body = "POST", "/api/v1/boards", fuzzed_body(rng)
        headers += [b"Content-Type: application/json", b"Content-Length: %d" % len(body)]
    for _ in range(rng.choice([0, 0, 0, 1, 3])):
        name, value = rng.choice(HEADERS), rng.choice(VALUES)
        headers.append(f"{name}: {value}".encode())
    target = path.encode("latin-1") + (b"?" + board + named if rng.random() < 0.9 else b"")
    version = rng.choice([b"HTTP/1.1"] * 9 + [b"HTTP/1.0", b"HTTP/9.9", b""])
    head = b"%s %s %s\r\n%s\r\nConnection: close\r\n\r\n"
    return head % (method.encode(), target, version, b"\r\n".join(headers)) + body


def answer_to(place, request: bytes) -> bytes:
    """All that is answered before the connection ends."""
    answer = b""
    with socket.create_connection(place, timeout=60) as connection:
        try:
            connection.sendall(request)
            connection.settimeout(1)
            while piece := _received(connection):
                answer += piece
        except ConnectionError:  # refused before it was read to its end
            pass
    return answer


def _received(connection) -> bytes:
    try:
        return connection.recv(65536)
    except TimeoutError:  # it waits for more, and there is no more
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(60)
        return connection.recv(65536)


def test_fuzzed_requests(service):
    rng = random.Random(20480)
    statuses: dict[int, int] = {}
    for trial in range(TRIALS):
        request = fuzzed_request(rng)
        answer = answer_to(service.place, request)
        if not answer:
            continue
        status = int(answer.split(b" ", 2)[1])
        statuses[status] = statuses.get(status, 0) + 1
        assert status < 500, (trial, request[:400], answer[:400])
        assert b"Traceback" not in answer
        head, _, body = answer.partition(b"\r\n\r\n")
        if b"application/json" in head and body:
            json.loads(body)
    # Each kind of answer was met, so the requests went as deep as they should.
    assert {200, 400, 404, 405} <= set(statuses), statuses
    assert sum(statuses.values()) > 0.9 * TRIALS, statuses
    assert statuses[200] > 50, statuses
    log = service.log.read_text()
    assert "Traceback" not in log
    assert "Exception" not in log
    assert service.ask("/healthz").status == 200
