"""Libraries: what a release needs after its charge is loaded before it, so that a missing library costs nothing."""

from __future__ import annotations

from importlib import import_module

from incrowd.errors import PackageMissing
from incrowd.workflows.registry import check_of, names, picture_of

_NEEDED = (
    "cryptography.hazmat.primitives.ciphers",
    "encodings.unicode_escape",
    "jinja2",
    "pyarrow.acero",
    "pyarrow.csv",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pyarrow.substrait",
    "incrowd.engines.writers.files",
)
"""What is imported where it is used, because not every command uses it."""
_OUT_OF_CORE = ("duckdb", "incrowd.engines.spill")
"""What counts the rows of people, and the rows of a large file that was written."""


def load_libraries(method: str) -> None:
    """Import everything that releasing, checking, drawing and writing by a method can need.

    >>> load_libraries("safe")
    """
    for module in _NEEDED:
        _load(module)
    if method in names():
        check_of(method)
        picture_of(method)


def load_out_of_core() -> None:
    """Import what a release needs besides, where rows are many or belong to people who may have several.

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
