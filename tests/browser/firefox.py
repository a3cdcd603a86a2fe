"""A real headless Firefox, driven by Marionette, the protocol that is built into it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_port

_PATIENCE = 600.0
_PREFERENCES = {
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.http.speculative-parallel-limit": 0,
    "toolkit.telemetry.enabled": False,
}


@dataclass
class Firefox:
    """One window."""

    connection: socket.socket
    number: int = 0

    def ask(self, command: str, **values: Any) -> Any:
        """Send a command and return its result."""
        self.number += 1
        text = json.dumps([0, self.number, f"WebDriver:{command}", values]).encode()
        self.connection.sendall(str(len(text)).encode() + b":" + text)
        _, number, error, result = self._reply()
        assert (number, error) == (self.number, None), error
        return result

    def goto(self, address: str) -> None:
        """Load a page, with what it leads to at once."""
        self.ask("Navigate", url=address)

    def evaluate(self, function: str, *values: str) -> Any:
        """Call a function of the page, and wait for what it promises."""
        script = (
            f"const done = arguments[arguments.length - 1]; Promise.resolve(({function})(...arguments)).then(done);"
        )
        return self.ask("ExecuteAsyncScript", script=script, args=list(values))["value"]

    @property
    def address(self) -> str:
        return str(self.ask("GetCurrentURL")["value"])

    @property
    def content(self) -> str:
        return str(self.ask("GetPageSource")["value"])

    def cookies(self) -> dict[str, str]:
        """Return the cookies that belong to the page."""
        return {cookie["name"]: cookie["value"] for cookie in self.ask("GetCookies")}

    def wait_for(self, ending: str) -> None:
        """Wait until a page whose address ends so has been loaded."""
        end = time.monotonic() + _PATIENCE
        while not (self.address.endswith(ending) and self.evaluate("() => document.readyState") == "complete"):
            assert time.monotonic() < end, f"no page at {ending}"
            time.sleep(0.05)

    def _reply(self) -> Any:
        size = b""
        while not size.endswith(b":"):
            size += self._piece(1)
        text, length = b"", int(size[:-1])
        while len(text) < length:
            text += self._piece(length - len(text))
        return json.loads(text)

    def _piece(self, size: int) -> bytes:
        piece = self.connection.recv(size)
        assert piece, "Firefox has ended"
        return piece


@contextmanager
def firefox() -> Iterator[Firefox]:
    """Start a Firefox with a profile of its own; without one, skip."""
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if program is None:
        pytest.skip("no Firefox is installed")
    with tempfile.TemporaryDirectory(prefix="incrowd-firefox-") as profile:
        port = free_port()
        preferences = _PREFERENCES | {"marionette.port": port}
        lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items())
        Path(profile, "user.js").write_text("".join(lines), encoding="utf-8")
        command = [program, "--headless", "--marionette", "--no-remote", "--profile", profile]
        process = subprocess.Popen(
            command, env=os.environ | {"HOME": profile}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            window = Firefox(_connected(port, process))
            window._reply()  # its greeting
            window.ask("NewSession", strictFileInteractability=True)
            yield window
            window.connection.close()
        finally:
            process.terminate()
            process.wait()


def _connected(port: int, process: subprocess.Popen[bytes]) -> socket.socket:
    end = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < end:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE)
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"Firefox did not start: {process.poll()}")
