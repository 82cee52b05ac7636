"""Solutions behind a URL: what is asked for, how much that is, and what goes wrong."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from datetime import timedelta

import numpy as np
import pytest
from conftest import run, scaled
from range_server import RangeServer

from solver2048 import SolveOptions, open_solution, remote, repair, solve
from solver2048.board import unpack_boards
from solver2048.errors import NoSolution, NotSolved, RemoteFailed, SolutionDamaged, UsageError
from solver2048.location import is_url
from solver2048.store import Store
from solver2048.verify import verify

BOARD = "2 . 4 / . . 2"


@pytest.fixture
def server(solved):
    with RangeServer(solved("2x3")) as found:
        yield found


@pytest.fixture
def harmed(solved, tmp_path):
    """A server of a copy that may be harmed."""
    with RangeServer(shutil.copytree(solved("2x3"), tmp_path / "s")) as found:
        yield found


@pytest.fixture
def impatient(monkeypatch):
    second = timedelta(seconds=1)
    limits = dict.fromkeys(("connect_timeout", "read_timeout", "timeout"), second)
    monkeypatch.setattr(remote, "CLIENT_OPTIONS", remote.CLIENT_OPTIONS | limits)
    monkeypatch.setattr(remote, "RETRY_CONFIG", {"max_retries": 0, "retry_timeout": second})


def random_state(solution, age: int, rng) -> list[list[int]]:
    stored = solution.sets.open(age, "states")
    member = stored.decode(int(start := rng.integers(len(stored))), int(start) + 1)
    codes = solution.sets.ids.boards(age, member)
    return unpack_boards(codes, solution.shape)[0].tolist()


@scaled(1000)
def test_requests_and_bytes_of_3x3(trials, solved, rng):
    """A first query, reachability included, and one more in the same layer."""
    path = solved("3x3")
    first, again = np.zeros((2, trials, 2), dtype=np.int64)
    with open_solution(path) as local, RangeServer(path) as server:
        counts = local.sets.counts()
        shares = np.array([c.states for c in counts], dtype=float)
        ages = rng.choice([c.age for c in counts], trials, p=shares / shares.sum())
        for number, age in enumerate(ages):
            board, other = (random_state(local, int(age), rng) for _ in range(2))
            with open_solution(server.url) as solution:
                assert solution.query(board) == local.query(board)
                first[number] = server.take()
                assert solution.query(other) == local.query(other)
                again[number] = server.take()
    for name, figures in (("first", first), ("again", again)):
        print(f"\n{name}: requests and bytes at most {figures.max(axis=0).tolist()}, "
              f"in the mean {figures.mean(axis=0).round(1).tolist()}")  # fmt: skip
    assert first.max(axis=0)[0] <= 8
    assert first.max(axis=0)[1] <= 1 << 20
    assert again.max(axis=0)[0] <= 4


def test_no_query_of_3x3_can_take_more(solved):
    """The chunks of every layer, and four of values, whatever board is asked for."""
    path = solved("3x3")
    catalogues = [*path.glob("sets/catalogue.zip"), *path.glob("values/score/catalogue.zip")]
    fixed = sum(file.stat().st_size for file in catalogues)
    with open_solution(path) as solution:
        store = solution.sets.store

        def sizes(kind, name):
            """Of the chunks of every layer, by age."""
            found = {}
            for band in solution.sets.bands:
                array = store.open_array(kind, band, name)
                for layer in store.manifest(kind, band)["layers"]:
                    start, stop = layer["values" if kind != "sets" else f"{name}_words"]
                    items = array._form.chunk_items
                    chunks = range(start // items, -(-stop // items))
                    found[layer["age"]] = [array._table.rows["length"][i] for i in chunks]
            return found

        sets = [sizes("sets", name) for name in ("states", "afterstates")]
        values = sizes("values/score", "afterstates")
    for age, of_values in values.items():
        of_sets = [chunk for of_set in sets for chunk in of_set[age]]
        assert len(of_sets) <= 4
        assert fixed + sum(of_sets) + sum(sorted(of_values)[-4:]) <= 1 << 20


def test_the_command_asks_a_url(server, solved):
    near = run("query", solved("2x3"), BOARD, "--json")
    far = run("query", server.url, BOARD, "--json")
    assert far.exit_code == 0, far.stderr
    assert far.stdout == near.stdout
    assert run("query", server.url, BOARD).stdout == run("query", solved("2x3"), BOARD).stdout
    assert json.loads(far.stdout)["age"] == 8
    counts = run("counts", server.url)
    assert counts.stdout == run("counts", solved("2x3")).stdout


def test_facts_of_a_solution_far_away(server, solved):
    with open_solution(server.url + "/") as far, open_solution(solved("2x3")) as near:
        assert far.meta == near.meta
        assert far.start_values == near.start_values
        assert far.sets.counts() == near.sets.counts()
        # One catalogue of sets, one of values.
        assert server.take()[0] == 2


def test_radix_ids_and_other_objectives(solved):
    path = solved("2x3", ids="radix")
    with RangeServer(path) as server, open_solution(server.url) as far, open_solution(path) as near:
        assert far.query(BOARD) == near.query(BOARD)
        with pytest.raises(NotSolved, match=r"values/tile-128/catalogue.zip is missing"):
            open_solution(server.url, "tile:128")


def test_a_policy_table_far_away(tmp_path):
    solve("2x3", tmp_path / "s", SolveOptions(keep="policy"))
    with RangeServer(tmp_path / "s") as server:
        with open_solution(server.url) as far, open_solution(tmp_path / "s") as near:
            assert far.best_action(BOARD) == near.best_action(BOARD)
        assert server.take()[0] <= 6


FAULTS = {
    "no ranges": "the server ignores ranges and would send whole files",
    "cut": "the answer was cut off",
    "wrong range": "the server sent another range than asked for",
    "loop": "too many redirects",
    "hang": "no answer in time",
    "403": "403 Forbidden",
    "401": "401 Unauthorized",
    "500": "500 Internal Server Error",
}


@pytest.mark.parametrize("only", ["sets/catalogue.zip", "/afterstates/c/0"])
@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault, only, server, impatient):
    server.fault, server.only = fault, only
    with pytest.raises(RemoteFailed) as error, open_solution(server.url) as solution:
        solution.query(BOARD)
    assert FAULTS[fault] in str(error.value)
    assert f"{only}: " in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.exit_code == 11


def test_a_server_without_ranges_sends_no_whole_file(tmp_path, impatient):
    with RangeServer(tmp_path) as server:
        (tmp_path / "sets").mkdir()
        (tmp_path / "sets/catalogue.zip").write_bytes(bytes(30_000_000))
        server.fault = "no ranges"
        with pytest.raises(RemoteFailed, match="ignores ranges"):
            open_solution(server.url)
        assert server.take()[1] < 10_000_000  # what the sockets hold at most


def test_redirects_are_followed(server):
    server.fault = "moved"
    with open_solution(server.url) as solution:
        assert solution.query(BOARD).age == 8


def test_no_solution_there(server, impatient):
    with pytest.raises(NoSolution, match=r"no solution at http://.*/nowhere"):
        open_solution(server.url + "/nowhere")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/s"
        with pytest.raises(RemoteFailed, match="no connection"):
            open_solution(url)
        result = run("query", url, BOARD)
        assert result.exit_code == 11
        assert result.stderr.count("\n") == 1
        assert "Traceback" not in result.output
    for url in ("gopher://x/y", "http://"):
        assert run("query", url, BOARD).exit_code == 2


def test_what_is_not_finished_cannot_be_read_from_afar(harmed, solved, tmp_path):
    (harmed.root / "values/score/catalogue.zip").unlink()
    with pytest.raises(NotSolved, match=r"score/catalogue.zip is missing"):
        open_solution(harmed.url)
    (harmed.root / "sets/catalogue.zip").unlink()
    with pytest.raises(NotSolved, match=r"catalogue.zip is missing"):
        open_solution(harmed.url)
    solve("2x2", tmp_path / "start", SolveOptions(keep="start"))
    with (
        RangeServer(tmp_path / "start") as server,
        pytest.raises(NotSolved, match="keeps only start values"),
    ):
        open_solution(server.url)


def test_damage_far_away_is_found(harmed, rng):
    for name in ("sets/*/states/c/0", "values/score/*/afterstates/c/0"):
        (path,) = harmed.root.glob(name)
        sound = path.read_bytes()
        path.write_bytes(sound[:100] + bytes([sound[100] ^ 1]) + sound[101:])
        with open_solution(harmed.url) as solution, pytest.raises(SolutionDamaged, match="crc32c"):
            solution.query(BOARD)
        path.write_bytes(sound + b"x")
        with (
            open_solution(harmed.url) as solution,
            pytest.raises(
                SolutionDamaged, match=f"has {len(sound) + 1} bytes, expected {len(sound)}"
            ),
        ):
            solution.query(BOARD)
        path.unlink()
        result = run("query", harmed.url, BOARD)
        assert result.exit_code == 8
        # What lies elsewhere cannot be repaired from here.
        assert result.stderr.rstrip().endswith("/c/0 is missing")
        path.write_bytes(sound)


def test_nothing_is_written_to_a_url(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in (("solve", "2x3", "--out"), ("repair",), ("verify",), ("checksums",),
                    ("status",)):  # fmt: skip
        result = run(*command, server.url)
        assert result.exit_code == 2, command
        assert "can only be asked" in result.stderr
    with pytest.raises(UsageError):
        solve("2x3", server.url)
    with pytest.raises(UsageError):
        repair.repair(server.url)
    with pytest.raises(UsageError):
        verify(Store(server.url))
    assert not list(tmp_path.iterdir())


def test_urls():
    for url in ("https://a.b/c", "s3://bucket/c", "GS://bucket"):
        assert is_url(url)
    for path in ("a/b", "/a//b", "a:b", "C:/a", "http:/a"):
        assert not is_url(path)
    assert str(Store("s3://bucket/x/").location) == "s3://bucket/x"


def test_without_obstore(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(UsageError, match=r"pip install 'solver2048\[remote\]'"):
        open_solution(server.url)
