"""A collector that is served to a real browser, honest or not, and what a visitor does on its page."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from incrowd.web.collect.app import SIZE, collector_app
from incrowd.web.settings import Settings
from incrowd.workflows.collect.collector import Collector
from tests.browser.devtools import DebuggedPage
from tests.ports import free_port

READY = "document.documentElement?.dataset.ready"


@dataclass(frozen=True)
class Lying:
    """A collector that publishes other documents than it should."""

    inner: ASGIApp
    documents: Mapping[str, Any]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] in self.documents:
            await JSONResponse(self.documents[scope["path"]])(scope, receive, send)
        else:
            await self.inner(scope, receive, send)


@contextmanager
def serving(collector: Collector, documents: Mapping[str, Any] | None = None) -> Iterator[str]:
    """Serve a collector, with some documents replaced, and give its address."""
    port = free_port()
    application = Lying(collector_app(collector, Settings(size=SIZE)), documents or {})
    config = uvicorn.Config(application, port=port, log_config=None, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@dataclass(frozen=True)
class Visit:
    """A visitor at the page of a survey."""

    page: DebuggedPage

    def arrive(self, address: str, token: str = "", ready: str = "yes") -> None:
        """Open the page anew, by a link with a token."""
        self.page.call("Page.navigate", url="about:blank")
        self.page.open(f"{address}/#{token}" if token else address, f"{READY} === '{ready}'")

    def fill(self, answers: Mapping[str, str], prefix: str = "q-") -> None:
        """Write answers into the fields."""
        for name, answer in answers.items():
            self.page.evaluate(
                f"(([id, answer]) => {{ const one = document.getElementById(id);"
                " if (one) { one.value = answer; one.dispatchEvent(new Event('input', { bubbles: true })); return; }"
                " const radio = [...document.getElementsByName(id)].find(each => each.value === answer);"
                " if (radio) radio.click(); }"
                f")({json.dumps([prefix + name, answer])})"
            )

    def press(self, *keys: str) -> None:
        """Press keys one after the other, as on a keyboard; Tab, Enter, Space and arrows go by their names."""
        codes = {"Tab": 9, "Enter": 13, "Space": 32, "ArrowDown": 40}
        for key in keys:
            text = {"Enter": "\r", "Space": " "}.get(key, key if key not in codes else "")
            name = " " if key == "Space" else key
            event = {"key": name, "code": key if key in codes else "", "windowsVirtualKeyCode": codes.get(key, 0)}
            self.page.call("Input.dispatchKeyEvent", type="keyDown", text=text, **event)
            self.page.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def click(self, what: str) -> None:
        """Press a button."""
        self.page.evaluate(f"document.querySelector('{what}').click()")

    def randomize(self, answers: Mapping[str, str]) -> str:
        """Answer and randomize, and return what would be sent."""
        self.fill(answers)
        self.click("#form button")
        return self.text("sent")

    def send(self) -> str:
        """Send the report, and return what the page says."""
        self.click("#send")
        return self.said()

    def said(self) -> str:
        """Return what the page says, as soon as it says something."""
        return str(
            self.page.evaluate(
                "(async () => { const at = document.getElementById('message');"
                "while (!at.textContent) await new Promise(done => setTimeout(done, 20)); return at.textContent; })()"
            )
        )

    def text(self, id_: str) -> str:
        """Return the text of an element."""
        return str(self.page.evaluate(f"document.getElementById('{id_}').textContent"))

    @property
    def stored(self) -> dict[str, str]:
        """What the browser stores for this address."""
        return dict(self.page.evaluate("Object.fromEntries(Object.entries(localStorage))"))
