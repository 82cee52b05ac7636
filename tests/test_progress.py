"""progress.jsonl and those who watch it: from outside, over restarts, no part of the solution."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner
from conftest import wait_for

from solver2048 import SolveOptions, progress_log, solve
from solver2048.cli import main
from solver2048.lock import DirectoryLock, running_process
from solver2048.progress_log import NAME, ProgressLog, last_line
from solver2048.store import Store
from solver2048.verify import verify
from solver2048.watch import format_progress, running_progress


def lines_of(path):
    return [json.loads(line) for line in (path / NAME).read_text().splitlines()]


def test_lines_of_a_solve(tmp_path, monkeypatch):
    monkeypatch.setattr(progress_log, "LINE_SECONDS", 0.0)
    path = tmp_path / "s"
    solve("2x3", path)
    lines = lines_of(path)
    assert [line["event"] for line in lines[:2]] == ["start", "progress"]
    assert (lines[-1]["event"], lines[-1]["outcome"]) == ("end", "done")
    assert [line["age"] for line in lines if line.get("pass") == "forward"][:2] == [4, 6]
    assert lines[-1]["age"] == 4
    fractions = [line["fraction"] for line in lines if line["event"] == "progress"]
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1)
    for line in lines:
        assert line["memory_bytes"] > 0
        assert line["process"] == os.getpid()
        assert line["forecast_seconds"].keys() == {"forward", "backward"}
    assert lines[-1]["disk_bytes"] > 0
    # No part of the solution: neither in its checksums nor unknown to verify.
    assert NAME not in {name for _, name in Store(path).checksums()}
    assert not verify(Store(path)).problems


def test_lines_are_about_a_second_apart(tmp_path):
    solve("2x4", tmp_path / "s")
    lines = lines_of(tmp_path / "s")
    assert len(lines) < 200
    assert len(lines) < 509


def test_half_a_line_is_passed_over(tmp_path):
    assert last_line(tmp_path) is None
    (tmp_path / NAME).write_bytes(b'{"event": "start", "process": 1}\n[]\n{"event": "pro')
    assert last_line(tmp_path) == {"event": "start", "process": 1}


def test_the_time_left_survives_a_restart(tmp_path, monkeypatch):
    monkeypatch.setattr(progress_log, "LINE_SECONDS", 0.0)
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    forecast = {"forward": 100.0, "backward": 200.0}

    def advance(log, seconds, count=1):
        for _ in range(count):
            clock[0] += seconds
            log.advance(4, 10.0, 1)

    with ProgressLog(tmp_path, forecast) as log:
        log.begin("forward", 1000.0, 1000.0)
        advance(log, 77.0)  # whatever is compiled
        advance(log, 3.0, 49)  # three times the forecast
    first = last_line(tmp_path)
    assert first["pass_fraction"] == pytest.approx(0.5)
    assert first["eta_seconds"] == pytest.approx(3 * (50 + 200))
    with ProgressLog(tmp_path, forecast) as log:
        log.begin("forward", 500.0, 1000.0)
        advance(log, 500.0)
        second = last_line(tmp_path)
        assert second["eta_seconds"] == pytest.approx(3 * (49 + 200))
        assert second["spent_seconds"]["forward"] == pytest.approx(77 + 3 * 49 + 500)
        # A machine that got faster is believed after a while.
        advance(log, 1.0, 48)
    assert last_line(tmp_path)["eta_seconds"] < 2.5 * (1 + 200)


def test_an_error_ends_the_log(tmp_path):
    with pytest.raises(KeyboardInterrupt), ProgressLog(tmp_path, {"forward": 1.0}):
        raise KeyboardInterrupt
    assert last_line(tmp_path)["outcome"] == "KeyboardInterrupt"


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path):
    (tmp_path / "s").mkdir()
    solve("2x2", tmp_path / "s", SolveOptions(max_age=20))
    (tmp_path / "s" / NAME).unlink()
    (tmp_path / "s" / NAME).mkdir()
    assert solve("2x2", tmp_path / "s")


def test_who_holds_the_lock(tmp_path):
    assert running_process(tmp_path) is None
    with DirectoryLock(tmp_path):
        assert running_process(tmp_path) == os.getpid()
        assert running_progress(tmp_path) == {"event": "starting", "process": os.getpid()}
        assert "starting" in format_progress(running_progress(tmp_path))
    assert running_process(tmp_path) is None
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (tmp_path / "lock").write_text(f"process {dead.pid} since long")
    assert running_process(tmp_path) is None


@pytest.fixture
def running(tmp_path):
    """A solve in a process of its own that has got somewhere."""
    path = tmp_path / "s"
    command = [sys.executable, "-m", "solver2048", "solve", "4x3", "--max-age", "600"]
    command += ["--threads", "1", "--quiet", "--out", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_for(lambda: "pass" in (last_line(path) or {}))
        yield path, process
        process.kill()


def test_status_of_a_running_solve(running):
    path, process = running
    result = CliRunner().invoke(main, ["status", str(path), "--json"])
    progress = json.loads(result.stdout)["progress"]
    assert (progress["process"], progress["pass"]) == (process.pid, "forward")
    result = CliRunner().invoke(main, ["status", str(path), "--watch"])
    assert f"Running: process {process.pid}, forward pass at age" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    # A terminal sees it until it ends.
    inner, outer = pty.openpty()
    command = [sys.executable, "-m", "solver2048", "status", str(path), "--watch"]
    with subprocess.Popen([*command, "--interval", "0.1"], stdout=outer) as watching:
        os.close(outer)
        seen = b""
        while seen.count(b"Running") < 3:
            seen += os.read(inner, 4096)
        assert watching.poll() is None
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=300)
        try:
            while piece := os.read(inner, 4096):
                seen += piece
        except OSError:  # how a terminal ends on Linux
            pass
        assert watching.wait(timeout=300) == 0
    os.close(inner)
    assert b"Forward pass: enumerated to age" in seen
    assert last_line(path)["outcome"] == "KeyboardInterrupt"
    assert "progress" not in json.loads(
        CliRunner().invoke(main, ["status", str(path), "--json"]).stdout
    )
