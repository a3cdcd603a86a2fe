from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.codec import canonical, digest
from incrowd.errors import InvalidParameter

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


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
