"""An attacker at a server: one question, whose groups are thousands of independent trials of one attack."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI
from numpy.typing import NDArray

from incrowd.governance.access.book import Access
from incrowd.governance.access.grant import Holder, Signature
from incrowd.governance.access.roles import Role
from incrowd.web.serving import Order, opened
from incrowd.web.settings import Settings
from tests.audit.auditing import Trials, proved_epsilon

CELLS = 6_000
EPSILON = 1.0
NOT_SHOWN = -1e6
VALUE = {"type": "integer", "bounds": [0, 4], "missing": "drop"}
CELL = {"type": "integer", "bounds": [0, 2 * CELLS - 1], "missing": "drop"}

Row = tuple[str, object]
"""Whose row it is, and its value."""
Seen = NDArray[np.float64]
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
            "queries": {"table": "t"},
            "budget": {"epsilon": EPSILON, "delta": self.delta},
        }
        (folder / "policy.yaml").write_text(json.dumps(content))
        access = Access.create(f"sqlite:///{folder}/.incrowd/ledger.sqlite")
        eve, end = Holder("eve", Role.ANALYST), access.now() + timedelta(days=1)
        token = access.grant(eve, end, Signature("officer", "audit")).token
        return opened(Order((str(folder / "policy.yaml"),), None, Settings(pace=0.0))), token


def proved(one: Sequence[float], other: Sequence[float], delta: float = 0.0) -> float:
    """Return the epsilon that the most telling event proves, whichever of the two laws has more of it.

    The event is chosen on half of the trials and tested on the others, so that choosing it costs no certainty.
    """
    laws = np.array(one), np.array(other)
    values = np.unique(np.quantile(np.concatenate(laws), np.linspace(0.0, 1.0, 40), method="nearest"))
    candidates = [
        (*pair, chosen, value)
        for pair in (laws, laws[::-1])
        for value in values.tolist()
        for chosen in (np.equal, np.greater_equal, np.less_equal)
    ]

    def told(candidate: tuple[Seen, Seen, np.ufunc, float], half: int) -> float:
        first, second, chosen, value = candidate
        trials = [
            Trials(int(seen.sum()), seen.size) for seen in (chosen(law[half::2], value) for law in (first, second))
        ]
        return proved_epsilon(trials[0], trials[1], delta)

    best = max(candidates, key=lambda each: told(each, 0))
    return told(best, 1)
