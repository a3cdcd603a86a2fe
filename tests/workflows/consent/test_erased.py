"""Rows that were erased since a release without an ε: whoever is missing is noticed, though in no row of today."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import Refused
from incrowd.governance.consent.event import Decided
from incrowd.workflows.consent.participants import FILE
from incrowd.workflows.consent.preview import preview
from incrowd.workflows.policy.internal import internal_folder
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination, PublishedRelease
from incrowd.workflows.release.tables import release_to
from tests.consents import FORM, GATED, Consented, consented
from tests.policies import changed, written

K3 = changed(FORM, release__k=3)
LATER = [f"Späte {number}" for number in range(5)]
"""People who consent before their first row."""
UNKNOWN = "the number of people who moved is unknown"


def rows_of(sizes: dict[str, int]) -> pa.Table:
    """Return people of cells, which are named by sex and area, under ids of their own."""
    people = [(cell, f"Ö{cell}{number}") for cell, size in sizes.items() for number in range(size)]
    plain = {"sex": [cell[0] for cell, _ in people], "age": ["30"] * len(people)}
    return pa.table(plain | {"zip": [f"{cell[1:]}100" for cell, _ in people], "id": [name for _, name in people]})


ROWS = rows_of({"F02": 8, "M02": 8, "F94": 3, "M94": 20})


def without(rows: pa.Table, *ids: str) -> pa.Table:
    return rows.filter(pa.array([name not in ids for name in rows["id"].to_pylist()]))


def arriving(rows: pa.Table, cell: str, *ids: str) -> pa.Table:
    more = {"sex": [cell[0]] * len(ids), "age": ["30"] * len(ids), "zip": [f"{cell[1:]}100"] * len(ids), "id": ids}
    return pa.concat_tables([rows, pa.table(more)])


def out(made: Consented, name: str, rows: pa.Table, policy: Any = None) -> PublishedRelease:
    folder = made.policy.folder.parent / "out"
    folder.mkdir(exist_ok=True)
    return release_to(rows, policy or made.policy, Destination(folder / name, "csv"))


@pytest.fixture
def made(tmp_path: Path) -> Consented:
    return consented(K3, tmp_path, [*ROWS["id"].to_pylist(), *LATER])


def refused(made: Consented, rows: pa.Table, why: str) -> None:
    """Refuse a second release before its charge, and say so in the preview."""
    with pytest.raises(Refused, match=why):
        out(made, "second", rows)
    assert Ledger.open(made.policy.ledger_address).standing("people").totals.charges == 1
    assert not (made.policy.folder.parent / "out" / "second").exists()
    assert preview(made.policy, rows).refused


def test_one_person_who_left_and_was_erased_is_noticed(made: Consented) -> None:
    out(made, "first", ROWS)
    made.decide(Decided.WITHDRAW, ["ÖM940"])
    refused(made, without(ROWS, "ÖM940"), r"fewer than 3 people moved in the cell sex M.*1 left and 0 joined")


def test_one_person_who_was_erased_without_a_decision_is_noticed(made: Consented) -> None:
    out(made, "first", ROWS)
    refused(made, without(ROWS, "ÖM940"), UNKNOWN)


def test_two_who_were_erased_from_a_cell_that_vanishes_are_noticed(made: Consented) -> None:
    out(made, "first", ROWS)
    made.decide(Decided.WITHDRAW, ["ÖF940", "ÖF941"])
    refused(made, without(ROWS, "ÖF940", "ÖF941"), "2 left and 0 joined")


def test_an_arrival_does_not_hide_a_departure(made: Consented) -> None:
    out(made, "first", ROWS)
    made.decide(Decided.WITHDRAW, ["ÖM020"])
    refused(made, arriving(without(ROWS, "ÖM020"), "M02", LATER[0]), UNKNOWN)


def test_somebody_who_arrives_after_consenting_is_noticed(made: Consented) -> None:
    out(made, "first", ROWS)
    refused(made, arriving(ROWS, "M02", LATER[0]), UNKNOWN)


def test_somebody_who_moves_to_another_cell_is_noticed(made: Consented) -> None:
    out(made, "first", ROWS)
    refused(made, arriving(without(ROWS, "ÖM020"), "M94", "ÖM020"), UNKNOWN)


def test_k_people_who_left_one_cell_may_be_erased(made: Consented) -> None:
    out(made, "first", ROWS)
    leavers = ["ÖM940", "ÖM941", "ÖM942"]
    made.decide(Decided.WITHDRAW, leavers)
    out(made, "second", without(ROWS, *leavers))
    with pytest.raises(Refused, match=UNKNOWN):  # after another one has gone, it is unknown how many went when
        out(made, "third", without(ROWS, *leavers, "ÖM020"))


def test_k_people_of_each_of_several_cells_may_be_erased(made: Consented) -> None:
    out(made, "first", ROWS)
    leavers = ["ÖM940", "ÖM941", "ÖM942", "ÖF020", "ÖF021", "ÖF022"]
    made.decide(Decided.WITHDRAW, [*leavers[:5], LATER[0]])
    refused(made, without(ROWS, *leavers[:5]), "2 left and 0 joined")
    made.decide(Decided.WITHDRAW, leavers[5:])
    refused(made, without(ROWS, *leavers, "ÖM020"), UNKNOWN)
    out(made, "second", without(ROWS, *leavers))


def test_a_whole_cell_of_k_people_may_be_erased(made: Consented) -> None:
    leavers = ["ÖF940", "ÖF941", "ÖF942"]
    out(made, "first", ROWS)
    out(made, "second", without(ROWS, *leavers))


def test_people_who_moved_to_a_new_cell_all_together_do_not_hide_one_who_was_erased(made: Consented) -> None:
    out(made, "first", ROWS)
    moved = [f"ÖF02{number}" for number in range(7)]
    recoded = arriving(without(ROWS, "ÖF027", *moved), "F11", *moved)
    made.decide(Decided.WITHDRAW, ["ÖF027"])
    refused(made, recoded, UNKNOWN)


def test_a_cell_whose_people_were_all_exchanged_is_not_judged(made: Consented) -> None:
    out(made, "first", ROWS)
    old, new = [f"ÖF94{number}" for number in range(3)], [f"Neu {number}" for number in range(3)]
    made.decide(Decided.GIVE, new)
    refused(made, arriving(without(ROWS, *old), "F94", *new), UNKNOWN)


def test_counts_of_other_columns_are_not_compared(made: Consented, tmp_path: Path) -> None:
    out(made, "first", ROWS)
    fewer = changed(K3, columns__zip={"role": "identifier"}, release__lowest={"age": 2})
    policy = load_policy(written(fewer, tmp_path / "data", "fewer.yaml"))
    with pytest.raises(Refused, match=UNKNOWN):
        out(made, "second", without(ROWS, "ÖM940"), policy)


def test_rows_that_were_added_for_people_who_consented_since_are_judged_as_joiners(made: Consented) -> None:
    out(made, "first", ROWS)
    new = ["Neu 1", "Neu 2", "Neu 3"]
    made.decide(Decided.GIVE, new)
    refused(made, arriving(ROWS, "M02", *new[:2]), "0 left and 2 joined")
    out(made, "second", arriving(ROWS, "M02", *new))


def test_where_no_counts_were_kept_the_same_rows_are_judged_and_others_refused(made: Consented) -> None:
    first = out(made, "first", ROWS)
    (internal_folder(made.policy, first.release.certificate.id) / FILE).unlink()
    refused(made, arriving(ROWS, "M02", "a stranger"), UNKNOWN)
    made.decide(Decided.WITHDRAW, ["ÖM940", "ÖM941", "ÖM942"])
    out(made, "second", ROWS)


def test_after_a_release_of_everybody_other_rows_are_refused(made: Consented, tmp_path: Path) -> None:
    bare = load_policy(written(changed(K3, purpose=None, consent=None), tmp_path / "data", "bare.yaml"))
    out(made, "first", ROWS, bare)
    refused(made, without(ROWS, "ÖM940"), UNKNOWN)
    out(made, "second", ROWS)


def test_a_release_with_an_epsilon_is_not_held_back_by_erased_rows(tmp_path: Path) -> None:
    made = consented(GATED, tmp_path, ROWS["id"].to_pylist())
    out(made, "first", ROWS)
    out(made, "second", without(ROWS, "ÖM940"))
    assert Ledger.open(made.policy.ledger_address).standing("people").totals.charges == 2


def test_what_is_kept_names_nobody_and_no_cell(made: Consented) -> None:
    first = out(made, "first", ROWS)
    file = internal_folder(made.policy, first.release.certificate.id) / FILE
    kept = file.read_text(encoding="utf-8")
    pseudonyms = {event.subject for _, event in made.registry.events()}
    assert not any(name in kept for name in (*pseudonyms, *ROWS["id"].to_pylist(), "M02", '"M"', '"94'))
    assert file.stat().st_mode & 0o077 == 0
    assert not list(first.folder.rglob(FILE))
