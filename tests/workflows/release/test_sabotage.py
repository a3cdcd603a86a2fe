"""What is written is counted again before it appears: a sampler that misbehaves is caught."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.counts import Counts
from incrowd.core.table import Table
from incrowd.engines.writers.sinks import write_table
from incrowd.errors import BudgetExceeded, GuaranteeBroken, OutputUnavailable
from incrowd.methods.anonymity.safe import Safe
from incrowd.methods.shared.microdata import Microdata
from incrowd.noise.positioned import PositionedSample
from incrowd.workflows.release import deliver
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from tests.policies import PEOPLE, people, with_ledger, written


class Forgetful:
    """A sample that tosses anew whenever it is asked, as a plan that is evaluated twice does."""

    rate = Fraction(1, 2)

    def at(self, start: int, stop: int) -> NDArray[np.bool_]:
        return PositionedSample.fresh(self.rate).at(start, stop)

    def of(self, ids: NDArray[np.uint64]) -> NDArray[np.bool_]:
        return PositionedSample.fresh(self.rate).of(ids)


def evaluated_twice(self: Safe, table: Table, coins: object) -> Microdata:
    """Decide on one sample which tuples are common, and release another sample's rows of them."""
    sample, cells, k = Forgetful(), self.cells(table.schema), self.smallest_class(table.schema)
    common = table.engine.count(table.rows, cells, sample).at_least(k)
    again = table.engine.count(table.rows, cells, sample)
    shown = np.isin(again.keys, common.keys)
    return Microdata(Counts(again.classes, again.keys[shown], again.counts[shown]))


def crowds_at_the_edge() -> pa.Table:
    """Two hundred tuples, each with 42 rows: about 21, which is k, are in a sample.

    A tuple has 21 or more with chance 0.56, and then fewer in another sample with 0.44: that none of the 200 does is
    a chance of 10^(−24).  That 60 or fewer, or 160 or more, have 21 is one of 10^(−11).
    """
    return pa.table({"sex": ["F"] * 8400, "age": ["7"] * 8400, "zip": [f"{n % 200:03d}" for n in range(8400)]})


POLICY = PEOPLE | {"columns": PEOPLE["columns"] | {"zip": {"hierarchy": {"prefix": [3]}}}}


def charges(folder: Path) -> int:
    ledger = Ledger.open(f"sqlite:///{folder}/.incrowd/ledger.sqlite")
    return sum(entry.kind == "charge" for entry in ledger.entries())


@pytest.mark.parametrize("form", ["parquet", "csv", "tsv"])
def test_a_sample_that_is_evaluated_twice_is_caught_and_nothing_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(Safe, "release", evaluated_twice)
    policy = written(POLICY, tmp_path)
    with pytest.raises(GuaranteeBroken, match="does not keep its guarantee") as caught:
        release_to(crowds_at_the_edge(), policy, Destination(tmp_path / "out", form))
    assert caught.value.exit_code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == [".incrowd", "policy.yaml"]
    assert sorted(path.name for path in (tmp_path / ".incrowd").iterdir()) == [
        ".sources.lock",
        "ledger.sqlite",
        "ledgers.json",
        "sources.json",
    ]
    assert charges(tmp_path) == 1
    monkeypatch.undo()
    with pytest.raises(BudgetExceeded):
        release_to(crowds_at_the_edge(), policy, Destination(tmp_path / "out", form))


def test_it_is_caught_in_memory_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Safe, "release", evaluated_twice)
    with pytest.raises(GuaranteeBroken):
        release(crowds_at_the_edge(), with_ledger(POLICY, tmp_path))


def test_a_writer_that_loses_rows_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lossy(data: pa.RecordBatchReader, path: Path, _: object) -> None:
        table = data.read_all()
        rows = table.to_pylist()
        write_table(table.slice(0, rows.index(rows[-1]) + 1), path)

    monkeypatch.setattr(deliver, "write_table", lossy)
    with pytest.raises(GuaranteeBroken):
        release_to(people(), written(PEOPLE, tmp_path), Destination(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_sampler_that_keeps_its_coins_passes(tmp_path: Path) -> None:
    published = release_to(crowds_at_the_edge(), written(POLICY, tmp_path), Destination(tmp_path / "out"))
    evidence = published.release.certificate.evidence
    assert evidence["smallest class"] >= 21
    assert 60 < evidence["classes"] < 160


def test_a_disk_that_fails_after_the_charge_leaves_nothing_and_says_that_the_charge_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(deliver, "write_table", full)
    with pytest.raises(OutputUnavailable, match=r"No space left on device.*the charge is not refunded: epsilon"):
        release_to(people(), written(PEOPLE, tmp_path), Destination(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    assert charges(tmp_path) == 1
