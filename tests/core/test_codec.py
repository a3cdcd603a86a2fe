from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.codec import canonical, decode, digest, encode, named
from incrowd.errors import InvalidParameter

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


class Shade(StrEnum):
    LIGHT = "light"


@dataclass(frozen=True)
class Inner:
    rate: Fraction
    shade: Shade = Shade.LIGHT


@dataclass(frozen=True)
class Outer:
    name: str
    inner: tuple[Inner, ...]
    pair: tuple[int, str]
    amounts: Mapping[str, Decimal]
    marks: frozenset[str]
    chance: float
    kept_as: bool | None = named("kept as", None)
    level: int | str | None = None


outers = st.builds(
    Outer,
    st.text(),
    st.lists(st.builds(Inner, st.fractions())).map(tuple),
    st.tuples(st.integers(), st.text()),
    st.dictionaries(st.text(), st.decimals(allow_nan=False)),
    st.frozensets(st.text()),
    st.floats(allow_nan=False),
    st.none() | st.booleans(),
    st.none() | st.integers() | st.text(),
)
WHOLE = Outer("a", (Inner(Fraction(1, 3)),), (1, "b"), {"c": Decimal("0.10")}, frozenset({"d"}), 0.5, True, 2)


@given(outers)
def test_what_is_written_is_read_again(value: Outer) -> None:
    assert decode(Outer, encode(value)) == value


def test_a_field_has_its_own_name_and_is_left_out_where_there_is_nothing() -> None:
    assert encode(WHOLE)["kept as"] is True
    assert "level" not in encode(Outer("a", (), (1, "b"), {}, frozenset(), 0.5))


@pytest.mark.parametrize(
    "change",
    [
        {"unknown": 1},
        {"name": 5},
        {"name": None},
        {"pair": [1]},
        {"pair": [True, "b"]},
        {"inner": [{"rate": "2/6", "shade": "light"}]},
        {"inner": [{"rate": 1, "shade": "light"}]},
        {"inner": [{"rate": "1/3", "shade": "dark"}]},
        {"inner": [{"rate": "1/3", "shade": "light", "certified": "GDPR"}]},
        {"inner": [{"rate": "1/0", "shade": "light"}]},
        {"inner": {"rate": "1/3"}},
        {"amounts": {"c": "1e-1x"}},
        {"amounts": {"c": 0.1}},
        {"marks": ["e", "d"]},
        {"marks": ["d", "d"]},
        {"chance": "0.50"},
        {"level": []},
        {"level": None},
    ],
)
def test_whatever_is_not_written_like_this_is_refused_without_repeating_it(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=r"an? outer holds a field that cannot be read") as refusal:
        decode(Outer, {**encode(WHOLE), **change})
    assert "GDPR" not in str(refusal.value)


@pytest.mark.parametrize("name", ["name", "inner", "pair", "amounts", "marks", "chance"])
def test_a_missing_field_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameter):
        decode(Outer, {key: part for key, part in encode(WHOLE).items() if key != name})


@given(PLAIN)
def test_canonical_text_is_json_of_the_same_value_and_its_own_canonical_text(value: object) -> None:
    text = canonical(value)
    assert json.loads(text) == value
    assert canonical(json.loads(text)) == text


def test_the_order_of_keys_does_not_matter() -> None:
    assert canonical({"b": 1, "a": 2}) == canonical({"a": 2, "b": 1})


def test_the_digest_is_sha256_of_the_domain_and_the_text() -> None:
    assert digest("d", {"a": "ε"}) == hashlib.sha256('d\n{"a":"ε"}'.encode()).hexdigest()


@pytest.mark.parametrize("value", [0.1, float("nan"), {1: 2}, b"bytes", {"a": {"b": 1.0}}, (1, 2), "\ud800"])
def test_what_has_no_unique_text_is_refused(value: object) -> None:
    with pytest.raises(InvalidParameter):
        canonical(value)
