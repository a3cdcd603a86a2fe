from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Categories, Numbers, Text, Type
from incrowd.core.hierarchy.flat import flat
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.reading import canonical, parse, read
from incrowd.errors import InvalidParameter
from tests.core.hierarchy.examples import CASES, Case

every_hierarchy = pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])


def stored(case: Case, texts: list[str]) -> pa.Array:
    """The values inside the domain, as the hierarchy wants them."""
    values = read(pa.array(texts, pa.string()), case.type).values
    if case.hierarchy.domain.storage == pa.string():
        values = canonical(values)
    return values.filter(pa.array(case.hierarchy.domain.contains(values)))


def plain(case: Case, text: str) -> str:
    """The text as the hierarchy is asked about it one by one."""
    return text if case.hierarchy.domain.storage != pa.string() else str(parse(text, case.type))


@every_hierarchy
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_labels_are_those_of_the_slow_and_obvious_rule(case: Case, data: st.DataObject) -> None:
    texts = data.draw(st.lists(case.texts, max_size=20))
    inside = stored(case, texts)
    for level in range(case.hierarchy.height + 1):
        wanted = [case.hierarchy.generalize(plain(case, text), level) for text in texts]
        found = case.hierarchy.names(case.hierarchy.lift(inside, level), level)
        assert found.to_pylist() == [label for label in wanted if label is not None]


@every_hierarchy
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_a_mark_rises_as_its_values_do(case: Case, data: st.DataObject) -> None:
    inside = stored(case, data.draw(st.lists(case.texts, max_size=20)))
    for low in range(case.hierarchy.height):
        for high in range(low, case.hierarchy.height + 1):
            twice = case.hierarchy.lift(case.hierarchy.lift(inside, low), high)
            assert twice.equals(case.hierarchy.lift(inside, high))


@every_hierarchy
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_classes_only_ever_merge(case: Case, data: st.DataObject) -> None:
    texts = data.draw(st.lists(case.texts, max_size=20))
    for level in range(case.hierarchy.height):
        above: dict[str | None, str | None] = {}
        for text in texts:
            label, higher = (case.hierarchy.generalize(plain(case, text), at) for at in (level, level + 1))
            assert above.setdefault(label, higher) == higher


@every_hierarchy
def test_listed_labels_are_distinct_and_in_the_order_of_their_codes(case: Case) -> None:
    for level in range(case.hierarchy.height + 1):
        members, labels = case.hierarchy.members(level), case.hierarchy.labels(level)
        if members is None:
            assert labels is None
            continue
        assert labels is not None
        assert len(set(labels)) == len(labels)
        if level < case.hierarchy.height:
            assert case.hierarchy.codes(members, level).tolist() == list(range(len(members)))


@every_hierarchy
def test_codes_rise_as_labels_do(case: Case) -> None:
    values = case.hierarchy.members(0)
    for low in range(case.hierarchy.height + 1):
        for high in range(low, case.hierarchy.height + 1):
            if case.hierarchy.members(low) is None:
                with pytest.raises(InvalidParameter, match="declare categories or bounds"):
                    case.hierarchy.rise(low, high)
            elif values is not None and low < case.hierarchy.height:
                risen = case.hierarchy.rise(low, high)[case.hierarchy.codes(values, low)]
                assert np.array_equal(risen, case.hierarchy.codes(values, high))


@every_hierarchy
def test_leaves_are_the_values_under_each_label(case: Case) -> None:
    values = case.hierarchy.members(0)
    if values is None:
        assert case.hierarchy.leaves(0) is None
        return
    texts = canonical(values).to_pylist()
    for level in range(case.hierarchy.height + 1):
        leaves, labels = case.hierarchy.leaves(level), case.hierarchy.labels(level)
        assert leaves is not None
        assert labels is not None
        wanted = Counter(case.hierarchy.generalize(text, level) for text in texts)
        assert dict(zip(labels, leaves.tolist(), strict=True)) == wanted


@every_hierarchy
def test_everything_is_a_star_at_the_top(case: Case) -> None:
    assert case.hierarchy.labels(case.hierarchy.height) == ("*",)
    assert case.hierarchy.labels(case.hierarchy.height - 1) != ("*",)


@every_hierarchy
def test_the_same_hierarchy_declared_twice_is_equal_and_can_be_a_key(case: Case) -> None:
    assert hash(case.hierarchy) == hash(case.hierarchy)
    assert str(case.hierarchy.rule)


def test_a_level_that_does_not_exist_is_refused_with_those_that_do() -> None:
    zips = Prefix(Text(), (3, 2))
    with pytest.raises(InvalidParameter, match=r"levels 0 .* to 3 .*, not 4"):
        zips.lift(pa.array(["02139"]), 4)
    with pytest.raises(InvalidParameter, match="only become coarser"):
        Prefix(Categories(("a",)), (1,)).rise(2, 1)


def test_nothing_from_outside_has_a_code() -> None:
    assert flat(Type.BOOLEAN).codes(pa.array(["true", "maybe", None]), 0).tolist() == [1, -1, -1]


def test_a_range_too_long_to_list_is_open() -> None:
    assert flat(Type.INTEGER).labels(0) is None
    assert Numbers(0, 2**20).members() is None
    assert len(Numbers(1, 2**20).members() or ()) == 2**20
