"""Points: parameters, guarantee, steps, and what comes out of rows."""

from __future__ import annotations

from collections import Counter
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd.core.domain import Dates, Numbers, Provenance, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.loss import Crowd, Grouped, NoisyWhenSmall, Sampled
from incrowd.core.schema import Column, Outside, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.synthesis.points.method import SyntheticPoints
from incrowd.noise.system import SystemCoins
from tests.coins import ScriptedCoins, SeededCoins
from tests.methods.synthesis.boxes import column, side, table_of
from tests.plans import steps_json
from tests.tables import Batches

ASKED: Any = {"epsilon": Fraction(1), "delta": Fraction(1, 10**4)}
HALF = Fraction(1, 2)
PLANE = (side("x"), side("y"))


def rows_out(method: SyntheticPoints, table: Table, coins: Any = None) -> list[tuple[Any, ...]]:
    made = method.release(table, coins or SystemCoins()).to_arrow()
    return [tuple(row.values()) for row in made.to_pylist()]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "s .* or error"),
        ({"s": 3, "error": HALF}, "one of the two"),
        ({"s": 0, "k": 2}, "at least 1"),
        ({"error": Fraction(0), "k": 2}, "above 0"),
        ({"s": 3, "k": 0}, "at least 1"),
        ({"s": 3, "k": 2, "noise_epsilon": Fraction(-1)}, "above 0"),
        ({"s": 3, "k": 2, "rate": Fraction(2)}, "at most at 1"),
        ({"s": 3, "k": 2, "place": "corners"}, "centers or uniform"),
        ({"s": 3, "k": 2, "columns": ("x", "x")}, "each column once"),
        ({"s": 3, "k": 2, "rate": HALF}, "needs delta"),
        ({"s": 3}, "k must be given"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(given: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        SyntheticPoints(**given)


def test_crowded_cells_are_exact_and_others_vanish_without_noise() -> None:
    table = table_of(PLANE, ([0.1] * 5 + [0.9, 0.9, 0.4], [0.1] * 5 + [0.9, 0.9, 0.6]))
    assert Counter(rows_out(SyntheticPoints(s=2, k=3), table)) == {(0.25, 0.25): 5}
    assert Counter(rows_out(SyntheticPoints(s=2, k=2), table)) == {(0.25, 0.25): 5, (0.75, 0.75): 2}


def test_small_and_empty_cells_get_noise_and_crowded_ones_do_not() -> None:
    table = table_of((side("x"),), ([0.1] * 5 + [0.4],))
    coins = ScriptedCoins(laplace=[9, 1, -1, 2])  # two cells with rows, then two without
    assert Counter(rows_out(SyntheticPoints(s=4, k=3, noise_epsilon=HALF), table, coins)) == {
        (0.125,): 5,
        (0.375,): 2,
        (0.875,): 2,
    }


def test_points_come_in_the_order_of_their_cells() -> None:
    chance = np.random.default_rng(1)
    made = rows_out(SyntheticPoints(s=5, k=2), table_of(PLANE, chance.uniform(0, 1, (2, 300))))
    assert made == sorted(made)


def test_uniform_points_lie_in_the_cells_of_the_centers() -> None:
    columns = (side("x", -1, 2), column("n", Numbers(0, 10)), column("day", Dates("2024-01-01", "2024-01-31")))
    chance = np.random.default_rng(2)
    days = [date(2024, 1, int(day)) for day in chance.integers(1, 32, 400)]
    table = table_of(columns, (chance.uniform(-1, 2, 400), chance.integers(0, 11, 400), days))
    method = SyntheticPoints(s=3, k=4, place="uniform")
    made, grid = method.release(table, SystemCoins()), method.grid(table.schema)
    points = made.to_arrow()
    assert points.schema.types == [pa.float64(), pa.int64(), pa.date32()]
    codes = [axis.codes(points[axis.column.name].combine_chunks()) for axis in grid.axes]
    assert (np.repeat(made.keys, made.counts) == grid.cells.layout.pack(codes)).all()
    assert len(set(points["x"].to_pylist())) > 100
    assert made.to_arrow().equals(points), "the same every time"


def test_centers_of_whole_numbers_may_lie_between_two_of_them() -> None:
    table = table_of((column("n", Numbers(0, 9)),), ([0, 1, 2, 9],))
    assert rows_out(SyntheticPoints(s=2, k=1), table) == [(2.0,), (2.0,), (2.0,), (7.0,)]
    assert rows_out(SyntheticPoints(s=5, k=2), table) == [(0.5,), (0.5,)]


def test_values_outside_and_missing_follow_their_column_s_rule() -> None:
    def out(values: list[float | None], **rules: Any) -> list[tuple[Any, ...]]:
        told = column("x", Numbers(0, 1, Type.DECIMAL), **rules)
        return rows_out(SyntheticPoints(s=2, k=1), table_of((told,), (values,)))

    assert out([-5.0, 0.6, None]) == [(0.25,), (0.75,)]
    assert out([-5.0, 0.6, None], outside=Outside.DROP) == [(0.75,)]
    assert out([None, 0.6], missing="0.1") == [(0.25,), (0.75,)]


def test_a_chosen_column_alone_makes_the_box() -> None:
    table = table_of(PLANE, ([0.1, 0.2], [0.9, 0.1]))
    method = SyntheticPoints(("y",), s=2, k=1)
    assert method.release(table, SystemCoins()).schema.names == ["y"]
    assert method.grid(table.schema).size == 2


def test_the_guarantee_is_that_of_the_counts() -> None:
    schema = Schema(PLANE)
    sampled = SyntheticPoints(s=4, rate=HALF, **ASKED)
    noisy = SyntheticPoints(s=4, rate=HALF, noise_epsilon=Fraction(1), **ASKED)
    assert sampled.plan(schema).guarantee.loss == Sampled(HALF, Crowd(21))
    assert noisy.plan(schema).guarantee.loss == Sampled(HALF, NoisyWhenSmall(21, Fraction(1)))
    assert SyntheticPoints(s=4, k=7).plan(schema).guarantee.loss == Crowd(7)
    assert SyntheticPoints(s=4, k=7, noise_epsilon=Fraction(0)).plan(schema).guarantee.loss == Crowd(7)
    assert SyntheticPoints(s=4, k=7, noise_epsilon=HALF).plan(schema).guarantee.loss == NoisyWhenSmall(7, HALF)
    kinds = [claim.kind for claim in noisy.plan(schema).claims]
    assert kinds[0] == "approximate differential privacy"
    assert kinds[-2:] == ["crowd-blending", "Lipschitz error"]
    assert noisy.plan(schema).smallest_class is None


def test_people_with_several_rows_are_grouped_and_need_a_sample() -> None:
    unit = Unit(Kind.PERSON, column="id", max_rows=2)
    schema = Schema((Column("id", Role.IDENTIFIER), *PLANE), unit)
    method = SyntheticPoints(s=4, rate=HALF, **ASKED)
    assert isinstance(method.plan(schema).guarantee.loss, Grouped)
    kinds = [claim.kind for claim in method.plan(schema).claims]
    assert kinds == ["approximate differential privacy", "Lipschitz error"]
    assert steps_json(method, schema)[0]["step"] == "keep rows of each person"
    with pytest.raises(InvalidParameter, match="max_rows"):
        SyntheticPoints(s=4, k=5).plan(schema)


def test_of_each_person_so_many_points_are_made_as_the_unit_allows() -> None:
    unit = Unit(Kind.PERSON, column="id", max_rows=1)
    schema = Schema((Column("id", Role.IDENTIFIER), side("x")), unit)
    rows = pa.table({"id": ["a", "a", "a", "b"], "x": [0.1, 0.1, 0.1, 0.1]})
    made = SyntheticPoints(s=2, k=1).release(Table(schema, Batches(rows), LocalEngine()), SeededCoins(3))
    assert len(made) == 2


def test_a_secret_sample_is_drawn_first() -> None:
    table = table_of((side("x"),), ([0.1] * 40 + [0.9] * 40,))
    method = SyntheticPoints(s=2, rate=HALF, **ASKED)
    assert len(rows_out(method, table, ScriptedCoins(range(30)))) == 30


def test_a_box_drafted_from_rows_is_refused_until_its_source_is_public() -> None:
    def schema(provenance: Provenance) -> Schema:
        domain = Numbers(0, 1, Type.DECIMAL, provenance)
        return Schema((Column("x", type=Type.DECIMAL, hierarchy=Flat(domain, provenance)), side("y")))

    drafted = schema(Provenance(derived=True))
    with pytest.raises(InvalidParameter, match="drafted from rows"):
        SyntheticPoints(s=4, k=5).plan(drafted)
    assert SyntheticPoints(("y",), s=4, k=5).plan(drafted).guarantee.loss == Crowd(5)
    assert SyntheticPoints(s=4, k=5).plan(schema(Provenance(True, "the map"))).guarantee.loss == Crowd(5)


def test_identifiers_are_never_coordinates() -> None:
    schema = Schema((Column("id", Role.IDENTIFIER), side("x")))
    with pytest.raises(InvalidParameter, match="identifier"):
        SyntheticPoints(("id",), s=4, k=5).plan(schema)


def test_noise_that_drowns_everything_is_refused_before_a_row_is_read() -> None:
    schema = Schema(tuple(side(f"x{n}") for n in range(10)))
    with pytest.raises(Infeasible, match="stand for nobody"):
        SyntheticPoints(s=10, k=20, noise_epsilon=Fraction(1, 10)).plan(schema)
    assert SyntheticPoints(s=10, k=20).plan(schema).guarantee.loss == Crowd(20)


@pytest.mark.parametrize(("d", "s"), [(10, 10), (10, 100), (12, 5000)])
def test_suppression_works_on_grids_beyond_any_memory(d: int, s: int) -> None:
    columns = tuple(side(f"x{n}") for n in range(d))
    chance = np.random.default_rng(3)
    values = chance.uniform(0, 1, (d, 50))
    values = np.concatenate([values, np.repeat(values[:, :3], 6, axis=1)], axis=1)
    made = SyntheticPoints(s=s, k=5).release(table_of(columns, values), SystemCoins())
    assert sorted(made.counts.tolist()) == [7, 7, 7]
    points = np.stack([column.to_numpy() for column in made.to_arrow().columns])
    wanted = values[:, :3][:, np.lexsort(np.floor(values[:, :3] * s)[::-1])]
    assert np.abs(points[:, ::7] - wanted).max() <= 0.5 / s + 1e-12


def test_ten_dimensions_with_noise_that_is_nearly_silent() -> None:
    columns = tuple(side(f"x{n}") for n in range(10))
    values = np.random.default_rng(4).uniform(0, 1, (10, 20))
    values = np.concatenate([values, np.repeat(values[:, :1], 9, axis=1)], axis=1)
    made = SyntheticPoints(s=10, k=5, noise_epsilon=Fraction(12)).release(table_of(columns, values), SystemCoins())
    assert (np.diff(made.keys) > 0).all()
    assert 10 in made.counts.tolist()
    assert 20_000 < len(made) < 100_000  # 10^10 cells · e^(−12) ≈ 61,442 phantoms; one standard deviation is 248


def test_the_solved_settings_are_told() -> None:
    found = SyntheticPoints(error=Fraction(1, 20), rate=HALF, **ASKED).plan(Schema(PLANE)).settings
    assert (found["k"], found["s"], found["cells"], found["solved"]) == (21, 15, 225, "k")
    assert Fraction(found["points move at most"]) <= Fraction(1, 20)


def test_evidence_tells_of_the_points_and_never_of_the_rows() -> None:
    table = table_of((side("x"),), ([0.1] * 9 + [0.6],))
    made = SyntheticPoints(s=2, k=5).release(table, SystemCoins())
    told = made.evidence(Unit(), private=False)
    assert (told["rows"], told["cells with points"]) == (9, 1)
    assert "10" not in str(told)
