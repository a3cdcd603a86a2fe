"""Serving: what a worker process opens, told by its parent through the environment."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from incrowd.governance.books import open_books
from incrowd.web.app import app
from incrowd.web.settings import Settings

if TYPE_CHECKING:
    from fastapi import FastAPI

VARIABLE = "INCROWD_SERVE"


@dataclass(frozen=True)
class ServeOrder:
    """What is served: policies that share a ledger, and within which limits.

    >>> order = ServeOrder(("policy.yaml",), None, Settings(pace=1.0))
    >>> ServeOrder.read(order.written()) == order
    True
    """

    policies: tuple[str, ...]
    data: str | None
    settings: Settings

    def written(self) -> str:
        """Return the text that the environment carries; it holds no secret."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> ServeOrder:
        """Read what `written` wrote."""
        plain = json.loads(text)
        return cls(tuple(plain["policies"]), plain["data"], Settings(**plain["settings"]))


def application() -> FastAPI:
    """Return the application of this worker, as the environment orders it."""
    return opened(ServeOrder.read(os.environ[VARIABLE]))


def opened(order: ServeOrder) -> FastAPI:
    """Open the tables and books of an order and return the application around them, which closes them at its end."""
    from incrowd.workflows.policy.policy import load_policy

    policies = [load_policy(path) for path in order.policies]
    from incrowd.workflows.ask.desk import open_desk

    books = open_books(policies[0].ledger_address)
    with ExitStack() as stack:
        desk = stack.enter_context(open_desk(policies, order.data))
        return app(desk, books, order.settings, stack.pop_all().close)
