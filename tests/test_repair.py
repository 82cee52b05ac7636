"""What is damaged is put aside and made again, to the same bytes; nothing is guessed."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from conftest import run, solution_bytes

from solver2048 import SolveOptions, bands, descent, forward_pass, solve
from solver2048 import repair as repair_module
from solver2048.errors import NoSolution, SolutionDamaged, SolutionInUse
from solver2048.layer_sets import LayerSets
from solver2048.lock import DirectoryLock
from solver2048.options import LEVELS
from solver2048.repair import repair
from solver2048.shape import SHAPES
from solver2048.store import Store
from solver2048.verify import verify

SHAPE = SHAPES["2x3"]


@pytest.fixture(scope="module")
def origin(tmp_path_factory, small_parts):
    """A finished solution of two objectives."""
    path = tmp_path_factory.mktemp("origin") / "s"
    solve(SHAPE, path, SolveOptions(values="fixed:10"))
    solve(SHAPE, path, SolveOptions(objective="tile:32"))
    return path


@pytest.fixture
def harmed(origin, tmp_path):
    shutil.copytree(origin, tmp_path / "s")
    return tmp_path / "s"


def band(number: int) -> str:
    return bands.bands_of(SHAPE)[number].name


def flip(path, position: int = 60) -> None:
    data = bytearray(path.read_bytes())
    data[position % len(data)] ^= 4
    path.write_bytes(data)


def harm(path, name: str) -> None:
    """``name`` is what is harmed below a solution: removed after a ``-``, else one bit flipped."""
    name = name.format(*(b.name for b in bands.bands_of(SHAPE)))
    target = path / name.removeprefix("-")
    if not name.startswith("-"):
        flip(target)
    elif target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink()


HARMS = [
    ["sets/{2}/states/c/0"],
    ["sets/{0}/chunks"],
    ["sets/{1}/manifest.json"],
    ["-sets/{1}/manifest.json"],
    ["-sets/{0}"],
    ["-sets/{1}", "-sets/{3}"],
    ["-sets/{4}", "-values/score/{4}", "values/tile-32/{4}/afterstates/c/0"],
    ["values/score/{2}/afterstates/c/0"],
    ["values/score/{2}/afterstates/zarr.json", "values/tile-32/{0}/manifest.json"],
    ["-values/score/{4}"],
    ["sets/catalogue.zip"],
    ["-sets/catalogue.zip", "values/score/catalogue.zip"],
    ["sets/catalogue.zip", "sets/{1}/states/c/0", "values/score/{1}/afterstates/c/0"],
    ["solution.json"],
    ["-solution.json", "sets/catalogue.zip"],
    ["values/score/objective.json", "values/tile-32/result.json"],
    ["values/score/objective.json", "-values/score/catalogue.zip"],
    ["values/score/result.json", "-values/score/catalogue.zip"],
    ["-values/tile-32/result.json", "-values/tile-32/objective.json"],
]


@pytest.mark.parametrize("harms", HARMS, ids=" ".join)
def test_the_same_bytes_come_back(harms, harmed, origin):
    before = solution_bytes(origin)
    for name in harms:
        harm(harmed, name)
    damaged = {n: d for n, d in solution_bytes(harmed).items() if before[n] != d}
    if (harmed / "solution.json").exists():
        assert verify(Store(harmed), level="full").problems
    repairs = repair(harmed)
    assert not repairs.errors
    assert solution_bytes(harmed) == before
    assert repairs.restored + repairs.computed
    # Nothing damaged was deleted.
    kept = {
        file.relative_to(harmed / "quarantine/0").as_posix(): file.read_bytes()
        for file in (harmed / "quarantine").rglob("*")
        if file.is_file()
    }
    assert damaged.items() <= kept.items()
    assert repair(harmed) == type(repairs)()


def test_bands_that_are_sound_are_not_written_again(harmed):
    harm(harmed, "-sets/{2}")
    harm(harmed, "values/score/{1}/afterstates/c/0")
    untouched = [p for p in (harmed / "sets").rglob("*") if p.is_file()] + [
        p for p in (harmed / "values").rglob("*") if p.is_file() and band(1) not in p.parts
    ]
    times = [(p.stat().st_ino, p.stat().st_mtime_ns) for p in untouched]
    repair(harmed)
    assert [(p.stat().st_ino, p.stat().st_mtime_ns) for p in untouched] == times


@pytest.mark.parametrize("kind", ["sets", "values/score"])
def test_solve_computes_a_lost_band_again(kind, tmp_path, small_parts, monkeypatch):
    solve("2x3", tmp_path / "s")
    whole = solution_bytes(tmp_path / "s")
    number = 2
    shutil.rmtree(sorted((tmp_path / "s" / kind).glob("0*"))[number])
    assert verify(Store(tmp_path / "s"), level="quick").errors
    enumerated = []
    enumerate_layer = forward_pass.enumerate_layer

    def counted(shape, age, *rest):
        enumerated.append(age)
        return enumerate_layer(shape, age, *rest)

    monkeypatch.setattr(forward_pass, "enumerate_layer", counted)
    assert solve("2x3", tmp_path / "s")
    # Only what was lost, from the two bands below.
    lost = bands.bands_of(SHAPES["2x3"])[number]
    assert enumerated == (list(lost.ages) if kind == "sets" else [])
    assert solution_bytes(tmp_path / "s") == whole
    assert not solve("2x3", tmp_path / "s")


@pytest.mark.parametrize("is_catalogued", [True, False])
def test_a_valid_band_of_another_make_is_found_out(is_catalogued, harmed, origin, tmp_path):
    """A band whose manifest is sound, but is not the one that its neighbours were made from."""
    store = Store(harmed)
    if not is_catalogued:
        for name in store.catalogue_names():
            (harmed / name).unlink()
    name = f"sets/{band(1)}/manifest.json"
    record = store.read_record(name)
    store.write_record(name, {**record, "note": "made elsewhere"})
    subjects = {p.subject for p in verify(store, level="quick").problems}
    assert f"sets/{band(1)}" in subjects
    repairs = repair(harmed)
    assert not repairs.errors
    assert solution_bytes(harmed) == solution_bytes(origin)


def test_a_wrong_catalogue_is_found_out(harmed, origin):
    """Sound in itself, but it has another manifest than the band that its neighbours know."""
    name = f"sets/{band(1)}/manifest.json"
    sound = (harmed / name).read_bytes()
    store = Store(harmed, uses_catalogues=False)
    store.write_record(name, {**store.read_record(name), "note": "made elsewhere"})
    (harmed / "sets/catalogue.zip").unlink()
    Store(harmed).finish_kind("sets", bands.bands_of(SHAPE))
    (harmed / name).write_bytes(sound)
    assert repair(harmed).errors == []
    assert solution_bytes(harmed) == solution_bytes(origin)


@pytest.mark.parametrize("harms", [
    ["-sets/{0}"], ["sets/{1}/afterstates/c/0"], ["sets/{2}/states/c/0"],
    ["sets/{2}/manifest.json"], ["sets/{0}/chunks", "-sets/{2}/chunks"],
], ids=" ".join)  # fmt: skip
def test_a_solve_cut_short_is_repaired_as_far_as_it_was(harms, tmp_path, small_parts):
    max_age = bands.bands_of(SHAPE)[2].first + 6
    assert max_age < bands.bands_of(SHAPE)[2].last
    for name in ("origin", "s"):
        solve(SHAPE, tmp_path / name, SolveOptions(max_age=max_age))
    for name in harms:
        harm(tmp_path / "s", name)
    assert not repair(tmp_path / "s").errors
    assert LayerSets(Store(tmp_path / "s")).max_age == max_age
    assert solution_bytes(tmp_path / "s") == solution_bytes(tmp_path / "origin")


@pytest.mark.parametrize("number", [2, 3, 4])
def test_values_of_an_unfinished_solve(number, tmp_path, origin, monkeypatch):
    """The backward pass goes down to the lost band, and no further."""
    path = tmp_path / "s"
    write_band = Store.write_band

    def stop_at_band_1(self, kind, of_band, *rest):
        if kind == "values/score" and of_band.name == band(1):
            raise KeyboardInterrupt
        write_band(self, kind, of_band, *rest)

    monkeypatch.setattr(Store, "write_band", stop_at_band_1)
    with pytest.raises(KeyboardInterrupt):
        solve(SHAPE, path, SolveOptions(values="fixed:10"))
    monkeypatch.undo()
    before = solution_bytes(path)
    flip(path / "values/score" / band(number) / "afterstates/c/0")
    repairs = repair(path)
    assert not repairs.errors
    assert repairs.computed == [f"values/score/{band(number)}"]
    assert solution_bytes(path) == before
    solve(SHAPE, path, SolveOptions(values="fixed:10"))
    finished = solution_bytes(path)
    assert finished == {n: d for n, d in solution_bytes(origin).items() if "tile-32" not in n}


@pytest.mark.parametrize("step", ["forward_pass", "backward_pass"])
def test_a_repair_that_was_stopped(step, harmed, origin, monkeypatch):
    """What was put aside before is made by the next, the top of a cut-short solve included."""
    shutil.rmtree(harmed / "values/tile-32")
    shutil.rmtree(harmed / "values/score" / band(0))
    for name in ("values/score/result.json", "values/score/catalogue.zip"):
        (harmed / name).unlink()
    before = solution_bytes(harmed)
    harm(harmed, "sets/{4}/manifest.json")
    harm(harmed, "values/score/{1}/manifest.json")

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(repair_module, step, stopped)
    with pytest.raises(KeyboardInterrupt):
        repair(harmed)
    monkeypatch.undo()
    assert not repair(harmed).errors
    assert solution_bytes(harmed) == before


def test_strays_are_put_aside(harmed, origin):
    strays = ["sets/notes.txt", f"sets/{band(0)}/states/c/77", "values/score/copy.json", "values/x"]
    for name in strays:
        (harmed / name).write_text("something else")
    assert {p.subject for p in verify(Store(harmed), level="quick").problems} == set(strays)
    repairs = repair(harmed)
    assert repairs.quarantined == [f"quarantine/0/{name}" for name in sorted(strays)]
    assert not repairs.computed
    assert solution_bytes(harmed) == solution_bytes(origin)


def test_what_was_solved_is_not_guessed(harmed):
    for name in Store(harmed).catalogue_names():
        (harmed / name).unlink()
    flip(harmed / "solution.json")
    before = solution_bytes(harmed)
    with pytest.raises(SolutionDamaged, match="what was solved is not guessed"):
        repair(harmed)
    (harmed / "solution.json").unlink()
    with pytest.raises(NoSolution, match="what was solved is not guessed"):
        repair(harmed)
    before.pop("solution.json")
    assert solution_bytes(harmed) == before


@pytest.mark.parametrize("has_catalogues", [True, False])
def test_a_solution_record_of_another_solution(has_catalogues, harmed, origin, tmp_path):
    """It is the record that is wrong, not every band."""
    solve(SHAPE, tmp_path / "other", SolveOptions(spawn4=0.3, max_age=4))
    shutil.copyfile(tmp_path / "other/solution.json", harmed / "solution.json")
    assert verify(Store(harmed), level="quick").problems
    if has_catalogues:
        assert repair(harmed).restored == ["solution.json"]
        assert solution_bytes(harmed) == solution_bytes(origin)
        return
    for name in Store(harmed).catalogue_names():
        (harmed / name).unlink()
    before = solution_bytes(harmed)
    with pytest.raises(SolutionDamaged, match="is of another solution than all bands"):
        repair(harmed)
    assert solution_bytes(harmed) == before


def test_how_values_are_stored_is_not_guessed(harmed):
    for name in ["values/score/objective.json", "-values/score/catalogue.zip"]:
        harm(harmed, name)
    for number in range(len(bands.bands_of(SHAPE))):
        harm(harmed, f"values/score/{{{number}}}/manifest.json")
    with pytest.raises(SolutionDamaged, match="not guessed"):
        repair(harmed)
    assert (harmed / "quarantine/0/values/score/objective.json").is_file()


def test_the_command(harmed):
    harm(harmed, "sets/{2}/states/c/0")
    result = run("verify", harmed, "--level", "full")
    assert result.exit_code == 8
    assert f"sets/{band(2)}/states/c/0: sha256" in result.stdout
    assert f"run `solver2048 repair {harmed}`" in result.stderr
    result = run("repair", harmed, "--quiet")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"moved     quarantine/0/sets/{band(2)}", f"computed  sets/{band(2)}", "Repaired."
    ]  # fmt: skip
    assert run("repair", harmed, "--quiet").stdout == "Nothing is damaged.\n"
    harm(harmed, "-values/score/{1}")
    report = json.loads(run("repair", harmed, "--quiet", "--json").stdout)
    assert report == {"ok": True, "quarantined": [], "restored": [],
                      "computed": [f"values/score/{band(1)}"], "errors": []}  # fmt: skip
    assert run("repair", harmed / "nowhere").exit_code == 6
    assert not (harmed / "nowhere").exists()
    assert run("repair", harmed, "--threads", 0).exit_code == 2
    with DirectoryLock(harmed):
        assert run("repair", harmed).exit_code == 7
        with pytest.raises(SolutionInUse):
            repair(harmed)


def test_errors_name_the_remedy(harmed):
    board = "2 . 4 / . . 2"
    harm(harmed, "-values/score/{0}")
    result = run("query", harmed, board)
    assert result.exit_code == 8
    assert f"values/score/{band(0)}/afterstates/c/0 is missing" in result.stderr
    assert result.stderr.rstrip().endswith(f"run `solver2048 repair {harmed}`")
    harm(harmed, "sets/{3}/manifest.json")
    result = run("solve", "2x3", "--out", harmed, "--quiet")
    assert result.exit_code == 8
    assert result.stderr.rstrip().endswith(f"run `solver2048 repair {harmed}`")


def test_levels_of_verify(harmed):
    """A lost byte shows at every level, a changed one where chunks are read."""
    for level in LEVELS:
        result = run("verify", harmed, "--level", level, "--json")
        assert result.exit_code == 0
        assert json.loads(result.stdout)["level"] == level
    path = harmed / "sets" / band(0) / "states/c/0"
    sound = path.read_bytes()
    path.write_bytes(sound[:-1])
    assert run("verify", harmed, "--level", "quick").exit_code == 8
    path.write_bytes(bytes([sound[0] ^ 1]) + sound[1:])
    assert run("verify", harmed, "--level", "quick").exit_code == 0
    assert run("verify", harmed, "--level", "sampled", "--share", 1).exit_code == 8
    assert run("verify", harmed, "--level", "full").exit_code == 8
    path.write_bytes(sound)
    assert run("verify", harmed, "--level", "half").exit_code == 2


def test_a_foreign_manifest_is_not_taken_for_the_truth(tmp_path):
    """The only band of sets has the manifest of another solution; the catalogues know better."""
    solve("2x2", tmp_path / "s")
    whole = solution_bytes(tmp_path / "s")
    solve("2x2", tmp_path / "other", SolveOptions(spawn4=0.2))
    manifest = next((tmp_path / "s/sets").glob("*/manifest.json"))
    shutil.copyfile(tmp_path / "other" / manifest.relative_to(tmp_path / "s"), manifest)
    assert not repair(tmp_path / "s").errors
    assert {
        n: b for n, b in solution_bytes(tmp_path / "s").items() if "quarantine" not in n
    } == whole


def test_an_extent_that_nobody_knows_is_not_guessed(tmp_path):
    solve("2x3", tmp_path / "s", SolveOptions(max_age=60))
    next((tmp_path / "s/sets").glob("*/manifest.json")).unlink()
    (tmp_path / "s/run.json").unlink()
    repairs = repair(tmp_path / "s")
    assert any("how far it went is not guessed" in str(error) for error in repairs.errors)


def test_finished_sets_stay_finished(tmp_path):
    solve("2x2", tmp_path / "s")
    whole = solution_bytes(tmp_path / "s")
    shutil.rmtree(next((tmp_path / "s/sets").glob("0*")))
    assert solve("2x2", tmp_path / "s", SolveOptions(max_age=20))
    assert solution_bytes(tmp_path / "s") == whole


def test_what_is_no_file_is_damage(tmp_path):
    solve("2x2", tmp_path / "s")
    (tmp_path / "s/scratch").mkdir(exist_ok=True)
    (tmp_path / "s/scratch/repair.json").write_text("{")
    chunks = next((tmp_path / "s/sets").glob("*/chunks"))
    chunks.unlink()
    os.mkfifo(chunks)
    assert verify(Store(tmp_path / "s"), level="full").errors
    assert not repair(tmp_path / "s").errors
    assert chunks.is_file()
    (tmp_path / "s/scratch/repair.json").unlink(missing_ok=True)
    chunks.unlink()
    shutil.rmtree(tmp_path / "s/quarantine")
    (tmp_path / "s/quarantine").touch()
    with pytest.raises(NoSolution, match="move it away"):
        repair(tmp_path / "s")


def test_lost_values_come_from_a_checkpoint_kept(tmp_path, small_parts, monkeypatch):
    """Not from the top age: bands above the checkpoint are not computed again."""
    monkeypatch.setattr(bands, "KEPT_SLOTS", 15_000)
    path = tmp_path / "s"
    solve("2x3", path)
    whole = solution_bytes(path)
    kept = [band.first for band in bands.kept_checkpoints(SHAPES["2x3"])]
    assert len(kept) > 1
    lost = next(band for band in bands.bands_of(SHAPES["2x3"]) if band.last < kept[-1])
    shutil.rmtree(path / "values/score" / lost.name)
    valued = []
    value_layer = descent.value_layer

    def recorded(problem, age, *arguments):
        valued.append(age)
        return value_layer(problem, age, *arguments)

    monkeypatch.setattr(descent, "value_layer", recorded)
    assert not repair(path).errors
    assert solution_bytes(path) == whole
    assert valued[0] == kept[-1] - 2
