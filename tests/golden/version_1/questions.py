"""Policies, rows and questions of the golden answers: every statistic, every way to pay, one and two datasets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

_COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 99], "outside": "ends"},
    "cost": {"type": "decimal", "bounds": [0, 1000], "outside": "ends"},
    "ward": {"categories": ["heart", "lung"]},
    "day": {"type": "date", "bounds": ["2024-01-01", "2025-12-31"], "outside": "ends"},
    "smoker": {"type": "boolean"},
    "note": {},
}
_TESTS = {
    "source": "tests.csv",
    "unit": "patient",
    "max_rows": 3,
    "columns": {
        "patient": {"role": "identifier"},
        "score": {"type": "integer", "bounds": [1, 5], "outside": "ends"},
        "kind": {"categories": ["x", "y"]},
    },
}
_WARDS = {
    "source": "wards.csv",
    "public": "true",
    "columns": {"ward": {"categories": ["heart", "lung"]}, "floor": {"type": "integer", "bounds": [0, 3]}},
}
LEDGER = "questions.sqlite"


def _policy(name: str, unit: dict[str, Any], **more: Any) -> dict[str, Any]:
    person = {"patient": {"role": "identifier"}} if "column" in unit else {}
    return {
        "incrowd": 1,
        "dataset": {"name": name, "unit": unit, "separate": "golden files"},
        "source": "visits.csv" if person else "staff.csv",
        "columns": person | _COLUMNS,
        "budget": {"epsilon": 100, "delta": "1e-3"},
        "ledger": f"sqlite:///{LEDGER}",
        **({"queries": {}} | more),
    }


POLICIES: dict[str, dict[str, Any]] = {
    "visits": _policy("visits", {"column": "patient", "max_rows": 2}, tables={"tests": _TESTS, "wards": _WARDS}),
    "staff": _policy("staff", {}),
    "swapped": _policy("swapped", {"column": "patient", "adjacency": "replace-one"}),
    "clinic": _policy("clinic", {"column": "patient", "max_rows": 3}),
    "limited": _policy("limited", {"column": "patient", "max_rows": 4}, queries={"max_groups": 1, "most_epsilon": 2}),
}
TEACHING = {
    "incrowd": 1,
    "dataset": {"name": "teaching"},
    "source": "teaching.csv",
    "columns": {
        "sex": {"categories": ["F", "M"]},
        "dept": {"categories": ["law", "art", "bio"]},
        "age": {"type": "integer", "bounds": [0, 120]},
        "pay": {"type": "integer", "bounds": [0, 100000], "role": "sensitive"},
    },
    "queries": {},
    "budget": {"unbounded": "made-up people, for a lecture"},
    "ledger": "sqlite:///classical.sqlite",
}


@dataclass(frozen=True)
class Asked:
    """A question to a desk of some policies, what is paid for it, and the format of its folder."""

    name: str
    desk: tuple[str, ...]
    sql: str | tuple[str, ...]
    terms: dict[str, str] = field(default_factory=lambda: {"epsilon": "1"})
    form: str = "csv"
    analyst: str | None = None
    account: str | None = None


_V, _S, _W, _L = ("visits",), ("staff",), ("swapped",), ("limited",)
_HIDDEN = {"epsilon": "1", "delta": "1e-6"}
_FIRST = "WITH both AS (SELECT patient, age AS x FROM visits UNION ALL SELECT patient, age AS x FROM clinic) "
ASKED = (
    Asked("count", _S, "SELECT COUNT(*) AS n FROM staff"),
    Asked("count-by-ward", _V, "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"),
    Asked("count-of-people", _V, "SELECT COUNT(DISTINCT patient) AS n, COUNT(note) AS noted FROM visits", form="tsv"),
    Asked("sum", _S, "SELECT SUM(age) AS years, SUM(cost) AS costs FROM staff", form="parquet"),
    Asked("sum-of-people", _V, "SELECT smoker, SUM(cost) AS costs FROM visits GROUP BY smoker"),
    Asked("mean", _S, "SELECT ward, AVG(age) AS mean FROM staff GROUP BY ward"),
    Asked("variance", _V, "SELECT VARIANCE(age) AS v, STDDEV(cost) AS s FROM visits"),
    Asked("median", _S, "SELECT MEDIAN(age) AS m, QUANTILE(cost, 0.9) AS q FROM staff", {"epsilon": "2"}),
    Asked("median-of-people", _V, "SELECT ward, MEDIAN(age) AS m FROM visits GROUP BY ward", {"epsilon": "2"}),
    Asked("extremes", _S, "SELECT MIN(day) AS first, MAX(day) AS last, MAX(age) AS oldest FROM staff"),
    Asked("mode", _S, "SELECT MODE(ward) AS ward, MODE(smoker) AS smoker FROM staff"),
    Asked("mode-of-people", _V, "SELECT MODE(ward) AS ward, COUNT(*) AS n FROM visits"),
    Asked("histogram", _S, "SELECT HISTOGRAM(cost, 250) FROM staff"),
    Asked("histogram-of-people", _V, "SELECT HISTOGRAM(age, 20) FROM visits"),
    Asked("unknown-groups", _S, "SELECT note, COUNT(*) AS n FROM staff GROUP BY note", _HIDDEN),
    Asked(
        "unknown-groups-of-people", _V, "SELECT note, COUNT(*) AS n, AVG(age) AS m FROM visits GROUP BY note", _HIDDEN
    ),
    Asked("unknown-groups-of-few", _L, "SELECT note, COUNT(*) AS n FROM limited GROUP BY note", _HIDDEN),
    Asked("groups-of-few", _L, "SELECT ward, smoker, SUM(cost) AS c FROM limited GROUP BY ward, smoker"),
    Asked("distinct", _S, "SELECT DISTINCT ward, smoker FROM staff"),
    Asked(
        "having",
        _V,
        "SELECT ward, COUNT(*) AS n, AVG(cost) AS mean FROM visits WHERE age > 20 GROUP BY ward "
        "HAVING n > 5 ORDER BY mean DESC LIMIT 2",
    ),
    Asked(
        "filtered",
        _S,
        "SELECT COUNT(*) FILTER (WHERE smoker) AS n, SUM(age) FILTER (WHERE ward = 'lung') AS s FROM staff",
    ),
    Asked("computed", _S, "SELECT SUM(CLAMP(age * 2, 0, 100)) / COUNT(*) AS ratio FROM staff"),
    Asked(
        "sample",
        _S,
        "SELECT ward, COUNT(*) AS n, SUM(age) AS s FROM staff GROUP BY ward",
        {"epsilon": "1/2", "rate": "1/4"},
    ),
    Asked("within-an-error", _S, "SELECT smoker, COUNT(*) AS n FROM staff GROUP BY smoker", {"error": "15"}),
    Asked(
        "gaussian",
        _S,
        "SELECT ward, smoker, COUNT(*) AS n, SUM(cost) AS c FROM staff GROUP BY ward, smoker",
        {"rho": "1/20", "delta": "1e-7"},
    ),
    Asked(
        "gaussian-unknown-groups",
        _V,
        "SELECT note, COUNT(*) AS n FROM visits GROUP BY note",
        {"rho": "1/10", "delta": "1e-6"},
    ),
    Asked("account", _S, "SELECT ward, COUNT(*) AS n FROM staff GROUP BY ward", {"rho": "1/50"}, account="means"),
    Asked("account-mean", _S, "SELECT AVG(age) AS m FROM staff", {"rho": "1/50"}, account="means"),
    Asked(
        "of-an-analyst",
        _S,
        "SELECT smoker, AVG(cost) AS m FROM staff GROUP BY smoker",
        {"epsilon": "1/4"},
        analyst="ann",
    ),
    Asked("replaced", _W, "SELECT COUNT(*) AS n, SUM(age) AS s FROM swapped"),
    Asked("replaced-by-ward", _W, "SELECT ward, COUNT(*) AS n FROM swapped GROUP BY ward"),
    Asked(
        "replaced-gaussian",
        _W,
        "SELECT ward, AVG(age) AS m FROM swapped GROUP BY ward",
        {"rho": "1/20", "delta": "1e-7"},
    ),
    Asked(
        "joined-with-public",
        _V,
        "SELECT floor, COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward GROUP BY floor",
    ),
    Asked(
        "joined-of-same-people",
        _V,
        "SELECT AVG(v.age * t.score) AS m FROM visits AS v JOIN tests AS t ON v.patient = t.patient",
    ),
    Asked(
        "of-people-first",
        _V,
        "SELECT AVG(total) AS m FROM (SELECT patient, SUM(cost) AS total FROM visits GROUP BY patient)",
    ),
    Asked("two-datasets", ("visits", "clinic"), f"{_FIRST}SELECT AVG(x) AS m, COUNT(*) AS n FROM both"),
    Asked(
        "two-datasets-joined",
        ("visits", "clinic"),
        "SELECT v.ward, COUNT(*) AS n FROM visits AS v JOIN clinic AS c ON v.patient = c.patient GROUP BY v.ward",
    ),
    Asked("batch", _S, ("SELECT ward, COUNT(*) AS n FROM staff GROUP BY ward", "SELECT AVG(age) AS m FROM staff")),
    Asked(
        "batch-with-delta",
        _V,
        tuple(f"SELECT COUNT(*) AS n FROM visits WHERE age > {age}" for age in range(10, 90, 10)),
        {"epsilon": "1", "delta": "1e-6"},
    ),
    Asked(
        "batch-with-unknown-groups",
        _S,
        ("SELECT note, COUNT(*) AS n FROM staff GROUP BY note", "SELECT MEDIAN(age) AS m FROM staff"),
        {"epsilon": "2", "delta": "1e-6"},
    ),
)
CLASSICAL = (
    ("SELECT SUM(pay) FROM teaching WHERE sex = 'F'", "size-control=5"),
    ("SELECT COUNT(*) FROM teaching WHERE dept = 'law'", "size-control=3"),
    ("SELECT AVG(pay) FROM teaching WHERE age > 25", "size-control=4"),
    ("SELECT SUM(pay) FROM teaching WHERE age = 21", "size-control=5"),
    ("SELECT SUM(pay) FROM teaching WHERE sex = 'M'", "perturbed-copy=100"),
    ("SELECT COUNT(*) FROM teaching WHERE sex = 'M'", "perturbed-copy=100"),
    ("SELECT SUM(pay) FROM teaching WHERE dept = 'art'", "random-sample=0.9"),
    ("SELECT COUNT(*) FROM teaching WHERE dept = 'art'", "random-sample=0.9"),
    ("SELECT SUM(pay) FROM teaching", "audited"),
    ("SELECT COUNT(*) FROM teaching WHERE sex = 'F'", "audited"),
    ("SELECT SUM(pay) FROM teaching WHERE age > 20", "audited"),
    ("SELECT AVG(pay) FROM teaching WHERE sex = 'F'", "audited"),
    ("SELECT SUM(age) FROM teaching", "audited"),
    ("SELECT SUM(pay) FROM teaching WHERE pay > 1100", "audited"),
)
"""Questions that are answered in classical ways, or refused, one after the other."""


def tables() -> dict[str, pa.Table]:
    """Return all tables as text."""
    chance = np.random.default_rng(37)

    def visits(rows: int) -> dict[str, Any]:
        days = np.datetime64("2024-01-01") + chance.integers(0, 731, rows)
        return {
            "age": chance.integers(0, 100, rows),
            "cost": np.round(chance.gamma(2, 120, rows), 2),
            "ward": chance.choice(["heart", "lung", "skin"], rows, p=[0.5, 0.4, 0.1]),
            "day": days,
            "smoker": chance.choice(["true", "false"], rows),
            "note": chance.choice(["stable", "better", "worse", "rare"], rows, p=[0.5, 0.3, 0.19, 0.01]),
        }

    people = {"patient": chance.integers(0, 120, 220)} | visits(220)
    tests = {
        "patient": chance.integers(0, 120, 150),
        "score": chance.integers(1, 6, 150),
        "kind": chance.choice(["x", "y"], 150),
    }
    teaching = {
        "sex": ["F", "M"] * 10,
        "dept": ["law", "art", "art", "law", "bio"] * 4,
        "age": range(20, 40),
        "pay": range(1000, 1740, 37),
    }
    wards = {"ward": ["heart", "lung", "lung"], "floor": [1, 2, 3]}
    found = {"visits": people, "staff": visits(240), "tests": tests, "wards": wards, "teaching": teaching}
    return {
        name: pa.table({key: pa.array([str(v) for v in each]) for key, each in t.items()}) for name, t in found.items()
    }
