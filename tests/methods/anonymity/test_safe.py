from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.domain import Categories, Provenance, Text
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.loss import Crowd, Grouped, Sampled, Syntactic
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.steps.rows import DRAFTED
from incrowd.core.table import Table
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.methods.anonymity.safe import Safe
from tests.coins import ScriptedCoins
from tests.plans import steps_json
from tests.tables import Batches, as_counter, text_table

SEX = Column("sex", Role.QUASI, hierarchy=Flat(Categories(("F", "M"))))
ZIP = Column("zip", Role.QUASI, hierarchy=Prefix(Text(), (2,)))
ROWS = Schema((SEX, ZIP))
PERSON = Unit(Kind.PERSON, column="id")
PEOPLE = Schema((Column("id", Role.IDENTIFIER), SEX), PERSON)
DELTA = Fraction(1, 10**6)
SAFE = Safe({"zip": 1}, epsilon=Fraction(1), delta=DELTA, rate=Fraction(1, 10))


def released(
    safe: Safe, schema: Schema, columns: dict[str, list[str | None]], coins: ScriptedCoins
) -> Counter[tuple[object, ...]]:
    return as_counter(safe.release(Table(schema, Batches(text_table(columns), 3), LocalEngine()), coins).counts)


def test_the_guarantee_is_that_of_sampled_suppression() -> None:
    guarantee = SAFE.plan(ROWS).guarantee
    assert guarantee.loss == Sampled(Fraction(1, 10), Crowd(8))
    assert guarantee.delta == DELTA
    assert guarantee.unit == ROWS.unit
    assert "nobody knows the sampling randomness; it was deleted" in map(str, guarantee.assumes)


def test_a_person_with_several_rows_costs_more_and_has_no_crowd() -> None:
    unit = Unit(Kind.PERSON, column="id", max_rows=3)
    several = Schema(PEOPLE.columns, unit)
    safe = Safe({}, epsilon=Fraction(1), delta=DELTA, rate=Fraction(1, 10))
    loss = safe.plan(several).guarantee.loss
    assert isinstance(loss, Grouped)
    assert loss.size == 3
    assert loss.inner == Sampled(Fraction(1, 10), Crowd(safe.smallest_class(several)))
    assert safe.smallest_class(several) > safe.smallest_class(PEOPLE)
    kinds = [claim.kind for claim in safe.plan(several).claims]
    assert kinds == ["approximate differential privacy", "k-anonymity"]


def test_the_claims_of_a_row_are_all_five_and_k_anonymity() -> None:
    assert [claim.kind for claim in SAFE.plan(ROWS).claims] == [
        "approximate differential privacy",
        "zero-knowledge with respect to random sampling",
        "approximate differential privacy, as published",
        "f-smooth differential privacy",
        "crowd-blending",
        "k-anonymity",
    ]


def test_replacing_costs_more_than_removing() -> None:
    replaced = Schema(ROWS.columns, Unit(adjacency=Adjacency.REPLACE))
    fixed = Safe({"zip": 1}, delta=DELTA, rate=Fraction(1, 10), k=20)
    assert fixed.parameters(replaced.unit).epsilon > fixed.parameters(ROWS.unit).epsilon
    assert "zero-knowledge with respect to random sampling" not in [claim.kind for claim in SAFE.plan(replaced).claims]


def test_without_a_sample_there_is_a_crowd_and_no_epsilon() -> None:
    safe = Safe({"zip": 1}, k=5, rate=Fraction(1))
    assert safe.plan(ROWS).guarantee.loss == Crowd(5)
    assert [claim.kind for claim in safe.plan(ROWS).claims] == ["crowd-blending", "k-anonymity"]
    with pytest.raises(InvalidParameter, match="without a secret sample there is no epsilon"):
        safe.parameters(Unit())


def test_without_a_sample_crowds_of_rows_say_nothing_about_people_with_several() -> None:
    schema = Schema(PEOPLE.columns, Unit(Kind.PERSON, column="id", max_rows=2))
    with pytest.raises(InvalidParameter, match="keep max_rows at 1"):
        Safe(k=5, rate=Fraction(1)).plan(schema)


@pytest.mark.parametrize("where", ["hierarchy", "domain"])
def test_what_was_drafted_from_rows_leaves_only_k_anonymity(where: str) -> None:
    draft = Provenance(derived=True)
    hierarchy = Flat(Categories(("F", "M"), draft if where == "domain" else Provenance()), draft)
    schema = Schema((Column("sex", Role.QUASI, hierarchy=hierarchy), ZIP))
    assert SAFE.plan(schema).guarantee.loss == Syntactic("k-anonymity", (("k", "8"), (DRAFTED, ("sex",))))
    assert [claim.kind for claim in SAFE.plan(schema).claims] == ["k-anonymity"]
    vouched = Flat(Categories(("F", "M")), Provenance(derived=True, public="the civil registry's list"))
    public = Schema((Column("sex", Role.QUASI, hierarchy=vouched), ZIP))
    assert SAFE.plan(public).guarantee.loss == Sampled(Fraction(1, 10), Crowd(8))


def test_free_text_is_refused_and_its_prefix_is_not() -> None:
    with pytest.raises(InvalidParameter, match="'zip' would be released as free text"):
        Safe({}, epsilon=Fraction(1), delta=DELTA, rate=Fraction(1, 10)).plan(ROWS)
    SAFE.plan(ROWS)


@pytest.mark.parametrize(
    "given_",
    [
        {"k": 0, "delta": DELTA},
        {"rate": Fraction(0), "delta": DELTA},
        {"rate": Fraction(3, 2), "delta": DELTA},
        {"k": 5},
        {"rate": Fraction(1)},
        {"k": 5, "rate": Fraction(1), "weights": True},
    ],
)
def test_parameters_that_mean_nothing_are_refused_at_once(given_: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        Safe(**given_)  # type: ignore[arg-type]


@pytest.mark.parametrize("given_", [{}, {"k": 5, "rate": Fraction(1, 2), "epsilon": Fraction(1), "delta": DELTA}])
def test_exactly_two_of_epsilon_k_and_rate_are_given(given_: dict[str, object]) -> None:
    safe = Safe(**({"delta": DELTA} | given_))  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="exactly two of epsilon, k and rate"):
        safe.parameters(Unit())


def test_a_delta_below_rate_to_the_k_is_infeasible_and_the_message_names_what_is() -> None:
    safe = Safe(k=5, rate=Fraction(1, 2), delta=DELTA)
    with pytest.raises(
        Infeasible, match=r"delta 0\.000001 is below rate \*\* k.*k = 20 at this rate, or a rate of at most"
    ):
        safe.plan(Schema((SEX,)))


def test_a_tuple_survives_if_k_of_its_rows_are_in_the_sample() -> None:
    safe = Safe({"zip": 1}, k=2, rate=Fraction(1, 2), delta=Fraction(1, 4))
    columns: dict[str, list[str | None]] = {
        "sex": ["F", "F", "F", "M", "M", "M", None, None],
        "zip": ["021", "022", "029", "021", "94", "94", "9", "9"],
    }
    everyone = released(safe, ROWS, columns, ScriptedCoins(range(8)))
    assert everyone == {("F", "02"): 3, ("M", "94"): 2, (None, "9"): 2}
    assert released(safe, ROWS, columns, ScriptedCoins([0, 2, 4, 6, 7])) == {("F", "02"): 2, (None, "9"): 2}
    assert released(safe, ROWS, columns, ScriptedCoins([])) == {}


def test_of_each_person_one_row_takes_part_before_the_sample_is_drawn() -> None:
    safe = Safe({}, k=2, rate=Fraction(1, 2), delta=Fraction(1, 4))
    columns: dict[str, list[str | None]] = {
        "id": ["a", "a", "a", "b", "c", None, "", "d"],
        "sex": ["F", "M", "F", "F", "F", "F", "F", "M"],
    }
    kept_first = ScriptedCoins(range(8), below=[1, 5, 9, 0, 0, 0, 0])
    assert released(safe, PEOPLE, columns, kept_first) == {("F",): 4}
    kept_second = ScriptedCoins(range(8), below=[5, 1, 9, 0, 0, 0, 0])
    assert released(safe, PEOPLE, columns, kept_second) == {("F",): 3, ("M",): 2}
    # The row that was kept is not in the sample; another row of the same person does not step in.
    assert released(safe, PEOPLE, columns, ScriptedCoins([0, 2, 3, 4], below=[5, 1, 9, 0, 0, 0, 0])) == {("F",): 2}


@given(
    st.lists(st.sampled_from([None, "F", "M", "X"]), max_size=20),
    st.sets(st.integers(0, 19)),
    st.integers(1, 5),
)
def test_a_release_is_the_sample_counted_and_nothing_else(values: list[str | None], members: set[int], k: int) -> None:
    safe = Safe({}, k=k, rate=Fraction(1, 2), delta=Fraction(1, 2))
    found = released(safe, Schema((SEX,)), {"sex": values}, ScriptedCoins(members))
    sampled = Counter(("other" if value == "X" else value,) for n, value in enumerate(values) if n in members)
    assert found == {tuple_: times for tuple_, times in sampled.items() if times >= k}


def test_the_steps_tell_what_was_done() -> None:
    safe = Safe({}, epsilon=Fraction(1), delta=DELTA, rate=Fraction(1, 10))
    steps = {step["step"]: step for step in steps_json(safe, PEOPLE)}
    assert list(steps) == ["keep rows of each person", "sample", "recode", "suppress", "order"]
    assert steps["sample"]["rate"] == "1/10"
    assert steps["suppress"]["k"] == 8
    assert steps["recode"]["columns"][0]["column"] == "sex"
    assert steps_json(Safe(k=5, rate=Fraction(1)), Schema((SEX,)))[0] == {"step": "sample"}


def test_arrow_dictionaries_give_the_same_as_text() -> None:
    safe = Safe({}, k=2, rate=Fraction(1, 2), delta=Fraction(1, 4))
    values = np.random.default_rng(3).choice(["F", "M"], 50)
    plain = pa.table({"sex": pa.array(values)})
    packed = pa.table({"sex": pa.array(values).dictionary_encode()})
    coins = [ScriptedCoins(range(0, 50, 3)) for _ in range(2)]
    one, other = (
        as_counter(safe.release(Table(Schema((SEX,)), Batches(table, 7), LocalEngine()), each).counts)
        for table, each in zip((plain, packed), coins, strict=True)
    )
    assert one == other
