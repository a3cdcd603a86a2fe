"""The studio of a folder, opened in a real Chromium that Playwright drives; no browser is downloaded."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from incrowd.web.strict_http import StrictProtocol
from incrowd.web.studio.app import studio_app
from incrowd.web.studio.launch import loopback_sockets
from incrowd.web.studio.sessions import Keys
from tests.browser.chromium import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost, EXCLUDE *.localhost",
]  # fmt: skip
PATIENCE = 600_000.0
"""Waits end by events; this limit, in milliseconds, only ends a page on which the event can never come."""


@contextmanager
def browsing() -> Iterator[Browser]:
    """Start the browser."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE)
        yield browser
        browser.close()


@dataclass
class Visit:
    """A browser inside a studio: its tabs, and everything that they complained about or asked of others."""

    folder: Path
    address: str
    context: BrowserContext
    complaints: list[str] = field(default_factory=list)

    def tab(self, path: str = "/") -> Page:
        """Open a tab."""
        page = self.context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda problem: self.complaints.append(str(problem)))
        page.on("request", lambda sent: None if sent.url.startswith(self.address) else self.complaints.append(sent.url))
        page.goto(self.address + path)
        return page


@contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[Keys]:
    """Serve the studio of a folder, as the command does, and give its keys."""
    sockets = loopback_sockets(port)
    keys = Keys(int(sockets[0].getsockname()[1]))
    config = uvicorn.Config(studio_app(folder, keys), log_config=None, ws="none", http=StrictProtocol)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": sockets})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.02)
        yield keys
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def visiting(browser: Browser, folder: Path, width: int = 1280) -> Iterator[Visit]:
    """Serve the studio of a folder and come in by the address that is printed."""
    with serving(folder) as keys:
        context = browser.new_context(viewport={"width": width, "height": 900})
        visit = Visit(folder, keys.origin, context)
        entry = visit.tab(keys.address.removeprefix(keys.origin))
        entry.wait_for_url(f"{keys.origin}/")
        entry.close()
        yield visit
        context.close()


_SIDEWAYS = """() => [...document.querySelectorAll("html, body *")]
  .filter((part) => part.scrollWidth > part.clientWidth + 1 && part.clientWidth)
  .filter((part) => part.tagName === "HTML" || /auto|scroll/.test(getComputedStyle(part).overflowX))
  .map((part) => `${part.tagName} ${part.className} ${part.innerText.slice(0, 40)}`)"""


def sideways(page: Page) -> list[str]:
    """Return the parts of a page that have to be scrolled sideways."""
    return list(page.evaluate(_SIDEWAYS))


def assert_accessible(page: Page) -> None:
    """Assert that axe finds nothing serious."""
    from axe_playwright_python.sync_playwright import Axe

    found: dict[str, Any] = Axe().run(page).response
    serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in serious] == []
