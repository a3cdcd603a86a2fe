"""Several tables of one release are protected as one: shared cells are empty in all or none, and one policy does it."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from incrowd.core.table import Table
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import Infeasible, InvalidParameter, Refused
from incrowd.methods.tabulation.protected.attacker import Inconsistent, Together, never, spread
from incrowd.methods.tabulation.protected.frame import TableAxis, TableFrame, union
from incrowd.methods.tabulation.protected.layout import TableLayout
from incrowd.methods.tabulation.protected.method import ProtectedTable
from incrowd.methods.tabulation.protected.perturbation import KeyNoise
from incrowd.noise.system import SystemCoins
from incrowd.web.studio.pages.columns import _unreleased
from incrowd.workflows.assess.released import read_release
from incrowd.workflows.attack.publication import read_publication
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.verify.verify import verify
from tests.methods.tabulation.frames import ends, flat
from tests.methods.tabulation.test_informed_reader import crowds, extremes, people
from tests.methods.tabulation.test_linked_tables import policy, rows
from tests.methods.tabulation.test_protected_table import RECORDS, SCHEMA

LISTS = (
    (TableLayout(("area", "sex")), TableLayout(("kind", "area"), {"area": 1})),
    (
        TableLayout(("area", "sex"), {"area": 1}),
        TableLayout(("sex", "kind")),
        TableLayout(("kind", "area"), {"area": 1}),
    ),
    (TableLayout(("area", "sex")), TableLayout(("sex",)), TableLayout(("area",), {"area": 1})),
)
LIST = [{"columns": ["area", "sex"]}, {"columns": ["kind", "area"]}, {"columns": ["sex", "kind"]}]


def listed(folder: Path, **more: Any) -> dict[str, Any]:
    source = policy(folder, [], **more)
    source["release"] = {"tables": LIST, **{key: part for key, part in source["release"].items() if key != "columns"}}
    return source


@pytest.mark.parametrize(("many", "seed", "most"), [(12, 12, 7), (12, 3, 3)])
def test_sensitive_cells_stay_open_to_who_holds_all_tables_of_the_list(many: int, seed: int, most: int) -> None:
    sensitive = 0
    for number, cells in enumerate(crowds(many, seed=seed, most=most)):
        method = ProtectedTable(tables=LISTS[number % len(LISTS)], minimum=3, coalition=0)
        try:
            output = method.release(Table(SCHEMA, LOCAL.open(people(cells)), LOCAL), SystemCoins())
        except Infeasible:
            continue
        frames = method.frames(SCHEMA)
        cross, parts = union((TableFrame((method_axis(), flat(2, "sex"), flat(2, "kind"))), *map(renamed, frames)))
        seen = []
        for part, table in zip(parts[1:], output.tables, strict=True):
            column = table.column("count")
            seen.append((cross.matrix[part], column.fill_null(0).to_numpy(), column.is_valid().to_numpy()))
        for sums, _, known in seen:
            true = sums @ cells.ravel()
            for place in np.flatnonzero((true > 0) & (true < 3)).tolist():
                assert not known[place]
                assert extremes(seen, sums[[place]].toarray().ravel(), 1)[1] >= true[place] + 3
                sensitive += 1
    assert sensitive > 10


def method_axis() -> TableAxis:
    return ProtectedTable(columns=("area",), minimum=3).frames(SCHEMA)[0].axes[0]


def renamed(frame: TableFrame) -> TableFrame:
    """Return a table whose lines are called as those of the test's own axes."""
    names = {"F": "sex0", "M": "sex1", "x": "kind0", "y": "kind1"}
    return TableFrame(
        tuple(
            TableAxis(axis.column, tuple(names.get(str(label), label) for label in axis.labels), axis.parents)
            for axis in frame.axes
        )
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    release_to(rows(), listed(tmp_path), Destination(tmp_path / "out", "csv"))
    return tmp_path / "out"


def test_a_list_is_one_release_with_the_files_of_each_table_and_one_certificate(folder: Path) -> None:
    assert verify(folder).passed
    assert sorted(file.name for file in folder.glob("data*")) == ["data.1.csv", "data.2.csv", "data.3.csv"]
    assert len(list(folder.glob("table.?.*"))) == 12
    assert "all 3 tables of this release" in (folder / "report.html").read_text(encoding="utf-8")
    assert sum(table.rows.sum() for table in read_release(folder).tables) > 200  # type: ignore[union-attr]
    assert len(read_publication(folder)) == 3


def test_a_cell_that_two_tables_share_is_the_same_in_both_or_the_files_fail(folder: Path) -> None:
    tables = [(folder / f"data.{number}.csv").read_text(encoding="utf-8") for number in (1, 2)]
    line = next(line for line in tables[0].splitlines() if re.fullmatch(r'"?[bcd]"?,"?\*"?,\d+', line))
    area, number = line.split(",")[0], line.split(",")[2]
    assert re.search(rf'(?m)^"\*",{area},{number}$|^\*,{area},{number}$', tables[1])
    (folder / "data.1.csv").write_text(tables[0].replace(line, line.removesuffix(number)), encoding="utf-8")
    failed = {finding.about: finding.why for finding in verify(folder).findings if finding.verdict == "failed"}
    assert "cells in the file" in failed or "share" in failed["numbers in the file"]


def test_tables_that_contradict_each_other_in_a_shared_cell_are_inconsistent() -> None:
    """One shows a cell that another leaves empty, or with another number."""
    frames = (TableFrame((flat(2, "a"),)), TableFrame((flat(2, "a"), flat(2, "b"))))
    one, shown = np.array([9, 4, 5]), np.ones(3, np.bool_)
    two, seen = np.array([[9, 3, 6], [4, 1, 3], [5, 2, 3]]), np.ones((3, 3), np.bool_)
    assert Together.of(frames, [(one, shown), (two, seen)]).published[0] == 9
    hidden = seen.copy()
    hidden[1, 0] = False
    for pair in ((two, hidden), (two + np.eye(3, dtype=np.int64)[:, :1], seen)):
        with pytest.raises(Inconsistent):
            Together.of(frames, [(one, shown), pair])


def test_readers_of_all_tables_infer_what_trying_every_table_infers() -> None:
    chance = np.random.default_rng(9)
    frame = TableFrame((flat(2, "a"), flat(3, "b")))
    for _ in range(12):
        cells, known = frame.totals(chance.integers(1, 4, (2, 3))), chance.random((3, 4)) < 0.6
        known[0, 0] = True
        reader = Together.of((frame,), [(np.where(known, cells, 0), known)]).reader(1)
        results = spread(reader, frame.matrix, never)
        assert [part.tolist() for part in results] == [part.tolist() for part in ends(frame, cells, known, 1)]


def test_a_further_table_needs_all_tables_of_the_list(folder: Path, tmp_path: Path) -> None:
    further = policy(tmp_path, ["area"], earlier=[str(folder / "data.1.csv")])
    with pytest.raises(Refused, match=r"earlier: \[.*data\.2\.csv.*data\.3\.csv"):
        release_to(rows(), further, Destination(tmp_path / "second", "csv"))


def test_one_table_in_a_list_is_the_table_alone(tmp_path: Path) -> None:
    alone = release(rows(), policy(tmp_path, ["area", "sex"])).result.to_arrow()
    source = listed(tmp_path)
    source["release"]["tables"] = LIST[:1]
    assert release(rows(), source).result.to_arrow().equals(alone)


def test_cell_keys_give_shared_cells_of_a_list_the_same_noise(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(bytes(range(32)))
    method = ProtectedTable(
        tables=LISTS[1], protect="cell-key", noise=KeyNoise(5, Fraction(2)), key=str(tmp_path / "key")
    )
    crowd = next(crowds(1, seed=4, most=9))
    first, second, _ = method.release(Table(RECORDS, LOCAL.open(people(crowd)), LOCAL), SystemCoins()).tables
    columns = [table.to_pylist() for table in (first, second)]
    assert {row["sex"]: row["count"] for row in columns[0] if row["area"] == "*"} == {
        row["sex"]: row["count"] for row in columns[1] if row["kind"] == "*"
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": ("area",), "tables": LISTS[0]}, "not both"),
        ({"minimum": 3}, "not both"),
        ({"tables": (LISTS[0][0], LISTS[0][0])}, "listed twice"),
        ({"tables": LISTS[0], "levels": {"kind": 1, "pay": 1}}, "'pay', which is not a column"),
        ({"tables": LISTS[0], "protect": "rounding", "base": 5}, "by suppression or by cell keys"),
        ({"tables": LISTS[0], "given": True}, "made of rows"),
        ({"tables": LISTS[0], "open": ("pay = 3",)}, "names no cells"),
    ],
)
def test_a_list_that_means_nothing_is_refused(options: dict[str, Any], words: str) -> None:
    rule = {} if "protect" in options else {"minimum": 3}
    with pytest.raises(InvalidParameter, match=words):
        ProtectedTable(**(rule | options)).plan(SCHEMA)


class _File:
    """A policy of the studio, as plain values."""

    content: ClassVar[Any] = {
        "release": {"tables": [{"columns": ["area", "sex"], "levels": {"sex": 0}}, {"columns": ["sex"]}]}
    }

    def at(self, *place: str) -> Any:
        value = self.content
        for name in place:
            value = value.get(name) if isinstance(value, dict) else None
        return value


def test_the_studio_takes_a_column_out_of_every_table_of_the_list() -> None:
    changes = _unreleased(_File(), "sex")  # type: ignore[arg-type]
    assert changes["release", "tables"] == [{"columns": ["area"]}]
