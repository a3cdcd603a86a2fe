"""The same people under another name: recognized by what their columns hold, from a file that only the holder has."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.certificate import Certificate
from incrowd.core.fingerprints import SourceFingerprint
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import BudgetExceeded, IncrowdError, InvalidParameter, LedgerUnavailable, Refused
from incrowd.queries.query import QueryTerms
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.policy.sources import DatasetFingerprints, FingerprintFile, MarkedSource
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import open_queries
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from tests.policies import PEOPLE, changed, people, with_ledger, written

BUDGET = {"epsilon": 9, "delta": "1e-2"}
ASKED: dict[str, Any] = {"queries": {}, "budget": BUDGET}
VISITS = changed(PEOPLE, columns__who={"role": "identifier"}, dataset__unit={"column": "who"})


def ledger_of(folder: Path) -> Ledger:
    return Ledger.open(f"sqlite:///{folder}/ledger.sqlite")


def visits(people_from: int, people_to: int, seed: int = 7) -> pa.Table:
    """Return two rows for each person of a range, in any order; what they hold hangs on the seed."""
    who = np.repeat(np.arange(people_from, people_to), 2)
    order = np.random.default_rng(seed).permutation(len(who))
    return people(len(who), seed).append_column("who", pa.array(who[order].astype(str)))


# --- the ledger tells nothing of rows


def public_numbers(certificate: Certificate) -> dict[str, Any]:
    """Return what a certificate says but for its random names, its time, and what it shows of the rows by guarantee."""
    told: dict[str, Any] = json.loads(certificate.to_text())
    for apart in ("id", "created", "evidence", "policy_hash"):  # the policy names its folder
        del told[apart]
    told["ledger"] = {"sequence": told["ledger"]["sequence"]}
    told["dataset"].pop("commitment", None)
    return told


def course(folder: Path, *tables: pa.Table) -> tuple[list[str], list[dict[str, Any]]]:
    """Release and ask about each table under one name; return the kinds of entries, and what certificates say."""
    folder.mkdir()
    policy = with_ledger(PEOPLE, folder, **ASKED)
    found = []
    for number, table in enumerate(tables):
        place = folder / "people.parquet"
        pq.write_table(table, place)
        with open_queries([load_policy(policy)], place) as service:
            service.price(QueryRequest("SELECT COUNT(*) FROM people", QueryTerms(epsilon=Fraction(1, 3))))
        found.append(release(place, policy).certificate)
        with open_queries([load_policy(policy)], place) as service:
            asked = QueryRequest(
                f"SELECT COUNT(*) FROM people WHERE age > {number}", QueryTerms(epsilon=Fraction(1, 3))
            )
            found.append(service.ask(asked).certificate)
    return [entry.kind for entry in ledger_of(folder).entries()], [public_numbers(each) for each in found]


def test_ledgers_over_neighboring_and_changed_tables_are_equally_long_and_certificates_say_the_same_numbers(
    tmp_path: Path,
) -> None:
    table = people()
    ages = table["age"].to_pylist()
    older = table.set_column(1, "age", pa.array([str((int(ages[0]) + 1) % 100), *ages[1:]]))
    courses = {
        "the same": (table, table),
        "one row less": (table, table.slice(1)),
        "one row more": (table, pa.concat_tables([table, table.slice(0, 1)])),
        "one age": (table, older),
        "other rows": (table, people(seed=8)),
        "other order first": (table.take(list(range(599, -1, -1))), table),
    }
    kinds, told = course(tmp_path / "first", *courses["the same"])
    assert kinds.count("register") == 1
    for name, tables in courses.items():
        assert course(tmp_path / name, *tables) == (kinds, told), name


def test_a_question_about_rows_that_are_known_leaves_no_trace_in_the_ledger(tmp_path: Path) -> None:
    release(people(), with_ledger(PEOPLE, tmp_path))
    before = ledger_of(tmp_path).chain.head()
    for other in (people(), people().slice(1)):
        with pytest.raises(Refused):
            release(other, with_ledger(PEOPLE, tmp_path, dataset__name="others"))
    assert ledger_of(tmp_path).chain.head() == before


def test_opening_a_desk_binds_no_unit_budget_or_source(tmp_path: Path) -> None:
    policy = with_ledger(PEOPLE, tmp_path, **ASKED)
    with open_queries([load_policy(policy)], people()) as service:
        head = service.budgets.ledger.chain.head()
        assert service.budgets.report("ann")["people"]["left"] == {"epsilon": "9", "delta": "0.01"}
    wider = changed(policy, budget={"epsilon": 5, "delta": "1e-3"}, dataset__unit={"adjacency": "replace-one"})
    with open_queries([load_policy(changed(wider, dataset__name="others"))], people()):
        assert ledger_of(tmp_path).chain.head() == head
    with open_queries([load_policy(wider)], people()) as service:
        service.ask(QueryRequest("SELECT COUNT(*) FROM people", QueryTerms(epsilon=Fraction(1))))
    with pytest.raises(IncrowdError, match="one unit of privacy"), open_queries([load_policy(policy)], people()):
        pytest.fail("it opened")


# --- what is recognized


def as_gzip(table: pa.Table, folder: Path) -> Path:
    pyarrow.csv.write_csv(table, folder / "copy.csv")
    (folder / "copy.csv.gz").write_bytes(gzip.compress((folder / "copy.csv").read_bytes()))
    return folder / "copy.csv.gz"


def as_latin(table: pa.Table, folder: Path) -> Path:
    pyarrow.csv.write_csv(
        table, folder / "copy.csv", pyarrow.csv.WriteOptions(delimiter=";", quoting_style="all_valid")
    )
    text = (folder / "copy.csv").read_text(encoding="utf-8")
    (folder / "latin.csv").write_text(text, encoding="utf-16")
    return folder / "latin.csv"


def as_parquet(table: pa.Table, folder: Path) -> Path:
    typed = table.set_column(1, "age", table["age"].cast(pa.int16()))
    pq.write_table(typed.select(["zip", "sex", "age"]), folder / "copy.parquet", compression="zstd", row_group_size=100)
    return folder / "copy.parquet"


def shuffled(table: pa.Table, folder: Path) -> pa.Table:
    del folder
    return table.take(np.random.default_rng(1).permutation(len(table)))


def with_more_columns(table: pa.Table, folder: Path) -> pa.Table:
    del folder
    return table.append_column("note", pa.array(["" for _ in range(len(table))]))


@pytest.mark.parametrize("copied", [as_gzip, as_latin, as_parquet, shuffled, with_more_columns])
def test_a_copy_in_another_form_gets_no_fresh_budget(tmp_path: Path, copied: Callable[[pa.Table, Path], Any]) -> None:
    pyarrow.csv.write_csv(people(), tmp_path / "people.csv")
    release(tmp_path / "people.csv", with_ledger(PEOPLE, tmp_path))
    with pytest.raises(Refused, match=r"are those of dataset people.*same_people_as: people.*separate:"):
        release(copied(people(), tmp_path), with_ledger(PEOPLE, tmp_path, dataset__name="others"))


@pytest.mark.parametrize(
    ("rows", "asked"),
    [
        (lambda: people().slice(1), True),
        (lambda: people().slice(100, 20), True),
        (lambda: pa.concat_tables([people(), people(5000, seed=9)]), True),
        (lambda: pa.concat_tables([people().slice(0, 400), people(200, seed=9)]), True),
        (lambda: pa.concat_tables([people().slice(0, 200), people(400, seed=9)]), False),
        (lambda: people(seed=9), False),
    ],
    ids=["shorter", "extract", "longer", "two thirds", "one third", "others"],
)
def test_rows_are_asked_about_from_half_of_the_smaller_table_on(
    tmp_path: Path, rows: Callable[[], pa.Table], asked: bool
) -> None:
    release(people(), with_ledger(PEOPLE, tmp_path))
    other = with_ledger(PEOPLE, tmp_path, dataset__name="others")
    if not asked:
        release(rows(), other)
        return
    with pytest.raises(Refused, match=r"share at least half of their rows.*same_people_as: people.*separate:"):
        release(rows(), other)
    with pytest.raises(BudgetExceeded):
        release(rows(), changed(other, dataset__same_people_as="people"))
    release(rows(), changed(other, dataset__name="twins", dataset__separate="people of another country"))


@pytest.mark.parametrize(
    ("first", "last", "asked"), [(0, 300, True), (100, 180, True), (200, 600, False), (300, 600, False)]
)
def test_people_are_known_by_their_column_whatever_their_rows_hold(
    tmp_path: Path, first: int, last: int, asked: bool
) -> None:
    release(visits(0, 300), with_ledger(VISITS, tmp_path))
    other = with_ledger(VISITS, tmp_path, dataset__name="others")
    if asked:
        with pytest.raises(Refused, match="share at least half of their people"):
            release(visits(first, last, seed=8), other)
    else:
        release(visits(first, last, seed=8), other)


def test_rows_without_their_person_column_are_still_known(tmp_path: Path) -> None:
    release(visits(0, 300), with_ledger(VISITS, tmp_path))
    bare = with_ledger(PEOPLE, tmp_path, dataset__name="others")
    with pytest.raises(Refused, match="share at least half of their rows"):
        release(visits(0, 300).drop_columns(["who"]), bare)


def test_questions_and_releases_recognize_each_other(tmp_path: Path) -> None:
    policy = with_ledger(PEOPLE, tmp_path, **ASKED)
    with open_queries([load_policy(policy)], people()) as service:
        service.ask(QueryRequest("SELECT COUNT(*) FROM people", QueryTerms(epsilon=Fraction(1))))
    with pytest.raises(Refused, match="are those of dataset people"):
        release(people().to_pandas(), changed(policy, dataset__name="others"))
    with (
        pytest.raises(Refused, match="share at least half"),
        open_queries([load_policy(changed(policy, dataset__name="others"))], people().slice(3)),
    ):
        pytest.fail("it opened")


def test_who_was_there_first_is_not_asked_when_others_said_that_they_are_separate(tmp_path: Path) -> None:
    first = with_ledger(PEOPLE, tmp_path, budget=BUDGET)
    release(people(), first)
    second = changed(first, dataset__name="second", dataset__separate="a synthetic copy")
    release(people().slice(1), second)
    for rows in (people(), people().slice(5), pa.concat_tables([people(), people(20, seed=3)])):
        release(rows, first)
    release(people().slice(2), changed(second, dataset__separate=None))


def test_people_of_another_dataset_who_join_a_known_one_are_asked_about(tmp_path: Path) -> None:
    first, second = (with_ledger(PEOPLE, tmp_path, budget=BUDGET, dataset__name=name) for name in ("first", "second"))
    release(people(), first)
    release(people(100, seed=3), second)
    with pytest.raises(Refused, match="share at least half"):
        release(pa.concat_tables([people(), people(100, seed=3)]), second)


# --- the file


def stored(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "sources.json").read_text(encoding="utf-8"))
    return found


def test_marks_lie_in_a_private_file_of_constant_size_and_nowhere_else(tmp_path: Path) -> None:
    sizes = set[int]()
    for name, rows in (("few", people(3)), ("many", people(5000, seed=2))):
        folder = tmp_path / name
        folder.mkdir()
        policy = load_policy(written(changed(PEOPLE, dataset__name="people"), folder))
        released = release_to(rows, policy, Destination(folder / "out"))
        file = folder / ".incrowd" / "sources.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        sizes.add(file.stat().st_size)
        content = stored(folder / ".incrowd")
        (marks,) = content["ledgers"][ledger_id(folder)].values()
        secrets = {content["key"], *marks["contents"], *marks["addresses"], marks["rows"][:64]} - {"0" * 64}
        for other in [*folder.rglob("*")]:
            if other.is_file() and other != file:
                assert not any(secret.encode() in other.read_bytes() for secret in secrets), other
        assert str(released.release.certificate.dataset.commitment) not in str(marks)
    assert len(sizes) == 1


def ledger_id(folder: Path) -> str:
    return Ledger.open(f"sqlite:///{folder}/.incrowd/ledger.sqlite").id


def test_a_copied_ledger_has_nothing_to_test_rows_against(tmp_path: Path) -> None:
    release(people(), with_ledger(PEOPLE, tmp_path))
    with sqlite3.connect(tmp_path / "ledger.sqlite") as connection:
        text = "\n".join(connection.iterdump())
    connection.close()
    assert '"source"' not in text
    assert "sources" not in text


def test_a_file_that_cannot_be_understood_is_refused_before_a_charge(tmp_path: Path) -> None:
    release(people(), with_ledger(PEOPLE, tmp_path, budget=BUDGET))
    before = ledger_of(tmp_path).chain.head()
    whole = (tmp_path / "sources.json").read_text(encoding="utf-8")
    for broken in (
        "",
        "{}",
        whole[:-20],
        whole.replace('"version": 1', '"version": 2'),
        whole.replace('"rows": "', '"rows": "?'),
    ):
        (tmp_path / "sources.json").write_text(broken, encoding="utf-8")
        with pytest.raises(LedgerUnavailable, match=r"sources.json cannot be read"):
            release(people(), with_ledger(PEOPLE, tmp_path, budget=BUDGET))
    assert ledger_of(tmp_path).chain.head() == before


def test_a_folder_that_cannot_be_written_is_told_before_a_charge(tmp_path: Path) -> None:
    (tmp_path / "file").symlink_to("file")
    with pytest.raises(LedgerUnavailable, match="cannot be opened"):
        release(people(), with_ledger(PEOPLE, tmp_path / "file"))


def test_a_refused_charge_of_a_new_name_does_not_stand_in_the_way_of_others(tmp_path: Path) -> None:
    """A name that the ledger never heard of cannot be named by same_people_as, so nobody is asked about it."""
    book = FingerprintFile(tmp_path / "sources.json")
    release(people(seed=3), with_ledger(PEOPLE, tmp_path, dataset__name="known"))
    marks = LOCAL.marks(LOCAL.open(people()), load_policy(PEOPLE).schema, book.key())
    book.bind(ledger_of(tmp_path).id, "unheard of", (MarkedSource(None, marks),))
    release(people(), with_ledger(PEOPLE, tmp_path))


def test_old_contents_make_room_for_new_ones() -> None:
    marks = DatasetFingerprints()
    for number in range(40):
        marks = marks.with_source(None, SourceFingerprint(f"{number:064x}"))
    assert marks.contents == tuple(f"{number:064x}" for number in range(24, 40))
    again = DatasetFingerprints.from_json(marks.to_json())
    assert again.contents == marks.contents
    assert len(json.dumps(marks.to_json())) == len(json.dumps(DatasetFingerprints().to_json()))


BINDER = """
import sys
from pathlib import Path
from incrowd.core.fingerprints import SourceFingerprint
from incrowd.workflows.policy.sources import MarkedSource, FingerprintFile
book, name = FingerprintFile(Path(sys.argv[1])), sys.argv[2]
for number in range(10):
    book.bind("ledger", f"{name} {number}", (MarkedSource(None, SourceFingerprint(f"{number:064x}")),))
print(book.key().hex())
"""


def test_processes_that_write_at_once_lose_no_marks(tmp_path: Path) -> None:
    path = tmp_path / "new" / "sources.json"
    command = [sys.executable, "-c", BINDER, str(path)]
    running = [
        subprocess.Popen([*command, f"process {each}"], stdout=subprocess.PIPE, env=os.environ) for each in range(4)
    ]
    keys = {process.communicate()[0] for process in running}
    assert all(process.returncode == 0 for process in running)
    assert len(keys) == 1
    assert len(FingerprintFile(path).datasets("ledger")) == 40
    assert sorted(each.name for each in path.parent.iterdir()) == [".sources.lock", "sources.json"]


def test_an_unknown_partner_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="has no dataset called 'nobody'"):
        release(people(), with_ledger(PEOPLE, tmp_path, dataset__same_people_as="nobody"))
