"""What a solve of many days must survive: kills, failing writes, damage, another solve.

A tenth of the numbers by default; `pytest -m full` for all of them.
"""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import naive
import numpy as np
import pytest
from click.testing import CliRunner
from conftest import faces, scaled, solution_bytes, wait_for
from damage import Faults, Reads, flip_bit, solution_files, swap_chunks, swap_files
from solve_server import SolveServer

from solver2048 import SolveOptions, bands, descent, open_solution, solve
from solver2048.cli import main
from solver2048.errors import SolutionDamaged, SolutionInUse, SolverError
from solver2048.lock import DirectoryLock
from solver2048.records import Records
from solver2048.shape import SHAPES
from solver2048.store import Store
from solver2048.verify import verify

# --- kills ------------------------------------------------------------------------------------

KILL_SHAPE, KILL_BAND_SLOTS = "2x3", 3000


def done_bands(path: Path) -> dict[str, tuple[int, int]]:
    """The bands that are published, each with what would change if it were written again."""
    found = {}
    for manifest in [*path.glob("sets/*/manifest.json"), *path.glob("values/*/*/manifest.json")]:
        for file in manifest.parent.rglob("*"):
            status = file.stat()
            found[file.relative_to(path).as_posix()] = (status.st_ino, status.st_mtime_ns)
    return found


@scaled(200)
def test_kills(trials, tmp_path, rng):
    server = SolveServer(KILL_SHAPE, KILL_BAND_SLOTS)
    try:
        assert server.solve(tmp_path / "whole", 1e9, 0) == 0
        run = Records(tmp_path / "whole").read_run()
        seconds = run["forward_seconds"] + run["score_backward_seconds"]
        whole = solution_bytes(tmp_path / "whole")
        assert len(list((tmp_path / "whole/sets").glob("0*"))) > 10
        kills = finished = 0
        while kills < trials:
            path = tmp_path / str(finished)
            published: dict[str, tuple[int, int]] = {}
            while True:
                after = float(rng.uniform(0, seconds))
                code = server.solve(path, float(rng.choice([0.0, 1e9])), after)
                now = done_bands(path)
                assert {name: now.get(name) for name in published} == published
                published = now
                if code == 0:
                    break
                assert code == -signal.SIGKILL
                kills += 1
            assert solution_bytes(path) == whole
            shutil.rmtree(path)
            finished += 1
        print(f"\n{kills} kills, {finished} solves finished, 0 bands written again")
    finally:
        server.close()


def test_a_resumed_pass_starts_from_its_checkpoint(tmp_path, monkeypatch, small_parts):
    """What is done again is what came after the checkpoint, made every few minutes."""
    assert SolveOptions().checkpoint_seconds <= 300
    all_bands = bands.bands_of(SHAPES["2x3"])
    write_band = Store.write_band

    def stop_at_band_1(self, kind, band, *rest):
        if kind == "values/score" and band == all_bands[1]:
            raise KeyboardInterrupt
        write_band(self, kind, band, *rest)

    monkeypatch.setattr(Store, "write_band", stop_at_band_1)
    options = SolveOptions(checkpoint_seconds=0.0)
    with pytest.raises(KeyboardInterrupt):
        solve("2x3", tmp_path, options)
    monkeypatch.undo()
    valued = []
    value_layer = descent.value_layer

    def counted(problem, age, *rest):
        valued.append(age)
        return value_layer(problem, age, *rest)

    monkeypatch.setattr(descent, "value_layer", counted)
    solve("2x3", tmp_path, options)
    assert valued == list(range(all_bands[1].last, 2, -2))


# --- failing system calls ---------------------------------------------------------------------


@pytest.mark.parametrize("step", [10, pytest.param(1, marks=pytest.mark.full)])
def test_failing_writes(step, tmp_path, monkeypatch, small_parts):
    """The n-th write, fsync or rename fails, for every n of a tiny solve."""
    monkeypatch.setattr(bands, "BAND_SLOTS", 120)
    bands.bands_of.cache_clear()
    options = SolveOptions(threads=1, checkpoint_seconds=0.0)
    solve("2x2", tmp_path / "first", options)  # so that no compiled kernel is written below
    faults = Faults(monkeypatch)
    solve("2x2", tmp_path / "whole", options)
    num_calls = faults.count
    whole = solution_bytes(tmp_path / "whole")
    assert len(list((tmp_path / "whole/sets").glob("0*"))) >= 3
    assert num_calls > 150
    codes = (errno.ENOSPC, errno.EIO)
    trials = [(n, code) for n in range(0, num_calls, step) for code in codes[: 1 + (step == 1)]]
    stopped = 0
    for number, code in trials:
        path = tmp_path / f"{number}-{code}"
        faults.start(number, code)
        error = error_of(lambda path=path: solve("2x2", path, options))
        assert faults.count > number
        faults.start(-1, 0)
        if error is not None:
            stopped += 1
            assert error.exit_code == 9
            assert os.strerror(code) in str(error)
        if (path / "solution.json").exists():
            problems = verify(Store(path), level="full").problems
            assert not [problem for problem in problems if not is_late_catalogue(problem)]
        solve("2x2", path, options)
        assert solution_bytes(path) == whole
        shutil.rmtree(path)
    bands.bands_of.cache_clear()
    # Some calls are of files that nothing depends on, such as who holds the lock.
    assert stopped > 0.9 * len(trials)
    print(f"\n{len(trials)} failures of {num_calls} calls, {stopped} ended the solve, 0 damaged")


def error_of(call) -> SolverError | None:
    try:
        call()
    except SolverError as error:
        return error
    return None


def is_late_catalogue(problem) -> bool:
    """A catalogue that the run did not come to any more."""
    return problem.subject.endswith("catalogue.zip") and "is missing" in str(problem.error)


def test_a_failing_write_has_its_exit_code(tmp_path, monkeypatch):
    Faults(monkeypatch).start(40, errno.ENOSPC)
    result = CliRunner().invoke(main, ["solve", "2x2", "--out", str(tmp_path / "s")])
    assert result.exit_code == 9
    assert "No space left on device" in result.stderr
    assert "safe" in result.stderr
    assert "Traceback" not in result.output


# --- damage -----------------------------------------------------------------------------------


class Sound:
    """A sound solution, a copy to harm, and for some boards their values and what they read."""

    def __init__(self, directory: Path) -> None:
        self.origin, self.path = directory / "origin", directory / "harmed"
        solve("2x3", self.origin)
        solve("2x3", directory / "other", SolveOptions(spawn4=0.3))
        self.other = directory / "other"
        shutil.copytree(self.origin, self.path)
        self.files = [file.relative_to(self.path) for file in solution_files(self.path)]
        self.boards = self._some_boards()
        self.values: dict[str, float] = {}
        self.reads: dict[str, list[tuple[Path, int, int]]] = {}
        with pytest.MonkeyPatch.context() as patch:
            reads = Reads(patch)
            for board in self.boards:
                with open_solution(self.path) as solution:
                    self.values[board] = solution.value(board)
                self.reads[board] = reads.take()

    def _some_boards(self) -> list[str]:
        """Two states of every fifth age or so."""
        rng = np.random.default_rng(0)
        states = naive.NaiveSolution(2, 3).states
        chosen = []
        for age in sorted(states)[:120:4]:
            layer = sorted(states[age])
            for i in rng.choice(len(layer), min(2, len(layer)), replace=False):
                tiles = faces(layer[i])
                chosen.append(" ".join(map(str, tiles[:3])) + " / " + " ".join(map(str, tiles[3:])))
        return chosen

    def touching(self, file: Path, start: int, stop: int) -> list[str]:
        """The boards whose queries read some of these bytes."""
        path = self.path / file
        return [
            board
            for board, ranges in self.reads.items()
            if any(p == path and a < stop and b > start for p, a, b in ranges)
        ]

    def harmed(self, file: Path) -> list[str]:
        """The boards whose queries read bytes of a file that has changed."""
        now, before = (path.read_bytes() for path in (self.path / file, self.origin / file))
        if len(now) != len(before):
            return self.touching(file, 0, 1 << 40)
        return [
            board
            for board, ranges in self.reads.items()
            if any(p == self.path / file and now[a:b] != before[a:b] for p, a, b in ranges)
        ]

    def differs(self, file: Path) -> bool:
        return (self.path / file).read_bytes() != (self.origin / file).read_bytes()

    def restore(self, *files: Path) -> None:
        for file in files:
            (self.path / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.origin / file, self.path / file)

    def check_harm(self, files: list[Path], touching: list[str], rng) -> None:
        """`verify` names one of the files, queries that touch them err, and none is wrong."""
        findings = verify(Store(self.path), level="full")
        names = [file.as_posix() for file in files]
        assert findings.problems, names
        text = "\n".join(map(str, findings.errors))
        assert any(name in text for name in names), (names, text)
        some = list(rng.choice(touching, min(4, len(touching)), replace=False)) if touching else []
        for board in some:
            with pytest.raises(SolutionDamaged), open_solution(self.path) as solution:
                solution.value(board)
        for board in rng.choice(self.boards, 3, replace=False):
            try:
                with open_solution(self.path) as solution:
                    assert solution.value(board) == self.values[board]
            except SolverError:
                pass


@pytest.fixture(scope="module")
def sound(tmp_path_factory, small_parts):
    made = Sound(tmp_path_factory.mktemp("sound"))
    assert len(list((made.origin / "sets").glob("0*"))) >= 4
    assert sum(is_chunk_file(file) and file.name != "0" for file in made.files) > 5
    return made


def is_chunk_file(file: Path) -> bool:
    return file.parts[-2:-1] == ("c",)


@scaled(2000)
def test_flipped_bits(trials, sound, rng):
    touched = 0
    for number in range(trials):
        # Half of them in chunks, half in all the rest.
        candidates = [file for file in sound.files if is_chunk_file(file) == (number % 2 == 0)]
        file = candidates[rng.integers(len(candidates))]
        position = flip_bit(sound.path / file, rng)
        touching = sound.touching(file, position, position + 1)
        touched += bool(touching)
        sound.check_harm([file], touching, rng)
        sound.restore(file)
    assert touched > trials // 4
    assert not verify(Store(sound.path), level="full").problems
    print(f"\n{trials} flips, all named; {touched} touched by a query, which erred")


@scaled(300)
def test_truncations(trials, sound, rng):
    for _ in range(trials):
        file = sound.files[rng.integers(len(sound.files))]
        data = (sound.path / file).read_bytes()
        (sound.path / file).write_bytes(data[: rng.integers(len(data))])
        sound.check_harm([file], sound.touching(file, 0, len(data)), rng)
        sound.restore(file)
    assert not verify(Store(sound.path), level="full").problems


@scaled(100)
def test_deletions(trials, sound, rng):
    """Of files and of whole bands."""
    band_directories = sorted({file.parents[-4] for file in sound.files if len(file.parts) > 4})
    assert len(band_directories) >= 4
    for number in range(trials):
        if number % 5 == 0:
            directory = band_directories[rng.integers(len(band_directories))]
            files = [file for file in sound.files if directory in file.parents]
            shutil.rmtree(sound.path / directory)
            named = [directory]
        else:
            files = named = [sound.files[rng.integers(len(sound.files))]]
            (sound.path / files[0]).unlink()
        if files[0].name == "solution.json":
            with pytest.raises(SolverError, match="no solution at"):
                open_solution(sound.path)
        else:
            touching = [b for file in files for b in sound.touching(file, 0, 1 << 40)]
            sound.check_harm(named, sorted(set(touching)), rng)
        sound.restore(*files)
    assert not verify(Store(sound.path), level="full").problems


@scaled(100)
def test_swaps(trials, sound, rng):
    """Valid files and chunks in the wrong place, some of another solution."""
    chunk_files = [file for file in sound.files if is_chunk_file(file)]
    num_harmed = 0
    for number in itertools.count():
        if num_harmed == trials:
            break
        how = number % 4
        if how == 0:  # two chunks of a shard
            file = chunk_files[rng.integers(len(chunk_files))]
            before = (sound.path / file).read_bytes()
            swap_chunks(sound.path / file, 4, rng)
            assert (sound.path / file).read_bytes() != before
            files = [file]
        elif how == 1:  # two shards of an array, or of two
            files = [chunk_files[i] for i in rng.choice(len(chunk_files), 2, replace=False)]
            swap_files(*(sound.path / file for file in files))
        elif how == 2:  # two files of the same name
            name = str(rng.choice(["manifest.json", "chunks", "zarr.json", "catalogue.zip"]))
            same = [file for file in sound.files if file.name == name]
            files = [same[i] for i in rng.choice(len(same), 2, replace=False)]
            swap_files(*(sound.path / file for file in files))
        else:  # a file of another solution
            files = [sound.files[rng.integers(len(sound.files))]]
            shutil.copyfile(sound.other / files[0], sound.path / files[0])
        harmed = [file for file in files if sound.differs(file)]
        if harmed:  # two files may well be the same, and then nothing has changed
            num_harmed += 1
            touching = {board for file in harmed for board in sound.harmed(file)}
            sound.check_harm(harmed, sorted(touching), rng)
        sound.restore(*files)
    assert not verify(Store(sound.path), level="full").problems


# --- two solves -------------------------------------------------------------------------------


@scaled(50)
def test_two_solves_at_once(trials, tmp_path):
    """Started together: one runs, the other is gone, how soon is printed, with its exit code."""
    slowest = 0.0
    for number in range(trials):
        path = tmp_path / str(number)
        command = [sys.executable, "-m", "solver2048", "solve", "3x3", "--out", str(path)]
        start = time.monotonic()
        pair = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        try:
            wait_for(lambda pair=pair: any(process.poll() is not None for process in pair))
            slowest = max(slowest, time.monotonic() - start)
            loser, winner = sorted(pair, key=lambda process: process.poll() is None)
            assert loser.returncode == 7
            assert f"in use by process {winner.pid} since" in loser.stderr.read()
            assert winner.poll() is None
        finally:
            for process in pair:
                process.kill()
                process.wait()
                process.stderr.close()
    print(f"\n{trials} pairs, the slower was gone after at most {slowest:.2f} s")


def test_two_threads_exclude_each_other(tmp_path):
    with DirectoryLock(tmp_path) as lock, lock:
        with pytest.raises(SolutionInUse, match="nothing changed"):
            solve("2x2", tmp_path)
        assert solve("2x2", tmp_path, lock=lock)
    assert not solve("2x2", tmp_path)


# --- identity ---------------------------------------------------------------------------------


def test_a_band_of_another_solution_is_refused(sound):
    """Its bytes are the same, but its manifest says whose it is."""
    band = sorted(p.name for p in (sound.origin / "sets").glob("0*"))[1]
    manifest = Path("sets") / band / "manifest.json"
    without_catalogue = Path("sets/catalogue.zip")
    (sound.path / without_catalogue).unlink()
    shutil.copyfile(sound.other / manifest, sound.path / manifest)
    with pytest.raises(SolutionDamaged, match=f"{band}/manifest.json is of another solution"):
        open_solution(sound.path).query(sound.boards[0])
    sound.restore(manifest, without_catalogue)
    identities = {
        Records(path).kind_identity("values/score") for path in (sound.origin, sound.other)
    }
    assert len(identities) == 2


def test_a_published_band_is_never_written_again(sound):
    band = bands.bands_of(SHAPES["2x3"])[1]
    with pytest.raises(ValueError, match="is done"):
        Store(sound.path).write_band("sets", band, {}, {})


def test_the_bands_are_a_function_of_the_shape(sound):
    found = sorted(p.name for p in (sound.origin / "sets").glob("0*"))
    assert found == [band.name for band in bands.bands_of(SHAPES["2x3"])]
    ages = [age for name in found for age in range(int(name[:5]), int(name[6:]) + 1, 2)]
    assert ages == list(range(4, SHAPES["2x3"].top_age + 1, 2))
