"""What `scripts/facts` holds: some records of every family are as they were committed, and none is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import graphs
from tests.contract.examples import EXAMPLES
from tests.contract.questions import LIMITED, LOCAL_ONLY, MORE, NOT_IN_POSTGRES, QUESTIONS
from tests.facts import __main__ as script
from tests.facts import adapters, compare, records
from tests.facts.cases import CASES

NAMES = adapters.known_names()
SOME = records.sample()
CHEAP = "safe / no sample"


def groups(family: str) -> set[str]:
    """The groups of the committed records of a family."""
    return {name.partition(" / ")[0] for name in compare.read(family)}


@pytest.mark.parametrize("family", records.FAMILIES)
def test_some_records_of_every_family_are_as_they_were_committed(family: str) -> None:
    """If this fails and the change is meant: run scripts/facts, and read the difference."""
    committed = compare.read(family)
    made = {name: records.compute((family, name)) for name in SOME[family]}
    assert list(compare.differences({name: committed.get(name) for name in made}, made)) == []


def test_every_example_has_a_record_and_every_record_is_of_an_example() -> None:
    assert {family: set(examples) for family, examples in records.catalog().items()} == {
        family: set(compare.read(family)) for family in records.FAMILIES
    }


def test_no_method_question_randomizer_or_verb_lacks_a_record() -> None:
    assert set(NAMES["methods"]) <= groups("methods")
    assert {f"{method} / {name}" for method, name in EXAMPLES} <= set(compare.read("methods"))
    assert set(NAMES["graphs"]) == groups("graphs")
    assert len(compare.read("graphs")) == len(graphs.EXAMPLES)
    assert {f"randomizer / {family}" for family in NAMES["randomizers"]} <= set(compare.read("surveys"))
    asked = {*QUESTIONS, *MORE, *NOT_IN_POSTGRES, *LOCAL_ONLY, *(f"in one group: {sql}" for sql in LIMITED)}
    assert asked <= set(compare.read("questions"))
    assert set(NAMES["verbs"]) <= groups("commands")


def test_many_cases_of_bad_input_end_in_a_refusal_and_none_in_an_unexpected_error() -> None:
    ends = compare.read("commands")
    assert len(ends) == len(CASES)
    assert sum(record["exit"] in ("1", "2") for record in ends.values()) > 150
    assert {record["exit"] for record in ends.values()} == {"0", "1", "2"}


def test_a_sample_holds_the_first_record_of_each_group() -> None:
    assert set(NAMES["methods"]) < {name.partition(" / ")[0] for name in SOME["methods"]}
    assert set(NAMES["verbs"]) < {name.partition(" / ")[0] for name in SOME["commands"]}
    assert sum(map(len, SOME.values())) < len(script.all_names()) / 3


@pytest.fixture
def committed(tmp_path: Path) -> Path:
    """A folder with one committed record, and another that no example has."""
    compare.write("methods", {CHEAP: compare.read("methods")[CHEAP], "another": {}}, tmp_path)
    return tmp_path


def test_a_check_passes_where_nothing_changed(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert script.main(["--check", CHEAP], committed) == 0
    assert capsys.readouterr().out == "0 differences\n"


def test_a_check_names_record_and_place_of_each_difference(committed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain: Any = compare.read("methods", committed)
    plain[CHEAP]["loss"]["k"] = "6"
    plain[CHEAP]["steps"][-1]["more"] = True
    plain[CHEAP]["outputs"][0]["tables"][0]["digest"] = "0" * 16
    compare.write("methods", plain, committed)
    assert script.main(["--check", CHEAP], committed) == 1
    lines = capsys.readouterr().out.splitlines()
    assert f'methods › {CHEAP} › loss › k: "6" → "5"' in lines
    assert any(line.endswith(" order › more: true → nothing") for line in lines)
    assert any("› outputs › 1 › tables › 1 › digest" in line for line in lines)
    assert lines[-1] == "3 differences"


def test_writing_some_records_leaves_the_others(committed: Path) -> None:
    before = (committed / "methods.json").read_text(encoding="utf-8")
    compare.write("methods", compare.read("methods", committed) | {CHEAP: {}}, committed)
    assert script.main([CHEAP], committed) == 0
    assert (committed / "methods.json").read_text(encoding="utf-8") == before


def test_a_record_that_cannot_be_computed_is_a_difference_and_is_never_written(
    committed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lost(*_: Any) -> None:
        raise KeyError("lost")

    before = (committed / "methods.json").read_text(encoding="utf-8")
    monkeypatch.setattr(adapters, "of_policy", lost)
    assert script.main(["--check", CHEAP], committed) == 1
    assert "could not be computed: nothing → \"KeyError: 'lost'\"" in capsys.readouterr().out
    assert script.main([CHEAP], committed) == 1
    assert (committed / "methods.json").read_text(encoding="utf-8") == before


def test_a_name_that_no_record_has_is_refused() -> None:
    with pytest.raises(SystemExit, match="no record has such a name"):
        script.main(["--check", "sfae"])
