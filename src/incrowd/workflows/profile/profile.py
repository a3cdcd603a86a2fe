"""Profile: the columns of an undescribed table, with guessed types and roles; for the data holder."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from incrowd.core.cleaning import Cleaning
from incrowd.core.domain import Type
from incrowd.core.schema import Role
from incrowd.core.table import Engine, Rows
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import InvalidParameter, SourceInvalid
from incrowd.measures.risk.sketch import TupleSpread
from incrowd.workflows.profile.column_names import CODES, IDS, KNOWN, NAMING, PLACES, SECRET, THINGS, spoken
from incrowd.workflows.profile.facts import ColumnLearners, Facts
from incrowd.workflows.profile.identifiers import Identity, identity_of
from incrowd.workflows.profile.subsets import MOST_COLUMNS, MOST_IN_TRIPLES, Subset, subsets
from incrowd.workflows.profile.suggestions import CleaningSuggestion, cleaned_facts, suggested_cleaning

_LONG = 40
_NEARLY_ALL = 0.9
_FEW_ROWS = 20


def guessed_type(facts: Facts) -> tuple[Type, str]:
    """Return the type and the reason; a number that is a code stays text, so that leading zeros remain.

    >>> from incrowd.measures.risk.sketch import TupleSpread
    >>> spread = TupleSpread(3, 3, 3, True, 0.0)
    >>> guessed_type(Facts("age", 0, spread, (Type.INTEGER, Type.TEXT), 1, 9, (1, 1), "digits", None))
    (<Type.INTEGER: 'integer'>, 'every value is a whole number')
    >>> guessed_type(Facts("zip", 0, spread, (Type.INTEGER, Type.TEXT), 1, 9, (5, 5), "digits", None))[0]
    <Type.TEXT: 'text'>
    """
    first = facts.kinds[0]
    if first is Type.BOOLEAN and len(facts.values or ()) < 2:
        first = Type.TEXT  # a column with nothing but F need not mean false
    if first in (Type.INTEGER, Type.DECIMAL) and spoken(facts.name, CODES):
        return Type.TEXT, "numbers that are codes, by the column's name"
    match first:
        case Type.INTEGER:
            return first, "every value is a whole number"
        case Type.DECIMAL:
            return first, "every value is a number"
        case Type.DATE:
            return first, "every value is a day"
        case Type.BOOLEAN:
            return first, "every value says true or false"
    if facts.shape == "digits":
        return Type.TEXT, "digits, some with a zero in front or too many for a number"
    if facts.shape == "codes":
        return Type.TEXT, "letters, then digits"
    return Type.TEXT, "free text" if facts.lengths[1] > _LONG and facts.values is None else "words"


def guessed_role(
    facts: Facts, kind: Type, identity: Identity | None = None, *, measured: bool = False
) -> tuple[Role, str]:
    """Return the role and the reason.

    A column is an identifier if its values or its name say so, or if nearly every row has a unique value that is
    neither `measured` with a unit nor a postal code; else its name decides; else it is a quasi-identifier, which is
    the cautious guess.

    >>> from incrowd.measures.risk.sketch import TupleSpread
    >>> facts = Facts("ward_nurse", 0, TupleSpread(9, 3, 0, True, 0.0), (Type.TEXT,), None, None, (1, 2), "words", None)
    >>> guessed_role(facts, Type.TEXT)[0]
    <Role.QUASI: 'quasi'>
    """
    share = facts.spread.unique_share
    own = f"{share:.0%} of the rows have a unique value"
    naming, public, secret = (spoken(facts.name, words) for words in (NAMING, KNOWN, SECRET))
    if facts.spread.distinct <= 1 and facts.spread.rows > 1:
        if naming and not public:  # the rows of one person
            return Role.IDENTIFIER, f"{naming!r} in its name"
        return Role.PLAIN, "the same in every row"
    if identity is not None:
        return Role.IDENTIFIER, identity.sentence
    if naming and not public and facts.spread.distinct > 2:
        return Role.IDENTIFIER, f"{naming!r} in its name"
    counted = kind in (Type.TEXT, Type.INTEGER) and facts.spread.rows >= _FEW_ROWS
    counted &= not measured and spoken(facts.name, PLACES) is None
    if counted and share >= _NEARLY_ALL and not (kind is Type.INTEGER and (public or secret)):
        return Role.IDENTIFIER, own
    if secret and not public:
        return Role.SENSITIVE, f"{secret!r} in its name"
    if public:
        return Role.QUASI, f"{public!r} in its name: others may know it"
    return Role.QUASI, "others may know it: the cautious guess"


_EXAMPLES = 3


@dataclass(frozen=True)
class ColumnProfile:
    """A column: its facts, and its guessed type and role."""

    facts: Facts
    type: Type
    role: Role
    why_type: str
    why_role: str
    identity: Identity | None = None
    clean: CleaningSuggestion | None = None

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def summary(self) -> str:
        """Its values as a short text: the range of numbers and days, else the most frequent ones."""
        if self.facts.low is not None and self.type is not Type.TEXT:
            return f"{self.facts.low} to {self.facts.high}"
        if self.facts.values is None or self.role is Role.IDENTIFIER:
            return ""
        some = ", ".join(value for value, _ in self.facts.values[:_EXAMPLES])
        return some + (", …" if len(self.facts.values) > _EXAMPLES else "")

    @property
    def cleaned(self) -> ColumnProfile:
        """The column as it is after the suggested cleaning."""
        if self.clean is None:
            return self
        return replace(_profiled(cleaned_facts(self.facts, self.clean.cleaning)), clean=self.clean)

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        facts = self.facts
        listed = None if facts.values is None or self.role is Role.IDENTIFIER else dict(facts.values)
        return {
            "name": self.name,
            "type": str(self.type),
            "why_type": self.why_type,
            "role": str(self.role),
            "why_role": self.why_role,
            "identity": None if self.identity is None else self.identity.to_json(),
            "nearly": None if facts.nearly is None else facts.nearly.to_json(),
            "missing": facts.missing,
            **_spread_json(facts.spread),
            "low": None if facts.low is None or self.type is Type.TEXT else str(facts.low),
            "high": None if facts.high is None or self.type is Type.TEXT else str(facts.high),
            "values": listed,
            "clean": None if self.clean is None or self.role is Role.IDENTIFIER else self.clean.to_json(),
        }


@dataclass(frozen=True)
class TableProfile:
    """A table: its columns, and which two or three of them single people out, the riskiest first."""

    rows: int
    columns: tuple[ColumnProfile, ...]
    subsets: tuple[Subset, ...]
    notes: tuple[str, ...]
    totals: tuple[str, ...] = ()
    """The first cells of rows that seem to be sums."""

    def __getitem__(self, name: str) -> ColumnProfile:
        """Return a column by its name."""
        for column in self.columns:
            if column.name == name:
                return column
        raise InvalidParameter(f"there is no column {name!r} in the data.")

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        subsets_json = [{"columns": list(subset.columns), **_spread_json(subset.spread)} for subset in self.subsets]
        columns = [column.to_json() for column in self.columns]
        return {"rows": self.rows, "columns": columns, "subsets": subsets_json} | {
            "notes": list(self.notes),
            "totals": list(self.totals),
        }


def profile(rows: Rows, engine: Engine = LOCAL, reading: Mapping[str, Cleaning] | None = None) -> TableProfile:
    """Learn the columns in one pass and their pairs and triples in another; memory does not grow with the rows.

    `reading` are the guessed rules by which cells of some columns were cleaned as they were read.

    Both passes run where the rows are stored; only facts and sketches come here, at most about 64 MB.

    >>> import pyarrow as pa
    >>> from incrowd.engines.readers.sources import open_source
    >>> found = profile(open_source(pa.table({"sex": ["F", "M", "F"], "zip": ["02139", "02139", "02138"]})))
    >>> [(column.name, str(column.type), str(column.role)) for column in found.columns]
    [('sex', 'text', 'quasi'), ('zip', 'text', 'quasi')]
    >>> found.subsets[0].columns, found.subsets[0].spread.unique_share
    (('sex', 'zip'), 1.0)
    """
    learned = engine.learn(rows, rows.names, partial(ColumnLearners, rows.names))
    columns = tuple(_profiled(facts, (reading or {}).get(facts.name)) for facts in learned.facts())
    if not columns or not columns[0].facts.spread.rows:
        raise SourceInvalid("there are no rows to profile. Check that this is the right file.")
    chosen, notes = _subset_columns(columns)
    by_subset = subsets(rows, chosen, engine, {column.name: column.facts.spread.distinct for column in columns})
    if any(not subset.spread.exact for subset in by_subset):
        margin = max(subset.spread.margin for subset in by_subset)
        part = "pairs and triples are estimated from a fair sample of their values"
        notes += (f"{part}, to within {margin:.1%} of the rows; every row was read",)
    return TableProfile(columns[0].facts.spread.rows, columns, by_subset, notes, learned.totals)


def identities_of(rows: Rows, names: Sequence[str], engine: Engine = LOCAL) -> dict[str, Identity]:
    """Return the columns that seem to be identifiers of people, with the reason; one pass over them.

    >>> from incrowd.engines.readers.sources import open_source
    >>> rows = open_source(pa.table({"who": ["ann@example.org", "bob@example.org"], "age": ["1", "2"]}))
    >>> {name: identity.kind for name, identity in identities_of(rows, rows.names).items()}
    {'who': 'e-mail addresses'}
    """
    stored = engine.types(rows, names)
    plain = tuple(name for name in names if not pa.types.is_nested(stored[name]))
    if not plain:
        return {}
    learned = engine.learn(rows, plain, partial(ColumnLearners, plain))
    identities = ((facts.name, identity_of(facts, guessed_type(facts)[0])) for facts in learned.facts())
    return {name: identity for name, identity in identities if identity is not None}


def _profiled(facts: Facts, reading: Cleaning | None = None) -> ColumnProfile:
    kind, why_type = guessed_type(facts)
    identity = identity_of(facts, kind)
    role, why_role = guessed_role(facts, kind, identity, measured=reading is not None and bool(reading.units))
    clean = None if role is Role.IDENTIFIER else suggested_cleaning(facts, kind, reading)
    return ColumnProfile(facts, kind, role, why_type, why_role, identity, clean)


def _subset_columns(columns: Sequence[ColumnProfile]) -> tuple[list[str], tuple[str, ...]]:
    """Return the columns whose subsets are counted, and a note if that is not all of them."""
    free = [column for column in columns if column.role is not Role.IDENTIFIER and column.facts.spread.distinct > 1]
    names = [column.name for column in free]
    if len(free) <= MOST_IN_TRIPLES:
        return names, ()
    most = sorted(free, key=lambda column: -column.facts.spread.distinct)[:MOST_COLUMNS]
    chosen = {column.name for column in most}
    note = (
        f"of {len(free)} columns, pairs of the {len(most)} and triples of the {MOST_IN_TRIPLES} with the most "
        "different values were counted"
    )
    return [name for name in names if name in chosen], (note,)


def _spread_json(spread: TupleSpread) -> dict[str, Any]:
    values = {name: value for name, value in asdict(spread).items() if name != "rows"}
    return values | {"unique_share": spread.unique_share}


_KINDS = ("ids of people", "national or tax ids", "user names", "e-mail addresses", "phone numbers", "bank accounts")
_MOST_MISSING = 0.05
_LEAST_DISTINCT = 0.02
_ROWS_EACH = 1.02
_MANY_IDS = 50


@dataclass(frozen=True)
class PersonColumn:
    """The person ID column, about how many people there are, and the most rows of one person.

    The most rows are a fact about one person: they are for the data holder, and in no draft.
    """

    name: str
    people: int
    most_rows: int
    exact: bool

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return {"column": self.name, "people": self.people, "most_rows": self.most_rows, "exact": self.exact}


@dataclass(frozen=True)
class PersonQuestion:
    """A column whose values repeat like ids, so that each may be one person: the data holder decides.

    >>> PersonQuestion("Visit", 25721, 11708).sentence
    'Visit has 25,721 rows and 11,708 values: is this one person? If so, --unit Visit'
    """

    name: str
    rows: int
    values: int

    @property
    def sentence(self) -> str:
        """The question, and the option that answers it."""
        named = f"{self.name} has {self.rows:,} rows and {self.values:,} values"
        return f"{named}: is this one person? If so, --unit {shlex.quote(self.name)}"

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return {"column": self.name, "rows": self.rows, "values": self.values}


def person_column(profile: TableProfile, declared: str | None = None) -> PersonColumn | None:
    """Return the person ID column: the declared one, else one that repeats, then one that names people, else none.

    >>> import pyarrow as pa
    >>> from incrowd.engines.readers.sources import open_source
    >>> from incrowd.workflows.profile.profile import profile
    >>> trips = pa.table({"rider": [f"R{n % 30:03d}" for n in range(90)], "km": [str(n % 7) for n in range(90)]})
    >>> person_column(profile(open_source(trips)))
    PersonColumn(name='rider', people=30, most_rows=3, exact=True)
    >>> person_column(profile(open_source(trips)), "km").people
    7
    """
    if declared is not None:
        return _as_person(profile[declared])
    ranked = [(rank, column) for column in profile.columns if (rank := _rank(column)) is not None]
    return _as_person(min(ranked, key=lambda pair: pair[0])[1]) if ranked else None


def person_questions(profile: TableProfile, declared: str | None = None) -> tuple[PersonQuestion, ...]:
    """Return the other columns that repeat like ids: no draft releases them before the data holder decides.

    >>> from incrowd.engines.readers.sources import open_source
    >>> trips = pa.table({"trip": [f"{n % 300:05d}" for n in range(900)], "km": [str(n % 7) for n in range(900)]})
    >>> [question.name for question in person_questions(profile(open_source(trips)))]
    ['trip']
    """
    person = person_column(profile, declared)
    chosen = None if person is None else person.name
    return tuple(
        PersonQuestion(column.name, column.facts.spread.rows, column.facts.spread.distinct)
        for column in profile.columns
        if column.name != chosen and column.role is not Role.IDENTIFIER and _repeats_like_ids(column)
    )


def _as_person(column: ColumnProfile) -> PersonColumn:
    spread = column.facts.spread
    return PersonColumn(column.name, spread.distinct - bool(column.facts.missing), spread.most, spread.exact)


def _rank(column: ColumnProfile) -> tuple[bool, int] | None:
    """Return the rank of a column as person ID column, the least is best; None if it is not one."""
    facts = column.facts
    rows, distinct = facts.spread.rows, facts.spread.distinct
    if facts.missing > _MOST_MISSING * rows or column.type not in (Type.TEXT, Type.INTEGER):
        return None
    repeats = rows >= _ROWS_EACH * distinct
    if column.identity is not None:
        return (not repeats, _KINDS.index(column.identity.kind)) if column.identity.kind in _KINDS else None
    if not repeats or distinct < max(2, _LEAST_DISTINCT * rows) or spoken(column.name, THINGS):
        return None
    named = column.role is Role.IDENTIFIER and spoken(column.name, IDS) is not None
    coded = facts.values is None and column.type is Type.TEXT and facts.shape in ("codes", "digits")
    return (False, len(_KINDS) + (not named)) if named or coded else None


def _repeats_like_ids(column: ColumnProfile) -> bool:
    """Whether a column has many values, most of them in several rows, that are codes or are named as ids."""
    spread, lengths = column.facts.spread, column.facts.lengths
    many = spread.distinct >= max(_MANY_IDS, _LEAST_DISTINCT * spread.rows)
    if not many or spread.rows < _ROWS_EACH * spread.distinct or column.type not in (Type.TEXT, Type.INTEGER):
        return False
    coded = column.type is Type.TEXT and column.facts.shape in ("codes", "digits") and lengths[1] - lengths[0] <= 1
    return not spoken(column.name, THINGS | SECRET) and (coded or spoken(column.name, IDS) is not None)
