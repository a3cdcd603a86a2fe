"""What the tests of the studio share: a folder with a small table, its studio, and a browser that came in."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette

from incrowd.web.studio.app import studio_app
from incrowd.web.studio.sessions import Keys

PORT = 4321
WARDS = ("east", "west", "north")
POLICY = """\
# Decided without looking at the rows.
incrowd: 1
dataset:
  name: stays   # budgets are kept under this name
  rows: 2000
  population: 100000
source: stays.csv
columns:
  who: {role: identifier}
  age:
    role: quasi
    type: integer
    bounds: [0, 99]   # public
    hierarchy: {intervals: [10, 50]}
  ward:
    role: sensitive
    categories: [east, west, north]
release:
  method: safe
  levels: {age: 2, ward: 0}   # as readers need it
  rate: 1/2
  epsilon: 1
  delta: 1e-6
budget: {epsilon: 1.2, delta: 1e-6}
"""


def rows(many: int = 2000) -> str:
    """Return an invented table as text."""
    lines = (f"p{place},{place * 7 % 100},{WARDS[place % 3]}" for place in range(many))
    return "who,age,ward\n" + "\n".join(lines) + "\n"


@dataclass
class Visitor:
    """Sends requests to a studio in this process, as a browser does; `come_in` uses the address that was printed."""

    application: Starlette
    keys: Keys
    folder: Path
    cookies: httpx.Cookies = field(default_factory=httpx.Cookies)

    def come_in(self) -> Visitor:
        assert self.get(self.keys.address.removeprefix(self.keys.origin)).status_code == 200
        return self

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.send("GET", path, **more)

    def json(self, path: str) -> Any:
        reply = self.get(path + ("&" if "?" in path else "?") + "format=json")
        assert reply.status_code == 200, reply.text
        return reply.json()

    def post(self, path: str, form: dict[str, str] | None = None, **more: Any) -> httpx.Response:
        """Send a form with the session's mark."""
        return self.send("POST", path, data={"mark": self.keys.mark} | (form or {}), **more)

    def save(self, path: str, form: dict[str, str]) -> httpx.Response:
        """Send a form that changes the policy, as it was made from the policy that is there."""
        base = self.json("/policy?policy=policy.yaml")["base"]
        return self.post(path, {"policy": "policy.yaml", "base": base} | form)

    def settled(self, path: str, seconds: float = 60.0) -> httpx.Response:
        """Return a page when no work goes on behind it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            reply = self.get(path)
            if "data-job=" not in reply.text:
                return reply
            time.sleep(0.02)
        raise AssertionError(path)

    def field(self, page: str, name: str) -> str:
        """Return the value of a hidden field of a page."""
        found = re.search(rf'name="{name}" value="([^"]*)"', page)
        assert found is not None, name
        return found[1]

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        return asyncio.run(self._send(method, path, **more))

    async def _send(self, method: str, path: str, **more: Any) -> httpx.Response:
        transport = httpx.ASGITransport(self.application, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url=self.keys.origin, cookies=self.cookies) as client:
            reply = await client.request(method, path, **more)
            self.cookies = client.cookies
            return reply


def studio(folder: Path, policy: str | None = POLICY, table: str | None = None) -> Visitor:
    """Return a visitor who is still outside the studio of a folder with a table and a policy."""
    (folder / "stays.csv").write_text(rows() if table is None else table, encoding="utf-8")
    if policy is not None:
        (folder / "policy.yaml").write_text(policy, encoding="utf-8")
    keys = Keys(PORT)
    return Visitor(studio_app(folder, keys), keys, folder)
