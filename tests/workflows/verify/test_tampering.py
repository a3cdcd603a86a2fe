"""Whatever is changed afterwards is found and named."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from incrowd.accounting.budget import Budget
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import IncrowdError
from incrowd.workflows.certificates import certificate_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.signing import check_signature
from incrowd.workflows.verify.verify import verify
from tests.ledgers import tampering
from tests.policies import PEOPLE, changed, people, written
from tests.released import (
    Folder,
    Keys,
    Step,
    failed,
    key_pair,
    leaves,
    other,
    problems,
    rehash,
    release_into,
    renamed,
    unreadable,
)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return key_pair(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return release_into(tmp_path_factory.mktemp("plain") / "release")


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> Folder:
    return release_into(tmp_path_factory.mktemp("signed") / "release", key=keys.private)


@pytest.fixture
def copy(made: Folder, tmp_path: Path) -> Folder:
    return made.copied(tmp_path / "copy")


def test_every_byte_of_the_data_counts(made: Folder, tmp_path: Path) -> None:
    whole = (made.out / "data.csv").read_bytes()
    for place in (0, len(whole) // 2, len(whole) - 1):
        copy = made.copied(tmp_path / f"{place}")
        damaged = bytearray(whole)
        damaged[place] ^= 1
        (copy.out / "data.csv").write_bytes(damaged)
        assert "file data.csv" in failed(verify(copy.out))


@pytest.mark.parametrize(
    "path",
    [
        ("steps", 1, "columns", 0, "level"),
        ("steps", 1, "columns", 0, "rule"),
        ("steps", 1, "columns", 0, "missing"),
        ("steps", 0, "coins"),
        ("steps", 0, "sentence"),
        ("claims", 0, "not_protected"),
        ("claims", 0, "preconditions", 0, "status"),
        ("guarantee", "because"),
        ("policy_hash",),
    ],
)
def test_the_id_binds_every_step_and_claim(copy: Folder, path: tuple[str | int, ...]) -> None:
    changes: dict[str, Any] = {"not_protected": [], "status": "assumed"}
    copy.tamper(path, lambda _: changes.get(str(path[-1]), "something else"))
    assert unreadable(copy.out) or renamed(verify(copy.out))


def test_a_forger_who_renames_the_release_is_found_by_the_ledger(copy: Folder) -> None:
    copy.forge(("policy_hash",), lambda _: "0" * 64)
    assert not renamed(verify(copy.out))
    assert problems(copy.out) == ["report"], "which names the policy; a forger can write it again"
    assert "ledger" in failed(verify(copy.out, ledger=Ledger.open(copy.ledger)))


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet"])
def test_a_file_that_can_no_longer_be_counted_fails_and_does_not_crash(tmp_path: Path, form: str) -> None:
    folder = release_into(tmp_path / "release", form)
    (folder.out / f"data.{form}").write_bytes(b"\x00PAR1 nothing")
    assert {f"file data.{form}", "contents of the file"} <= set(failed(verify(folder.out)))


def test_a_row_that_is_alone_is_named_even_if_the_hash_was_made_to_fit(copy: Folder) -> None:
    with (copy.out / "data.csv").open("a") as file:
        file.write("F,alone,02\n")
    rehash(copy.out, "data.csv")
    assert failed(verify(copy.out)) == ["crowds in the file"]


def parameters() -> list[tuple[Step, ...]]:
    counts = {0: "k rate delta epsilon adjacency max_rows", 1: "k rate delta epsilon", 2: "k rate delta epsilon"}
    counts |= {3: "k rate delta epsilon", 4: "k epsilon", 5: "k"}
    return [("claims", claim, "parameters", name) for claim, names in counts.items() for name in names.split()]


@pytest.mark.parametrize("steps", parameters(), ids=lambda steps: f"{steps[1]}-{steps[3]}")
@pytest.mark.parametrize("factor", ["1.01", "0.99"])
def test_every_parameter_of_every_claim_counts_up_and_down(copy: Folder, steps: tuple[Step, ...], factor: str) -> None:
    def moved(value: Any) -> Any:
        if value in ("add-remove", "replace-one"):
            return "replace-one"
        if isinstance(value, int):
            return value + (1 if float(factor) > 1 else -1)
        return str(Fraction(value) * Fraction(factor) if Fraction(value) else Fraction(factor))

    copy.forge(steps, moved)
    assert problems(copy.out)


def test_a_claim_about_fewer_columns_fails(copy: Folder) -> None:
    copy.forge(("claims", 5, "parameters", "columns"), lambda columns: columns[:1])
    assert problems(copy.out)


@pytest.mark.parametrize("claim", range(6))
def test_a_claim_for_another_unit_fails(copy: Folder, claim: int) -> None:
    copy.forge(("claims", claim, "unit"), lambda _: "one household, added or removed")
    assert problems(copy.out)


@pytest.mark.parametrize(
    ("steps", "value"),
    [
        (("steps", 0, "rate"), "1/3"),
        (("steps", 2, "k"), 5),
        (("steps", 1, "columns", 0, "column"), "gender"),
        (("steps", 1, "columns", 1, "provenance", "derived"), True),
        (("schema", "released"), ["sex"]),
        (("guarantee", "loss", "rate"), "1/3"),
        (("guarantee", "loss", "inner", "k"), 22),
        (("guarantee", "loss", "inner", "epsilon"), "1"),
        (("steps", 1, "columns", 0, "rule"), "a finer one"),
        (("guarantee", "delta"), "1/100000"),
        (("guarantee", "unit", "adjacency"), "replace-one"),
        (("accounting", "spent", "epsilon"), "0.5"),
        (("accounting", "spent", "delta"), "0.00001"),
        (("accounting", "total", "epsilon"), "0.5"),
        (("accounting", "total", "delta"), "0.5"),
        (("accounting", "releases"), 0),
        (("accounting", "spent"), None),
    ],
    ids=lambda value: ".".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_a_certificate_that_contradicts_itself_fails(copy: Folder, steps: tuple[Step, ...], value: object) -> None:
    copy.forge(steps, lambda _: value)
    assert problems(copy.out)


def test_people_with_other_rows_than_the_guarantee_says_fail(tmp_path: Path) -> None:
    table = people().append_column("id", [[f"p{n}" for n in range(600)]])
    unit = {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id", "max_rows": 2}}
    release_to(table, written(changed(PEOPLE, **unit), tmp_path), Destination(tmp_path / "out"))
    folder = Folder(tmp_path)
    folder.forge(("steps", 0, "rows"), lambda rows: rows - 1)
    assert problems(folder.out)
    folder.forge(("steps", 0, "rows"), lambda rows: rows + 1)
    folder.forge(("claims", 0, "parameters", "max_rows"), lambda rows: rows - 1)
    assert problems(folder.out)


@pytest.mark.parametrize("kind", ["zero-knowledge with respect to random sampling", "crowd-blending"])
def test_a_claim_that_the_guarantee_does_not_carry_fails(tmp_path: Path, made: Folder, kind: str) -> None:
    """What was drafted from rows has no other claim than k-anonymity, whatever is written into its certificate."""
    folder = release_into(tmp_path / "release", columns__sex__derived="rows", budget={"unbounded": "a reason"})
    stolen = next(claim for claim in made.certificate["claims"] if claim["kind"] == kind)
    folder.forge(("claims",), lambda claims: [stolen, *claims])
    assert "claims" in problems(folder.out)


ACCOUNTING = [
    ("accounting", "spent", "epsilon"),
    ("accounting", "spent", "delta"),
    ("accounting", "total", "epsilon"),
    ("accounting", "total", "delta"),
    ("accounting", "left", "epsilon"),
    ("accounting", "left", "delta"),
    ("accounting", "releases"),
    ("accounting", "rule"),
    ("accounting", "composition"),
    ("accounting", "unbounded"),
]


@pytest.mark.parametrize(
    "steps",
    [
        *ACCOUNTING,
        ("dataset", "name"),
        ("id",),
        ("guarantee", "because"),
        ("guarantee", "assumes", 0),
        ("guarantee", "delta"),
        ("ledger", "chain"),
        ("ledger", "sequence"),
        ("ledger", "hash"),
    ],
    ids=lambda steps: ".".join(map(str, steps)),
)
def test_what_the_ledger_knows_better_is_found(copy: Folder, steps: tuple[Step, ...]) -> None:
    copy.tamper(steps, other)
    assert unreadable(copy.out) or "ledger" in failed(verify(copy.out, ledger=Ledger.open(copy.ledger)))


def test_with_a_signature_every_single_value_counts(signed: Folder, keys: Keys, tmp_path: Path) -> None:
    copy = signed.copied(tmp_path / "copy")
    plain = copy.certificate
    ways = [way for way in leaves(plain) if way != ("certificate",)]
    assert len(ways) > 150
    for way in ways:
        (copy.out / "certificate.json").write_bytes((signed.out / "certificate.json").read_bytes())
        copy.tamper(way, other)
        try:
            found = certificate_of(copy.certificate)
        except IncrowdError:
            continue  # it cannot even be read
        assert check_signature(found, keys.public) is not None, way


def entry_changed(ledger: Ledger, sequence: int) -> None:
    with tampering(ledger.chain) as connection:
        table = ledger.chain.database.tables.entries
        old = str(connection.execute(text(f"SELECT body FROM {table} WHERE sequence = {sequence}")).scalar_one())
        assert "people" in old
        new = {"new": old.replace("people", "purple")}
        connection.execute(text(f"UPDATE {table} SET body = :new WHERE sequence = {sequence}"), new)


@pytest.mark.parametrize("sequence", [2, 3])
def test_a_changed_entry_of_the_ledger_is_named(copy: Folder, sequence: int) -> None:
    ledger = Ledger.open(copy.ledger)
    entry_changed(ledger, sequence)
    found = verify(copy.out, ledger=ledger)
    assert failed(found) == ["ledger"]
    assert f"entry {sequence} was changed" in next(each.why for each in found.findings if each.about == "ledger")


def test_an_old_copy_of_the_ledger_is_found_against_the_certificate(tmp_path: Path) -> None:
    folder = release_into(tmp_path / "release")
    file = folder.path / ".incrowd" / "ledger.sqlite"
    shutil.copy(file, tmp_path / "backup.sqlite")
    Ledger.open(folder.ledger).grant("people", Budget.of(1, "1e-4"), "the board", "a second table")
    release_to(people(), folder.path / "policy.yaml", Destination(folder.path / "second"))
    shutil.copy(tmp_path / "backup.sqlite", file)
    assert verify(folder.out, ledger=Ledger.open(folder.ledger)).passed
    found = verify(folder.path / "second", ledger=Ledger.open(folder.ledger))
    assert failed(found) == ["ledger"]


def test_another_ledger_is_found(copy: Folder, tmp_path: Path) -> None:
    stranger = release_into(tmp_path / "stranger")
    assert failed(verify(copy.out, ledger=Ledger.open(stranger.ledger))) == ["ledger"]
