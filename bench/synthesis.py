"""Synthetic tables: error of pairs and triples, models trained on them, CPU seconds and memory, beside the peers.

    INCROWD_ADULT=folder python bench/synthesis.py [--peers FOLDER]   # Adult, nine columns, by ε; a million rows
    INCROWD_ADULT=folder python bench/synthesis.py --wide             # 14 columns; 40 columns; a column of 1,000 values
    INCROWD_ADULT=folder python -m bench.synthesis --tables [NAME] --peers FOLDER --results FILE  # four tables, ε = 1

Everything goes through `incrowd.synthesize` with real coins at δ = 1e-9, from a Parquet file, in a process of its own:
CPU seconds are those of the call, the peak is that of the whole process, with what pyarrow loads (pandas, if it is
installed: 34 MB).  TV is the mean total variation of all tables of two and of three columns against the rows.  AUC:
logistic regression and gradient boosting (scikit-learn) trained on a synthetic copy of 70 % of the rows, tested on the
other 30 %.  Ages are compared in their intervals of five years.

Of Adult's columns nine are at hand; the 14 are those and five that imitate what the others are like: sizes and
dependence are as in the usual extract, the values are invented.

FOLDER holds an environment for each peer: FOLDER/mbi/bin/python with mbi, jax and pandas,
FOLDER/datasynthesizer/bin/python with DataSynthesizer, FOLDER/smartnoise/bin/python with smartnoise-synth, and
FOLDER/sdmetrics/bin/python with sdmetrics, which scores all of them.  A peer that is not there is left out; one that
uses more CPU than its limit is stopped and says so.  With `--tables` the slow peers come last, every cell is appended
to FILE as soon as it is there, and what FILE has is not run again.  At the end each measure of a peer is compared with
each of `marginals`, with and without target, and `tree` by itself; the exit code is 1 if a peer is ahead of `marginals`
by more than chance.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv, parquet

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
RUNS, MANY = 3, 10**6
PEERS = {
    "mbi_mst": ("mbi", "mbi_mst"),
    "smartnoise mst": ("smartnoise", "smartnoise_synth", "mst"),
    "mbi_aim": ("mbi", "mbi_aim"),
    "data_synthesizer": ("datasynthesizer", "data_synthesizer"),
    "smartnoise aim": ("smartnoise", "smartnoise_synth", "aim"),
}
MEASURES = {"pairs": 0.002, "triples": 0.003, "AUC log": -0.006, "AUC gbm": -0.006, "sdmetrics": -0.002}
"""By how much one run may be behind by chance; below 0 where more is better."""
OURS = {"marginals": "marginals", "with target": "marginals", "tree": "tree"}
SLOW = ("mbi_aim", "data_synthesizer", "smartnoise aim")
LIMIT, LIMITS = 400, {"data_synthesizer": 200}  # CPU seconds of a process
TRIPLES = 300  # tables of three columns that are compared


def adult() -> pa.Table:
    """Nine columns of Adult."""
    folder = os.environ.get("INCROWD_ADULT")
    if folder is None:
        raise SystemExit("set INCROWD_ADULT to a folder with adult.csv")
    options = csv.ParseOptions(delimiter=";")
    return csv.read_csv(Path(folder) / "adult.csv", parse_options=options).select(NAMES)


def declared(table: pa.Table) -> dict[str, Any]:
    """Columns as if they had been declared: for Adult the lists of values are public."""
    drop = {"missing": "drop", "outside": "drop"}
    ages = {"type": "integer", "bounds": [15, 94], "hierarchy": {"intervals": [5]}, **drop}
    return {
        name: ages if name == "age" else {"categories": sorted(map(str, set(table[name].to_pylist()))), **drop}
        for name in table.column_names
    }


def release_one(file: Path, method: str, epsilon: str, target: str = "") -> None:
    """Release a file by a method; write what came of it and print CPU seconds and peak memory as one JSON object."""
    import incrowd

    columns = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        release = {"method": method, "epsilon": epsilon, "delta": "1e-9"}
        release |= {"target_column": target} if target else {}
        policy = {
            "incrowd": 1,
            "dataset": {"name": "bench"},
            "columns": columns,
            "release": release | ({"levels": {"age": 1}} if "age" in columns else {}),
            "ledger": f"sqlite:///{folder}/ledger.sqlite",
        }
        start = time.process_time()
        made = incrowd.synthesize(str(file), policy)
        spent = time.process_time() - start
    peak = peak_memory()
    parquet.write_table(made.result.to_arrow(), file.with_suffix(".out"))
    print(json.dumps({"seconds": spent, "peak": peak}))


def peak_memory() -> int:
    """Return the most memory this process had, in MB; not `ru_maxrss`, which holds that of whoever started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


def released(
    table: pa.Table, method: str, epsilon: str, columns: dict[str, Any], target: str = ""
) -> tuple[Codes, float, int]:
    """Release a table in a process of its own; return the drawn rows as codes, CPU seconds and peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "rows.parquet")
        parquet.write_table(table, file)
        file.with_suffix(".json").write_text(json.dumps(columns), encoding="utf-8")
        found = _told([sys.executable, __file__, "--one", str(file), method, epsilon, target])
        return coded(parquet.read_table(file.with_suffix(".out")), columns), found["seconds"], found["peak"]


def peer(name: str, python: Path, codes: Codes, sizes: list[int]) -> tuple[Codes, float, int]:
    """Let a peer, in its own environment, make as many rows from codes."""
    with tempfile.TemporaryDirectory() as folder:
        file, names = Path(folder, "rows.csv"), [f"c{n}" for n in range(len(codes))]
        csv.write_csv(pa.table(list(codes), names), file)
        _, script, *more = PEERS[name]
        place = Path(__file__).parent / "peers" / f"{script}.py"
        found = _told([str(python), str(place), str(file), json.dumps(sizes), *more], LIMITS.get(name, LIMIT))
        made = csv.read_csv(file.with_suffix(".out"))
    return np.array([made[each].to_numpy() for each in names]), found["seconds"], found["peak"]


def _told(command: list[str], limit: int = LIMIT) -> dict[str, Any]:
    limited = partial(resource.setrlimit, resource.RLIMIT_CPU, (limit, limit + 5))
    done = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=limited)
    if done.returncode == -signal.SIGXCPU:
        raise subprocess.TimeoutExpired(command, limit)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise SystemExit(f"{command[1]} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def coded(table: pa.Table, columns: dict[str, Any]) -> Codes:
    """Codes of a table, a column each; whatever is not declared is one class more."""
    found = []
    for name, told in columns.items():
        values = table[name].to_pylist()
        if name == "age":
            found.append([16 if value is None else (value - 15) // 5 for value in values])
        else:
            place = {value: number for number, value in enumerate(told["categories"])}
            found.append([place.get(str(value), len(place)) for value in values])
    return np.array(found, np.int64)


def distance(one: Codes, other: Codes, size: int) -> float:
    """Mean total variation over all tables of so many columns."""
    errors = []
    tables = list(combinations(range(len(one)), size))
    if len(tables) > TRIPLES and size > 2:
        chosen = np.random.default_rng(1).choice(len(tables), TRIPLES, replace=False)
        tables = [tables[number] for number in chosen]
    for columns in tables:
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
    print("  ".join(f"{cell:>16}" if n == 1 else f"{cell:>8}" for n, cell in enumerate(cells)), flush=True)


def run(table: pa.Table, method: str, epsilon: str, columns: dict[str, Any]) -> None:
    """Print the means of three runs, and the largest peak."""
    truth, rows = coded(table, columns), []
    for seed in range(RUNS):
        drawn, spent, peak = released(table, method, epsilon, columns)
        order = np.random.default_rng(seed).permutation(len(table))
        split = 7 * len(order) // 10
        copy, _, _ = released(table.take(pa.array(order[:split])), method, epsilon, columns)
        scores = auc(copy, truth[:, order[split:]])
        rows.append((distance(truth, drawn, 2), distance(truth, drawn, 3), *scores, spent, peak))
    pairs, triples, logistic, boosting, spent, _ = np.mean(rows, axis=0)
    told = [f"{each:.4f}" for each in (pairs, triples)] + [f"{each:.3f}" for each in (logistic, boosting)]
    line("Adult", method, epsilon, *told, f"{spent:.1f}", max(int(each[-1]) for each in rows))


def beside(table: pa.Table, columns: dict[str, Any], peers: Path) -> None:
    """Print what each peer that is there makes of the same rows at ε = 1."""
    truth = coded(table, columns)
    sizes = [16 if name == "age" else len(told["categories"]) for name, told in columns.items()]
    for name in ("mbi_mst", "data_synthesizer"):
        python = peers / PEERS[name][0] / "bin" / "python"
        if not python.exists():
            line("Adult", name, "1", "not there")
            continue
        drawn, spent, peak = peer(name, python, truth, sizes)
        errors = [f"{distance(truth, drawn, size):.4f}" for size in (2, 3)]
        line("Adult", name, "1", *errors, "", "", f"{spent:.1f}", peak)


def fourteen() -> pa.Table:
    """Adult with five columns more, which imitate in size and dependence those that are not at hand."""
    table, chance = adult(), np.random.default_rng(3)
    rows = len(table)
    rich = np.array(table["salary-class"].to_pylist()) == ">50K"
    married = np.char.startswith(np.array(table["marital-status"].to_pylist(), str), "Married")
    men = np.array(table["sex"].to_pylist()) == "Male"
    hours = np.clip(np.where(chance.random(rows) < 0.5, 40, chance.normal(38 + 6 * rich + 3 * men, 11)), 1, 99)
    gains = np.where(chance.random(rows) < 0.04 + 0.17 * rich, 1 + chance.geometric(0.03, rows) % 99, 0)
    losses = np.where(chance.random(rows) < 0.03 + 0.06 * rich, 30 + chance.binomial(40, 0.3, rows), 0)
    kin = np.where(married, np.where(men, 0, 1), 2 + chance.integers(0, 4, rows))
    more = {
        "relationship": kin,
        "hours": hours.astype(int),
        "gain": gains,
        "loss": losses,
        "weight": chance.integers(0, 100, rows),
    }
    for name, column in more.items():
        table = table.append_column(name, pa.array(column.astype(str)))
    return table


def forty(rows: int = 20_000) -> pa.Table:
    """Return 40 columns that depend on each other."""
    chance = np.random.default_rng(0)
    hidden = chance.integers(0, 4, rows)
    mixed = [
        np.where(chance.random(rows) < 0.6, (hidden + n) % 4, chance.integers(0, 4 + n % 5, rows)) for n in range(40)
    ]
    return pa.table({f"c{n}": column.astype(str) for n, column in enumerate(mixed)})


def wide() -> Iterator[tuple[str, pa.Table]]:
    """Return 14 columns, 40 columns that depend on each other, and a table with a column of 1,000 values."""
    yield "14", fourteen()
    yield "40", forty()
    chance, rows = np.random.default_rng(1), 20_000
    code = chance.zipf(1.3, rows) % 1000
    few = {f"c{n}": ((code + chance.integers(0, 3, rows)) % 6).astype(str) for n in range(8)}
    yield "1000", pa.table({"code": code.astype(str)} | few)


def once(name: str, table: pa.Table, method: str, columns: dict[str, Any]) -> None:
    """Print one run at ε = 1: the error of pairs."""
    drawn, spent, peak = released(table, method, "1", columns)
    pairs = distance(coded(table, columns), drawn, 2)
    line(name, method, "1", f"{pairs:.4f}", "", "", "", f"{spent:.1f}", peak)


def rare() -> pa.Table:
    """Twelve columns of 40,000 people, 3 % of whom have what the last one says; three of the others matter for it."""
    chance, rows = np.random.default_rng(6), 40_000
    risk, age, smokes = (chance.integers(0, size, rows) for size in (5, 10, 2))
    others = {f"c{n}": (risk + chance.integers(0, 6, rows)) % (3 + n) for n in range(8)}
    odds = np.exp(-6.4 + 0.55 * risk + 0.22 * age + 0.9 * smokes)
    ill = chance.random(rows) < odds / (1 + odds)
    columns = {"risk": risk, "age_group": age, "smokes": smokes, **others, "ill": ill.astype(int)}
    return pa.table({name: column.astype(str) for name, column in columns.items()})


def tables() -> Iterator[tuple[str, pa.Table]]:
    """Return the tables on which all are compared; the last column of each is the one that a model predicts."""
    yield "adult", adult()
    wide_ones = dict(wide())
    last = pa.array([str(int(value in "01")) for value in wide_ones["40"]["c39"].to_pylist()])
    yield "40", wide_ones["40"].drop_columns(["c39"]).append_column("c39", last)
    code = wide_ones["1000"]
    yield "1000", code.append_column("even", pa.array([str(int(c) % 2) for c in code["c7"].to_pylist()]))
    yield "rare", rare()


def score(truth: Codes, drawn: Codes, python: Path) -> float:
    """Return what sdmetrics says of synthetic codes, in its own environment; no number where that is not there.

    Of pairs it counts those alone whose association in the rows is .3 or more.
    """
    if not python.exists():
        return float("nan")
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("truth.csv", "made.csv")]
        for codes, file in zip((truth, drawn), files, strict=True):
            csv.write_csv(pa.table(list(codes), [f"c{n}" for n in range(len(codes))]), file)
        script = Path(__file__).parent / "peers" / "sdmetrics_score.py"
        return float(_told([str(python), str(script), *map(str, files)])["score"])


@dataclass(frozen=True)
class Compared:
    """A table of which everybody gets the same 70 %; models are tested on the rest."""

    name: str
    table: pa.Table
    peers: Path

    @cached_property
    def columns(self) -> dict[str, Any]:
        return declared(self.table)

    @cached_property
    def parts(self) -> tuple[pa.Table, pa.Table]:
        """Rows to learn from, and the others."""
        order = np.random.default_rng(1).permutation(len(self.table))
        split = 7 * len(order) // 10
        return self.table.take(pa.array(order[:split])), self.table.take(pa.array(order[split:]))

    @cached_property
    def truth(self) -> Codes:
        return coded(self.parts[0], self.columns)

    def made(self, label: str) -> tuple[Codes, float, int]:
        """Return what a method or a peer makes of the rows, its CPU seconds and its peak."""
        if label == "truth":
            return self.truth, 0.0, 0
        if label in OURS:
            target = self.table.column_names[-1] if label == "with target" else ""
            return released(self.parts[0], OURS[label], "1", self.columns, target)
        sizes = [16 if name == "age" else len(told["categories"]) for name, told in self.columns.items()]
        return peer(label, self.peers / PEERS[label][0] / "bin" / "python", self.truth, sizes)

    def cell(self, label: str) -> dict[str, Any]:
        """Return errors, AUC of models trained on synthetic rows, and sdmetrics' score of one run, or why not."""
        key = {"table": self.name, "label": label}
        if label in PEERS and not (self.peers / PEERS[label][0] / "bin" / "python").exists():
            return key | {"not": "not there"}
        try:
            drawn, spent, peak = self.made(label)
        except subprocess.TimeoutExpired as error:
            return key | {"not": f"not finished in {error.timeout:.0f} CPU seconds"}
        except SystemExit as error:
            return key | {"not": f"failed: {str(error).splitlines()[-1]}"}
        held = coded(self.parts[1], self.columns)
        metrics = score(self.truth, drawn, self.peers / "sdmetrics" / "bin" / "python")
        found = [*(distance(self.truth, drawn, size) for size in (2, 3)), *auc(drawn, held), metrics]
        return key | dict(zip(MEASURES, found, strict=True)) | {"seconds": spent, "peak": peak}


def shown(cell: dict[str, Any]) -> None:
    """Print a cell."""
    if "not" in cell:
        line(cell["table"], cell["label"], "1", cell["not"])
        return
    measures = [f"{cell[name]:.{4 if slack > 0 else 3}f}" for name, slack in MEASURES.items()]
    line(cell["table"], cell["label"], "1", *measures, f"{cell['seconds']:.1f}", cell["peak"])


def behind(ours: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    """Return the measures in which a method of ours is behind a peer by more than chance."""
    return [
        name for name, slack in MEASURES.items() if (ours[name] - theirs[name]) * (1 if slack > 0 else -1) > abs(slack)
    ]


def all_beside(only: str, peers: Path, results: Path) -> bool:
    """Print what every method and every peer makes of each table, and who is behind; return whether `marginals` is."""
    seen = [json.loads(each) for each in results.read_text("utf-8").splitlines()] if results.exists() else []
    done = {(cell["table"], cell["label"]): cell for cell in seen}
    compared = [Compared(name, table, peers) for name, table in tables() if only in ("all", name)]
    quick = [label for label in ("truth", *OURS, *PEERS) if label not in SLOW]
    order = [(label, item) for label in quick for item in compared] + [
        (label, item) for item in compared for label in SLOW
    ]
    for label, item in order:
        place = (item.name, label)
        if place not in done:
            done[place] = item.cell(label)
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(done[place]) + "\n")
        shown(done[place])
    missed = False
    for label, item, other in ((label, item, other) for label in OURS for item in compared for other in PEERS):
        theirs = done[item.name, other]
        if "not" not in theirs and (lost := behind(done[item.name, label], theirs)):
            print(f"{item.name}: {label} is behind {other} in {', '.join(lost)}")
            missed |= label == "marginals"
    return missed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--tables", nargs="?", const="all")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        release_one(Path(options.one[0]), *options.one[1:])
        return
    if options.tables:
        line("table", "method", "epsilon", "pairs", "triples", "AUC log", "AUC gbm", "sdmetric", "CPU s", "peak MB")
        with tempfile.TemporaryDirectory() as folder:
            results = options.results or Path(folder, "results")
            sys.exit(all_beside(options.tables, options.peers or Path("peers"), results))
    line("table", "method", "epsilon", "pairs", "triples", "AUC log", "AUC gbm", "CPU s", "peak MB")
    if options.wide:
        for name, table in wide():
            for method in ("marginals", "tree"):
                once(name, table, method, declared(table))
        return
    table = adult()
    columns = declared(table)
    for method, epsilon in (*(("marginals", each) for each in ("0.5", "1", "3")), ("tree", "1")):
        run(table, method, epsilon, columns)
    if options.peers is not None:
        beside(table, columns, options.peers)
    once("1M rows", table.take(pa.array(np.random.default_rng(1).integers(0, len(table), MANY))), "marginals", columns)


if __name__ == "__main__":
    main()
