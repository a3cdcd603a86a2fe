from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from incrowd.errors import InvalidParameter
from incrowd.store.chain_entry import NOTHING_BEFORE, RUNNING, Anchor, Seal, link, text_of

START = Anchor("c0ffee", 0, NOTHING_BEFORE)
SEAL = Seal("c0ffee", b"a secret")
BARE = link(START, "2025-01-01T00:00:00Z", "note", {"text": "x"}, {("a",): 1})
LINK = replace(BARE, sets={**BARE.sets, RUNNING: {}}).sealed(SEAL)


@pytest.mark.parametrize(
    "change",
    [
        {"chain": "other"},
        {"sequence": 2},
        {"at": "2025-01-01T00:00:01Z"},
        {"kind": "remark"},
        {"body": {"text": "y"}},
        {"sets": {text_of(("a",)): 2}},
        {"previous": "1" * 64},
        {"hash": "2" * 64},
    ],
)
def test_no_field_changes_without_breaking_the_hash(change: dict[str, Any]) -> None:
    assert LINK.intact(SEAL)
    assert not replace(LINK, **change).intact(SEAL)


def test_an_entry_cannot_be_sealed_without_the_secret() -> None:
    assert not LINK.sealed(Seal("c0ffee", b"a guess")).intact(SEAL)
    assert not LINK.sealed(Seal("c0ffee")).intact(SEAL)


def test_an_entry_without_totals_is_refused() -> None:
    assert not BARE.sealed(SEAL).intact(SEAL)


def test_keys_that_look_alike_when_joined_stay_apart() -> None:
    assert len({text_of(key) for key in [("a", "b"), ("a,b",), ('a","b',), ("ab",)]}) == 4


def test_an_anchor_survives_json() -> None:
    assert Anchor.from_json(LINK.anchor.to_json()) == LINK.anchor


@pytest.mark.parametrize(
    "plain", [{}, {"chain": "c", "sequence": 0, "hash": "h"}, {"chain": "c", "sequence": "1", "hash": "h"}]
)
def test_half_an_anchor_is_refused(plain: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        Anchor.from_json(plain)
