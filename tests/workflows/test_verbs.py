"""What `import incrowd` offers: the verbs of the command line, on files and on frames."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import incrowd
from incrowd.client.reply import Reply
from incrowd.errors import InvalidParameter
from tests.docs.pages import DOCS

FRAME = pa.table({"sex": ["F", "M"] * 1000, "age": [30, 40, 50, 60] * 500})
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    return {
        "incrowd": 1,
        "dataset": {"name": EVIL, "rows": 2000, "population": 10_000},
        "columns": {
            "sex": {"role": "quasi", "categories": ["F", "M"]},
            "age": {"role": "quasi", "type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [20]}},
        },
        "release": {"method": "safe", "levels": {"age": 1}, "rate": "1/2", "epsilon": 1, "delta": "1e-6"},
        "queries": {"table": "people"},
        "budget": {"epsilon": 9, "delta": "1e-3"},
    }


def test_dir_shows_the_public_names_and_no_others() -> None:
    assert dir(incrowd) == sorted(incrowd.__all__)
    for name in incrowd.__all__:
        assert getattr(incrowd, name).__doc__


def test_no_folder_has_the_name_of_a_public_function() -> None:
    """Importing such a folder would put a module in the place of the function."""
    folders = {path.name for path in Path(incrowd.__file__).parent.iterdir() if (path / "__init__.py").is_file()}
    assert folders & set(incrowd.__all__) == set()


def test_every_public_name_is_on_the_page() -> None:
    page = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    assert [name for name in incrowd.__all__ if f"`{name}" not in page] == []


def test_verbs_take_options_by_their_names_on_the_command_line() -> None:
    from incrowd.cli.check import CheckOptions
    from incrowd.cli.query import QueryOptions
    from incrowd.workflows.verbs import Criteria, QueryOffer

    engines = {"engine", "master", "remote", "json"}
    told = {*inspect.get_annotations(CheckOptions)} - engines - {"data", "policy"}
    assert {*Criteria.__annotations__} <= told
    assert {*QueryOffer.__annotations__} <= {*inspect.get_annotations(QueryOptions)}


def test_a_policy_is_a_mapping_a_text_a_file_or_a_policy(policy: dict[str, Any]) -> None:
    text = json.dumps(policy, indent=1)
    Path("policy.json").write_text(text, encoding="utf-8")
    read = incrowd.load_policy(policy)
    assert incrowd.load_policy(read) is read
    for form in (text, "policy.json", Path("policy.json")):
        assert incrowd.plan(form).guarantee == incrowd.plan(policy).guarantee


def test_a_text_of_one_line_is_a_path() -> None:
    with pytest.raises(InvalidParameter, match="cannot be read"):
        incrowd.plan("no-such-policy.yaml")


@pytest.mark.parametrize("frame", [FRAME, FRAME.to_pandas(), pl.DataFrame(FRAME)], ids=["arrow", "pandas", "polars"])
def test_frames_go_in(frame: object) -> None:
    assert incrowd.profile(frame).rows == 2000
    assert incrowd.check(frame, quasi=["sex", "age"], k=5).passed
    assert not incrowd.check(frame, quasi=["sex", "age"], unique=("0.5", 10**6), k=501).passed


def test_frames_come_out(policy: dict[str, Any]) -> None:
    answered = incrowd.query("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", policy, FRAME, epsilon=1)
    assert list(answered.answer.to_polars().columns) == ["sex", "n", "n_low", "n_high"]
    assert list(answered.answer.to_pandas().columns) == ["sex", "n", "n_low", "n_high"]
    assert pa.table(answered.answer) == answered.answer.to_arrow()
    reply = Reply.of(json.loads(json.dumps(answered.to_json())))
    assert pl.DataFrame(reply).equals(answered.answer.to_polars())
    assert isinstance(reply.to_pandas(), pd.DataFrame)
    assert reply.undeclared == answered.answer.undeclared == (2, 3)


def test_a_release_in_memory_and_one_in_a_folder_are_assessed_and_verified(policy: dict[str, Any]) -> None:
    released = incrowd.release(FRAME, policy)
    assert incrowd.assess(released, policy, FRAME).released == len(released.result)
    incrowd.release_to(FRAME, policy, incrowd.Destination(Path("out")))
    assert incrowd.assess("out", policy, FRAME).rows == 2000
    assert incrowd.verify("out", ledger="sqlite:///.incrowd/ledger.sqlite", policy=policy).verdict == "verified"


def test_cards_show_what_they_are_told_as_text(policy: dict[str, Any]) -> None:
    sql = f'SELECT sex, COUNT(*) AS "{EVIL}" FROM people GROUP BY sex'
    answered = incrowd.query(sql, policy, FRAME, epsilon=1)
    incrowd.release_to(FRAME, policy, incrowd.Destination(Path("out")))
    cards: dict[str, Any] = {
        "plan": incrowd.plan(policy),
        "price": incrowd.price(sql, policy, FRAME, epsilon=1),
        "answered": answered,
        "answer": answered.answer,
        "reply": Reply.of(answered.to_json()),
        "verification": incrowd.verify("out"),
    }
    shown = {name: each._repr_html_() for name, each in cards.items()}
    assert not [name for name, html in shown.items() if "<script" in html]
    assert [name for name, html in shown.items() if "&lt;script&gt;" not in html] == ["verification"]
    assert all("color:inherit" in html and "#fff" not in html for html in shown.values())


def test_certificates_and_synthetic_models_have_cards_of_a_few_lines(policy: dict[str, Any]) -> None:
    section = {"method": "marginals", "epsilon": 1, "delta": "1e-6"}
    columns = policy["columns"] | {"age": policy["columns"]["age"] | {"outside": "drop"}}
    released = incrowd.synthesize(FRAME, policy | {"columns": columns, "release": section, "budget": None})
    html = released.certificate._repr_html_()
    assert "differential privacy" in html
    assert "<script" not in html
    assert released.model.facts[0][0] == "rows"
    assert "synthetic model" in released.model._repr_html_()
    assert repr(released.model).count("\n") < 10


def test_results_print_as_a_few_lines(policy: dict[str, Any]) -> None:
    released = incrowd.release(FRAME, policy)
    assert repr(released).startswith(
        f"<Release <microdata: {len(released.result):,} rows of sex, age> with <Certificate "
    )
    assert "epsilon 0.9" in repr(released.certificate)
    forecast = repr(incrowd.plan(policy)).splitlines()
    assert forecast[0] == "Plan (nothing spent)"
    assert forecast[-1].split() == ["verdict", "would", "be", "released"]
    incrowd.release_to(FRAME, policy, incrowd.Destination(Path("out")))
    assert repr(incrowd.verify("out")).startswith("consistent; origin not verified\n")
    assert max(map(len, map(repr, (released, incrowd.plan(policy), incrowd.verify("out"))))) < 2000


def test_a_card_folds_groups_that_nobody_declared(policy: dict[str, Any]) -> None:
    asked = incrowd.query("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", policy, FRAME, epsilon=1)
    sex, n = asked.answer.columns
    low, high = pa.array([990.0, 990.0, 0.0, 0.0]), pa.array([1010.0, 1010.0, 3.0, 3.0])  # whatever the noise was
    answer = replace(asked.answer, columns=(sex, replace(n, low=low, high=high)))
    answered = replace(asked, answers=(answer,))
    assert "undeclared (2)" in answered._repr_html_()
    assert "undeclared (2)" in Reply.of(answered.to_json())._repr_html_()


def test_undeclared_groups_are_found_in_whatever_order(policy: dict[str, Any]) -> None:
    sql = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY n LIMIT 3"
    answer = incrowd.query(sql, policy, FRAME, epsilon=1).answer
    rows = answer.rows()
    assert {rows[place]["sex"] for place in answer.undeclared} == {"other", None}
    assert len(answer.undeclared) == 2


def test_a_group_that_the_policy_names_is_declared(policy: dict[str, Any]) -> None:
    policy["columns"]["sex"] = {"categories": ["F", "M", "other"], "missing": "drop"}
    answer = incrowd.query("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex", policy, FRAME, epsilon=1).answer
    assert [row["sex"] for row in answer.rows()] == ["F", "M", "other"]
    assert answer.undeclared == ()
