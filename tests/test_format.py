"""A reader written from data/FORMAT.md alone, with nothing of the package, reads a solution."""

from __future__ import annotations

import hashlib
import itertools
import json
import zipfile

import google_crc32c
import naive
import numcodecs
import numpy as np
import pytest
import zarr

from solver2048 import solve, zarr_arrays

LINES = {"2x2": (2, 2), "2x3": (2, 3), "2x4": (2, 4), "3x3": (3, 3), "4x3": (3, 4)}


class Reader:
    """What FORMAT.md says, word by word."""

    def __init__(self, path):
        self.path = path
        identity = json.loads((path / "solution.json").read_text())
        self.shape, self.ids = identity["shape"], identity["ids"]
        self.num_lines, self.length = LINES[self.shape]
        cells = self.num_lines * self.length
        top = 2 ** (cells + 2) - 4
        rows = itertools.product(range(cells + 2), repeat=self.length)
        self.classes: dict[int, list[tuple[int, ...]]] = {}
        for row in rows:
            if self.total(row) <= top:
                self.classes.setdefault(self.total(row), []).append(row)
        for members in self.classes.values():
            members.sort(key=self.code)

    @staticmethod
    def total(row):
        return sum(2**cell for cell in row if cell)

    @staticmethod
    def code(row):
        return sum(cell << (12 - 4 * i) for i, cell in enumerate(row))

    def half_rows(self, total):
        return [row for row in self.classes[total] if self.code(row) <= self.code(row[::-1])]

    def bases(self, age):
        base, found = 0, {}
        middles = sorted(self.classes) if self.num_lines == 3 else [0]
        for sum0 in sorted(self.classes):
            for sum1 in middles:
                sum2 = age - sum0 - sum1
                if sum2 in self.classes and sum0 >= sum2:
                    found[sum0, sum1] = base
                    sizes = len(self.half_rows(sum0)), len(self.classes[sum1])
                    base += sizes[0] * sizes[1] * len(self.classes[sum2])
        return found

    def slot(self, board, bases):
        """board : rows as stored, three of them (the middle one empty on boards of two)."""
        flips = [board, [row[::-1] for row in board]]
        slots = []
        for image in flips + [image[::-1] for image in flips]:
            row0, row1, row2 = image
            if self.code(row0) > self.code(row0[::-1]) or self.total(row0) < self.total(row2):
                continue
            base = bases[self.total(row0), self.total(row1)]
            class1, class2 = self.classes[self.total(row1)], self.classes[self.total(row2)]
            half = self.half_rows(self.total(row0)).index(row0)
            index = half * len(class1) + class1.index(row1)
            slots.append(base + index * len(class2) + class2.index(row2))
        return min(slots)

    def radix_id(self, board, age):
        """board : rows as stored, as many as the shape has."""
        base = 1
        while 2**base <= age:
            base += 1
        flips = [board, [row[::-1] for row in board]]
        numbers = []
        for image in flips + [image[::-1] for image in flips]:
            digits = [cell for row in image for cell in row][:-1]
            numbers.append(sum(d * base**i for i, d in enumerate(reversed(digits))))
        return min(numbers)

    def stored_id(self, board, age, bases):
        if self.ids == "radix":
            return self.radix_id(board, age)
        if self.num_lines == 2:
            board = [board[0], (0,) * self.length, board[1]]
        return self.slot(board, bases)

    def layers(self):
        """For every age: members of both sets, and the values of the afterstates."""
        for sets in sorted(p for p in (self.path / "sets").iterdir() if p.is_dir()):
            values = self.path / "values/score" / sets.name
            words = {n: zarr.open_array(sets / n)[:] for n in ("states", "afterstates")}
            stored = zarr.open_array(values / "afterstates")[:]
            layers = json.loads((sets / "manifest.json").read_text())["layers"]
            ranges = json.loads((values / "manifest.json").read_text())["layers"]
            for layer, span in zip(layers, ranges, strict=True):
                assert layer["age"] == span["age"]
                members = {
                    name: decode([int(w) for w in words[name][slice(*layer[f"{name}_words"])]])
                    for name in words
                }
                yield layer["age"], members, stored[slice(*span["values"])]


def decode(words):
    """Members of a partitioned Elias–Fano set, from its module's text."""
    assert words[0].to_bytes(8, "little") == b"EFPART01"
    count, size, partitions = words[3:6]
    firsts = words[8 : 8 + partitions]
    places = words[8 + partitions : 8 + 2 * partitions]
    payload = words[8 + 2 * partitions :]
    members = []
    for number, (first, place) in enumerate(zip(firsts, places, strict=True)):
        m = min(size, count - number * size)
        kind, low_bits, offset = place & 3, place >> 2 & 63, place >> 8
        if kind == 0:
            members += range(first, first + m)
            continue
        if kind == 2:
            lows = sum(word << (64 * i) for i, word in enumerate(payload[offset:]))
            offset += -(-m * low_bits // 64)
        bits = sum(word << (64 * i) for i, word in enumerate(payload[offset:]))
        positions = []
        position = 0
        while len(positions) < m:
            if bits >> position & 1:
                positions.append(position)
            position += 1
        if kind == 1:
            members += [first // 64 * 64 + position for position in positions]
        else:
            for i, position in enumerate(positions):
                low = lows >> (i * low_bits) & ((1 << low_bits) - 1)
                members.append(first + ((position - i) << low_bits | low))
    assert len(members) == count
    return members


@pytest.mark.parametrize("ids", ["index", "radix"])
@pytest.mark.parametrize("name", ["2x2", "2x3"])
def test_a_reader_written_from_the_text(name, ids, solved):
    reader = Reader(solved(name, values="float64", ids=ids))
    assert reader.ids == ids
    expected = naive.NaiveSolution(reader.num_lines, reader.length)
    for age, members, values in reader.layers():
        bases = reader.bases(age)

        def stored_id(flat, age=age, bases=bases):
            rows = [flat[i : i + reader.length] for i in range(0, len(flat), reader.length)]
            return reader.stored_id(rows, age, bases)

        assert {stored_id(s) for s in expected.states[age]} == set(members["states"])
        assert members["afterstates"] == sorted(members["afterstates"])
        values_by_id = dict(zip(members["afterstates"], values, strict=True))
        places = {afterstate: stored_id(afterstate) for afterstate in expected.afterstates[age]}
        assert set(places.values()) == set(values_by_id)
        for afterstate, place in places.items():
            assert abs(values_by_id[place] - expected.afterstate_value[afterstate]) < 1e-10


# --- a reader that starts from the catalogues -------------------------------------------------

ROW = np.dtype([("offset", "<u8"), ("length", "<u4"), ("crc32c", "<u4")])
CODECS = {"zstd": numcodecs.Zstd(), "blosc": numcodecs.Blosc()}


def digest(record):
    return hashlib.sha256(
        (json.dumps(record, indent=1, sort_keys=True) + "\n").encode()
    ).hexdigest()


class RemoteReader:
    """Reads arrays by ranges of bytes, knowing only what is in a catalogue."""

    def __init__(self, path, kind):
        self.directory = path / kind
        data = (self.directory / "catalogue.zip").read_bytes()
        assert hashlib.sha256(data[:-64]).hexdigest().encode() == data[-64:]
        with zipfile.ZipFile(self.directory / "catalogue.zip") as archive:
            assert archive.namelist() == sorted(archive.namelist())
            self.parts = {name: archive.read(name) for name in archive.namelist()}

    def record(self, name):
        record = json.loads(self.parts[name])
        assert record.pop("sha256") == digest(record)
        return record

    @property
    def bands(self):
        return sorted(name.split("/")[0] for name in self.parts if name.endswith("/manifest.json"))

    def array(self, band, name):
        manifest = self.record(f"{band}/manifest.json")
        table = self.parts[f"{band}/chunks"]
        assert hashlib.sha256(table).hexdigest() == manifest["files"]["chunks"]["sha256"]
        place = manifest["chunks"][name]
        rows = np.frombuffer(table, dtype=ROW)[slice(*place["rows"])]
        metadata = json.loads(self.parts[f"{band}/{name}/zarr.json"])
        codecs = metadata["codecs"]
        if codecs[0]["name"] == "sharding_indexed":
            codecs = codecs[0]["configuration"]["codecs"]
        assert [codec["name"] for codec in codecs][::2] == ["bytes", "crc32c"]
        pieces = []
        for number, (offset, length, crc32c) in enumerate(rows.tolist()):
            if offset == 2**64 - 1:
                continue
            with open(
                self.directory / band / name / f"c/{number // place['per_shard']}", "rb"
            ) as f:
                f.seek(offset)
                chunk = f.read(length)
            assert int.from_bytes(chunk[-4:], "little") == crc32c == google_crc32c.value(chunk[:-4])
            pieces.append(CODECS[codecs[1]["name"]].decode(chunk[:-4]))
        items = np.frombuffer(b"".join(pieces), dtype=metadata["data_type"])
        return items[: metadata["shape"][0]], len(rows)


@pytest.mark.parametrize("is_sharded", [False, True])
def test_a_remote_reader_starts_from_the_catalogues(is_sharded, tmp_path, monkeypatch):
    if is_sharded:
        for role, chunk in (("words", 64), ("values", 512)):
            monkeypatch.setitem(zarr_arrays.CHUNK_ITEMS, role, chunk)
            monkeypatch.setitem(zarr_arrays.SHARD_ITEMS, role, 4 * chunk)
    path = tmp_path / "s"
    solve("2x3", path)
    sets, values = RemoteReader(path, "sets"), RemoteReader(path, "values/score")
    solution = sets.record("solution.json")
    identity = solution.pop("identity")
    assert identity == digest(solution)
    objective = values.record("objective.json")
    of_values = objective.pop("identity")
    assert of_values == digest({**objective, "solution": identity})
    assert values.record("result.json")["identity"] == of_values
    assert sets.bands == values.bands
    num_chunks = 0
    for reader, names, of_kind in (
        (sets, ("states", "afterstates"), identity), (values, ("afterstates",), of_values)
    ):  # fmt: skip
        for band in reader.bands:
            assert reader.record(f"{band}/manifest.json")["identity"] == of_kind
            for name in names:
                items, count = reader.array(band, name)
                num_chunks += count
                assert np.array_equal(items, zarr.open_array(reader.directory / band / name)[:])
    assert num_chunks > 30 if is_sharded else num_chunks == 3
