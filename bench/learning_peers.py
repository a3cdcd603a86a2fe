"""Peers of the private models: diffprivlib 0.6.6 and DP-EBM (interpret-core 0.7.8), each in an environment of its own.

    pip install diffprivlib==0.6.6 scikit-learn==1.6.1 "numpy<2.3"        # one environment
    pip install interpret-core==0.7.8                                     # another one
    INCROWD_ADULT=folder python bench/learning_peers.py diffprivlib       # or: ebm
    python bench/learning_peers.py clusters                               # diffprivlib's k-means and PCA alone

Tables, splits, declared bounds and figures are those of `bench/learning.py`: accuracy, and AUC where there are two
classes; R²; the mean squared distance to the nearest center with half of a declared range as 1.  diffprivlib claims ε
alone, DP-EBM (ε, 1e-6).  What raises an error is named beside nan.  Of diffprivlib's PCA there is wine alone: its
sampler takes more than 15 s of CPU for a fit of 30 columns.  `clusters` is beside `bench/learning.py --clusters`.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

EPSILONS = (0.1, 0.5, 1.0, 3.0)
Model = Callable[[float, Any, Any, tuple[Any, Any]], Any]


def adult() -> tuple[Any, Any, tuple[Any, Any]]:
    """Return codes of all columns but the last, the last, and the bounds of codes."""
    with Path(os.environ["INCROWD_ADULT"], "adult.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    names = [name for name in rows[0] if name != "salary-class"]
    found = []
    for name in names:
        values = [row[name] for row in rows]
        places = {value: place for place, value in enumerate(sorted(set(values)))}
        found.append([float(value) for value in values] if name == "age" else [places[value] for value in values])
    x = np.array(found, float).T
    high = np.where([name == "age" for name in names], 94.0, x.max(axis=0))
    low = np.where([name == "age" for name in names], 15.0, 0.0)
    return x, np.array([row["salary-class"] for row in rows]), (low, high)


def bundled(name: str) -> tuple[Any, Any, tuple[Any, Any]]:
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")()
    low, high = found.data.min(axis=0), found.data.max(axis=0)
    more = 0.02 * (high - low)
    if name == "digits":
        return found.data, found.target, (np.zeros(64), np.full(64, 16.0))
    return found.data, found.target, (low - more, high + more)


def classes(model: Any, x: Any, y: Any) -> list[float]:
    from sklearn.metrics import roc_auc_score

    right = float((model.predict(x) == y).mean())
    names = np.unique(y)
    return [right, float(roc_auc_score(y == names[1], model.predict_proba(x)[:, 1]))] if len(names) == 2 else [right]


def r_squared(model: Any, x: Any, y: Any) -> list[float]:
    return [float(1 - ((model.predict(x) - y) ** 2).sum() / ((y - y.mean()) ** 2).sum())]


def distance(model: Any, x: Any, _: Any) -> list[float]:
    return [float(((x[:, None] - model.cluster_centers_) ** 2).sum(axis=2).min(axis=1).mean())]


def row(what: str, data: tuple[Any, Any, tuple[Any, Any]], make: Model, measure: Any, seeds: int) -> None:
    x, y, bounds = data
    shown, spent = [], 0.0
    for epsilon in EPSILONS:
        found = []
        for seed in range(seeds):
            order = np.random.default_rng(seed).permutation(len(x))
            train, test = order[: int(0.7 * len(x))], order[int(0.7 * len(x)) :]
            start = time.process_time()
            try:
                model = make(epsilon, x[train], y[train], bounds)
                spent += time.process_time() - start
                found.append(measure(model, x[test], y[test]))
            except (ValueError, FloatingPointError, np.linalg.LinAlgError) as error:
                found.append([float("nan")])
                what = f"{what} ({type(error).__name__})" if "Error" not in what else what
        shown.append("/".join(f"{each:.3f}" for each in np.mean(found, axis=0)))
    print(f"{what:34s} {'  '.join(shown)}   {spent / seeds / len(EPSILONS):.2f} s", flush=True)


def scaled(data: tuple[Any, Any, tuple[Any, Any]]) -> tuple[Any, Any, tuple[Any, Any]]:
    """Return the same with half of the declared range as 1."""
    x, y, (low, high) = data
    width = len(low)
    return (x - (low + high) / 2) / ((high - low) / 2), y, (-np.ones(width), np.ones(width))


def diffprivlib(seeds: int) -> None:
    from diffprivlib import models

    tables = {"Adult": adult(), **{name: bundled(name) for name in ("breast_cancer", "wine", "digits")}}
    for name, told in tables.items():
        data = scaled(told)
        norm = float(np.sqrt(data[0].shape[1]))
        makers: dict[str, Model] = {
            "logistic": lambda e, x, y, _b, r=norm: models.LogisticRegression(  # type: ignore[misc]
                epsilon=e, data_norm=r, max_iter=300
            ).fit(x, y),
            "GaussianNB": lambda e, x, y, b: models.GaussianNB(epsilon=e, bounds=b).fit(x, y),
            "forest": lambda e, x, y, b: models.RandomForestClassifier(
                epsilon=e, bounds=b, classes=np.unique(y), n_estimators=10
            ).fit(x, y),
            "tree": lambda e, x, y, b: models.DecisionTreeClassifier(epsilon=e, bounds=b, classes=np.unique(y)).fit(
                x, y
            ),
        }
        for way, make in makers.items():
            row(f"{name} {way}", data, make, classes, seeds)
    diabetes = bundled("diabetes")
    row(
        "diabetes linear",
        scaled(diabetes),
        lambda e, x, y, b: models.LinearRegression(epsilon=e, bounds_X=b, bounds_y=(25.0, 346.0)).fit(x, y),
        r_squared,
        seeds,
    )
    for name, clusters in (("breast_cancer", 2), ("wine", 3), ("digits", 10), ("diabetes", 3)):
        data = scaled(diabetes if name == "diabetes" else tables[name])
        row(
            f"{name} k-means {clusters}",
            data,
            lambda e, x, _y, b, k=clusters: models.KMeans(k, epsilon=e, bounds=b).fit(x),  # type: ignore[misc]
            distance,
            seeds,
        )


def ebm(seeds: int) -> None:
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    def made(cls: Any, rate: float | None, low: Any, high: Any, **more: Any) -> Any:
        settings = {} if rate is None else {"learning_rate": rate}
        bounds = {place: (float(a), float(b)) for place, (a, b) in enumerate(zip(low, high, strict=True))}
        return cls(delta=1e-6, privacy_bounds=[bounds[place] for place in bounds], **settings, **more)

    for name, data in (("Adult", adult()), ("breast_cancer", bundled("breast_cancer"))):
        for rate in (None, 0.1):
            row(
                f"{name} DP-EBM{'' if rate is None else ' rate .1'}",
                data,
                lambda e, x, y, b, r=rate: made(  # type: ignore[misc]
                    DPExplainableBoostingClassifier, r, *b, epsilon=e
                ).fit(x, y),
                classes,
                seeds,
            )
    row(
        "diabetes DP-EBM",
        bundled("diabetes"),
        lambda e, x, y, b: made(
            DPExplainableBoostingRegressor, None, *b, epsilon=e, privacy_target_min=25.0, privacy_target_max=346.0
        ).fit(x, y),
        r_squared,
        seeds,
    )


BLOBS = [(k, width, kind) for k in (3, 8) for width in (2, 4, 10) for kind in ("far", "near", "mixed")]
"""Clusters, columns, and how far apart they lie: a third of their distance, or into each other."""


def blobs(k: int, width: int, kind: str, seed: int) -> Any:
    """Return 2,000 rows of k round clusters between −1 and 1, drawn by a seed."""
    chance = np.random.default_rng(1000 * seed + 17 * k + width)
    centers = chance.uniform(-0.8, 0.8, (k, width))
    if kind == "far":
        pool, chosen = chance.uniform(-0.8, 0.8, (400, width)), [np.zeros(width)]
        for _ in range(k):
            away = np.min([((pool - center) ** 2).sum(axis=1) for center in chosen], axis=0)
            chosen.append(pool[away.argmax()])
        centers = np.array(chosen[1:])
    rows = centers[chance.integers(0, k, 2000)]
    return np.clip(rows + chance.normal(0, {"far": 0.06, "near": 0.15, "mixed": 0.3}[kind], rows.shape), -1, 1)


def clusters(seeds: int) -> None:
    """Print the cost of k-means on rows that were made up, and what components of wine hold."""
    from diffprivlib import models
    from sklearn.cluster import KMeans

    for k, width, kind in BLOBS:
        ends, shown = (-np.ones(width), np.ones(width)), []
        for epsilon in EPSILONS:
            made = [(models.KMeans(k, epsilon=epsilon, bounds=ends), blobs(k, width, kind, i)) for i in range(seeds)]
            shown.append(float(np.mean([distance(model.fit(x), x, None)[0] for model, x in made])))
        x = blobs(k, width, kind, 0)
        plain = distance(KMeans(k, n_init=5, random_state=0).fit(x), x, None)[0]
        costs = " ".join(f"{cost:.4f}" for cost in shown)
        print(f"{k} clusters, {width:2d} columns, {kind:6s} {costs}  not private {plain:.4f}", flush=True)

    def held(model: Any, x: Any, _: Any) -> list[float]:
        basis, centered = np.linalg.qr(model.components_.T)[0], x - x.mean(axis=0)
        return [float(((centered @ basis) ** 2).sum() / (centered**2).sum())]

    def components(epsilon: float, x: Any, _y: Any, bounds: Any) -> Any:
        return models.PCA(3, epsilon=epsilon, data_norm=float(np.sqrt(x.shape[1])), bounds=bounds).fit(x)

    row("wine PCA 3", scaled(bundled("wine")), components, held, seeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=("diffprivlib", "ebm", "clusters"))
    parser.add_argument("--seeds", type=int, default=10)
    told = parser.parse_args()
    warnings.simplefilter("ignore")
    {"diffprivlib": diffprivlib, "ebm": ebm, "clusters": clusters}[told.peer](told.seeds)


if __name__ == "__main__":
    main()
