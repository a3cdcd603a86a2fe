"""A real Spark for the tests: a standalone cluster of a master and two workers, and a Spark Connect server.

Each is started by the first who needs it and stopped when the last is gone, also when several processes run the tests:
whoever uses it holds a shared lock on the file `users`; the keeper waits until it can lock the file for itself, which
also happens when all users were killed, and then stops what it started.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

from tests.ports import free_port

MASTER = "local[2]"
CONFIG = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}
"""What the session of the tests is told: small data needs few tasks."""

JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m -XX:+UseSerialGC"
"""Java compiles what it runs once, not twice: it lives for minutes, on the cores that the tests need.

With one compiler it keeps room for 48 MB of code, which a whole run fills, and a full one stops without a word."""

HOSTS = ("127.0.0.1", "127.0.0.2")
"""Where the workers are: Spark starts no second attempt of a slow task on the host of the first."""

_PATIENCE = 600


def missing() -> str | None:
    """Return what is missing to run Spark here, or None."""
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "Java is not installed"
    return None


@contextmanager
def cluster(shared: Path) -> Iterator[str]:
    """Yield the address of the standalone cluster that everyone with the same `shared` folder uses."""
    with _kept(shared, "cluster") as address:
        yield address


@contextmanager
def connect_server(shared: Path) -> Iterator[str]:
    """Yield the address of the Spark Connect server that everyone with the same `shared` folder uses."""
    with _kept(shared, "connect") as address:
        yield address


def start_worker(address: str, host: str, scratch: Path) -> subprocess.Popen[bytes]:
    """Start a worker of the cluster in a session of its own; its host is an address of loopback."""
    resources = (
        "--cores",
        "1",
        "--memory",
        "1g",
        "--host",
        host,
        "--webui-port",
        "0",
        "--work-dir",
        str(scratch / "work"),
    )
    return _process(
        scratch, _program("spark-class"), "org.apache.spark.deploy.worker.Worker", *resources, address, host=host
    )


def environment(host: str = "127.0.0.1") -> dict[str, str]:
    """Return the environment in which Spark runs the Python of these tests on loopback."""
    return {
        **os.environ,
        "SPARK_HOME": str(_home()),
        "SPARK_LOCAL_IP": host,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_SUBMIT_OPTS": JAVA,
        "SPARK_DAEMON_JAVA_OPTS": JAVA,
    }


@contextmanager
def _kept(shared: Path, kind: str) -> Iterator[str]:
    folder = shared / f"spark-{kind}"
    folder.mkdir(exist_ok=True)
    with (folder / "users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        with (folder / "starting").open("w") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            if not (folder / "address").exists():
                _start(folder, kind)
        yield (folder / "address").read_text()


def _start(folder: Path, kind: str) -> None:
    log = folder / "log"
    with log.open("w") as output:
        done = subprocess.run(
            [sys.executable, __file__, str(folder), kind], stdout=output, stderr=output, check=False, env=environment()
        )
    if done.returncode:
        raise RuntimeError(f"Spark did not start:\n{log.read_text()}")


def _keep(folder: Path, kind: str) -> None:
    """Start Spark, leave a process behind that stops it, and return."""
    scratch = Path(tempfile.mkdtemp(prefix="incrowd-spark-"))
    started = _start_cluster(folder, scratch) if kind == "cluster" else _start_connect(folder, scratch)
    if os.fork():
        return
    os.setsid()
    with (folder / "users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        (folder / "address").unlink(missing_ok=True)
        for process in reversed(started):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        time.sleep(1)
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        shutil.rmtree(scratch, ignore_errors=True)


def _start_cluster(folder: Path, scratch: Path) -> list[subprocess.Popen[bytes]]:
    port, page = str(free_port()), str(free_port())
    address = f"spark://127.0.0.1:{port}"
    told = ("--host", "127.0.0.1", "--port", port, "--webui-port", page)
    master = _process(scratch, _program("spark-class"), "org.apache.spark.deploy.master.Master", *told)
    _until(lambda: _answers(port), scratch)
    workers = [start_worker(address, host, scratch) for host in HOSTS]
    _until(lambda: _registered(page), scratch)
    (folder / "address").write_text(address)
    return [master, *workers]


def _start_connect(folder: Path, scratch: Path) -> list[subprocess.Popen[bytes]]:
    port = str(free_port())
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
    }
    told = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = ("--class", server, "--master", MASTER, *told, "spark-internal")
    process = _process(scratch, _program("spark-submit"), *command)
    _until(lambda: _answers(port), scratch)
    (folder / "address").write_text(f"sc://127.0.0.1:{port}")
    return [process]


def _process(scratch: Path, *command: str, host: str = "127.0.0.1") -> subprocess.Popen[bytes]:
    with (scratch / "log").open("ab") as log:
        settings = environment(host)
        return subprocess.Popen(command, cwd=scratch, env=settings, stdout=log, stderr=log, start_new_session=True)


def _registered(page: str) -> bool:
    with suppress(OSError), urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:
        alive: int = answer.read().count(b'"state" : "ALIVE"')
        return alive >= len(HOSTS)
    return False


def _until(done: Callable[[], bool], scratch: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not done():
        if time.monotonic() > deadline:
            raise RuntimeError((scratch / "log").read_text())
        time.sleep(0.2)


def _answers(port: str) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", int(port)), 1):
        return True
    return False


def _program(name: str) -> str:
    return str(_home() / "bin" / name)


def _home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


if __name__ == "__main__":
    _keep(Path(sys.argv[1]), sys.argv[2])
