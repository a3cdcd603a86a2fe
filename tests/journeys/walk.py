"""A walk: commands one after the other, as somebody types them who reads what is printed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from tests.cli.running import Outcome, Runner

LEDGER = "sqlite:///.incrowd/ledger.sqlite"
_WIDTH = 80


@dataclass(frozen=True)
class Walk:
    """The commands that were typed so far; each must end with the code that is expected of it."""

    run: Runner
    typed: list[str] = field(default_factory=list)

    def __call__(self, line: str, code: int = 0) -> Outcome:
        self.typed.append(line)
        done = self.run(line)
        assert done.code == code, (line, done.out, done.err)
        wide = [] if "--json" in line else [each for each in done.out.splitlines() if len(each) > _WIDTH]
        assert wide == [], line
        return done

    @property
    def verbs(self) -> list[str]:
        """What was typed, by verb: a newcomer must not need more."""
        return [line.split()[0] for line in self.typed]

    def charges(self) -> list[Any]:
        """Return what the ledger holds of each dataset; looking is no step of the road."""
        if not Path(".incrowd").exists():
            return []
        return list(self.run("ledger show --json").json["datasets"])

    def paid_once(self) -> bool:
        """Tell whether one dataset was charged, once, and nothing stays open of it."""
        shown = self.run("ledger show --json").json
        return [each["charges"] for each in shown["datasets"]] == [1] and shown["nothing_came"] == []


def words(outcome: Outcome) -> str:
    """Return what was printed, without the line breaks of a terminal."""
    return " ".join(outcome.out.split())


def released(folder: str = "out") -> pa.Table:
    """Return the table that left."""
    return parquet.read_table(Path(folder) / "data.parquet")


def telling(table: pa.Table) -> list[str]:
    """Return the columns that still tell something: more than one value."""
    return [name for name in table.column_names if len(table[name].unique()) > 1]
