"""A policy is changed at the places that are meant, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.document import read_document
from incrowd.workflows.policy.edit import edited

HOSPITAL = (Path(__file__).parents[3] / "examples" / "hospital" / "policy.yaml").read_text(encoding="utf-8")


def test_one_value_changes_one_line_and_no_comment() -> None:
    changed = edited(HOSPITAL, {("columns", "age", "role"): "sensitive", ("release", "epsilon"): "0.8"})
    before, after = HOSPITAL.splitlines(), changed.splitlines()
    assert len(before) == len(after)
    assert [line for line, old in zip(after, before, strict=True) if line != old] == [
        "    role: sensitive",
        "  epsilon: 0.8",
    ]


def test_a_removed_line_comes_back_in_its_section() -> None:
    without = edited(HOSPITAL, {("dataset", "rows"): None})
    assert "rows: 20000" not in without
    again = read_document(edited(without, {("dataset", "rows"): "20000"}))
    assert again.content == read_document(HOSPITAL).content


def test_an_alias_is_refused_rather_than_changed_elsewhere() -> None:
    text = "a: &same {x: 1}\nb: *same\n"
    with pytest.raises(InvalidParameter, match=r"a\.x: written in a way"):
        edited(text, {("a", "x"): "2"})


words = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12)
values = st.recursive(
    words, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=6
)
PLACES = [
    ("a",),
    ("a", "b"),
    ("a", "b", "x"),
    ("a", "b", "z"),
    ("a", "c"),
    ("a", "d"),
    ("a", "n", "m"),
    ("n", "m", "o"),
]
places = st.sampled_from(PLACES)


SMALL = """\
# before
a:   # a section
  b: {x: 1, y: [2]}   # in braces
  # about c
  c:
    - one
  d: "a: b"
e: 02
"""


@settings(max_examples=60)
@given(st.dictionaries(places, values | st.none(), min_size=1, max_size=3))
def test_whatever_is_written_is_read_again_or_refused(changes: dict[tuple[str, ...], object]) -> None:
    try:
        changed = edited(SMALL, changes)  # type: ignore[arg-type]
    except InvalidParameter:
        return
    content = read_document(changed).content
    place, value = list(changes.items())[-1]
    found = content
    for name in place:
        found = found.get(name) if isinstance(found, dict) else None
    assert found == value or (value in ("", None) and not found)
    assert content["e"] == "02"
    assert changed.startswith("# before\n")
