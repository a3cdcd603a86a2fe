"""Protected tables through the whole road: what is refused, what is published, and what a changed file shows."""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import LinearConstraint, milp

from incrowd.core.domain import Categories, Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.tree import tree
from incrowd.core.schema import Column, Missing, Outside, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import ExtraRowsRule, Kind, Unit
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import IncrowdError, Infeasible, InvalidParameter, SourceInvalid
from incrowd.methods.tabulation.protected.adjustment import adjust_cells
from incrowd.methods.tabulation.protected.frame import TableAxis, TableFrame
from incrowd.methods.tabulation.protected.method import ProtectedTable
from incrowd.methods.tabulation.protected.perturbation import KeyNoise, round_cells
from incrowd.methods.tabulation.protected.rules import Dominance
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.verify.verify import verify
from tests.methods.tabulation.frames import agreeing

KEPT: dict[str, Any] = {"missing": Missing.DROP, "outside": Outside.DROP}
AREA = Column("area", hierarchy=tree({"N": ["a", "b"], "S": ["c", "d"]}), **KEPT)
SEX = Column("sex", hierarchy=Flat(Categories(("F", "M"))), **KEPT)
KIND = Column("kind", hierarchy=Flat(Categories(("x", "y"))), **KEPT)
PAY = Column("pay", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 10**6)))
WHO = Column("who", Role.IDENTIFIER)
SCHEMA = Schema((AREA, SEX, KIND, PAY, WHO))
RECORDS = Schema(SCHEMA.columns, Unit(Kind.PERSON, column="who", more=ExtraRowsRule.REFUSE))


def rows(number: int = 90) -> pa.Table:
    chance = np.random.default_rng(2)
    return pa.table(
        {
            "area": chance.choice(list("abcd"), number, p=[0.4, 0.3, 0.25, 0.05]),
            "sex": chance.choice(["F", "M"], number),
            "kind": chance.choice(["x", "y"], number),
            "pay": chance.integers(1, 1000, number),
            "who": [f"w{n}" for n in range(number)],
        }
    )


def released(method: ProtectedTable, table: pa.Table, schema: Schema = SCHEMA) -> dict[tuple[str, ...], int | None]:
    found = method.release(Table(schema, LOCAL.open(table), LOCAL), SystemCoins()).to_arrow()
    return {tuple(row.values())[:-1]: row[method.number] for row in found.to_pylist()}


def test_counts_are_exact_or_empty_and_every_small_one_is_empty() -> None:
    found = released(ProtectedTable(columns=("area", "sex"), minimum=4), rows())
    true = rows().group_by(["area", "sex"]).aggregate([([], "count_all")]).to_pylist()
    for each in true:
        shown = found[each["area"], each["sex"]]
        assert shown in (None, each["count_all"])
        assert shown is None or shown >= 4
    assert None in found.values()
    assert found["*", "*"] == 90


def test_holdings_are_merged_before_the_rules_look_at_them() -> None:
    table = pa.table({"area": ["a"] * 5 + ["b"] * 5, "pay": [50] * 10, "who": ["one"] * 5 + list("23456")})
    schema = Schema((AREA, PAY, WHO))
    apart = released(ProtectedTable(columns=("area",), value="pay", minimum=3), table, schema)
    merged = released(ProtectedTable(columns=("area",), value="pay", holding="who", minimum=3), table, schema)
    assert (apart[("a",)], merged[("a",)]) == (250, None)


def test_the_same_records_have_the_same_noise_in_every_table(tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(bytes(range(32)))
    noise: dict[str, Any] = {"protect": "cell-key", "noise": KeyNoise(5, Fraction(2), 2), "key": str(tmp_path / "key")}
    one = released(ProtectedTable(columns=("area", "sex"), **noise), rows(), RECORDS)
    two = released(ProtectedTable(columns=("sex", "kind"), **noise), rows().take(np.arange(90)[::-1]), RECORDS)
    assert [one["*", sex] for sex in ("*", "F", "M")] == [two[sex, "*"] for sex in ("*", "F", "M")]
    assert not {1, 2} & {*one.values(), *two.values()}
    (tmp_path / "key").write_bytes(bytes(range(1, 33)))
    assert released(ProtectedTable(columns=("area", "sex"), **noise), rows(), RECORDS) != one


def test_a_table_released_before_counts_as_known(tmp_path: Path) -> None:
    table = rows(60)
    before = ProtectedTable(columns=("area", "kind"), minimum=2)
    first = before.release(Table(SCHEMA, LOCAL.open(table), LOCAL), SystemCoins()).to_arrow()
    lines = [
        ",".join(first.column_names),
        *(",".join("" if v is None else str(v) for v in r.values()) for r in first.to_pylist()),
    ]
    (tmp_path / "first.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    method = ProtectedTable(columns=("area", "sex"), minimum=4, protection=2, earlier=(str(tmp_path / "first.csv"),))
    joint = method.joint(SCHEMA)
    assert [axis.column for axis in joint.frame.axes] == ["area", "sex", "kind"]
    assert method.plan(SCHEMA).claims[0].parameters["earlier"] == 1
    try:
        found = released(method, table)
    except InvalidParameter as error:
        assert "protects it" in str(error)  # noqa: PT017 - both are right answers
    else:
        assert found["*", "*"] == 60
    other = table.set_column(2, "kind", pa.array(["x"] * 60))
    with pytest.raises(SourceInvalid, match="has other numbers than these rows"):
        released(method, other)


def given(cells: list[int]) -> pa.Table:
    areas = ["*", "N", "a", "b", "S", "c", "d"]
    return pa.table({"area": areas, "count": cells})


GIVEN: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "given"},
    "columns": {
        "area": {"hierarchy": {"tree": {"N": ["a", "b"], "S": ["c", "d"]}}, "missing": "drop", "outside": "drop"},
        "count": {"type": "integer", "bounds": [0, None]},
    },
    "release": {"method": "protected-table", "columns": ["area"], "given": True, "minimum": 3},
    "budget": {"unbounded": "public since 2020"},
}


def test_a_given_table_is_protected(tmp_path: Path) -> None:
    policy = {**GIVEN, "ledger": f"sqlite:///{tmp_path}/ledger.sqlite"}
    result = release(given([40, 20, 2, 18, 20, 9, 11]), policy).result.to_arrow()
    assert result["count"].to_pylist() == [40, 20, None, None, 20, 9, 11]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (given([41, 20, 2, 18, 20, 9, 11]), "does not add up: 'count' at area = *"),
        (given([40, 20, -2, 22, 20, 9, 11]), "row 3 of the table has a negative number"),
        (given([40, 20, 2, 18, 20, 9, 11]).slice(0, 6), "lacks 1 of 7 cells, among them area = d"),
        (pa.concat_tables([given([40, 20, 2, 18, 20, 9, 11])] * 2), "row 8 of the table has a cell that an earlier"),
        (pa.table({"area": ["z"], "count": [1]}), "row 1 of the table has a label of 'area'"),
    ],
)
def test_a_table_that_is_none_is_refused_before_anything_is_charged(
    table: pa.Table, words: str, tmp_path: Path
) -> None:
    policy = load_policy({**GIVEN, "ledger": f"sqlite:///{tmp_path}/ledger.sqlite"})
    with pytest.raises(SourceInvalid, match=re.escape(words)):
        release(table, policy)
    book = find_book(policy)
    assert book is None or not [each for each in book.entries(0) if each.kind == "charge"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pay": ["9007199254740992", *"0" * 6]}, "row 1 of the table has a number in 'pay' beyond 2^53"),
        ({"people": [9, 5, 0, 3, 4, 2, 2]}, "the cell area = a has a number above 0 and no contributors"),
        ({"second": [12, 12, 8, 10, 10, 10, 7]}, "the largest contributions to the cell area = b do not fall"),
        ({"first": [99] * 7}, "the largest contributions to the cell area = * do not fall"),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(change: dict[str, Any], words: str) -> None:
    """Else a cell of one firm that the table says nobody contributed to would be published."""
    whole: dict[str, Any] = {
        "area": ["*", "N", "a", "b", "S", "c", "d"],
        "pay": [90, 50, 20, 30, 40, 21, 19],
        "people": [9, 5, 2, 3, 4, 2, 2],
        "first": [20, 20, 12, 9, 12, 11, 12],
        "second": [12, 12, 8, 9, 10, 10, 7],
    }
    names = tuple(Column(name, type=Type.INTEGER, hierarchy=Flat(Numbers(0, None))) for name in list(whole)[1:])
    method = ProtectedTable(
        columns=("area",),
        value="pay",
        given=True,
        contributors="people",
        largest=("first", "second"),
        minimum=2,
        p=Fraction(1, 10),
    )
    schema = Schema((AREA, *names))
    assert released(method, pa.table(whole), schema)[("*",)] == 90
    with pytest.raises(SourceInvalid, match=re.escape(words)):
        released(method, pa.table(whole | change), schema)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": ("area",)}, "suppression needs a rule"),
        ({"columns": ("area",), "p": Fraction(1, 10)}, "rules for sums"),
        ({"columns": ("area",), "minimum": 3, "base": 5}, "base belongs to protect: rounding"),
        ({"columns": ("area",), "protect": "rounding"}, "rounding needs a base"),
        ({"columns": ("area",), "protect": "cell-key"}, "cell-key needs noise"),
        ({"columns": ("area", "sex", "kind", "who"), "minimum": 3}, "one to three columns"),
        ({"columns": ("area",), "minimum": 1}, "at least 2"),
        ({"columns": ("area",), "minimum": 3, "value": "sex"}, "is summed: declare it as a number"),
        ({"columns": ("who",), "minimum": 3}, "identifier"),
        ({"columns": ("area",), "minimum": 3, "holding": "sex"}, "its role is identifier"),
        ({"columns": ("area",), "minimum": 3, "total": "N"}, "stands for two different lines"),
        ({"columns": ("area",), "value": "pay", "given": True, "dominance": Dominance(2, Fraction(4, 5))}, "largest"),
    ],
)
def test_what_means_nothing_is_refused_with_the_way_out(options: dict[str, Any], words: str) -> None:
    with pytest.raises(IncrowdError, match=words):
        ProtectedTable(**options).plan(SCHEMA)


def test_a_file_whose_empty_cell_was_filled_in_or_whose_total_was_changed_fails(tmp_path: Path) -> None:
    policy = {**GIVEN, "ledger": f"sqlite:///{tmp_path}/ledger.sqlite"}
    folder = tmp_path / "out"
    release_to(given([40, 20, 2, 18, 20, 9, 11]), policy, Destination(folder, "csv"))
    assert verify(folder).passed
    file = folder / "data.csv"
    text = file.read_text(encoding="utf-8")
    for old, new, about in (
        ("b,\n", "b,18\n", "empty cells in the file"),
        ("c,9\n", "c,8\n", "numbers in the file"),
    ):
        changed = re.sub(rf'(?m)^"?{old[0]}"?,{old[2:].strip()}$', new.strip(), text)
        assert changed != text
        file.write_text(changed, encoding="utf-8")
        failed = {each.about for each in verify(folder).findings if each.verdict == "failed"}
        assert about in failed or "cells in the file" in failed


def test_everything_that_agrees_is_listed_by_the_test_itself() -> None:
    method = ProtectedTable(columns=("sex",), minimum=2)
    frame = method.frames(SCHEMA)[0]
    found = [table.tolist() for table in agreeing(frame, np.array([2, 0, 0]), np.array([True, False, False]))]
    assert found == [[0, 2], [1, 1], [2, 0]]


def test_a_rounding_is_no_farther_from_the_truth_than_it_says_nor_nearer_than_possible() -> None:
    """Every table of 0 to 6 in 2 × 3 cells of a seed: the distance is that of the best of all roundings."""
    chance, side = np.random.default_rng(5), ("*", "a", "b", "c")
    frame = TableFrame((TableAxis("r", side[:3], (-1, 0, 0)), TableAxis("c", side, (-1, 0, 0, 0))))
    for _ in range(20):
        leaves = chance.integers(0, 7, frame.leaf_shape)
        rounded = round_cells(frame, leaves, 3)
        choices = [sorted({value // 3 * 3, -(-value // 3) * 3}) for value in leaves.ravel().tolist()]
        totals = frame.totals(leaves)
        best = min(
            int(np.abs(np.array(choice) - leaves.ravel()).sum())
            for choice in product(*choices)
            if np.all(np.abs(frame.totals(np.array(choice).reshape(leaves.shape)) - totals) < 3)
        )
        assert rounded.distance == best
        assert rounded.least == pytest.approx(best)


def test_an_adjusted_table_is_the_nearest_that_the_rule_allows() -> None:
    """Every table of 0 to 5 in 2 × 2 cells of a seed: all tables within the shift are tried."""
    chance, side = np.random.default_rng(9), (("*", "a", "b"), (-1, 0, 0))
    frame = TableFrame((TableAxis("r", *side), TableAxis("c", *side)))
    for _ in range(12):
        leaves = chance.integers(0, 6, frame.leaf_shape)
        cells = frame.totals(leaves)
        choices = [range(max(0, value - 4), value + 5) for value in leaves.ravel().tolist()]
        tables = (frame.totals(np.array(choice).reshape(leaves.shape)) for choice in product(*choices))
        far = [
            int(np.abs(table - cells).sum())
            for table in tables
            if np.abs(table - cells).max() <= 4 and not np.any((table > 0) & (table < 3))
        ]
        near = adjust_cells(frame, leaves, 3, 4)
        assert near.distance == int(np.abs(near.cells - cells).sum())
        assert min(far) <= near.distance <= min(far) * 1.02
        assert near.least <= min(far) + 1e-6


def test_no_attacker_narrows_an_adjusted_count_below_its_interval() -> None:
    """The least and the largest true table that the claim allows, by exact programs, for every cell of both shapes."""
    chance = np.random.default_rng(4)
    region = TableAxis("region", ("*", "N", "a", "b", "S", "c", "d"), (-1, 0, 1, 1, 0, 4, 4))
    sex, kind = (TableAxis(name, ("*", "x", "y"), (-1, 0, 0)) for name in ("sex", "kind"))
    for axes in ((region, sex), (sex, kind, TableAxis("z", ("*", "1", "2"), (-1, 0, 0)))):
        frame, shift = TableFrame(axes), 6
        near = adjust_cells(frame, chance.poisson(3.0, frame.leaf_shape), 3, shift)
        published, matrix = near.cells.ravel(), frame.matrix.astype(np.float64)
        known = LinearConstraint(matrix, np.maximum(published - shift, 0), published + shift)
        for cell in range(frame.size):
            row = matrix[[cell]].toarray().ravel()
            ends = [
                round(sign * milp(sign * row, constraints=known, integrality=np.ones(len(row))).fun) for sign in (1, -1)
            ]
            assert ends == [max(0, published[cell] - shift), published[cell] + shift]


def test_adjustment_is_refused_where_it_cannot_be() -> None:
    with pytest.raises(InvalidParameter, match="adjustment is for counts"):
        ProtectedTable(columns=("area",), protect="adjustment")
    with pytest.raises(IncrowdError, match="shift that is at least the minimum"):
        ProtectedTable(columns=("area",), protect="adjustment", minimum=5, shift=4).plan(SCHEMA)
    with pytest.raises(Infeasible, match="larger shift"):
        adjust_cells(TableFrame((TableAxis("a", ("*", "x"), (-1, 0)),)), np.array([2]), 9, 1)


def test_an_adjusted_file_with_a_small_count_fails(tmp_path: Path) -> None:
    """The numbers still add up: only the rule is broken."""
    release = {"method": "protected-table", "columns": ["area"], "given": True, "protect": "adjustment", "minimum": 3}
    policy = {**GIVEN, "release": release, "ledger": f"sqlite:///{tmp_path}/ledger.sqlite"}
    folder = tmp_path / "out"
    release_to(given([40, 20, 2, 18, 20, 9, 11]), policy, Destination(folder, "csv"))
    assert verify(folder).passed
    rows = [line.replace('"', "").split(",") for line in (folder / "data.csv").read_text("utf-8").splitlines()]
    numbers = {name: int(number) for name, number in rows[1:]}
    assert numbers["*"] == numbers["N"] + numbers["S"]
    assert numbers["a"] in (0, 3)
    numbers.update(a=2, b=numbers["N"] - 2)
    text = "\n".join([",".join(rows[0]), *(f"{name},{number}" for name, number in numbers.items())])
    (folder / "data.csv").write_text(text + "\n", "utf-8")
    failed = {each.about for each in verify(folder).findings if each.verdict == "failed"}
    assert "numbers in the file" in failed
