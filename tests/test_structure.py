"""Imports run one way, public names are what they should be."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import elias_fano
import solver2048

# Each module imports only from modules in lines above its own.
ORDER = [
    ["cache", "errors", "rules", "layer"],
    ["location"],
    ["shape", "lock", "files", "remote", "findings", "amounts", "counts_file"],
    ["board", "tables", "options", "chunk_table", "catalogue", "checkpoints", "array_form"],
    ["kernels.slots", "kernels.board_text"],
    ["kernels.moves", "kernels.radix"],
    ["kernels.spawns", "kernels.members"],
    ["kernels.values", "kernels.actions", "kernels.statistics"],
    ["kernels.policy", "kernels.games", "kernels.answers"],
    ["kernels.policy_values"],
    ["layer_index", "objective", "value_format", "workers", "bands", "progress", "radix"],
    ["published", "stored_array", "records", "progress_log", "samples"],
    [
        "forward",
        "ids",
        "zarr_arrays",
        "band_reader",
        "age_counts",
        "watch",
        "game",
        "board_lines",
        "questions",
    ],
    ["backward", "store", "rates"],
    ["layer_statistics", "self_check", "band_builder"],
    ["kept_records", "policy_bands"],
    ["footprint"],
    ["layer_sets", "forecast", "calibration", "scratch", "policy"],
    ["keeper"],
    ["layer_values", "background", "set_sizes", "outlook", "plan"],
    ["forward_pass", "descent", "plan_format"],
    ["backward_pass", "policy_keeper", "statistics_keeper"],
    ["span_pass", "policy_reach", "policy_value"],
    ["pack"],
    ["solver"],
    ["decoded_layer"],
    ["lookup", "board_values"],
    ["layer_parts"],
    ["report", "solution", "age_statistics", "table_files"],
    ["bulk", "policy_solution", "report_format"],
    ["opening"],
    ["answer_files"],
    ["verify_values", "verify_policy", "state_sample", "policies", "game_totals"],
    ["verify_catalogues", "record_copies"],
    ["prospects", "simulation", "games"],
    ["verify_actions"],
    ["verify"],
    ["repair", "simulation_format", "explanation", "games_format"],
    ["explanation_format", "played_game", "overview"],
    ["game_view", "panels"],
    ["terminal", "pictures"],
    ["html_report"],
    ["web.answers", "web.page_files"],
    ["web.bodies"],
    ["web.app"],
    ["web.server"],
    ["cli_command", "cli_options"],
    ["cli_overview", "cli_results"],
    [
        "cli_checksums",
        "cli_counts",
        "cli_explain",
        "cli_games",
        "cli_pack",
        "cli_plan",
        "cli_play",
        "cli_plot",
        "cli_query",
        "cli_repair",
        "cli_report",
        "cli_sample",
        "cli_serve",
        "cli_sets",
        "cli_simulate",
        "cli_solve",
        "cli_stats",
        "cli_status",
        "cli_verify",
    ],
    ["cli"],
    ["__main__"],
]

FILE_MODULES = {"zarr": "zarr_arrays", "shutil": "files", "zipfile": "catalogue", "fcntl": "lock",
                "obstore": "remote"}  # fmt: skip
"""Who alone imports what deals with files."""


def modules(package):
    root = Path(package.__file__).parent
    return {
        path.relative_to(root).with_suffix("").as_posix().replace("/", "."): path
        for path in root.rglob("*.py")
        if path.name != "__init__.py"
    }


def imported(path, name):
    """Modules of the own package, and top-level packages, that a module imports anywhere."""
    package = name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((None, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield None, node.module.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1]
            if node.module:
                yield ".".join([*base, node.module]), None
            else:
                yield from ((".".join([*base, alias.name]), None) for alias in node.names)


def test_solver2048_imports_upward_only():
    found = modules(solver2048)
    level = {name: i for i, names in enumerate(ORDER) for name in names}
    assert set(found) == set(level)
    for name, path in found.items():
        for module, _ in imported(path, name):
            if module in level:
                assert level[module] < level[name], f"{name} imports {module}"


def test_kernels_know_no_files_and_the_store_no_game():
    found = modules(solver2048)
    for name, path in found.items():
        tops = {top for _, top in imported(path, name) if top}
        if name.startswith("kernels."):
            assert tops <= {"__future__", "numpy", "elias_fano"}, name
        for module, only_in in FILE_MODULES.items():
            assert module not in tops or name == only_in, name
    game = {"tables", "board", "rules", "forward", "backward", "layer_index", "objective", "bands"}
    persisting = {"store", "band_reader", "records", "files", "remote", "zarr_arrays", "catalogue",
                  "checkpoints"}  # fmt: skip
    for name in persisting:
        assert not {m for m, _ in imported(found[name], name)} & game, name


def test_the_lock_is_taken_before_heavy_imports():
    """Whatever the command line imports at its top, and for the lock, is light."""
    found = modules(solver2048)
    light = {"errors", "location", "lock", "options", "shape"}
    for name in light:
        tops = {top for _, top in imported(found[name], name) if top}
        assert tops <= set(sys.stdlib_module_names), name
        assert {module for module, _ in imported(found[name], name) if module} <= light, name
    code = "import sys, solver2048.cli; print(*sys.modules)"
    command = [sys.executable, "-c", code]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "numba", "zarr"} & set(loaded)


def test_elias_fano_knows_nothing_of_2048():
    for name, path in modules(elias_fano).items():
        tops = {top for _, top in imported(path, name) if top}
        assert "solver2048" not in tops, name
        assert not tops & {"click", "tqdm"}, name
        assert "zarr" not in tops or name == "groups", name


def test_public_names():
    assert set(solver2048.__all__) == {
        "ACTIONS", "SolveOptions", "Solution", "open_solution", "parse_shape", "solve"
    }  # fmt: skip
    for name in solver2048.__all__:
        assert getattr(solver2048, name) is not None
    with pytest.raises(AttributeError):
        _ = solver2048.nothing_of_the_kind
    assert set(elias_fano.__all__) == {
        "DamagedSet", "EliasFano", "PartitionedBuilder", "PartitionedEliasFano", "SequenceBuilder",
        "SortedSet", "encode_bitmap", "encode_members", "open_file", "open_group", "save_file",
        "write_file", "write_group",
    }  # fmt: skip
    for name in elias_fano.__all__:
        assert getattr(elias_fano, name) is not None
