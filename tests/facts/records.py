"""Records: every example by a plain name, grouped into families, and what computes its record.

Names are those of methods, examples, questions, surveys and cases; none is the name of a file or a module.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests import graphs, surveys
from tests.consents import GATED, known_people
from tests.contract.examples import POLICIES, rows
from tests.contract.questions import LIMITED, LOCAL_ONLY, MORE, NOT_IN_POSTGRES, QUESTIONS
from tests.facts import adapters, cases, commands, policies
from tests.policies import PEOPLE, changed, people

Make = Callable[[], Any]
Name = tuple[str, str]
FAILED = "could not be computed"
DECLARED = {"dataset__rows": 400, "dataset__population": 300}
"""Public numbers, from which `plan` says what will probably come out."""
TERMS = {"epsilon": "8", "delta": "1/100"}
"""Enough that the answers to all questions have rows."""
_COUNTS = "SELECT ward, COUNT(*) AS n FROM rows GROUP BY ward"
_MEANS = "SELECT smoker, AVG(age) AS m, SUM(cost) AS c FROM visits GROUP BY smoker"
PAID: dict[str, tuple[str, dict[str, str]]] = {
    "epsilon": (_MEANS, {"epsilon": "1/2"}),
    "rho": (_MEANS, {"rho": "1/20"}),
    "rho and delta": ("SELECT note, COUNT(*) AS n FROM visits GROUP BY note", {"rho": "8", "delta": "1e-2"}),
    "error": (_COUNTS, {"error": "15"}),
    "sample": ("SELECT ward, COUNT(*) AS n, SUM(age) AS s FROM rows GROUP BY ward", {"epsilon": "1", "rate": "1/4"}),
    "replaced": ("SELECT COUNT(*) AS n, AVG(age) AS m FROM swapped", {"epsilon": "1"}),
    "replaced, rho": ("SELECT ward, AVG(age) AS m FROM swapped GROUP BY ward", {"rho": "1/20"}),
    "stacked": (f"{_COUNTS} UNION ALL SELECT 'all', COUNT(*) FROM rows ORDER BY n DESC", {"epsilon": "2"}),
    "share": (f"SELECT t.ward, t.n / (SELECT COUNT(*) FROM rows) AS part FROM ({_COUNTS}) t", {"epsilon": "2"}),
    "two datasets": (
        "WITH b AS (SELECT patient, age x FROM visits UNION ALL SELECT patient, score FROM tests) SELECT SUM(x) FROM b",
        {"epsilon": "1"},
    ),
}
BATCHES: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "counts and means": ((_COUNTS, "SELECT AVG(age) AS m FROM rows"), {"epsilon": "1"}),
    "eight counts, with a delta": (
        tuple(f"SELECT COUNT(*) AS n FROM visits WHERE age > {age}" for age in range(10, 90, 10)),
        {"epsilon": "1", "delta": "1e-6"},
    ),
    "two tables of one domain": (
        (
            "SELECT ward, smoker, COUNT(*) AS n FROM rows GROUP BY ward, smoker",
            "SELECT smoker, COUNT(*) AS n FROM rows GROUP BY smoker",
        ),
        {"epsilon": "1"},
    ),
    "unknown groups": (
        ("SELECT note, COUNT(*) AS n FROM rows GROUP BY note", "SELECT MEDIAN(age) AS m FROM rows"),
        {"epsilon": "4", "delta": "1e-3"},
    ),
}
_STAFF = pa.table(
    {
        "sex": ["F", "M"] * 10,
        "dept": ["law", "art", "art", "law", "bio"] * 4,
        "age": [str(20 + place) for place in range(20)],
        "pay": [str(1000 + 37 * place) for place in range(20)],
    }
)
_TEACHING: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "staff"},
    "columns": {
        "sex": {"categories": ["F", "M"]},
        "dept": {"categories": ["law", "art", "bio"]},
        "age": {"type": "integer", "bounds": [0, 120]},
        "pay": {"type": "integer", "bounds": [0, 100000], "role": "sensitive"},
    },
    "queries": {},
    "budget": {"unbounded": "made-up people, for a lecture"},
}
CLASSICAL = {
    "size-control=5": ("SELECT SUM(pay) FROM staff WHERE sex = 'F'", "SELECT SUM(pay) FROM staff WHERE age = 21"),
    "perturbed-copy=100": ("SELECT SUM(pay) FROM staff WHERE sex = 'M'", "SELECT COUNT(*) FROM staff WHERE sex = 'M'"),
    "random-sample=0.9": ("SELECT AVG(pay) FROM staff", "SELECT COUNT(*) FROM staff WHERE dept = 'art'"),
    "audited": (
        "SELECT SUM(pay) FROM staff",
        "SELECT SUM(pay) FROM staff WHERE age > 20",
        "SELECT SUM(pay) FROM staff WHERE sex = 'F'",
    ),
}
_LABELS = ["walk", "bike", "bus", "car", "train"]
_NUMERIC = ("duchi", "window", "mixture")
_COARSE = changed(PEOPLE, release__levels={"age": 1, "zip": 1})
_COUNTED: dict[str, Any] = {
    "method": "suppressed-histogram",
    "columns": ["sex", "age"],
    "levels": {"age": 1},
    "rate": 1,
    "k": 20,
}
COARSER: dict[str, tuple[dict[str, Any], dict[str, int], tuple[str, ...]]] = {
    "rows at a higher level": (_COARSE, {"age": 2}, ()),
    "some columns of rows": (_COARSE, {"zip": 2}, ("sex", "zip")),
    "counts added up": (changed(PEOPLE, release=_COUNTED, budget={"unbounded": "an old rule"}), {}, ("sex",)),
}
_OLD, _NEW = "2020-01-01T00:00:00.000000Z", "2020-06-01T00:00:00.000000Z"
_FORM: dict[str, Any] = {"method": "full-domain", "k": 10, "lowest": {"age": 2, "zip": 1}}
CONSENTED: dict[str, dict[str, Any]] = {
    "sampled rows": GATED,
    "classes": changed(GATED, release=_FORM, consent__calendar=["2020-01-01"]),
    "noisy counts": changed(GATED, release={"method": "private-histogram", "columns": ["sex"], "epsilon": 1}),
}


def methods() -> Iterator[tuple[str, Make]]:
    """Yield every example of every method of tables."""
    for method, ways in POLICIES.items():
        for name, mapping in ways.items():
            yield f"{method} / {name}", partial(_of_method, mapping)

    for name, mapping in policies.MORE.items():
        yield f"more / {name}", partial(_of_more, mapping)


def _of_more(mapping: dict[str, Any]) -> Any:
    policies.write_beside(Path())
    return adapters.of_policy(mapping, [policies.wide_rows()], changed(mapping, **DECLARED))


def _of_method(mapping: dict[str, Any]) -> Any:
    return adapters.of_policy(mapping, [rows(), policies.uneven_rows()], changed(mapping, **DECLARED))


def of_graphs() -> Iterator[tuple[str, Make]]:
    """Yield every example of every method of graphs."""
    for name, (unit, release) in graphs.EXAMPLES.items():
        yield f"{release['method']} / {name}", partial(_of_graph, name, unit, release)


def _of_graph(name: str, unit: str, release: dict[str, Any]) -> Any:
    graphs.graph_files(Path(), graphs.example_graph(name))
    return adapters.of_graph(graphs.graph_policy(Path.cwd(), release, unit))


def questions() -> Iterator[tuple[str, Make]]:
    """Yield every question by its text, ways to pay, batches, and classical answers."""
    for sql in (*QUESTIONS, *MORE, *NOT_IN_POSTGRES, *LOCAL_ONLY):
        yield sql, partial(adapters.of_question, sql, TERMS)
    for sql in LIMITED:
        yield f"in one group: {sql}", partial(adapters.of_question, sql, TERMS, 1)
    for name, (sql, terms) in PAID.items():
        yield f"paid / {name}", partial(adapters.of_question, sql, terms)
    for name, (sqls, terms) in BATCHES.items():
        yield f"batch / {name}", partial(adapters.of_batch, sqls, terms)
    for protection, sqls in CLASSICAL.items():
        yield f"classical / {protection}", partial(adapters.of_classical, sqls, protection, _TEACHING, _STAFF)


def of_surveys() -> Iterator[tuple[str, Make]]:
    """Yield a survey of every randomizer, surveys of several questions and of shuffled reports, and plans."""
    for family in adapters.known_names()["randomizers"]:
        yield f"randomizer / {family}", partial(_of_randomizer, family)
    travel = {"travel": [_LABELS[n % 4] for n in range(200)]}
    yield "survey / travel", partial(adapters.of_survey, surveys.TRAVEL, travel)
    yield "survey / shuffled", partial(adapters.of_survey, surveys.SHUFFLED, travel)
    yield "survey / many questions", partial(adapters.of_survey, surveys.MANY, _many())
    odds = {key: part for key, part in surveys.TRAVEL.items() if key != "epsilon"} | {"odds": "3"}
    yield "survey / odds", partial(adapters.of_survey, odds, travel)
    for domain, epsilon, number, delta in ((2, "1", 100, None), (100, "1", 10**6, "1e-6"), (5000, "3", 10**4, None)):
        yield f"plan / {domain} values", partial(adapters.of_local_plan, domain, epsilon, number, delta)


def _of_randomizer(family: str) -> Any:
    numeric = family in _NUMERIC
    question: dict[str, Any] = {"low": "0", "high": "10", "cells": "20"} if numeric else {"categories": _LABELS}
    question |= {"mechanism": family}
    answers = [str(n % 11) if numeric else _LABELS[n % 5] for n in range(300)]
    if family == "options":  # several answers have one randomizer, so it is not named
        question = {"options": _LABELS, "at_most": "2"}
        answers = [f"{_LABELS[n % 2]};{_LABELS[2 + n % 3]}" for n in range(300)]
    survey = {"survey": "1", "name": "one", "epsilon": "1", "questions": {"q": question}}
    return adapters.of_survey(survey, {"q": answers})


def _many() -> dict[str, list[str]]:
    words = ["dog", "cat", "ant", "dog", "hen"]
    return {
        "travel": [("walk", "bike", "car")[n % 3] for n in range(400)],
        "hours": [str(n % 60) for n in range(400)],
        "age": [str(n * 7 % 100) for n in range(400)],
        "pet": [words[n % 5] for n in range(400)],
    }


def coarser() -> Iterator[tuple[str, Make]]:
    """Yield coarser tables of releases."""
    for name, (mapping, levels, columns) in COARSER.items():
        yield name, partial(_of_coarser, mapping, levels, columns)


def _of_coarser(mapping: dict[str, Any], levels: dict[str, int], columns: tuple[str, ...]) -> Any:
    return adapters.of_coarser(mapping, people(1500), levels, columns)


def consent() -> Iterator[tuple[str, Make]]:
    """Yield releases of the rows of people who consented."""
    for name, mapping in CONSENTED.items():
        yield name, partial(_of_consent, mapping)


def _of_consent(mapping: dict[str, Any]) -> Any:
    return adapters.of_consent(mapping, known_people(), list(_decisions()))


def _decisions() -> Iterator[adapters.Decision]:
    """Yield decisions: of ten people, six consent now, and the others refused, withdrew, or let theirs end."""
    yield "refuse", _people(0), {"at": _OLD}
    yield "give", _people(1), {"at": _OLD, "valid_to": _NEW}
    yield "give", _people(2, 4, 6, 8), {"at": _OLD}
    yield "give", _people(3, 5, 7, 9), {"at": _OLD, "purpose": "research"}
    yield "withdraw", _people(2), {"at": _NEW}
    yield "withdraw", _people(3), {"at": _NEW, "purpose": "research"}


def _people(*ends: int) -> list[str]:
    """Return the people whose numbers end so."""
    return [f"p{n}" for n in range(600) if n % 10 in ends]


def of_commands() -> Iterator[tuple[str, Make]]:
    """Yield cases of bad input, and of good input beside it."""
    for name, words in cases.CASES.items():
        yield name, partial(commands.of_case, words)


def of_numbers() -> Iterator[tuple[str, Make]]:
    """Yield the numbers of commands that only compute, and verdicts."""
    for name, words in cases.CALCULATED.items():
        yield name, partial(commands.of_numbers, words)
    for name, words in cases.VERIFIED.items():
        yield name, partial(commands.of_verdicts, words)


FAMILIES: dict[str, Callable[[], Iterator[tuple[str, Make]]]] = {
    "methods": methods,
    "graphs": of_graphs,
    "questions": questions,
    "surveys": of_surveys,
    "coarser": coarser,
    "consent": consent,
    "commands": of_commands,
    "numbers": of_numbers,
}
"""The families by their names; each has a file of records."""


EVERY = 10
"""Of records whose names have no group in front, every so many belong to the sample."""


def sample() -> dict[str, dict[str, Make]]:
    """Return some records of each family: the first of each group, and of those without a group every tenth."""
    return {family: dict(_some(made_by)) for family, made_by in catalog().items()}


def _some(examples: dict[str, Make]) -> Iterator[tuple[str, Make]]:
    groups: set[str] = set()
    alone = 0
    for name, make in examples.items():
        group, parted, _ = name.partition(" / ")
        if group not in groups if parted else alone % EVERY == 0:
            yield name, make
        groups, alone = (groups | {group}, alone) if parted else (groups, alone + 1)


def catalog() -> dict[str, dict[str, Make]]:
    """Return all records by family and name."""
    return {family: dict(examples()) for family, examples in FAMILIES.items()}


def compute(name: Name) -> Any:
    """Compute the record of a family and name; an error becomes a record, so that others are still compared."""
    family, own = name
    try:
        return made(catalog()[family][own])
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told as the difference that it makes
        return {FAILED: f"{type(error).__name__}: {error}"}


def made(make: Make) -> Any:
    """Compute a record in a folder of its own, whatever the settings of this machine are."""
    with _alone():
        return make()


@contextmanager
def _alone() -> Iterator[None]:
    settings = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("INCROWD_")}
    try:
        with tempfile.TemporaryDirectory(prefix="facts-") as folder, chdir(folder):
            yield
    finally:
        os.environ.update(settings)
