"""Where a region's patients live and how old they are, invented: any number of rows around a few towns.

Nobody in here exists.  The region is a square of 60 by 60 kilometers with three towns and scattered farms; the young
live in the largest town.

    python examples/clinics/patients.py 12000 examples/clinics/patients.csv
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

TOWNS = ((18.0, 40.0, 3.5, 0.45, 38.0), (42.0, 22.0, 2.5, 0.25, 45.0), (30.0, 9.0, 2.0, 0.15, 52.0))
"""East and north of the center in kilometers, its spread, its share of the people, and their mean age."""

SIDE = 60.0


def patients(rows: int, seed: int = 5) -> pa.Table:
    """Return that many people with the east and north of their home, in kilometers, and their age.

    >>> patients(3).column_names
    ['east', 'north', 'age']
    """
    chance = np.random.default_rng(seed)
    shares = [share for *_, share, _ in TOWNS]
    town = chance.choice(len(TOWNS) + 1, rows, p=[*shares, 1 - sum(shares)])
    known = np.array([*((east, north, spread, age) for east, north, spread, _, age in TOWNS), (30, 30, 0, 55)])[town]
    near = known[:, :2] + chance.normal(0, 1, (rows, 2)) * known[:, 2:3]
    home = np.where((town == len(TOWNS))[:, None], chance.uniform(0, SIDE, (rows, 2)), near)
    age = np.clip(np.round(chance.normal(known[:, 3], 19)), 0, 104).astype(np.int64)
    east, north = np.round(np.clip(home, 0, SIDE), 3).T
    return pa.table({"east": east, "north": north, "age": age})


if __name__ == "__main__":
    pa.csv.write_csv(patients(int(sys.argv[1])), Path(sys.argv[2]))
