"""Every verb on Spark: the same answers as on one machine, and the same guarantee."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.cli.main import main
from incrowd.core.table import Engine, Rows
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.settings import Local, Spark
from incrowd.errors import InvalidParameter, Refused
from incrowd.workflows.assess.assess import assess
from incrowd.workflows.check.check import CheckedColumns, check
from incrowd.workflows.check.criteria import CheckCriteria
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.policy.rows import open_release
from incrowd.workflows.profile.profile import profile
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, people, tuples, with_ledger, written
from tests.spark import MASTER

ROWS = 2000


def original() -> pa.Table:
    table = people(ROWS)
    lacking = [None if row % 50 == 0 else age for row, age in enumerate(table.column("age").to_pylist())]
    numbers = pa.array(range(ROWS), pa.int64())
    return table.set_column(1, "age", pa.array(lacking, pa.string())).append_column("visit", numbers)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The people, in a folder of Parquet files."""
    folder = tmp_path_factory.mktemp("parts")
    for part in range(4):
        pq.write_table(original().slice(part * ROWS // 4, ROWS // 4), folder / f"part-{part}.parquet")
    return folder


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The people, in a text file."""
    path = tmp_path_factory.mktemp("text") / "people.csv"
    pa.csv.write_csv(original(), path)
    return path


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    """A policy that runs on Spark, with a ledger of its own."""
    declared = with_ledger(PEOPLE, tmp_path, engine={"spark": {"master": MASTER}})
    return replace(load_policy(declared), folder=tmp_path)


@pytest.mark.parametrize("kind", ["parts", "text"])
def test_a_profile_is_the_same(kind: str, spark_engine: Engine, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(kind)
    assert profile(spark_engine.open(path), spark_engine) == profile(LOCAL.open(path))


@pytest.mark.parametrize("recoded", [False, True], ids=["as it is", "recoded"])
def test_a_check_finds_the_same(recoded: bool, parts: Path, policy: Policy, spark_engine: Engine) -> None:
    def checked(engine: Engine) -> object:
        return check(
            engine.open(parts), CheckCriteria(k=3), CheckedColumns(("age", "sex"), (), recoded), policy, engine
        )

    assert checked(spark_engine) == checked(LOCAL)


def test_a_release_keeps_its_guarantee_and_says_nothing_of_where_it_ran(
    parts: Path, policy: Policy, tmp_path: Path, spark_engine: Engine
) -> None:
    published = release_to(str(parts), policy, Destination(tmp_path / "out"))
    assert verify(tmp_path / "out" / "certificate.json").passed
    assert len(published.release.result) > ROWS / 3
    told = b"".join(path.read_bytes() for path in (tmp_path / "out").iterdir()).lower()
    assert b"spark" not in told
    inside = json.loads((published.internal / "internal.json").read_text(encoding="utf-8"))
    assert inside["worked on"] == {"engine": "spark", "master": MASTER}
    assert inside["source"] == str(parts)
    here, there = (
        assess(open_release(tmp_path / "out"), engine.open(parts), policy, engine) for engine in (LOCAL, spark_engine)
    )
    assert there.to_json() == here.to_json()


def test_a_source_is_known_again_on_another_engine(parts: Path, policy: Policy, spark_engine: Engine) -> None:
    del spark_engine
    release(parts, policy)
    renamed = changed(PEOPLE, dataset__name="others", ledger=policy.ledger)
    with pytest.raises(Refused, match="are those of dataset people"):
        release(parts, load_policy(renamed))


def test_a_table_needs_an_id_and_then_is_released(tmp_path: Path, spark_engine: Engine, run: Run) -> None:
    frame = spark_engine.session.createDataFrame(original())  # type: ignore[attr-defined]
    frame.createOrReplaceGlobalTempView("visits")
    lacking = changed(PEOPLE, source={"table": "global_temp.visits"}, engine={"spark": {"master": MASTER}})
    written(lacking, tmp_path)
    assert run("release --policy policy.yaml --out out") == 2
    assert not (tmp_path / ".incrowd" / "ledger.sqlite").exists()
    written(changed(lacking, engine__spark__id="sex"), tmp_path)
    assert run("release --policy policy.yaml --out out") == 2
    assert not (tmp_path / ".incrowd" / "ledger.sqlite").exists()
    written(changed(lacking, engine__spark__id="visit"), tmp_path)
    assert run("plan --policy policy.yaml") == 0
    assert run("release --policy policy.yaml --out out") == 0
    assert run("verify out/certificate.json") == 0


def test_a_frame_of_spark_is_released_where_it_is(policy: Policy, spark_engine: Engine) -> None:
    frame = spark_engine.session.createDataFrame(original())  # type: ignore[attr-defined]
    with pytest.raises(InvalidParameter, match="unique id column"):
        release(frame, replace(policy, engine=Local()))
    released = release(frame, replace(policy, engine=Spark(id="visit")))
    assert released.certificate.names_itself()
    assert min(tuples(released.result.to_arrow()).values()) >= 21


def test_a_value_of_another_type_is_found_before_the_charge(tmp_path: Path, spark_engine: Engine, run: Run) -> None:
    del spark_engine
    pq.write_table(pa.table({"sex": ["F"], "age": ["forty"], "zip": ["02139"]}), tmp_path / "people.parquet")
    written(PEOPLE, tmp_path)
    assert run(f"release people.parquet --policy policy.yaml --out out --master {MASTER}") == 2
    assert "column age" in run.said
    assert "forty" not in run.said
    assert not (tmp_path / ".incrowd" / "ledger.sqlite").exists()


def test_a_job_that_fails_publishes_nothing_and_its_charge_stays_spent(
    tmp_path: Path, spark_engine: Engine, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    del spark_engine
    path = tmp_path / "people.parquet"
    pq.write_table(people(ROWS), path)
    written(PEOPLE, tmp_path)
    charge = Ledger.charge_together

    def spoiled(*arguments: object) -> object:
        """Charge, and then damage the file in a way that only reading it shows."""
        entry = charge(*arguments)  # type: ignore[arg-type]
        found = path.stat()
        with path.open("r+b") as file:
            file.seek(4)
            file.write(bytes(found.st_size // 2))
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
        return entry

    monkeypatch.setattr(Ledger, "charge_together", spoiled)
    assert run(f"release people.parquet --policy policy.yaml --out out --master {MASTER}") == 2
    assert "Nothing was released; the charge is not refunded: epsilon" in run.said
    assert len(run.said.splitlines()) == 1
    assert not (tmp_path / "out").exists()
    entries = list(Ledger.open(f"sqlite:///{tmp_path}/.incrowd/ledger.sqlite").entries())
    assert [entry.kind for entry in entries].count("charge") == 1


@pytest.mark.parametrize("verb", ["profile", "check --policy policy.yaml", "plan --policy policy.yaml"])
def test_verbs_take_the_engine_from_the_command_line(
    verb: str, parts: Path, spark_engine: Engine, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = list[object]()
    original_open = type(spark_engine).open

    def noted(engine: Engine, source: object, *options: object) -> Rows:
        opened.append(source)
        return original_open(engine, source, *options)  # type: ignore[arg-type]

    monkeypatch.setattr(type(spark_engine), "open", noted)
    written(PEOPLE, Path.cwd())
    name, _, rest = verb.partition(" ")
    assert run(f"{name} {parts} {rest} --engine spark --master {MASTER} --json") in (0, 1)
    assert opened == [str(parts)]


def test_a_cluster_that_is_not_there_costs_nothing(tmp_path: Path, run: Run) -> None:
    pq.write_table(people(100), tmp_path / "people.parquet")
    written(PEOPLE, tmp_path)
    assert run("release people.parquet --policy policy.yaml --out out --master spark://127.0.0.1:9") == 2
    assert "nobody answers at spark://127.0.0.1:9" in run.said
    assert not (tmp_path / ".incrowd" / "ledger.sqlite").exists()


class Run:
    """One command in the folder of the test; `said` is what it last wrote to standard error."""

    def __init__(self, read: Callable[[], tuple[str, str]]) -> None:
        self._read = read
        self.said = ""

    def __call__(self, line: str) -> int:
        code = main(line.split())
        self.said = self._read()[1]
        return code


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run commands in the folder of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INCROWD_LEDGER", raising=False)
    return Run(capsys.readouterr)
