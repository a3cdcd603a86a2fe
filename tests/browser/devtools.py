"""A page in a real headless Chromium, driven by its debugging pipe: what it computes, and every request it sends."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.browser.chromium import chromium


@dataclass
class DebuggedPage:
    """A tab of the browser; messages end with a zero byte."""

    reading: int
    writing: int
    session: str = ""
    number: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    rest: bytes = b""

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; requests that are told of meanwhile are noted down."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writing, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("method") == "Network.requestWillBeSent":
                self.requests.append(told["params"]["request"])
            if told.get("id") == self.number:
                assert "error" not in told, told
                return dict(told["result"])

    def evaluate(self, script: str) -> Any:
        """Return what a script finds in the page, awaited."""
        told = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def open(self, address: str, ready: str) -> None:
        """Go to an address and wait until a condition holds there."""
        self.call("Page.navigate", url=address)
        while not self.evaluate(f"Boolean({ready})"):
            time.sleep(0.05)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            more = os.read(self.reading, 1 << 16)
            assert more, "the browser has ended"
            self.rest += more
        text, _, self.rest = self.rest.partition(b"\0")
        return dict(json.loads(text))


@contextmanager
def debugged(folder: Path) -> Iterator[DebuggedPage]:
    """Start a browser that reaches this machine alone, and give an empty tab of it."""
    (theirs, writing), (reading, told) = os.pipe(), os.pipe()
    command = [
        chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1", "--remote-debugging-pipe",
        f"--user-data-dir={folder / 'profile'}", "about:blank",
    ]  # fmt: skip

    def connect() -> None:
        """Put the pipes where the browser reads commands, 3, and writes what happens, 4."""
        high = [fcntl.fcntl(each, fcntl.F_DUPFD, 64) for each in (theirs, told)]
        for number, each in enumerate(high, start=3):
            os.dup2(each, number)

    quiet = subprocess.DEVNULL
    started = subprocess.Popen(  # between fork and exec nothing happens but system calls
        command,
        preexec_fn=connect,  # noqa: PLW1509
        pass_fds=(3, 4),
        stdout=quiet,
        stderr=quiet,
    )
    with started as process:
        os.close(theirs)
        os.close(told)
        try:
            page = DebuggedPage(reading, writing)
            target = page.call("Target.createTarget", url="about:blank")["targetId"]
            page.session = page.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Network", "Runtime"):
                page.call(f"{domain}.enable")
            yield page
        finally:
            process.kill()
            os.close(writing)
            os.close(reading)
