"""`check` for every criterion: what it finds and decides, against counting row by row and against the methods' own."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.criteria.criterion import All
from incrowd.criteria.partition import Partition
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, UnknownColumn
from incrowd.methods.anonymity.shared.demands import Population, Presence, Recursive, Sensitive, Unique
from incrowd.workflows.check.check import CheckedColumns, CheckResult, check
from incrowd.workflows.check.criteria import CheckCriteria, CriterionFinding
from incrowd.workflows.check.raw_cells import as_is
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.policy.rows import released_levels
from tests.criteria import names as criteria
from tests.criteria import slow_criteria as slow
from tests.workflows.release.test_criteria import EVERYTHING, MONDRIAN, SUPPRESSED, published, rows

Row = tuple[str, str]
ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(slow.VALUES)), min_size=1, max_size=25)
ASKED = CheckedColumns(("q",), ("ill",))
TREE = {
    "incrowd": 1,
    "dataset": {"name": "ill"},
    "columns": {
        "q": {"categories": ["a", "b", "c"]},
        "ill": {
            "role": "sensitive",
            "hierarchy": {
                "tree": {"lungs": ["cough", "flu"], "heart": ["attack", "murmur"], "none": ["healthy"]},
            },
        },
    },
    "release": {"method": "full-domain", "k": 1, "sensitive": {"ill": {"l": 1}}},
}
WELL = frozenset({"healthy"})


def disclosed(here: slow.Histogram, everywhere: slow.Histogram) -> bool:
    hurting = [value for value in everywhere if value not in WELL]
    return any(not Fraction(1, 4) < slow.share(here, v) / slow.share(everywhere, v) < 4 for v in hurting)


WAYS: dict[str, tuple[Sensitive, slow.Holds, str]] = {
    "distinct": (Sensitive(l=2), lambda here, _: len(here) >= 2, criteria.DISTINCT),
    "distinct, harmless": (
        Sensitive(l=2, harmless=("healthy",)), lambda here, _: len(here) >= 2 or set(here) <= WELL, criteria.DISTINCT
    ),
    "entropy": (
        Sensitive(entropy_l=Fraction(9, 5)),
        lambda here, _: slow.entropy(here) >= math.log(1.8) - 1e-9,
        criteria.ENTROPY,
    ),
    "recursive": (
        Sensitive(recursive=Recursive(Fraction(2), 3), harmless=("healthy",)),
        lambda here, _: slow.recursive(here, Fraction(2), 3, WELL),
        criteria.RECURSIVE,
    ),
    "equal": (
        Sensitive(t=Fraction(2, 5)), lambda here, all_: slow.equal(here, all_) <= Fraction(2, 5), criteria.EQUAL
    ),
    "ordered": (
        Sensitive(t=Fraction(1, 5), distance="ordered"),
        lambda here, all_: slow.ordered(here, all_) <= Fraction(1, 5),
        criteria.ORDERED,
    ),
    "hierarchical": (
        Sensitive(t=Fraction(3, 10), distance="hierarchical"),
        lambda here, all_: slow.hierarchical(here, all_) <= Fraction(3, 10),
        criteria.HIERARCHICAL,
    ),
    "likeness": (
        Sensitive(beta=Fraction(1)), lambda here, all_: slow.gain(here, all_, 1, enhanced=False), criteria.LIKENESS
    ),
    "enhanced": (
        Sensitive(enhanced_beta=Fraction(1)),
        lambda here, all_: slow.gain(here, all_, 1, enhanced=True),
        criteria.ENHANCED,
    ),
    "disclosure": (
        Sensitive(disclosure=Fraction(2)), lambda here, all_: not slow.disclosed(here, all_), criteria.DISCLOSURE
    ),
    "disclosure, harmless": (
        Sensitive(disclosure=Fraction(2), harmless=("healthy",)),
        lambda here, all_: not disclosed(here, all_),
        criteria.DISCLOSURE,
    ),
}  # fmt: skip


def opened(table: list[Row]) -> Any:
    return open_source(pa.table({"q": [row[0] for row in table], "ill": [row[1] for row in table]}))


def finding(verdict: CheckResult, criterion: str) -> CriterionFinding:
    return next(each for each in verdict.findings if each.criterion == criterion)


@pytest.mark.parametrize("way", WAYS)
@given(table=ROWS)
@settings(max_examples=25, deadline=None)
def test_what_falls_short_is_what_counting_row_by_row_finds(way: str, table: list[Row]) -> None:
    wanted, holds, criterion = WAYS[way]
    everywhere = Counter(row[1] for row in table)
    classes = {q: Counter(ill for other, ill in table if other == q) for q, _ in table}
    short = sum(here.total() for here in classes.values() if not holds(here, everywhere))
    found = finding(check(opened(table), CheckCriteria(sensitive=wanted), ASKED, load_policy(TREE)), criterion)
    assert found.short == short
    assert found.passed is (short == 0)


@pytest.mark.parametrize("way", WAYS)
@given(table=ROWS)
@settings(max_examples=10, deadline=None)
def test_what_is_short_is_what_a_method_would_leave_out(way: str, table: list[Row]) -> None:
    wanted, _, criterion = WAYS[way]
    if wanted.distance is not None:
        return  # as it is, a table has neither order nor tree; the oracle above judges these
    source = opened(table)
    counts = LocalEngine().count(source, as_is(source, ("q", "ill")))
    partition = Partition.of(counts, ["q"], ["ill"])
    met = All(tuple(wanted.criteria("ill", "equal"))).met(partition)
    assert finding(check(source, CheckCriteria(sensitive=wanted), ASKED), criterion).short == int(
        partition.sizes[~met].sum()
    )


@given(ROWS, st.lists(st.sampled_from("abcd"), max_size=30))
@settings(max_examples=50, deadline=None)
def test_a_population_and_all_classes_together_are_counted(table: list[Row], others: list[str]) -> None:
    people = pa.table({"q": [*others, *(row[0] for row in table)]})
    frame = {"behind": people}
    sizes, behind = Counter(row[0] for row in table), Counter(people["q"].to_pylist())

    class Engine(LocalEngine):
        def open(self, source: object, *given: Any) -> Any:
            return open_source(frame["behind"]) if source == "behind" else super().open(source, *given)

    wanted = CheckCriteria(
        average_risk=Fraction(1, 4),
        unique=Unique(Fraction(1, 10), 100),
        population=Population("behind", k=4, presence=Presence(Fraction(1, 2), Fraction(1, 10))),
    )
    verdict = check(opened(table), wanted, CheckedColumns(("q",)), engine=Engine())
    assert finding(verdict, criteria.MAPPED).value == min(behind[q] for q in sizes)
    assert finding(verdict, criteria.MAPPED).short == sum(n for q, n in sizes.items() if behind[q] < 4)
    shares = [n / behind[q] for q, n in sizes.items()]
    assert finding(verdict, criteria.MOST_PRESENCE).value == pytest.approx(max(shares))
    absent = set(behind) - set(sizes)
    assert finding(verdict, criteria.LEAST_PRESENCE).value == pytest.approx(0 if absent else min(shares))
    assert finding(verdict, criteria.LEAST_PRESENCE).passed is (not absent and min(shares) >= 0.1 - 1e-12)
    assert finding(verdict, criteria.AVERAGE).value == pytest.approx(len(sizes) / len(table))
    assert finding(verdict, criteria.AVERAGE).passed is (4 * len(sizes) <= len(table))
    assert finding(verdict, criteria.UNIQUE).passed is not None


@pytest.mark.parametrize("policy", [EVERYTHING, MONDRIAN, SUPPRESSED], ids=["full-domain", "mondrian", "suppressed"])
def test_what_was_released_passes_what_the_file_can_show_of_its_policy(policy: dict[str, Any], tmp_path: Path) -> None:
    folder = published(policy, tmp_path)
    loaded, levels = load_policy(tmp_path / "policy.yaml"), released_levels(str(folder))
    verdict = check(open_source(folder / "data.parquet"), CheckCriteria(), CheckedColumns(levels=levels), loaded)
    failed = {each.criterion for each in verdict.findings if each.passed is False}
    if policy is not SUPPRESSED:
        assert failed == set()
    assert failed <= {criteria.EQUAL, criteria.ORDERED, criteria.HIERARCHICAL, criteria.LIKENESS, criteria.ENHANCED,
                      criteria.DISCLOSURE}  # fmt: skip
    asked = {each.criterion for each in verdict.findings if each.expected is not None}
    assert {criteria.RECURSIVE, criteria.HIERARCHICAL, criteria.LIKENESS, criteria.DISCLOSURE} <= asked
    if policy is SUPPRESSED:
        assert finding(verdict, criteria.MAPPED).passed is True
        assert finding(verdict, criteria.MOST_PRESENCE).passed is True


def test_the_rows_themselves_do_not_pass(tmp_path: Path) -> None:
    published(SUPPRESSED, tmp_path)
    verdict = check(open_source(rows()), CheckCriteria(), CheckedColumns(), load_policy(tmp_path / "policy.yaml"))
    assert not verdict.passed
    assert criteria.RELEASED not in {each.criterion for each in verdict.findings}
    recoded = check(
        open_source(rows()), CheckCriteria(), CheckedColumns(recoded=True), load_policy(tmp_path / "policy.yaml")
    )
    assert finding(recoded, criteria.MAPPED).value is not None


def test_what_is_named_takes_the_place_of_what_the_policy_demands() -> None:
    policy = load_policy(TREE)
    table: list[Row] = [("a", "flu"), ("a", "cough"), ("b", "flu"), ("b", "flu")]
    assert check(opened(table), CheckCriteria(), CheckedColumns(), policy).passed
    assert not check(opened(table), CheckCriteria(l=2), CheckedColumns(), policy).passed
    assert finding(check(opened(table), CheckCriteria(k=3), CheckedColumns(), policy), criteria.CROWDS).expected == 3


def test_values_that_the_tree_does_not_have_are_far_from_all() -> None:
    policy = load_policy(TREE | {"release": {"method": "full-domain", "k": 1,
        "sensitive": {"ill": {"t": 1, "distance": "hierarchical"}}}})  # fmt: skip
    near: list[Row] = [("a", "flu"), ("b", "cough")]
    far: list[Row] = [("a", "flu"), ("b", "plague")]
    found = [
        finding(check(opened(each), CheckCriteria(), CheckedColumns(), policy), criteria.HIERARCHICAL).value
        for each in (near, far)
    ]
    assert found == [pytest.approx(0.25), pytest.approx(0.5)]


def test_a_population_without_a_quasi_identifier_is_refused(tmp_path: Path) -> None:
    pyarrow.csv.write_csv(pa.table({"other": ["a"]}), tmp_path / "people.csv")
    wanted = CheckCriteria(population=Population(str(tmp_path / "people.csv"), k=2))
    with pytest.raises(UnknownColumn):
        check(opened([("a", "flu")]), wanted, CheckedColumns(("q",)))


def test_more_rows_than_people_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="does not fit"):
        check(opened([("a", "flu")] * 3), CheckCriteria(unique=Unique(Fraction(1, 2), 2)), CheckedColumns(("q",)))


def test_an_empty_table_passes_everything(tmp_path: Path) -> None:
    pyarrow.csv.write_csv(pa.table({"q": ["a"]}), tmp_path / "people.csv")
    wanted = CheckCriteria(
        average_risk=Fraction(1, 4),
        unique=Unique(Fraction(1, 10), 100),
        population=Population(str(tmp_path / "people.csv"), k=4, presence=Presence(Fraction(1, 2))),
        sensitive=Sensitive(recursive=Recursive(Fraction(1), 2), beta=Fraction(1), enhanced_beta=Fraction(1),
                            disclosure=Fraction(1)),
    )  # fmt: skip
    empty = open_source(pa.table({"q": pa.array([], pa.string()), "ill": pa.array([], pa.string())}))
    verdict = check(empty, wanted, ASKED)
    assert verdict.passed
    assert {each.value for each in verdict.findings} == {None}


def test_the_levels_of_a_release_are_read_from_its_certificate(tmp_path: Path) -> None:
    assert released_levels(None) == released_levels(str(tmp_path)) == {}
    (tmp_path / "certificate.json").write_text('{"evidence": {"levels": {"age": 1}}}', encoding="utf-8")
    assert released_levels(str(tmp_path)) == {"age": 1}
    for broken in ("", "[]", "{}", '{"evidence": {"levels": [1]}}'):
        (tmp_path / "certificate.json").write_text(broken, encoding="utf-8")
        with pytest.raises(InvalidParameter, match="cannot be read"):
            released_levels(str(tmp_path))
