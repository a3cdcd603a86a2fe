"""Tables of one dataset are protected together, and are published as crosstabs that say no more than the table."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd.core.table import Table
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import Infeasible, InvalidParameter, Refused
from incrowd.methods.tabulation.protected.frame import TableFrame
from incrowd.methods.tabulation.protected.method import ProtectedTable
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import ReleaseTerms, release, release_to
from incrowd.workflows.verify.verify import verify
from tests.methods.tabulation.frames import flat
from tests.methods.tabulation.test_informed_reader import crowds, extremes, people
from tests.methods.tabulation.test_protected_table import SCHEMA

KINDS = {"missing": "drop", "outside": "drop"}


def policy(folder: Path, columns: list[str], **more: Any) -> dict[str, Any]:
    return {
        "incrowd": 1,
        "dataset": {"name": "crowd"},
        "columns": {
            "area": {"categories": list("abcd"), **KINDS},
            "sex": {"categories": ["F", "M"], **KINDS},
            "kind": {"categories": ["x", "y"], **KINDS},
        },
        "release": {"method": "protected-table", "columns": columns, "minimum": 3, **more},
        "budget": {"unbounded": "a test"},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }


def rows() -> pa.Table:
    cells = np.array([[[2, 0], [6, 8]], [[9, 8], [7, 9]], [[8, 7], [1, 12]], [[10, 9], [8, 7]]])
    return people(cells).select(["area", "sex", "kind"])


def charges(source: dict[str, Any]) -> int:
    book = find_book(load_policy(source))
    return 0 if book is None else sum(entry.kind == "charge" for entry in book.entries(0))


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    release_to(rows(), policy(tmp_path, ["area", "sex"]), Destination(tmp_path / "first", "csv"))
    return tmp_path / "first" / "data.csv"


def test_a_further_table_is_refused_before_the_charge_unless_it_is_protected_with_the_first(
    first: Path, tmp_path: Path
) -> None:
    alone = policy(tmp_path, ["area", "kind"])
    with pytest.raises(Refused, match=r"Nothing was charged\. Have it protected together .*first/data\.csv"):
        release_to(rows(), alone, Destination(tmp_path / "second", "csv"))
    assert charges(alone) == 1
    together = policy(tmp_path, ["area", "kind"], earlier=[str(first)])
    released = release_to(rows(), together, Destination(tmp_path / "second", "csv"))
    assert not [note for note in released.notes if "not compared" in note]
    assert verify(tmp_path / "second").passed


@pytest.mark.parametrize("way", [{"protect": "rounding", "base": 5}, {"protect": "adjustment", "minimum": 3}])
def test_a_table_of_the_same_numbers_that_is_protected_in_another_way_is_refused(
    first: Path, tmp_path: Path, way: dict[str, Any]
) -> None:
    """A rounded number is within the base of one that the other table leaves empty."""
    other = policy(tmp_path, ["area", "kind"], earlier=[str(first)])
    other["release"] = {"method": "protected-table", "columns": ["area", "sex"], **way}
    with pytest.raises(Refused, match=r"protected in another way: .*first\. .* Nothing was charged"):
        release_to(rows(), other, Destination(tmp_path / "second", "csv"))
    assert charges(other) == 1
    release_to(rows(), other, Destination(tmp_path / "second", "csv"), terms=ReleaseTerms(anyway=True))
    back = policy(tmp_path, ["area", "kind"], earlier=[str(first)])
    with pytest.raises(Refused, match=r"protected in another way: .*second\. "):
        release_to(rows(), back, Destination(tmp_path / "third", "csv"))


def test_a_table_under_another_name_of_the_dataset_is_no_way_around(first: Path, tmp_path: Path) -> None:
    other = policy(tmp_path, ["area", "kind"])
    other["dataset"] = {"name": "crowd two", "same_people_as": "crowd"}
    with pytest.raises(Refused, match=r"add them to earlier: \[\"first/data\.csv\"\]"):
        release_to(rows(), other, Destination(tmp_path / "second", "csv"))
    assert charges(other) == 1


def test_the_same_table_again_needs_no_comparison(first: Path, tmp_path: Path) -> None:
    release_to(rows(), policy(tmp_path, ["area", "sex"]), Destination(tmp_path / "again", "csv"))
    assert (tmp_path / "again" / "data.csv").read_bytes() == first.read_bytes()


def test_a_table_that_was_published_while_rows_were_read_is_not_missed(tmp_path: Path) -> None:
    """Both lists of earlier releases were empty when the two began."""
    same = policy(tmp_path, ["area", "sex"])

    def overtake(_notes: object) -> None:
        release_to(rows().slice(0, len(rows()) - 1), same, Destination(tmp_path / "other", "csv"))

    with pytest.raises(Refused, match=r"published while this one was made, .* Nothing appeared"):
        release_to(rows(), same, Destination(tmp_path / "own", "csv"), terms=ReleaseTerms(before_charge=overtake))
    assert (tmp_path / "other").exists()
    assert not (tmp_path / "own").exists()


@pytest.mark.parametrize(
    ("way", "differs"),
    [
        ({"protect": "rounding", "base": 5, "minimum": None}, False),
        ({"protect": "rounding", "base": 2, "minimum": None}, True),
        ({"protect": "adjustment", "minimum": 3}, True),
    ],
)
def test_rounded_and_adjusted_tables_of_other_rows_are_refused_if_readers_see_a_difference(
    tmp_path: Path, way: dict[str, Any], *, differs: bool
) -> None:
    same = policy(tmp_path, ["area", "sex"])
    chosen = {**same["release"], **way}
    same["release"] = {name: value for name, value in chosen.items() if value is not None}
    release_to(rows(), same, Destination(tmp_path / "first", "csv"))
    if differs:
        with pytest.raises(Refused, match=r"published before, .* Nothing appeared"):
            release_to(rows().slice(0, len(rows()) - 1), same, Destination(tmp_path / "second", "csv"))
    else:
        released = release_to(rows().slice(0, len(rows()) - 1), same, Destination(tmp_path / "second", "csv"))
        assert not [note for note in released.notes if "compared" in note]


def test_the_same_table_of_other_rows_is_refused_since_one_can_be_subtracted_from_the_other(
    first: Path, tmp_path: Path
) -> None:
    """One person left: without the refusal both tables are public, and all four differences say who."""
    fewer, same = rows().slice(0, len(rows()) - 1), policy(tmp_path, ["area", "sex"])
    with pytest.raises(Refused, match=r"published before, in release .*, and 4 cells differ .* Nothing appeared\."):
        release_to(fewer, same, Destination(tmp_path / "second", "parquet"))
    assert not (tmp_path / "second").exists()
    known = release_to(fewer, same, Destination(tmp_path / "second", "parquet"), terms=ReleaseTerms(anyway=True))
    assert [note for note in known.notes if "4 cells differ, and readers hold both" in note]
    again = release_to(fewer, same, Destination(tmp_path / "third", "csv"), terms=ReleaseTerms(anyway=True))
    assert len([note for note in again.notes if "readers hold both" in note]) == 1  # of the first, not of the second


def test_sensitive_cells_of_both_tables_stay_open_to_who_holds_both(tmp_path: Path) -> None:
    before, sensitive = ProtectedTable(columns=("area", "kind"), minimum=3, coalition=0), 0
    method = ProtectedTable(columns=("area", "sex"), minimum=3, coalition=0, earlier=(str(tmp_path / "before.csv"),))
    for cells in crowds(16, seed=8, most=9):
        table = Table(SCHEMA, LOCAL.open(people(cells)), LOCAL)
        try:
            old = before.release(table, SystemCoins())
            (tmp_path / "before.csv").write_text(_long(old.to_arrow()), encoding="utf-8")
            new = method.release(table, SystemCoins())
        except Infeasible:
            continue
        area = method.frames(SCHEMA)[0].axes[0]
        joint = TableFrame((area, flat(2, "sex"), flat(2, "kind")))
        grid = np.arange(joint.size).reshape(joint.shape)
        parts = [
            (joint.matrix[grid[:, :, 0].ravel()], *_numbers(new.to_arrow())),
            (joint.matrix[grid[:, 0, :].ravel()], *_numbers(old.to_arrow())),
        ]
        for sums, _, _ in parts:
            true = sums @ cells.ravel()
            for place in np.flatnonzero((true > 0) & (true < 3)).tolist():
                _, high = extremes(parts, sums[[place]].toarray().ravel(), 1)
                assert high >= true[place] + 3
                sensitive += 1
    assert sensitive > 20


def _long(table: pa.Table) -> str:
    lines = [",".join("" if value is None else str(value) for value in row.values()) for row in table.to_pylist()]
    return "\n".join([",".join(table.column_names), *lines]) + "\n"


def _numbers(table: pa.Table) -> tuple[Any, Any]:
    column = table.column("count")
    return column.fill_null(0).to_numpy(), column.is_valid().to_numpy()


def test_crosstabs_hold_one_code_for_every_suppressed_cell_and_no_formula(first: Path) -> None:
    folder = first.parent
    text = (folder / "table.csv").read_text(encoding="utf-8")
    empty = sum(row.endswith(",") for row in first.read_text(encoding="utf-8").splitlines())
    cells = [cell for line in text.splitlines()[1:] for cell in line.split(",")[1:]]
    assert cells.count("x") == empty > 0
    sdmx = (folder / "table.sdmx.csv").read_text(encoding="utf-8")
    assert sdmx.count(",Q,C\n") == empty
    assert (folder / "table.html").read_text(encoding="utf-8").count('class="x"') == empty
    book = zipfile.ZipFile(io.BytesIO((folder / "table.xlsx").read_bytes()))
    sheet = book.read("xl/worksheets/sheet1.xml").decode()
    assert sheet.count('<t xml:space="preserve">x</t>') == empty
    assert "<f" not in sheet


def test_a_workbook_opens_elsewhere_as_it_was_meant(first: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    sheet = openpyxl.load_workbook(first.parent / "table.xlsx").active
    lines = [",".join(str(cell) for cell in row) for row in sheet.iter_rows(values_only=True)]
    assert lines == (first.parent / "table.csv").read_text(encoding="utf-8").splitlines()


def test_a_changed_crosstab_fails(first: Path) -> None:
    file = first.parent / "table.html"
    file.write_text(file.read_text(encoding="utf-8").replace("suppressed to", "hidden to"), encoding="utf-8")
    failed = {finding.about for finding in verify(first.parent).findings if finding.verdict == "failed"}
    assert "crosstabs" in failed


def test_which_cells_are_sensitive_and_what_the_pattern_weighs_stays_internal(first: Path, tmp_path: Path) -> None:
    (inside,) = tmp_path.glob(".incrowd/internal/*/cells.json")
    facts = json.loads(inside.read_text(encoding="utf-8"))
    assert facts["weight"] >= facts["least possible weight"] - 1e-6
    assert facts["sensitive"]
    public = "".join(file.read_text(encoding="utf-8", errors="ignore") for file in first.parent.iterdir())
    assert not any(word in public for word in ("least possible weight", "suppressed beside"))


def cells_of(tmp_path: Path, **more: Any) -> dict[tuple[str, str], int | None]:
    table = release(rows(), policy(tmp_path, ["area", "sex"], **more)).result.to_arrow()
    return {(row["area"], row["sex"]): row["count"] for row in table.to_pylist()}


def test_what_must_stay_open_does_or_the_release_is_refused_with_the_smallest_change(tmp_path: Path) -> None:
    usual = cells_of(tmp_path)
    beside = next(area for area in "bcd" if usual[area, "F"] is None)
    cells = cells_of(tmp_path, open=[f"area = {beside}"])
    assert cells["a", "F"] is None
    assert cells[beside, "F"] is not None
    asked = policy(tmp_path, ["area", "sex"], open=["sex = M", "totals"])
    with pytest.raises(Infeasible, match=r"The smallest change that was found: do not keep .*sex = M.* open"):
        release(rows(), asked)
    assert charges(asked) == 2


def test_the_cell_in_the_way_and_a_change_that_helps_are_named(tmp_path: Path) -> None:
    with pytest.raises(Infeasible, match=r"^area = a, sex = F: sensitive, and said to stay open.*not keep area = a, "):
        cells_of(tmp_path, open=["area = a, sex = F"])
    ones = pa.table({"area": list("aabbccdd"), "sex": ["F", "M"] * 4, "kind": ["x"] * 8})
    with pytest.raises(Infeasible, match=r"The smallest change that was found: zeros: suppressible\.$"):
        release(ones, policy(tmp_path, ["area", "sex"]))
    released = release(ones, policy(tmp_path, ["area", "sex"], zeros="suppressible")).result.to_arrow()
    assert None in released["count"].to_pylist()
    with pytest.raises(Infeasible, match=r"^the total of everything is sensitive itself"):
        cells_of(tmp_path, minimum=1000)


def test_a_level_stays_open_by_its_number(tmp_path: Path) -> None:
    source = policy(tmp_path, ["area", "sex"], open=["area at level 1", "totals"], coalition=0)
    source["columns"]["area"] = {"hierarchy": {"tree": {"N, far": ["a", "b"], "S": ["c", "d"]}}, **KINDS}
    table = release(rows(), source).result.to_arrow().to_pylist()
    cells = {(row["area"], row["sex"]): row["count"] for row in table}
    assert cells["a", "F"] is None
    assert None not in [cells[area, sex] for area in ("N, far", "S") for sex in ("*", "F", "M")]
    source["release"]["open"] = ["area = N, far, sex = F"]
    assert release(rows(), source).result.to_arrow().num_rows == 21
    source["release"]["open"] = ["area at level 7"]
    with pytest.raises(InvalidParameter, match="no lines at that level"):
        release(rows(), source)


def test_weights_say_what_is_kept_small(tmp_path: Path) -> None:
    """By value small cells go, by number as few as can be, by level those with few finest cells."""
    cells = {way: cells_of(tmp_path, weigh=way, coalition=0) for way in ("values", "cells", "levels")}
    empty = {way: [cell for cell, value in part.items() if value is None] for way, part in cells.items()}
    assert len(empty["cells"]) <= min(map(len, empty.values()))
    assert all("*" not in cell for cell in empty["levels"])
    shown = cells_of(tmp_path, minimum=2)
    values = {way: sum(shown[cell] or 0 for cell in part) for way, part in empty.items()}
    assert values["values"] <= min(values.values())


def test_cells_that_go_first_are_emptied_before_others(tmp_path: Path) -> None:
    for area in "bcd":
        cells = cells_of(tmp_path, empty=[f"area = {area}"], coalition=0)
        assert cells[area, "F"] is None
