"""Make the rows of the example: five years of hospital stays of people who do not exist, in three wards.

python examples/series/stays.py [FOLDER]
"""

from __future__ import annotations

import random
import sys
from datetime import date, timedelta
from pathlib import Path

FIRST = date(2025, 1, 1)
DAYS = 1826
WARDS = ("Chirurgie", "Innere Medizin", "Kinderklinik")


def lines(people: int = 6000, seed: int = 11) -> list[str]:
    """Return stays as lines of a CSV file: patient, ward, day of discharge, day on which the row arrived."""
    chance = random.Random(seed)  # noqa: S311 - people who do not exist
    stays = []
    for number in range(people):
        ward = chance.choices(WARDS, (5, 4, 2))[0]
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            day = FIRST + timedelta(days=int(DAYS * chance.random() ** 0.8))
            late = timedelta(days=chance.choice((0, 0, 0, 2, 40)))
            known = "" if chance.random() < 0.01 else day.isoformat()
            stays.append((day + late, f"P{number:05},{ward},{known},{(day + late).isoformat()}"))
    return ["patient,ward,discharged,received", *(line for _, line in sorted(stays))]


def main() -> None:
    """Write `stays.csv` into a folder, by default beside this file."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    (folder / "stays.csv").write_text("\n".join(lines()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
