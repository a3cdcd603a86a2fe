"""A purpose of linked tables leaves people out with all rows that their keys lead to; only keys are read of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from incrowd.core.steps.around import OWN_DECISION, gate_of
from incrowd.core.table import Rows
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import Refused, SourceInvalid
from incrowd.governance.consent.event import Decided
from incrowd.workflows.assess.linked import assess_linked
from incrowd.workflows.attack.inputs import AttackInput
from incrowd.workflows.consent.place import ConsentPlace
from incrowd.workflows.consent.preview import preview
from incrowd.workflows.consent.snapshot import admit, taking_part_linked
from incrowd.workflows.consent.table import TableIds
from incrowd.workflows.policy.linked_tables import open_tables
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.linked import rehearse_tables
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.consents import GATED, Consented, consented
from tests.linked import Tables, chosen, example, hospital, linked_files, linked_policy

PEOPLE, HALF = [f"p{n}" for n in range(40)], [f"p{n}" for n in range(0, 40, 2)]
SHAPES = ["one level", "two levels", "two levels by row ID"]


def gated(name: str, folder: Path, ids: list[str], tables: Tables | None = None) -> Consented:
    """Write tables and the policy of an example with a purpose; some of the people consent."""
    plain = linked_policy(name, rounds=1, epsilon=9) | {key: GATED[key] for key in ("purpose", "consent", "budget")}
    made = consented(plain, folder, ids)
    linked_files(folder / "data", hospital(40) if tables is None else tables)
    return made


def read(rows: Rows) -> pa.Table:
    return pa.Table.from_batches(list(rows.batches(rows.names)))


def taking_part(made: Consented) -> dict[str, pa.Table]:
    """Return the rows of each table that a release reads."""
    rows = taking_part_linked(LOCAL, open_tables(made.policy, None, LOCAL), made.policy, admit(made.policy))
    return dict(zip(chosen(made.policy, hospital(1)), map(read, rows), strict=True))


@pytest.mark.parametrize("name", SHAPES)
def test_who_did_not_consent_has_no_row_in_any_table_and_all_others_have_theirs(name: str, tmp_path: Path) -> None:
    made, whole = gated(name, tmp_path, HALF), hospital(40)
    for table, rows in taking_part(made).items():
        own = whole[table].filter(pc.is_in(whole[table]["patient"], pa.array(HALF)))
        assert rows.select(own.column_names).cast(own.schema).equals(own)


def test_an_orphan_takes_no_part_whoever_its_person_would_be(tmp_path: Path) -> None:
    """Somebody who consented but has no row among the people has none below, even where a table names no person."""
    whole = hospital(40)
    people = whole["patients"].filter(pc.not_equal(whole["patients"]["patient"], "p2"))
    lost = gated("two levels by row ID", tmp_path, HALF, whole | {"patients": people})
    release = release_to(None, lost.policy, Destination(tmp_path / "out", "csv")).release
    assert abs(release.result.tables["patients"].num_rows - 19) <= 2


def test_a_release_is_certified_assessed_and_attacked_about_those_who_consented(tmp_path: Path) -> None:
    made = gated("two levels by row ID", tmp_path, HALF)
    out = release_to(None, made.policy, Destination(tmp_path / "out", "csv")).folder
    made.decide(Decided.WITHDRAW, HALF[:5])
    outcome = verify(out, policy=made.policy)
    assert outcome.passed, outcome.failure
    certificate = outcome.certificate
    gate = gate_of(certificate.steps)
    assert gate is not None
    assert gate.settled
    assert OWN_DECISION in [needed.term for needed in certificate.claims[0].preconditions]
    assert certificate.guarantee.loss == made.policy.plan.gated(None).guarantee.loss
    assert assess_linked(out, made.policy, None, LOCAL).people_before == len(HALF)
    targets = AttackInput(out, None, made.policy).targets()
    assert {len(target.knowledge.people) for target in targets if target.name == "patients"} == {len(HALF)}


def test_cells_of_somebody_who_did_not_consent_stop_nothing(tmp_path: Path) -> None:
    """Text that is no truth value stops a release before its charge, if it is of somebody who takes part."""
    whole = hospital(40)
    owners, urgent = (whole["stays"][name].to_pylist() for name in ("patient", "urgent"))
    cells = pa.array(
        ["often" if owner == "p1" else str(cell).lower() for owner, cell in zip(owners, urgent, strict=True)]
    )
    stays = whole["stays"].set_column(whole["stays"].column_names.index("urgent"), "urgent", cells)
    made = gated("one level", tmp_path, HALF, whole | {"stays": stays})
    rehearse_tables(None, made.policy, LOCAL)
    made.decide(Decided.GIVE, ["p1"])
    with pytest.raises(SourceInvalid, match="among those of people who consented"):
        rehearse_tables(None, made.policy, LOCAL)


def test_decisions_are_compared_with_the_people_and_a_preview_counts_them(tmp_path: Path) -> None:
    made = gated("one level", tmp_path, HALF)
    ids = TableIds.of(made.policy)
    assert ids is not None
    assert ids.names == set(PEOPLE)
    assert preview(made.policy).consenting == len(HALF)


@pytest.mark.parametrize("table", ["patients", "stays"])
def test_registry_and_key_lie_apart_from_every_table(table: str, tmp_path: Path) -> None:
    made = gated("one level", tmp_path, HALF)
    beside = {table: str(tmp_path / "registry" / f"{table}.csv")}
    with pytest.raises(Refused, match=f"the registry and the table {table} of this policy are in the same folder"):
        ConsentPlace.of(made.policy, beside).require_apart()


def test_without_a_reading_of_the_registry_nothing_is_released(tmp_path: Path) -> None:
    from incrowd.workflows.release.linked import prepared_tables
    from incrowd.workflows.release.prepare import Background, PolicyOrder

    made = gated("one level", tmp_path, HALF)
    order: Any = PolicyOrder.of(made.policy.plan, made.policy, Background())
    with pytest.raises(Refused, match="was not read"), prepared_tables(order, None, None):
        pass


def test_a_row_id_of_two_people_is_the_only_way_to_rows_of_a_refuser_and_is_assumed_away(tmp_path: Path) -> None:
    """Where a table has the person ID column, the same row IDs for everybody lead to nobody else's rows."""
    whole = hospital(40)
    same: Tables = {
        name: table
        if name == "patients"
        else table.set_column(table.column_names.index("stay"), "stay", pa.array(["s"] * table.num_rows))
        for name, table in whole.items()
    }
    made = gated("two levels", tmp_path, HALF, same)
    assert set(taking_part(made)["procedures"]["patient"].to_pylist()) <= set(HALF)
    assert not any("row ID" in str(term) for term in made.policy.plan.guarantee.assumes)
    assert any("row ID" in str(term) for term in example("two levels by row ID").plan.guarantee.assumes)
