"""What remains true of each claim where people decide, and the counterexamples to what is not."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.accounting.suppression.tight_delta import delta
from incrowd.core.loss import Sampled
from incrowd.core.schema import Column
from incrowd.core.steps.around import CONSENTERS
from incrowd.core.subjects import SubjectKey
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.engines.local.views import Consenting, PseudonymFilter
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, Refused
from incrowd.governance.consent.event import Decided
from incrowd.workflows.consent.changes import ConsentChanges
from incrowd.workflows.consent.subject import guesses
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from tests.consents import FORM, GATED, consented
from tests.policies import changed

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors_consent.json").read_text(encoding="utf-8"))
KEY = SubjectKey(bytes(32))


def gated(rows: list[tuple[str, int]], consenting: frozenset[str]) -> list[tuple[str, int]]:
    """Return rows behind the gate, by the real one."""
    table = pa.table({"id": pa.array([one for one, _ in rows], pa.string()), "x": [x for _, x in rows]})
    admitted = PseudonymFilter(Column("id"), KEY, frozenset(map(KEY.pseudonym, consenting)))
    found = [batch.to_pylist() for batch in Consenting(open_source(table), admitted).batches(["id", "x"])]
    return [(row["id"], row["x"]) for rows in found for row in rows]


def subsets(people: tuple[str, ...]) -> list[frozenset[str]]:
    sizes = (combinations(people, size) for size in range(len(people) + 1))
    return [frozenset(each) for each in chain.from_iterable(sizes)]


def test_neighbors_are_gated_to_the_same_table_or_to_neighbors() -> None:
    people = ("ann", "bob", "eve")
    table = [(each, number) for number, each in enumerate(people)]
    for consenting in subsets(people):
        for leaving in people:
            without = gated([row for row in table if row[0] != leaving], consenting)
            whole = gated(table, consenting)
            assert without == [row for row in whole if row[0] != leaving]
            assert len(whole) - len(without) == (leaving in consenting)  # a refuser has loss 0


def test_the_number_of_people_who_consent_is_not_public() -> None:
    # a mean with noise by the number of people who consent: D = {0} against {0, 0}
    given = VECTORS["S_denominator"]
    eps, z = given["eps"], given["z"]
    one, two = (math.log(n * eps / 2) - n * eps * z for n in (1, 2))
    assert one - two == pytest.approx(given["loss"], abs=1e-9)
    assert one - two == pytest.approx(eps * z - math.log(2), abs=1e-9)


def test_a_gate_for_people_who_are_replaced_is_refused() -> None:
    # replaced people leave the number of rows as it is; behind a gate it moves by one
    one, other = [("ann", 1)], [("bob", 1)]
    assert len(gated(one, frozenset({"ann"}))) != len(gated(other, frozenset({"ann"})))
    with pytest.raises(InvalidParameter, match="added or removed"):
        load_policy(changed(GATED, dataset__unit__adjacency="replace-one"))
    step = load_policy(GATED).gate
    assert step is not None
    with pytest.raises(InvalidParameter, match="added or removed"):
        step.around(None, Unit(Kind.PERSON, Adjacency.REPLACE, "id"))  # type: ignore[arg-type]


def test_opting_in_is_not_sampling() -> None:
    given = VECTORS["S_optin"]
    k, beta, eps = given["k"], str(given["beta"]), str(given["eps"])
    true = delta(k, beta, eps)
    claimed = delta(k, str(Fraction(beta) * Fraction(str(given["opt_in"]))), eps)
    assert true == pytest.approx(given["delta_true"], rel=1e-9)
    assert claimed == pytest.approx(given["delta_claimed_at_product_rate"], rel=1e-9)
    assert true / claimed == pytest.approx(given["understated_by"], rel=1e-6)
    told = {"method": "safe", "levels": {"age": 2, "zip": 1}, "rate": beta, "k": k, "delta": "1e-10"}
    loss = load_policy(changed(GATED, release=told)).plan.guarantee.loss
    assert isinstance(loss, Sampled)
    assert loss.rate == Fraction(beta)


def test_k_is_counted_after_the_gate(tmp_path: Path) -> None:
    given = VECTORS["S_gate_order"]
    rows = {"sex": ["F"] * given["class_size"], "age": ["30"] * given["class_size"]}
    rows |= {"zip": ["02100"] * given["class_size"], "id": [f"p{each}" for each in range(given["class_size"])]}
    plain = changed(FORM, release__k=given["k"], release__suppression="1")
    few = [f"p{each}" for each in range(given["consenting"])]
    assert len(gated([(each, 0) for each in rows["id"]], frozenset(few))) == given["released_if_counted_before_gate"]
    made = consented(plain, tmp_path, few)
    assert release(pa.table(rows), made.policy).result.to_arrow().num_rows == 0


def test_refusers_hide_nobody() -> None:
    given = VECTORS["S_complement"]
    refuser = given["lone_refuser"]
    rows = [("refuser", refuser), *((f"p{each}", each) for each in (155, 300))]
    assert sum(value for _, value in rows) == given["total_public"]
    consenters = sum(value for _, value in gated(rows, frozenset({"p155", "p300"})))
    assert consenters == given["consenting_sum"]
    assert given["total_public"] - consenters == refuser  # so the certificate says that refusers hide nobody
    assert all(CONSENTERS in claim.not_protected for claim in load_policy(GATED).plan.claims)


def binomial(n: int, p: Fraction, hits: int) -> Fraction:
    return math.comb(n, hits) * p**hits * (1 - p) ** (n - hits)


def test_coins_that_are_used_again_name_who_left() -> None:
    given = VECTORS["S_withdraw"]["reused_coins"]
    n, k, beta = given["n"], given["k"], Fraction(str(given["beta"]))
    reached = 1 - sum(binomial(n - 1, beta, hits) for hits in range(k))
    assert float(beta * reached) == pytest.approx(given["delta_any_eps"], abs=1e-9)
    gone = VECTORS["S_withdraw"]["crossing_k"]["probability_cell_disappears_reused"]
    assert float(beta * binomial(n - 1, beta, k - 1)) == pytest.approx(gone, abs=1e-9)


def alone(leavers: int, cells: int) -> Fraction:
    """Return the chance that some cell loses exactly one of some people who leave cells at random.

    Of the cells^leavers ways to leave, those without a lone leaver are leavers! times the coefficient of x^leavers in
    (e^x - x)^cells.
    """
    series = [Fraction(0 if power == 1 else 1, math.factorial(power)) for power in range(leavers + 1)]
    whole = [Fraction(1)] + [Fraction(0)] * leavers
    for _ in range(cells):
        whole = [sum((whole[i] * series[n - i] for i in range(n + 1)), Fraction(0)) for n in range(leavers + 1)]
    return 1 - math.factorial(leavers) * whole[leavers] / Fraction(cells) ** leavers


@pytest.mark.parametrize("given", VECTORS["S_leavers"], ids=lambda given: f"{given['leavers']} of {given['cells']}")
def test_a_minimum_in_total_leaves_somebody_alone_in_a_cell(given: dict[str, Any]) -> None:
    found = float(alone(given["leavers"], given["cells"]))
    assert found == pytest.approx(given["P_some_cell_loses_exactly_one"], abs=1e-9)


@pytest.mark.parametrize(
    ("leavers", "joiners", "isolates"),
    [(0, 0, False), (1, 0, True), (0, 1, True), (5, 0, False), (5, 5, False), (1, 1, True), (5, 4, True), (9, 1, True)],
)
def test_leavers_and_joiners_of_a_cell_are_each_none_or_k(leavers: int, joiners: int, isolates: bool) -> None:
    assert ConsentChanges("r", 5, leavers, joiners, ("sex",), ("F",)).isolates is isolates


def test_two_tables_without_an_epsilon_around_a_withdrawal_would_name_the_cell(tmp_path: Path) -> None:
    ids = [f"p{each}" for each in range(40)]
    rows = pa.table({"sex": ["F", "M"] * 20, "age": ["30"] * 40, "zip": ["02100"] * 40, "id": ids})
    made = consented(changed(FORM, release__k=5), tmp_path, ids)
    (tmp_path / "out").mkdir()
    release_to(rows, made.policy, Destination(tmp_path / "out" / "a"))
    made.decide(Decided.WITHDRAW, ["p0"])
    with pytest.raises(Refused, match=r"sex F, .*: 1 left"):
        release_to(rows, made.policy, Destination(tmp_path / "out" / "b"))


@pytest.mark.parametrize(
    ("epsilon", "failure"), [("0", "0"), ("0.1", "0"), ("0.5", "0.001"), ("1", "0"), ("3", "0.01")]
)
def test_no_guess_is_right_more_often_than_kairouz_oh_and_viswanath_2015_allow(epsilon: str, failure: str) -> None:
    """The worst pair of laws with (ε, δ): one outcome each that tells, and a fair response with odds e^ε."""
    odds, open_ = math.exp(float(epsilon)), float(failure)
    one = [open_, (1 - open_) * odds / (1 + odds), (1 - open_) / (1 + odds), 0.0]
    best = sum(max(p, q) for p, q in zip(one, reversed(one), strict=True)) / 2
    bound = guesses(Decimal(epsilon), Decimal(failure))
    assert best <= bound / 100 + 1e-12
    assert bound / 100 < best + 0.01 + 1e-12, "and not higher than rounding up"
