"""Coverage: how often the intervals of disclosure risk contain the truth, by population shape and sampling rate.

    python bench/coverage.py                                # invented populations, 20 samples each
    python bench/coverage.py --adult FOLDER --runs 100      # with adult.csv: eight quasi-identifiers of Adult

Populations: independent columns, columns that depend on a latent class, columns nested in each other, and Adult (all
cells of its eight columns are 89 million).  From each population, simple random samples are drawn.  `chosen` is how
often independent columns were chosen, and how far the estimate is from the truth, in the median.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyarrow import csv

from incrowd.measures.risk.population import INDEPENDENT, log_linear_risk

ADULT = ("age", "education", "marital-status", "native-country", "race", "salary-class", "sex", "workclass")
RATES = ("0.01", "0.05", "0.2")
SIZES = (8, 10, 12, 6, 9)
PEOPLE = 40_000
Codes = NDArray[np.int64]


def _column(size: int, chance: np.random.Generator) -> Codes:
    law = np.arange(size, 0, -1.0)
    return chance.choice(size, PEOPLE, p=law / law.sum())


def independent(chance: np.random.Generator) -> list[Codes]:
    return [_column(size, chance) for size in SIZES]


def latent(chance: np.random.Generator) -> list[Codes]:
    group = chance.integers(0, 4, PEOPLE)
    return [(_column(size, chance) + 3 * group) % size for size in SIZES]


def nested(chance: np.random.Generator) -> list[Codes]:
    region = chance.zipf(1.5, PEOPLE) % 60
    place = region * 20 + chance.zipf(1.7, PEOPLE) % 20
    return [region, place, chance.integers(0, 90, PEOPLE), chance.integers(0, 2, PEOPLE)]


def adult(folder: Path) -> list[Codes]:
    file = folder / "adult.csv"
    delimiter = ";" if ";" in file.read_text(encoding="utf-8")[:200] else ","
    table = csv.read_csv(file, parse_options=csv.ParseOptions(delimiter=delimiter))
    return [np.unique(np.array(table[name].to_pylist(), str), return_inverse=True)[1] for name in ADULT]


def measure(name: str, columns: list[Codes], rate: str, runs: int) -> None:
    people = np.unique(np.stack(columns), axis=1, return_inverse=True)[1].ravel()
    size, number = np.bincount(people), len(people)
    inside, chosen, refuted, apart, width = np.zeros(2), 0, 0, [], []
    begin = time.process_time()
    for run in range(runs):
        sample = np.random.default_rng(1000 + run).choice(number, round(float(rate) * number), replace=False)
        rows = np.bincount(people[sample], minlength=len(size))
        truth = np.array([np.count_nonzero(size[rows == 1] == 1), (1.0 / size[rows == 1]).sum()])
        tuples, counts = np.unique(np.stack([column[sample] for column in columns]), axis=1, return_counts=True)
        risk = log_linear_risk(list(tuples), counts, rate)
        for place, tau in enumerate((risk.tau1, risk.tau2)):
            inside[place] += (tau.low or 0.0) <= truth[place] <= (tau.high or 0.0)
        chosen, refuted = chosen + (risk.model == INDEPENDENT), refuted + risk.refuted
        apart.append([risk.tau1.value / max(1.0, truth[0]), risk.tau2.value / truth[1]])
        alone = np.count_nonzero(rows == 1)
        width.append([((tau.high or 0.0) - (tau.low or 0.0)) / alone for tau in (risk.tau1, risk.tau2)])
    seconds = (time.process_time() - begin) / runs
    middle, wide = np.median(apart, axis=0), np.median(width, axis=0)
    print(
        f"{name:<12}{rate:>5}{inside[0] / runs:>9.0%}{inside[1] / runs:>8.0%}{wide[0]:>9.0%}{wide[1]:>8.0%}"
        f"{middle[0]:>9.2f}{middle[1]:>8.2f}{chosen:>7} of {runs}{refuted:>9}{seconds:>8.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adult", type=Path)
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    print("                   covered          width / uniques  estimate / truth   independent       CPU s")
    print("population   rate     tau1    tau2     tau1    tau2     tau1    tau2   chosen  refuted")
    populations = {shape.__name__: shape(np.random.default_rng(7)) for shape in (independent, latent, nested)}
    if options.adult is not None:
        populations["Adult"] = adult(options.adult)
    for name, columns in populations.items():
        for rate in RATES:
            measure(name, columns, rate, options.runs)


if __name__ == "__main__":
    main()
