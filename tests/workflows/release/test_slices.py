"""Several tables: what was released verifies file by file, and what was forged does not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.slicing.method import CHECK
from incrowd.methods.anonymity.slicing.steps import Sliced
from incrowd.methods.shared.microdata import Microdata
from incrowd.verifier.judge import statement_of
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.report.render import render_internal, render_public
from incrowd.workflows.verify.verification import Verification
from incrowd.workflows.verify.verify import verify
from tests.contract.examples import POLICIES, rows
from tests.policies import PEOPLE, changed, people, with_ledger, written
from tests.postgres_tables import ask
from tests.released import Folder, failed, problems, rehash, release_into

GIVEN: dict[str, Any] = {"release": POLICIES["slicing"]["k solved"]["release"]}
CHOSEN: dict[str, Any] = {"release": POLICIES["slicing"]["groups chosen"]["release"]}
JOINT: dict[str, Any] = {"release": POLICIES["slicing"]["one release, split"]["release"]}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return release_into(tmp_path_factory.mktemp("given") / "release", **GIVEN)


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return release_into(tmp_path_factory.mktemp("chosen") / "release", **CHOSEN)


def assert_verified(found: Verification) -> None:
    assert found.passed, failed(found)
    assert found.complete


def test_each_table_is_a_file_and_all_are_verified(given: Folder, chosen: Folder) -> None:
    for made in (given, chosen):
        names = [output["name"] for output in made.certificate["outputs"]]
        assert names == ["data.1.csv", "data.2.csv", "report.html"]
        assert_verified(verify(made.out))
    assert (given.out / "data.1.csv").read_text().splitlines()[0] == "sex,age"
    assert (given.out / "data.2.csv").read_text().splitlines()[0] == "zip"


@pytest.mark.parametrize("form", ["parquet", "tsv"])
def test_one_release_that_was_split_is_verified_in_every_format(tmp_path: Path, form: str) -> None:
    made = release_into(tmp_path / "release", form, **JOINT)
    assert [output["name"] for output in made.certificate["outputs"]] == [
        f"data.1.{form}",
        f"data.2.{form}",
        "report.html",
    ]
    found = verify(made.out)
    assert_verified(found)
    assert "claim: crowd-blending" in [finding.about for finding in found.findings]


def test_tables_from_several_samples_are_not_one_release_that_was_split(tmp_path: Path) -> None:
    """Told as one release, the tables of several samples would cost less than they do; their sizes tell."""
    made = release_into(tmp_path / "joint", "csv", **JOINT)
    file = made.out / "data.2.csv"
    file.write_text(file.read_text() + file.read_text().splitlines()[-1] + "\n")
    rehash(made.out, "data.2.csv")
    assert failed(verify(made.out)) == ["rows in the files"]
    result = release(people(), with_ledger(changed(PEOPLE, **JOINT), tmp_path))
    assert isinstance(result.result, Sliced)
    first, second = result.result.tables
    fewer = Microdata(second.counts.at_least(int(second.counts.counts.min()) + 1))
    statement = statement_of(result.certificate)
    assert CHECK.recount(statement, Sliced((first, fewer), result.result.names)) is not None


def test_people_with_several_rows_and_drafts_are_verified(tmp_path: Path) -> None:
    draft: dict[str, Any] = {"columns__sex__derived": "rows", "budget": {"unbounded": "compared with other tools"}}
    assert_verified(verify(release_into(tmp_path / "drafted", **GIVEN, **draft).out))
    made = release(rows(), with_ledger(POLICIES["slicing"]["people with two rows"], tmp_path))
    (tmp_path / "certificate.json").write_text(made.certificate.to_text())
    assert_verified(verify(tmp_path / "certificate.json"))


def test_of_replaced_rows_the_composition_is_not_derived_again(tmp_path: Path) -> None:
    made = release_into(tmp_path / "release", **GIVEN, dataset__unit={"adjacency": "replace-one"})
    found = verify(made.out)
    assert found.passed, failed(found)
    assert not found.complete


def test_the_files_may_lie_elsewhere_together(given: Folder, tmp_path: Path) -> None:
    copy = given.copied(tmp_path / "copy")
    (tmp_path / "tables").mkdir()
    for name in ("data.1.csv", "data.2.csv"):
        shutil.move(copy.out / name, tmp_path / "tables" / name)
    assert "file data.1.csv" in failed(verify(copy.out))
    assert_verified(verify(copy.out, tmp_path / "tables"))
    assert "file data.1.csv" in failed(verify(copy.out, tmp_path / "tables" / "data.1.csv"))


def lost(folder: Path) -> None:
    (folder / "data.2.csv").unlink()


def exchanged(folder: Path) -> None:
    first, second = folder / "data.1.csv", folder / "data.2.csv"
    text = first.read_text()
    first.write_text(second.read_text())
    second.write_text(text)


def one_more(folder: Path) -> None:
    (folder / "data.3.csv").write_text("ill\nflu\n")


def one_row_more(folder: Path) -> None:
    with (folder / "data.2.csv").open("a") as file:
        file.write("77\n")


@pytest.mark.parametrize(
    ("change", "about"),
    [
        (lost, "file data.2.csv"),
        (exchanged, "columns in the files"),
        (one_more, "folder"),
        (one_row_more, "crowds in the files"),
    ],
)
def test_a_change_to_any_file_is_found(
    given: Folder, tmp_path: Path, change: Callable[[Path], None], about: str
) -> None:
    copy = given.copied(tmp_path / "copy")
    change(copy.out)
    assert about in failed(verify(copy.out))


Step = str | int
GIVEN_FORGED: list[tuple[tuple[Step, ...], Callable[[Any], Any]]] = [
    (("steps", -1, "tables"), lambda _: 3),
    (("steps", -1, "tables"), lambda _: "2"),
    (("steps", -1, "sample"), lambda _: "joint"),
    (("steps", -1, "sample"), lambda _: "shared"),
    (("steps", -1, "groups"), lambda _: [["sex"], ["age", "zip"]]),
    (("steps", -1, "groups"), lambda _: [["sex", "age"], []]),
    (("steps", -1, "groups"), lambda _: None),
    (("steps", 2, "k"), lambda k: k + 1),
    (("claims", 0, "parameters", "samples"), lambda _: 1),
    (("claims", 0, "parameters", "epsilon"), lambda _: "0.1"),
    (("claims", 0, "parameters", "max_rows"), lambda _: 2),
    (("claims", 0, "parameters", "k"), lambda _: "x"),
    (("claims", 0, "preconditions", -1, "status"), lambda _: "proved"),
    (("claims", 1, "parameters", "k"), lambda k: k + 1),
    (("claims", 1, "kind"), lambda _: "crowd-blending"),
    (("claims", 2, "parameters", "tables"), lambda _: 1),
    (("claims", 2, "kind"), lambda _: "pseudonymization"),
    (("claims", 0, "not_protected"), lambda _: []),
    (("claims", 2, "not_protected"), lambda _: [""]),
    (("outputs", 1, "name"), lambda _: "data.3.csv"),
    (("outputs",), lambda outputs: outputs[:1]),
    (("guarantee", "assumes"), lambda _: []),
]


@pytest.mark.parametrize(("place", "change"), GIVEN_FORGED)
def test_what_is_told_better_than_it_was_fails(
    given: Folder, tmp_path: Path, place: tuple[Step, ...], change: Callable[[Any], Any]
) -> None:
    copy = given.copied(tmp_path / "copy")
    copy.forge(place, change)
    assert problems(copy.out)


CHOSEN_FORGED: list[tuple[tuple[Step, ...], Callable[[Any], Any]]] = [
    (("steps", 0, "sensitivity"), lambda _: 1),
    (("steps", 0, "size"), lambda _: 1),
    (("steps", 0, "epsilon"), lambda _: "1/10"),
    (("steps", -1, "groups"), lambda _: [["sex"], ["age", "zip"]]),
    (("claims", 0, "parameters", "choosing"), lambda _: "1/10"),
    (("schema", "released"), lambda _: ["sex", "age"]),
]


@pytest.mark.parametrize(("place", "change"), CHOSEN_FORGED)
def test_a_choice_that_is_told_better_than_it_was_fails(
    chosen: Folder, tmp_path: Path, place: tuple[Step, ...], change: Callable[[Any], Any]
) -> None:
    copy = chosen.copied(tmp_path / "copy")
    if place == ("steps", -1, "groups"):
        copy.forge(("steps", -1), lambda step: step | {"groups": change(None)})
    else:
        copy.forge(place, change)
    assert problems(copy.out)


def test_evidence_about_any_table_is_held_against_its_file(given: Folder, tmp_path: Path) -> None:
    copy = given.copied(tmp_path / "copy")
    copy.tamper(("evidence", "tables", 1, "rows"), lambda n: n + 1)
    assert "evidence" in failed(verify(copy.out))


def test_rows_that_are_scattered_in_any_table_are_found(given: Folder, tmp_path: Path) -> None:
    copy = given.copied(tmp_path / "copy")
    file = copy.out / "data.2.csv"
    head, *lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([head, *lines[1:], lines[0]]))
    rehash(copy.out, "data.2.csv")
    assert "order of the rows" in failed(verify(copy.out))


def test_a_release_in_memory_is_recounted_before_it_is_handed_out(tmp_path: Path) -> None:
    made = release(people(), with_ledger(changed(PEOPLE, **GIVEN), tmp_path))
    result = made.result
    assert isinstance(result, Sliced)
    statement = statement_of(made.certificate)
    assert CHECK.recount(statement, result) is None
    assert CHECK.recount(statement, Sliced(result.tables[::-1], result.names)) is not None


def test_the_public_report_shows_every_table_and_the_internal_one_needs_the_data(given: Folder, tmp_path: Path) -> None:
    page = render_public(given.out, tmp_path / "again.html").read_text()
    assert page == (given.out / "report.html").read_text()
    for told in ("Table 1: sex, age", "Table 2: zip", "each from a sample of its own", "crowd-blending, each table"):
        assert told in page
    with pytest.raises(InvalidParameter, match="no data"):
        render_internal(given.out, load_policy(given.path / "policy.yaml"))


@pytest.mark.postgres
def test_a_table_in_a_database_holds_all_tables_below_each_other(postgres: str, tmp_path: Path) -> None:
    policy = written(changed(PEOPLE, **GIVEN), tmp_path)
    made = release_to(people(), policy, Destination(tmp_path / "out", "csv", table=f"{postgres}::sliced"))
    counted = ask(postgres, "SELECT slice, count(*), count(sex), count(zip) FROM sliced GROUP BY slice ORDER BY slice")
    first, second = (table["rows"] for table in made.release.certificate.evidence["tables"])
    assert [tuple(row) for row in counted] == [(1, first, first, 0), (2, second, 0, second)]


def test_everything_that_appears_is_named_in_the_certificate(given: Folder) -> None:
    named = [output["name"] for output in given.certificate["outputs"]]
    assert sorted(file.name for file in given.out.iterdir()) == sorted([*named, "certificate.json"])
