"""Policy: source, schema, method and budget, as one YAML file; the same file runs everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from incrowd.accounting.budget import Budget
from incrowd.core.calendar import PeriodCalendar
from incrowd.core.codec import digest
from incrowd.core.limits import DOCUMENT_BYTES
from incrowd.core.linked import LinkedSchema
from incrowd.core.loss import Syntactic
from incrowd.core.plan import Method, Plan
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.steps.around import ConsentGate, require_gate
from incrowd.core.steps.periods import ReadPeriod
from incrowd.core.table import IN_ENGINE, SourceOptions
from incrowd.core.unit import Adjacency, ExtraRowsRule, Kind, Unit
from incrowd.engines.readers.remote import INPUT, check_secretless
from incrowd.engines.regular_file import bounded
from incrowd.engines.settings import Local, Settings, Spark
from incrowd.errors import IncrowdError, InvalidParameter, Refused, UnsupportedVersion
from incrowd.governance.consent.event import check_purpose
from incrowd.workflows.policy.columns import (
    GraphPlace,
    LinkedSource,
    OtherTable,
    attached,
    column_of,
    edge_rules,
    files_of,
    graph_schema,
    in_levels,
    linked_table,
    node_columns,
    other_table,
    require_listed,
)
from incrowd.workflows.policy.document import Document, checked, place_in, read_document
from incrowd.workflows.policy.file import GraphPolicySection, PolicySection
from incrowd.workflows.policy.ledger_place import DEFAULT, absolute_address, ledger_of
from incrowd.workflows.policy.method_section import is_graph, is_linked, method_of
from incrowd.workflows.policy.periods import budget_of, calendar_of, settled_method
from incrowd.workflows.policy.population import file_hashes, population_hash, with_files, with_population
from incrowd.workflows.policy.sections import ColumnSection, EngineSection, SourceSection, UnitSection
from incrowd.workflows.registry import outside_plan

VERSION = 1
_ASIDE = ("engine", "risk")
"""What changes no guarantee: where it runs, and how it is attacked."""


@dataclass(frozen=True)
class Policy:
    """A policy that was read and understood; `folder` is what its relative paths start from."""

    name: str
    schema: Schema
    step: Method | None
    source: str | None
    options: SourceOptions
    budget: Budget | None
    ledger: str
    folder: Path
    hash: str
    section: PolicySection
    engine: Settings
    tables: tuple[OtherTable, ...] = ()
    graph: GraphPlace | None = None
    linked: tuple[LinkedSource, ...] = ()
    calendar: PeriodCalendar | None = None
    period: str | None = None
    """The period that a release reads, where there is a calendar; None until one is chosen."""

    @property
    def method(self) -> Method:
        """What is released, and how."""
        if self.step is None:
            raise InvalidParameter("this policy has no release: add release: with a method.")
        return self.step

    @cached_property
    def plan(self) -> Plan:
        """What a release would do, guarantee and claim: made once, from the schema alone."""
        plan = outside_plan(self.method.plan(self.schema))
        whole = (plan if self.graph is None else plan.led_by(self.graph.connect)).gated(self.gate)
        if self.calendar is not None:
            whole = whole.led_by(ReadPeriod.of(self.calendar, self.period, self.releases, self.participations))
        _require_calendar(self.gate, whole)
        return whole

    def at(self, period: str) -> Policy:
        """Return the policy for the release of one period."""
        if self.calendar is None:
            raise InvalidParameter("this policy has no periods: add period: with a column, every, first and last.")
        return replace(self, period=self.calendar.require(period))

    @property
    def releases(self) -> int | None:
        """How many releases were priced together, where the policy has them charged at once."""
        section = self.section.period
        if section is None or self.calendar is None:
            return None
        if self.step is not None and self.step.running:
            return self.calendar.size
        return self.calendar.size + section.spare if section.charge == "series" else None

    @property
    def participations(self) -> int | None:
        """In how many periods of a series somebody takes part, where the policy bounds that by a list of people."""
        return None if self.section.period is None else self.section.period.participations

    @property
    def lists_people(self) -> bool:
        """Whether what a period may read depends on who took part in earlier ones."""
        return self.participations is not None or (self.step is not None and self.step.running)

    @property
    def gate(self) -> ConsentGate | None:
        """Whose rows take part, where the policy names a purpose, as far as that is known before the run."""
        section = self.section
        if section.purpose is None or section.consent is None:
            return None
        edges = True if self.graph is not None else None
        return ConsentGate(section.purpose, section.consent.as_of, calendar=section.consent.calendar, edges=edges)

    @property
    def names_ledger(self) -> bool:
        """Whether the policy itself says where its ledger is."""
        return "ledger" in self.section.model_fields_set or self.ledger != DEFAULT

    @property
    def own_ledger(self) -> str:
        """The address that the policy names, or the default beside it; a relative path starts from its folder."""
        return absolute_address(self.ledger, self.folder)

    @property
    def ledger_address(self) -> str:
        """Where this policy is charged: as the environment says, then the policy, then the default beside it."""
        return ledger_of(self)


PolicyLike = str | Path | Mapping[str, Any] | Policy
"""A policy: the path of its file, its text (of several lines), a mapping of the same shape, or one that was read."""


def load_policy(
    policy: PolicyLike,
    until: int | None = None,
    folder: Path | None = None,
    changes: Mapping[str, object] | None = None,
) -> Policy:
    """Read a policy from a file, from its text, or from a mapping of the same shape; one that was read stays as it is.

    A text has more than one line; a relative path in it starts from the current folder, as in a mapping, or from the
    one that is given.  Of a list of steps, only so many are read if `until` says so; `changes` are parameters of
    `release:` that take the place of those in the policy, as if they were written there; its method stays.
    """
    if isinstance(policy, Policy):
        return _unchanged(policy, changes)
    if isinstance(policy, Mapping):
        document = _until(Document(_texts(policy)), until)
        return policy_of(_changed(document, changes), folder or Path.cwd(), "the policy")
    if isinstance(policy, str) and "\n" in policy:
        document = _until(read_document(policy), until)
        return policy_of(_changed(document, changes), folder or Path.cwd(), "the policy")
    path = Path(policy)
    return policy_of(_changed(_until(document_of(path), until), changes), path.resolve().parent, str(path))


def document_of(path: Path) -> Document:
    """Return the document in a policy file, or refuse a file that is not text."""
    try:
        with path.open("rb") as file:  # it may be a pipe: the person who names a policy knows
            text = bounded(file.read(DOCUMENT_BYTES + 1), DOCUMENT_BYTES, path).decode("utf-8")
    except OSError as error:
        raise InvalidParameter(f"the policy {path} cannot be read: {error.strerror or 'no reason given'}.") from None
    except UnicodeDecodeError:
        raise InvalidParameter(f"the policy {path} is not UTF-8 text.") from None
    return read_document(text)


def _unchanged(policy: Policy, changes: Mapping[str, object] | None) -> Policy:
    if changes:
        raise InvalidParameter(
            f"{', '.join(changes)}: a policy that was read already cannot be changed. Give the policy as a file, a "
            "text or a mapping."
        )
    return policy


def _changed(document: Document, changes: Mapping[str, object] | None) -> Document:
    """Return the document with other parameters of its one method."""
    content = document.content
    if not changes or not isinstance(content, dict):
        return document
    release = content.get("release")
    if release is not None and not isinstance(release, dict):
        raise InvalidParameter(f"{', '.join(changes)}: release: is a list of steps, which has no such parameter.")
    named = {} if release is None or "method" not in release else {"method": release["method"]}
    return Document({**content, "release": {**(release or {}), **_texts(changes), **named}}, document.lines)


def _until(document: Document, until: int | None) -> Document:
    """Return the document as if its list of steps ended there: everything else about it is the same."""
    if until is None or not isinstance(document.content, dict):
        return document
    steps = document.content.get("release")
    if not isinstance(steps, list) or not 1 <= until <= len(steps):
        raise InvalidParameter(
            f"--last-step {until}: release: is one method, not a list."
            if not isinstance(steps, list)
            else f"--last-step {until}: release: has {len(steps)} steps."
        )
    return Document({**document.content, "release": steps[:until]}, document.lines)


def policy_of(document: Document, folder: Path, where: str) -> Policy:
    """Return the policy of a document that was parsed; relative paths start from `folder`, errors name `where`."""
    content = document.content
    if not isinstance(content, dict):
        raise InvalidParameter(f"{where} is empty or not a mapping: write incrowd, dataset, columns and release.")
    if str(content.get("incrowd")) != str(VERSION):
        raise UnsupportedVersion(f"{where} must start with 'incrowd: {VERSION}', the version of the format known here.")
    graph = is_graph(document)
    section = checked(GraphPolicySection if graph else PolicySection, document, where)
    if section.release is None and section.queries is None:
        raise InvalidParameter(f"{where}: release is missing. If only queries are answered, write queries:.")
    _require_consent(section, where)
    section = _with_hierarchies(section, folder, where)
    columns = _columns(section.columns, ("columns",), document, (where, folder))
    if section.nodes is not None:
        beside = _columns(section.nodes.columns, ("nodes", "columns"), document, (where, folder))
        columns = node_columns(section.nodes.id, beside)
    try:
        unit = _unit(section.dataset.unit, graph=graph, periods=section.period is not None)
        linked = _linked(section, unit, document, (where, folder)) if is_linked(document) else ()
        schema = _schema(section, columns, unit, linked)
        if section.purpose is not None:
            require_gate(schema.unit)
        if section.nodes is not None and section.nodes.source is None:
            require_listed(unit)
        method, calendar = _released(section, document, (where, folder), schema)
        tables = _tables(section, schema, document, (where, folder))
        budget = None if section.budget is None else budget_of(section.budget, schema, periods=bool(calendar))
        engine = _engine(section.engine)
    except InvalidParameter as error:
        message = str(error)
        raise InvalidParameter(message if message.startswith(where) else f"{where}: {message}") from None
    source, options = _source(section.source, folder, columns)
    hashed = {name: value for name, value in content.items() if name not in _ASIDE}
    files = population_hash(section.release if isinstance(section.release, dict) else {}, folder) | file_hashes(method)
    place = _place_of_graph(section, folder, columns, apart=getattr(method, "apart", False))
    own = section.columns if section.nodes is None else section.nodes.columns
    for declared in (own, *(table.columns for table in (section.tables or {}).values())):
        files |= files_of(declared, folder)
    mark = digest(f"incrowd policy {VERSION}", {"policy": hashed, "files": files})
    name, ledger = section.dataset.name, section.ledger
    read = Policy(
        name, schema, method, source, options, budget, ledger, folder, mark, section, engine, tables, place, linked
    )
    return read if calendar is None else replace(read, calendar=calendar)


def _schema(
    section: PolicySection, columns: tuple[Column, ...], unit: Unit, linked: tuple[LinkedSource, ...]
) -> Schema:
    """Return the schema of a table, of a graph, or of people and the tables below them."""
    if section.edges is not None:
        return graph_schema(columns, unit, section.edges)
    if not linked:
        return Schema(columns, unit)
    return LinkedSchema(columns, unit, section.dataset.name, tuple(table.table for table in linked))


def _linked(
    section: PolicySection, unit: Unit, document: Document, place: tuple[str, Path]
) -> tuple[LinkedSource, ...]:
    """Return the tables that have a parent, each after it."""
    tables, main = [], (section.dataset.name, unit)
    for name, table in (section.tables or {}).items():
        if table.parent is None:
            continue
        columns = _columns(table.columns, ("tables", name, "columns"), document, place)
        try:
            tables.append(
                LinkedSource(linked_table(name, table, main, columns), _source(table.source, place[1], columns))
            )
        except InvalidParameter as error:
            raise InvalidParameter(f"{place_in(document, ('tables', name), place[0])}: {error}") from None
    return in_levels(tables, section.dataset.name)


def _released(
    section: PolicySection, document: Document, place: tuple[str, Path], schema: Schema
) -> tuple[Method | None, PeriodCalendar | None]:
    """Return the method, its files read and its share of a series settled, and the calendar if there is one."""
    where, folder = place
    calendar = None if section.period is None else calendar_of(section.period, schema)
    if section.release is None:
        return None, calendar
    method = with_population(with_files(method_of(document, where, schema), folder), schema, folder)
    if section.period is not None and calendar is not None:
        return settled_method(method, section.period, calendar, schema, purpose=section.purpose is not None), calendar
    if method.running:
        raise InvalidParameter(f"{method.name} counts over periods: add period: with column, every, first and last.")
    return method, None


def _place_of_graph(
    section: PolicySection, folder: Path, columns: tuple[Column, ...], *, apart: bool
) -> GraphPlace | None:
    if section.nodes is None or section.edges is None:
        return None
    edges = section.edges
    names = (*edges.ends, *filter(None, [edges.kind]))
    ends = tuple(Column(name, Role.IDENTIFIER) for name in dict.fromkeys(names))
    return GraphPlace(
        section.nodes.id,
        _source(section.nodes.source, folder, columns),
        _source(edges.source, folder, ends),
        edges.ends,
        edges.kind,
        edge_rules(edges, apart=apart, listed=section.nodes.source is not None),
    )


def _require_consent(section: PolicySection, where: str) -> None:
    """Refuse a purpose of which nobody could tell who consented to it, and a registry without a purpose."""
    if section.purpose is not None:
        check_purpose(section.purpose)
        if section.consent is None:
            raise Refused(
                f"{where}: 'purpose' requires consent, but the policy does not say where consent is recorded. Write "
                "consent: with registry: and key:."
            )
    elif section.consent is not None:
        raise InvalidParameter(f"{where}: consent: needs purpose:. Write purpose:, or leave out consent:.")


def _require_calendar(gate: ConsentGate | None, plan: Plan) -> None:
    """Refuse a release without an ε whose day could be chosen by who moved, and a calendar that nothing depends on."""
    form = isinstance(plan.guarantee.loss, Syntactic)
    if gate is not None and form and not gate.calendar:
        raise InvalidParameter(
            "a release without an epsilon, of people who may withdraw, needs days that are fixed in advance; "
            "otherwise its day could show that a person left. List them at consent: calendar:."
        )
    if gate is not None and gate.calendar and not form:
        raise InvalidParameter("a calendar is for releases without an epsilon: leave out consent: calendar:.")


def _with_hierarchies(section: PolicySection, folder: Path, where: str) -> PolicySection:
    """Return the policy with the files of its folder of hierarchies written into its columns."""
    if section.hierarchies is None:
        return section
    try:
        return section.model_copy(update={"columns": attached(section.columns, section.hierarchies, folder)})
    except InvalidParameter as error:
        raise InvalidParameter(f"{where}: hierarchies: {error}") from None


def _columns(
    sections: Mapping[str, ColumnSection], path: tuple[str, ...], document: Document, place: tuple[str, Path]
) -> tuple[Column, ...]:
    where, folder = place
    columns = []
    for name, column in sections.items():
        try:
            columns.append(column_of(name, column, folder))
        except IncrowdError as error:
            raise InvalidParameter(f"{place_in(document, (*path, name), where)}: {error}") from None
    return tuple(columns)


def _tables(
    section: PolicySection, main: Schema, document: Document, place: tuple[str, Path]
) -> tuple[OtherTable, ...]:
    tables = []
    for name, table in (section.tables or {}).items():
        if not table.public and table.unit is None:  # a table that is joined by row IDs alone is not queried
            continue
        columns = _columns(table.columns, ("tables", name, "columns"), document, place)
        source, options = _source(table.source, place[1], columns)
        try:
            tables.append(other_table(name, table, main.unit, columns, (source or "", options)))
        except InvalidParameter as error:
            raise InvalidParameter(f"{place_in(document, ('tables', name), place[0])}: {error}") from None
    return tuple(tables)


def _unit(section: UnitSection, *, graph: bool, periods: bool) -> Unit:
    if section.per is not None and (not periods or section.column is None):
        raise InvalidParameter("per: period needs the person ID column, column:, and a calendar, period:.")
    if graph != (section.kind is not None):
        raise InvalidParameter(
            "the unit of privacy of a graph is an edge or a node: write unit: {kind: edge}, {kind: edge of one kind} "
            "or {kind: node}."
            if graph
            else "kind is for graphs: the unit of privacy of a table is a row, or with column: a person."
        )
    person = Kind.PERSON if section.per is None else Kind.PERSON_PERIOD
    kind = Kind(section.kind or (person if section.column is not None else Kind.ROW))
    if graph and Adjacency(section.adjacency) is not Adjacency.ADD_REMOVE:
        raise InvalidParameter("a graph has add-remove adjacency: leave out adjacency.")
    more = None if section.more is None else ExtraRowsRule(section.more)
    return Unit(kind, Adjacency(section.adjacency), section.column, section.max_rows, more)


def _engine(section: str | EngineSection) -> Settings:
    if isinstance(section, EngineSection):
        return Spark(**section.spark.model_dump())
    return Spark() if section == "spark" else Local()


def _source(
    section: str | SourceSection | None, folder: Path, columns: tuple[Column, ...]
) -> tuple[str | None, SourceOptions]:
    types = {column.name: column.type for column in columns}
    clean = {column.name: column.clean for column in columns if column.clean is not None} or None
    if section is None:
        return None, SourceOptions(types=types, clean=clean)
    if isinstance(section, str):
        return _located(section, folder), SourceOptions(types=types, clean=clean)
    options = {
        name: value for name, value in section.model_dump(exclude={"path", "catalog"}).items() if value is not None
    }
    catalog = None if section.catalog is None else folder / section.catalog
    address = f"{IN_ENGINE}{section.table}" if section.path is None else _located(section.path, folder)
    return address, SourceOptions(**options, catalog=catalog, types=types, clean=clean)


def _located(address: str, folder: Path) -> str:
    """Return where the rows are: a relative path is taken from the policy's folder, anything else as it is."""
    check_secretless(address)
    if "://" in address or address.startswith(IN_ENGINE) or address == INPUT:
        return address
    return str(folder / address)


def _texts(value: Any) -> Any:
    """Return a mapping from Python as a YAML file would have given it: every scalar as text."""
    if isinstance(value, Mapping):
        return {str(key): _texts(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_texts(item) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None else str(value)
