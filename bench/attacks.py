"""Attacks: how long they take, what they find beside anonymeter and slow references, and false alarms.

    python bench/attacks.py [linkage|local|similarity|films] [ROWS]
    python bench/attacks.py rates [ROWS]       # beside anonymeter (bench/envs/anonymeter) and slow references
    python bench/attacks.py null [RUNS]        # tables of other people: how many runs raise a false alarm
    python bench/attacks.py shifted            # similarity, days shifted and ratings changed

linkage: a list of a million people against a published table of the same people, zip cut to four digits, ages in
ranges of five.  local: the same with ranges that overlap, as local recoding makes them.  similarity: everybody by eight
events known about, against a million published ones of some 27,000 people.  films: ten thousand
people and a thousand films, eight ratings known about, against the pseudonymized table.  Beside linkage stands the
floor: DuckDB joins the two tables by equal labels, which each person had to be given first.

rates: households behind masks of strength near zero and strong ones, a copy, and other people.  linkability of incrowd
asks whether a published row is nearest to both halves among rows with equal halves; anonymeter asks whether the two
nearest rows have the same place, so that of rows that agree in one half only one counts.  inference of anonymeter
accepts a number within 5 % of the true one; incrowd one that at most 1 % of the people are nearer to.
To install the peer: python -m venv bench/envs/anonymeter; bench/envs/anonymeter/bin/pip install anonymeter
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import csv

import incrowd
from incrowd.attacks import attack_of
from incrowd.attacks.finding import AttackVerdict, Finding
from incrowd.attacks.histories import similarity
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.attacks.records.linkage import linkage
from incrowd.workflows.attack.attack import AttackOrder, attack
from incrowd.workflows.attack.publication import lookup_of, masks_of
from tests.attacks import test_counts, test_household_linkage
from tests.attacks.crowds import pseudonymized, ratings, table_of
from tests.attacks.households import POLICY, STRONG, WEAK, households
from tests.attacks.test_histories import changed_ratings
from tests.policies import with_ledger

PEER = Path(__file__).parent / "envs" / "anonymeter" / "bin" / "python"
KNOWN, SECRET = ("âge", "revenu", "sexe"), "loyer"
NUMBERS = ("âge", "revenu", "loyer")


def people(rows: int, seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "zip": chance.integers(10000, 99999, rows).astype(str),
            "age": chance.integers(0, 100, rows).astype(str),
            "sex": chance.choice(["F", "M"], rows),
            "ill": chance.integers(0, 50, rows).astype(str),
        }
    )


def coarse(table: pa.Table, width: int, *, shifted: bool = False) -> pa.Table:
    chance = np.random.default_rng(7)
    ages = np.array(table.column("age").to_pylist(), int)
    start = ages - chance.integers(0, width, len(ages)) if shifted else ages // width * width
    labels = np.char.add(np.char.add(start.astype(str), "-"), (start + width - 1).astype(str))
    zips = np.char.add(np.array(table.column("zip").to_pylist()).astype("U4"), "*")
    return table.set_column(0, "zip", pa.array(zips)).set_column(1, "age", pa.array(labels))


def floor(published: pa.Table, listed: pa.Table) -> float:
    begun = time.perf_counter()
    engine = duckdb.connect()
    engine.register("published", published)
    engine.register("listed", listed)
    engine.sql(
        "SELECT count(*) FROM (SELECT zip, age, sex, count(*) AS n FROM published GROUP BY ALL) p"
        " JOIN listed l ON p.zip = l.zip AND p.age = l.age AND p.sex = l.sex"
    ).fetchall()
    return time.perf_counter() - begun


def linked(rows: int, *, shifted: bool) -> None:
    original, outsiders = people(rows, 1), people(rows // 10, 2)
    published = coarse(original, 5, shifted=shifted)
    knowledge = Knowledge(original, ("zip", "age", "sex"), "ill", trials=rows)
    measured("linkage", rows, lambda: linkage(PublishedTable(published), knowledge, outsiders))
    if not shifted:
        print(f"floor, an equality join in DuckDB: {floor(published, coarse(original, 5)):.1f} s")


def matched(persons: int, films: int, trials: int) -> None:
    original, outsiders = ratings(persons, films, 1), ratings(min(persons, 1000), films, 2, "q")
    published = pseudonymized(original, "who", 3)
    slack = {"rating": 1.0, "day": 14.0}
    known = ("film", "rating", "day")
    knowledge = Knowledge(original, known, person="who", item="film", slack=slack, trials=trials)
    measured("similarity", original.num_rows, lambda: similarity(PublishedTable(published), knowledge, outsiders))


def masked(release: dict[str, Any], rows: pa.Table, seed: int) -> PublishedTable:
    with TemporaryDirectory() as folder:
        policy = incrowd.load_policy(with_ledger({**POLICY, "release": release}, Path(folder)))
        lookups = {column.name: lookup_of(column) for column in policy.schema.columns}
        return PublishedTable(table_of(policy, rows, seed), lookups, masks=masks_of(policy.plan.steps))


def releases(rows: pa.Table, strangers: pa.Table) -> dict[str, PublishedTable]:
    tables = {"a copy": PublishedTable(rows, masks={}), "other people": PublishedTable(strangers, masks={})}
    for strength, masks in (("weak", WEAK), ("strong", STRONG)):
        tables |= {f"{strength} {name}": masked(release, rows, 6) for name, release in masks.items()}
    return tables


def slow_rates(published: PublishedTable, people: pa.Table, everyone: int) -> tuple[float, float]:
    """Return linkage by distance and inference by the nearest row, pair by pair, in units of standard deviations."""
    rows, persons = published.table.to_pylist(), people.to_pylist()
    spread = {name: float(np.std([float(row[name]) for row in rows])) or 1.0 for name in NUMBERS[:2]}
    rents = sorted(float(person[SECRET]) for person in persons)
    linked = inferred = 0
    for person in persons[:everyone]:
        near = min(
            rows,
            key=lambda row: (
                (row["sexe"] != person["sexe"]),
                sum(((float(row[name]) - float(person[name])) / spread[name]) ** 2 for name in NUMBERS[:2]),
            ),
        )
        far = abs(float(near[SECRET]) - float(person[SECRET]))
        closer = sum(abs(rent - float(near[SECRET])) < far * (1 - 1e-12) for rent in rents)
        right = closer <= 0.01 * len(rents)
        inferred += right
        linked += right and near["maladie"] == person["maladie"]
    return linked / everyone, inferred / everyone


def compared(rows: int) -> None:
    people, outsiders, strangers = (households(rows, seed) for seed in (1, 2, 3))
    tables = releases(people, strangers)
    theirs = peer_rates(people, outsiders, tables) if PEER.is_file() else {}
    names = ("linkage", "inference", "linkability", "closest-record")
    print("success on people in the data / on the control group; slow: pair by pair, success alone")
    print(
        f"{'table':<24}{'linkage':>12}{'slow':>6}{'inference':>12}{'slow':>6}{'anonymeter':>12}{'linkability':>13}"
        f"{'anonymeter':>12}{'closest-record':>16}"
    )
    for label, published in tables.items():
        knowledge = Knowledge(people, KNOWN, SECRET)
        ours = {name: both(attack_of(name)(published, knowledge, outsiders)) for name in names}
        slow = slow_rates(published, people, min(rows, 300))
        peer = {name: f"{a:.2f}/{b:.2f}" for name, (a, b) in theirs.get(label, {}).items()}
        print(
            f"{label:<24}{ours['linkage']:>12}{slow[0]:>6.2f}{ours['inference']:>12}{slow[1]:>6.2f}"
            f"{peer.get('inference', '-'):>12}{ours['linkability']:>13}{peer.get('linkability', '-'):>12}"
            f"{ours['closest-record']:>16}",
            flush=True,
        )


def both(found: Finding) -> str:
    return f"{found.success.estimate:.2f}/{0.0 if found.control is None else found.control.estimate:.2f}"


def peer_rates(people: pa.Table, outsiders: pa.Table, tables: dict[str, PublishedTable]) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        files = {"data": people, "control": outsiders}
        files |= {f"published-{name}": published.table for name, published in tables.items()}
        for name, table in files.items():
            csv.write_csv(table, f"{folder}/{name}.csv")
        driver = Path(__file__).parent / "peers" / "anonymeter_rates.py"
        words = [str(PEER), str(driver), folder, json.dumps(KNOWN), json.dumps(SECRET)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        rates: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return rates


def null_case(kind: str, run: int) -> tuple[PublishedTable, Knowledge, pa.Table]:
    """Return a table of strangers, what is known of people who are not in it, and a control group of the same kind."""
    seeds = [10_000 + 3 * run + place for place in range(3)]
    if kind == "counts":
        people, outsiders, strangers = (test_counts.people(100, seed) for seed in seeds)
        first, *rest = (test_counts.counted(strangers, columns) for columns in combinations(test_counts.COLUMNS, 3))
        return replace(first, earlier=tuple(rest)), Knowledge(people, test_counts.COLUMNS), outsiders
    if kind == "households of four":
        marked = zip(seeds, "abc", strict=True)
        people, outsiders, strangers = (test_household_linkage.census(60, seed, mark) for seed, mark in marked)
        published = PublishedTable(pseudonymized(strangers, "ménage", run), masks={})
        return published, Knowledge(people, ("âge", "sexe"), "revenu", person="ménage", seed=run), outsiders
    if kind == "histories":
        marked = zip(seeds, "abc", strict=True)
        people, outsiders, strangers = (ratings(150, 100, seed, mark) for seed, mark in marked)
        knowledge = Knowledge(people, ("film", "rating", "day"), person="who", item="film", trials=100, seed=run)
        return PublishedTable(pseudonymized(strangers, "who", run)), knowledge, outsiders
    people, outsiders, strangers = (households(150, seed) for seed in seeds)
    knowledge = Knowledge(people, KNOWN, SECRET, seed=run)
    if kind == "two releases":
        other = masked(WEAK["rounding"], strangers, run)
        return replace(masked(WEAK["noise"], strangers, run), earlier=(other,)), knowledge, outsiders
    published = PublishedTable(strangers, masks={}) if kind == "copy" else masked(WEAK[kind], strangers, run)
    return published, knowledge, outsiders


def false_alarms(runs: int) -> None:
    """Attack tables of other people from the same population: every leak is a false alarm."""
    kinds = ("copy", "noise", "rank-swap", "two releases", "counts", "households of four", "histories")
    alarms, done = dict.fromkeys(kinds, 0), Counter[str]()
    for run in range(runs):
        kind = kinds[run % len(kinds)]
        published, knowledge, outsiders = null_case(kind, run)
        order = AttackOrder(("similarity", "baskets")) if kind == "histories" else AttackOrder()
        report = attack((("table", published),), knowledge, outsiders, order)
        alarms[kind] += any(finding.verdict is AttackVerdict.LEAK for finding in report.findings)
        done.update(finding.attack for finding in report.findings)
    print(f"{runs} runs, {done.total()} attacks on tables of other people: false alarms {alarms}")
    print(", ".join(f"{name} {times}" for name, times in sorted(done.items())))


def shifted() -> None:
    people, outsiders = ratings(1000, 300, 1), ratings(400, 300, 2, "q")
    for days, stars in ((0, 0), (14, 0), (14, 1), (60, 1), (365, 1), (365, 4)):
        table = PublishedTable(pseudonymized(changed_ratings(people, days, stars), "who", 3))
        knowledge = Knowledge(people, ("film", "rating", "day"), person="who", item="film", trials=400)
        found = similarity(table, knowledge, outsiders)
        control = 0 if found.control is None else found.control.hits
        print(
            f"days within {days:>3}, ratings within {stars}: {found.success.hits} of {found.success.of}; "
            f"control {control}"
        )


def measured(name: str, rows: int, attack: Callable[[], Finding]) -> None:
    begun, used = time.perf_counter(), time.process_time()
    found = attack()
    took, cpu = time.perf_counter() - begun, time.process_time() - used
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    outside = "–" if found.control is None else f"{found.control.estimate:.4f}"
    print(
        f"{name}, {rows:,} published rows, {found.success.of:,} people: {took:.1f} s ({cpu:.1f} s CPU), {peak:.2f} GB"
    )
    print(f"  success {found.success.estimate:.4f}, baseline {found.baseline.estimate:.4f}, control group {outside}")


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else "linkage"
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else {"rates": 600, "null": 200}.get(what, 1_000_000)
    others: dict[str, Callable[[], None]] = {
        "rates": lambda: compared(rows),
        "null": lambda: false_alarms(rows),
        "shifted": shifted,
    }
    if what in others:
        others[what]()
    elif what in ("linkage", "local"):
        linked(rows, shifted=what == "local")
    elif what == "similarity":
        matched(rows // 37, max(100, rows // 100), rows // 37)
    else:
        matched(10_000, 1_000, 10_000)


if __name__ == "__main__":
    main()
