"""Regular file: what others send is opened only if it is a file, without following a link, waiting, or reading on."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

from incrowd.engines.worker import count_file
from incrowd.errors import InvalidParameter

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def is_regular(path: Path) -> bool:
    """Whether there is a file of this name that is not a link, folder, device, pipe or socket.

    >>> is_regular(Path("/dev/null"))
    False
    """
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):  # a name may hold a null
        return False


def open_regular(path: Path, *, through_link: bool = False) -> BufferedReader:
    """Open a file to read its bytes; the descriptor is what is looked at, so nothing can be exchanged in between.

    >>> open_regular(Path("/dev/null"))
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: /dev/null is a link, a folder, a device or a pipe, and only files are read here.
    """
    problem = InvalidParameter(f"{path} is a link, a folder, a device or a pipe, and only files are read here.")
    if not through_link and path.is_symlink():  # where the system cannot refuse a link itself
        raise problem
    try:
        descriptor = os.open(path, _FLAGS | (0 if through_link else _NO_LINK))
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, or a socket
            raise problem from None
        raise
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise problem
    count_file(path, status.st_size)
    return os.fdopen(descriptor, "rb")


def read_bounded(path: Path, most: int, *, through_link: bool = False) -> bytes:
    """Return the content of a file of at most so many bytes, or refuse a larger one."""
    with open_regular(path, through_link=through_link) as file:
        content = file.read(most + 1)
    return bounded(content, most, path)


def bounded(content: bytes, most: int, path: Path) -> bytes:
    """Return a content of at most so many bytes, or refuse it.

    >>> bounded(b"1234", 3, Path("policy.yaml"))
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: policy.yaml is too large to be read here: it has more than 3 bytes.
    """
    if len(content) > most:
        raise InvalidParameter(f"{path} is too large to be read here: it has more than {most:,} bytes.")
    return content


Identity = tuple[int, int, int, int] | None


def identity_of(path: Path) -> Identity:
    """Return what tells a file from another one of its name: its place on the disk, its size, its last change."""
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
