"""Spill: what does not fit in memory goes to files without a name, which end with the process however it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fsspec import AbstractFileSystem

from incrowd.engines.unnamed_file import UnnamedFile

if TYPE_CHECKING:
    import duckdb

_SCHEME = "incrowd-spill"
SPILL_PLACE = f"{_SCHEME}://memory"
"""The `temp_directory` of every database of ours; `add_spill_files` makes it known."""


class SpillFiles(AbstractFileSystem):  # type: ignore[misc]  # the package has no types
    """The only folder in which a database of ours may put what does not fit in memory: its files have no names.

    The database's own encryption of such files would not do: its wheel has no source of randomness that its makers
    call safe, and refuses.
    """

    protocol = _SCHEME
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self._open = set[str]()

    def open(self, path: str, mode: str = "rb", **_: Any) -> UnnamedFile:
        """Open a new file, whatever the mode: a database opens each of them once."""
        del mode
        self._open.add(path)
        return UnnamedFile()

    def exists(self, path: str, **_: Any) -> bool:
        """Return whether this file was opened and not removed since."""
        return path in self._open

    def isfile(self, path: str) -> bool:
        """Return the same."""
        return path in self._open

    def isdir(self, path: str) -> bool:
        """Return that the folder is there."""
        return path not in self._open

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        """Do nothing: the folder is there."""

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """Return that no other process left anything here."""
        del path, detail
        return []

    def touch(self, path: str, truncate: bool = True, **_: Any) -> None:
        """Do nothing: files are made when they are opened."""

    def rm(self, path: str, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Forget a file, which ended when it was closed."""
        del recursive, maxdepth
        self._open.discard(path)

    def rm_file(self, path: str) -> None:
        """Forget a file."""
        self._open.discard(path)


def add_spill_files(database: duckdb.DuckDBPyConnection) -> None:
    """Let a database whose `temp_directory` is `SPILL_PLACE` find unnamed files there."""
    if not database.filesystem_is_registered(_SCHEME):
        database.register_filesystem(SpillFiles())


def memory_database(memory: str) -> duckdb.DuckDBPyConnection:
    """Open a database in memory, of which as much as is said stays there; the rest goes to unnamed files.

    >>> with memory_database("100MB") as database:
    ...     database.sql("SELECT max(range) FROM range(10)").fetchall()
    [(9,)]
    """
    import duckdb

    database = duckdb.connect(config={"memory_limit": memory, "temp_directory": SPILL_PLACE})
    add_spill_files(database)
    return database
