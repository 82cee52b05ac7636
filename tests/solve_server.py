"""Solves in processes that tests may kill, without importing everything for each of them.

``python solve_server.py SHAPE BAND_SLOTS [KEEP DISK]`` says "ready", then for every line
``PATH CHECKPOINT_SECONDS KILL_SECONDS`` the exit code of a solve, killed if it takes so long
(0: it is left alone). KEEP is what stays, and DISK a budget of disk space, where that is no sets.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from solver2048 import SolveOptions, bands, solve


class SolveServer:
    """Such a process, from outside."""

    def __init__(self, shape: str, band_slots: int, *mode: str | int) -> None:
        command = [sys.executable, __file__, shape, str(band_slots), *map(str, mode)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert self._line() == "ready"

    def close(self) -> None:
        self._process.communicate("")

    def _line(self) -> str:
        return self._process.stdout.readline().strip()

    def solve(self, path: Path, checkpoint_seconds: float, kill_after: float) -> int:
        """Exit code of a solve, killed after some seconds if it still runs; never after 0."""
        self._process.stdin.write(f"{path} {checkpoint_seconds} {kill_after}\n")
        return int(self._line())


def main() -> None:
    shape, bands.BAND_SLOTS = sys.argv[1], int(sys.argv[2])
    mode = SolveOptions(keep="solution")
    if len(sys.argv) > 3:
        mode = SolveOptions(keep=sys.argv[3], disk=int(sys.argv[4]))
    with tempfile.TemporaryDirectory() as directory:
        solve(shape, directory, mode)  # whatever is compiled is compiled now
    print("ready", flush=True)
    for line in iter(sys.stdin.readline, ""):
        path, checkpoint_seconds, kill_seconds = line.split()
        process = os.fork()
        if process == 0:
            code = 1
            try:
                options = dataclasses.replace(mode, checkpoint_seconds=float(checkpoint_seconds))
                solve(shape, path, options)
                code = 0
            finally:
                os._exit(code)
        if seconds := float(kill_seconds):
            time.sleep(seconds)
            # Its number stays its own until it is waited for, so this kills nothing else.
            os.kill(process, signal.SIGKILL)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
