"""Unnamed file: for rows that do not fit in memory; it ends with the process, however that ends."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref


class UnnamedFile:
    """A file without a name, written and read at any place, from many threads at once.

    Seeking and reading are two calls, so each thread has a place of its own.  Where an open file cannot lose its name
    (Windows), no other process may open it, and the system removes it when the process ends.
    """

    def __init__(self) -> None:
        with tempfile.TemporaryFile(prefix="incrowd-") as file:
            self._file = os.dup(file.fileno())
        self.close = weakref.finalize(self, os.close, self._file)  # a database may drop a file without closing it
        self._own = threading.local()
        self._turn = threading.Lock()  # without pread, seeking and reading are one act

    def seek(self, place: int, whence: int = os.SEEK_SET) -> int:
        """Set the place of this thread."""
        size = os.fstat(self._file).st_size
        self._own.place = place + {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: size}[whence]
        return self.tell()

    def tell(self) -> int:
        """Return the place of this thread."""
        return int(getattr(self._own, "place", 0))

    def read(self, size: int) -> bytes:
        """Read from the place of this thread on."""
        content = self._read_at(size, self.tell())
        self._own.place = self.tell() + len(content)
        return content

    def write(self, content: bytes | memoryview) -> int:
        """Write all of it at the place of this thread."""
        rest, start = memoryview(content), self.tell()
        while rest:
            done = self._write_at(rest, self.tell())
            self._own.place, rest = self.tell() + done, rest[done:]
        return self.tell() - start

    def truncate(self, size: int) -> int:
        """Free what lies beyond this size."""
        os.truncate(self._file, size)
        return size

    def flush(self) -> None:
        """Do nothing: writes are not buffered, and need not outlive the process."""

    def _read_at(self, size: int, place: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._file, size, place)
        with self._turn:
            os.lseek(self._file, place, os.SEEK_SET)
            return os.read(self._file, size)

    def _write_at(self, content: memoryview, place: int) -> int:
        if hasattr(os, "pwrite"):
            return os.pwrite(self._file, content, place)
        with self._turn:
            os.lseek(self._file, place, os.SEEK_SET)
            return os.write(self._file, content)
