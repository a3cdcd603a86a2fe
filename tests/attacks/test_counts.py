"""Published counts are solved for people; releases under different generalizations are intersected."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest

from incrowd.attacks.finding import AttackVerdict
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.records.count_reconstruction import _solved, count_reconstruction
from incrowd.attacks.records.several_releases import intersection
from incrowd.errors import InvalidParameter

COLUMNS = ("âge", "sexe", "quartier", "maladie")
SIZES = (6, 2, 8, 5)


def people(rows: int, seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    values = [chance.integers(0, size, rows) for size in SIZES]
    return pa.table({name: [f"{name} {code}" for code in codes] for name, codes in zip(COLUMNS, values, strict=True)})


def counted(table: pa.Table, columns: tuple[str, ...], noise: float = 0.0) -> PublishedTable:
    """Return the counts of a table over some columns, with zeros, and with noise if asked."""
    chance = np.random.default_rng(3)
    rows = [tuple(row[name] for name in columns) for row in table.to_pylist()]
    cells = list(product(*(sorted(set(table[name].to_pylist())) for name in columns)))
    counts = [rows.count(cell) + round(chance.normal() * noise) for cell in cells]
    data = {name: [cell[place] for cell in cells] for place, name in enumerate(columns)}
    return PublishedTable(pa.table({**data, "count": counts}), count="count")


def attacked(table: pa.Table, size: int, noise: float, rows: pa.Table, others: pa.Table) -> tuple[float, float, str]:
    first, *rest = (counted(table, columns, noise) for columns in combinations(COLUMNS, size))
    published = PublishedTable(first.table, count="count", earlier=tuple(rest))
    found = count_reconstruction(published, Knowledge(rows, COLUMNS), others)
    assert found.control is not None
    return found.success.estimate, found.control.estimate, str(found.verdict)


def test_exact_counts_of_three_columns_give_people_away_and_noisy_ones_of_two_do_not() -> None:
    rows, others = people(120, 1), people(120, 2)
    success, control, verdict = attacked(rows, 3, 0.0, rows, others)
    assert success > 0.6
    assert verdict == AttackVerdict.LEAK
    success, control, verdict = attacked(rows, 1, 4.0, rows, others)
    assert verdict == AttackVerdict.NOT_FOUND
    assert abs(success - control) < 0.25


def test_counts_of_other_people_give_nobody_away() -> None:
    _, _, verdict = attacked(people(120, 3), 3, 0.0, people(120, 1), people(120, 2))
    assert verdict == AttackVerdict.NOT_FOUND


def test_the_integer_program_finds_the_only_table_with_these_counts() -> None:
    """Two by two with sums of rows and columns and one cell: the slow way tries every table."""
    cells = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 0, 0]], bool)
    truth = np.array([2, 1, 0, 3])
    counts = cells @ truth
    tables = [table for table in product(range(5), repeat=4) if (cells @ np.array(table) == counts).all()]
    assert tables == [tuple(truth)]
    assert _solved(cells, counts.astype(float)).tolist() == truth.tolist()


def test_tables_without_counts_or_with_too_many_cells_are_refused() -> None:
    rows = people(60, 1)
    with pytest.raises(InvalidParameter, match="--count"):
        count_reconstruction(PublishedTable(rows), Knowledge(rows, COLUMNS), None)
    wide = pa.table({name: [str(number) for number in range(60)] for name in COLUMNS})
    with pytest.raises(InvalidParameter, match="combinations of values"):
        count_reconstruction(
            PublishedTable(wide.append_column("count", pa.array([1] * 60)), count="count"),
            Knowledge(wide, COLUMNS),
            None,
        )


def test_two_generalizations_of_the_secret_leave_one_value() -> None:
    """One release shows the secret by halves, the other by remainders; each alone leaves several values possible."""
    chance = np.random.default_rng(1)
    ages, ills = chance.permutation(200), chance.integers(0, 6, 200)
    rows = pa.table({"âge": ages.astype(str), "maladie": ills.astype(str)})
    halves = [f"[{3 * (ill // 3)}, {3 * (ill // 3) + 2}]" for ill in ills]
    pairs = [f"[{ill}, {ill + 1}]" if ill % 3 == 2 else f"[{ill // 3 * 3}, {ill // 3 * 3 + 1}]" for ill in ills]
    one, other = (PublishedTable(pa.table({"âge": ages.astype(str), "maladie": labels})) for labels in (halves, pairs))
    published = PublishedTable(one.table, earlier=(other,))
    others = pa.table({"âge": (500 + ages).astype(str), "maladie": rows["maladie"]})
    found = intersection(published, Knowledge(rows, ("âge",), "maladie"), others)
    assert found.success.hits == np.count_nonzero(
        ills % 3 == 2
    )  # 2 is the only value of [0, 2] and [2, 3], 5 of the other
    assert found.control is not None
    assert found.control.hits == 0
    assert found.verdict is AttackVerdict.LEAK
