"""A policy that cannot be meant is refused with its place and a way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from incrowd.errors import IncrowdError, InvalidParameter, Refused, UnsupportedVersion
from incrowd.workflows.policy.policy import load_policy
from tests.policies import PEOPLE, changed, written

YAML = """\
incrowd: 1
dataset: {name: people}
columns:
  sex:
    categories: [F, M]
  age:
    type: integer
    bounds: [0, 99]
    hierarchy: {intervals: [10]}
release:
  method: safe
  levels: {age: 1}
  rate: 1/2
  epsilon: 1
  delta: 1e-4
"""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("columns:", "colums:", "line 3: 'colums' is not known here. Did you mean 'columns'?"),
        ("  method: safe", "  method: saef", "the method 'saef' is unknown; available: safe, .* Did you mean 'safe'?"),
        ("  method: safe\n", "", "the method None is unknown"),
        ("  levels: {age: 1}", "  levles: {age: 1}", "line 12: 'levles' is not known here. Did you mean 'levels'?"),
        ("  levels: {age: 1}", "  levels: {agee: 1}", "there is no column 'agee' in the schema. Did you mean 'age'?"),
        ("  levels: {age: 1}", "  levels: {age: 1.5}", "line 12: levels.age: must be a whole number"),
        ("  levels: {age: 1}", "  levels: 1", "line 12: levels"),
        ("    bounds: [0, 99]", "    bounds: [99, 0]", "line 6: bounds run from low to high"),
        ("    bounds: [0, 99]", "    bounds: [0, x]", "line 6: a bound must be a finite number"),
        ("    bounds: [0, 99]", "    bounds: [0]", "line 8"),
        ("    type: integer", "    type: int", "line 7: columns.age.type"),
        ("    type: integer", "    type: text", "line 6: only numbers and dates have bounds"),
        ("{intervals: [10]}", "{interval: [10]}", "Did you mean 'intervals'?"),
        ("{intervals: [10]}", "{intervals: [10], prefix: [2]}", "needs exactly one of .*; got intervals, prefix"),
        ("{intervals: [10]}", "{intervals: [10, 15]}", "line 6: intervals of width 15 do not consist"),
        ("{intervals: [10]}", "{file: nowhere.csv}", "line 6"),
        ("[F, M]", "[F, F]", "line 4: these categories are listed more than once: 'F'"),
        ("1/2", "half", "line 13: rate: the number must be a finite number"),
        ("1/2", "0", "the rate lies above 0"),
        ("1/2", "2", "the rate lies above 0"),
        ("1/2", "1e999999999", "too many digits"),
        ("delta: 1e-4", "epsilon_: 1", "line 15: 'epsilon_' is not known here. Did you mean 'epsilon'?"),
        ("delta: 1e-4", "delta: 0", "delta must lie strictly between 0 and 1"),
        ("epsilon: 1\n", "epsilon: -1\n", "epsilon cannot be negative"),
        (
            "  epsilon: 1\n  delta: 1e-4\n",
            "  target: {epsilon: 1, delta: 1e-4}\n",
            "line 14: 'target' is not known here. Write epsilon and delta beside method",
        ),
        ("dataset: {name: people}", "dataset: people", "line 2: dataset"),
        ("dataset: {name: people}", "dataset: {}", "line 2: dataset.name is missing"),
        (
            "dataset: {name: people}",
            "dataset: {name: people, unit: {column: id}}",
            "there is no column 'id' in the schema",
        ),
        (
            "dataset: {name: people}",
            "dataset: {name: people, unit: {column: sex}}",
            "'sex' is the person ID column: its role must be identifier",
        ),
        ("dataset: {name: people}", "dataset: {name: people, unit: {max_rows: 0}}", "at least one row"),
        ("columns:", "budget: {epsilon: much}\ncolumns:", "line 3: budget.epsilon"),
        ("columns:", "budget: {epsilon: -1}\ncolumns:", "epsilon cannot be negative"),
        ("columns:", "budget: {unbounded: ' '}\ncolumns:", "a reason cannot be empty"),
        ("columns:", "source: {path: x.csv, delimeter: ;}\ncolumns:", "Did you mean 'delimiter'?"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert YAML.count(old) == 1
    file = tmp_path / "policy.yaml"
    file.write_text(YAML.replace(old, new))
    with pytest.raises(IncrowdError, match=said) as caught:
        load_policy(file)
    assert caught.value.exit_code == 2
    assert str(file) in str(caught.value)


def test_the_policy_without_mistakes_is_read(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(YAML)
    assert load_policy(file).name == "people"


@pytest.mark.parametrize("version", [2, 0, "one", None, True])
def test_another_version_is_refused_rather_than_guessed(version: object) -> None:
    with pytest.raises(UnsupportedVersion, match="must start with 'incrowd: 1'"):
        load_policy(changed(PEOPLE, incrowd=version))


@pytest.mark.parametrize("text", ["", "- incrowd\n", "just words\n", "# nothing\n"])
def test_a_file_that_is_no_policy_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "policy.yaml").write_text(text)
    with pytest.raises(InvalidParameter, match="is empty or not a mapping"):
        load_policy(tmp_path / "policy.yaml")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"nowhere\.yaml cannot be read: No such file"):
        load_policy(tmp_path / "nowhere.yaml")
    with pytest.raises(InvalidParameter, match="cannot be read: Is a directory"):
        load_policy(tmp_path)
    (tmp_path / "latin.yaml").write_bytes("dataset: été".encode("latin-1"))
    with pytest.raises(InvalidParameter, match="is not UTF-8 text"):
        load_policy(tmp_path / "latin.yaml")


def test_what_this_version_does_not_have_is_refused_and_not_ignored() -> None:
    with pytest.raises(Refused, match="does not say where consent is recorded"):
        load_policy(changed(PEOPLE, purpose="research"))


@pytest.mark.parametrize(
    "release",
    [
        {"method": "safe"},
        {"method": "safe", "k": 5},
        {"method": "safe", "rate": "1/2"},
        {"method": "safe", "rate": "1/2", "k": 0, "delta": "1e-4"},
    ],
)
def test_a_release_with_too_few_parameters_is_refused_when_it_is_read(release: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        load_policy(changed(PEOPLE, release=release))


def test_a_hierarchy_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "sexes.csv").write_bytes(b"\xff\xfe\x00F")
    policy = changed(PEOPLE, columns__sex={"hierarchy": {"file": "sexes.csv"}})
    with pytest.raises(InvalidParameter, match=r"line \d+: the hierarchy file sexes.csv is not UTF-8"):
        load_policy(written(policy, tmp_path))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"source": "v.csv", "columns": {"id": {}}}, "either public: true, or unit"),
        ({"source": "v.csv", "columns": {"id": {"role": "identifier"}}, "unit": "id"}, "protects single rows"),
        ({"columns": {"id": {}}, "public": True}, "tables.visits.source is missing"),
    ],
)
def test_a_further_table_says_whose_it_is(table: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        load_policy(changed(PEOPLE, tables={"visits": table}))
