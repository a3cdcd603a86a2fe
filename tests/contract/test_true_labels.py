"""Whatever a method publishes of values beyond the bounds is true of them, and the same on every engine."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.core.cells import Cells
from incrowd.core.table import Engine
from incrowd.engines.settings import open_table
from incrowd.errors import Refused
from incrowd.workflows.plan.outside import require_outside_rules
from incrowd.workflows.plan.published import bound_columns
from incrowd.workflows.policy.policy import Policy, load_policy
from tests.coins import SeededCoins
from tests.contract import kinds
from tests.core.test_true_labels import period_of, true_of_day, true_of_number
from tests.tables import as_counter

BORN, PAID = "1940-05-01", 500
ROWS = pa.table({"born": [BORN] * 60, "paid": [str(PAID)] * 60, "sex": ["F", "M"] * 30})
COLUMNS: dict[str, Any] = {
    "born": {
        "role": "quasi",
        "type": "date",
        "bounds": ["2024-03-15", "2025-12-31"],
        "hierarchy": {"dates": ["month", "quarter", "year", "decade"]},
    },
    "paid": {"role": "quasi", "type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [10, 20]}},
    "sex": {"categories": ["F", "M"]},
}
LEVELS = [{"born": born, "paid": 1 + born % 2} for born in range(5)]
METHODS: dict[str, list[dict[str, Any]]] = {
    "full-domain": [{"k": 5, "lowest": levels} for levels in LEVELS],
    "local-recoding": [{"k": 5}],
    "mondrian": [{"k": 5, "show": show} for show in ("ranges", "nodes")],
    "safe": [{"k": 5, "rate": 1, "levels": levels} for levels in LEVELS],
    "suppressed-histogram": [{"k": 5, "columns": ["born", "paid"], "levels": levels} for levels in LEVELS],
    "protected-table": [{"columns": ["born", "sex"], "levels": {"born": n}, "minimum": 3} for n in (1, 3)],
}
CASES = [(method, case) for method, cases in METHODS.items() for case in cases]


def policy(method: str, case: dict[str, Any]) -> Policy:
    return load_policy(
        {
            "incrowd": 1,
            "dataset": {"name": "births"},
            "columns": COLUMNS,
            "release": {"method": method, **case},
            "budget": {"unbounded": "a test"},
        }
    )


@pytest.mark.parametrize(("method", "case"), CASES)
def test_no_method_publishes_a_label_that_is_false_of_a_row(method: str, case: dict[str, Any]) -> None:
    read = policy(method, case)
    opened = open_table(ROWS, read.schema, read.options)
    table = read.plan.draw(opened, SeededCoins(5)).to_arrow()
    counts = table["count"].to_pylist() if "count" in table.column_names else itertools.repeat(1)
    shown = [row for row, count in zip(table.to_pylist(), counts, strict=False) if count]
    assert shown
    day = period_of(BORN)[0]
    for row in shown:
        assert row["born"] in ("*", "any", "Total") or true_of_day(row["born"], day)
        paid = row.get("paid", "any")
        assert paid in ("*", "any") or true_of_number(paid, PAID)


def test_days_and_numbers_beyond_bounds_are_the_same_on_spark(spark_engine: Engine, tmp_path: Path) -> None:
    days = [BORN, "2024-03-14", "2024-03-15", "2025-06-01", "2031-01-01", None]
    rows = pa.table({"born": days, "paid": ["-5", "0", "55", "99", "500", None], "sex": ["F"] * 6})
    read = policy("full-domain", {"k": 5})
    here = open_table(rows, read.schema)
    there = open_table(kinds.parquet_folder(rows, tmp_path), read.schema, engine=spark_engine)
    for levels in ({}, *LEVELS):
        cells = Cells.of(read.schema, levels)
        counted = as_counter(here.engine.count(here.rows, cells))
        assert as_counter(there.engine.count(there.rows, cells)) == counted
    assert any(
        "2024 or earlier" in cell
        for cell in as_counter(here.engine.count(here.rows, Cells.of(read.schema, {"born": 3})))
    )


RULES: dict[str, dict[str, Any]] = {
    "intervals": {"intervals": [10, 20]},
    "cuts": {"cuts": [[18, 65], [18]]},
    "none": {},
}
ROW_METHODS: dict[str, dict[str, Any]] = {
    "safe": {"k": 5, "rate": 1, "levels": {"zip": 1}},
    "scheme": {"choosing": 5, "k": 5, "rate": "1/4", "delta": "1/100", "lowest": {"zip": 1}},
    "full-domain": {"k": 5, "lowest": {"zip": 1}},
    "local-recoding": {"k": 5, "lowest": {"zip": 1}},
    "mondrian": {"k": 5, "levels": {"zip": 1}},
    "cell-suppression": {"k": 5, "levels": {"zip": 1}},
    "suppressed-histogram": {"k": 5, "columns": ["born", "paid", "town", "zip"], "levels": {"zip": 1}},
    "partition": {"choosing": 5, "k": 5, "rate": "1/4", "delta": "1/100", "levels": {"zip": 2}, "least": 10},
}
NUMBERED = {"safe", "scheme", "full-domain", "cell-suppression", "suppressed-histogram"}
"""The methods that publish numbers as numbers; the others make labels of their own."""
VALUES = (("2024-05-01", "15", "Gent"), ("1940-05-01", "500", "Lier"), ("2031-01-01", "-3", "Aalst"))
TOWNS = {"city": ["Gent", "Brugge"], "country": ["Aalst"]}


def declared(kind: str, outside: str) -> dict[str, Any]:
    """Return columns of every kind of domain, with one rule for values outside; text has no ends, days have labels."""
    rule, text_rule = RULES[kind], "other" if outside in ("ends", "bound") else outside
    paid: dict[str, Any] = {"role": "quasi", "type": "integer", "bounds": [0, 99], "outside": outside}
    return {
        "born": COLUMNS["born"] | {"outside": "ends" if outside == "bound" else outside},
        "paid": paid | ({"hierarchy": rule} if rule else {}),
        "town": {"role": "quasi", "hierarchy": {"tree": TOWNS}, "outside": text_rule},
        "zip": {"role": "quasi", "hierarchy": {"prefix": [2]}},
    }


def true_of(name: str, label: str | None, value: str, stated: frozenset[str] = frozenset()) -> bool:
    """Whether a released label is true of the only value that a column has; an outsider may be called other.

    In a column for which the certificate `stated` that a bound stands for the numbers beyond it, it does.
    """
    if label in ("*", "any", "Total", None):
        return True
    if (several := label.removesuffix(" or missing")) != label or (several := label.removesuffix(" or other")) != label:
        other = label.endswith(" or other") and true_of(name, "other", value)
        return true_of(name, several, value, stated) or other
    if name == "town":
        inside = value in TOWNS["city"] + TOWNS["country"]
        return label == value or value in TOWNS.get(label, ()) or (label == "other" and not inside)
    if name == "zip":
        return label == value[: len(label)]
    if label == "other":
        return not (0 <= int(value) <= 99) if name == "paid" else not ("2024-03-15" <= value <= "2025-12-31")
    if name in stated and label in ("0", "99"):
        return not 0 < int(value) < 99
    return true_of_day(label, period_of(value)[0]) if name == "born" else true_of_number(label, float(value))


@pytest.mark.parametrize("outside", ["ends", "bound", "other", "drop"])
@pytest.mark.parametrize("method", ROW_METHODS)
def test_no_released_label_contradicts_its_row(method: str, outside: str) -> None:
    """All rows are equal, so that whatever label is released must be true of this one row.

    A policy that would publish numbers under `ends`, which needs labels, is refused; under `bound` the steps say so.
    """
    for place, kind in enumerate(RULES):  # every value meets every rule and kind in some method
        born, paid, town = VALUES[(place + len(method)) % len(VALUES)]
        content = {
            "incrowd": 1,
            "dataset": {"name": "births"},
            "columns": declared(kind, outside),
            "release": {"method": method, **ROW_METHODS[method]},
            "budget": {"unbounded": "a test"},
        }
        read, values = load_policy(content), {"born": born, "paid": paid, "town": town, "zip": "9000"}
        stated = frozenset(bound_columns(read.plan))
        assert stated == (frozenset({"paid"} if outside in ("ends", "bound") and method in NUMBERED else ()))
        if outside == "ends" and stated:
            with pytest.raises(Refused, match="outside: bound"):
                require_outside_rules(read)
            continue
        require_outside_rules(read)
        rows = pa.table({name: [value] * 100 for name, value in values.items()})
        table = read.plan.draw(open_table(rows, read.schema, read.options), SeededCoins(5)).to_arrow()
        for row in table.to_pylist():
            for name, value in values.items():
                label = row.get(name)
                assert true_of(name, None if label is None else str(label), value, stated), (kind, name, label, value)
        if outside != "drop" or town == "Gent":
            assert table.num_rows


ORDER = ("none", "primary", "secondary", "college", "doctorate")
LABELS_ABOVE: dict[str, dict[str, Any]] = {
    "slicing": {"groups": [["cost", "school"], ["icd", "phone"]], "rate": "1/2", "epsilon": 2, "delta": "1e-4"},
    "private-histogram": {"columns": ["cost", "school"], "epsilon": 8},
    "most-common": {"columns": ["cost", "school"], "epsilon": 8, "top": 2},
    "blended-histogram": {"columns": ["cost", "school"], "k": 20, "rate": "1/2", "noise_epsilon": 4, "delta": "1e-4"},
    "suppressed-histogram": {"columns": ["cost", "school", "icd", "phone"], "k": 5},
    "protected-table": {"columns": ["cost", "school"], "minimum": 3},
    "safe": {"k": 5, "rate": 1},
    "cell-suppression": {"k": 5},
    "mondrian": {"k": 5},
    "local-suppression": {"threshold": "1/5"},
}
"""Methods whose labels lie on level 1 here, with hierarchies of every kind that the tests above do not have."""
CELLS: tuple[tuple[str, ...], ...] = (
    ("20", "college", "J18.9", "02139"),
    ("-4", "PhD", "E11", "021"),
    ("1000", "doctorate", "A00", "x"),
)
CELLS += (("49.9", "none", "K35", "021394"), ("20.5", "secondary", "Z99", "99"))


def of_every_kind(outside: str) -> dict[str, Any]:
    """Return columns with cuts beside a spike, ordered groups, a classification and redacted text."""
    text_rule = "other" if outside in ("ends", "bound") else outside
    cuts = {"cuts": [[10, 50], [50]], "spikes": [20]}
    return {
        "cost": {"type": "decimal", "bounds": ["0.5", "99.5"], "outside": outside, "hierarchy": cuts},
        "school": {"categories": list(ORDER), "outside": text_rule, "hierarchy": {"groups": [2, 4]}},
        "icd": {"hierarchy": {"classification": "icd-10"}},
        "phone": {"hierarchy": {"redaction": 5}},
    }


def true_of_any(name: str, label: str | None, value: str) -> bool:
    """Whether a label of one of these hierarchies is true of a value."""
    if label is None or label in ("*", "any", "Total"):
        return True
    if name == "school":
        first, _, last = label.partition(" to ")
        among = value in ORDER and ORDER.index(first) <= ORDER.index(value) <= ORDER.index(last or first)
        return value not in ORDER if label == "other" else among
    if name == "icd":
        return value.startswith(label)
    if name == "phone":
        return all(star in ("*", letter) for star, letter in zip(label, value.ljust(5, "*")[:5], strict=True))
    number = float(value)
    if label == "other":
        return not 0.5 <= number <= 99.5
    if label.startswith(("(", "> ")):  # what follows a spike begins above it
        low = float(label[1:].split(",")[0])
        return low < number and (label[0] == ">" or number < float(label.split(", ")[1][:-1]))
    return true_of_number(label, number)


@pytest.mark.parametrize("outside", ["ends", "bound", "other", "drop"])
@pytest.mark.parametrize("method", LABELS_ABOVE)
def test_no_label_of_any_kind_of_hierarchy_contradicts_its_row(method: str, outside: str) -> None:
    release = LABELS_ABOVE[method]
    names = ["cost", "school"] if len(release.get("columns", "four")) == 2 else ["cost", "school", "icd", "phone"]
    columns = {name: section | {"role": "quasi"} for name, section in of_every_kind(outside).items() if name in names}
    content: dict[str, Any] = {
        "incrowd": 1,
        "dataset": {"name": "pupils"},
        "columns": columns,
        "release": {"method": method, **release, "levels": dict.fromkeys(names, 1)},
        "budget": {"unbounded": "a test"},
    }
    read, published = load_policy(content), 0
    for cells in CELLS:
        values = dict(zip(names, cells, strict=False))
        rows = pa.table({name: [value] * 200 for name, value in values.items()})
        table = read.plan.draw(open_table(rows, read.schema, read.options), SeededCoins(5)).to_arrow()
        for row in table.to_pylist():
            if row.get("count", 200) and row.get("count", 200) > 40:  # fewer may be noise
                published += 1
                assert all(true_of_any(name, row.get(name), value) for name, value in values.items()), (row, values)
    assert published
