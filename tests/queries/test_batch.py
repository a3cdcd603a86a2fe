"""Questions that are planned together: shares add up to what was paid, by whichever way has the narrower noise."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting import accountant
from incrowd.core.domain import Categories, Numbers, Type
from incrowd.core.guarantee import Guarantee
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.loss import Pure
from incrowd.core.rounding import round_up
from incrowd.core.schema import Column, Schema
from incrowd.core.terms import Theorem
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.mechanisms.vector_noise import AddCube, AddGaussianVector
from incrowd.queries.batch import Batch, batch
from incrowd.queries.language.reading import split_queries
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import price_of
from incrowd.queries.query import Catalog, QueryTerms, Relation
from incrowd.verifier.slow_accountant import derive

SCHEMA = Schema(
    (
        Column("sex", hierarchy=Flat(Categories(("F", "M")))),
        Column("age", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 120))),
        Column("zip"),
    )
)
CATALOG = Catalog((Relation("people", SCHEMA, "people"),))
COUNT, MEAN = "SELECT sex, COUNT(*) FROM people GROUP BY sex", "SELECT AVG(age) FROM people WHERE sex = 'F'"
MEDIAN = "SELECT sex, MEDIAN(age), COUNT(*) FROM people GROUP BY sex"
OPEN = "SELECT zip, COUNT(*) FROM people GROUP BY zip"


def planned(texts: list[str], delta: Fraction = Fraction(0)) -> Batch:
    return batch(
        [understand(text, CATALOG) for text in texts], SCHEMA.unit, QueryTerms(epsilon=Fraction(1), delta=delta)
    )


def spent(found: Batch) -> tuple[float, float]:
    guarantee = found.plan.guarantee
    spend = accountant.charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency)
    return float(spend.epsilon), float(spend.delta)


def test_shares_follow_what_each_question_asks_for_and_add_up() -> None:
    found = planned([COUNT, MEAN])
    assert [each.terms.epsilon for each in found.measurements] == [Fraction(1, 3), Fraction(2, 3)]
    epsilon, delta = spent(found)
    assert epsilon == pytest.approx(1.0)
    assert delta == 0.0


@pytest.mark.parametrize("number", [1, 2, 40])
def test_never_more_than_was_paid_is_spent(number: int) -> None:
    for delta in (Fraction(0), Fraction(1, 10**6)):
        epsilon, used = spent(planned([COUNT] * number, delta))
        assert epsilon <= 1.0 + 1e-9
        assert used <= float(delta)


def test_few_questions_share_epsilon_and_many_share_rho() -> None:
    few, many = planned([COUNT] * 3, Fraction(1, 10**6)), planned([COUNT] * 40, Fraction(1, 10**6))
    assert isinstance(few.measurements[0].noise_choice.noise, AddCube)
    assert isinstance(many.measurements[0].noise_choice.noise, AddGaussianVector)
    assert many.width < planned([COUNT] * 40).width


def test_groups_that_nobody_listed_need_a_delta_for_all_of_them() -> None:
    with pytest.raises(InvalidParameter, match="need a threshold, and that a delta"):
        planned([COUNT, OPEN])
    found = planned([OPEN, OPEN, COUNT], Fraction(1, 10**6))
    assert spent(found)[1] <= 1e-6


DOZEN = [COUNT, MEAN, *(f"SELECT COUNT(*) FROM people WHERE age > {age}" for age in range(9)), OPEN]


@pytest.mark.parametrize("times", [1, 4])
def test_a_dozen_questions_with_groups_that_nobody_listed_cost_what_was_offered(times: int) -> None:
    """Version 1 charged an epsilon of 3.5 for 1, and of 7.2 for forty-eight questions."""
    found = planned(DOZEN * times, Fraction(1, 10**6))
    assert isinstance(found.measurements[0].noise_choice.noise, AddGaussianVector)
    epsilon, delta = spent(found)
    assert 0.9 < epsilon <= 1.0
    assert delta <= 1e-6
    guarantee = found.plan.guarantee
    derived = derive(guarantee.loss, guarantee.unit, epsilon, guarantee.delta)
    assert derived is not None
    assert derived.whole
    assert derived.delta <= 1e-6 * (1 + 1e-6)


@given(
    st.lists(st.sampled_from([COUNT, MEAN, OPEN, MEDIAN]), min_size=1, max_size=30), st.sampled_from(["1/3", "1", "5"])
)
@settings(max_examples=25, deadline=None)
def test_whatever_is_asked_together_costs_no_more_than_was_offered(texts: list[str], offered: str) -> None:
    questions = [understand(text, CATALOG) for text in texts]
    for delta in (Fraction(1, 10**9), Fraction(1, 100)):
        terms = QueryTerms(epsilon=Fraction(offered), delta=delta)
        guarantee = batch(questions, SCHEMA.unit, terms).plan.guarantee
        spend = accountant.charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency)
        assert spend.epsilon <= round_up(Fraction(offered))
        assert spend.delta <= round_up(delta)


def test_what_costs_more_than_was_offered_is_refused() -> None:
    dear = Guarantee(Pure(Fraction(11, 10)), SCHEMA.unit, (Theorem("twice-as-much", "twice as much"),))
    with pytest.raises(Infeasible, match=r"epsilon 1 was offered, and what is asked would cost 1\.1"):
        price_of(dear, QueryTerms(epsilon=Fraction(1)))
    with pytest.raises(Infeasible, match="with delta"):
        price_of(replace(dear, loss=Pure(Fraction(1)), delta=Fraction(1, 10)), QueryTerms(epsilon=Fraction(1)))
    assert price_of(dear, QueryTerms(epsilon=Fraction(11, 10)))["epsilon"] == round_up(Fraction(11, 10))


@pytest.mark.parametrize("terms", [QueryTerms(error=Fraction(5)), QueryTerms(rho=Fraction(1, 100))])
def test_a_batch_is_paid_by_epsilon(terms: QueryTerms) -> None:
    with pytest.raises(InvalidParameter, match="give epsilon"):
        batch([understand(COUNT, CATALOG)], SCHEMA.unit, terms)


def test_a_batch_reads_all_rows_and_has_questions() -> None:
    with pytest.raises(InvalidParameter, match="no rate"):
        batch([understand(COUNT, CATALOG)], SCHEMA.unit, QueryTerms(epsilon=Fraction(1), rate=Fraction(1, 2)))
    with pytest.raises(InvalidParameter, match="at least one"):
        batch([], SCHEMA.unit, QueryTerms(epsilon=Fraction(1)))


@pytest.mark.parametrize("text", ["", " ; ; ", "-- nothing", "SELECT 'open"])
def test_a_text_without_questions_is_bad_input(text: str) -> None:
    with pytest.raises(InvalidParameter):
        split_queries(text)
