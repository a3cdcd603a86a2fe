"""Published columns: what a plan will publish of each column, from the schema alone, before anything is charged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from incrowd.core.domain import Dates, Numbers, Text
from incrowd.core.reading import number_text
from incrowd.core.schema import Outside
from incrowd.core.steps.rows import Recode, RecodedColumn
from incrowd.core.steps.step import walk
from incrowd.errors import IncrowdError

if TYPE_CHECKING:
    from incrowd.core.plan import Plan
    from incrowd.core.schema import Column, Schema
    from incrowd.workflows.policy.policy import Policy

_EXAMPLES = 3
_FEW_NUMBERS = 12
_SAMPLE_TEXTS = ("12345", "67890", "ABCDE")
_SAMPLE_CODES = {
    "icd": ("E11.9", "I10", "J45.0"),
    "isco": ("2221", "5223", "7112"),
    "nace": ("10.71", "47.11", "86.10"),
}
_WITHIN = "drawn within its class"
_MADE = ("draw rows", "draw linked rows", "publish a model")
_VALUES_STAY = ("code ends", "suppress at risk")
_SAMPLE_DAYS = (date(1968, 7, 9), date(1994, 2, 3), date(2021, 10, 30))


@dataclass(frozen=True)
class PublishedColumn:
    """One column as it will be published, at the finest of its possible levels; `coarser` if rows may raise it.

    `labels` and `values` count the classes of that level and the declared values; None where they cannot be listed.
    `bounds` are published numbers that stand for all numbers beyond them, too.
    """

    name: str
    role: str
    level: int
    top: int
    coarsest: int
    examples: tuple[str, ...]
    labels: int | None
    values: int | None
    exact: bool
    altered: str | None = None
    bounds: tuple[str, ...] = ()

    @property
    def coarser(self) -> bool:
        """Whether the release may show coarser labels than the examples."""
        return self.coarsest > self.level

    @property
    def constant(self) -> bool:
        """Whether it has one label for everybody, and so tells nothing."""
        return self.level == self.top or self.labels == 1

    @property
    def share(self) -> float | None:
        """The number of labels over the number of declared values: what part of its domain it tells apart."""
        if self.labels is None or not self.values:
            return None
        return 0.0 if self.constant else min(1.0, self.labels / self.values)

    @property
    def detail(self) -> str:
        """How much of the declared domain it tells apart, in words."""
        if self.constant:
            return "one label: it tells nothing"
        if self.labels is None:
            return "every value" if self.level == 0 else "its labels cannot be listed in advance"
        if self.values is None:
            return f"{self.labels:,} labels for any number"
        if self.labels >= self.values:
            return f"all {self.values:,} declared values"
        return f"{self.labels:,} labels for {self.values:,} declared values ({_percent(self.labels, self.values)})"

    @property
    def flags(self) -> tuple[str, ...]:
        """What to think about before it is published."""
        flags = []
        if self.exact and self.altered is None:
            flags.append("EXACT: published value by value")
        if self.bounds and not self.constant:
            flags.append(f"{' and '.join(self.bounds)} {'stand' if self.bounds[1:] else 'stands'} for all beyond, too")
        if self.constant:
            flags.append("TELLS NOTHING: one label for all rows")
        elif self.coarsest == self.top:
            flags.append("may become *")
        return tuple(flags)

    @property
    def label_text(self) -> str:
        """Three example labels, and whether they may become coarser."""
        within = "numbers drawn within " if self.altered == _WITHIN else ""
        words = within + (", ".join(self.examples) or "any text")
        more = "" if self.labels is not None and self.labels <= len(self.examples) else ", …"
        return f"{words}{more}" + (" or coarser" if self.coarser else "")

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "column": self.name,
            "role": self.role,
            "level": self.level,
            "coarsest": self.coarsest,
            "examples": list(self.examples),
            "labels": self.labels,
            "values": self.values,
            "share": self.share,
            "exact": self.exact,
            "constant": self.constant,
            "altered": self.altered,
            "bounds": list(self.bounds),
        }


def _percent(part: int, whole: int) -> str:
    """Return a share, rounded to two digits.

    >>> _percent(2400, 73049), _percent(1, 3)
    ('3.3 %', '33 %')
    """
    return f"{100 * part / whole:.2g} %"


def published_by(policy: Policy) -> tuple[PublishedColumn, ...]:
    """Return each column that a release under a policy publishes."""
    return published_columns(policy.plan, policy.schema, getattr(policy.method, "highest", {}))


def published_columns(
    plan: Plan, schema: Schema, highest: Mapping[str, int] = MappingProxyType({})
) -> tuple[PublishedColumn, ...]:
    """Return each column that a plan publishes, once, at its finest level; empty where a plan names none.

    A search in the rows may raise a column to its `highest` level, which is `*` by default.

    >>> from fractions import Fraction
    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.schema import Column, Role, Schema
    >>> from incrowd.methods.anonymity.safe import Safe
    >>> schema = Schema((Column("sex", Role.QUASI, hierarchy=Flat(Categories(("F", "M")))),))
    >>> [column.label_text for column in published_columns(Safe({}, k=5, rate=Fraction(1)).plan(schema), schema)]
    ['F, M, other']
    """
    declared = {column.name: column for column in schema.everywhere}
    finest: dict[str, RecodedColumn] = {}
    for step in walk(plan.steps):
        for column in step.columns if isinstance(step, Recode) else ():
            if column.column in declared and column.level <= finest.get(column.column, column).level:
                finest[column.column] = column
    raised, altered, made = _raised(plan), _drawn_numbers(plan) | _altered(plan), _made(plan)
    bounded = bound_columns(plan)
    return tuple(
        _published(
            declared[name],
            column,
            coarsest=highest.get(name, column.of) if name in raised else column.levels[-1],
            altered=altered.get(name, made),
            bounds=_bounds(schema[name]) if name in bounded else (),
        )
        for name, column in finest.items()
    )


def _raised(plan: Plan) -> frozenset[str]:
    """Return the columns whose level a search in the rows may raise."""
    cuts = (step for step in walk(plan.steps) if hasattr(step, "until") and hasattr(step, "columns"))
    return frozenset(str(name) for step in cuts for name in step.columns)


def _altered(plan: Plan) -> dict[str, str]:
    """Return the columns whose values a mask changes, and by which step."""
    altered: dict[str, str] = {}
    for step in walk(plan.steps):
        if step.kind not in _VALUES_STAY:
            altered |= dict.fromkeys(getattr(step, "changes", ()), step.title)
    return altered


def _drawn_numbers(plan: Plan) -> dict[str, str]:
    """Return the columns of numbers that are drawn within their classes."""
    steps = (step for step in walk(plan.steps) if step.kind in _MADE[:2])
    return {number.column: _WITHIN for step in steps for number in getattr(step, "numbers", ())}


def _made(plan: Plan) -> str | None:
    """Return the step that replaces all rows by drawn ones or by a model, if there is one."""
    return next((step.title for step in walk(plan.steps) if step.kind in _MADE), None)


def bound_columns(plan: Plan) -> tuple[str, ...]:
    """Return the columns that may be published as numbers, a bound among them standing for those beyond it."""
    steps = tuple(walk(plan.steps))
    opened = {name for step in steps for name in step.open_columns}
    recoded = (column for step in steps if isinstance(step, Recode) for column in step.columns)
    names = (column.column for column in recoded if column.outside is Outside.BOUND)
    return tuple(dict.fromkeys(name for name in names if name not in opened))


def _bounds(column: Column) -> tuple[str, ...]:
    return tuple(number_text(end) for end in column.stored_bounds if isinstance(end, int | float))


def _published(
    column: Column, recoded: RecodedColumn, *, coarsest: int, altered: str | None, bounds: tuple[str, ...]
) -> PublishedColumn:
    hierarchy, level = column.hierarchy, recoded.level
    members, values = hierarchy.members(level), hierarchy.members(0)
    listed_values = None if values is None else len(values)
    numbers = isinstance(column.domain, Numbers | Dates)
    many = listed_values is None or listed_values > _FEW_NUMBERS
    free = isinstance(column.domain, Text) and not column.pseudonymous
    return PublishedColumn(
        column.name,
        str(column.role),
        level,
        recoded.of,
        coarsest,
        tuple(_examples(column, level)),
        None if members is None else len(members),
        listed_values,
        exact=level == 0 and level < recoded.of and ((numbers and many) or free),
        altered=altered,
        bounds=bounds,
    )


def _examples(column: Column, level: int) -> Iterator[str]:
    """Yield three labels of a level: of its classes where they are listed, else of made-up values."""
    hierarchy = column.hierarchy
    members = hierarchy.members(level)
    if members is not None:
        many = len(members) > _EXAMPLES + 1
        places = [len(members) * (2 * n + 1) // 6 for n in range(_EXAMPLES)] if many else range(len(members))
        labels = hierarchy.names(members.take(list(places)), level).to_pylist()
        extra = column.has_other and level < hierarchy.height
        yield from (labels if many or not extra else [*labels, "other"])[:_EXAMPLES]
        return
    if column.pseudonymous:
        yield "a keyed pseudonym"
        return
    seen: set[str] = set()
    for value in _made_up(column, level):
        try:
            label = hierarchy.generalize(value, level)
        except IncrowdError:
            continue
        if label is not None and label not in seen:
            seen.add(label)
            yield label


def _made_up(column: Column, level: int) -> tuple[str, ...]:
    """Return three values that somebody could write in this column; none comes from a row."""
    domain = column.domain
    if isinstance(domain, Dates):
        return tuple(str(day) for day in _SAMPLE_DAYS)
    if not isinstance(domain, Numbers):
        rule = str(column.hierarchy.rule).lower()
        return next((codes for name, codes in _SAMPLE_CODES.items() if name in rule), _SAMPLE_TEXTS)
    low, high = domain.bounds
    if low is not None and high is not None:
        return tuple(f"{float(low + (high - low) * n / 6):.6g}" for n in (1, 3, 5))
    widths = getattr(column.hierarchy, "widths", ())
    width = float(widths[level - 1]) if 0 < level <= len(widths) else 1.0
    start = float(low) if low is not None else 0.0 if high is None else float(high) - _EXAMPLES * width
    return tuple(f"{start + width * n:.12g}" for n in range(_EXAMPLES))


def unpublished(policy: Policy) -> tuple[str, ...]:
    """Return the columns of which nothing is published."""
    named = {column.name for column in published_by(policy)}
    everywhere = (column.name for column in policy.schema.everywhere)
    return tuple(name for name in everywhere if name not in named) if named else ()
