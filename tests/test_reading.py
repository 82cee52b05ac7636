"""Opening reads little, whatever the size; caches and open files are bounded; threads agree."""

from __future__ import annotations

import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from solver2048 import band_reader, open_solution, solve
from solver2048.bands import bands_of, slots_per_age
from solver2048.board import unpack_boards
from solver2048.cache import Cache
from solver2048.catalogue import Catalogue, read_catalogue, write_catalogue
from solver2048.errors import SolutionDamaged
from solver2048.files import Directory, dump_record
from solver2048.layer import LayerCounts
from solver2048.layer_sets import LayerSets
from solver2048.shape import SHAPES
from solver2048.store import Store


@pytest.fixture(scope="module")
def parts(tmp_path_factory, small_parts):
    """A 2x3 solution in many bands and chunks."""
    path = tmp_path_factory.mktemp("parts") / "s"
    solve("2x3", path)
    return path


def some_boards(solution, count: int, rng) -> list:
    """States of all ages alike."""
    boards = []
    for age in rng.choice(np.arange(4, solution.shape.top_age, 2), count):
        stored = solution.sets.open(int(age), "states")
        if len(stored):
            member = stored.decode(0, len(stored))[rng.integers(len(stored), size=1)]
            codes = solution.sets.ids.boards(int(age), member)
            boards.append(unpack_boards(codes, solution.shape)[0])
    return boards


class Bytes:
    """Counts what is read of a directory's files."""

    def __init__(self, monkeypatch) -> None:
        self.count = 0
        for name in ("read", "read_tail", "read_ranges"):
            monkeypatch.setattr(Directory, name, self._counting(getattr(Directory, name)))

    def _counting(self, read):
        def counted(*arguments):
            found = read(*arguments)
            pieces = found if isinstance(found, list) else [found]
            for piece in pieces:
                self.count += len(piece[0] if isinstance(piece, tuple) else piece or b"")
            return found

        return counted


def test_opening_4x3_reads_kilobytes(tmp_path, monkeypatch):
    """The catalogue of a complete 4x3, with what manifests hold at the least."""
    shape = SHAPES["4x3"]
    store = Store(tmp_path)
    store.create({"shape": "4x3", "rules": "2048", "spawn4": 0.1, "ids": "index"})
    identity = store.identity()["identity"]
    slots = slots_per_age(shape)
    fields = [name for name in LayerCounts.__dataclass_fields__ if name != "age"]
    (tmp_path / "sets").mkdir()

    def members():
        for band in bands_of(shape):
            layers = [
                {"age": age, **dict.fromkeys(fields, int(slots[age // 2]))} for age in band.ages
            ]
            manifest = {"kind": "sets", "band": [band.first, band.last], "identity": identity}
            manifest |= {"layers": layers, "files": {}, "chunks": {}}
            for array in ("afterstates", "chunks", "manifest.json", "states", "zarr.json"):
                data = dump_record(manifest) if array == "manifest.json" else bytes(100)
                name = f"{array}/zarr.json" if array.endswith("states") else array
                yield f"{band.name}/{name}", data
        yield "solution.json", (tmp_path / "solution.json").read_bytes()

    path = tmp_path / "sets/catalogue.zip"
    write_catalogue(path, members())
    assert path.stat().st_size > 5e6
    read = Bytes(monkeypatch)
    sets = LayerSets(Store(tmp_path))
    assert sets.max_age == shape.top_age
    assert not sets.gaps
    for age in (4, 300, 9568, shape.top_age):
        assert sets.layer_counts(age).num_slots == slots[age // 2]
    assert read.count < 150_000
    assert len(sets.bands) == len(bands_of(shape)) > 5000


def test_a_query_reads_its_band_alone(parts, monkeypatch):
    monkeypatch.setattr(band_reader, "TAIL_BYTES", 100)
    read = Bytes(monkeypatch)
    with open_solution(parts) as solution:
        value = solution.value("2 . 4 / . . 2")
    sizes = [(parts / name / "catalogue.zip").stat().st_size for name in ("sets", "values/score")]
    assert read.count < sum(sizes) / 2
    # Without catalogues every manifest is read, and the answers are the same.
    with open_solution(parts) as solution:
        solution.sets.store._uses_catalogues = False
        assert solution.value("2 . 4 / . . 2") == value
        assert solution.sets.max_age == solution.shape.top_age


@pytest.mark.parametrize("name", ["sets", "values/score"])
def test_a_catalogue_is_a_zip(name, parts, rng):
    """Parts of it as zipfile reads them; a flipped bit spoils none, or is found."""
    path = parts / name / "catalogue.zip"
    whole = read_catalogue(path)
    with zipfile.ZipFile(path) as archive:
        assert whole == {member: archive.read(member) for member in archive.namelist()}
    bands = bands_of(SHAPES["2x3"])
    records = band_reader.records_of(name)

    def read() -> dict[str, bytes]:
        location = Directory(path.parent)
        opened = Catalogue(location, path.name, *location.read_tail(path.name, 200), records)
        found = opened.records()
        for number in range(len(bands)):
            found |= opened.band(number, len(bands))
        return found

    assert read() == whole
    sound = path.read_bytes()
    num_found = 0
    for _ in range(300):
        harmed = bytearray(sound)
        harmed[rng.integers(len(harmed))] ^= 1 << int(rng.integers(8))
        path.write_bytes(harmed)
        try:
            assert [data for part, data in read().items() if whole.get(part, data) != data] == []
        except SolutionDamaged:
            num_found += 1
        with pytest.raises(SolutionDamaged):
            read_catalogue(path)
    path.write_bytes(sound)
    assert num_found > 200


def test_a_cache_is_bounded():
    cache = Cache(10, len)
    for i in range(5):
        cache.put(i, "xxx")
    assert [cache.get(i) for i in range(5)] == [None, None, "xxx", "xxx", "xxx"]
    cache.get(2)
    cache.put(5, "xxx")
    assert (cache.get(2), cache.get(3)) == ("xxx", None)
    cache.put(6, "x" * 50)
    assert (cache.get(5), cache.get(6)) == (None, "x" * 50)
    assert cache.find(7, lambda: "yy") == cache.find(7, lambda: "no") == "yy"


def test_threads_get_the_same_answers(parts, rng, monkeypatch):
    """While nothing stays in caches that hold next to nothing."""
    with open_solution(parts) as solution:
        boards = some_boards(solution, 60, rng)
        expected = [solution.query(board.tolist()) for board in boards]
    monkeypatch.setattr(band_reader, "CACHE_BYTES", 3000)
    monkeypatch.setattr(band_reader, "PART_BYTES", 3000)
    with open_solution(parts) as solution, ThreadPoolExecutor(8) as pool:
        for cache in (solution.sets._opened, solution.sets._arrays, solution.stored._arrays):
            cache._max_weight = 100
        for _ in range(3):
            assert list(pool.map(lambda b: solution.query(b.tolist()), boards)) == expected
        assert solution.sets.store.cache._weight <= 3000
