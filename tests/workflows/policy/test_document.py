from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.document import read_document

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=12)
TREES = st.recursive(
    WORDS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4), max_leaves=12
)


@pytest.mark.parametrize(
    "written", ["02131", "NO", "yes", "1e-8", "1_000", "0x1F", "0o17", "12:30:45", "2025-01-01", "1.0", "true", ".5"]
)
def test_a_scalar_stays_the_text_that_was_written(written: str) -> None:
    assert read_document(f"value: {written}").content == {"value": written}


@pytest.mark.parametrize("written", ["", "~", "null"])
def test_what_is_left_empty_is_nothing(written: str) -> None:
    assert read_document(f"value: {written}").content == {"value": None}


@pytest.mark.parametrize("quoted", ["''", '""', "'~'", '"null"'])
def test_what_is_quoted_is_text_even_if_it_looks_like_nothing(quoted: str) -> None:
    assert read_document(f"value: {quoted}").content == {"value": quoted[1:-1]}


@given(TREES)
def test_any_tree_of_texts_comes_back_as_it_was(tree: object) -> None:
    assert read_document(json.dumps({"value": tree})).content == {"value": tree}


def test_every_value_knows_its_line() -> None:
    document = read_document("a: 1\nb:\n  c:\n    - x\n    - y\n")
    assert [document.line(path) for path in (("a",), ("b", "c"), ("b", "c", 1), ("b", "nowhere"))] == [1, 3, 5, 2]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1, 2\nb: 3\n", "line 2, column 2"),
        ("a: 1\n\tb: 2\n", "line 2"),
        ("a: 1\na: 2\n", "line 2: the key 'a' occurs twice"),
        ("b: {x: 1, x: 2}\n", "the key 'x' occurs twice"),
        ("? [a, b]\n: 1\n", "a key must be a single word"),
        ("a: 1\n---\nb: 2\n", "this is not YAML"),
        ("a: *nobody\n", "this is not YAML"),
        ("a: \x00\n", "this is not YAML"),
        ('a: "\\ud800"\n', "line 1: this text is not Unicode"),
        ("a: &a [*a]\n", "nested too deeply"),
        ("a: " + "[" * 1500, "nested too deeply"),
    ],
)
def test_what_is_no_plain_document_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        read_document(text)


def test_a_document_that_multiplies_itself_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 8)]
    with pytest.raises(InvalidParameter, match="too large"):
        read_document("\n".join(lines))


def test_no_tag_makes_an_object() -> None:
    content = read_document("a: !!python/object/apply:os.system ['true']\nb: !!int '7'\n").content
    assert content == {"a": ["true"], "b": "7"}
