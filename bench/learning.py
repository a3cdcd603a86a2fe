"""Private models: accuracy by ε, and time.

    INCROWD_ADULT=folder python -m bench.learning            # every table; a classifier, regressor, k-means, PCA
    python -m bench.learning --rows 10000000                 # so many rows from a Parquet file: time and memory
    python -m bench.learning --clusters                      # k-means by clusters, columns, distance; PCA of wine
    python -m bench.learning --intervals                     # how often intervals of linear models hold the truth
    python -m bench.learning --choices                       # `auto` beside every single model, on nineteen tables
    python -m bench.learning --rehearsals                    # only what `incrowd plan` expects of each of them

Everything goes through `incrowd.learn_model` with real coins at δ = 1e-6; the mean of so many splits, 70 % of the rows
to learn from and the others to test.  Bounds are declared: those of Adult and digits are public, those of the other
tables are the range of all rows, widened by 2 % on both sides.  CPU seconds are those of a fit with policy and ledger.
`--choices` needs INCROWD_PEERS with `small_tables` (`bench/peers/small_tables.py`), learns from tables of at most 5,000
rows four times as often, declares the share of the rarest class to one digit, and has public chance and no ledger.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

import incrowd
from bench.rows import peer

EPSILONS = ("0.1", "0.5", "1", "3")
TARGET = "salary-class"


@dataclass(frozen=True)
class Data:
    """A table, how its columns are declared, and what is predicted."""

    name: str
    table: pa.Table
    columns: dict[str, Any]
    target: str


def adult() -> Data:
    folder = os.environ.get("INCROWD_ADULT")
    if folder is None:
        raise SystemExit("set INCROWD_ADULT to a folder with adult.csv")
    table = csv.read_csv(Path(folder) / "adult.csv", parse_options=csv.ParseOptions(delimiter=";"))
    columns: dict[str, Any] = {
        name: {"categories": sorted(map(str, set(table[name].to_pylist()))), "missing": "drop", "outside": "drop"}
        for name in table.column_names
        if name != "age"
    }
    columns["age"] = {"type": "integer", "bounds": [15, 94], "missing": "drop"}
    return Data("Adult", table, columns, TARGET)


def bundled(name: str) -> Data:
    """Return a table of scikit-learn's with declared bounds."""
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    low, high = found.data.min(axis=0), found.data.max(axis=0)
    more = 0.02 * (high - low)
    low, high = (np.zeros(64), np.full(64, 16.0)) if name == "digits" else (low - more, high + more)
    rows = {f"c{place}": found.data[:, place] for place in range(found.data.shape[1])}
    columns: dict[str, Any] = {
        each: {"type": "decimal", "bounds": [f"{low[place]:.6g}", f"{high[place]:.6g}"], "missing": "drop"}
        for place, each in enumerate(rows)
    }
    if name == "diabetes":
        columns["y"] = {"type": "integer", "bounds": [25, 346], "missing": "drop"}
        return Data(name, pa.table({**rows, "y": found.target.astype(int)}), columns, "y")
    columns["y"] = {"categories": sorted(map(str, set(found.target.tolist()))), "missing": "drop", "outside": "drop"}
    return Data(name, pa.table({**rows, "y": [str(each) for each in found.target]}), columns, "y")


def learned(data: Data, rows: pa.Table, release: dict[str, Any]) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        policy = {
            "incrowd": 1,
            "dataset": {"name": "bench"},
            "columns": data.columns,
            "release": release,
            "ledger": f"sqlite:///{folder}/ledger.sqlite",
        }
        return incrowd.learn_model(rows, policy).model


def drawn(data: Data, rows: pa.Table, release: dict[str, Any], seed: int) -> Any:
    """Return the model of a release, with public chance and no ledger, for the many that `--choices` compares."""
    from incrowd.engines.settings import open_table
    from incrowd.methods.learning.shared.rehearsal import PublicCoins
    from incrowd.workflows.policy.policy import load_policy

    policy: Any = {"incrowd": 1, "dataset": {"name": "bench"}, "columns": data.columns, "release": release}
    coins: Any = PublicCoins(np.random.default_rng(seed))
    loaded = load_policy(policy)
    return loaded.plan.draw(open_table(rows, loaded.schema, loaded.options), coins).model


def split(rows: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.random.default_rng(seed).permutation(rows)
    return order[: int(0.7 * rows)], order[int(0.7 * rows) :]


def classes(data: Data, model: Any, test: pa.Table) -> list[float]:
    """Return accuracy, and AUC where there are two classes."""
    from sklearn.metrics import roc_auc_score

    chances, truth = model.chances(test), np.array(test[data.target].to_pylist())
    right = float((np.array(model.outputs)[chances.argmax(axis=1)] == truth).mean())
    return (
        [right, float(roc_auc_score(truth == model.outputs[1], chances[:, 1]))] if len(model.outputs) == 2 else [right]
    )


def numbers(data: Data, model: Any, test: pa.Table) -> list[float]:
    """Return R²."""
    truth = test[data.target].to_numpy().astype(float)
    return [float(1 - ((model.numbers(test) - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())]


def scaled(data: Data, table: pa.Table) -> NDArray[np.float64]:
    """Return numbers with half of the declared range as 1."""
    found = []
    for name, told in data.columns.items():
        if name != data.target:
            low, high = map(float, told["bounds"])
            found.append((table[name].to_numpy() - (low + high) / 2) / ((high - low) / 2))
    return np.stack(found, axis=1)


def distances(data: Data, model: Any, test: pa.Table) -> list[float]:
    """Return the mean squared distance to the nearest center, half of a declared range being 1."""
    names = [name for name in data.columns if name != data.target]
    ends = np.array([list(map(float, data.columns[name]["bounds"])) for name in names])
    centers = (model.vectors - ends.mean(axis=1)) / (np.ptp(ends, axis=1) / 2)
    points = scaled(data, test)
    return [float(((points[:, None] - centers) ** 2).sum(axis=2).min(axis=1).mean())]


def variance(data: Data, model: Any, test: pa.Table) -> list[float]:
    """Return the share of the variance that the components hold."""
    points = scaled(data, test)
    points -= points.mean(axis=0)
    basis, _ = np.linalg.qr(model.vectors.T)
    return [float(((points @ basis) ** 2).sum() / (points**2).sum())]


Measure = Callable[[Data, Any, pa.Table], list[float]]


def row(data: Data, release: dict[str, Any], measure: Measure, seeds: int) -> None:
    """Print one line: what is measured at each ε, and CPU seconds of a fit."""
    shown, spent = [], 0.0
    for epsilon in EPSILONS:
        found = []
        for seed in range(seeds):
            train, test = split(data.table.num_rows, seed)
            rows, start = data.table.take(train), time.process_time()
            price = {"epsilon": epsilon} if release.get("delta", "") is None else {"epsilon": epsilon, "delta": "1e-6"}
            told = {key: value for key, value in release.items() if value is not None}
            model = learned(data, rows, told | price)
            spent += time.process_time() - start
            found.append(measure(data, model, data.table.take(test)))
        shown.append("/".join(f"{each:.3f}" for each in np.mean(found, axis=0)))
    what = " ".join(f"{value}" for key, value in release.items() if key in {"method", "model", "clusters"} and value)
    pure = " pure" if release.get("delta", "") is None else ""
    print(f"{data.name:14s} {what + pure:24s} {'  '.join(shown)}   {spent / seeds / len(EPSILONS):.2f} s", flush=True)


def rehearsal(data: Data, release: dict[str, Any]) -> None:
    """Print what a plan expects at each ε: the gain where some columns matter, and where all do."""
    from incrowd.workflows.plan.forecast import plan

    shown, start = [], time.process_time()
    for epsilon in EPSILONS:
        dataset = {"name": "bench", "rows": int(0.7 * data.table.num_rows)}
        told = {"incrowd": 1, "dataset": dataset, "columns": data.columns, "ledger": "sqlite:///nowhere.sqlite"}
        band = plan(told | {"release": release | {"epsilon": epsilon, "delta": "1e-6"}}).rehearsed
        shown.append("-" if band is None else f"{band.some:.2f} to {band.all:.2f}{' hopeless' * band.hopeless}")
    spent = (time.process_time() - start) / len(EPSILONS)
    print(f"{data.name:14s} {release['method']:12s} {'  '.join(shown)}   {spent:.2f} s", flush=True)


OTHERS = ("digits odd", "Hdma", "Chile", "Housing", "Computers", "Males")  # no bound of `auto` was chosen on them
MODELS = ("naive-bayes", "gradient", "additive", "moments", "tree", "forest", "random-trees")


def small_table(file: Path, target: str) -> Data:
    """Return a table of `bench/peers/small_tables.py`: text and truth values are categories, numbers have bounds."""
    table, columns = csv.read_csv(file), dict[str, Any]()
    for name in table.column_names:
        kind = table[name].type
        if name == target or pa.types.is_string(kind) or pa.types.is_boolean(kind):
            texts = [str(value) for value in table[name].to_pylist()]
            table = table.set_column(table.column_names.index(name), name, pa.array(texts))
            columns[name] = {"categories": sorted(set(texts)), "missing": "drop", "outside": "drop"}
            continue
        values = table[name].to_numpy()
        more = 0.02 * np.ptp(values)
        ends = [f"{values.min() - more:.6g}", f"{values.max() + more:.6g}"]
        columns[name] = {"type": "decimal", "bounds": ends, "missing": "drop"}
    return Data(file.stem, table, columns, target)


def rare(data: Data, share: float) -> Data:
    """Return the rows of a table with so many of its rarer class."""
    labels = np.array(data.table[data.target].to_pylist())
    names, counts = np.unique(labels, return_counts=True)
    few, many = (np.flatnonzero(labels == names[place]) for place in np.argsort(counts)[:2])
    some = np.random.default_rng(3).choice(few, int(share / (1 - share) * len(many)), replace=False)
    return Data(f"{data.name} {share:.0%}", data.table.take(np.sort(np.append(many, some))), data.columns, data.target)


def area(data: Data, model: Any, test: pa.Table) -> float:
    """Return the AUC; with more classes the mean of each against the others."""
    from sklearn.metrics import roc_auc_score

    chances, truth = model.chances(test), np.array(test[data.target].to_pylist())
    named = [place for place, name in enumerate(model.outputs) if 0 < (truth == name).sum() < len(truth)]
    places = named[1:] if len(model.outputs) == 2 else named
    return float(np.mean([roc_auc_score(truth == model.outputs[place], chances[:, place]) for place in places]))


def odd(data: Data) -> Data:
    """Return digits by whether they are odd: two classes of 64 numbers."""
    parity = [str(int(value) % 2) for value in data.table[data.target].to_pylist()]
    place = data.table.column_names.index(data.target)
    own = {"categories": ["0", "1"], "missing": "drop", "outside": "drop"}
    table = data.table.set_column(place, data.target, pa.array(parity))
    return Data("digits odd", table, data.columns | {data.target: own}, data.target)


def taken_by(data: Data, release: dict[str, Any]) -> str:
    """Return the model that `auto` takes."""
    from incrowd.workflows.policy.policy import load_policy

    policy: Any = {"incrowd": 1, "dataset": {"name": "bench"}, "columns": data.columns, "release": release}
    loaded: Any = load_policy(policy)
    task = loaded.method.task(loaded.schema)
    name: str = loaded.method.choice(task.inputs, len(task.outputs))
    return name


def choice(data: Data, epsilon: str, seeds: int) -> float:
    """Print the AUC of each model, and return by how much another one is better than that which `auto` takes.

    The model that is taken is not learned again: its own figure counts, so that noise does not part the two.
    """
    rows, (_, counts) = int(0.7 * data.table.num_rows), np.unique(data.table[data.target], return_counts=True)
    release = {"method": "classifier", "target_column": data.target, "expected_rows": rows, "epsilon": epsilon}
    release |= {"delta": "1e-6", "smallest_share": f"{min(0.5, counts.min() / counts.sum()):.1g}"}
    figures, times = dict.fromkeys(MODELS, 0.0), seeds if rows > 5000 else 4 * seeds
    for seed in range(times):
        train, test = (data.table.take(places) for places in split(data.table.num_rows, seed))
        for name in MODELS:
            figures[name] += area(data, drawn(data, train, release | {"model": name}, seed), test) / times
    taken = taken_by(data, release)
    gap = max(figures.values()) - figures[taken]
    texts = " ".join(f"{name} {figure:.3f}" for name, figure in figures.items())
    print(f"{data.name:14s} ε {epsilon:3s} auto: {taken:12s} gap {gap:.3f}  {texts}", flush=True)
    return gap


def choices(seeds: int) -> None:
    """Print how well `auto` chooses: on the tables on which its rules were chosen, and on others."""
    with tempfile.TemporaryDirectory() as folder:
        targets = peer("small_tables", folder) or {}
        small = [small_table(Path(folder, f"{name}.csv"), target) for name, target in targets.items()]
    people, digits = adult(), bundled("digits")
    tables = [*small, *map(bundled, ("breast_cancer", "wine")), digits, odd(digits), people, rare(people, 0.03)]
    for what, chosen in (("chosen on", False), ("others", True)):
        gaps = [choice(x, e, seeds) for x in tables if (x.name in OTHERS) is chosen for e in ("0.3", "1", "3")]
        near = sum(gap <= 0.01 for gap in gaps)
        print(f"{what}: mean gap {np.mean(gaps):.4f}, within .01 in {near} of {len(gaps)}, worst {max(gaps):.3f}")


def rehearsals() -> None:
    for data in (adult(), *map(bundled, ("breast_cancer", "wine", "digits"))):
        rows = int(0.7 * data.table.num_rows)
        rehearsal(data, {"method": "classifier", "target_column": data.target, "expected_rows": rows})
    rehearsal(bundled("diabetes"), {"method": "regressor", "target_column": "y"})
    for data in map(bundled, ("breast_cancer", "wine", "digits", "diabetes")):
        names = [name for name in data.columns if name != data.target]
        rehearsal(data, {"method": "pca", "components": 3, "columns": names})


def everything(seeds: int) -> None:
    tables = [adult(), bundled("breast_cancer"), bundled("wine"), bundled("digits")]
    for data in tables:
        release = {
            "method": "classifier",
            "target_column": data.target,
            "expected_rows": int(0.7 * data.table.num_rows),
        }
        row(data, release, classes, seeds)
        row(data, release | {"delta": None}, classes, seeds)
        streamed = () if len(data.columns) > 20 else ("stream",)  # which reads all rows once for each column and round
        for model in ("naive-bayes", "gradient", "additive", "moments", "tree", "forest", "random-trees", *streamed):
            row(data, release | {"model": model}, classes, seeds)
    diabetes = bundled("diabetes")
    for model in ("moments", "additive", "tree", "forest"):
        row(
            diabetes,
            {"method": "regressor", "target_column": "y", "model": model, "expected_rows": 309},
            numbers,
            seeds,
        )
    for data, clusters in ((tables[1], 2), (tables[2], 3), (tables[3], 10), (diabetes, 3)):
        names = [name for name in data.columns if name != data.target]
        row(data, {"method": "kmeans", "clusters": clusters, "columns": names}, distances, seeds)
        row(data, {"method": "pca", "components": 3, "columns": names}, variance, seeds)


def clusters(seeds: int) -> None:
    """Print the cost of k-means on the rows of `learning_peers.blobs`, with and without a number of rows, and PCA."""
    from bench.learning_peers import BLOBS, blobs

    for k, width, kind in BLOBS:
        columns = {f"c{place}": {"type": "decimal", "bounds": [-1, 1]} for place in range(width)}
        for expected in ({}, {"expected_rows": 2000}):
            shown = []
            for epsilon in EPSILONS:
                release = {"method": "kmeans", "clusters": k, "epsilon": epsilon, "delta": "1e-6", **expected}
                costs = []
                for seed in range(seeds):
                    x = blobs(k, width, kind, seed)
                    table = pa.table({name: x[:, place] for place, name in enumerate(columns)})
                    data = Data("blobs", table, columns, "")
                    costs += distances(data, learned(data, table, release), table)
                shown.append(f"{np.mean(costs):.4f}")
            print(f"{k} clusters, {width:2d} columns, {kind:6s} {' '.join(shown)}  {expected or ''}", flush=True)
    wine = bundled("wine")
    names = [name for name in wine.columns if name != wine.target]
    row(wine, {"method": "pca", "components": 3, "columns": names}, variance, seeds)


def population(kind: str, number: int, chance: np.random.Generator) -> tuple[pa.Table, NDArray[np.float64]]:
    """Return rows whose line is known: two numbers and a category, plain or skewed with errors that are not normal."""
    if kind == "plain":
        x, z = chance.uniform(-1, 1, number), np.clip(chance.normal(0, 0.4, number), -1, 1)
        error = chance.normal(0, 0.3, number)
    else:
        x, z = chance.beta(2, 4, number) * 2 - 1, chance.beta(4, 3, number) * 2 - 1
        z = np.clip(0.6 * z + 0.4 * x, -1, 1)
        error = 0.25 * (chance.chisquare(4, number) - 4) / 2.83
    town = chance.choice(["Łódź", "Örebro", "Ψ"], number, p=[0.5, 0.3, 0.2])
    true = np.array([0.8, -0.5, 0.3, -0.4, 0.1])  # x, z, Örebro, Ψ, intercept
    y = true[0] * x + true[1] * z + true[2] * (town == "Örebro") + true[3] * (town == "Ψ") + true[4] + error
    return pa.table({"x": x, "z": z, "town": town, "y": y}), true


def intervals(seeds: int) -> None:
    """Print the share of 95 % intervals that hold the truth: of coefficients, and of fresh rows."""
    columns: dict[str, Any] = {name: {"type": "decimal", "bounds": [-1, 1]} for name in "xz"}
    columns |= {"town": {"categories": ["Łódź", "Örebro", "Ψ"]}, "y": {"type": "decimal", "bounds": [-4, 4]}}
    for kind in ("plain", "skewed"):
        for rows in (5_000, 50_000):
            for epsilon in ("0.5", "1", "3", "20"):
                held, inside, none, wide = [], [], 0, []
                for seed in range(seeds):
                    chance = np.random.default_rng(seed)
                    table, true = population(kind, rows, chance)
                    data = Data(kind, table, columns, "y")
                    release = {"method": "regressor", "target_column": "y", "model": "linear"}
                    model = learned(data, table, release | {"epsilon": epsilon, "delta": "1e-6"})
                    if model.inference is None:
                        none += 1
                        continue
                    places = {("x", None): 0, ("z", None): 1, ("town", "Örebro"): 2, ("town", "Ψ"): 3, (None, None): 4}
                    low, high = model.inference.intervals()
                    truth = [true[places[term]] for term in model.inference.terms if term in places]
                    if len(truth) == len(low):
                        held += [a <= b <= c for a, b, c in zip(low, truth, high, strict=True)]
                        wide.append(float((high - low)[0]))
                    fresh, _ = population(kind, 2000, chance)
                    ends, y = model.intervals(fresh), fresh["y"].to_numpy()
                    inside.append(float(((ends[0] <= y) & (y <= ends[1])).mean()))
                if not held:
                    print(f"{kind:7s} {rows:6d} rows, ε {epsilon:4s} too noisy for intervals", flush=True)
                    continue
                shares = f"coefficients {np.mean(held):.3f} (width {np.mean(wide):.3f}), rows {np.mean(inside):.3f}"
                print(f"{kind:7s} {rows:6d} rows, ε {epsilon:4s} {shares}, none in {none} of {seeds}", flush=True)


def many(rows: int) -> None:
    """Learn from so many rows of Adult, drawn again, from a Parquet file."""
    from pyarrow import parquet as pq

    data = adult()
    with tempfile.TemporaryDirectory() as folder:
        file, chance = Path(folder, "rows.parquet"), np.random.default_rng(1)
        with pq.ParquetWriter(file, data.table.schema) as writer:
            for _ in range(0, rows, 10**6):
                writer.write_table(data.table.take(chance.integers(0, data.table.num_rows, min(rows, 10**6))))
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        release = {"method": "classifier", "target_column": TARGET, "epsilon": "1", "delta": "1e-6"}
        learned(data, str(file), release)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        spent = time.process_time() - start
        print(f"{rows:,} rows: {spent:.0f} CPU s, peak {peak / 1024:.0f} MB ({before / 1024:.0f} MB before)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--rehearsals", action="store_true")
    parser.add_argument("--clusters", action="store_true")
    parser.add_argument("--intervals", action="store_true")
    parser.add_argument("--choices", action="store_true")
    told = parser.parse_args()
    if told.rehearsals:
        rehearsals()
    elif told.clusters:
        clusters(told.seeds)
    elif told.choices:
        choices(told.seeds)
    elif told.intervals:
        intervals(told.seeds)
    elif told.rows:
        many(told.rows)
    else:
        everything(told.seeds)


if __name__ == "__main__":
    main()
