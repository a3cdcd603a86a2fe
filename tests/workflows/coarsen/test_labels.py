"""Labels of a release rise to a coarser level, those of open ends too."""

from __future__ import annotations

import pytest

from incrowd.core.domain import Dates, Type
from incrowd.core.hierarchy.calendar import Calendar, Period
from incrowd.core.schema import Column
from incrowd.errors import InvalidParameter
from incrowd.workflows.coarsen.labels import raise_labels

PERIODS = (Period.MONTH, Period.YEAR)
DAYS = ["2024-01-01 or earlier", "2024-01-02", "2024-05-03", None]


@pytest.mark.parametrize("high", ["2025-12-31", None])
def test_the_label_of_an_end_rises_to_the_label_of_an_end(high: str | None) -> None:
    born = Column("born", type=Type.DATE, hierarchy=Calendar(Dates("2024-01-01", high), PERIODS))
    assert raise_labels(born, 0, 1, DAYS) == {
        "2024-01-01 or earlier": "2024-01 or earlier",
        "2024-01-02": "2024-01 or earlier",
        "2024-05-03": "2024-05",
        None: None,
    }


@pytest.mark.parametrize("label", ["2024-01-01", "2024-01-02 or earlier", "2023"])
def test_a_label_that_the_policy_does_not_have_is_refused(label: str) -> None:
    born = Column("born", type=Type.DATE, hierarchy=Calendar(Dates("2024-01-01"), PERIODS))
    with pytest.raises(InvalidParameter):
        raise_labels(born, 0, 1, [label])
