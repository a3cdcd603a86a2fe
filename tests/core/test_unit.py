"""Units of privacy say whom they protect."""

from collections.abc import Callable

import pytest

from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import InvalidParameter


def test_units_read_as_sentences() -> None:
    assert str(Unit(adjacency=Adjacency.REPLACE)) == "one row, replaced"
    assert str(Unit(Kind.PERSON, column="id")) == "one person (id, one row), added or removed"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Unit(Kind.PERSON),
        lambda: Unit(Kind.ROW, column="id"),
        lambda: Unit(Kind.ROW, max_rows=2),
        lambda: Unit(Kind.PERSON, column="id", max_rows=0),
    ],
)
def test_units_that_mean_nothing_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter):
        make()


@pytest.mark.parametrize("plain", [{}, {"kind": "planet", "adjacency": "add-remove"}, {"kind": "row"}])
def test_an_unknown_unit_is_refused(plain: dict[str, str]) -> None:
    with pytest.raises(InvalidParameter):
        Unit.from_json(plain)
