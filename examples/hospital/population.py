"""A hospital's discharges, invented: any number of rows, with the dependencies that real ones have.

Nobody in here exists.  Age drives diagnosis, season drives respiratory disease, diagnosis drives procedure and charge,
neighborhoods differ in ethnicity and age.  The codes look like ICD-10 and are used in their everyday meaning.

    python examples/hospital/population.py 20000 examples/hospital/discharges.csv
    python examples/hospital/population.py 10000000 discharges.parquet
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

CHUNK = 1_000_000
ETHNICITIES = ("white", "black", "asian", "hispanic", "native", "mixed")
PROCEDURES = (
    "none", "imaging", "endoscopy", "catheter", "surgery, joint", "surgery, heart", "surgery, abdomen", "delivery",
    "cesarean", "dialysis", "chemotherapy", "ventilation", "transfusion", "cast", "therapy",
)  # fmt: skip


@dataclass(frozen=True)
class Diagnosis:
    """One diagnosis: how common it is, at which age, for whom, when, and what it leads to."""

    code: str
    weight: float
    age: float
    spread: float
    women: float
    winter: float
    cost: float
    procedures: tuple[str, ...]


DIAGNOSES = (
    Diagnosis("A09", 3.0, 20, 40, 0.5, 1.2, 3.2, ("none",)),
    Diagnosis("A41", 2.0, 72, 18, 0.5, 1.3, 14.0, ("none", "ventilation", "transfusion")),
    Diagnosis("B34", 1.5, 15, 25, 0.5, 1.6, 2.4, ("none",)),
    Diagnosis("C18", 1.0, 68, 13, 0.45, 1.0, 19.0, ("surgery, abdomen", "chemotherapy", "endoscopy")),
    Diagnosis("C34", 1.0, 67, 11, 0.45, 1.0, 17.0, ("chemotherapy", "imaging")),
    Diagnosis("C50", 1.1, 60, 14, 0.99, 1.0, 15.0, ("chemotherapy", "surgery, abdomen")),
    Diagnosis("C61", 0.9, 70, 9, 0.0, 1.0, 14.0, ("surgery, abdomen", "imaging")),
    Diagnosis("D50", 0.9, 55, 25, 0.65, 1.0, 3.0, ("transfusion", "endoscopy")),
    Diagnosis("E10", 0.7, 25, 20, 0.5, 1.0, 5.0, ("none",)),
    Diagnosis("E11", 2.2, 64, 14, 0.47, 1.0, 6.0, ("none", "dialysis")),
    Diagnosis("E86", 1.4, 70, 25, 0.55, 0.8, 3.6, ("none",)),
    Diagnosis("F10", 1.2, 46, 14, 0.28, 1.0, 5.0, ("therapy",)),
    Diagnosis("F20", 0.7, 38, 14, 0.42, 1.0, 9.0, ("therapy",)),
    Diagnosis("F32", 1.1, 42, 18, 0.62, 1.1, 7.0, ("therapy",)),
    Diagnosis("G35", 0.4, 40, 12, 0.7, 1.0, 8.0, ("therapy", "imaging")),
    Diagnosis("G40", 0.8, 35, 28, 0.48, 1.0, 5.0, ("imaging", "none")),
    Diagnosis("H25", 0.6, 74, 9, 0.58, 1.0, 3.0, ("none",)),
    Diagnosis("I10", 1.4, 66, 14, 0.55, 1.0, 3.4, ("none",)),
    Diagnosis("I20", 1.3, 66, 11, 0.4, 1.0, 8.0, ("catheter", "imaging")),
    Diagnosis("I21", 2.0, 68, 13, 0.36, 1.1, 21.0, ("catheter", "surgery, heart")),
    Diagnosis("I48", 1.9, 74, 11, 0.48, 1.0, 8.5, ("catheter", "none")),
    Diagnosis("I50", 2.6, 77, 11, 0.5, 1.2, 10.0, ("none", "imaging")),
    Diagnosis("I63", 1.8, 74, 13, 0.49, 1.0, 13.0, ("imaging", "therapy")),
    Diagnosis("J06", 1.0, 5, 12, 0.48, 2.2, 2.0, ("none",)),
    Diagnosis("J18", 3.2, 66, 28, 0.47, 1.9, 9.0, ("none", "ventilation", "imaging")),
    Diagnosis("J44", 2.1, 71, 10, 0.52, 1.6, 8.0, ("none", "ventilation")),
    Diagnosis("J45", 1.1, 22, 22, 0.55, 1.4, 4.0, ("none",)),
    Diagnosis("K29", 0.9, 50, 20, 0.52, 1.0, 4.0, ("endoscopy",)),
    Diagnosis("K35", 1.6, 26, 17, 0.45, 1.0, 8.0, ("surgery, abdomen",)),
    Diagnosis("K40", 1.0, 56, 18, 0.1, 1.0, 6.0, ("surgery, abdomen",)),
    Diagnosis("K57", 1.0, 63, 14, 0.55, 1.0, 7.0, ("endoscopy", "none")),
    Diagnosis("K80", 1.9, 53, 17, 0.66, 1.0, 9.0, ("surgery, abdomen", "endoscopy")),
    Diagnosis("L03", 1.4, 52, 22, 0.45, 0.8, 5.0, ("none",)),
    Diagnosis("M16", 1.3, 69, 11, 0.56, 1.0, 16.0, ("surgery, joint",)),
    Diagnosis("M17", 1.6, 69, 10, 0.62, 1.0, 16.5, ("surgery, joint",)),
    Diagnosis("M54", 1.2, 52, 17, 0.53, 1.0, 6.0, ("therapy", "imaging")),
    Diagnosis("N17", 1.6, 71, 16, 0.46, 1.0, 10.0, ("dialysis", "none")),
    Diagnosis("N20", 1.2, 48, 15, 0.35, 0.8, 5.0, ("imaging", "endoscopy")),
    Diagnosis("N39", 2.0, 66, 24, 0.68, 1.0, 5.0, ("none",)),
    Diagnosis("O80", 5.5, 30, 5.5, 1.0, 1.0, 6.0, ("delivery",)),
    Diagnosis("O82", 2.4, 32, 5.5, 1.0, 1.0, 10.0, ("cesarean",)),
    Diagnosis("P07", 1.0, 0, 0.6, 0.48, 1.0, 40.0, ("ventilation", "none")),
    Diagnosis("P59", 1.6, 0, 0.6, 0.48, 1.0, 3.0, ("none",)),
    Diagnosis("R07", 1.7, 55, 16, 0.5, 1.0, 4.0, ("imaging",)),
    Diagnosis("S06", 1.2, 42, 28, 0.38, 0.9, 9.0, ("imaging", "none")),
    Diagnosis("S52", 1.1, 30, 26, 0.5, 0.8, 6.0, ("cast",)),
    Diagnosis("S72", 1.9, 80, 12, 0.7, 1.1, 17.0, ("surgery, joint",)),
    Diagnosis("S82", 1.1, 44, 20, 0.48, 1.0, 10.0, ("cast", "surgery, joint")),
    Diagnosis("T50", 1.0, 34, 17, 0.58, 1.0, 5.0, ("none", "therapy")),
    Diagnosis("Z51", 1.5, 62, 13, 0.52, 1.0, 9.0, ("chemotherapy",)),
)
SCHEMA = pa.schema(
    [
        ("patient", pa.string()), ("age", pa.int64()), ("sex", pa.string()), ("zip", pa.string()),
        ("ethnicity", pa.string()), ("discharged", pa.date32()), ("diagnosis", pa.string()),
        ("procedure", pa.string()), ("charge", pa.int64()),
    ]
)  # fmt: skip


def discharges(rows: int, seed: int = 2025) -> Iterator[pa.RecordBatch]:
    """Yield `rows` invented discharges in batches; the same seed gives the same people."""
    town = _Town.founded(np.random.default_rng(seed))
    for number, start in enumerate(range(0, rows, CHUNK)):
        size = min(CHUNK, rows - start)
        yield town.batch(np.random.default_rng((seed, number)), start, size)


@dataclass(frozen=True)
class _Town:
    """Neighborhoods with their sizes, ages and ethnicities, and the table of diagnoses by age, sex and season."""

    zips: NDArray[np.str_]
    size: NDArray[np.float64]
    ethnicity: NDArray[np.float64]
    older: NDArray[np.float64]
    diagnosis: NDArray[np.float64]

    @classmethod
    def founded(cls, chance: np.random.Generator) -> _Town:
        zips = np.sort(chance.choice(np.arange(2101, 2800), 180, replace=False))
        sizes = (1.0 / np.arange(1, 181)) ** 0.7
        shares = chance.dirichlet((12.0, 4.0, 3.0, 4.0, 0.4, 1.2), 180)
        return cls(
            np.array([f"{code:05d}" for code in zips]),
            _cumulative(chance.permutation(sizes)[None, :])[0],
            _cumulative(shares),
            chance.normal(0.0, 5.0, 180),
            _cumulative(_diagnosis_weights()),
        )

    def batch(self, chance: np.random.Generator, start: int, rows: int) -> pa.RecordBatch:
        area = np.searchsorted(self.size, chance.random(rows))
        women = chance.random(rows) < 0.53
        age = _ages(chance, rows, self.older[area])
        day = _days(chance, rows)
        winter = (day < 90) | (day >= 335)
        group = (np.minimum(age // 5, 19) * 2 + women) * 2 + winter
        found = _draw(self.diagnosis, group, chance.random(rows))
        choices = np.array([len(item.procedures) for item in DIAGNOSES])[found]
        which = np.minimum(chance.geometric(0.62, rows) - 1, choices - 1)
        cost = np.array([item.cost for item in DIAGNOSES])[found]
        charge = 1000.0 * cost * np.exp(chance.normal(0.0, 0.45, rows)) * (1.0 + 0.15 * which)
        ids = chance.permutation(rows) + start
        return pa.record_batch(
            [
                pa.array(np.char.add("P", np.char.zfill(ids.astype("U9"), 9))),
                pa.array(age),
                _taken(np.array(["M", "F"]), women),
                _taken(self.zips, area),
                _taken(np.array(ETHNICITIES), _draw(self.ethnicity, area, chance.random(rows))),
                pa.array(np.datetime64("2025-01-01") + day),
                _taken(np.array([item.code for item in DIAGNOSES]), found),
                _taken(_PROCEDURE_OF.ravel(), found * _PROCEDURE_OF.shape[1] + which),
                pa.array(np.round(charge / 10.0).astype(np.int64) * 10),
            ],
            schema=SCHEMA,
        )


_PROCEDURE_OF = np.array([(item.procedures + item.procedures[:1] * 3)[:3] for item in DIAGNOSES])


def _diagnosis_weights() -> NDArray[np.float64]:
    """Weights by (five-year age group, sex, winter) and diagnosis."""
    middle = np.arange(20)[:, None, None] * 5.0 + 2.0
    women, winter = np.array([0.0, 1.0])[None, :, None], np.array([0.0, 1.0])[None, None, :]
    columns = []
    for item in DIAGNOSES:
        by_age = np.exp(-0.5 * ((middle - item.age) / np.hypot(item.spread, 2.0)) ** 2)
        by_sex = 2.0 * np.where(women == 1.0, item.women, 1.0 - item.women)
        columns.append((item.weight * by_age * by_sex * np.where(winter == 1.0, item.winter, 1.0)).reshape(-1))
    return np.stack(columns, axis=1) + 1e-6


def _ages(chance: np.random.Generator, rows: int, older: NDArray[np.float64]) -> NDArray[np.int64]:
    """Newborns, women and men of middle age, and many old people."""
    kind = chance.random(rows)
    adult = np.where(kind < 0.55, chance.normal(67.0, 14.0, rows) + older, chance.normal(38.0, 15.0, rows))
    age = np.where(kind > 0.92, chance.exponential(2.5, rows), adult)
    return np.clip(np.abs(age), 0, 99).astype(np.int64)


def _days(chance: np.random.Generator, rows: int) -> NDArray[np.int64]:
    """More discharges in winter, fewer on weekends; day 0 is a Wednesday."""
    day = np.arange(365)
    weight = (1.0 + 0.12 * np.cos(2 * np.pi * (day - 20) / 365)) * np.where((day + 2) % 7 >= 5, 0.6, 1.1)
    return np.searchsorted(_cumulative(weight[None, :])[0], chance.random(rows)).astype(np.int64)


def _cumulative(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    total = np.cumsum(weights, axis=1)
    total /= total[:, -1:]
    total[:, -1] = 1.0
    return total


def _draw(table: NDArray[np.float64], row: NDArray[np.int64], chance: NDArray[np.float64]) -> NDArray[np.int64]:
    """Draw from row `row` of a table of cumulative weights, all rows at once."""
    flat = (table + np.arange(len(table))[:, None]).reshape(-1)
    place: NDArray[np.int64] = np.searchsorted(flat, row + chance, side="right") - row * table.shape[1]
    last: NDArray[np.int64] = np.minimum(place, table.shape[1] - 1)
    return last


def _taken(labels: NDArray[np.str_], index: NDArray[Any]) -> pa.Array:
    return pa.array(labels.tolist()).take(pa.array(index.astype(np.int32)))


def write(rows: int, target: Path) -> None:
    """Write discharges to a CSV or Parquet file, batch by batch."""
    opened = (
        pyarrow.csv.CSVWriter(target, SCHEMA, write_options=pyarrow.csv.WriteOptions(quoting_style="needed"))
        if target.suffix == ".csv"
        else pq.ParquetWriter(target, SCHEMA)
    )
    with opened as writer:
        for batch in discharges(rows):
            writer.write_batch(batch)


if __name__ == "__main__":
    write(int(sys.argv[1]), Path(sys.argv[2]))
