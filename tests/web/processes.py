"""A real server in processes of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from tests.ports import free_port

PATIENCE = 240.0


@contextmanager
def serving(policy: Path, *options: str) -> Iterator[tuple[str, int]]:
    """Run a server, give its address and process, and stop it gently."""
    port = free_port()
    command = [sys.executable, "-m", "incrowd", "serve", "--policy", str(policy), "--port", str(port), *options]
    said, log = policy.parent / "said", policy.parent / "log"
    with said.open("w") as out, log.open("w") as err, subprocess.Popen(command, stdout=out, stderr=err) as process:
        try:
            wait_for(f"http://127.0.0.1:{port}/healthz", process)
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            process.terminate()
            process.wait(PATIENCE)  # workers that are just starting finish that first
            assert all("event" in json.loads(line) for line in log.read_text().splitlines())
            assert said.read_text().rstrip().endswith("Stop with Ctrl-C.")  # and nothing of what libraries like to say


def wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until something answers at an address, for as long as the process lives."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            with urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the server did not start")
