"""What the studio writes by clicks: sources, bounds, groups, routes, tables and criteria; mended, and undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from incrowd.core.schema import Role
from incrowd.core.steps.step import walk
from incrowd.errors import InvalidParameter
from incrowd.methods.tabulation.protected.method import ProtectedTable
from incrowd.web.studio.grouping import regrouped
from incrowd.workflows.policy.policy import load_policy
from tests.cli.test_import import members, packed
from tests.web.studio.visiting import Visitor, studio

POLICY = """\
incrowd: 1
dataset: {name: stays, rows: 20000, population: 100000}
source: stays.csv
columns:
  patient: {role: identifier}
  age: {role: quasi, type: integer, bounds: [0, 99], hierarchy: {intervals: [5, 10, 20]}}
  sex: {role: quasi, categories: [F, M]}
  ward: {role: withheld, categories: [east, north, west], derived: rows}
release: {method: scheme, choosing: 0.1, rate: 1/2, epsilon: 1, delta: 1e-6, lowest: {age: 3}}
budget: {epsilon: 2, delta: 2e-6}
"""


P = "?policy=policy.yaml"


def policy_path(visitor: Visitor) -> Path:
    return visitor.folder / "policy.yaml"


@pytest.fixture
def visitor(fresh: Visitor) -> Visitor:
    policy_path(fresh).write_text(POLICY, encoding="utf-8")
    return fresh


def text(visitor: Visitor) -> str:
    return policy_path(visitor).read_text(encoding="utf-8")


def test_naming_a_public_source_releases_a_withheld_column(visitor: Visitor) -> None:
    sent = {"role-3": "withheld", "source-3": "the hospital's guide"}
    assert visitor.save("/columns/save", sent).status_code == 303
    policy = load_policy(policy_path(visitor))
    assert [column.name for column in policy.schema.released] == ["age", "sex", "ward"]
    assert policy.schema.drafted == ()


def test_bounds_are_declared_by_click(visitor: Visitor) -> None:
    assert visitor.save("/columns/save", {"low-1": "0", "high-1": "119"}).status_code == 303
    assert load_policy(policy_path(visitor)).schema["age"].stored_bounds == (0, 119)
    assert visitor.save("/columns/save", {"low-1": "0", "high-1": ""}).status_code == 400


def test_levels_above_a_changed_hierarchy_are_mended(visitor: Visitor) -> None:
    sent = {"column": "age", "kind": "intervals", "steps": "10"}
    assert visitor.save("/hierarchies/save", sent).status_code == 303
    assert load_policy(policy_path(visitor)).method.lowest == {"age": 1}


def test_a_change_is_undone_once_and_again(visitor: Visitor) -> None:
    for high in ("109", "119"):
        assert visitor.save("/columns/save", {"low-1": "0", "high-1": high}).status_code == 303
    for highest in (109, 99):
        assert visitor.save("/policy/undo", {"page": "columns"}).status_code == 303
        assert load_policy(policy_path(visitor)).schema["age"].stored_bounds == (0, highest)
    assert text(visitor) == POLICY
    assert visitor.save("/policy/undo", {}).status_code == 400


def test_values_are_grouped_and_taken_out_again(visitor: Visitor) -> None:
    visitor.save("/columns/save", {"role-3": "withheld", "source-3": "the hospital's guide"})
    sent = {"column": "ward", "value-0": "yes", "value-2": "yes", "label": "main building"}
    assert visitor.save("/hierarchies/group", sent).status_code == 303
    ward = load_policy(policy_path(visitor)).schema["ward"]
    assert ward.hierarchy.labels(1) == ("north", "main building")
    assert load_policy(policy_path(visitor)).schema.drafted == ()
    assert visitor.save("/hierarchies/group", {"column": "ward", "value-1": "yes", "label": ""}).status_code == 303


def test_a_value_does_not_name_a_group_of_others() -> None:
    with pytest.raises(InvalidParameter, match="is a value itself"):
        regrouped({"Gent": ["Gent"], "Rand": ["Rand"]}, ["Gent", "Rand"], "Gent")


CLEANED = POLICY.replace(
    "categories: [east, north, west], derived: rows}",
    "categories: [east, north, west, N.], derived: rows, clean: {trim: true, missing: [s/d, '?'], "
    "spellings: {east: [E, EAST], west: [W]}, derived: rows}}",
)
RULES = {"rules-3": "6"} | {f"rule-3-{place}": "yes" for place in range(6)}


def ward_of(visitor: Visitor) -> dict[str, Any]:
    section: dict[str, Any] = (
        load_policy(policy_path(visitor)).section.columns["ward"].model_dump(mode="json", exclude_none=True)
    )
    return section


def test_rules_of_cleaning_are_dropped_one_by_one_and_their_texts_come_back(visitor: Visitor) -> None:
    policy_path(visitor).write_text(CLEANED, encoding="utf-8")
    words = visitor.json(f"/columns{P}")["columns"][3]["clean"]
    assert words[1:4] == ["“s/d” is a missing value", "“?” is a missing value", "E → east"]
    sent = {name: yes for name, yes in RULES.items() if name not in ("rule-3-2", "rule-3-5")}
    assert visitor.save("/columns/save", sent).status_code == 303
    ward = ward_of(visitor)
    assert (list(ward["clean"]["missing"]), ward["clean"]["spellings"]) == (["s/d"], {"east": ["E", "EAST"]})
    assert ward["categories"] == ["east", "north", "west", "N.", "W"]
    assert visitor.save("/columns/save", {"rules-3": "4"}).status_code == 303
    assert "clean" not in ward_of(visitor)


def test_values_that_mean_the_same_are_merged_and_confirmed_anew(visitor: Visitor) -> None:
    policy_path(visitor).write_text(CLEANED.replace("derived: rows}}", "derived: rows, confirmed: me}}"), "utf-8")
    sent = RULES | {"same-3-0": "yes", "same-3-3": "yes", "label-3": "North and east"}
    assert visitor.save("/columns/save", sent).status_code == 303
    ward = ward_of(visitor)
    assert ward["categories"] == ["North and east", "north", "west"]
    assert ward["clean"]["spellings"] == {"west": ["W"], "North and east": ["east", "E", "EAST", "N."]}
    assert "confirmed" not in ward["clean"]
    assert visitor.save("/columns/save", {"same-3-0": "yes"}).status_code == 400
    assert visitor.save("/columns/save", {"label-3": "x"}).status_code == 400


def test_confirmed_cleaning_releases_a_column_that_nothing_else_holds_back(visitor: Visitor) -> None:
    policy_path(visitor).write_text(CLEANED, encoding="utf-8")
    assert visitor.save("/columns/save", {"role-3": "withheld", "confirm-3": "yes"}).status_code == 303
    assert ward_of(visitor)["role"] == "withheld"  # its values come from the rows, and no source is named
    policy_path(visitor).write_text(CLEANED.replace("N.], derived: rows", "N.]"), encoding="utf-8")
    assert visitor.save("/columns/save", {"role-3": "withheld", "confirm-3": "yes"}).status_code == 303
    assert ward_of(visitor)["role"] == "quasi"


def test_routes_are_compared_and_the_named_column_is_kept(visitor: Visitor) -> None:
    shown = visitor.json(f"/output{P}&use=rows&keep-1=yes")
    assert shown["recommended"] is not None
    assert [offer["goal"] for offer in shown["offers"]] == ["microdata", "synthetic", "counts", "table", "classic"]
    assert visitor.save("/output/choose", {"goal": "microdata", "use": "rows", "keep-1": "yes"}).status_code == 303
    method: Any = load_policy(policy_path(visitor)).method
    assert (method.highest, dict(method.importance)) == ({"age": 3}, {"age": 3})


def test_columns_of_a_table_of_counts_are_chosen_by_click(visitor: Visitor) -> None:
    assert visitor.save("/output/choose", {"goal": "counts", "use": "tables"}).status_code == 303
    assert visitor.save("/workbench/save", {"tabled": "yes", "tabled-1": "yes"}).status_code == 303
    method: Any = load_policy(policy_path(visitor)).method
    assert tuple(method.columns) == ("sex",)


def test_l_and_t_stand_beside_k(visitor: Visitor) -> None:
    visitor.save("/columns/save", {"role-2": "sensitive"})
    assert visitor.save("/output/choose", {"goal": "classic", "reason": "a closed room"}).status_code == 303
    names = [field["name"] for field in visitor.json(f"/workbench{P}")["criteria"]]
    assert visitor.save("/workbench/save", {names[0]: "2", names[1]: "0.3"}).status_code == 303
    release: Any = load_policy(policy_path(visitor)).section.release
    sensitive = release["sensitive"]
    assert {name: dict(rules) for name, rules in sensitive.items()} == {"sex": {"l": "2", "t": "0.3"}}


def test_a_sensitive_number_under_k_anonymity_is_never_released_exactly(visitor: Visitor) -> None:
    assert visitor.save("/output/choose", {"goal": "classic", "reason": "a closed room"}).status_code == 303
    assert visitor.save("/columns/save", {"role-1": "sensitive"}).status_code == 303
    assert load_policy(policy_path(visitor)).method.levels["age"] == 1


def test_a_route_without_an_epsilon_leaves_no_word_of_another_budget(visitor: Visitor) -> None:
    policy_path(visitor).write_text(POLICY.rstrip() + "   # this release spends half of it\n", encoding="utf-8")
    assert visitor.save("/output/choose", {"goal": "classic", "reason": "a closed room"}).status_code == 303
    assert "half of it" not in text(visitor)
    budget = load_policy(policy_path(visitor)).budget
    assert budget is not None
    assert budget.unbounded == "a closed room"


def test_a_draft_leaves_sums_out_asks_about_people_and_names_odd_texts(tmp_path: Path) -> None:
    odd = ("lost", "late", "void", "gone", "moved")
    lines = [f"{n % 300:05d},{odd[n % 5] if n < 20 else n % 90},{'FM'[n % 2]}" for n in range(900)]
    visitor = studio(tmp_path, None, "\n".join(["dossier,visits,sex", *lines, "Total,39000,"]) + "\n").come_in()
    visitor.post("/open/write", {"data": "stays.csv"})
    assert visitor.settled("/open?data=stays.csv&drafted=1").status_code == 303
    shown = visitor.json(f"/columns{P}")
    assert shown["totals"] == ["Total"]
    assert [question["column"] for question in shown["questions"]] == ["dossier"]
    assert shown["nearly"][0]["data"] == "stays.csv"
    assert set(shown["nearly"][0]["nulls"].split(", ")) == set(odd)
    assert visitor.save("/columns/person", {"column": "dossier"}).status_code == 303
    assert load_policy(policy_path(visitor)).schema["dossier"].role is Role.IDENTIFIER
    assert "column: dossier" in text(visitor)
    assert visitor.json(f"/columns{P}")["questions"] == []
    assert visitor.save("/columns/person", {"column": "nobody"}).status_code == 400


def test_a_column_that_must_stay_and_waits_leads_to_what_it_waits_for(visitor: Visitor) -> None:
    shown = visitor.get(f"/output{P}&keep-3=yes&use=rows").text
    assert "column=ward#column" in shown
    assert "name the public source of its values" in shown
    assert "is not released now: decide on its values first" in shown  # no route counts it
    assert 'id="column" open' in visitor.get(f"/columns{P}&column=ward").text
    visitor.save("/columns/save", {"role-3": "withheld", "source-3": "the hospital's guide"})
    assert "column=ward" not in visitor.get(f"/output{P}&keep-3=yes&use=rows").text


def test_a_table_with_totals_counts_every_row_and_merges_those_of_one_person(visitor: Visitor) -> None:
    policy_path(visitor).write_text(POLICY.replace("dataset: {", "dataset: {unit: {column: patient}, "))
    visitor.save("/output/choose", {"goal": "table", "reason": "a table that was asked for"})
    steps = [step.kind for step in walk(load_policy(policy_path(visitor)).plan.steps)]
    assert "holding: patient" in text(visitor)
    assert "keep rows of each person" not in steps
    visitor.save("/output/choose", {"goal": "microdata"})
    assert str(load_policy(policy_path(visitor)).schema.unit.column) == "patient"


def test_a_table_with_totals_is_protected_by_clicks(visitor: Visitor) -> None:
    visitor.save("/output/choose", {"goal": "table", "reason": "a table that was asked for"})
    assert visitor.save("/workbench/save", {"minimum": "8"}).status_code == 303
    for way, own, other in (("rounding", "base: 8", "minimum:"), ("adjustment", "minimum: 8", "base:")):
        assert "not saved yet" in visitor.get(f"/workbench{P}&protect={way}").text
        assert visitor.save("/workbench/save", {"protect": way}).status_code == 303
        release = text(visitor).split("release:")[1]
        assert own in release
        assert other not in release
        method = load_policy(policy_path(visitor)).method
        assert isinstance(method, ProtectedTable)
        assert method.protect == way


def test_a_dropped_project_of_arx_becomes_a_policy_by_click(fresh: Visitor) -> None:
    packed(fresh.folder, members())
    assert "open?data=project.deid" in fresh.get("/open").text
    shown = fresh.json("/open?data=project.deid")
    assert shown["project"] == {"name": "project.deid", "into": "project"}
    for folder in ("project", "project-2"):  # nothing is overwritten
        place = fresh.post("/open/import", {"data": "project.deid"}).headers["location"]
        assert place == f"/columns?policy={folder}%2Fpolicy.yaml"
    columns = fresh.json(place)
    assert columns["left_out"] == ["the criterion '(0.1)-something-else': choose one of incrowd's"]
    assert {column["name"]: column["role"] for column in columns["columns"]}["age"] == "quasi"
    assert fresh.json("/plan?policy=project%2Fpolicy.yaml")["allowed"]
    (fresh.folder / "bad.deid").write_bytes(b"PK no zip")
    assert fresh.post("/open/import", {"data": "bad.deid"}).status_code == 400
    assert not (fresh.folder / "bad").exists()
