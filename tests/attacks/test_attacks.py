"""What every attack does alike: nothing about other people, nothing from the order of rows or the names of columns."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from incrowd.attacks import attack_names, attack_of
from incrowd.attacks.candidates import match
from incrowd.attacks.finding import AttackVerdict, Finding, Rate, above, corrected
from incrowd.attacks.knowledge import ATTACKERS, Knowledge, PublishedTable
from incrowd.attacks.records.nearest import _Apart, _least
from incrowd.errors import InvalidParameter
from tests.attacks.crowds import KNOWN, crowd
from tests.statistics.alarm import FALSE_ALARM

PEOPLE, OUTSIDERS, STRANGERS = crowd(600, 1), crowd(600, 2), crowd(600, 3)
KNOWLEDGE = Knowledge(PEOPLE, KNOWN, "ill")
ON_TABLES = ("linkage", "homogeneity", "skewness", "learning", "membership", "singling-out", "linkability", "inference")


def coarse(table: pa.Table, step: int) -> PublishedTable:
    """Return a table with fixed ranges of ages and zip codes cut short."""
    ages = [
        f"{int(age) // step * step}-{int(age) // step * step + step - 1}" for age in table.column("age").to_pylist()
    ]
    zips = [f"{code[:4]}*" for code in table.column("zip").to_pylist()]
    return PublishedTable(table.set_column(0, "zip", pa.array(zips)).set_column(1, "age", pa.array(ages)))


def rates(finding: Finding) -> tuple[Rate, Rate, Rate | None]:
    return finding.success, finding.baseline, finding.control


@pytest.mark.parametrize("name", ON_TABLES)
def test_a_release_of_other_people_betrays_nobody(name: str) -> None:
    found = attack_of(name)(coarse(STRANGERS, 10), KNOWLEDGE, OUTSIDERS).at(1 - FALSE_ALARM)
    assert found.verdict is AttackVerdict.NOT_FOUND


@pytest.mark.parametrize("name", ["linkage", "homogeneity", "skewness", "learning", "linkability", "inference"])
def test_a_table_that_was_only_made_a_little_coarser_betrays_people(name: str) -> None:
    found = attack_of(name)(coarse(PEOPLE, 3), KNOWLEDGE, OUTSIDERS).at(1 - FALSE_ALARM)
    assert found.verdict is AttackVerdict.LEAK
    assert len(found.story) == 3


@pytest.mark.parametrize("name", ON_TABLES)
def test_the_order_of_rows_and_the_names_of_columns_change_nothing(name: str) -> None:
    published, attack = coarse(PEOPLE, 5), attack_of(name)
    chance = np.random.default_rng(5)
    few = replace(KNOWLEDGE, trials=300)
    before = attack(published, few, OUTSIDERS)
    tables = [published.table, PEOPLE, OUTSIDERS]
    names = {column: f"{place} x" for place, column in enumerate(PEOPLE.column_names)}
    mixed = [
        table.take(chance.permutation(table.num_rows)).rename_columns([names[each] for each in table.column_names])
        for table in tables
    ]
    known = replace(few, people=mixed[1], known_columns=tuple(names[each] for each in KNOWN), secret=names["ill"])
    after = attack(PublishedTable(mixed[0]), known, mixed[2])
    assert rates(after) == rates(before)


def test_a_count_of_rows_is_as_good_as_the_rows() -> None:
    table = coarse(PEOPLE, 5).table
    folded = (
        table.group_by(table.column_names).aggregate([([], "count_all")]).rename_columns([*table.column_names, "n"])
    )
    for name in ("linkage", "homogeneity", "skewness"):
        one = attack_of(name)(PublishedTable(table), KNOWLEDGE, OUTSIDERS)
        other = attack_of(name)(PublishedTable(folded, count="n"), KNOWLEDGE, OUTSIDERS)
        assert rates(one) == rates(other)


def test_one_who_knows_more_finds_no_fewer() -> None:
    published = PublishedTable(PEOPLE)
    found = [
        attack_of("linkage")(published, replace(KNOWLEDGE, known_columns=KNOWN[:number]), OUTSIDERS).success.hits
        for number in (1, 2, 3)
    ]
    assert found == sorted(found)
    assert found[0] < found[2]


@pytest.mark.parametrize("name", ["prosecutor", "journalist", "marketer", "insider"])
def test_attackers_break_a_table_of_which_only_the_names_were_left_out(name: str) -> None:
    knowledge = ATTACKERS[name].knows(replace(KNOWLEDGE, known_columns=(*KNOWN, "worth")), PEOPLE.column_names)
    assert attack_of("linkage")(PublishedTable(PEOPLE), knowledge, OUTSIDERS).verdict is AttackVerdict.LEAK


def test_a_neighbor_knows_half_and_only_about() -> None:
    knowledge = ATTACKERS["neighbor"].knows(KNOWLEDGE, PEOPLE.column_names)
    assert knowledge.known_columns == ("zip", "age")
    assert knowledge.slack["age"] == pytest.approx(0.05 * 99)
    assert "age (within 4.95)" in knowledge.words
    less, more = (attack_of("linkage")(PublishedTable(PEOPLE), each, OUTSIDERS) for each in (knowledge, KNOWLEDGE))
    assert less.success.high < more.success.low


def test_a_journalist_is_not_sure_of_one_who_has_a_double_on_the_list() -> None:
    twin = PEOPLE.slice(0, 1)
    listed = replace(KNOWLEDGE, known_columns=(*KNOWN, "worth"), listed=True, people=PEOPLE)
    alone = attack_of("linkage")(PublishedTable(PEOPLE), listed, OUTSIDERS).success.hits
    doubled = attack_of("linkage")(PublishedTable(PEOPLE), listed, pa.concat_tables([OUTSIDERS, twin])).success.hits
    assert doubled == alone - 1


def test_minimality_reads_who_broke_the_rule() -> None:
    """Wong et al. 2007: two of q1 are ill, so the table had to be made coarser, and that it was tells it."""
    original = pa.table({"q": ["q1"] * 2 + ["q2"] * 5, "ill": ["hiv"] * 2 + [f"other {n}" for n in range(5)]})
    published = PublishedTable(original.set_column(0, "q", pa.array(["*"] * 7)))
    found = attack_of("minimality")(published, Knowledge(original, ("q",), "ill", diversity=2), None)
    assert found.success.hits == 2
    assert "one of the merged groups broke it" in found.story[2]


def test_a_withdrawal_names_the_one_who_left() -> None:
    published = coarse(PEOPLE, 10)
    left = PEOPLE.slice(0, 40)
    for gone in range(40):
        after = PublishedTable(pa.concat_tables([published.table.slice(0, gone), published.table.slice(gone + 1)]))
        pair = replace(after, earlier=(published,))
        found = attack_of("differencing")(pair, replace(KNOWLEDGE, people=left.slice(gone, 1)), OUTSIDERS)
        assert found.success.hits == 1
        assert found.control is not None
        assert found.control.estimate < 0.1
        if gone:
            break


def test_attacks_that_need_more_say_what() -> None:
    for name in ("intersection", "differencing"):
        with pytest.raises(InvalidParameter, match="two releases"):
            attack_of(name)(PublishedTable(PEOPLE), KNOWLEDGE, OUTSIDERS)
    with pytest.raises(InvalidParameter, match="needs a control group"):
        attack_of("membership")(PublishedTable(PEOPLE), KNOWLEDGE, OUTSIDERS.slice(0, 10))
    with pytest.raises(InvalidParameter, match="--secret"):
        attack_of("homogeneity")(PublishedTable(PEOPLE), replace(KNOWLEDGE, secret=None), OUTSIDERS)
    with pytest.raises(InvalidParameter, match="--item"):
        attack_of("baskets")(PublishedTable(PEOPLE), KNOWLEDGE, OUTSIDERS)
    with pytest.raises(InvalidParameter, match="there is no attack"):
        attack_of("magic")


def test_many_attacks_together_say_a_leak_wrongly_no_more_often_than_one() -> None:
    findings = [Finding("x", "inference", "", Rate(30, 100), Rate(0, 100), Rate(14, 100))] * 20  # type: ignore[arg-type]
    assert findings[0].verdict is AttackVerdict.NOT_FOUND or corrected(findings)[0].verdict is AttackVerdict.NOT_FOUND
    assert corrected(findings)[0].success.low < findings[0].success.low
    assert corrected(findings)[0].success.confidence == pytest.approx(1 - 0.05 / 20)


def test_an_attack_passes_a_threshold_only_if_that_is_shown() -> None:
    few = Finding("x", "inference", "", Rate(0, 10), Rate(0, 10), Rate(0, 10))  # type: ignore[arg-type]
    many = Finding("x", "inference", "", Rate(0, 1000), Rate(0, 1000), Rate(0, 1000))  # type: ignore[arg-type]
    assert above([few, many], 0.1) == (few,)


def test_every_attack_is_listed() -> None:
    assert len(attack_names()) == 18
    for name in attack_names():
        words = " ".join((attack_of(name).__doc__ or "").split())
        for part in ("Knows:", "Success:", "Baseline:", "Meaningless", "Source:"):
            assert part in words, f"{part} of {name}"


def test_attacks_on_a_table_share_what_they_compute_of_it_and_of_the_same_people_alone() -> None:
    table = PublishedTable(pa.table({"age": ["1", "2", "2"]}))
    one, other = (pa.table({"age": ["1", "2"]}) for _ in range(2))
    made: list[pa.Table] = []
    parts = [table.once(("people", 5), partial(_made, made, people), people) for people in (one, other, one, other)]
    assert [part is people for part, people in zip(parts, (one, other, one, other), strict=True)] == [True] * 4
    assert len(made) == 2
    for number in range(100):
        table.once(("part", number), list)
    table.once(("people", 5), partial(_made, made, one), one)
    assert len(made) == 3, "only the newest parts are kept"
    assert len(table._shared) <= 24


def _made(made: list[pa.Table], people: pa.Table) -> pa.Table:
    made.append(people)
    return people


@pytest.mark.parametrize("number", [1, 2, 4])
def test_the_nearest_rows_are_the_first_of_all_sorted_by_distance(number: int) -> None:
    chance = np.random.default_rng(number)
    for width in range(number, 30):
        far = chance.integers(0, 5, (6, width)).astype(float)
        assert (_least(far, number) == np.argsort(far, axis=1, kind="stable")[:, :number]).all()


@pytest.mark.parametrize("values", [3, 500])
def test_distances_of_equal_pairs_are_those_of_every_pair(values: int) -> None:
    chance = np.random.default_rng(values)
    texts = chance.integers(0, values, 400).astype(str)
    labels = [f"[{start}, {start + 5})" for start in chance.integers(0, values, 400)]
    published = PublishedTable(pa.table({"age": [*labels, None]}), masks={})
    column = match(published, pa.table({"age": [*texts.tolist(), "unknown"]}), "age")
    apart = _Apart.of(column)
    far = apart.between(column.values.codes, column.labels.codes)
    assert apart.reach is not None
    assert np.array_equal(far, apart._far(column.values.codes, column.labels.codes))
