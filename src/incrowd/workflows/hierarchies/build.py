"""Build: a hierarchy drafted by a rule, from a public list or range, or from the data, which is then marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.core.domain import Type
from incrowd.core.hierarchy.tree import ArxTable, table_of
from incrowd.core.reading import parse
from incrowd.core.schema import Column
from incrowd.core.table import Rows
from incrowd.engines.columns import require
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.columns import column_of
from incrowd.workflows.policy.sections import ColumnSection
from incrowd.workflows.profile.draft_columns import date_rule, number_rule, prefix_lengths
from incrowd.workflows.profile.facts import LISTED, FactLearner, Facts

KINDS = ("intervals", "prefix", "redaction", "dates", "groups")
LISTED_KINDS = ("icd-10", "countries", "regions")
"""Kinds whose values are public lists: see `public_lists`."""
_CAPACITY = 2**16  # labels of a level
_MOST_LINES = 200_000  # of a written hierarchy: a person should be able to look through it


@dataclass(frozen=True)
class HierarchyRequest:
    """The requested hierarchy: a kind, and its steps from fine to coarse, or none to draft them.

    Steps are widths of intervals, lengths of prefixes, periods of the calendar, or sizes of groups; for a redaction the
    one length of the texts.
    """

    column: str
    kind: str
    steps: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS + LISTED_KINDS:
            kinds = ", ".join(KINDS + LISTED_KINDS)
            raise InvalidParameter(f"there is no kind of hierarchy called {self.kind!r}; there are {kinds}.")


@dataclass(frozen=True)
class Built:
    """A hierarchy as a table in ARX's format, its column, and whether it comes from the data, or which public list."""

    table: ArxTable
    column: Column
    derived: bool
    public: str | None = None


def from_rows(wish: HierarchyRequest, rows: Rows) -> Built:
    """Draft a hierarchy of the values that occur; its policy section needs the mark `derived: rows`."""
    require(rows.names, [wish.column])
    learner = FactLearner(wish.column, _CAPACITY)
    for batch in rows.batches([wish.column]):
        learner.add(batch.column(wish.column))
    return _built(wish, _domain(wish, learner.facts()), derived=True)


def from_values(wish: HierarchyRequest, values: Sequence[str]) -> Built:
    r"""Draft a hierarchy of a public list of values, in its order; no row is read.

    >>> built = from_values(HierarchyRequest("zip", "prefix", ("3",)), ["02139", "94305"])
    >>> built.table.text(), built.derived
    ('02139;021;*\n94305;943;*\n', False)
    """
    return _built(wish, _values(wish, tuple(values)), derived=False)


def from_range(wish: HierarchyRequest, low: str, high: str) -> Built:
    """Draft a hierarchy of all whole numbers or days from `low` to `high`; no row is read.

    >>> from_range(HierarchyRequest("age", "intervals", ("2",)), "1", "4").table.rows[0]
    ('1', '[1, 3)', '*')
    """
    kind = {"intervals": Type.INTEGER, "dates": Type.DATE}.get(wish.kind)
    if kind is None:
        raise InvalidParameter(f"a range has no {wish.kind}: give a list of values, or rows.")
    drafted = _ends(wish, low, high, kind)
    return _built(wish, drafted | {"bounds": [low, high]}, derived=False)


def _domain(wish: HierarchyRequest, facts: Facts) -> dict[str, Any]:
    """Return the drafted section of the values that occur."""
    match wish.kind:
        case "intervals" | "dates":
            kind = Type.INTEGER if wish.kind == "intervals" else Type.DATE
            if kind not in facts.kinds:
                raise InvalidParameter(
                    f"not every value of {wish.column!r} is a {'whole number' if kind is Type.INTEGER else 'day'}: "
                    "choose another kind; for decimals write intervals into the policy, which needs no list."
                )
            return _ends(wish, facts.low, facts.high, kind)
    if facts.values is None:
        raise InvalidParameter(
            f"{wish.column!r} has more than {LISTED} different values: give a public list of them, or write the rule "
            "into the policy, which needs no list."
        )
    return _values(wish, tuple(sorted(value for value, _ in facts.values)))


def _ends(wish: HierarchyRequest, low: Any, high: Any, kind: Type) -> dict[str, Any]:
    first, last = (parse(str(end), kind) for end in (low, high))
    if first is None or last is None:
        raise InvalidParameter(
            "a range runs between whole numbers such as 0,99, or days such as 2020-01-01,2024-12-31."
        )
    drafted = number_rule(first, last, kind) if kind is Type.INTEGER else date_rule(first, last)
    rule = drafted.get("hierarchy", {"intervals": ["2"]})
    steps = list(wish.steps) or rule[wish.kind]
    section = {"type": str(kind), "bounds": drafted["bounds"], "hierarchy": {wish.kind: steps}}
    return section | {"outside": "drop"}  # a listed hierarchy holds nothing but its values: no end is open


def _values(wish: HierarchyRequest, values: tuple[str, ...]) -> dict[str, Any]:
    longest = max((len(value) for value in values), default=0)
    match wish.kind:
        case "prefix":
            rule: Any = list(wish.steps) or [str(length) for length in prefix_lengths(longest, values)] or ["1"]
        case "redaction":
            rule = wish.steps[0] if wish.steps else str(longest)
        case "groups":
            rule = list(wish.steps) or ["2", "4"]
        case _:
            raise InvalidParameter(f"{wish.kind} are made from a range: give --range LOW,HIGH, or rows.")
    return {"type": "text", "categories": values, "hierarchy": {wish.kind: rule}}


def _built(wish: HierarchyRequest, section: dict[str, Any], *, derived: bool) -> Built:
    column = column_of(wish.column, ColumnSection(**section), Path())
    members = column.hierarchy.members(0)
    if members is not None and len(members) > _MOST_LINES:
        raise InvalidParameter(
            f"this hierarchy would have {len(members)} lines: write its rule into the policy, which needs no list."
        )
    return Built(table_of(column.hierarchy), column, derived)
