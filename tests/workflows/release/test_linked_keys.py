"""Keys that lead nowhere, or to two rows, are said before the charge; nothing is refused for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import incrowd
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import BudgetExceeded, RowsLeftOut
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.linked import rehearse_tables
from incrowd.workflows.release.tables import ReleaseTerms, release_to

FEW = {"missing": "drop", "outside": "drop"}
KEY = {"role": "identifier"}


def policy(folder: Path, **changes: Any) -> Any:
    """Return the policy of a clinic in Poland: patients, visits and prescriptions."""
    visits = {"source": "wizyty.csv", "parent": "pacjenci", "unit": "pesel", "id": "nr", "max_rows": 2}
    lines = {"source": "recepty.csv", "parent": "wizyty", "foreign_key": "nr", "max_rows": 3}
    plain: dict[str, Any] = {
        "incrowd": 1,
        "dataset": {"name": "pacjenci", "unit": {"column": "pesel"}},
        "source": "pacjenci.csv",
        "columns": {"pesel": KEY, "płeć": {"categories": ["K", "M"], **FEW}},
        "tables": {
            "wizyty": visits | {"columns": {"pesel": KEY, "nr": KEY, "oddział": {"categories": ["Ż", "Ś"], **FEW}}},
            "recepty": lines | {"columns": {"nr": KEY, "lek": {"categories": ["żel", "maść"], **FEW}}},
        },
        "release": {"method": "linked", "epsilon": 5, "delta": "1e-6", "rounds": 1},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }
    for table, own in changes.items():
        plain["tables"][table] |= own
    return load_policy(plain, folder=folder)


def files(folder: Path, **tables: str) -> None:
    whole = {
        "pacjenci": "pesel,płeć\n0071,K\n0072,M\n0073,K\n",
        "wizyty": "pesel,nr,oddział\n0071,a,Ż\n0072,b,Ś\n0073,c,Ż\n",
        "recepty": "nr,lek\na,żel\nb,maść\nc,żel\n",
    }
    for name, text in (whole | tables).items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")


def notes(folder: Path, changes: Any = None, **tables: str) -> list[str]:
    files(folder, **tables)
    return [note for note in rehearse_tables(None, policy(folder, **changes or {}), LOCAL) if "delimiter" not in note]


def test_keys_that_all_name_one_row_need_no_word(tmp_path: Path) -> None:
    assert notes(tmp_path) == []


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"pacjenci": "pesel,płeć\n0071,K\n0072,M\n0073,K\n0071,M\n"}, ["pacjenci: 1 row of people who have another"]),
        (
            {"pacjenci": "pesel,płeć\n0071,K\n0072,M\n,K\n"},
            ["pacjenci: left out: 1 row without", "wizyty: left out: 1 row of 3", "recepty: left out: 1 row of 3"],
        ),
        (
            {"wizyty": "pesel,nr,oddział\n0071,a,Ż\n72,b,Ś\n0099,c,Ż\n"},
            [
                "names no row of pacjenci, and what is below. 1 row of them would name one but for leading zeros",
                "recepty: left out: 2 rows of 3",
            ],
        ),
        (
            {"wizyty": "pesel,nr,oddział\n0071,a,Ż\n0072,b,Ś\n,c,Ż\n"},
            ["wizyty: left out: 1 row without a value in 'pesel'", "recepty: left out: 1 row of 3 whose 'nr'"],
        ),
        (
            {"wizyty": "pesel,nr,oddział\n" + "".join(f"0071,{n},Ż\n" for n in "abcd")},
            ["wizyty: not read: 2 rows of people with more than 2 (max_rows)"],
        ),
        (
            {"wizyty": "pesel,nr,oddział\n0071,a,Ż\n0071,a,Ś\n0073,c,Ż\n"},
            ["wizyty: 1 row with the row ID of another row of the same person", "recepty: left out"],
        ),
        (
            {"wizyty": "pesel,nr,oddział\n0071,a,Ż\n0072,a,Ś\n0073,c,Ż\n"},
            ["wizyty: 1 row with a row ID that somebody else has, too. The guarantee assumes", "recepty: left out"],
        ),
        (
            {"recepty": "nr,lek\na,żel\n,maść\nx,żel\n"},
            [
                "recepty: left out: 1 row without a value in 'nr', the foreign key",
                "recepty: left out: 1 row of 3 whose 'nr' names no row of wizyty",
            ],
        ),
    ],
    ids=range(8),
)
def test_what_takes_no_part_is_counted_by_table(tables: dict[str, str], said: list[str], tmp_path: Path) -> None:
    lines = notes(tmp_path, **tables)
    assert len(lines) == len(said)
    for line, start in zip(lines, said, strict=True):
        assert start in line


def test_with_the_person_id_a_row_id_of_two_people_needs_no_word_and_other_peoples_rows_are_left_out(
    tmp_path: Path,
) -> None:
    own: dict[str, Any] = {
        "recepty": {
            "unit": "pesel",
            "columns": {"pesel": KEY, "nr": KEY, "lek": {"categories": ["żel", "maść"], **FEW}},
        }
    }
    lines = notes(
        tmp_path,
        own,
        wizyty="pesel,nr,oddział\n0071,a,Ż\n0072,a,Ś\n0073,c,Ż\n",
        recepty="pesel,nr,lek\n0071,a,żel\n0072,a,maść\n0073,a,żel\n",
    )
    assert lines == ["recepty: left out: 1 row of 3 whose 'nr' names no row of wizyty of the same person"]


def test_people_with_more_rows_are_named_where_they_are_left_out(tmp_path: Path) -> None:
    many = "pesel,nr,oddział\n" + "".join(f"0071,{n},Ż\n" for n in "abc")
    assert "wizyty: left out: 3 rows of people with more than 2" in notes(
        tmp_path, {"wizyty": {"more": "drop"}}, wizyty=many
    )


def test_it_is_said_before_the_charge_in_a_folder_and_in_memory(tmp_path: Path) -> None:
    files(tmp_path, recepty="nr,lek\na,żel\nb,maść\nx,żel\n")
    read, said = policy(tmp_path), []

    def announce(lines: Any) -> None:
        said.extend(lines)
        assert not any((tmp_path).glob("out/*"))

    published = release_to(None, read, Destination(tmp_path / "out"), terms=ReleaseTerms(before_charge=announce))
    assert [line for line in said if "names no row" in line] != []
    assert set(said) <= set(published.notes)
    with pytest.warns(RowsLeftOut, match="names no row of wizyty"), pytest.raises(BudgetExceeded):
        incrowd.release(None, read)
