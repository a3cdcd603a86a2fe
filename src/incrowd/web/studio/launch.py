"""Launch: the sockets of a studio, and the file that leads the browser to it without telling anyone else."""

from __future__ import annotations

import errno
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from html import escape
from pathlib import Path

from incrowd.errors import InvalidParameter, OutputUnavailable

_LOOPBACK = "127.0.0.1"
_LOOPBACK_6 = "::1"
_ATTEMPTS = 20  # of free ports that another program may take first
_BACKLOG = 128
_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<title>incrowd studio</title>
<link rel="icon" href="data:,">
<meta http-equiv="refresh" content="0;url={address}">
<p><a href="{address}">Open the studio</a></p>
</html>
"""


def loopback_sockets(port: int) -> list[socket.socket]:
    """Return sockets that listen at one port of every loopback address; port 0 stands for a free one.

    A browser looks for `*.localhost` at ::1 first and then at 127.0.0.1.  Where only one of them were taken, another
    user of the machine could listen at the other, and would receive the token.
    """
    if not 0 <= port < 65536:
        raise InvalidParameter("a port is a number from 1 to 65535.")
    for _ in range(1 if port else _ATTEMPTS):
        with suppress(OSError):
            return _listening(port)
    which = f"port {port} is" if port else "no port is"
    raise InvalidParameter(f"{which} free at both {_LOOPBACK} and {_LOOPBACK_6}: choose another with --port.")


def _listening(port: int) -> list[socket.socket]:
    first = _listener(socket.AF_INET, _LOOPBACK, port)
    try:
        second = _listener(socket.AF_INET6, _LOOPBACK_6, int(first.getsockname()[1]))
    except OSError as error:
        if error.errno in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):  # without IPv6, nobody else listens there
            return [first]
        first.close()
        raise
    return [first, second]


def _listener(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    made = socket.socket(family)
    try:
        if sys.platform == "win32":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)  # nobody else can share the port
        else:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port that a studio has just left is free
        if family is socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((address, port))
        made.listen(_BACKLOG)
    except OSError:
        made.close()
        raise
    return made


@contextmanager
def only_studio(folder: Path) -> Iterator[None]:
    """Hold a folder for one studio: two would overwrite each other's edits of a policy without a word.

    The folder itself is locked, so that no file is left behind, and a studio that was killed holds nothing.
    """
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):  # Windows, or a folder that cannot be opened: whoever reads it says so
        yield
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidParameter(
                f"another studio has {folder} open: use that one, or stop it with Ctrl-C first."
            ) from None
        except OSError:  # a network folder without locks
            pass
        yield
    finally:
        os.close(handle)


@dataclass(frozen=True)
class LaunchFile:
    """An HTML file, for its owner's eyes only, that leads a browser to an address.

    Everybody on a machine can read the command line of a browser.  It names this file, and not the address.
    """

    path: Path

    @classmethod
    def to(cls, address: str) -> LaunchFile:
        """Write the file with mode 0600 into a new folder with mode 0700."""
        try:
            path = _new_folder() / "open.html"
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(_PAGE.format(address=escape(address)))
        except OSError as error:
            reason = error.strerror or "no reason given"
            raise OutputUnavailable(
                f"the file that leads the browser here was not written: {reason}. Use --no-open."
            ) from None
        return cls(path)

    @property
    def address(self) -> str:
        """The address of the file itself."""
        return self.path.as_uri()

    def remove(self) -> None:
        """Remove the file and its folder, if they are still there."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
            self.path.parent.rmdir()


def _new_folder() -> Path:
    """Return a new folder in the home of the user: browsers in a sandbox see no hidden folders and another /tmp."""
    with suppress(OSError, RuntimeError):
        return Path(tempfile.mkdtemp(prefix="incrowd-studio-", dir=Path.home()))
    return Path(tempfile.mkdtemp(prefix="incrowd-studio-"))
