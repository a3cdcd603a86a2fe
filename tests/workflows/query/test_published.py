"""A published answer verifies; whoever makes it guarantee more than its noise, or changes its file, is found out."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from incrowd.core.loss import Pure, to_json
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.queries.answer import AnswerTables
from incrowd.queries.check import CHECK, queries_of
from incrowd.queries.query import QueryTerms
from incrowd.verifier.judge import statement_of
from incrowd.workflows.certificates import certificate_of
from incrowd.workflows.query.request import BatchRequest
from incrowd.workflows.query.service import publish_answer
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.verify.verify import verify
from tests.contract.forging import caught, fitting, require_all_caught
from tests.workflows.query.test_service import asking, service_of

MANY = "SELECT sex, COUNT(*) AS n, SUM(age) AS s, MEDIAN(age) AS m, MODE(sex) AS c FROM people GROUP BY sex"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with service_of(tmp_path) as service:
        publish_answer(service.ask(asking(MANY, "2")), service.budgets.ledger, Destination(tmp_path / "out", "csv"))
        found = verify(tmp_path / "out", ledger=service.budgets.ledger)
        assert found.passed, [finding for finding in found.findings if finding.verdict == "failed"]
        assert found.vouched
        assert found.complete
    return tmp_path / "out"


def plain_of(folder: Path) -> dict[str, Any]:
    """The certificate in a folder, as JSON."""
    return dict(json.loads((folder / "certificate.json").read_text(encoding="utf-8")))


def forged(folder: Path, change: Callable[[dict[str, Any]], Any]) -> bool:
    """Change a certificate, give it the id that fits, and return whether it still passes."""
    plain = plain_of(folder)
    change(plain)
    (folder / "certificate.json").write_text(json.dumps(fitting(plain)), encoding="utf-8")
    try:
        return verify(folder).passed
    except IncrowdError:
        return False


def step(plain: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in plain["steps"] if each["step"] == name)
    return found


def test_a_certificate_with_another_id_that_fits_still_passes_by_itself(folder: Path) -> None:
    assert forged(folder, lambda plain: None)


CHANGES: list[Callable[[dict[str, Any]], Any]] = [
    lambda plain: plain["guarantee"].update(loss=to_json(Pure(Fraction(1, 1000)))),
    lambda plain: plain["guarantee"].update(delta="1/10"),
    lambda plain: step(plain, "noise").update(scale="1/100"),
    lambda plain: step(plain, "noise").update(fine=10**6),
    lambda plain: step(plain, "noise").update(widths=[1, 1]),
    lambda plain: step(plain, "noise").update(noise="none"),
    lambda plain: step(plain, "add up")["statistics"][1].update(width=10**6),
    lambda plain: step(plain, "bound what one unit contributes").update(rows=5),
    lambda plain: step(plain, "pick").update(scale="1/50"),
    lambda plain: step(plain, "pick").update(sensitivity=0),
    lambda plain: step(plain, "group").update(groups="not known before rows are read"),
    lambda plain: plain["claims"][0]["parameters"].update(epsilon="1"),
    lambda plain: plain["claims"][0]["parameters"].update(adjacency="replace-one"),
    lambda plain: plain["claims"][0].update(kind="k-anonymity"),
    lambda plain: plain["claims"].clear(),
    lambda plain: plain["accounting"]["spent"].update(epsilon="1"),
    lambda plain: plain["steps"].pop(0),
    lambda plain: plain["steps"].insert(3, plain["steps"][-1]),
    lambda plain: plain["schema"].update(released=["sex"]),
    lambda plain: plain["evidence"].update(groups=1),
]


@pytest.mark.parametrize("change", CHANGES)
def test_no_certificate_guarantees_more_than_its_steps(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    assert not forged(folder, change)


def test_a_changed_file_is_found_out(folder: Path) -> None:
    file = folder / "data.csv"
    file.write_text(file.read_text().replace("F", "G"))
    assert not verify(folder).passed


def test_the_ledger_knows_the_certificate_that_was_kept_and_the_one_that_was_published(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        answered = service.ask(asking())
        published = publish_answer(answered, service.budgets.ledger, Destination(tmp_path / "out", "csv"))
        assert service.budgets.ledger.conclusions(published.id) == (answered.certificate.digest(), published.digest())


@pytest.mark.parametrize("name", ["one", "several"])
def test_what_an_answer_says_cannot_be_changed_anywhere(tmp_path: Path, name: str) -> None:
    """Guarantee, claims and limits leaf by leaf; a change of a step leaves what is guaranteed and claimed as it is."""
    with service_of(tmp_path) as service:
        if name == "one":
            plain = service.ask(asking(MANY, "2")).certificate.to_json()
        else:
            paid = QueryTerms(epsilon=Fraction(2), delta=Fraction(1, 10**7))
            texts = (MANY, "SELECT COUNT(*) AS n FROM people", "SELECT AVG(age) AS a FROM people WHERE sex = 'F'")
            plain = service.ask(BatchRequest(texts, paid)).certificate.to_json()
    require_all_caught(plain)


def test_a_batch_has_one_certificate_that_holds_the_steps_of_each_question(tmp_path: Path) -> None:
    texts = (MANY, "SELECT COUNT(*) AS n FROM people", "SELECT AVG(age) AS a FROM people WHERE sex = 'F'")
    with service_of(tmp_path) as service:
        answered = service.ask(BatchRequest(texts, QueryTerms(epsilon=Fraction(2), delta=Fraction(1, 10**7))))
        assert service.budgets.ledger.conclusions(answered.certificate.id) == (answered.certificate.digest(),)
    certificate = certificate_of(answered.certificate.to_json())
    assert certificate == answered.certificate
    assert [len(steps) > 3 for steps in queries_of(certificate.steps)] == [True] * 3
    assert caught(certificate.to_json()) is None
    assert CHECK.recount(statement_of(certificate), AnswerTables(answered.answers)) is None


def test_an_interval_that_ends_before_it_begins_is_found_out(folder: Path) -> None:
    from pyarrow import csv

    certificate, file = certificate_of(plain_of(folder)), folder / "data.csv"
    table = csv.read_csv(file)
    names = ["n_high" if name == "n_low" else "n_low" if name == "n_high" else name for name in table.column_names]
    csv.write_csv(table.rename_columns(names).select(table.column_names), file)
    problems = [look.problem for look in CHECK.inspect(statement_of(certificate), (file,))]
    assert [problem and problem.text for problem in problems] == [None, "an interval of 'n' ends before it begins"]
    csv.write_csv(table.drop_columns(["n_low"]), file)
    assert next(CHECK.inspect(statement_of(certificate), (file,))).problem is not None


BATCH = (
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING COUNT(*) > 1000000",
    "SELECT sex, AVG(age) AS a FROM people GROUP BY sex",
    "SELECT COUNT(*) AS n FROM people",
)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_answers_of_a_batch_are_published_where_one_has_no_rows_and_each_file_has_its_own_columns(
    tmp_path: Path, form: str
) -> None:
    with service_of(tmp_path) as service:
        answered = service.ask(BatchRequest(BATCH, QueryTerms(epsilon=Fraction(1))))
        assert answered.answers[0].table.num_rows == 0
        certificate = publish_answer(answered, service.budgets.ledger, Destination(tmp_path / "out", form))
        found = verify(tmp_path / "out", ledger=service.budgets.ledger, policy=service.planner.policies[0])
        assert found.verdict == "verified", found.failure
    tables = [part.table for part in AnswerTables(answered.answers).parts]
    ends = [name for name in tables[1].column_names if name.startswith("a")]
    moved = [tables[0], tables[1].select(["sex"]), tables[1].select(ends), tables[2]]
    for parts in (moved[:3], [*moved[:2], moved[3].append_column("a", moved[3]["n"])], moved, tables[::-1]):
        files = tuple(tmp_path / f"{at}.parquet" for at in range(len(parts)))
        for file, part in zip(files, parts, strict=True):
            pq.write_table(part, file)
        assert next(CHECK.inspect(statement_of(certificate), files)).problem is not None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) AS n, SUM(age) AS n_low FROM people",
        "SELECT sex AS N_HIGH, COUNT(*) AS n FROM people GROUP BY sex",
        (
            "SELECT a.n, b.n AS n_low FROM (SELECT COUNT(*) AS n FROM people) a CROSS JOIN "
            "(SELECT COUNT(*) AS n FROM people WHERE sex = 'F') b"
        ),
    ],
)
def test_a_column_that_is_called_as_the_end_of_an_interval_is_refused_before_the_charge(
    tmp_path: Path, sql: str
) -> None:
    with service_of(tmp_path) as service:
        with pytest.raises(InvalidParameter, match="is an end of the interval"):
            service.ask(asking(sql))
        if "CROSS" not in sql:
            with pytest.raises(InvalidParameter, match=r"query 1: .* is an end of the interval"):
                service.ask(BatchRequest((sql, *BATCH), QueryTerms(epsilon=Fraction(1))))
        assert service.budgets.status("people").totals.charges == 0
