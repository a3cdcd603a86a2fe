"""An attacker at a server: one question, whose groups are thousands of independent trials of one attack."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from incrowd.governance.access_list import AccessList
from incrowd.governance.grant import AccessDecision, AccessRole, User
from incrowd.web.app import ServeOrder, open_server
from incrowd.web.settings import Settings
from tests.audit.auditing import Events

CELLS = 6_000
EPSILON = 1.0
NOT_SHOWN = -1e6
EVENTS = Events(range(-4, 17))
VALUE = {"type": "integer", "bounds": [0, 4], "missing": "drop"}
CELL = {"type": "integer", "bounds": [0, 2 * CELLS - 1], "missing": "drop"}

Row = tuple[str, object]
"""Whose row it is, and its value."""
Reply = dict[str, Any]
Sending = Callable[[FastAPI, str, dict[str, object]], Reply]


@dataclass(frozen=True)
class Attack:
    """Rows that are in every cell, and those of the one person who is in every second cell only.

    People of different cells are different people, so each pair of cells is a pair of neighboring tables.
    """

    sql: str
    others: Sequence[Row]
    you: Sequence[Row]
    delta: float = 0.0
    cell: Mapping[str, object] = field(default_factory=lambda: CELL)
    unit: Mapping[str, object] | None = None

    def seen(self, folder: Path, send: Sending) -> tuple[list[float], list[float]]:
        """Return the number that the server tells of each cell with you and without you; NOT_SHOWN if it tells none."""
        server, token = self._server(folder)
        asked: dict[str, object] = {"sql": self.sql, "epsilon": str(EPSILON)}
        reply = send(server, token, asked | ({"delta": str(self.delta)} if self.delta else {}))
        server.state.close()
        cells, numbers = (column["values"] for column in reply["answer"]["columns"])
        told = {int(str(cell).removeprefix("c")): float(each) for cell, each in zip(cells, numbers, strict=True)}
        with_you, without = ([told.get(cell, NOT_SHOWN) for cell in range(side, 2 * CELLS, 2)] for side in (1, 0))
        return with_you, without

    def _server(self, folder: Path) -> tuple[FastAPI, str]:
        mark = "c" if self.cell["type"] == "text" else ""
        lines = [
            f"{mark}{cell},{who}{cell},{value}\n"
            for cell in range(2 * CELLS)
            for who, value in (*self.others, *(self.you if cell % 2 else ()))
        ]
        (folder / "table.csv").write_text("cell,who,value\n" + "".join(lines))
        dataset = {"name": "t"} | ({"unit": self.unit} if self.unit else {})
        content = {
            "incrowd": 1,
            "dataset": dataset,
            "source": "table.csv",
            "columns": {"cell": self.cell, "who": {"role": "identifier"}, "value": VALUE},
            "queries": {"table": "t", "open": True, "most_epsilon": 1000},
            "budget": {"epsilon": EPSILON, "delta": self.delta},
        }
        (folder / "policy.yaml").write_text(json.dumps(content))
        access = AccessList.create(f"sqlite:///{folder}/.incrowd/ledger.sqlite")
        eve, end = User("eve", AccessRole.ANALYST), access.now() + timedelta(days=1)
        token = access.grant(eve, end, AccessDecision("officer", "audit")).token
        return open_server(ServeOrder((str(folder / "policy.yaml"),), None, Settings(pace=0.0))), token
