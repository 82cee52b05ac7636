"""The examples in the README and in docstrings, run as written."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import elias_fano
import solver2048

README = Path(__file__).parent.parent / "README.md"

MODULES = sorted(
    module.name
    for package in (solver2048, elias_fano)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_elias_fano_readme():
    path = Path(elias_fano.__file__).parent / "README.md"
    results = doctest.testfile(str(path), module_relative=False)
    assert (results.failed, results.attempted) == (0, 14)


def test_readme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = doctest.testfile(str(README), module_relative=False)
    assert results.failed == 0
    assert results.attempted >= 5
