"""Mutations: whatever is changed in a certificate, `verify` judges it, and shows it where it can be known."""

from __future__ import annotations

import json
import random
import zlib
from itertools import islice
from pathlib import Path

import pytest

from incrowd.workflows.certificates import certificate_of
from tests.contract.examples import POLICIES
from tests.contract.mutating import NOT_CAUGHT, OTHERS, Mutation, Subject, mutations, shown_at

NUMBER = 12


@pytest.mark.parametrize("method", [*POLICIES, *sorted({family for family, _ in OTHERS})])
def test_every_mutation_is_judged_and_the_ledger_shows_each(method: str, tmp_path: Path) -> None:
    """What neither certificate, files nor policy can know is who charged: name, time, ledger and amounts."""
    ways = list(POLICIES.get(method, ())) or [name for family, name in OTHERS if family == method]
    way = ways[zlib.crc32(method.encode()) % len(ways)]
    subject = Subject.of(method, way, tmp_path)
    honest = subject.plain
    for mutation in islice(mutations(honest, random.Random(method)), NUMBER):
        level = shown_at(subject, mutation, tmp_path)
        if level == "ledger":
            tops = {name for name in honest if mutation.plain.get(name) != honest[name]}
            assert tops <= UNKNOWABLE, mutation.name
        assert level != NOT_CAUGHT or only_report(honest, mutation.plain), mutation.name


UNKNOWABLE = {"id", "created", "tool", "dataset", "accounting", "ledger", "outputs", "evidence", "approvals"}
"""Parts that only the ledger knows; of the evidence, numbers that a step paid for and no file shows."""


def only_report(honest: dict[str, object], plain: dict[str, object]) -> bool:
    """Whether nothing but the hash of the report was changed, which a forger sets right again."""
    return {name for name in honest if plain.get(name) != honest[name]} <= {"outputs"}


@pytest.mark.parametrize(("method", "way"), [("full-domain", "loss"), ("scheme", "levels auto")])
def test_levels_are_compared_with_the_steps_and_with_the_hierarchies_of_the_policy(
    method: str, way: str, tmp_path: Path
) -> None:
    subject = Subject.of(method, way, tmp_path)
    honest = subject.plain
    levels: dict[str, int] = honest["evidence"]["levels"]
    for name, level in levels.items():
        for other in {0, 1, 2, 3, 10**9} - {level}:
            forged = {**honest, "evidence": {**honest["evidence"], "levels": {**levels, name: other}}}
            assert shown_at(subject, Mutation(name, forged), tmp_path) in ("alone", "policy"), (name, other)


def test_evidence_may_name_a_column_that_looks_like_an_exponent(tmp_path: Path) -> None:
    subject = Subject.of("marginals", "adaptive", tmp_path)
    text = json.dumps(subject.plain).replace('"sex"', '"code12345"')
    assert certificate_of(json.loads(text)).evidence["tables"][0]["columns"] == ["code12345"]


@pytest.mark.parametrize(
    "value", [[], ["sex"], [["sex"]], {"columns": {}}, [{"columns": 5}], "1e99999", "1e999999999", None, -1]
)
def test_evidence_of_another_form_is_judged(value: object, tmp_path: Path) -> None:
    subject = Subject.of("marginals", "each table", tmp_path)
    honest = subject.plain
    for name in honest["evidence"]:
        forged = {**honest, "evidence": {**honest["evidence"], name: value}}
        assert shown_at(subject, Mutation(name, forged), tmp_path) in ("alone", "files"), name
