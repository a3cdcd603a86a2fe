"""Spill: what does not fit in memory goes to files without a name, which end with the process however it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fsspec import AbstractFileSystem

from incrowd.engines.unnamed_file import UnnamedFile

if TYPE_CHECKING:
    import duckdb

_SCHEME = "incrowd-spill"
SPILL_PLACE = f"{_SCHEME}://memory"
"""The `temp_directory` of all our databases; `add_spill_files` registers it."""


class SpillFiles(AbstractFileSystem):  # type: ignore[misc]  # the package has no types
    """The only folder for temporary files of our databases: its files have no names.

    DuckDB's own encryption of such files cannot be used: its wheel has no random generator that DuckDB considers safe,
    so it refuses.
    """

    protocol = _SCHEME
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self._open = set[str]()

    def open(self, path: str, mode: str = "rb", **_: Any) -> UnnamedFile:
        """Open a new file in any mode: a database opens every file once."""
        self._open.add(path)
        return UnnamedFile()

    def exists(self, path: str, **_: Any) -> bool:
        return path in self._open

    def isfile(self, path: str) -> bool:
        return path in self._open

    def isdir(self, path: str) -> bool:
        return path not in self._open

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        """Do nothing: the folder exists."""

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """Return nothing: no other process has files here."""
        return []

    def touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        """Do nothing: files are created when they are opened."""

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Forget a file, which ended when it was closed."""
        self.rm_file(path)

    def rm_file(self, path: str) -> None:
        self._open.discard(path)


def add_spill_files(database: duckdb.DuckDBPyConnection) -> None:
    """Give a database whose `temp_directory` is `SPILL_PLACE` unnamed files there."""
    if not database.filesystem_is_registered(_SCHEME):
        database.register_filesystem(SpillFiles())


def memory_database(memory: str) -> duckdb.DuckDBPyConnection:
    """Open a database with this limit of memory; beyond it, rows go to unnamed files.

    >>> with memory_database("100MB") as database:
    ...     database.sql("SELECT max(range) FROM range(10)").fetchall()
    [(9,)]
    """
    import duckdb

    database = duckdb.connect(config={"memory_limit": memory, "temp_directory": SPILL_PLACE})
    add_spill_files(database)
    return database
