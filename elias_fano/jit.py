"""``@kernel``: numba compilation as every kernel of this project uses it.

Kernels release the GIL and are cached on disk. numba's own cache looks at the source file of the
compiled function alone and would keep code whose callee, in another module, has changed; here the
cache is stamped with the sources of the whole package (and of this one), so a changed source never
runs stale code.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

_njit: Any = numba.njit

_is_for_host = numba.config.CPU_NAME in (None, "host") and numba.config.CPU_FEATURES is None  # type: ignore[attr-defined]

HAS_BMI2 = (
    not os.environ.get("ELIAS_FANO_PORTABLE")
    and _is_for_host
    and bool(llvmlite.binding.get_host_cpu_features().get("bmi2"))
)
"""Whether kernels may use the BMI2 instructions: without them, to compile one ends the process."""


@functools.cache
def _source_stamp(package: str) -> str:
    """SHA-256 over the Python sources of `package` and of this package, and the choice of BMI2."""
    digest = hashlib.sha256(bytes([HAS_BMI2]))
    for name in sorted({package, __name__.partition(".")[0]}):
        origin = sys.modules[name].__file__
        if origin is None:  # a namespace package has no sources of its own
            continue
        root = Path(origin).parent
        for path in sorted(root.rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class _PackageCache(FunctionCache):
    """A function's cache, valid only for the very sources of its whole package."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)  # type: ignore[no-untyped-call]
        stamp = _source_stamp(py_func.__module__.partition(".")[0])
        self._cache_file = IndexDataCacheFile(  # type: ignore[no-untyped-call]
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=stamp,
        )
        # An index is unpickled before its stamp is looked at, and that fails where a type that a
        # kernel takes lies elsewhere by now. Its version is looked at first.
        self._cache_file._version += f" {stamp}"

    def save_overload(self, sig: Any, data: Any) -> None:
        # The cache only saves time: a full or read-only disk must not end a solve.
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` with numba: no GIL, no fast-math, cached with its package's sources."""
    # Without numba's runtime (`_nrt`) kernels cannot allocate, and count no references either:
    # in a hot loop the counting of a dozen arrays costs several times the work.
    dispatcher = _njit(nogil=True, _nrt=False)(function)
    # RuntimeError: no writable place for a cache; the kernel is then compiled in every process.
    with contextlib.suppress(RuntimeError):
        dispatcher._cache = _PackageCache(function)
    return dispatcher


def inlined(function: Callable[..., Any]) -> Any:
    """Compile `function` as a part of the kernels that call it.

    For the innermost functions: a call that passes many arrays costs more than their work.
    """
    return _njit(nogil=True, _nrt=False, forceinline=True)(function)
