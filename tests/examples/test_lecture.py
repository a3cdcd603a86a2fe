"""The table of eleven patients: its generalizations, its crowds and its homogeneous class, as in the lecture."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.tables import release
from tests.policies import tuples
from tests.tables import as_counter

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "lecture"
POLICY = load_policy(FOLDER / "policy.yaml")
NAMES = ("ethnicity", "birth", "gender", "zip", "condition")
QUASI = NAMES[:4]
# For each generalization, by levels of the columns in order: its classes over the quasi-identifiers.
GENERALIZED: dict[tuple[int, ...], dict[tuple[object, ...], int]] = {
    (0, 0, 0, 1, 0): {
        ("Black", "1965", "M", "0214*"): 2,
        ("Black", "1965", "F", "0213*"): 2,
        ("Black", "1964", "F", "0213*"): 2,
        ("White", "1964", "M", "0213*"): 3,
        ("White", "1967", "M", "0213*"): 2,
    },
    (0, 0, 1, 0, 0): {
        ("Black", "1965", "*", "02141"): 1,
        ("Black", "1965", "*", "02142"): 1,
        ("Black", "1965", "*", "02131"): 1,
        ("Black", "1965", "*", "02132"): 1,
        ("Black", "1964", "*", "02131"): 1,
        ("Black", "1964", "*", "02132"): 1,
        ("White", "1964", "*", "02131"): 1,
        ("White", "1964", "*", "02132"): 1,
        ("White", "1964", "*", "02133"): 1,
        ("White", "1967", "*", "02131"): 1,
        ("White", "1967", "*", "02132"): 1,
    },
    (0, 0, 1, 1, 0): {
        ("Black", "1965", "*", "0214*"): 2,
        ("Black", "1965", "*", "0213*"): 2,
        ("Black", "1964", "*", "0213*"): 2,
        ("White", "1964", "*", "0213*"): 3,
        ("White", "1967", "*", "0213*"): 2,
    },
}


def counted(levels: tuple[int, ...], columns: tuple[str, ...] = NAMES) -> Counts:
    cells = Cells.of(POLICY.schema, dict(zip(NAMES, levels, strict=True)), columns)
    return LocalEngine().count(open_source(FOLDER / "medical.csv"), cells)


@pytest.mark.parametrize("levels", GENERALIZED, ids=str)
def test_every_generalization_has_the_classes_of_the_lecture(levels: tuple[int, ...]) -> None:
    assert as_counter(counted(levels, QUASI)) == GENERALIZED[levels]


@pytest.mark.parametrize(("levels", "enough"), list(zip(GENERALIZED, (True, False, True), strict=True)), ids=str)
def test_two_generalizations_are_2_anonymous_and_one_is_not(levels: tuple[int, ...], enough: bool) -> None:
    assert (min(counted(levels, QUASI).counts) >= 2) == enough


def test_what_is_generalized_on_two_columns_is_what_is_generalized_on_one_and_then_the_other() -> None:
    finest = counted((0, 0, 0, 0, 0))
    for levels, classes in GENERALIZED.items():
        rolled = finest.rollup(dict(zip(NAMES, levels, strict=True)))
        assert as_counter(rolled) == as_counter(counted(levels))
        assert as_counter(rolled.marginal(QUASI)) == classes


def test_the_marginal_of_the_condition() -> None:
    found = as_counter(counted((0, 0, 0, 0, 0), ("condition",)))
    shares = {str(condition): Fraction(times, 11) for (condition,), times in found.items()}
    assert shares == {
        "chest pain": Fraction(5, 11),
        "hypertension": Fraction(2, 11),
        "obesity": Fraction(2, 11),
        "short breath": Fraction(2, 11),
    }


def test_a_class_can_be_diverse_or_give_its_condition_away() -> None:
    conditions: dict[tuple[object, ...], Counter[object]] = {}
    for (ethnicity, birth, gender, _, condition), times in as_counter(counted((0, 0, 0, 1, 0))).items():
        conditions.setdefault((ethnicity, birth, gender), Counter())[condition] += times
    assert conditions["White", "1964", "M"] == {"chest pain": 1, "obesity": 1, "short breath": 1}
    assert conditions["Black", "1965", "F"] == {"hypertension": 2}


def test_the_release_keeps_only_what_two_rows_share_the_condition_included(tmp_path: Path) -> None:
    released = release(None, replace(POLICY, ledger=f"sqlite:///{tmp_path}/ledger.sqlite"))
    assert tuples(released.result.to_arrow()) == {
        ("Black", 1965, "F", "0213*", "hypertension"): 2,
        ("White", 1967, "M", "0213*", "chest pain"): 2,
    }
    assert [claim.kind for claim in released.certificate.claims] == ["crowd-blending", "k-anonymity"]
