"""Forgeries that are consistent with their hashes: the certificate must still speak of the file, all of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from incrowd.core.codec import encode
from incrowd.core.steps.rows import Order
from incrowd.errors import InvalidParameter
from incrowd.verifier.check import Verdict
from incrowd.verifier.files import file_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, people, written
from tests.released import Folder, failed, problems, rehash, release_into

Lines = Callable[[list[str]], list[str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return release_into(tmp_path_factory.mktemp("plain") / "release")


@pytest.fixture(scope="module")
def weighted(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return release_into(tmp_path_factory.mktemp("weighted") / "release", release__weights=True)


@pytest.fixture
def copy(made: Folder, tmp_path: Path) -> Folder:
    return made.copied(tmp_path / "copy")


def rewrite(folder: Folder, change: Lines) -> None:
    """Write other data, with a hash to fit."""
    file = folder.out / "data.csv"
    file.write_text("".join(f"{line}\n" for line in change(file.read_text().splitlines())))
    rehash(folder.out, "data.csv")


def with_column(name: str, value: Callable[[int], object]) -> Lines:
    return lambda lines: [
        f"{lines[0]},{name}",
        *(f"{line},{value(number)}" for number, line in enumerate(lines[1:])),
    ]


@pytest.mark.parametrize("value", [lambda number: number, lambda _: 7], ids=["a name for each row", "a constant"])
def test_a_column_that_the_certificate_does_not_know_fails(copy: Folder, value: Callable[[int], object]) -> None:
    rewrite(copy, with_column("ssn", value))
    assert failed(verify(copy.out)) == ["columns in the file"]


def test_weights_that_were_not_asked_for_fail(copy: Folder) -> None:
    rewrite(copy, with_column("weight", lambda _: 2))
    assert failed(verify(copy.out)) == ["columns in the file"]


@pytest.mark.parametrize("weight", ["3", "2.0000001"])
def test_one_weight_that_is_not_the_others_fails(weighted: Folder, tmp_path: Path, weight: str) -> None:
    copy = weighted.copied(tmp_path / "copy")
    rewrite(copy, lambda lines: [*lines[:-1], f"{lines[-1].rpartition(',')[0]},{weight}"])
    assert failed(verify(copy.out)) == ["columns in the file"]
    rewrite(copy, lambda lines: [line.rpartition(",")[0] for line in lines])
    assert failed(verify(copy.out)) == ["columns in the file"]


def test_columns_in_parquet_are_compared_too(tmp_path: Path) -> None:
    folder = release_into(tmp_path / "release", "parquet", release__weights=True)
    assert failed(verify(folder.out)) == []
    plain = Order(weights=False)
    folder.forge(("steps", 3), lambda _: plain.to_json())
    assert failed(verify(folder.out)) == ["columns in the file"]


def test_a_second_file_fails_whether_the_certificate_names_it_or_not(copy: Folder) -> None:
    (copy.out / "raw.csv").write_text("name\nAnn\n")
    assert failed(verify(copy.out)) == ["folder"]
    assert failed(verify(copy.out / "certificate.json")) == []
    second = encode(file_of(copy.out / "raw.csv"))
    copy.tamper(("outputs",), lambda outputs: [*outputs, second])
    assert "files" in failed(verify(copy.out))
    copy.tamper(("outputs",), lambda outputs: outputs[1:])
    assert "files" in failed(verify(copy.out))


def test_a_file_for_a_certificate_that_names_none_fails(copy: Folder) -> None:
    copy.tamper(("outputs",), lambda _: [])
    assert failed(verify(copy.out / "certificate.json")) == []
    assert failed(verify(copy.out / "certificate.json", copy.out / "data.csv")) == ["files"]
    assert failed(verify(copy.out)) == ["folder"]


def test_people_with_more_rows_than_the_claims_speak_of_fail(tmp_path: Path) -> None:
    table = people().append_column("id", [[f"p{n}" for n in range(600)]])
    unit = {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id"}}
    release_to(table, written(changed(PEOPLE, **unit), tmp_path), Destination(tmp_path / "out", "csv"))
    folder = Folder(tmp_path)
    assert failed(verify(folder.out)) == []
    folder.forge(("guarantee", "unit", "max_rows"), lambda _: 50)
    folder.forge(("guarantee", "loss"), lambda row: {"loss": "grouped", "size": 50, "inner": row})
    folder.forge(("steps", 0, "rows"), lambda _: 50)
    who = {"kind": "person", "adjacency": "add-remove", "column": "id", "max_rows": 50}
    folder.forge(("claims",), lambda claims: [claim | {"unit": who} for claim in claims])
    assert problems(folder.out)


def test_theorems_about_added_rows_say_nothing_about_replaced_ones(copy: Folder) -> None:
    copy.forge(("guarantee", "unit", "adjacency"), lambda _: "replace-one")
    copy.forge(
        ("claims",),
        lambda claims: [
            claim | {"unit": {"kind": "row", "adjacency": "replace-one", "max_rows": 1}} for claim in claims
        ],
    )
    assert problems(copy.out)


def test_a_k_that_is_written_as_text_fails(copy: Folder) -> None:
    copy.forge(("claims", 0, "parameters", "k"), str)
    assert problems(copy.out)


@pytest.mark.parametrize("claim", [0, 1, 4, 5])
def test_a_claim_that_is_left_out_is_missed(copy: Folder, claim: int) -> None:
    copy.forge(("claims",), lambda claims: [*claims[:claim], *claims[claim + 1 :]])
    assert "claims" in problems(copy.out)


def test_rows_are_counted_even_if_nothing_is_claimed_about_them(copy: Folder) -> None:
    rewrite(copy, lambda lines: [*lines, "F,alone,02"])
    copy.forge(("claims",), lambda claims: claims[:5])
    assert set(problems(copy.out)) == {"glossary", "claims", "crowds in the file"}


def test_no_claims_at_all_fail_even_if_no_epsilon_was_charged(copy: Folder) -> None:
    copy.forge(("claims",), lambda _: [])
    for which in ("spent", "total"):
        copy.forge(("accounting", which, "epsilon"), lambda _: "Infinity")
    assert problems(copy.out) == ["glossary", "claims", "accounting"]


@pytest.mark.parametrize("claim", [0, 1, 4, 5])
def test_a_claim_without_its_conditions_fails(copy: Folder, claim: int) -> None:
    copy.forge(("claims", claim, "preconditions"), lambda _: [])
    assert problems(copy.out)


@pytest.mark.parametrize("claim", [0, 1, 4])
def test_an_assumption_of_the_guarantee_is_one_of_its_claims(copy: Folder, claim: int) -> None:
    copy.forge(("claims", claim, "preconditions"), lambda conditions: conditions[:-1])
    assert problems(copy.out)


def test_a_guarantee_that_assumes_nothing_fails(copy: Folder) -> None:
    bare: Any = [claim | {"preconditions": []} for claim in copy.certificate["claims"]]
    copy.forge(("claims",), lambda _: bare)
    copy.forge(("guarantee", "assumes"), lambda _: [])
    assert problems(copy.out)


@pytest.mark.parametrize("claim", [0, 4])
def test_a_claim_that_leaves_nothing_open_fails(copy: Folder, claim: int) -> None:
    copy.forge(("claims", claim, "not_protected"), lambda _: [])
    assert problems(copy.out)


@pytest.mark.parametrize("amount", ["spent", "total"])
def test_an_amount_that_is_not_a_number_fails(copy: Folder, amount: str) -> None:
    copy.tamper(("accounting", amount, "delta"), lambda _: "NaN")
    assert "accounting" in failed(verify(copy.out))


@pytest.mark.parametrize("path", [("id",), ("steps", 0), ("outputs", 0), ("evidence",), ("schema",), ("method",)])
@pytest.mark.parametrize("value", [None, 7, []])
def test_what_is_no_certificate_is_refused_and_does_not_crash(
    copy: Folder, path: tuple[str | int, ...], value: Any
) -> None:
    copy.tamper(path, lambda _: value)
    with pytest.raises(InvalidParameter):
        verify(copy.out)


NUMBERS = [
    ("guarantee", "loss", "inner", "epsilon"),
    ("guarantee", "delta"),
    ("claims", 0, "parameters", "epsilon"),
    ("steps", 0, "rate"),
]


@pytest.mark.parametrize("number", ["1e9999", "1e999999999", "1e-999999999", "1" * 5000])
@pytest.mark.parametrize("path", NUMBERS)
def test_a_number_too_long_to_be_computed_with_is_refused_and_does_not_crash(
    copy: Folder, path: tuple[str | int, ...], number: str
) -> None:
    copy.forge(path, lambda _: number)
    assert problems(copy.out)


def test_a_whole_number_of_thousands_of_digits_is_refused_and_does_not_crash(copy: Folder) -> None:
    file = copy.out / "certificate.json"
    file.write_text(file.read_text().replace('"k":21', f'"k":{"1" * 5000}'))
    with pytest.raises(InvalidParameter, match="is not a certificate"):
        verify(copy.out)


def test_a_loss_that_no_suppression_has_fails(copy: Folder) -> None:
    copy.forge(("guarantee", "loss"), lambda _: {"loss": "pure", "epsilon": "0"})
    assert "guarantee" in problems(copy.out)


def test_what_could_not_be_derived_again_is_passed_and_not_complete(made: Folder, tmp_path: Path) -> None:
    assert verify(made.out).complete
    replaced = verify(release_into(tmp_path / "release", dataset__unit={"adjacency": "replace-one"}).out)
    assert replaced.passed
    assert not replaced.complete


def test_evidence_that_the_file_does_not_show_fails(copy: Folder) -> None:
    copy.tamper(("evidence", "smallest class"), lambda size: size + 1)
    found = verify(copy.out)
    assert failed(found) == ["crowds in the file"]
    assert any("evidence" in each.why for each in found.findings if each.verdict is Verdict.FAILED)
