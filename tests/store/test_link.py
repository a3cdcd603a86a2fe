from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from incrowd.errors import InvalidParameter
from incrowd.store.link import NOTHING_BEFORE, RUNNING, Anchor, link, text_of
from incrowd.store.seal import Seal

START = Anchor("c0ffee", 0, NOTHING_BEFORE)
PLAIN, KEYED = Seal("c0ffee"), Seal("c0ffee", b"a secret", 1)
BARE = link(START, "2025-01-01T00:00:00Z", "note", {"text": "x"}, {("a",): 1})
LINK = BARE.sealed(PLAIN)
CARRYING = replace(BARE, sets={**BARE.sets, RUNNING: {"since": 1, "totals": {}}}).sealed(KEYED)


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
    assert LINK.intact(PLAIN)
    assert not replace(LINK, **change).intact(PLAIN)
    assert CARRYING.intact(KEYED)
    assert not replace(CARRYING, **change).intact(KEYED)


def test_whoever_lacks_the_secret_cannot_seal_an_entry_of_version_2() -> None:
    assert not CARRYING.sealed(Seal("c0ffee", b"a guess", 1)).intact(KEYED)
    assert not CARRYING.sealed(PLAIN).intact(KEYED)
    assert not LINK.intact(KEYED)
    assert not CARRYING.intact(PLAIN)


def test_the_hash_of_version_1_never_changes() -> None:
    assert LINK.hash == "b39343a027abec3b3dd790bed83ae9c7d93325869ce15236e3c67239131423f1"


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
