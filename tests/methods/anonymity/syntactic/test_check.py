"""The check of tables in classes: what breaks a criterion is found, what the file cannot show is left open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.core.statement import Statement
from incrowd.core.steps.rows import Recode
from incrowd.methods.anonymity.full_domain import CHECK
from incrowd.methods.anonymity.shared import demands
from incrowd.methods.anonymity.shared.steps import Cut
from incrowd.methods.shared.microdata import Anonymized
from incrowd.verifier.check import CheckOutcome
from tests.methods.anonymity.syntactic.patients import (
    EVERYTHING,
    LOCAL,
    MONDRIAN,
    SUPPRESSED,
    file_of,
    released,
    stated,
)
from tests.policies import changed
from tests.statements import with_step


def broken(looks: Iterable[CheckOutcome]) -> str:
    return " ".join(look.about for look in looks if look.problem is not None and not look.problem.undecided)


def left_open(looks: Iterable[CheckOutcome]) -> set[str]:
    return {look.about for look in looks if look.problem is not None and look.problem.undecided}


@pytest.mark.parametrize("policy", [EVERYTHING, MONDRIAN, LOCAL], ids=["full-domain", "mondrian", "local"])
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_what_is_published_in_full_is_counted_again_in_full(policy: dict[str, Any], form: str, tmp_path: Path) -> None:
    statement, made = stated(policy, tmp_path), released(policy, tmp_path)
    file = file_of(made.to_arrow(), tmp_path, form)
    looks = list(CHECK.inspect(statement, (file,)))
    assert [look.problem for look in looks] == [None] * len(looks)
    assert CHECK.contradiction(statement) is None
    assert CHECK.recount(statement, made) is None
    kinds = [claim.kind for claim in statement.claims]
    assert [look.about.removesuffix(" in the file").split(" of ")[0] for look in looks[1:]] == kinds
    again = CHECK.reopen(statement, (file,))
    assert isinstance(made, Anonymized)
    assert sorted(again.sizes.tolist()) == sorted(made.sizes.tolist())


def test_where_rows_were_left_out_what_the_file_cannot_show_is_left_open(tmp_path: Path) -> None:
    made = released(SUPPRESSED, tmp_path)
    looks = list(CHECK.inspect(stated(SUPPRESSED, tmp_path), (file_of(made.to_arrow(), tmp_path),)))
    assert broken(looks) == ""
    assert {"k-map in the file", "δ-presence in the file"} <= left_open(looks)
    assert "distinct l-diversity of ill in the file" not in left_open(looks)


def test_where_a_tree_is_too_large_to_tell_its_distance_is_left_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demands, "_LISTED", 3)
    statement = stated(EVERYTHING, tmp_path)
    names = ("sex", "age", "ill", "grade", "pay")
    values = [["F", "M"] * 5, ["*"] * 10, ["flu", "cough"] * 5, ["low"] * 10, ["1"] * 10]
    table = pa.table(dict(zip(names, values, strict=True)))
    looks = list(CHECK.inspect(statement, (file_of(table, tmp_path, "csv"),)))
    assert "t-closeness of ill in the file" in left_open(looks)
    assert "t-closeness of pay in the file" not in left_open(looks)
    unmeasured = next(claim for claim in statement.claims if getattr(claim, "sensitive", "") == "ill"
                      and claim.kind == "t-closeness")  # fmt: skip
    assert "how far its many values are apart is not told here" in unmeasured.preconditions[0].text


def test_a_file_that_breaks_a_criterion_is_found(tmp_path: Path) -> None:
    statement = stated(EVERYTHING, tmp_path)
    table = released(EVERYTHING, tmp_path).to_arrow()
    table = table.cast(
        pa.schema([(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in table.schema])
    )

    def found(other: pa.Table) -> str:
        return broken(CHECK.inspect(statement, (file_of(other, tmp_path),)))

    assert found(table) == ""
    first = table.slice(0, 1).to_pylist()[0]
    inside = [row["age"] == first["age"] and row["sex"] == first["sex"] for row in table.to_pylist()]

    def instead(column: str, value: Any) -> pa.Table:
        values = [value if here else old for here, old in zip(inside, table[column].to_pylist(), strict=True)]
        kind = pa.int64() if column == "pay" else pa.string()
        return table.set_column(table.column_names.index(column), column, pa.array(values, kind))

    grades = found(instead("grade", "low"))
    for kind in ("distinct l-diversity", "t-closeness", "β-likeness", "enhanced β-likeness", "δ-disclosure privacy"):
        assert f"{kind} of grade in the file" in grades
    assert "recursive (c,l)-diversity of ill" in found(instead("ill", "flu"))
    assert found(instead("ill", "healthy")) == ""  # a class of nothing but harmless values gives nothing away
    assert "entropy l-diversity of pay" in found(instead("pay", 3))
    others = [{**first, "age": f"{number}"} for number in range(80)]
    singled = pa.concat_tables([table, pa.Table.from_pylist(others, table.schema)])
    for kind in ("k-anonymity", "average risk", "population uniqueness"):
        assert f"{kind} in the file" in found(singled)
    assert "columns in the file" in found(table.append_column("id", pa.array(range(len(table)))))


def test_an_output_in_memory_is_held_against_its_demands(tmp_path: Path) -> None:
    strict = changed(EVERYTHING, release__k=1, release__average_risk="1/100")
    careless = changed(
        EVERYTHING, release={"method": "full-domain", "k": 1, "lowest": {"age": 1}, "highest": {"age": 1}}
    )
    problem = CHECK.recount(stated(strict, tmp_path), released(careless, tmp_path))
    assert problem is not None
    assert not problem.undecided
    assert CHECK.recount(stated(strict, tmp_path), object()) is not None  # type: ignore[arg-type]


@pytest.fixture
def statement(tmp_path: Path) -> Statement:
    return stated(SUPPRESSED, tmp_path)


@pytest.mark.parametrize("columns", [("sex",), ("age", "sex"), ("sex", "age", "pay"), ()])
def test_a_cut_of_other_columns_than_the_quasi_identifiers_is_found(
    statement: Statement, columns: tuple[str, ...]
) -> None:
    problem = CHECK.contradiction(with_step(statement, Cut, columns=columns))
    assert problem is not None
    assert problem.text == "the columns that are cut are not the quasi-identifiers"


def test_roles_decide_who_can_be_looked_up_and_what_is_sensitive(statement: Statement) -> None:
    assert CHECK.contradiction(statement) is None
    for column, role, words in (("pay", "quasi", "quasi-identifiers"), ("pay", "other", "not sensitive")):
        problem = CHECK.contradiction(replace(statement, roles={**statement.roles, column: role}))
        assert problem is not None
        assert words in problem.text


def test_other_columns_than_the_released_ones_are_found(statement: Statement) -> None:
    recode = statement.basis.need(Recode)
    problem = CHECK.contradiction(with_step(statement, Recode, columns=recode.columns[:1]))
    assert problem is not None
    assert problem.text == "the recoded columns are not the released ones"


def test_a_table_without_rows_breaks_nothing(statement: Statement, tmp_path: Path) -> None:
    table = pa.table({name: pa.array([], pa.string()) for name in statement.released})
    looks = list(CHECK.inspect(statement, (file_of(table, tmp_path, "csv"),)))
    assert broken(looks) == ""


def test_values_that_numbers_cannot_be_are_left_open(tmp_path: Path) -> None:
    policy = changed(EVERYTHING, release={"method": "full-domain", "k": 1, "sensitive": {"pay": {"t": "1/10"}}})
    names = ("sex", "age", "ill", "grade", "pay")
    values = [["F", "F", "M", "M"], *([["x", "x", "x", "x"]] * 3), ["1", "2", "many", "none"]]
    table = pa.table(dict(zip(names, values, strict=True)))
    looks = list(CHECK.inspect(stated(policy, tmp_path), (file_of(table, tmp_path, "csv"),)))
    assert "t-closeness of pay in the file" in left_open(looks)


def test_what_no_file_can_show_is_said_of_its_claims(tmp_path: Path) -> None:
    told = {claim.kind: CHECK.undecidable(claim) for claim in stated(SUPPRESSED, tmp_path).claims}
    words = {kind: problem.text for kind, problem in told.items() if problem is not None and problem.undecided}
    population = "it agrees with the steps; the population is not here to count it again"
    assert words["k-map"] == words["δ-presence"] == population
    assert words["β-likeness"] == "it agrees with the steps; rows that were left out count too and are not here"
    assert {"k-anonymity", "distinct l-diversity", "average risk"}.isdisjoint(words)
    assert not any(CHECK.undecidable(claim) for claim in stated(EVERYTHING, tmp_path).claims)
