from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from incrowd.client.client import written_parameters
from incrowd.errors import InvalidParameter


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Decimal("1.50"), {"number": "1.50"}),
        (Decimal("1E+3"), {"number": "1000"}),
        (7, {"number": "7"}),
        (np.int64(-7), {"number": "-7"}),
        (np.uint8(7), {"number": "7"}),
        (1.5, {"number": "1.5"}),
        (-2.0, {"number": "-2.0"}),
        (1e-7, {"number": "0.0000001"}),
        (np.float64(0.1), {"number": "0.1"}),
        (np.float32(0.5), {"number": "0.5"}),
        (np.bool_(True), True),
        (False, False),
        (None, None),
        ("x", "x"),
        (np.str_("x"), "x"),
        (dt.date(2020, 1, 2), {"date": "2020-01-02"}),
        (pd.Timestamp("2020-01-02"), {"date": "2020-01-02"}),
        (np.datetime64("2020-01-02"), {"date": "2020-01-02"}),
        (np.datetime64("2020-01-02", "ns"), {"date": "2020-01-02"}),
    ],
)
def test_values_of_python_numpy_and_pandas_travel_with_their_type(value: Any, written: object) -> None:
    assert written_parameters([value]) == [written]


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        np.float64("nan"),
        float("-inf"),
        Decimal("NaN"),
        Decimal("Infinity"),
        pd.NaT,
        pd.NA,
        np.datetime64("NaT"),
        pd.Timestamp("2020-01-02 10:00"),
        pd.Timestamp("2020-01-02", tz="UTC"),
        np.array([1, 2]),
        b"x",
        1j,
        object(),
    ],
)
def test_what_is_no_value_is_refused(value: Any) -> None:
    with pytest.raises(InvalidParameter, match="parameter"):
        written_parameters([value])


def test_a_text_is_no_list_of_parameters() -> None:
    with pytest.raises(InvalidParameter, match="a list"):
        written_parameters("ab")
