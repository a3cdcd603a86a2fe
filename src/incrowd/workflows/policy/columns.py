"""Sections of a policy become columns of the schema, further tables, and the place of a graph."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from incrowd.core.cleaning import Cleaning, LetterCase, UnicodeForm
from incrowd.core.days import DayRule
from incrowd.core.domain import Categories, Dates, Domain, Numbers, Provenance, Text, Type, Weekday
from incrowd.core.graph import GraphSchema, Relations
from incrowd.core.hierarchy.calendar import Calendar, Period
from incrowd.core.hierarchy.flat import Flat, flat
from incrowd.core.hierarchy.hierarchy import Hierarchy
from incrowd.core.hierarchy.intervals import Cuts, Intervals, spiked
from incrowd.core.hierarchy.text import Classification, Prefix, Pseudonyms, Redaction
from incrowd.core.hierarchy.tree import TreeHierarchy, ordered, parse_arx, tree
from incrowd.core.linked import ChildTable
from incrowd.core.schema import Column, Missing, Outside, Role, Schema
from incrowd.core.table import SourceOptions
from incrowd.core.unit import ExtraRowsRule, Kind, Unit
from incrowd.engines.readers.spelling import Spelling
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.sections import CleanSection, ColumnSection, EdgesSection, HierarchySection, TableSection

if TYPE_CHECKING:
    from incrowd.methods.graphs.shared.steps import Connect

Span = TypeVar("Span", Numbers, Dates)


def column_of(name: str, section: ColumnSection, folder: Path) -> Column:
    """Return the declared column; files are taken from `folder`.

    >>> age = ColumnSection(role="quasi", type="integer", bounds=("0", "99"), hierarchy={"intervals": ["10"]})
    >>> column_of("age", age, Path()).hierarchy.labels(1)[:2]
    ('< 10', '[10, 20)')
    """
    domain = _domain(section)
    return Column(
        name,
        Role(section.role),
        Type(section.type),
        _hierarchy(section, domain, folder),
        Missing(section.missing) if section.missing in tuple(Missing) else section.missing,
        None if section.outside is None else Outside(section.outside),
        section.separator,
        section.shared,
        section.label,
        section.max_length,
        None if section.clean is None else _cleaning(section.clean),
        section.decimals,
        _days(section),
    )


def _days(section: ColumnSection) -> DayRule | None:
    if (section.weekdays, section.last_of, section.days_off) == (None, None, None):
        return None
    named = tuple(day for day in Weekday if day in (section.weekdays or ()))
    last_of = None if section.last_of is None else Period(section.last_of)
    return DayRule(named, last_of, section.days_off or ())


def _cleaning(section: CleanSection) -> Cleaning:
    Spelling(section.decimal, section.thousands)  # raises if it contradicts itself
    return Cleaning(
        mend=section.mend,
        form=None if section.unicode is None else UnicodeForm(section.unicode),
        trim=section.trim,
        missing=section.missing,
        case=None if section.case is None else LetterCase(section.case),
        units=section.units,
        decimal=section.decimal,
        thousands=section.thousands,
        spellings=tuple(section.spellings.items()),
        provenance=Provenance(section.derived is not None, section.confirmed),
    )


def attached(sections: dict[str, ColumnSection], name: str, folder: Path) -> dict[str, ColumnSection]:
    """Return the columns with the files of a folder: `age.csv`, or `adult_hierarchy_age.csv`, belongs to `age`.

    A column that has a hierarchy of its own keeps it, and one that is never released needs none.
    """
    place = folder / name
    if not place.is_dir():
        raise InvalidParameter(f"there is no folder {name}: a relative path starts in the policy's folder.")
    files = sorted(path for path in place.iterdir() if path.suffix.lower() == ".csv")
    attached_sections = dict(sections)
    for column, section in sections.items():
        own = [path for path in files if path.stem.lower() == column.lower()]
        named = own or [path for path in files if path.stem.lower().endswith(f"_{column.lower()}")]
        if len(named) > 1:
            both = " and ".join(path.name for path in named[:2])
            raise InvalidParameter(f"{both} are both named after the column {column!r}: keep one.")
        if named and section.hierarchy is None and not Role.IDENTIFIER.covers(section.role):
            file = f"{name.rstrip('/')}/{named[0].name}"
            rule = HierarchySection(file=file, delimiter=delimiter_of(_read(named[0], file)))
            attached_sections[column] = section.model_copy(update={"hierarchy": rule})
    if attached_sections == sections:
        raise InvalidParameter(f"no file in {name} is named after a column that needs a hierarchy.")
    return attached_sections


def delimiter_of(content: bytes) -> str:
    r"""Return the likely delimiter of a hierarchy file, by its first lines; among equals the semicolon, as in ARX.

    >>> delimiter_of(b"02139,021,*"), delimiter_of(b"02139"), delimiter_of("Köln, Deutz;*\nUlm;*".encode())
    (',', ';', ';')
    """
    from incrowd.engines.readers.dialect import first_lines, likely_delimiter

    text = content.decode("utf-8-sig", "replace")
    return likely_delimiter(lambda mark: [cells for _, cells in first_lines(text, mark, '"')], ";,\t|")


def files_of(sections: dict[str, ColumnSection], folder: Path) -> dict[str, str]:
    """Return the hash of every hierarchy file the policy names: the policy's hash covers them too."""
    named = {section.hierarchy.file for section in sections.values() if section.hierarchy and section.hierarchy.file}
    return {name: hashlib.sha256(_read(folder / name, name)).hexdigest() for name in sorted(named)}


def _domain(section: ColumnSection) -> Domain | None:
    provenance = Provenance(section.derived is not None, section.public)
    if section.categories is not None and section.bounds is not None:
        raise InvalidParameter("a column has bounds or categories, not both.")
    if section.categories is not None:
        return Categories(section.categories, provenance)
    low, high = section.bounds or (None, None)
    kind = Type(section.type)
    if kind in (Type.INTEGER, Type.DECIMAL):
        return Numbers(low, high, kind, provenance)
    if kind is Type.DATE:
        return Dates(low, high, provenance)
    if section.bounds is not None:
        raise InvalidParameter(f"only numbers and dates have bounds; list the categories of a {section.type} column.")
    return Text(provenance) if kind is Type.TEXT else None


def _hierarchy(section: ColumnSection, domain: Domain | None, folder: Path) -> Hierarchy:
    rule = section.hierarchy
    if rule is None:
        return Flat(domain, domain.provenance) if domain is not None else flat(Type(section.type))
    provenance = _provenance(section, rule)
    if rule.file is not None or rule.tree is not None:
        return _explicit(section, rule, provenance, folder)
    if rule.groups is not None:
        return ordered(_categories(domain).values, rule.groups, provenance)
    if rule.dates is not None:
        return Calendar(_expect(domain, Dates, "dates"), tuple(map(Period, rule.dates)), provenance)
    if rule.intervals is not None:
        return _intervals(section, rule, _expect(domain, Numbers, "intervals"), provenance)
    if rule.cuts is not None:
        return Cuts(_expect(domain, Numbers, "cuts"), rule.cuts, provenance, rule.spikes)
    text = domain if isinstance(domain, Text | Categories) else None
    if text is None:
        raise InvalidParameter("prefix, redaction, classification and pseudonym are for text columns.")
    if rule.pseudonym is not None:
        return Pseudonyms(text, _read(folder / rule.pseudonym, rule.pseudonym, "key"), provenance)
    if rule.classification is not None:
        if not isinstance(text, Text):
            raise InvalidParameter("a classification has its own codes: leave categories out.")
        return Classification(text, rule.classification, provenance)
    if rule.prefix is not None:
        return Prefix(text, rule.prefix, provenance)
    return Redaction(text, rule.redaction or 0, provenance)


def _intervals(section: ColumnSection, rule: HierarchySection, numbers: Numbers, provenance: Provenance) -> Hierarchy:
    moved = section.outside in (None, Outside.ENDS, Outside.BOUND) and numbers.closed
    if moved and rule.open_ends is False:
        raise InvalidParameter(
            "open_ends: false would give the label of an interval to values outside of it, since those go to the "
            "nearest bound: leave open_ends out, or let outside be other or drop."
        )
    if rule.spikes:
        return spiked(Intervals(numbers, rule.intervals or (), rule.origin, provenance=provenance), rule.spikes)
    ends = moved if rule.open_ends is None else rule.open_ends
    return Intervals(numbers, rule.intervals or (), rule.origin, ends and numbers.closed, provenance)


def _provenance(section: ColumnSection, rule: HierarchySection) -> Provenance:
    """Return where a column's values and rule come from, together: each part that was drafted needs its own source."""
    drafted = [part for part in (section, rule) if part.derived is not None]
    sources = [part.public for part in drafted if part.public]
    return Provenance(bool(drafted), "; ".join(sources) if len(sources) == len(drafted) and drafted else None)


def _explicit(section: ColumnSection, rule: HierarchySection, provenance: Provenance, folder: Path) -> TreeHierarchy:
    if section.categories is not None or section.bounds is not None:
        raise InvalidParameter("a tree or hierarchy file lists the values itself: leave categories and bounds out.")
    if rule.tree is not None:
        return tree(_branch(rule.tree), provenance)
    name = rule.file or ""
    try:
        text = _read(folder / name, name).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidParameter(f"the hierarchy file {name} is not UTF-8 text.") from None
    return parse_arx(text, rule.delimiter).hierarchy(provenance)


def _branch(branch: Any) -> Any:
    if isinstance(branch, dict):
        return {str(label): _branch(below) for label, below in branch.items()}
    if isinstance(branch, list):
        return [str(value) for value in branch]
    return [] if branch is None else [str(branch)]


def _categories(domain: Domain | None) -> Categories:
    if not isinstance(domain, Categories):
        raise InvalidParameter("groups are made of neighboring categories: list the categories in order.")
    return domain


def _expect(domain: Domain | None, kind: type[Span], rule: str) -> Span:
    if not isinstance(domain, kind):
        raise InvalidParameter(f"{rule} do not fit this column: check its type.")
    return domain


def _read(path: Path, name: str, what: str = "hierarchy") -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidParameter(
            f"the {what} file {name} cannot be read: {error.strerror or 'no reason given'}."
        ) from None


@dataclass(frozen=True)
class OtherTable:
    """A table beside the main one: its name in SQL, what is declared about it, where its rows are."""

    name: str
    schema: Schema
    source: str
    options: SourceOptions
    public: bool


def other_table(
    name: str, section: TableSection, unit: Unit, columns: tuple[Column, ...], source: tuple[str, SourceOptions]
) -> OtherTable:
    """Return a table as its section declares it; a private one has the people of the main table, whose unit this is.

    >>> from incrowd.workflows.policy.sections import ColumnSection
    >>> section = TableSection(source="regions.csv", public=True, columns={"zip": ColumnSection()})
    >>> other_table("regions", section, Unit(), (Column("zip"),), ("regions.csv", SourceOptions())).public
    True
    """
    if section.public:
        return OtherTable(name, Schema(columns), *source, public=True)
    if unit.kind is not Kind.PERSON:
        raise InvalidParameter(
            f"the rows of {name!r} belong to people, but the dataset protects single rows: declare "
            "dataset.unit.column, the person ID column."
        )
    own = Unit(Kind.PERSON, unit.adjacency, section.unit, section.max_rows, _more(section))
    return OtherTable(name, Schema(columns, own), *source, public=False)


Place = tuple[str | None, SourceOptions]


@dataclass(frozen=True)
class LinkedSource:
    """A table below the people, and where its rows are."""

    table: ChildTable
    place: Place


def linked_table(name: str, section: TableSection, main: tuple[str, Unit], columns: tuple[Column, ...]) -> ChildTable:
    """Return a table below another one as its section declares it; `main` are the name and unit of the people."""
    people, unit = main
    person = section.unit
    own = Unit() if person is None else Unit(Kind.PERSON, unit.adjacency, person, section.max_rows, _more(section))
    foreign = section.foreign_key or person or ""
    if section.parent == people and person is None:
        person = foreign
        own = Unit(Kind.PERSON, unit.adjacency, person, section.max_rows, _more(section))
    if section.parent != people and section.foreign_key is None:
        raise InvalidParameter(
            f"{name!r} lies below {section.parent!r}: write foreign_key: with the column that names its rows."
        )
    if person is None and section.more == "refuse":
        raise InvalidParameter(
            f"{name!r} has no person ID column, so nobody's rows are counted in it before a release: write unit: with "
            "that column, or more: drop."
        )
    above = section.depends_on
    depends_on = None if above is None else tuple(_owner(column, section.parent or "") for column in above)
    return ChildTable(
        name,
        section.parent or "",
        Schema(columns, own),
        foreign,
        section.max_rows,
        _more(section),
        person,
        section.id,
        section.order,
        depends_on,
    )


def _more(section: TableSection) -> ExtraRowsRule | None:
    return None if section.more is None else ExtraRowsRule(section.more)


def _owner(column: str, parent: str) -> tuple[str, str]:
    owner, mark, name = column.partition(".")
    return (owner, name) if mark else (parent, column)


def in_levels(tables: Sequence[LinkedSource], people: str) -> tuple[LinkedSource, ...]:
    """Return tables so that each stands after its parent; those whose parent is not there stand last."""
    ordered, names, rest = list[LinkedSource](), {people}, list(tables)
    while ready := [table for table in rest if table.table.parent in names]:
        ordered += ready
        names |= {table.table.name for table in ready}
        rest = [table for table in rest if table not in ready]
    return (*ordered, *rest)


@dataclass(frozen=True)
class GraphPlace:
    """Where nodes and edges are, which columns identify nodes, and how invalid edges are treated."""

    id: str
    nodes: Place
    edges: Place
    ends: tuple[str, str]
    kind: str | None
    connect: Connect

    @property
    def edge_columns(self) -> tuple[str, ...]:
        """The columns of edges that are read."""
        return (*self.ends, *([] if self.kind is None else [self.kind]))


def node_columns(name: str, declared: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the columns of nodes, the node ID first: it is an identifier."""
    if any(column.name == name for column in declared):
        raise InvalidParameter(f"the column {name!r} is the node ID: leave it out of columns.")
    return (Column(name, Role.IDENTIFIER), *declared)


def require_listed(unit: Unit) -> None:
    """Refuse to protect nodes that are known by their edges alone: without one node, its neighbors could vanish too."""
    if not unit.kind.of_edges:
        raise InvalidParameter(
            "nodes are protected, and they are not listed: in an edge list alone, a node that leaves can take others "
            "with it. Write source: under nodes:, or protect edges, unit: {kind: edge}."
        )


def graph_schema(columns: tuple[Column, ...], unit: Unit, section: EdgesSection) -> GraphSchema:
    """Return the schema of a graph: columns of nodes, the unit, and what is declared of edges."""
    return GraphSchema(columns, unit, Relations(section.kinds, section.directed))


def edge_rules(section: EdgesSection, *, apart: bool, listed: bool) -> Connect:
    """Return how rows become edges, those of each kind and direction apart where the method takes them so.

    Where nodes are not listed, edges add the nodes that they name.
    """
    from incrowd.methods.graphs.shared.steps import ADD, Connect, Relate

    if len(set(section.ends)) < 2 or section.kind in section.ends:
        raise InvalidParameter("the ends and the kind of an edge need separate columns.")
    if len(set(section.kinds)) < len(section.kinds):
        raise InvalidParameter("a kind of edges is declared twice: name each kind once under kinds.")
    unknown = section.unknown if listed else ADD
    return (Relate if apart else Connect)(section.directed, section.kinds, section.loops, section.doubles, unknown)
