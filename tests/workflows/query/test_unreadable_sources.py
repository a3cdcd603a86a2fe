"""What cannot be read is missing row by row, or refused before anything is charged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import QueryFailed, SourceInvalid, SourceUnavailable, SourceUnreadable
from incrowd.queries.query import QueryTerms
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.request import BatchRequest, QueryRequest
from incrowd.workflows.query.service import QueryService, open_queries
from tests.postgres_tables import ask, load
from tests.texts import broken_texts

COUNT = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
AGES = "SELECT COUNT(*) AS n FROM people WHERE age < 200"


@contextmanager
def service_over(folder: Path, source: object, **queries: Any) -> Iterator[QueryService]:
    policy = {
        "incrowd": 1,
        "dataset": {"name": "people"},
        "columns": {"sex": {"categories": ["F", "M"]}, "age": {"type": "integer", "bounds": [0, 120]}},
        "queries": queries,
        "budget": {"epsilon": 10**6},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }
    with open_queries([load_policy(policy)], source) as service:
        yield service


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_days_of_moments_do_not_depend_on_the_zone_that_a_file_names(tmp_path: Path, zone: str | None) -> None:
    """The last evening of January is in January by every file that is taken; one that says February is refused."""
    evening = pa.array([datetime(2025, 1, 31, 23, 30)] * 40, pa.timestamp("us"))  # noqa: DTZ001 - no zone
    stated = evening if zone is None else evening.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))
    policy = {
        "incrowd": 1,
        "dataset": {"name": "stays"},
        "columns": {"left": {"type": "date", "bounds": ["2025-01-01", "2025-12-31"]}},
        "queries": {},
        "budget": {"epsilon": 10**6},
        "ledger": f"sqlite:///{tmp_path}/ledger.sqlite",
    }
    pq.write_table(pa.table({"left": stated}), tmp_path / "stays.parquet")
    if zone == "Europe/Berlin":
        with (
            pytest.raises(SourceInvalid, match=r"the zone Europe/Berlin of this file; .* Nothing was charged"),
            open_queries([load_policy(policy)], tmp_path / "stays.parquet"),
        ):
            pass
        return
    with open_queries([load_policy(policy)], tmp_path / "stays.parquet") as service:
        answer = service.ask(asking("SELECT COUNT(*) AS n FROM stays WHERE left < DATE '2025-02-01'")).answer
    assert answer.columns[0].values.to_pylist() == [40]


def asking(sql: str, rate: Fraction | None = None) -> QueryRequest:
    return QueryRequest(sql, QueryTerms(epsilon=Fraction(1000), rate=rate), None)


def charged(service: QueryService) -> int:
    return sum(entry.kind == "charge" for entry in service.budgets.ledger.entries())


def test_one_cell_that_is_no_text_is_missing_for_every_question(tmp_path: Path) -> None:
    """With an epsilon of 1000 a count is off by 1 with a chance of about e^-1000."""
    rows = pa.table({"sex": broken_texts(*[b"F"] * 30, b"\xff\xfe", b"M"), "age": [40] * 32})
    pq.write_table(rows, tmp_path / "people.parquet")
    with service_over(tmp_path, tmp_path / "people.parquet") as service:
        counts, rows_below = service.ask(asking(COUNT)).answer, service.ask(asking(AGES)).answer
    values = {column.name: column.values.to_pylist() for column in counts.columns}
    assert dict(zip(values["sex"], values["n"], strict=True)) == {"F": 30, "M": 1, "other": 0, None: 1}
    assert rows_below.columns[0].values.to_pylist() == [32]


@pytest.mark.parametrize("rate", [None, Fraction(1, 2)])
def test_rows_that_can_no_longer_be_read_cost_nothing(
    tmp_path: Path, rate: Fraction | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "people.csv").write_text("sex,age\n" + "F,30\n" * 100)
    with service_over(tmp_path, tmp_path / "people.csv") as service:
        monkeypatch.setattr(
            "incrowd.engines.readers.delimited.byte_stream", lambda *_: pa.BufferReader(b"sex,age\nF\n")
        )
        with pytest.raises(SourceUnreadable, match="line"):
            service.ask(asking(COUNT, rate))
        with pytest.raises(SourceUnreadable, match="line"):
            service.ask(BatchRequest((COUNT, AGES), QueryTerms(epsilon=Fraction(1)), None))
        assert charged(service) == 0


def test_a_damaged_page_costs_nothing_whatever_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"age": list(range(50)) * 40, "sex": ["F", "M"] * 1000}), path, compression="none")
    content = bytearray(path.read_bytes())
    start = pq.read_metadata(path).row_group(0).column(1).data_page_offset
    content[start : start + 16] = b"\xff" * 16
    path.write_bytes(content)
    for sql in (COUNT, AGES):
        with pytest.raises((SourceUnreadable, SourceInvalid)), service_over(tmp_path, path) as service:
            service.ask(asking(sql))
    assert not any(entry.kind == "charge" for entry in Ledger.create(f"sqlite:///{tmp_path}/ledger.sqlite").entries())


@pytest.mark.postgres
def test_a_view_that_fails_at_a_value_costs_nothing_whatever_is_asked(tmp_path: Path, postgres: str) -> None:
    load(postgres, "texts", pa.table({"sex": ["F", "M"] * 50, "age": ["30", "41"] * 50}))
    ask(postgres, "CREATE OR REPLACE VIEW people AS SELECT sex, CAST(age AS BIGINT) AS age FROM texts")
    with service_over(tmp_path, f"{postgres}::people", pushdown=True) as service:
        assert service.ask(asking(AGES)).answer.columns[0].values.to_pylist() == [100]
        ask(postgres, "INSERT INTO texts VALUES ('F', 'forty')")
        for sql in (COUNT, "SELECT COUNT(*) AS n FROM people WHERE sex = 'M'"):
            with pytest.raises(SourceUnreadable, match=r"cannot process a value.*Nothing was charged"):
                service.ask(asking(sql))
        assert charged(service) == 1


@pytest.mark.postgres
def test_a_server_that_is_lost_is_not_called_a_damaged_source(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(postgres, "rows", pa.table({"sex": ["F", "M"], "age": [30, 41]}))
    ask(postgres, "CREATE OR REPLACE VIEW people AS SELECT sex, age FROM rows")
    with service_over(tmp_path, f"{postgres}::people", pushdown=True) as service:
        ending = "CASE WHEN pg_terminate_backend(pg_backend_pid()) THEN sex END AS sex"
        ask(postgres, f"CREATE OR REPLACE VIEW people AS SELECT {ending}, age FROM rows")
        with pytest.raises(SourceUnavailable, match=r"broke off.*Nothing was charged"):
            service.ask(asking(COUNT))
        monkeypatch.setattr(type(service.planner.tables), "load", lambda *_: None)
        with pytest.raises(QueryFailed, match=r"broke off.*the charge is not refunded") as failure:
            service.ask(asking(COUNT))
        assert "damaged" not in str(failure.value)
