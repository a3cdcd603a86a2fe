"""Guarantees compose only for one unit, unite what they assume, and survive JSON."""

import json
from fractions import Fraction

import pytest
from hypothesis import given

from incrowd.core.guarantee import Guarantee, in_sequence
from incrowd.core.loss import Crowd, Grouped, Loss, Parallel, Pure, RobustlySampled, Sampled, Sequence, Syntactic
from incrowd.core.terms import Assumption, Theorem, joined
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import IncrowdError, InvalidParameter, MixedUnits, UnsupportedVersion
from tests.losses import guarantees

ONE = Guarantee(
    Pure(Fraction(1)), Unit(), (Theorem("noise", "noise"),), frozenset({Assumption("a", "a")}), Fraction(1, 100)
)
TWO = Guarantee(
    Pure(Fraction(2)),
    Unit(),
    (Theorem("more-noise", "more noise"),),
    frozenset({Assumption("b", "b")}),
    Fraction(1, 50),
)


@given(guarantees)
def test_every_guarantee_survives_json(guarantee: Guarantee) -> None:
    assert Guarantee.from_json(json.loads(json.dumps(guarantee.to_json()))) == guarantee


def test_composition_unites_reasons_and_assumptions() -> None:
    both = in_sequence((ONE, TWO))
    assert both.loss == Sequence((ONE.loss, TWO.loss))
    assert set(map(str, both.assumes)) == {"a", "b"}
    assert both.delta == Fraction(3, 100)
    assert "noise; more noise" in joined(both.because)


@pytest.mark.parametrize("unit", [Unit(adjacency=Adjacency.REPLACE), Unit(Kind.PERSON, column="id"), Unit(Kind.EDGE)])
def test_mixed_units_are_refused(unit: Unit) -> None:
    other = Guarantee(Pure(Fraction(1)), unit, (Theorem("noise", "noise"),))
    with pytest.raises(MixedUnits, match="different units"):
        in_sequence((ONE, other))


def test_a_syntactic_part_is_seen_through_everything() -> None:
    hidden = Sampled(Fraction(1, 2), Sequence((Pure(Fraction(1)), Syntactic("l-diversity"))))
    assert Guarantee(hidden, Unit(), ()).syntactic
    assert not ONE.syntactic


def test_nothing_to_compose_is_an_error() -> None:
    with pytest.raises(InvalidParameter):
        in_sequence(())


@pytest.mark.parametrize("delta", [Fraction(-1), Fraction(1)])
def test_a_delta_outside_its_range_is_refused(delta: Fraction) -> None:
    with pytest.raises(InvalidParameter):
        Guarantee(Pure(Fraction(1)), Unit(), (), delta=delta)


TENTH = Fraction(1, 10)
VISITS = Unit(Kind.PERSON, column="id", max_rows=3)


@pytest.mark.parametrize(
    "loss",
    [
        Crowd(20),
        Sampled(TENTH, Crowd(20)),
        Sampled(TENTH, Grouped(3, Pure(Fraction(1)))),
        RobustlySampled(TENTH, TENTH, 0, TENTH, Crowd(20)),
        Parallel((Pure(Fraction(1)), Sequence((Grouped(3, Crowd(20)), Sampled(TENTH, Crowd(20)))))),
        Grouped(2, Sampled(TENTH, Crowd(20))),
        Grouped(2, Grouped(3, Pure(Fraction(1)))),
    ],
)
def test_people_with_several_rows_are_not_guaranteed_the_price_of_one_row(loss: Loss) -> None:
    with pytest.raises(InvalidParameter, match="a person has up to 3"):
        Guarantee(loss, VISITS, ())
    with pytest.raises(InvalidParameter, match="a person has up to 3"):
        Guarantee.from_json(Guarantee(loss, Unit(), ()).to_json() | {"unit": VISITS.to_json()})


@pytest.mark.parametrize(
    "loss",
    [
        Pure(Fraction(1)),
        Grouped(3, Sampled(TENTH, Crowd(20))),
        Sequence((Grouped(4, Sampled(TENTH, Crowd(20))), Pure(Fraction(1)))),
    ],
)
def test_people_with_several_rows_are_guaranteed_what_counts_all_of_them(loss: Loss) -> None:
    assert Guarantee(loss, VISITS, ()).loss == loss


def test_another_version_is_refused() -> None:
    with pytest.raises(UnsupportedVersion):
        Guarantee.from_json(ONE.to_json() | {"guarantee": 2})


@pytest.mark.parametrize("name", ["loss", "unit", "because", "assumes", "delta"])
def test_a_missing_field_is_refused(name: str) -> None:
    plain = ONE.to_json()
    del plain[name]
    with pytest.raises(IncrowdError):
        Guarantee.from_json(plain)


def test_a_partition_of_rows_says_nothing_about_people_with_several() -> None:
    people, blocks = Unit(Kind.PERSON, column="id", max_rows=3), Parallel((Pure(Fraction(1)), Pure(Fraction(1))))
    with pytest.raises(InvalidParameter, match="they can lie in several"):
        Guarantee(blocks, people, ())
    assert Guarantee(Grouped(3, blocks), people, ()).loss == Grouped(3, blocks)
    with pytest.raises(InvalidParameter, match="can touch every block"):
        Guarantee(Sequence((blocks,)), Unit(Kind.NODE), ())
