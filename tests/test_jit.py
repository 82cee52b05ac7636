"""Compiled kernels are cached, and none outlives the sources that it was compiled from."""

from __future__ import annotations

import os
import subprocess
import sys

KERNEL = """
from elias_fano.jit import kernel
from .callee import STEP

@kernel
def add_step(pair):
    return pair.first + STEP
"""

PAIR = """
from typing import NamedTuple

class Pair(NamedTuple):
    first: int
"""


def test_a_changed_source_runs_no_stale_code(tmp_path):
    """A constant of another module changes, and a type that the kernel takes moves."""
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "work.py").write_text(KERNEL)

    def run(module: str) -> tuple[str, dict[str, int]]:
        code = f"from package.{module} import Pair; from package.work import add_step; "
        command = [sys.executable, "-c", f"{code}print(add_step(Pair(1)))"]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        found = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path
        )
        compiled = {path.name: path.stat().st_mtime_ns for path in package.rglob("*.nbc")}
        return found.stdout.strip(), compiled

    (package / "callee.py").write_text("STEP = 1\n")
    (package / "kinds.py").write_text(PAIR)
    answer, compiled = run("kinds")
    assert answer == "2"
    assert len(compiled) == 1
    assert run("kinds") == ("2", compiled)
    (package / "callee.py").write_text("STEP = 2\n")
    (package / "kinds.py").unlink()
    (package / "pairs.py").write_text(PAIR)
    assert run("pairs")[0] == "3"
