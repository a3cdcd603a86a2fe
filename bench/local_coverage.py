"""How often the intervals of surveys hold the truth: by ε, shape of the answers, mechanism and number of questions.

    python -m bench.local_coverage [RUNS] [PEOPLE] [MECHANISM ...]          400 runs of 200 people by default

A cell is the share of runs in which an interval of 95 % holds the truth: of the value that is missed most often, and of
all values together.  Where everyone answers, the truth is that of the people; else that of the population they were
drawn from.  A question of several that are all answered has the law and the interval of a single one; only their cross
is measured.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.methods.local.crosses import cross_estimates
from incrowd.methods.local.estimates import POPULATION, QuestionEstimates, Support, estimates_of
from incrowd.methods.local.survey.definition import LocalSurvey
from incrowd.noise.system import SystemCoins
from incrowd.workflows.local.survey_file import survey_of

LABELS = ["a", "b", "c", "d", "e", "f"]
EPSILONS = ("1/2", "1", "2", "4", "8")
CATEGORICAL = ("response", "symmetric-unary", "optimal-unary", "local-hashing", "hadamard", "subset")
NUMERIC = ("duchi", "window", "mixture")
SHAPES = {
    "even": [1 / 6] * 6,
    "skewed": [0.6, 0.2, 0.1, 0.05, 0.05, 0.0],
    "ends": [0.5, 0.0, 0.0, 0.0, 0.0, 0.5],
}


@dataclass(frozen=True)
class Kind:
    """A kind of question: its section in a survey file, an answer for each of six places, and the shares of values."""

    name: str
    section: dict[str, Any]
    answers: list[str]

    def truth(self, shares: list[float]) -> dict[str, float]:
        """Return what is estimated, if the six answers have these shares."""
        if "low" in self.section:
            return {"mean": sum(share * float(answer) for share, answer in zip(shares, self.answers, strict=True))}
        if "first" in self.section:
            return {"0 to 3": sum(shares[:4]), "4 to 5": sum(shares[4:])}
        if "options" in self.section:
            return {
                label: sum(s for s, one in zip(shares, self.answers, strict=True) if label in one.split(";"))
                for label in LABELS[:4]
            }
        return dict(zip(LABELS, shares, strict=True))


def kinds() -> Iterator[Kind]:
    for mechanism in CATEGORICAL:
        yield Kind(mechanism, {"categories": LABELS, "mechanism": mechanism}, LABELS)
    for mechanism in NUMERIC:
        numbers = ["-1", "-0.6", "-0.2", "0.2", "0.6", "1"]
        yield Kind(mechanism, {"low": "-1", "high": "1", "cells": "20", "mechanism": mechanism}, numbers)
    yield Kind("tree", {"first": "0", "last": "5"}, [str(place) for place in range(6)])
    yield Kind("options", {"options": LABELS[:4], "at_most": "2"}, ["a", "a;b", "c", "", "d;a", "b;c"])


def held(found: QuestionEstimates, truth: dict[str, float]) -> list[bool]:
    return [one.low - 1e-12 <= truth[one.value] <= one.high + 1e-12 for one in found.estimates]


def measured(kind: Kind, shares: list[float], made: LocalSurvey, size: tuple[int, int]) -> tuple[float, float]:
    """Return how often intervals hold, at the worst value and over all of them."""
    runs, people = size
    rows = []
    for run in range(runs):
        chance = np.random.default_rng([run, people])
        places = chance.choice(6, people, p=shares)
        answers = [kind.answers[place] for place in places]
        other = [kind.answers[place] for place in chance.permutation(places)]
        columns = dict(zip(made.names, (answers, other), strict=False))
        reports = made.randomize(columns, SystemCoins())
        if kind.name == "cross":
            pairs = np.bincount(places * 6 + np.array([LABELS.index(one) for one in other]), minlength=36) / people
            names = [f"{one}, {two}" for one in LABELS for two in LABELS]
            rows.append(held(cross_estimates(made, reports, ("one", "two")), dict(zip(names, pairs, strict=True))))
            continue
        found = next(one for one in estimates_of(made, reports) if one.question == "one")
        own = [float(share) for share in np.bincount(places, minlength=6) / people]
        rows.append(held(found, kind.truth(shares if found.about == POPULATION else own)))
    table = np.array(rows)
    return float(table.mean(axis=0).min()), float(table.mean())


def survey(kind: Kind, epsilon: str, questions: str) -> LocalSurvey:
    """Return a survey of one question, of two of which one is picked, or of two that are both answered."""
    sections = {"one": kind.section} if questions == "1" else {"one": kind.section, "two": kind.section}
    total = str(2 * Fraction(epsilon)) if questions == "all 2" else epsilon
    more = {"answers": "all"} if questions == "all 2" else {}
    plain = {"survey": "1", "name": "x", "epsilon": total, "questions": sections, **more}
    return survey_of(plain, Path()).survey


def main() -> None:
    name = "_ends"  # the same counts come again
    setattr(Support, name, lru_cache(maxsize=None)(getattr(Support, name)))
    size = (int(sys.argv[1]) if len(sys.argv) > 1 else 400, int(sys.argv[2]) if len(sys.argv) > 2 else 200)
    print(f"{size[0]} runs of {size[1]} people; worst value / all values; ε of one answer")
    print(f"{'mechanism':16} {'questions':9} {'shape':7} " + " ".join(f"{'ε ' + each:>11}" for each in EPSILONS))
    cross = Kind("cross", {"categories": LABELS}, LABELS)
    least = 1.0
    for kind in (kind for kind in (*kinds(), cross) if kind.name in sys.argv[3:] or not sys.argv[3:]):
        for questions in ("all 2",) if kind is cross else ("1", "1 of 2"):
            for shape, shares in SHAPES.items():
                cells = [measured(kind, shares, survey(kind, epsilon, questions), size) for epsilon in EPSILONS]
                least = min([least, *(worst for worst, _ in cells)])
                texts = " ".join(f"{worst:5.3f}/{mean:5.3f}" for worst, mean in cells)
                print(f"{kind.name:16} {questions:9} {shape:7} {texts}", flush=True)
    print(f"the lowest of all: {least:.3f}")


if __name__ == "__main__":
    main()
