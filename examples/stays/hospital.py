"""An invented hospital: patients, stays and their procedures; `python examples/stays/hospital.py` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

HERE = Path(__file__).parent
WARDS = ("Innere", "Chirurgie", "Geburtshilfe", "Kinder", "Neurologie")
CODES = {
    "Innere": ("endoscopy", "ultrasound", "infusion"),
    "Chirurgie": ("operation", "x-ray", "anaesthesia"),
    "Geburtshilfe": ("birth", "ultrasound", "caesarean"),
    "Kinder": ("infusion", "x-ray", "vaccination"),
    "Neurologie": ("mri", "infusion", "eeg"),
}
"""The procedures of each ward, the most common first."""


def hospital(patients: int = 3000, seed: int = 7) -> dict[str, pa.Table]:
    """Return three tables: older patients have more stays, most stays are on the ward of the one before."""
    chance = np.random.default_rng(seed)
    people: list[tuple[str, str, int]] = []
    stays: list[tuple[object, ...]] = []
    procedures: list[tuple[object, ...]] = []
    for number in range(patients):
        sex, born = "FM"[int(chance.integers(0, 2))], int(chance.integers(1930, 2024))
        people.append((f"P{number:05d}", sex, born))
        age, ward, year = 2024 - born, None, 2020
        for _ in range(int(min(12, chance.poisson(0.4 + age / 40)))):
            ward = ward if ward is not None and chance.random() < 0.6 else _ward(sex, age, chance)
            year = min(2024, year + int(chance.integers(0, 2)))
            name = f"S{len(stays):06d}"
            days = int(min(30, chance.geometric(0.35 - age / 500)))
            stays.append((name, people[-1][0], year, ward, bool(chance.random() < 0.3 + age / 300), days))
            codes = [CODES[ward][int(min(2, chance.geometric(0.6) - 1))] for _ in range(chance.poisson(0.6 + days / 8))]
            procedures.extend((name, code) for code in codes[:6])
    return {
        "patients": _table(("patient", "sex", "born"), people),
        "stays": _table(("stay", "patient", "year", "ward", "urgent", "days"), stays),
        "procedures": _table(("stay", "procedure"), procedures),
    }


def _ward(sex: str, age: int, chance: np.random.Generator) -> str:
    if age < 16:
        return "Kinder"
    shares = [0.4, 0.35, 0.15 if sex == "F" and age < 45 else 0.0, 0.0, 0.1 + age / 400]
    return WARDS[int(chance.choice(len(WARDS), p=np.array(shares) / sum(shares)))]


def _table(names: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> pa.Table:
    return pa.table({name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)})


if __name__ == "__main__":
    for title, table in hospital().items():
        csv.write_csv(table, HERE / f"{title}.csv")
