"""An attacker at the server: what answers over HTTP prove about one row never exceeds what was charged.

Every group of an answer has noise of its own, so two tables that differ by one row in each of many groups give as many
independent trials of the same attack with one question each.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from incrowd.governance.access_list import AccessList
from incrowd.governance.grant import AccessDecision, AccessRole, User
from incrowd.web.app import ServeOrder, open_server
from incrowd.web.settings import Settings
from tests.audit.auditing import Trials, proved_epsilon, shifted, sure_epsilon
from tests.coins import cube_points, cube_radius
from tests.statistics.alarm import FALSE_ALARM
from tests.web.serving import Browser

CELLS, ROWS = 10_000, 3
EPSILON = 1.0


def answered(folder: Path, last: Iterable[int], sql: str) -> list[list[int]]:
    """Ask a server about a table with three rows of value 1 in each cell, and these further ones."""
    folder.mkdir()
    cells = [f"{cell},{value}\n" for cell in range(CELLS) for value in (*[1] * ROWS, *last)]
    (folder / "table.csv").write_text("cell,value\n" + "".join(cells))
    content = {
        "incrowd": 1,
        "dataset": {"name": "t"},
        "source": "table.csv",
        "columns": {
            "cell": {"type": "integer", "bounds": [0, CELLS - 1], "missing": "drop"},
            "value": {"type": "integer", "bounds": [0, 2], "missing": "drop"},
        },
        "queries": {"table": "t", "open": True, "most_epsilon": 1000},
        "budget": {"epsilon": EPSILON},
    }
    (folder / "policy.yaml").write_text(json.dumps(content))
    access = AccessList.create(f"sqlite:///{folder}/.incrowd/ledger.sqlite")
    holder, end = User("eve", AccessRole.ANALYST), access.now() + timedelta(days=1)
    token = access.grant(holder, end, AccessDecision("officer", "audit")).token
    server = open_server(ServeOrder((str(folder / "policy.yaml"),), None, Settings(pace=0.0)))
    headers = {"Authorization": f"Bearer {token}"}
    reply = Browser(server).post("/v1/query", json={"sql": sql, "epsilon": EPSILON}, headers=headers)
    server.state.close()
    assert reply.status_code == 200, reply.text
    return [column["values"] for column in reply.json()["answer"]["columns"]]


def test_counts_prove_what_was_charged_and_no_more(tmp_path: Path) -> None:
    sql = "SELECT cell, COUNT(*) AS n FROM t GROUP BY cell"
    (_, with_you), (_, without) = (answered(tmp_path / name, last, sql) for name, last in (("a", [2]), ("b", [])))
    seen = [Trials.count(count > ROWS for count in counts) for counts in (with_you, without)]
    assert seen[0].of == CELLS
    sure = sure_epsilon(shifted(1, 1 / EPSILON), CELLS)
    assert 0.75 * EPSILON < sure <= proved_epsilon(seen[0], seen[1], 0.0) <= EPSILON


def both_reaching(steps: int) -> float:
    """Return the chance that both coordinates of cube noise, a row moves each by one, are at least so many steps."""
    points = cube_points((1, 1), 40)
    weights = [math.exp(-EPSILON * cube_radius(point, (1, 1), 16) / 16) for point in points]
    return sum(weight for point, weight in zip(points, weights, strict=True) if min(point) >= steps) / sum(weights)


def test_counts_and_sums_together_prove_what_was_charged_once_and_no_more(tmp_path: Path) -> None:
    sql = "SELECT cell, COUNT(*) AS n, SUM(value) AS s FROM t GROUP BY cell"
    tables = (answered(tmp_path / name, last, sql) for name, last in (("a", [2]), ("b", [])))
    seen = [
        Trials.count(n > ROWS and s - n > 0 for n, s in zip(counts, sums, strict=True)) for _, counts, sums in tables
    ]
    sure = sure_epsilon((both_reaching(0), both_reaching(1)), CELLS)
    assert 0.6 * EPSILON < sure <= proved_epsilon(seen[0], seen[1], 0.0) <= EPSILON


def test_the_noise_of_the_groups_is_their_own(tmp_path: Path) -> None:
    _, counts = answered(tmp_path / "a", [], "SELECT cell, COUNT(*) AS n FROM t GROUP BY cell")
    pairs = Trials.count(one > ROWS and two > ROWS for one, two in zip(counts[::2], counts[1::2], strict=True))
    above = Trials.count(count > ROWS for count in counts)
    assert pairs.least(FALSE_ALARM / 4) <= above.most(FALSE_ALARM / 4) ** 2
    assert pairs.most(FALSE_ALARM / 4) >= above.least(FALSE_ALARM / 4) ** 2
