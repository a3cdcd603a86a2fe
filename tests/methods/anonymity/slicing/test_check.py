"""The check of several tables: what contradicts itself or the files is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from incrowd.core.statement import Statement
from incrowd.core.steps.samples import SecretSample
from incrowd.methods.anonymity.slicing.method import CHECK
from incrowd.methods.anonymity.slicing.steps import ChooseGroups, Drawing, FreshSamples, PublishTables, Sliced
from incrowd.methods.shared.microdata import Microdata
from incrowd.workflows.policy.policy import load_policy
from tests.contract.examples import POLICIES
from tests.released import release_into
from tests.statements import statement_of, with_step

Files = tuple[Path, Path]
GIVEN, CHOSEN, JOINT = "k solved", "groups chosen", "one release, split"


def stated(name: str) -> Statement:
    policy = load_policy(POLICIES["slicing"][name])
    return statement_of(policy.method.plan(policy.schema), policy.schema)


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Files]:
    made = {}
    for name in (GIVEN, CHOSEN, JOINT):
        folder = tmp_path_factory.mktemp("slices") / "release"
        out = release_into(folder, release=POLICIES["slicing"][name]["release"]).out
        made[name] = (out / "data.1.csv", out / "data.2.csv")
    return made


def problems(statement: Statement, files: tuple[Path, ...]) -> list[str]:
    return [look.about for look in CHECK.inspect(statement, files) if look.problem is not None]


@pytest.mark.parametrize("name", [GIVEN, CHOSEN, JOINT])
def test_released_files_hold_and_read_back(released: dict[str, Files], name: str) -> None:
    statement = stated(name)
    assert CHECK.contradiction(statement) is None
    assert problems(statement, released[name]) == []
    again = CHECK.reopen(statement, released[name])
    assert CHECK.recount(statement, again) is None
    assert len(again.tables) == 2


def test_exchanged_files_rare_rows_and_uneven_parts_are_found(released: dict[str, Files], tmp_path: Path) -> None:
    first, second = released[GIVEN]
    assert problems(stated(GIVEN), (second, first)) == ["columns in the files"]
    rare, uneven = tmp_path / "rare.csv", tmp_path / "uneven.csv"
    rare.write_text(second.read_text() + "77\n")
    assert problems(stated(GIVEN), (first, rare)) == ["crowds in the files"]
    first, second = released[JOINT]
    uneven.write_text(second.read_text() + second.read_text().splitlines()[-1] + "\n")
    assert problems(stated(JOINT), (first, uneven)) == ["rows in the files"]


def test_tables_in_memory_that_are_exchanged_rare_or_uneven_are_found(released: dict[str, Files]) -> None:
    again = CHECK.reopen(stated(GIVEN), released[GIVEN])
    first, second = again.tables
    assert CHECK.recount(stated(GIVEN), Sliced((second, first), again.names)) is not None
    scarce = replace(second.counts, counts=second.counts.counts * 0 + 1)
    rare = CHECK.recount(stated(GIVEN), Sliced((first, Microdata(scarce)), again.names))
    assert rare is not None
    assert "too rarely" in rare.text
    split = CHECK.reopen(stated(JOINT), released[JOINT])
    more = replace(split.tables[1].counts, counts=split.tables[1].counts.counts + 1)
    uneven = CHECK.recount(stated(JOINT), Sliced((split.tables[0], Microdata(more)), split.names))
    assert uneven is not None
    assert "one release" in uneven.text
    assert CHECK.recount(stated(JOINT), first) is not None


def test_tables_of_other_columns_than_can_be_chosen_are_found(released: dict[str, Files], tmp_path: Path) -> None:
    wide, small = tmp_path / "data.1.csv", tmp_path / "data.2.csv"
    wide.write_text("sex,age,zip\n")
    small.write_text("\n")
    assert problems(stated(CHOSEN), (wide, small)) == ["columns in the files"]
    assert problems(stated(CHOSEN), released[CHOSEN][:1]) == ["columns in the files"]


FORGED: list[tuple[str, type[Any], dict[str, Any]]] = [
    (GIVEN, PublishTables, {"tables": 3}),
    (GIVEN, PublishTables, {"sample": Drawing.JOINT}),
    (GIVEN, PublishTables, {"groups": None}),
    (GIVEN, PublishTables, {"groups": (("sex", "age"), ())}),
    (GIVEN, PublishTables, {"groups": (("sex", "age", "zip"), ()), "tables": 2}),
    (CHOSEN, PublishTables, {"groups": (("sex",), ("age", "zip"))}),
    (CHOSEN, PublishTables, {"tables": 1}),
    (CHOSEN, ChooseGroups, {"sensitivity": 1}),
    (CHOSEN, ChooseGroups, {"size": 1}),
    (JOINT, PublishTables, {"sample": Drawing.FRESH}),
]


@pytest.mark.parametrize(("name", "kind", "changes"), FORGED)
def test_steps_that_are_told_better_than_they_were_contradict_each_other(
    name: str, kind: type[Any], changes: dict[str, Any]
) -> None:
    assert CHECK.contradiction(with_step(stated(name), kind, **changes)) is not None


def test_one_sample_does_not_serve_for_several_tables() -> None:
    statement = stated(GIVEN)
    rate = statement.basis.need(FreshSamples).rate
    steps = tuple(SecretSample(rate) if isinstance(step, FreshSamples) else step for step in statement.steps)
    problem = CHECK.contradiction(replace(statement, basis=replace(statement.basis, steps=steps)))
    assert problem is not None
    assert "how many samples" in problem.text
