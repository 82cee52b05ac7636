"""Load the service: many clients in parallel over loopback, for a bounded time.

    python scripts/bench_serve.py solutions/3x3 [--clients 64] [--seconds 30]

Boards come from random play. Each client holds one connection and asks a board at a time; one
request in a hundred is a batch of 100. Prints requests a second, latencies in milliseconds and the
memory of the service at the start, in the middle and at the end; exits with 1 after any error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from solver2048 import rules

SEED = 2048
MAX_SECONDS = 600

BOARD = b"GET /api/v1/board?b=%s HTTP/1.1\r\nHost: x\r\n\r\n"
BATCH = (b"POST /api/v1/boards HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
         b"Content-Length: %d\r\n\r\n%s")  # fmt: skip


def played_boards(num_rows: int, num_columns: int, count: int) -> list[str]:
    """Boards of random games, as text."""
    rng = random.Random(SEED)
    boards: list[str] = []
    while len(boards) < count:
        board: rules.Board | None = ((0,) * num_columns,) * num_rows
        board = spawn(spawn(board, rng), rng)
        while board is not None:
            boards.append("/".join(",".join(str(2**e if e else 0) for e in row) for row in board))
            moved = [found for action in ("up", "down", "left", "right")
                     if (found := rules.move(board, action))]  # fmt: skip
            board = spawn(rng.choice(moved)[0], rng) if moved else None
    return rng.sample(boards, count)


def spawn(board: rules.Board, rng: random.Random) -> rules.Board:
    return rng.choice(list(rules.spawns(board, 2 if rng.random() < 0.1 else 1)))


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def ask(reader, writer, request: bytes) -> int:
    """Status of the answer to a request, read to its end."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                  if line.startswith(b"content-length"))  # fmt: skip
    await reader.readexactly(length)
    return int(head.split(b" ", 2)[1])


async def client(number: int, place, boards: list[str], until: float, results: list) -> None:
    rng = random.Random(SEED + number)
    reader, writer = await asyncio.open_connection(*place, limit=1 << 20)
    while time.monotonic() < until:
        if rng.random() < 0.01:
            body = json.dumps({"boards": rng.sample(boards, 100)}).encode()
            request = BATCH % (len(body), body)
        else:
            request = BOARD % rng.choice(boards).encode()
        start = time.perf_counter()
        try:
            status = await asyncio.wait_for(ask(reader, writer, request), 30)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            results.append((time.perf_counter() - start, f"{type(error).__name__}"))
            return
        results.append((time.perf_counter() - start, status))
    writer.close()


async def load(place, pid: int, boards: list[str], clients: int, seconds: float):
    """(results, memory at the start, in the middle, at the end)."""
    results: list = []
    warm = asyncio.create_task(client(0, place, boards, time.monotonic() + 3, []))
    await warm
    memory = [resident_bytes(pid)]
    until = time.monotonic() + seconds
    tasks = [asyncio.create_task(client(i, place, boards, until, results)) for i in range(clients)]
    for _ in range(2):
        await asyncio.sleep(seconds / 2)
        memory.append(resident_bytes(pid))
    await asyncio.gather(*tasks)
    return results, memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30.0)
    options = parser.parse_args()
    seconds = min(options.seconds, MAX_SECONDS)
    command = [sys.executable, "-m", "solver2048", "serve", options.path, "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            address = json.loads(process.stdout.readline())["address"]
            place = ("127.0.0.1", int(address.rsplit(":", 1)[1].strip("/")))
            shape = json.loads((Path(options.path) / "solution.json").read_text())["shape"]
            boards = played_boards(*map(int, shape.split("x")), 20_000)
            run = load(place, process.pid, boards, options.clients, seconds)
            results, memory = asyncio.run(run)
        finally:
            process.terminate()
        code = process.wait(20)
    times = 1000 * np.array([elapsed for elapsed, _ in results])
    errors = [status for _, status in results if status != 200]
    p50, p99, top = np.percentile(times, [50, 99, 100])
    rate = len(results) / seconds
    print(f"{options.clients} clients, {seconds:g} s: {len(results):,} requests, {rate:,.0f}/s")
    print(f"{len(errors)} errors; ms: median {p50:.1f}, p99 {p99:.1f}, most {top:.1f}")
    megabytes = ", ".join(f"{number / 1e6:.1f}" for number in memory)
    print(f"memory of the service at the start, middle and end: {megabytes} MB; exit code {code}")
    sys.exit(bool(errors or code))


if __name__ == "__main__":
    main()
