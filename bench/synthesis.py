"""Synthetic tables: error of pairs and triples, models trained on them, time and memory.

    INCROWD_ADULT=folder python bench/synthesis.py               # Adult, nine columns, by ε; a million rows
    python bench/synthesis.py --wide                             # 40 columns; a column of 1,000 values

Everything goes through `incrowd.release` with real coins at δ = 1e-9.  TV is the mean total variation of all tables of
two and of three columns against the rows.  AUC: logistic regression and gradient boosting (scikit-learn) trained on a
synthetic copy of 70 % of the rows, tested on the other 30 %.  Ages are compared in their intervals of five years.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

import incrowd

Codes = NDArray[np.int64]
NAMES = [
    "age",
    "sex",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
]
TARGET, RUNS = "salary-class", 3


def adult() -> pa.Table:
    """Nine columns of Adult."""
    folder = os.environ.get("INCROWD_ADULT")
    if folder is None:
        raise SystemExit("set INCROWD_ADULT to a folder with adult.csv")
    options = csv.ParseOptions(delimiter=";")
    return csv.read_csv(Path(folder) / "adult.csv", parse_options=options).select(NAMES)


def declared(table: pa.Table) -> dict[str, Any]:
    """Columns as if they had been declared: for Adult the lists of values are public."""
    ages = {
        "type": "integer",
        "bounds": [15, 94],
        "hierarchy": {"intervals": [5]},
        "missing": "drop",
        "outside": "drop",
    }
    return {
        name: ages
        if name == "age"
        else {"categories": sorted(map(str, set(table[name].to_pylist()))), "missing": "drop", "outside": "drop"}
        for name in table.column_names
    }


def released(table: pa.Table, method: str, epsilon: str, columns: dict[str, Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        levels = {"levels": {"age": 1}} if "age" in columns else {}
        policy = {
            "incrowd": 1,
            "dataset": {"name": "bench"},
            "columns": columns,
            "release": {"method": method, "target": {"epsilon": epsilon, "delta": "1e-9"}, **levels},
            "ledger": f"sqlite:///{folder}/ledger.sqlite",
        }
        return incrowd.synthesize(table, policy)


def coded(table: pa.Table, columns: dict[str, Any]) -> Codes:
    """Codes of a table, a column each; whatever is not declared is one class more."""
    found = []
    for name, told in columns.items():
        values = table[name].to_pylist()
        if name == "age":
            found.append([17 if value is None else (value - 15) // 5 for value in values])
        else:
            place = {value: number for number, value in enumerate(told["categories"])}
            found.append([place.get(str(value), len(place)) for value in values])
    return np.array(found, np.int64)


def distance(one: Codes, other: Codes, size: int) -> float:
    """Mean total variation over all tables of so many columns."""
    errors = []
    for columns in combinations(range(len(one)), size):
        keys = [np.zeros(codes.shape[1], np.int64) for codes in (one, other)]
        for column in columns:
            keys = [key * 1001 + codes[column] for key, codes in zip(keys, (one, other), strict=True)]
        _, place = np.unique(np.concatenate(keys), return_inverse=True)
        split = len(keys[0])
        shares = [np.bincount(part, minlength=place.max() + 1) / len(part) for part in (place[:split], place[split:])]
        errors.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(errors))


def auc(trained: Codes, tested: Codes) -> Iterator[float]:
    """AUC of two models of the last column."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    logistic = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=500))
    use = trained[-1] <= 1
    for model in (logistic, HistGradientBoostingClassifier()):
        model.fit(trained[:-1].T[use], trained[-1][use])
        yield float(roc_auc_score(tested[-1], model.predict_proba(tested[:-1].T)[:, 1]))


def line(*cells: object) -> None:
    print("  ".join(f"{cell:>9}" for cell in cells), flush=True)


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def run(name: str, table: pa.Table, method: str, epsilon: str, columns: dict[str, Any]) -> None:
    """Print the means of three runs."""
    truth, rows = coded(table, columns), []
    for seed in range(RUNS):
        start = time.process_time()
        made = released(table, method, epsilon, columns)
        spent = time.process_time() - start
        drawn = coded(made.result.to_arrow(), columns)
        order = np.random.default_rng(seed).permutation(len(table))
        split = 7 * len(order) // 10
        copy = released(table.take(pa.array(order[:split])), method, epsilon, columns)
        scores = auc(coded(copy.result.to_arrow(), columns), truth[:, order[split:]])
        rows.append((distance(truth, drawn, 2), distance(truth, drawn, 3), *scores, spent))
    pairs, triples, logistic, boosting, spent = np.mean(rows, axis=0)
    told = [f"{each:.4f}" for each in (pairs, triples)] + [f"{each:.3f}" for each in (logistic, boosting)]
    line(name, method, epsilon, *told, f"{spent:.1f}", peak())


def wide() -> Iterator[tuple[str, pa.Table]]:
    """Return a table of 40 columns that depend on each other, and one with a column of 1,000 values."""
    chance, rows = np.random.default_rng(0), 20_000
    hidden = chance.integers(0, 4, rows)
    mixed = [
        np.where(chance.random(rows) < 0.6, (hidden + n) % 4, chance.integers(0, 4 + n % 5, rows)) for n in range(40)
    ]
    yield "40", pa.table({f"c{n}": column.astype(str) for n, column in enumerate(mixed)})
    code = chance.zipf(1.3, rows) % 1000
    few = {f"c{n}": ((code + chance.integers(0, 3, rows)) % 6).astype(str) for n in range(8)}
    yield "1000", pa.table({"code": code.astype(str)} | few)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--wide", action="store_true")
    line("table", "method", "epsilon", "pairs", "triples", "AUC log", "AUC gbm", "CPU s", "peak MB")
    if parser.parse_args().wide:
        for name, table in wide():
            for method in ("marginals", "tree"):
                start = time.process_time()
                columns = declared(table)
                made = released(table, method, "1", columns)
                spent = time.process_time() - start
                pairs = distance(coded(table, columns), coded(made.result.to_arrow(), columns), 2)
                line(name, method, "1", f"{pairs:.4f}", "", "", "", f"{spent:.1f}", peak())
        return
    table = adult()
    columns = declared(table)
    for method, epsilon in (*(("marginals", each) for each in ("0.5", "1", "3")), ("tree", "1")):
        run("Adult", table, method, epsilon, columns)
    many = table.take(pa.array(np.random.default_rng(1).integers(0, len(table), 10**6)))
    start = time.process_time()
    made = released(many, "marginals", "1", columns)
    spent, part = time.process_time() - start, coded(made.result.to_arrow(), columns)
    pairs = distance(coded(many, columns), part, 2)
    line("1M rows", "marginals", "1", f"{pairs:.4f}", "", "", "", f"{spent:.1f}", peak())


if __name__ == "__main__":
    main()
