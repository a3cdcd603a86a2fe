"""The sentences of certificates, held against exact laws of real releases.

Every database of up to four people with up to two rows each over two cells, every method that claims crowds, every unit
and both adjacencies: what a certificate says of a release is true of every one of them, word by word.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, cast

import pyarrow as pa
import pytest

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import (
    Anonymity,
    ApproximatePrivacy,
    Blending,
    PublishedTheorem,
    RobustTheorem,
    RobustZeroKnowledge,
    Smooth,
    ZeroKnowledge,
)
from incrowd.core.domain import Numbers, Type
from incrowd.core.hierarchy.slices import Slices
from incrowd.core.plan import Plan
from incrowd.core.schema import Column, Missing, Outside, Role, Schema
from incrowd.core.table import Table
from incrowd.core.unit import Adjacency, ExtraRowsRule, Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.safe import Safe
from incrowd.methods.anonymity.slicing.method import Slicing
from incrowd.methods.anonymity.slicing.steps import BlendingAlone
from incrowd.methods.histograms.blended import BlendedHistogram
from incrowd.methods.histograms.suppressed import SuppressedHistogram
from incrowd.methods.shared.robust import Robust
from incrowd.methods.synthesis.points.method import SyntheticPoints
from incrowd.methods.synthesis.points.steps import LipschitzError
from tests.audit.people_laws import (
    ONE_ROW,
    PEOPLE,
    TWO_ROWS,
    Database,
    Left,
    Release,
    added,
    crowds,
    furthest,
    replaced,
)
from tests.coins import law_of
from tests.tables import Batches
from tests.theorems.crowd_laws import sure
from tests.theorems.exact_laws import Law, e_to_the, pair

K, RATE, NOISE = 2, Fraction(1, 4), Fraction(1)
EVERYONE: dict[str, Any] = {"k": K, "rate": Fraction(1)}
ROWS = Unit()
PERSON = Unit(Kind.PERSON, column="id")
DROPPED = Unit(Kind.PERSON, column="id", more=ExtraRowsRule.DROP)
REFUSED = Unit(Kind.PERSON, column="id", more=ExtraRowsRule.REFUSE)
UNITS = [ROWS, PERSON, DROPPED, REFUSED]
Outcome = tuple[tuple[str, ...], ...]
"""The rows of every table that is published."""
EXACTLY = Fraction(10**12 + 1, 10**12)


def rows_of(output: Any) -> Any:
    """Return what is published, as rows."""
    parts = getattr(output, "parts", (output,))
    return tuple(tuple(sorted(map(str, [row for b in part.batches() for row in b.to_pylist()]))) for part in parts)


METHODS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "safe": lambda given: Safe(**given),
    "suppressed": lambda given: SuppressedHistogram(**given),
    "blended": lambda given: BlendedHistogram(noise_epsilon=NOISE, **given),
    "points": lambda given: SyntheticPoints(s=2, **given),
    "noisy points": lambda given: SyntheticPoints(s=2, noise_epsilon=NOISE, **given),
    "slicing": lambda given: Slicing((("x",), ("y",)), **given),
    "slicing one release": lambda given: Slicing((("x",), ("y",)), sample="joint", **given),
}


def schema_of(name: str, unit: Unit) -> Schema:
    cell: dict[str, Any] = {"type": Type.INTEGER, "hierarchy": Slices(Numbers(0, 1), 2), "missing": Missing.DROP}
    names = ("x", "y") if name.startswith("slicing") else ("x",)
    person = () if unit.column is None else (Column("id", Role.IDENTIFIER),)
    return Schema((*person, *(Column(each, outside=Outside.DROP, **cell) for each in names)), unit)


def given_of(name: str, unit: Unit, *, sampled: bool) -> dict[str, Any]:
    """Return parameters; δ is such that an ε above 0 is needed, and that one is enough."""
    if not sampled:
        return EVERYONE
    noisy = name in ("blended", "noisy points") and unit.adjacency is Adjacency.REPLACE
    delta = Fraction(1, 5) if noisy else Fraction(3, 20) if name == "slicing" else Fraction(2, 25)
    return {"k": K, "rate": RATE, "delta": delta}


@cache
def released(name: str, unit: Unit, *, sampled: bool = True) -> Release:
    method = METHODS[name](given_of(name, unit, sampled=sampled))
    return Release(method.plan(schema_of(name, unit)), RATE if sampled else Fraction(1), left_of(name, sampled=sampled))


@cache
def left_of(name: str, *, sampled: bool) -> Left:
    schema = schema_of(name, ROWS)
    return Left(METHODS[name](given_of(name, ROWS, sampled=sampled)).plan(schema), schema, rows_of)


def kinds_of(unit: Unit) -> Sequence[str]:
    """What a person can be: of a source that is refused where anyone has two rows, nothing is released."""
    return ONE_ROW if unit.column is None or unit.more is ExtraRowsRule.REFUSE else TWO_ROWS


def of_tables(release: Release) -> Callable[[Database], Law]:
    """The law of all tables together: each is drawn anew, whatever the others are."""
    if not any(getattr(step, "samples", 1) > 1 for step in release.plan.steps):
        return release.law
    one = alone(release)
    return lambda database: pair(one(database), one(database))


def alone(release: Release) -> Callable[[Database], Law]:
    """The law of the first table by itself."""

    @cache
    def first(database: Database) -> Law:
        masses: dict[Any, Fraction] = {}
        law: Mapping[Any, Fraction] = release.law(database)
        for outcome, mass in law.items():
            masses[outcome[0]] = masses.get(outcome[0], Fraction(0)) + mass
        return masses

    return first


def holds(claim: Claim, release: Release) -> bool:
    """Whether what the sentence of a claim says is true of every small database."""
    mechanism, kinds = of_tables(release), kinds_of(release.unit)
    match claim:
        case BlendingAlone():
            return crowds(alone(release), kinds, claim.k, Fraction(1))
        case Blending():
            ratio = e_to_the(claim.epsilon) * EXACTLY if claim.epsilon else Fraction(1)
            return crowds(mechanism, kinds, claim.k, ratio)
        case ApproximatePrivacy() if claim.adjacency is Adjacency.REPLACE:
            return replaced(mechanism, kinds, ratio_of(claim)) <= claim.delta * EXACTLY
        case ApproximatePrivacy() | ZeroKnowledge() | PublishedTheorem() | Smooth():
            return added(mechanism, kinds, ratio_of(claim)) <= Fraction(claim.delta) * EXACTLY
        case Anonymity():
            return all(
                count >= claim.k
                for database in ((kind,) * size for kind in kinds for size in range(PEOPLE + 1))
                for outcome in release.law(database)
                for table in cast("Outcome", outcome)
                for count in {row: table.count(row) for row in table}.values()
            )
        case LipschitzError():
            return True  # about the error, not about people: tests/theorems/test_points_gehrke_2012.py
    return False


def ratio_of(claim: Any) -> Fraction:
    return e_to_the(Fraction(claim.epsilon))


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("name", METHODS)
def test_every_claim_about_a_sample_is_true_of_every_small_database(
    name: str, unit: Unit, adjacency: Adjacency
) -> None:
    protected = Unit(unit.kind, adjacency, unit.column, unit.max_rows, unit.more)
    release = released(name, protected)
    claims = {claim.kind: claim for claim in release.plan.claims}
    assert all(claim.epsilon > 0 for claim in claims.values() if isinstance(claim, ApproximatePrivacy))
    assert "approximate differential privacy" in claims
    assert any(kind.startswith("crowd-blending") for kind in claims) == unit.single
    assert [kind for kind, claim in claims.items() if not holds(claim, release)] == []


@pytest.mark.parametrize("unit", [ROWS, DROPPED, REFUSED], ids=str)
@pytest.mark.parametrize("name", ["safe", "suppressed", "blended", "points", "noisy points"])
def test_every_claim_without_a_sample_is_true_of_every_small_database(name: str, unit: Unit) -> None:
    release = released(name, unit, sampled=False)
    assert "crowd-blending" in {claim.kind for claim in release.plan.claims}
    assert [claim.kind for claim in release.plan.claims if not holds(claim, release)] == []


def test_of_rows_kept_at_random_a_table_without_a_sample_claims_its_form_alone() -> None:
    release = released("safe", PERSON, sampled=False)
    assert [claim.kind for claim in release.plan.claims] == ["k-anonymity"]
    assert release.plan.guarantee.syntactic
    assert all(holds(claim, release) for claim in release.plan.claims)


@pytest.mark.parametrize("name", ["suppressed", "blended", "points", "noisy points"])
def test_of_rows_kept_at_random_counts_without_a_sample_are_refused(name: str) -> None:
    with pytest.raises(InvalidParameter, match="Write more: drop beside the person column"):
        released(name, PERSON, sampled=False)


@pytest.mark.parametrize("name", ["safe", "suppressed", "points", "slicing", "slicing one release"])
def test_somebody_of_whom_one_row_of_two_is_kept_blends_with_nobody(name: str) -> None:
    release = released(name, PERSON)
    assert not crowds(alone(release), TWO_ROWS, K, Fraction(1))


def test_one_row_kept_at_random_shows_its_person_without_a_sample() -> None:
    """Three rows make a cell, and two are there: t's row is the third always, half of the time, or never."""
    safe, schema = Safe(k=3, rate=Fraction(1)), schema_of("safe", ROWS)
    release = Release(safe.plan(schema_of("safe", PERSON)), Fraction(1), Left(safe.plan(schema), schema, rows_of))
    seen = [
        sum(mass for outcome, mass in release.law(database).items() if outcome != ((),))
        for database in (("a", "a"), ("a", "a", "ab"), ("a", "a", "a"))
    ]
    assert seen == [0, Fraction(1, 2), 1]
    assert furthest(release.law(("a", "a", "ab")), release.law(("a", "a")), Fraction(10**9)) == Fraction(1, 2)


LOW = Fraction(1, 8)
CHANCES = {"u": LOW, "v": RATE}
"""A person of whom a column says with which chance to draw them is written as a cell and a chance."""


@cache
def drawn_by_chance(name: str) -> tuple[Plan, Callable[[Database], Law]]:
    """Return a plan whose sample is drawn here by a column of chances, and its exact law."""
    chance = Column("chance", Role.IDENTIFIER, Type.DECIMAL)
    schema = Schema((*schema_of(name, ROWS).columns, chance))
    robust = Robust(LOW, RATE, probability="chance")
    method = {"safe": Safe, "suppressed": SuppressedHistogram}[name](k=K, delta=Fraction(2, 25), robust=robust)
    plan = method.plan(schema)

    @cache
    def law(database: Database) -> Law:
        cells, chances = [str("ab".index(p[0])) for p in database], [str(float(CHANCES[p[1]])) for p in database]
        columns = {"x": cells, "chance": chances}
        rows = pa.table({each: pa.array(values, pa.string()) for each, values in columns.items()})
        table = Table(schema, Batches(rows), LocalEngine())
        return {each: Fraction(mass) for each, mass in law_of(lambda c: rows_of(plan.release(table, c))).items()}

    return plan, law


@pytest.mark.parametrize("name", ["safe", "suppressed"])
def test_people_with_chances_of_their_own_are_claimed_privacy_and_no_crowd(name: str) -> None:
    plan, law = drawn_by_chance(name)
    kinds = [cell + chance for cell in "ab" for chance in CHANCES]
    claims = {claim.kind: claim for claim in plan.claims}
    assert not any(kind.startswith("crowd-blending") for kind in claims)
    assert not crowds(law, kinds, K, Fraction(1)), "two of one cell with different chances are told apart"
    for claim in claims.values():
        if isinstance(claim, ApproximatePrivacy | RobustZeroKnowledge | RobustTheorem):
            assert added(law, kinds, ratio_of(claim)) <= Fraction(claim.delta) * EXACTLY
    assert float(claims["approximate differential privacy"].parameters["epsilon"]) > 0


@pytest.mark.parametrize("unit", [ROWS, DROPPED], ids=str)
def test_a_change_is_a_removal_and_an_addition_and_shows_more_than_either(unit: Unit) -> None:
    release = released("safe", unit)
    (private,) = (claim for claim in release.plan.claims if isinstance(claim, ApproximatePrivacy))
    assert "added or removed" in private.sentence
    exact = added(release.law, kinds_of(unit), ratio_of(private))
    assert replaced(release.law, kinds_of(unit), ratio_of(private)) > exact


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_a_sentence_names_its_unit_and_its_adjacency(unit: Unit, adjacency: Adjacency) -> None:
    protected = Unit(unit.kind, adjacency, unit.column, unit.max_rows, unit.more)
    (private,) = (claim for claim in released("safe", protected).plan.claims if isinstance(claim, ApproximatePrivacy))
    assert private.sentence.startswith(f"For any two neighboring tables ({protected}): ")
    assert private.sentence.endswith("at most e^ε times its probability under the other table, plus δ.")


def test_a_crowd_with_noise_is_said_to_differ_by_its_factor() -> None:
    said = {name: claim.sentence for name in ("suppressed", "blended") for claim in blending_of(name)}
    assert "e^ε" not in said["suppressed"]
    assert said["blended"].count("by more than the factor e^ε") == 2


def blending_of(name: str) -> list[Claim]:
    return [claim for claim in released(name, ROWS).plan.claims if isinstance(claim, Blending)]


def test_noise_on_small_counts_needs_its_factor() -> None:
    release = released("blended", ROWS, sampled=False)
    assert not crowds(release.law, ONE_ROW, K, e_to_the(NOISE * Fraction(9, 10)))


def test_who_is_left_out_changes_nothing() -> None:
    release = released("safe", DROPPED, sampled=False)
    assert release.law(("a", "a", "ab")) == release.law(("a", "a")) == sure(rows_twice(release))


def rows_twice(release: Release) -> Any:
    (outcome,) = release.law(("a", "a"))
    assert len(cast("Outcome", outcome)[0]) == 2
    return outcome


def test_publication_of_a_source_that_was_checked_shows_that_it_passed() -> None:
    for claim in released("safe", REFUSED).plan.claims:
        assert any("publication shows that the check passed" in each for each in map(str, claim.not_protected))
    assert math.isfinite(float(released("safe", REFUSED).plan.numbers["epsilon"]))
