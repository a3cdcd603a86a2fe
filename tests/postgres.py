"""A real PostgreSQL server for the tests: started by the first who needs it, stopped when the last is gone.

Whoever uses the server holds a shared lock on the file `users`; the keeper waits until it can lock the file for itself,
which also happens when all users were killed, and then stops the server.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

_PLACES = ("/usr/lib/postgresql", "/usr/local/pgsql", "/usr/pgsql-*", "/opt/homebrew/opt/postgresql*")
_NUMBERS = count()
_SETTINGS = ("listen_addresses=", "max_connections=150")


def binaries() -> Path | None:
    """Return the folder with `initdb` and `postgres`, the newest if there are several, or None."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    patterns = [f"{place}/bin/initdb".lstrip("/") for place in _PLACES]
    patterns += [f"{place}/*/bin/initdb".lstrip("/") for place in _PLACES]
    candidates = [path for pattern in patterns for path in Path("/").glob(pattern)]
    return max(candidates, key=_version).parent if candidates else None


@contextmanager
def server(shared: Path) -> Iterator[str]:
    """Yield the address of the server that everyone with the same `shared` folder uses."""
    with (shared / "users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        with (shared / "starting").open("w") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            if not (shared / "address").exists():
                _start(shared)
        yield (shared / "address").read_text()


@contextmanager
def schema(server: str) -> Iterator[str]:
    """Yield the address of a schema of a server that nobody else uses, and remove it at the end."""
    from sqlalchemy import NullPool, create_engine, text

    engine = create_engine(server.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    name = f"test_{os.getpid()}_{next(_NUMBERS)}"
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    yield f"{server}&options=-csearch_path%3D{name}"
    with engine.begin() as connection:
        connection.execute(text(f"DROP SCHEMA {name} CASCADE"))


@contextmanager
def database(server: str) -> Iterator[str]:
    """Yield the address of a database of a server in which nobody else has tables, and remove it at the end."""
    from sqlalchemy import NullPool, create_engine, text

    engine = create_engine(server.replace("postgresql:", "postgresql+psycopg:"), poolclass=NullPool)
    name = f"test_{os.getpid()}_{next(_NUMBERS)}"
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))


def _start(shared: Path) -> None:
    log = shared / "log"
    with log.open("w") as output:
        done = subprocess.run([sys.executable, __file__, str(shared)], stdout=output, stderr=output, check=False)
    if done.returncode:
        raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}")


def _keep(shared: Path) -> None:
    """Start a server, leave a process behind that stops it, and return."""
    found = binaries()
    if found is None:
        raise RuntimeError("no PostgreSQL server is installed here")
    folder = Path(tempfile.mkdtemp(prefix="incrowd-pg-"))
    user = _unprivileged()
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    _run(
        found / "initdb", "-D", folder / "data", "-U", "incrowd", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"
    )
    options = " ".join(f"-c {setting}" for setting in (*_SETTINGS, f"unix_socket_directories={folder}"))
    _run(found / "pg_ctl", "-D", folder / "data", "-l", folder / "log", "-o", options, "-w", "start")
    (shared / "address").write_text(f"postgresql://incrowd@/postgres?host={folder}")
    if os.fork():
        return
    os.setsid()
    with (shared / "users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        (shared / "address").unlink(missing_ok=True)
        _run(found / "pg_ctl", "-D", folder / "data", "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def _run(*command: str | Path) -> None:
    """Run a command as a user PostgreSQL accepts: it refuses root."""
    user = _unprivileged()
    words = [str(word) for word in command]
    if user is None:
        subprocess.run(words, check=True, cwd="/")
    else:
        subprocess.run(words, check=True, cwd="/", user=user.pw_uid, group=user.pw_gid, extra_groups=[])


def _unprivileged() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    accounts = {account.pw_name: account for account in pwd.getpwall()}
    return accounts.get("postgres") or accounts["nobody"]


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in "".join(c if c.isdigit() else " " for c in str(path)).split())


if __name__ == "__main__":
    _keep(Path(sys.argv[1]))
