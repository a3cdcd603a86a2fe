"""Whatever is demanded of the classes, what is released meets it, at the least loss; an oracle counts row by row."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.codec import encode
from incrowd.core.domain import Categories, Numbers, Text, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.intervals import Intervals
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.hierarchy.tree import tree
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import Infeasible, InvalidParameter, UnknownColumn
from incrowd.methods.anonymity.full_domain import FullDomain
from incrowd.methods.anonymity.mondrian.method import Mondrian
from incrowd.methods.anonymity.shared.demands import Demands, Population, Presence, Recursive, Sensitive, Unique
from incrowd.methods.shared.microdata import Anonymized
from incrowd.noise.system import SystemCoins
from tests.criteria import slow_criteria as slow
from tests.tables import Batches

CITY = Column("city", Role.QUASI, hierarchy=tree({"north": ["Oslo", "Bergen"], "south": ["Rome", "Bari"]}))
SEX = Column("sex", Role.QUASI, hierarchy=Flat(Categories(("F", "M"))))
ILL = Column("ill", Role.SENSITIVE, hierarchy=slow.ILLNESSES)
SCHEMA = Schema((CITY, SEX, ILL))
REGION = {"Oslo": "north", "Bergen": "north", "Rome": "south", "Bari": "south"}
STEPS = {0: 0.0, 1: 1 / 3, 2: 1.0}
Row = tuple[str, str, str]
CITIES = st.sampled_from([*REGION])
ROWS = st.lists(st.tuples(CITIES, st.sampled_from("FM"), st.sampled_from(slow.VALUES)), min_size=1, max_size=14)
PEOPLE = st.lists(st.tuples(CITIES, st.sampled_from("FM")), min_size=1, max_size=30)
SHARES = st.sampled_from([Fraction(0), Fraction(1, 4), Fraction(1)])
WELL = frozenset({"healthy"})
Classes = dict[tuple[str, ...], Counter[str]]

WAYS: dict[str, tuple[Sensitive, slow.Holds]] = {
    "distinct, harmless": (
        Sensitive(l=2, harmless=("healthy",)),
        lambda here, _: len(here) >= 2 or set(here) <= WELL,
    ),
    "entropy": (Sensitive(entropy_l=Fraction(9, 5)), lambda here, _: slow.entropy(here) >= math.log(1.8) - 1e-12),
    "recursive": (
        Sensitive(recursive=Recursive(Fraction(2), 3), harmless=("healthy",)),
        lambda here, _: slow.recursive(here, Fraction(2), 3, WELL),
    ),
    "equal": (Sensitive(t=Fraction(2, 5)), lambda here, all_: slow.equal(here, all_) <= Fraction(2, 5)),
    "equal, harmless": (
        Sensitive(t=Fraction(2, 5), harmless=("healthy",)),
        lambda here, all_: slow.equal(here, all_) <= Fraction(2, 5) or set(here) <= WELL,
    ),
    "ordered": (
        Sensitive(t=Fraction(1, 5), distance="ordered"),
        lambda here, all_: slow.ordered(here, all_) <= Fraction(1, 5),
    ),
    "hierarchical": (
        Sensitive(t=Fraction(3, 10), distance="hierarchical"),
        lambda here, all_: slow.hierarchical(here, all_) <= Fraction(3, 10),
    ),
    "likeness": (Sensitive(beta=Fraction(1)), lambda here, all_: slow.gain(here, all_, 1, enhanced=False)),
    "enhanced likeness": (
        Sensitive(enhanced_beta=Fraction(1)),
        lambda here, all_: slow.gain(here, all_, 1, enhanced=True),
    ),
    "disclosure": (Sensitive(disclosure=Fraction(2)), lambda here, all_: not slow.disclosed(here, all_)),
    "disclosure, harmless": (
        Sensitive(disclosure=Fraction(2), harmless=("healthy",)),
        lambda here, all_: all(
            Fraction(1, 4) < slow.share(here, value) / slow.share(all_, value) < 4
            for value in all_
            if value not in WELL
        ),
    ),
}


def released(method: FullDomain | Mondrian, rows: list[Any], schema: Schema = SCHEMA) -> Anonymized:
    columns = {
        column.name: pa.array([row[place] for row in rows], pa.string()) for place, column in enumerate(schema.columns)
    }
    return method.release(Table(schema, Batches(pa.table(columns)), LocalEngine()), SystemCoins())


def shown(outcome: Anonymized) -> Classes:
    """Return the classes of what was released."""
    found: Classes = {}
    for row in outcome.to_arrow().to_pylist():
        found.setdefault((row["city"], row["sex"]), Counter())[row["ill"]] += 1
    return found


def at(rows: list[Any], city: int, sex: int) -> list[tuple[str, str]]:
    return [((row[0], REGION[row[0]], "*")[city], (row[1], "*")[sex]) for row in rows]


def slowly(rows: list[Row], kept: Callable[[Classes, int, int], Classes], allowed: int) -> float | None:
    """Try every combination of levels; return the least loss, or None if none leaves out few enough rows."""
    best = None
    for city, sex in product(range(3), range(2)):
        classes: Classes = {}
        for label, row in zip(at(rows, city, sex), rows, strict=True):
            classes.setdefault(label, Counter())[row[2]] += 1
        left = sum(values.total() for values in kept(classes, city, sex).values())
        if len(rows) - left <= allowed:
            loss = (left * (STEPS[city] + sex) + (len(rows) - left) * 2.0) / (2 * len(rows))
            best = loss if best is None else min(best, loss)
    return best


def loss(outcome: Anonymized, rows: list[Row]) -> float:
    left = len(outcome)
    levels = outcome.levels  # type: ignore[attr-defined]
    return float((left * (STEPS[levels["city"]] + levels["sex"]) + (len(rows) - left) * 2.0) / (2 * len(rows)))


@pytest.mark.parametrize("way", WAYS)
@given(ROWS, SHARES)
@settings(max_examples=30, deadline=None)
def test_every_class_meets_what_is_demanded_and_the_loss_is_the_least(
    way: str, rows: list[Row], share: Fraction
) -> None:
    demanded, holds = WAYS[way]
    everywhere = Counter(row[2] for row in rows)
    outcome = released(FullDomain(2, sensitive={"ill": demanded}, suppression=share), rows)

    def kept(classes: Classes, _city: int, _sex: int) -> Classes:
        return {label: ill for label, ill in classes.items() if ill.total() >= 2 and holds(ill, everywhere)}

    best = slowly(rows, kept, int(share * len(rows)))
    assert kept(shown(outcome), 0, 0) == shown(outcome)
    if best is None:
        assert len(outcome) == 0
    else:
        assert len(rows) - len(outcome) <= share * len(rows)
        assert loss(outcome, rows) == pytest.approx(best)


@pytest.mark.parametrize("way", WAYS)
@given(rows=ROWS)
@settings(max_examples=15, deadline=None)
def test_every_class_that_mondrian_cuts_meets_what_is_demanded(way: str, rows: list[Row]) -> None:
    demanded, holds = WAYS[way]
    everywhere = Counter(row[2] for row in rows)
    outcome = released(Mondrian(2, sensitive={"ill": demanded}), rows)
    assert all(ill.total() >= 2 and holds(ill, everywhere) for ill in shown(outcome).values())
    whole = len(rows) >= 2 and holds(everywhere, everywhere)
    assert len(outcome) == (len(rows) if whole else 0)


@given(ROWS, PEOPLE, SHARES, st.tuples(st.integers(1, 6), st.sampled_from([Fraction(1, 2), Fraction(1)])))
@settings(max_examples=60, deadline=None)
def test_every_class_meets_what_is_demanded_against_the_population(
    rows: list[Row], people: list[tuple[str, str]], share: Fraction, bounds: tuple[int, Fraction]
) -> None:
    (k, most), everybody = bounds, [*people, *(row[:2] for row in rows)]
    with TemporaryDirectory() as folder:
        file = Path(folder, "people.csv")
        pc.write_csv(pa.table({"sex": [sex for _, sex in everybody], "city": [city for city, _ in everybody]}), file)
        named = Population(str(file), k=k, presence=Presence(most))
        outcome = released(FullDomain(1, population=named, suppression=share), rows)

    def kept(classes: Classes, city: int, sex: int) -> Classes:
        behind: Counter[tuple[str, ...]] = Counter(at(everybody, city, sex))
        return {
            label: ill for label, ill in classes.items() if behind[label] >= k and ill.total() <= most * behind[label]
        }

    best = slowly(rows, kept, int(share * len(rows)))
    if best is None:
        assert len(outcome) == 0
        return
    levels = outcome.levels  # type: ignore[attr-defined]
    assert kept(shown(outcome), levels["city"], levels["sex"]) == shown(outcome)
    assert loss(outcome, rows) == pytest.approx(best)


def test_an_absent_class_betrays_its_people_where_a_least_presence_is_demanded(tmp_path: Path) -> None:
    pc.write_csv(pa.table({"city": ["Oslo", "Rome"], "sex": ["F", "F"]}), tmp_path / "people.csv")
    named = Population(str(tmp_path / "people.csv"), presence=Presence(Fraction(1), Fraction(1, 4)))
    assert released(FullDomain(1, population=named), [("Oslo", "F", "flu")]).levels == {  # type: ignore[attr-defined]
        "city": 2,
        "sex": 0,
    }


def unique(sizes: list[int], people: int) -> Fraction:
    """Zayatz's estimate by its definition, with exact binomials."""
    rows = sum(sizes)
    weigh = {i: Fraction(i * math.comb(people - i, rows - 1), math.comb(people, rows)) for i in set(sizes)}
    every = sum((weigh[i] for i in sizes), Fraction(0))
    return weigh[1] * sizes.count(1) / every * Fraction(sizes.count(1), rows) if 1 in sizes else Fraction(0)


@given(ROWS, SHARES, st.sampled_from([Fraction(1, 5), Fraction(1, 2)]), st.sampled_from([14, 20, 100]))
@settings(max_examples=60, deadline=None)
def test_all_classes_together_meet_what_is_demanded(rows: list[Row], share: Fraction, limit: Fraction, n: int) -> None:
    outcome = released(FullDomain(1, average_risk=limit, unique=Unique(limit / 4, n), suppression=share), rows)
    sizes = [ill.total() for ill in shown(outcome).values()]
    if sizes:
        assert Fraction(len(sizes), sum(sizes)) <= limit
        assert unique(sizes, n) <= limit / 4 + Fraction(1, 10**9)
        assert len(rows) - sum(sizes) <= share * len(rows)
    elif share < 1:  # even one class of all rows is too few
        assert len(rows) * limit < 1


def test_several_sensitive_columns_each_have_demands_of_their_own() -> None:
    paid = Column("paid", Role.SENSITIVE, Type.INTEGER, Flat(Numbers(0, 9)))
    schema = Schema((SEX, ILL, paid))
    rows = [("F", "flu", "1"), ("F", "gout", "1"), ("M", "flu", "9"), ("M", "cough", "9")]
    assert len(released(FullDomain(2, l=2, sensitive={"paid": Sensitive(l=1)}), rows, schema)) == 4
    only = released(FullDomain(2, sensitive={"paid": Sensitive(t=Fraction(0))}), rows, schema)
    assert set(only.to_arrow()["sex"].to_pylist()) == {"*"}


def test_what_is_demanded_of_one_column_takes_the_place_of_what_is_demanded_of_all() -> None:
    demands = Demands(2, 2, sensitive={"ill": Sensitive(l=3, t=Fraction(1, 2), harmless=("healthy",))})
    assert demands.of("ill") == Sensitive(l=3, t=Fraction(1, 2), harmless=("healthy",))
    assert demands.of("paid") == Sensitive(l=2)
    assert demands.terms() == {"k": 2, "l": 2, "l of ill": 3, "t of ill": "1/2", "harmless of ill": ("healthy",)}
    assert demands.spelled()["harmless of ill"] == "healthy"


def test_the_steps_tell_how_far_values_are_apart_where_their_type_does_not() -> None:
    for distance, told in (("ordered", {"in order"}), ("hierarchical", {"in order", "labels above"})):
        demanded = Sensitive(t=Fraction(1, 2), distance=distance)  # type: ignore[arg-type]
        assert set(encode(Demands(2, sensitive={"ill": demanded}).places(SCHEMA)["ill"])) == told
    assert Demands(2, sensitive={"ill": Sensitive(t=Fraction(1, 2), distance="equal")}).places(SCHEMA) == {}
    paid = Column("paid", Role.SENSITIVE, Type.INTEGER, Intervals(Numbers(0, 9), (5,)))
    schema, ordered = Schema((SEX, paid)), Sensitive(t=Fraction(1, 2), distance="ordered")
    fine = Demands(2, sensitive={"paid": ordered})
    assert (fine.places(schema), fine.ordered(schema)) == ({}, {"paid": Type.INTEGER})
    coarse = Demands(2, sensitive={"paid": ordered}, levels={"paid": 1})
    assert coarse.places(schema)["paid"].in_order == ("< 5", ">= 5", None)
    assert coarse.ordered(schema) == {}


def test_claims_that_the_file_cannot_show_do_not_say_that_it_was_counted() -> None:
    method = FullDomain(
        2,
        sensitive={"ill": Sensitive(l=2, t=Fraction(1, 2), harmless=("healthy",))},
        population=Population("people.csv", k=3, presence=Presence(Fraction(1, 2))),
        average_risk=Fraction(1, 4),
        unique=Unique(Fraction(1, 100), 1000),
        suppression=Fraction(1, 10),
    )
    claims = {claim.kind: claim for claim in method.plan(SCHEMA).claims}
    counted = {kind for kind, claim in claims.items() if any(c.status == "checked" for c in claim.preconditions)}
    assert set(claims) - counted == {"t-closeness", "k-map", "δ-presence"}
    assert counted == {"k-anonymity", "distinct l-diversity", "average risk", "population uniqueness"}
    assert any("harmless" in text for text in map(str, claims["distinct l-diversity"].not_protected))
    assert any("insiders" in text for text in map(str, claims["k-map"].not_protected))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"l": 0}, "l must be at least 1"),
        ({"entropy_l": Fraction(1, 2)}, "at least 1"),
        ({"recursive": Recursive(Fraction(1), 1)}, "at least 2"),
        ({"recursive": Recursive(Fraction(0), 2)}, "c must be above 0"),
        ({"t": Fraction(2)}, "between 0"),
        ({"beta": Fraction(0)}, "beta must be above 0"),
        ({"enhanced_beta": Fraction(-1)}, "beta must be above 0"),
        ({"disclosure": Fraction(0)}, "disclosure is above 0"),
        ({"distance": "far"}, "not 'far'"),
    ],
)
def test_demands_that_say_nothing_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        Sensitive(**given)


@pytest.mark.parametrize(
    ("demanded", "told"),
    [
        ({"ill": Sensitive()}, "nothing is demanded of 'ill'"),
        ({"ill": Sensitive(harmless=("healthy",))}, "nothing is demanded of 'ill'"),
        ({"ill": Sensitive(l=2, distance="equal")}, "give t too"),
        ({"ill": Sensitive(l=2, harmless=("helthy",))}, "never shows 'helthy'.*'healthy'"),
        ({"sex": Sensitive(l=2)}, "role sensitive"),
        ({"note": Sensitive(t=Fraction(1, 2), distance="ordered")}, "has no order"),
    ],
)
def test_demands_that_do_not_fit_the_declaration_are_refused_before_a_row_is_read(
    demanded: dict[str, Sensitive], told: str
) -> None:
    schema = Schema((*SCHEMA.columns, Column("note", Role.SENSITIVE, hierarchy=Prefix(Text(), (1,)))))
    levels = {"note": 1}
    for method in (FullDomain(2, sensitive=demanded, levels=levels), Mondrian(2, sensitive=demanded, levels=levels)):
        with pytest.raises(InvalidParameter, match=told):
            method.plan(schema)


def test_more_values_than_the_column_has_cannot_be_demanded() -> None:
    for demanded in (
        Sensitive(l=8),
        Sensitive(entropy_l=Fraction(15, 2)),
        Sensitive(recursive=Recursive(Fraction(1), 8)),
    ):
        with pytest.raises(Infeasible, match="at most 7 values of 'ill'"):
            FullDomain(2, sensitive={"ill": demanded}).plan(SCHEMA)
    FullDomain(2, sensitive={"ill": Sensitive(l=7)}).plan(SCHEMA)


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises((UnknownColumn, InvalidParameter), match="ilness"):
        FullDomain(2, sensitive={"ilness": Sensitive(l=2)}).plan(SCHEMA)


def test_a_population_needs_a_demand_and_declared_classes() -> None:
    with pytest.raises(InvalidParameter, match="give k or presence"):
        Population("people.csv")
    with pytest.raises(InvalidParameter, match="must not exceed the most"):
        Population("people.csv", presence=Presence(Fraction(1, 4), Fraction(1, 2)))
    schema = Schema((Column("zip", Role.QUASI, hierarchy=Prefix(Text(), (3, 1))),))
    with pytest.raises(InvalidParameter, match="'zip' are not declared"):
        FullDomain(2, population=Population("people.csv", k=2), lowest={"zip": 1}).plan(schema)
    there = Population("people.csv", presence=Presence(Fraction(1), Fraction(1, 4)))
    with pytest.raises(InvalidParameter, match="suppression is 0"):
        FullDomain(2, population=there, suppression=Fraction(1, 10))
    with pytest.raises(InvalidParameter, match="at least one person"):
        Unique(Fraction(1, 2), 0)
