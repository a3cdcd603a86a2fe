"""Mutations: whatever is changed in a certificate, `verify` judges it, and shows it where it can be known."""

from __future__ import annotations

import random
import zlib
from itertools import islice
from pathlib import Path

import pytest

from tests.contract.examples import POLICIES
from tests.contract.mutating import NOT_CAUGHT, Subject, mutations, shown_at

NUMBER = 12


@pytest.mark.parametrize("method", POLICIES)
def test_every_mutation_is_judged_and_the_ledger_shows_each(method: str, tmp_path: Path) -> None:
    """What neither certificate, files nor policy can know is who charged: name, time, ledger and amounts."""
    way = list(POLICIES[method])[zlib.crc32(method.encode()) % len(POLICIES[method])]
    subject = Subject.of(method, way, tmp_path)
    honest = subject.plain
    for mutation in islice(mutations(honest, random.Random(method)), NUMBER):
        level = shown_at(subject, mutation, tmp_path)
        if level == "ledger":
            tops = {name for name in honest if mutation.plain.get(name) != honest[name]}
            assert tops <= UNKNOWABLE, mutation.name
        assert level != NOT_CAUGHT or only_report(honest, mutation.plain), mutation.name


UNKNOWABLE = {"id", "created", "tool", "dataset", "accounting", "ledger", "outputs", "evidence"}
"""Parts that only the ledger knows; of the evidence, numbers that a step paid for and no file shows."""


def only_report(honest: dict[str, object], plain: dict[str, object]) -> bool:
    """Whether nothing but the hash of the report was changed, which a forger sets right again."""
    return {name for name in honest if plain.get(name) != honest[name]} <= {"outputs"}
