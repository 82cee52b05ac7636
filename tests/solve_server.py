"""Solves in processes that tests may kill, without importing everything for each of them.

``python solve_server.py SHAPE BAND_SLOTS`` says "ready", then for every line
``PATH CHECKPOINT_SECONDS KILL_SECONDS`` the exit code of a solve, killed if it takes so long
(0: it is left alone).
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time

from solver2048 import SolveOptions, bands, solve


def main() -> None:
    shape, bands.BAND_SLOTS = sys.argv[1], int(sys.argv[2])
    with tempfile.TemporaryDirectory() as directory:
        solve(shape, directory)  # whatever is compiled is compiled now
    print("ready", flush=True)
    for line in iter(sys.stdin.readline, ""):
        path, checkpoint_seconds, kill_seconds = line.split()
        process = os.fork()
        if process == 0:
            code = 1
            try:
                solve(shape, path, SolveOptions(checkpoint_seconds=float(checkpoint_seconds)))
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
