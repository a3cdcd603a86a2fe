"""The sections of a policy file: what may stand where, and what each word means.

Every scalar arrives as the text that was written (see `document`); `scalars` give it its type.  The published
JSON Schema is made from them.
"""

from __future__ import annotations

import re
from datetime import date
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from incrowd.core.schema import MAX_LENGTH
from incrowd.engines.readers.spelling import Spelling
from incrowd.errors import InvalidParameter
from incrowd.governance.consent.event import moment
from incrowd.workflows.policy.scalars import (
    Day,
    Decimals,
    Exact,
    GroupSize,
    HeaderRow,
    MaxGroups,
    MaxLength,
    MaxRows,
    Prefix,
    Redaction,
    Whole,
    Word,
)

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


def _words(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


_MORE = (
    "For people with more rows: drop suppresses them, refuse refuses the source; by default max_rows of their rows are "
    "used."
)


class Section(BaseModel):
    """A part of the policy: frozen, and nothing unknown in it."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class UnitSection(Section):
    """The unit of privacy: one row by default; with a column, one person; in a graph, an edge or a node."""

    kind: Literal["edge", "edge of one kind", "node"] | None = Field(
        None,
        description="Of a graph: edge hides all that connects two nodes, edge of one kind hides one edge of one kind "
        "and direction, node hides one with all its edges.",
    )
    column: str | None = Field(
        None,
        description="The person ID column, by its declared type; rows without a value are suppressed.",
    )
    max_rows: MaxRows = Field(1, description="Maximum rows per person; with period: per person and period.")
    more: Literal["drop", "refuse"] | None = Field(None, description=_MORE)
    per: Literal["period"] | None = Field(
        None, description="period: the unit is a person in one period; by default a person over all periods."
    )
    adjacency: Literal["add-remove", "replace-one"] = Field(
        "add-remove", description="Neighboring tables: a person is added or removed, or replaced by another."
    )


class DatasetSection(Section):
    """What the data is called, for good: budgets are kept under this name."""

    name: str = Field(description="The name under which the ledger keeps this dataset's budget.")
    unit: UnitSection = Field(UnitSection(), description="The unit of privacy; by default one row.")
    period: str | None = Field(None, description="Reference period of the data.")
    version: str | None = Field(None, description="Version of the data: a query about another version is a new query.")
    population: Whole | None = Field(
        None, description="How many people the data could be about; a public number, used for a warning only."
    )
    rows: Whole | None = Field(
        None,
        description="Approximate public number of rows, for the expected output; with period: of all periods.",
    )
    same_people_as: str | None = Field(None, description="Another dataset about the same people: they share a budget.")
    separate: str | None = Field(
        None, description="Why rows that another dataset shares, in whole or by half, get a separate budget."
    )


class SourceSection(Section):
    """Where the rows are and how they are read; a plain path is enough for most."""

    path: str | None = Field(None, description="A file or folder, or an address; left out for a table of the engine.")
    format: Literal["csv", "parquet", "arrow", "excel", "statistics", "sqlite", "duckdb"] | None = Field(
        None, description="By default as the first bytes and the ending tell."
    )
    delimiter: str | None = Field(
        None, description="Column delimiter of a text file; default: the one of , ; tab | that fits the header."
    )
    encoding: str | None = Field(
        None, description="Such as `cp1252`; by default as a byte-order mark tells, else UTF-8."
    )
    quote: str | None = Field(None, description='What quotes cells of a text file, by default `"`; empty for nothing.')
    header: bool | None = Field(None, description="Whether the columns are named in the file; by default they are.")
    header_row: HeaderRow | None = Field(
        None, description="Number of the line with the column names; default: the first."
    )
    names: tuple[str, ...] | None = Field(None, description="The columns, where the file does not name them.")
    nulls: tuple[str, ...] | None = Field(
        None, description='Text of a missing value, such as `["", "k.A."]`; by default an empty cell.'
    )
    totals: tuple[str, ...] | None = Field(
        None, description="First cells of rows that are sums, such as Total: these rows are left out."
    )
    decimal: Literal[".", ","] | None = Field(
        None, description="Decimal separator of numbers in text; by default a point."
    )
    thousands: Literal[".", ",", "'", " "] | None = Field(
        None, description="Thousands separator of numbers in text; by default none."
    )
    dates: tuple[str, ...] | None = Field(
        None, description="Date formats in text, such as `%d.%m.%Y`; `2024-12-31` is always read."
    )
    sheet: Word | None = Field(None, description="The sheet of a workbook, by name or number; by default the first.")
    table: str | None = Field(None, description="A table of a database, or of the engine.")
    query: str | None = Field(None, description="A query to the database, run once.")
    labels: bool | None = Field(None, description="Labels of SPSS, Stata and SAS in place of codes; by default true.")
    catalog: str | None = Field(None, description="The catalog of labels of a SAS file.")

    @field_validator("nulls", "totals", "dates", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return _words(value)

    @model_validator(mode="after")
    def _spelled(self) -> SourceSection:
        try:
            Spelling(self.decimal, self.thousands, self.dates or ())
        except InvalidParameter as error:
            raise ValueError(str(error).removesuffix(".")) from None
        return self

    @model_validator(mode="after")
    def _somewhere(self) -> SourceSection:
        if self.path is None and self.table is None:
            raise ValueError("needs a path, or the name of a table that the engine has")
        return self


NAMED, SETTINGS = "by name", "with settings"
"""The two ways to write an engine or a source; nobody writes these words."""


def _written_by(value: Any) -> str:
    return NAMED if isinstance(value, str) else SETTINGS


AnySource = Annotated[Annotated[str, Tag(NAMED)] | Annotated[SourceSection, Tag(SETTINGS)], Discriminator(_written_by)]


class SparkSection(Section):
    """A Spark cluster; without master and remote, Spark in this machine."""

    master: str | None = Field(None, description="The cluster's master, such as spark://host:7077 or yarn.")
    remote: str | None = Field(
        None, description="Instead of a master: a Spark Connect server, such as sc://host:15002."
    )
    config: dict[str, Word] = Field(default_factory=dict, description="Settings of the session; never secrets.")
    id: str | None = Field(None, description="A column with a different value in each row; for tables and views.")


class EngineSection(Section):
    """The engine on which rows are worked on, with its settings."""

    spark: SparkSection = Field(description="The cluster and the settings of its session.")


AnyEngine = Annotated[
    Annotated[Literal["local", "spark"], Tag(NAMED)] | Annotated[EngineSection, Tag(SETTINGS)],
    Discriminator(_written_by),
]


class HierarchySection(Section):
    """How a column is generalized: exactly one rule."""

    intervals: tuple[Exact, ...] | None = Field(None, description="Widths, each a multiple of the one before.")
    origin: Exact | None = Field(None, description="Where the first interval starts; by default the lower bound.")
    open_ends: bool | None = Field(
        None, description="Label the first and last interval as open; always where values outside go to the ends."
    )
    cuts: tuple[tuple[Exact, ...], ...] | None = Field(None, description="Cut points, one list a level.")
    spikes: tuple[Exact, ...] = Field(
        (), description="Numbers that very many rows have, such as 0: classes of their own, beside intervals or cuts."
    )
    prefix: tuple[Prefix, ...] | None = Field(None, description="How many characters are kept, level by level.")
    redaction: Redaction | None = Field(None, description="Length of the text; each level stars one more character.")
    dates: tuple[Literal["week", "month", "quarter", "year", "decade"], ...] | None = Field(
        None, description="Which parts of the calendar a day becomes, level by level."
    )
    groups: tuple[GroupSize, ...] | None = Field(None, description="Sizes of groups of neighboring categories.")
    tree: dict[str, Any] | None = Field(None, description="Coarse label to finer labels to values.")
    classification: Literal["icd-10", "isco-08", "nace-2"] | None = Field(
        None, description="A public classification of codes: first characters, then chapters."
    )
    file: str | None = Field(None, description="A CSV file in ARX's format: value, then its label on each level.")
    delimiter: str = Field(";", description="Column delimiter of that file.")
    pseudonym: str | None = Field(None, description="A file with a secret key of 32 bytes or more, kept apart.")
    derived: Literal["rows"] | None = Field(None, description="Set when this is data-dependent (drafted from rows).")
    public: str | None = Field(None, description="The public source of the same values.")

    @field_validator("intervals", "spikes", "prefix", "dates", "groups", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return _words(value)

    @model_validator(mode="after")
    def _one_rule(self) -> HierarchySection:
        rules = (
            *("intervals", "cuts", "prefix", "redaction", "dates", "groups", "tree", "classification", "file"),
            "pseudonym",
        )
        present = [name for name in rules if getattr(self, name) is not None]
        if len(present) != 1:
            raise ValueError(
                f"needs exactly one of {', '.join(rules)}" + (f"; got {', '.join(present)}" if present else "")
            )
        if self.spikes and present[0] not in ("intervals", "cuts"):
            raise ValueError(f"spikes stand beside intervals or cuts, not beside {present[0]}")
        return self


class CleanSection(Section):
    """How the cells of a column are rewritten when they are read, each on its own."""

    trim: bool = Field(default=False, description="Remove outer spaces, and repeated ones within.")
    case: Literal["lower", "upper"] | None = Field(None, description="Write all texts in these letters.")
    unicode: Literal["nfc", "nfkc"] | None = Field(None, description="Write all texts in this normal form of Unicode.")
    mend: str | None = Field(None, description="The encoding as which UTF-8 was misread, such as cp1252.")
    missing: tuple[Word, ...] = Field((), description="Words for a missing value, such as onbekend.")
    units: tuple[Word, ...] = Field((), description="Units before or after a number, such as € or kg: removed.")
    decimal: str | None = Field(None, description="Decimal mark of this column, if it differs from the source's.")
    thousands: str | None = Field(None, description="Thousands mark of this column, if it differs from the source's.")
    spellings: dict[str, tuple[Word, ...]] = Field(
        default_factory=dict,
        description="A label, and the other texts that mean the same; certificates name labels only.",
    )
    derived: Literal["rows"] | None = Field(
        None, description="Set when the rules are data-dependent (drafted from rows)."
    )
    confirmed: str | None = Field(None, description="The confirmation of drafted rules: a person, or a public list.")

    @field_validator("missing", "units", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return _words(value)

    @field_validator("spellings", mode="before")
    @classmethod
    def _one_or_many_each(cls, value: Any) -> Any:
        return {label: _words(others) for label, others in value.items()} if isinstance(value, dict) else value


class ColumnSection(Section):
    """One column: its role, its type, its public domain, and what becomes of what does not fit."""

    role: Literal["identifier", "withheld", "quasi", "sensitive", "plain", "weight", "household", "strata"] = Field(
        "quasi",
        description="identifier: names a person, never released; withheld: not released; quasi: others may know it; "
        "sensitive: nobody should learn it; plain: neither. Of a survey, weight: how many people a row stands for, "
        "released like a plain column; household: identifies households, never released; strata: a quasi-identifier by "
        "which the sample was drawn.",
    )
    label: str | None = Field(
        None, description="What it is called for people: its label in released files of Stata, SPSS and SAS."
    )
    shared: bool = Field(
        default=False, description="Whether a household has one value of it: masks change it for the whole household."
    )
    type: Literal["integer", "decimal", "text", "date", "boolean"] = Field(
        "text", description="What its values are; what cannot be read so is refused, with the line."
    )
    bounds: tuple[Word | None, Word | None] | None = Field(None, description="Lowest and highest value, both included.")
    categories: tuple[Word, ...] | None = Field(None, description="All values, as written.")
    hierarchy: HierarchySection | None = Field(None, description="How its values are generalized, level by level.")
    decimals: Decimals | None = Field(
        None, description="How many decimals synthetic numbers have; by default as many as its classes need."
    )
    weekdays: tuple[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ...] | None = Field(
        None,
        description="On which days of the week synthetic days lie, such as [mon, tue, wed, thu, fri], by the methods "
        "marginals, tree and linked; by default on all. A row with another day counts in its interval.",
    )
    last_of: Literal["week", "month", "quarter", "year"] | None = Field(
        None,
        description="Synthetic days are the last one of each such period, of its weekdays without days off: month for "
        "days of accounts at the ends of months.",
    )
    days_off: tuple[Word, ...] | None = Field(
        None, description="Days on which no synthetic day lies: 2024-12-25, or 12-25 for every year."
    )
    separator: str | None = Field(None, description="For a column of item sets: the separator of items in text.")
    missing: Word = Field("class", description="class: its own class; drop: the row is suppressed; or a value instead.")
    outside: Literal["other", "ends", "bound", "drop"] | None = Field(
        None,
        description="Values outside: one class 'other'; ends, labels such as '2024 or earlier'; bound, where numbers "
        "are published and the bound stands for those beyond it; or no row at all.",
    )
    clean: CleanSection | None = Field(None, description="How its cells are rewritten when they are read.")
    max_length: MaxLength = Field(
        MAX_LENGTH, description="Maximum characters of free text that queries read; the rest is cut off."
    )
    derived: Literal["rows"] | None = Field(
        None, description="Set when bounds or categories are data-dependent (drafted from rows)."
    )
    public: str | None = Field(None, description="The public source of the same values.")


class PeriodBudget(Section):
    """How much one period, or all periods together, may cost."""

    epsilon: Exact = Field(Fraction(0), description="The largest ε.")
    delta: Exact = Field(Fraction(0), description="The largest δ.")


class WindowBudget(PeriodBudget):
    """How much any so many periods in a row may cost."""

    periods: Whole = Field(description="How many periods in a row.")


class BudgetSection(Section):
    """How much may be lost about the people in the dataset, for good."""

    epsilon: Exact = Field(
        Fraction(0), description="Total ε that all releases may cost one unit: a person, or a person in a period."
    )
    delta: Exact = Field(Fraction(0), description="Total δ that all releases may cost one unit.")
    unbounded: str | None = Field(None, description="The owner's reason to allow releases that have no epsilon.")
    period: PeriodBudget | None = Field(None, description="What each period may cost, where the unit is a person.")
    window: WindowBudget | None = Field(None, description="What any so many periods in a row may cost.")
    total: PeriodBudget | None = Field(
        None, description="What all periods may cost together, where the unit is a person in a period."
    )


class PeriodSection(Section):
    """The periods of a dataset that is released again and again; a release reads the rows of one of them."""

    column: str = Field(
        description="The column with the date of a row: of type date, or of type text with moments in ISO 8601."
    )
    every: Literal["day", "week", "month", "quarter", "year"] = Field(description="How long a period is.")
    first: Word = Field(description="The first period, such as 2025-03-31, 2025-W13, 2025-03, 2025-Q1 or 2025.")
    last: Word = Field(description="The last period.")
    zone: str | None = Field(None, description="The time zone in which moments are read, such as Europe/Berlin.")
    missing: Literal["drop", "unknown"] = Field(
        "drop", description="Rows without a date: drop leaves them out, unknown makes them one more period."
    )
    arrival: str | None = Field(
        None,
        description="The column with the day on which a row arrived. It then decides: late rows and corrections count "
        "in the period in which they arrived.",
    )
    series: str = Field("periods", description="The name of this series of releases in the ledger.")
    charge: Literal["period", "series"] = Field(
        "period",
        description="period charges each release for itself; series prices all releases together, at the first one: "
        "epsilon and delta under release: are then those of all of them.",
    )
    spare: Whole = Field(0, description="With charge: series, how many releases more are priced, for lost ones.")
    participations: Whole | None = Field(
        None,
        description="With charge: series, in how many periods somebody takes part, the first ones; a secret list "
        "enforces it, and the price is that of so many releases.",
    )


class ConsentSection(Section):
    """Where consent is recorded: apart from the data, with the key of pseudonyms in a third place."""

    registry: str = Field(description="The consent registry: a file, or the address of a database.")
    key: str = Field(description="A file with a secret key of 32 bytes or more; in neither folder of the other two.")
    as_of: str | None = Field(
        None,
        description="The moment as of which people must have consented, and still do at the run; by default the run.",
    )
    calendar: tuple[str, ...] | None = Field(
        None,
        description="The days, in UTC, on which releases without an epsilon are made; fixed before the first of them.",
    )

    @field_validator("calendar")
    @classmethod
    def _days(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is None:
            return None
        if not value or list(value) != sorted(set(value)) or not all(_DAY.fullmatch(day) for day in value):
            raise ValueError("a calendar lists days such as 2026-05-01, each once, the earliest first")
        try:
            return tuple(date.fromisoformat(day).isoformat() for day in value)
        except ValueError:
            raise ValueError("a calendar lists days such as 2026-05-01, each once, the earliest first") from None

    @field_validator("as_of")
    @classmethod
    def _moment(cls, value: str | None) -> str | None:
        try:
            return None if value is None else moment(value)
        except InvalidParameter as error:
            raise ValueError(str(error).removesuffix(".")) from None


class TableSection(Section):
    """One more table: of the same people, for queries and linked synthesis, or public."""

    source: AnySource = Field(description="Where its rows are.")
    public: bool = Field(False, description="Whether the table is public and needs no protection.")
    unit: str | None = Field(None, description="The person ID column, with the values of the main table.")
    max_rows: MaxRows = Field(1, description="Maximum rows per person.")
    more: Literal["drop", "refuse"] | None = Field(None, description=_MORE)
    columns: dict[str, ColumnSection] = Field(description="Its columns, declared as those of the main table are.")
    parent: str | None = Field(
        None,
        description="For the method linked: the table whose rows its rows belong to; the main table has the dataset's "
        "name.",
    )
    foreign_key: str | None = Field(
        None, description="The column that names the parent's row; below the main table it is unit."
    )
    id: str | None = Field(None, description="Its own row ID column, which tables below it name as foreign_key.")
    order: str | None = Field(
        None,
        description="The column by which the rows of a parent are a sequence: the first max_rows are read, and each "
        "may depend on the one before.",
    )
    depends_on: tuple[str, ...] | None = Field(
        None,
        description="Columns above that its own may depend on, such as age; default: all of its parent.",
    )

    @model_validator(mode="after")
    def _public_or_of_people(self) -> TableSection:
        if self.parent is not None and self.public:
            raise ValueError("a public table has no parent: its rows belong to nobody")
        if self.parent is None and self.public == (self.unit is not None):
            raise ValueError("needs either public: true, or unit: with the person ID column")
        for name in ("foreign_key", "id", "order", "depends_on"):
            if self.parent is None and getattr(self, name) is not None:
                raise ValueError(f"{name} needs parent, the table whose rows its rows belong to")
        if self.parent is not None and self.unit is None and self.foreign_key is None:
            raise ValueError("needs unit, the person ID column, or foreign_key, the column that names the parent's row")
        return self


class NodesSection(Section):
    """The nodes of a graph: where they are, what tells them apart, and what else is known of each."""

    source: AnySource | None = Field(
        None,
        description="Where the nodes are: a table, or a GraphML file; without one, the nodes are the ends of edges.",
    )
    id: str = Field(description="The node ID column; it is not released.")
    columns: dict[str, ColumnSection] = Field(
        default_factory=dict, description="Further columns of nodes, declared as those of a table are."
    )

    @model_validator(mode="after")
    def _columns_of_a_source(self) -> NodesSection:
        if self.columns and self.source is None:
            raise ValueError("columns of nodes need a source: an edge list names nodes only")
        return self


class EdgesSection(Section):
    """The edges of a graph: where they are, which columns name their ends, and what becomes of odd ones."""

    source: AnySource = Field(description="Where the edges are: a table, or a GraphML file.")
    ends: tuple[str, str] = Field(("source", "target"), description="The two columns that name the ends of an edge.")
    directed: bool = Field(
        default=False,
        description="Whether a to b and b to a are two edges; edge-kinds counts them apart, for all other methods they "
        "connect one pair.",
    )
    kind: str | None = Field(None, description="The column of edge kinds.")
    kinds: tuple[Word, ...] = Field((), description="The kinds that count; by default all.")
    loops: Literal["refuse", "drop"] = Field(
        "refuse", description="Edges from a node to itself: the source is refused, or they are dropped."
    )
    doubles: Literal["refuse", "drop"] = Field(
        "refuse", description="Duplicate edges: the source is refused, or they count once."
    )
    unknown: Literal["refuse", "drop"] = Field(
        "refuse",
        description="Edges to nodes that are not among the nodes: the source is refused, or they are dropped.",
    )

    @model_validator(mode="after")
    def _kinds_of_a_column(self) -> EdgesSection:
        if self.kinds and self.kind is None:
            raise ValueError("kinds needs kind, the column that holds them")
        return self


class QueriesSection(Section):
    """Which queries are allowed, by `incrowd query` and `incrowd serve`."""

    table: str | None = Field(None, description="Name of the main table in SQL; default: the dataset's name.")
    most_epsilon: Exact | None = Field(
        None, description="Maximum epsilon of one query; by default 1 for a query of an analyst."
    )
    open: bool = Field(
        default=False, description="Whether analysts may query without an allowance, up to the whole budget."
    )
    readers: tuple[str, ...] = Field(
        (), description="Analysts who may see the queries of others; everyone else sees only their own."
    )
    pushdown: bool = Field(
        default=False, description="Whether PostgreSQL computes the answers, instead of copying its tables here."
    )
    max_groups: MaxGroups | None = Field(None, description="Maximum groups of an answer per person; default: max_rows.")
    today: Day | None = Field(
        None, description="The value of `CURRENT_DATE` in queries, such as 2025-12-31; by default none."
    )
