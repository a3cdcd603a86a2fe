"""Libraries: a release loads before its charge what it needs after it, so that a missing library costs nothing."""

from __future__ import annotations

from importlib import import_module

from incrowd.errors import PackageMissing
from incrowd.methods import METHODS
from incrowd.workflows.registry import check_of, names, picture_of

_NEEDED = (
    "cryptography.hazmat.primitives.ciphers",
    "encodings.unicode_escape",
    "pyarrow.acero",
    "pyarrow.csv",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pyarrow.substrait",
    "incrowd.drawing.templates",
    "incrowd.engines.writers.files",
)
"""Modules that are imported where they are used, because not every command uses them."""
_MASKS, _PAGE_OF_STEPS = "incrowd.methods.perturbation.", "incrowd.workflows.report.steps_page"
"""Methods that may keep the rows after each step, as those of other distributions may, and the page of these."""
_OUT_OF_CORE = ("duckdb", "incrowd.engines.spill")
"""Modules that count the rows of people, and the rows of a large file that was written."""


def load_libraries(method: str) -> None:
    """Import everything that releasing, checking, drawing and writing by a method can need.

    >>> load_libraries("safe")
    """
    for module in _NEEDED:
        _load(module)
    if METHODS.get(method, _MASKS).startswith(_MASKS):
        _load(_PAGE_OF_STEPS)
    if method in names():
        check_of(method)
        picture_of(method)


def load_out_of_core() -> None:
    """Import what a release of many rows, or of people with several rows, needs besides.

    >>> load_out_of_core()
    """
    for module in _OUT_OF_CORE:
        _load(module)


def _load(module: str) -> None:
    try:
        import_module(module)
    except ImportError as error:
        raise PackageMissing(
            f"the package {error.name or module} is missing or broken, and the release would need it after its charge. "
            "Install incrowd again: pip install --force-reinstall incrowd."
        ) from None
