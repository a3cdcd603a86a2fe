"""A model reads columns as the recoding under which rows were counted does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd.core.recoding import Classes
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.inputs import UNIT, ColumnEncoder, Inputs, NumberScale, features_of
from incrowd.workflows.policy.policy import load_policy

VALUES = ["0", "1", "7", "19.5", "20", "99", "100", "-3", "x", "", None, "nan", "F", "M", "d", "2020-01-05", "true"]
COLUMNS: dict[str, dict[str, Any]] = {
    "whole": {"type": "integer", "bounds": [0, 99]},
    "few": {"type": "integer", "bounds": [0, 5], "outside": "other"},
    "dropped": {"type": "integer", "bounds": [0, 99], "outside": "drop", "missing": "drop"},
    "filled": {"type": "decimal", "bounds": [0, "99.5"], "missing": "7"},
    "decimal": {"type": "decimal", "bounds": ["-1.5", "99.5"]},
    "intervals": {"type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [10, 50]}},
    "cut": {"type": "decimal", "bounds": [0, 99], "hierarchy": {"cuts": [[10, 20, 50]]}},
    "sex": {"categories": ["F", "M"]},
    "strict": {"categories": ["F", "M"], "outside": "drop", "missing": "drop"},
    "with other": {"categories": ["F", "other"]},
    "tree": {"hierarchy": {"tree": {"letters": ["F", "M"], "else": ["d"]}}},
    "day": {"type": "date", "bounds": ["2020-01-01", "2020-03-01"]},
    "flag": {"type": "boolean"},
}
LEVELS = {"intervals": 1, "cut": 1, "tree": 1}


def classes(name: str, bins: int = 16) -> Classes:
    release = {"method": "safe", "k": 5, "rate": "1/2", "delta": "1e-6"}
    read = load_policy({"incrowd": 1, "dataset": {"name": "d"}, "columns": {name: COLUMNS[name]}, "release": release})
    return Inputs((), LEVELS, bins).classes(read.schema[name])


@pytest.mark.parametrize("name", COLUMNS)
def test_codes_are_those_of_the_recoding(name: str) -> None:
    known, array = classes(name), pa.array(VALUES, pa.string())
    encoder = ColumnEncoder.of(known)
    assert encoder.codes(array).tolist() == known.recoding.codes(array).tolist()
    again = ColumnEncoder.from_json(encoder.to_json())
    assert again.codes(array).tolist() == encoder.codes(array).tolist()
    assert len(again.labels) == len(known)


@pytest.mark.parametrize("name", ["whole", "decimal", "cut", "filled"])
def test_numbers_read_as_floats_have_the_same_codes(name: str) -> None:
    known, numbers = classes(name), pa.array([0.0, 1.0, 20.0, 99.0, 1e9, -1e9, float("nan"), None])
    assert ColumnEncoder.of(known).codes(numbers).tolist() == known.recoding.codes(numbers).tolist()


@pytest.mark.parametrize("bins", [2, 3, 16, 64, 1000])
def test_bins_are_at_most_as_many_as_asked_and_cover_the_bounds(bins: int) -> None:
    for name in ("whole", "decimal"):
        known = classes(name, bins)
        assert 2 <= len(known.marks) <= max(bins, 2)
        scale = NumberScale.of(known)
        assert scale is not None
        assert (np.diff(scale.middles) > 0).all()
        assert np.abs(scale.units).max() <= UNIT


def test_what_is_missing_lies_in_the_middle() -> None:
    known = classes("whole")
    assert features_of(known)[-1].tolist() == [0]
    assert features_of(classes("sex")).tolist() == (UNIT * np.eye(4, dtype=int)).tolist()


@pytest.mark.parametrize(
    "change",
    [{"values": {"F": 9}}, {"classes": []}, {"type": "color"}, {"missing": 17}],
    ids=lambda change: next(iter(change)),
)
def test_a_damaged_column_is_refused(change: dict[str, Any]) -> None:
    plain = ColumnEncoder.of(classes("sex")).to_json() | change
    with pytest.raises((ValueError, InvalidParameter)):
        ColumnEncoder.from_json(plain)
