"""Another server on the same machine, visited in the same browser, receives nothing that opens the studio."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser.firefox import firefox
from tests.browser.visiting import Visit, browsing, serving, visiting
from tests.web.studio.visiting import POLICY, rows

ROWS = "/open?data=stays.csv&format=json"
PERSON = "p1234"
EXCHANGES = """async address => {
  const image = new Image();
  await new Promise(done => { image.onload = image.onerror = done; image.src = address + "/image"; });
  await fetch(address + "/fetch", {credentials: "include"});
  await fetch(address + "/post", {method: "POST", credentials: "include", body: "x=1"});
}"""
FORM = """address => {
  const form = document.createElement("form");
  Object.assign(form, {method: "post", action: address + "/form"});
  document.body.append(form);
  form.submit();
}"""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, family: socket.AddressFamily, address: str, port: int, neighbor: Neighbor) -> None:
        self.address_family = family
        super().__init__((address, port), _Handler)
        self.neighbor = neighbor


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.neighbor.received.append((self.path, dict(self.headers)))
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("access-control-allow-origin", self.headers.get("origin", "*"))
        self.send_header("access-control-allow-credentials", "true")
        self.send_header("set-cookie", 'odd={"a": [1, 2]}; Path=/')
        self.send_header("set-cookie", "incrowd-studio=mine; Path=/")
        self.send_header("set-cookie", "wide=1; Domain=localhost; Path=/")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>neighbor</title><p>hello")

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""


@dataclass
class Neighbor:
    """A server of somebody else, with all that it received."""

    port: int = 0
    received: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def paths(self) -> set[str]:
        return {path for path, _ in self.received}


@contextmanager
def neighboring() -> Iterator[Neighbor]:
    """Start a server at another port of 127.0.0.1, and of ::1 where the machine has it."""
    neighbor = Neighbor()
    servers = [_Server(socket.AF_INET, "127.0.0.1", 0, neighbor)]
    neighbor.port = servers[0].server_port
    with suppress(OSError):
        servers.append(_Server(socket.AF_INET6, "::1", neighbor.port, neighbor))
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield neighbor
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()


def plain(address: str, headers: dict[str, str]) -> tuple[int, str]:
    """Ask the studio for rows as a program without a browser does."""
    client = http.client.HTTPConnection("127.0.0.1", urlsplit(address).port, timeout=60)
    client.request("GET", ROWS, headers=headers)
    reply = client.getresponse()
    status, text = reply.status, reply.read().decode()
    client.close()
    return status, text


def furnished(folder: Path) -> Path:
    """Write rows and a policy into a folder."""
    (folder / "stays.csv").write_text(rows().replace("p0,", f"{PERSON},"), encoding="utf-8")
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    return folder


def assert_useless(address: str, neighbor: Neighbor) -> None:
    """Assert that a neighbor was visited in every way, and heard nothing with which the studio answers."""
    own = urlsplit(address)
    assert {"/typed", "/image", "/fetch", "/post", "/form", "/link"} <= neighbor.paths()
    hosts = {f"127.0.0.1:{own.port}", f"localhost:{own.port}", f"[::1]:{own.port}"}
    cookies = {""}
    for _, headers in neighbor.received:
        lower = {name.lower(): value for name, value in headers.items()}
        hosts |= {urlsplit(lower[name]).netloc for name in ("referer", "origin") if name in lower}
        cookies.add(lower.get("cookie", ""))
    for heard in hosts:
        for sent in cookies:
            status, text = plain(address, {"Host": heard, "Cookie": sent})
            assert status in (401, 421)
            assert PERSON not in text
    assert (own.hostname or "").removesuffix(".localhost") not in json.dumps(neighbor.received)


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    with browsing() as browser, visiting(browser, furnished(tmp_path_factory.mktemp("visit"))) as inside:
        yield inside


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_at_another_port_gets_nothing_that_reads_rows(visit: Visit, host: str) -> None:
    own = urlsplit(visit.address)
    cookie = "; ".join(f"{each['name']}={each['value']}" for each in visit.context.cookies(visit.address))
    status, text = plain(visit.address, {"Host": own.netloc, "Cookie": cookie})
    assert status == 200
    assert PERSON in text  # so the browser's own cookie and host do open the studio
    with neighboring() as neighbor:
        address = f"http://{host}:{neighbor.port}"
        page = visit.context.new_page()
        page.goto(f"{address}/typed")
        page.evaluate(EXCHANGES, address)
        page.evaluate(FORM, address)
        page.wait_for_url("**/form")
        page.goto(visit.address + "/")
        page.evaluate("address => { location.href = address + '/link' }", address)
        page.wait_for_url("**/link")
        assert_useless(visit.address, neighbor)
        page.close()


def test_a_page_of_another_server_cannot_lock_the_holder_out(visit: Visit) -> None:
    with neighboring() as neighbor:
        page = visit.context.new_page()
        for host in ("127.0.0.1", "localhost"):
            page.goto(f"http://{host}:{neighbor.port}/")
        page.goto(f"{visit.address}/open?data=stays.csv")
        assert PERSON in page.content()
        page.close()


def test_firefox_gives_a_server_at_another_port_nothing_that_reads_rows(tmp_path: Path) -> None:
    with serving(furnished(tmp_path)) as keys, firefox() as browser, neighboring() as neighbor:
        browser.goto(keys.address)
        browser.wait_for(f"{keys.origin}/")
        own = {"Host": keys.host, "Cookie": "; ".join("=".join(pair) for pair in browser.cookies().items())}
        status, text = plain(keys.origin, own)
        assert (status, PERSON in text) == (200, True)
        for host in ("127.0.0.1", "localhost"):
            address = f"http://{host}:{neighbor.port}"
            browser.goto(f"{address}/typed")
            browser.evaluate(EXCHANGES, address)
            browser.evaluate(FORM, address)
            browser.wait_for("/form")
            browser.goto(f"{keys.origin}/")
            browser.evaluate("address => { location.href = address + '/link' }", address)
            browser.wait_for("/link")
        assert_useless(keys.origin, neighbor)
        browser.goto(f"{keys.origin}/open?data=stays.csv")
        assert PERSON in browser.content  # cookies of others do not lock the holder out
