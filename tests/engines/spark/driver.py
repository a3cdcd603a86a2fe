"""A driver in a process of its own: counts on a cluster under retries, second attempts and the death of a worker."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from urllib.request import urlopen

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import RowFilter
from incrowd.engines.settings import Spark
from incrowd.engines.spark.engine import SparkEngine, spark_engine
from incrowd.engines.spark.limit import PersonLimit
from incrowd.noise.positioned import PositionedSample
from tests.engines.spark.unsteady import Unsteady
from tests.spark import JAVA, start_worker

POSITION_KEY, ID_KEY = b"positions are keyed by 32 bytes.", b"and so are the ids of the rows.."
ROW_KEY, PERSON_KEY = b"the order of the rows of someone", b"and the names of the people here"
SAMPLE = PositionedSample(Fraction(1, 3), POSITION_KEY, ID_KEY)
LIMIT = PersonLimit(Column("person", Role.IDENTIFIER), 2, ROW_KEY, PERSON_KEY)
CELLS_SCHEMA = Schema((Column("zip"),))
CELLS = Cells.of(CELLS_SCHEMA, {})
THIRD = "127.0.0.3"


def settings(master: str, work: Path) -> Spark:
    """Return a session that tries slow tasks twice, shows its pages on loopback and writes an event log."""
    config = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.files.maxPartitionBytes": "20000",
        "spark.sql.files.openCostInBytes": "20000",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": JAVA,
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.2",
        "spark.speculation.minTaskRuntime": "500ms",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (work / "events").as_uri(),
    }
    return Spark(master=master, config=config)


def shown(counts: Counts) -> list[list[object]]:
    """Return counts as plain values."""
    return [list(row.values()) for row in counts.to_table().to_pylist()]


def troubled(engine: SparkEngine, data: Path, work: Path, name: str, **trouble: object) -> dict[str, object]:
    """Count under trouble; return the counts and which attempts there were."""
    notes = work / name
    notes.mkdir()
    retained: RowFilter = Unsteady(SAMPLE, str(notes), **trouble)  # type: ignore[arg-type]
    counts = engine.count(engine.open(data), CELLS, retained)
    return {"counts": shown(counts), "attempts": sorted(note.name for note in notes.iterdir())}


def killing(engine: SparkEngine, master: str, data: Path, work: Path) -> dict[str, object]:
    """Add a worker, wait until it is in the middle of a task, and kill it with its executor."""
    scratch = work / "third"
    scratch.mkdir()
    worker = start_worker(master, THIRD, scratch)
    (work / "third.pid").write_text(str(worker.pid))
    notes = work / "killed"

    def kill() -> None:
        while not any(notes.glob(f"*-{THIRD}")):
            time.sleep(0.05)
        os.killpg(worker.pid, signal.SIGKILL)
        (work / "shot").touch()

    try:
        _wait_for_executors(engine, 3)
        threading.Thread(target=kill, daemon=True).start()
        result = troubled(engine, data, work, "killed", held=THIRD)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        (work / "third.pid").unlink()
    return {**result, "shot": (work / "shot").exists()}


def _wait_for_executors(engine: SparkEngine, expected: int) -> None:
    page = _page(engine)
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        listed = json.loads(_fetched(f"{page}/executors"))
        if sum(item["id"] != "driver" and item["isActive"] for item in listed) >= expected:
            return
        time.sleep(0.3)
    raise TimeoutError(f"the cluster never had {expected} executors")


def _page(engine: SparkEngine) -> str:
    context = engine.session.sparkContext
    return f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}"


def _fetched(address: str) -> bytes:
    with urlopen(address, timeout=600) as answer:
        content: bytes = answer.read()
        return content


def seen(engine: SparkEngine, work: Path) -> None:
    """Write down everything that Spark shows about itself: pages, settings."""
    page = _page(engine)
    parts = ("jobs", "stages?details=true", "sql?details=true&planDescription=true&length=1000", "environment")
    content = b"\n".join(_fetched(f"{page}/{part}") for part in parts)
    context = engine.session.sparkContext
    content += repr(context.getConf().getAll()).encode() + repr(engine.session.conf.getAll).encode()
    (work / "seen").write_bytes(content)


def main(master: str, data: Path, work: Path) -> None:
    """Run everything in one session, and write the results down."""
    (work / "events").mkdir()
    with spark_engine(settings(master, work)) as engine:
        rows = engine.open(data)
        result: dict[str, object] = {
            "steady": shown(engine.count(rows, CELLS, SAMPLE)),
            "limited": shown(engine.count(rows, CELLS, LIMIT, SAMPLE)),
            "retried": troubled(engine, data, work, "retried", fails=True),
            "speculated": troubled(engine, data, work, "speculated", slow=True),
            "killed": killing(engine, master, data, work),
        }
        seen(engine, work)
    (work / "found.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
    shutil.rmtree(Path(sys.argv[3], "third"), ignore_errors=True)
