"""Schema: what the data holder declares about each column, and the unit of privacy."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum

import pyarrow as pa

from incrowd.core.cleaning import Cleaning
from incrowd.core.days import DayRule
from incrowd.core.domain import Categories, Dates, Domain, Numbers, Provenance, Text, Type, Weekday, listed
from incrowd.core.hierarchy.flat import Flat, flat
from incrowd.core.hierarchy.hierarchy import Hierarchy
from incrowd.core.hierarchy.text import Pseudonyms
from incrowd.core.reading import canonical, parse
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter

OTHER = "other"
"""The label of values outside a declared domain, where the column's rule is to keep their rows."""

MAX_LENGTH, LONGEST = 200, 10_000
"""How many characters of a text that is not listed queries read: by default, and at most."""

MOST_DECIMALS = 9
"""How many decimals synthetic numbers have at most."""

ANYTHING = Flat(Text())
"""The hierarchy of a column of which nothing is declared."""


class Role(StrEnum):
    """What a column can reveal about a person."""

    IDENTIFIER = "identifier"
    WITHHELD = "withheld"
    QUASI = "quasi"
    SENSITIVE = "sensitive"
    PLAIN = "plain"
    WEIGHT = "weight"
    HOUSEHOLD = "household"
    STRATA = "strata"

    def covers(self, role: str | None) -> bool:
        """Whether a role counts as this one: strata can be looked up, weights are plain, others are never released.

        >>> Role.QUASI.covers(Role.STRATA), Role.STRATA.covers(Role.QUASI)
        (True, False)
        """
        return role == self or (role is not None and _SPECIAL.get(role) == self)


_SPECIAL: Mapping[str, Role] = {
    Role.WEIGHT: Role.PLAIN,
    Role.HOUSEHOLD: Role.IDENTIFIER,
    Role.WITHHELD: Role.IDENTIFIER,
    Role.STRATA: Role.QUASI,
}
"""Special roles, and the general role that each counts as: like identifiers, withheld columns are not released."""


class Missing(StrEnum):
    """How a missing value is treated: as a class of its own, or its row is suppressed."""

    CLASS = "class"
    DROP = "drop"


class Outside(StrEnum):
    """How a value outside the declared domain is treated: one class for all, the nearest end, or suppressed.

    At an end, labels are open (`2024 or earlier`).  A number that is published as a number has no label: by `bound`,
    a published bound stands for all numbers beyond it, too.
    """

    OTHER = "other"
    ENDS = "ends"
    BOUND = "bound"
    DROP = "drop"


@dataclass(frozen=True)
class Column:
    """One column: its role, its type, how it is generalized, and how missing and outside values are treated.

    Without a hierarchy there are the value itself, any of the type, and `*`.
    `missing` is a rule, or a value of the domain that stands in for what is missing.  `outside` left open means the
    nearest bound for numbers and dates, and one class `other` for the rest.  A value that cannot be read as the
    declared type is outside too; where there is no class `other` to put it in, it counts as missing.
    Every rule is applied row by row.  Labels are true of every value that has them: where values outside go to the
    nearest bound, the first and the last class say so.  A number at a bound is published as the bound, which then
    stands for the numbers beyond it: certificates state this rule as `bound`.

    With a `separator` each row holds a set of items: a list, or text split at the separator.  Type, hierarchy and the
    rule for what is outside then apply to the items, all of which are declared; a row without items has the empty set.
    Queries read at most `max_length` characters of a text that is not listed.

    A `shared` column has one value for a whole household.  A `label` is its name for readers.  `clean` are the rules by
    which its cells were rewritten when they were read.  `decimals` is how many decimals synthetic numbers have,
    `days` on which days of the calendar synthetic days lie.

    >>> Column("age", Role.QUASI, Type.INTEGER).rule_outside
    <Outside.ENDS: 'ends'>
    """

    name: str
    role: Role = Role.PLAIN
    type: Type = Type.TEXT
    hierarchy: Hierarchy = ANYTHING
    missing: Missing | str = Missing.CLASS
    outside: Outside | None = None
    separator: str | None = None
    shared: bool = False
    label: str | None = None
    max_length: int = MAX_LENGTH
    clean: Cleaning | None = None
    decimals: int | None = None
    days: DayRule | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidParameter("a column needs a name.")
        if self.decimals is not None and (self.type is not Type.DECIMAL or not 0 <= self.decimals <= MOST_DECIMALS):
            raise InvalidParameter(
                f"{self.name!r} declares decimals: those are from 0 to {MOST_DECIMALS}, of a column of type decimal."
            )
        if not 1 <= self.max_length <= LONGEST:
            raise InvalidParameter(f"the max_length of {self.name!r} lies between 1 and {LONGEST:,}.")
        if self.hierarchy == ANYTHING:
            object.__setattr__(self, "hierarchy", flat(self.type))
        if self.rule_outside is Outside.ENDS and self.domain.closed:
            object.__setattr__(self, "hierarchy", self.hierarchy.with_open_ends())
        self._check_domain()
        if self.days is not None:
            self._check_days(self.days)
        if self.clean is not None:
            self._check_cleaning(self.clean)
        if self.role is Role.WEIGHT and self.type not in (Type.INTEGER, Type.DECIMAL):
            raise InvalidParameter(f"{self.name!r} holds survey weights, which are numbers: let type be decimal.")
        if self.separator is not None:
            self._check_items(self.separator)
        if self.outside is Outside.BOUND and isinstance(self.domain, Dates):
            raise InvalidParameter(f"days beyond the bounds of {self.name!r} get open labels: let outside be 'ends'.")
        if self.rule_outside is Outside.ENDS and not isinstance(self.domain, Numbers | Dates):
            raise InvalidParameter(f"the values of {self.name!r} have no ends: let outside be 'other' or 'drop'.")
        if self.fill is not None and self.hierarchy.generalize(self.fill, 0) is None:
            raise InvalidParameter(
                f"{self.fill!r} cannot stand for missing values of {self.name!r}: it is outside the declared domain."
            )

    def _check_domain(self) -> None:
        domain = self.domain
        if isinstance(domain, Numbers) and domain.type is not self.type:
            raise InvalidParameter(f"{self.name!r} is of type {self.type}, but its domain is of type {domain.type}.")
        if isinstance(domain, Dates) and self.type is not Type.DATE:
            raise InvalidParameter(f"{self.name!r} is of type {self.type}, but its domain consists of dates.")
        if isinstance(domain, Categories) and self.type is not Type.TEXT:
            odd = [value for value in domain.values if written_as(value, self.type) != value]
            if odd:
                raise InvalidParameter(
                    f"these values of {self.name!r} are not written as values of type {self.type} are: {listed(odd)}. "
                    "Write 5, not 05 or 5.0; 2020-12-31; true or false."
                )

    def _check_days(self, days: DayRule) -> None:
        if self.type is not Type.DATE or days == DayRule():
            raise InvalidParameter(
                f"{self.name!r} declares weekdays, last_of or days_off: weekdays are one or more of "
                f"{', '.join(Weekday)}, and all are of a column of type date."
            )
        low, high = self.domain.bounds if isinstance(self.domain, Dates) else (None, None)
        if low is not None and high is not None and not len(days.between(low, high)):
            raise InvalidParameter(
                f"no day within the bounds of {self.name!r} is one of its declared days: correct either of them."
            )

    def _check_cleaning(self, clean: Cleaning) -> None:
        clean.check_type(self.type, self.name)
        if self.separator is not None:
            raise InvalidParameter(f"{self.name!r} holds sets of items: clean them before, or leave clean out.")
        if isinstance(self.domain, Categories):
            unlisted = [label for label in clean.labels if label not in self.domain.values]
            if unlisted:
                raise InvalidParameter(
                    f"these labels of clean are not among the values of {self.name!r}: {listed(unlisted)}. Declare "
                    "them, or correct the spelling."
                )

    def _check_items(self, separator: str) -> None:
        if self.type is not Type.TEXT or self.hierarchy.members(0) is None:
            raise InvalidParameter(
                f"{self.name!r} holds sets of items: they are text, and all of them are declared. List the categories, "
                "or give a tree or a hierarchy file."
            )
        if self.fill is not None:
            raise InvalidParameter(
                f"no value can replace a missing set of {self.name!r}: let missing be class, which makes it the "
                "empty set, or drop."
            )
        names = {OTHER, *(n for level in range(self.hierarchy.height + 1) for n in self.hierarchy.labels(level) or ())}
        parted = [
            n for n in names if not separator or not n or n != n.strip() or (n + separator).find(separator) < len(n)
        ]
        if parted:
            raise InvalidParameter(
                f"the separator {separator!r} of {self.name!r} must separate items: no item or label may contain it, "
                "be empty, or start or end with a space. Choose another separator, or rename the items."
            )

    @property
    def item(self) -> Column:
        """One item of a set-valued column, as a column of its own."""
        return replace(self, separator=None, missing=Missing.CLASS)

    @property
    def domain(self) -> Domain:
        """The public set of values."""
        return self.hierarchy.domain

    @property
    def rule_outside(self) -> Outside:
        """How values outside the domain are treated; `bound` is `ends`, said of numbers without labels."""
        if self.outside is not None:
            return Outside.ENDS if self.outside is Outside.BOUND else self.outside
        return Outside.ENDS if isinstance(self.domain, Numbers | Dates) else Outside.OTHER

    @property
    def fill(self) -> str | None:
        """The value that replaces missing values, if there is one."""
        return None if isinstance(self.missing, Missing) or self.missing in tuple(Missing) else str(self.missing)

    @property
    def has_other(self) -> bool:
        """Whether there is a class `other`; a boolean column has one only if it says so."""
        declares_outside = self.outside is not None or self.type is not Type.BOOLEAN
        return declares_outside and self.domain.closed and self.rule_outside is Outside.OTHER

    @property
    def stored_bounds(self) -> tuple[int | float | date | None, int | float | date | None]:
        """The bounds of numbers or days as values are stored; None where there is none."""
        if isinstance(self.domain, Dates):
            return self.domain.bounds
        if not isinstance(self.domain, Numbers):
            return None, None
        as_stored = int if self.type is Type.INTEGER else float
        low, high = self.domain.bounds
        return (None if low is None else as_stored(low)), (None if high is None else as_stored(high))

    @property
    def open_days(self) -> bool:
        """Whether the first and the last day include the days beyond them, so that days are released as text."""
        return isinstance(self.domain, Dates) and self.hierarchy.open_ends

    def stated_outside(self, level: int) -> Outside | None:
        """Return the rule for values outside as certificates state it at a level; None where nothing is outside.

        >>> age = Column("age", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 99)))
        >>> age.stated_outside(0), age.stated_outside(1)
        (<Outside.BOUND: 'bound'>, <Outside.ENDS: 'ends'>)
        """
        if not self.domain.closed:
            return None
        number = level == 0 and isinstance(self.domain, Numbers) and self.rule_outside is Outside.ENDS
        return Outside.BOUND if number else self.rule_outside

    @property
    def provenances(self) -> tuple[Provenance, ...]:
        """Where its hierarchy, its domain and the rules that clean it come from."""
        own = (self.hierarchy.provenance, self.domain.provenance)
        return own if self.clean is None else (*own, self.clean.provenance)

    @property
    def pseudonymous(self) -> bool:
        """Whether it is released under a keyed pseudonym."""
        return isinstance(self.hierarchy, Pseudonyms)

    @property
    def may_drop(self) -> bool:
        """Whether a row can be suppressed for its value in this column."""
        return self.missing == Missing.DROP or self.rule_outside is Outside.DROP


@dataclass(frozen=True)
class Schema:
    """The columns of a table in order, and the unit of privacy.

    >>> schema = Schema((Column("id", Role.IDENTIFIER), Column("zip", Role.QUASI)))
    >>> [column.name for column in schema.released]
    ['zip']
    """

    columns: tuple[Column, ...]
    unit: Unit = field(default_factory=Unit)

    def __post_init__(self) -> None:
        if not self.columns:
            raise InvalidParameter("a schema needs at least one column.")
        twice = [name for name, times in Counter(self.names).items() if times > 1]
        if twice:
            raise InvalidParameter(f"these columns are declared more than once: {listed(twice)}.")
        if self.unit.column is not None and self[self.unit.column] not in self.unreleased:
            raise InvalidParameter(
                f"the column {self.unit.column!r} is the person ID column: its role must be identifier."
            )
        if self.unit.column is not None:
            clean = self[self.unit.column].clean
            if clean is not None and not clean.provenance.sound:
                raise InvalidParameter(
                    f"the person ID column {self.unit.column!r} is cleaned by rules drafted from rows, so who "
                    "is one person would depend on others: confirm them (confirmed:), or leave clean out."
                )
        for role in (Role.WEIGHT, Role.HOUSEHOLD):
            if len(several := self.of_role(role)) > 1:
                raise InvalidParameter(f"one column at most has the role {role}, and these have it: {listed(several)}.")
        shared = [column.name for column in self.columns if column.shared]
        if shared and self.household is None:
            raise InvalidParameter(
                f"{shared[0]!r} is shared by households: give the household ID column the role household."
            )

    def __getitem__(self, name: str) -> Column:
        """Return a column by its name."""
        for column in self.columns:
            if column.name == name:
                return column
        near = difflib.get_close_matches(name, self.names, 1)
        hint = f" Did you mean {near[0]!r}?" if near else f" There are {listed(self.names)}."
        raise InvalidParameter(f"there is no column {name!r} in the schema.{hint}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(column.name for column in self.columns)

    def of_role(self, role: Role) -> tuple[str, ...]:
        """Return the columns of exactly this role, in order."""
        return tuple(column.name for column in self.columns if column.role is role)

    @property
    def household(self) -> str | None:
        """The household ID column, if there is one."""
        return next(iter(self.of_role(Role.HOUSEHOLD)), None)

    @property
    def weight(self) -> str | None:
        """The column of survey weights, if there is one."""
        return next(iter(self.of_role(Role.WEIGHT)), None)

    @property
    def quasi(self) -> tuple[str, ...]:
        """The released linkable columns: quasi-identifiers, and the strata of a sample."""
        return tuple(column.name for column in self.released if Role.QUASI.covers(column.role))

    @property
    def released(self) -> tuple[Column, ...]:
        """The columns that may be released: all but identifiers and households, and those only as pseudonyms."""
        return tuple(
            column for column in self.columns if not Role.IDENTIFIER.covers(column.role) or column.pseudonymous
        )

    @property
    def unreleased(self) -> tuple[Column, ...]:
        """The columns that are not released."""
        return tuple(column for column in self.columns if column not in self.released)

    @property
    def protects(self) -> str:
        """Whom a guarantee protects, in words."""
        return str(self.unit)

    @property
    def everywhere(self) -> tuple[Column, ...]:
        """The columns of all tables: of one table, its own."""
        return self.columns

    @property
    def released_everywhere(self) -> tuple[Column, ...]:
        """The columns of all tables that may be released."""
        return self.released

    @property
    def drafted(self) -> tuple[str, ...]:
        """The released columns whose domain or hierarchy was drafted from rows and has no public source.

        A guarantee that is computed without the rows cannot depend on them.
        """
        return tuple(column.name for column in self.released if not all(source.sound for source in column.provenances))


def written_as(value: str, kind: Type) -> str | None:
    """Return a value as the type writes it, or None if it cannot be read.

    >>> written_as("05", Type.INTEGER), written_as("x", Type.INTEGER)
    ('5', None)
    """
    stored = parse(value, kind)
    return None if stored is None else canonical(pa.array([stored], kind.storage))[0].as_py()
