"""Spill: what does not fit in memory goes to files without a name, which end with the process however it ends."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from typing import TYPE_CHECKING, Any

from fsspec import AbstractFileSystem

if TYPE_CHECKING:
    import duckdb

_SCHEME = "incrowd-spill"
SPILL_PLACE = f"{_SCHEME}://memory"
"""The `temp_directory` of every database of ours; `add_spill_files` makes it known."""


class SpillFile:
    """An unnamed file that a database writes and reads at places of its choice, from many threads at once.

    A database goes to a place and then reads or writes there, in two calls; so each thread has a place of its own.
    """

    def __init__(self) -> None:
        with tempfile.TemporaryFile(prefix="incrowd-") as file:
            self._file = os.dup(file.fileno())
        self.close = weakref.finalize(self, os.close, self._file)  # a database may drop a file without closing it
        self._own = threading.local()

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place, in this thread."""
        size = os.fstat(self._file).st_size
        self._own.place = place + {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: size}[whence]
        return self.tell()

    def tell(self) -> int:
        """Return the place of this thread."""
        return int(getattr(self._own, "place", 0))

    def read(self, size: int) -> bytes:
        """Read from the place of this thread on."""
        content = os.pread(self._file, size, self.tell())
        self._own.place = self.tell() + len(content)
        return content

    def write(self, content: bytes) -> int:
        """Write all of it at the place of this thread."""
        rest, start = memoryview(content), self.tell()
        while rest:
            done = os.pwrite(self._file, rest, self.tell())
            self._own.place, rest = self.tell() + done, rest[done:]
        return self.tell() - start

    def truncate(self, size: int) -> int:
        """Give back what lies behind this size."""
        os.truncate(self._file, size)
        return size

    def flush(self) -> None:
        """Do nothing: nothing is held back, and nothing has to outlive the process."""


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

    def open(self, path: str, mode: str = "rb", **_: Any) -> SpillFile:
        """Open a new file, whatever the mode: a database opens each of them once."""
        del mode
        self._open.add(path)
        return SpillFile()

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
