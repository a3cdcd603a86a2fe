"""Policy: source, schema, method and budget, as one YAML file; the same file runs everywhere."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from incrowd.accounting.budget import Budget
from incrowd.attacks import attack_names
from incrowd.attacks.finding import Risk
from incrowd.core.codec import digest
from incrowd.core.loss import Syntactic
from incrowd.core.plan import Method, Plan
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.steps.consent import ConsentGate, require_gate
from incrowd.core.table import IN_ENGINE, SourceOptions
from incrowd.core.unit import Adjacency, Kind, More, Unit
from incrowd.engines.settings import Local, Settings, Spark
from incrowd.errors import IncrowdError, InvalidParameter, Refused, UnsupportedVersion
from incrowd.governance.consent.event import check_purpose
from incrowd.workflows.policy.columns import OtherTable, attached, column_of, files_of, other_table
from incrowd.workflows.policy.document import Document, checked, place_in, read_document
from incrowd.workflows.policy.graphs import GraphPlace, edge_rules, graph_schema, node_columns
from incrowd.workflows.policy.method_section import instance_of, section_of
from incrowd.workflows.policy.population import file_hashes, population_hash, with_files, with_population
from incrowd.workflows.policy.sections import (
    AnyEngine,
    AnySource,
    BudgetSection,
    ColumnSection,
    ConsentSection,
    DatasetSection,
    EdgesSection,
    EngineSection,
    Exact,
    NodesSection,
    QueriesSection,
    Section,
    SourceSection,
    TableSection,
    UnitSection,
    Whole,
)
from incrowd.workflows.registry import chain, graph_method_names, method_class, method_names

VERSION = 1
LEDGER = "sqlite:///.incrowd/ledger.sqlite"
_SAFE, _AUTO, _SCHEME = "safe", "auto", "scheme"  # safe with `levels: auto` is another way to write scheme
_OF_GRAPHS = ("nodes", "edges")
_ASIDE = ("engine", "risk")
"""What changes no promise: where it runs, and how it is attacked."""


class PolicySection(Section):
    """The whole policy file."""

    incrowd: Whole = Field(description="The version of this format: 1.")
    dataset: DatasetSection = Field(description="What the data is called, whom it is about, and how many.")
    source: AnySource | None = Field(None, description="Where the rows are; DATA on the command line overrides.")
    columns: dict[str, ColumnSection] = Field(description="Every column of the source, by its name.")
    hierarchies: str | None = Field(
        None, description="A folder of files in ARX's format, each attached to the column that it is named after."
    )
    release: dict[str, Any] | tuple[dict[str, Any], ...] | None = Field(
        None,
        description="The method and its parameters, or a list of masks one after the other; may be left out where only "
        "questions are answered.",
    )
    budget: BudgetSection | None = Field(
        None, description="Of the dataset, for good; by default the first release's own."
    )
    ledger: str = Field(LEDGER, description="Where spending is written down; a path is taken from the policy's folder.")
    engine: AnyEngine = Field(
        "local", description="Where the rows are worked on; no part of the promise, nor of the policy's hash."
    )
    tables: dict[str, TableSection] | None = Field(None, description="More tables that questions may read.")
    queries: QueriesSection | None = Field(None, description="What questions may be asked.")
    nodes: NodesSection | None = Field(None, description="The nodes of a graph, in place of source and columns.")
    edges: EdgesSection | None = Field(None, description="The edges of a graph, beside its nodes.")
    risk: dict[str, Exact] | None = Field(
        None,
        description="How much more often than its control an attack may be right: for each attack or risk, or for any; "
        "incrowd attack exits with 1 above it. No part of the promise, nor of the policy's hash.",
    )
    purpose: str | None = Field(
        None,
        description="What people must have consented to, such as research/newborns: rows of nobody else are used.",
    )
    consent: ConsentSection | None = Field(None, description="Where the decisions of people are kept, for a purpose.")

    @field_validator("risk")
    @classmethod
    def _known_risks(cls, risk: dict[str, Fraction] | None) -> dict[str, Fraction] | None:
        known = ("any", *attack_names(), *map(str, Risk)) if risk else ()
        for name, share in (risk or {}).items():
            if name not in known:
                raise ValueError(f"there is no attack or risk {name!r}; there are {', '.join(known)}")
            if not 0 <= share <= 1:
                raise ValueError(f"the share of {name!r} lies between 0 and 1")
        return risk


class GraphPolicySection(PolicySection):
    """The whole policy file of a graph: nodes and edges in place of source and columns."""

    columns: dict[str, ColumnSection] = Field(default_factory=dict)
    nodes: NodesSection
    edges: EdgesSection

    @model_validator(mode="after")
    def _a_graph_alone(self) -> GraphPolicySection:
        for name in ("source", "columns", "tables", "queries", "hierarchies"):
            if getattr(self, name):
                raise ValueError(f"a policy of a graph has nodes and edges: {name} is for tables, leave it out")
        if self.release is None or not isinstance(self.release, dict):
            raise ValueError("a policy of a graph has one method under release")
        return self


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

    @property
    def method(self) -> Method:
        """What is released, and how."""
        if self.step is None:
            raise InvalidParameter("this policy releases no table: write release: with a method into it.")
        return self.step

    @cached_property
    def plan(self) -> Plan:
        """What a release would do, promise and claim: made once, from the schema alone."""
        plan = self.method.plan(self.schema)
        whole = (plan if self.graph is None else plan.led_by(self.graph.connect)).gated(self.gate)
        _require_calendar(self.gate, whole)
        return whole

    @property
    def gate(self) -> ConsentGate | None:
        """Whose rows take part, where the policy names a purpose, as far as that is known before the run."""
        told = self.section
        if told.purpose is None or told.consent is None:
            return None
        edges = True if self.graph is not None else None
        return ConsentGate(told.purpose, told.consent.as_of, calendar=told.consent.calendar, edges=edges)

    @property
    def ledger_address(self) -> str:
        """The ledger's address, with a relative SQLite path taken from the policy's folder."""
        scheme, mark, path = self.ledger.partition("sqlite:///")
        if mark and not scheme and path != ":memory:" and not Path(path).is_absolute():
            return f"sqlite:///{(self.folder / path).resolve().as_posix()}"
        return self.ledger


PolicyLike = str | Path | Mapping[str, Any] | Policy
"""A policy: the path of its file, its text (of several lines), a mapping of the same shape, or one that was read."""


def load_policy(policy: PolicyLike, until: int | None = None, folder: Path | None = None) -> Policy:
    """Read a policy from a file, from its text, or from a mapping of the same shape; one that was read stays as it is.

    A text has more than one line; a relative path in it starts from the current folder, as in a mapping, or from the
    one that is given.  Of a list of steps, only so many are read if `until` says so.
    """
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, Mapping):
        return _policy(_until(Document(_texts(policy)), until), folder or Path.cwd(), "the policy")
    if isinstance(policy, str) and "\n" in policy:
        return _policy(_until(read_document(policy), until), folder or Path.cwd(), "the policy")
    path = Path(policy)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidParameter(f"the policy {path} cannot be read: {error.strerror or 'no reason given'}.") from None
    except UnicodeDecodeError:
        raise InvalidParameter(f"the policy {path} is not UTF-8 text.") from None
    return _policy(_until(read_document(text), until), path.resolve().parent, str(path))


def _until(document: Document, until: int | None) -> Document:
    """Return the document as if its list of steps ended there: everything else about it is the same."""
    if until is None or not isinstance(document.content, dict):
        return document
    steps = document.content.get("release")
    if not isinstance(steps, list) or not 1 <= until <= len(steps):
        raise InvalidParameter(
            f"there is no step {until} to stop after: release: is one method."
            if not isinstance(steps, list)
            else f"there is no step {until} to stop after: release: has {len(steps)} steps."
        )
    return Document({**document.content, "release": steps[:until]}, document.lines)


def json_schema() -> dict[str, Any]:
    """Return the published JSON Schema of policy files."""
    schema = PolicySection.model_json_schema()
    sections = map(section_of, map(method_class, (*method_names(), *graph_method_names())))
    methods = [section.model_json_schema(ref_template="#/$defs/{model}") for section in sections]
    chosen = section_of(method_class(_SCHEME)).model_json_schema(ref_template="#/$defs/{model}")
    chosen["properties"] |= {"method": {"const": _SAFE}, "levels": {"const": _AUTO}}
    methods.append(chosen | {"title": "SafeAtChosenLevelsSection", "required": [*chosen["required"], "levels"]})
    for method in methods:
        schema["$defs"].update(method.pop("$defs", {}))
    schema["properties"]["release"] = {
        "description": schema["properties"]["release"]["description"],
        "anyOf": [*methods, {"type": "array", "minItems": 1, "items": {"anyOf": methods}}],
    }
    schema["anyOf"] = [{"required": ["release"]}, {"required": ["queries"]}]
    schema["required"] = [name for name in schema["required"] if name != "columns"]
    schema["allOf"] = [{"anyOf": [{"required": ["columns"]}, {"required": ["nodes", "edges"]}]}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "incrowd policy", **schema}


def _policy(document: Document, folder: Path, where: str) -> Policy:
    content = document.content
    if not isinstance(content, dict):
        raise InvalidParameter(f"{where} is empty or not a mapping: it needs incrowd, dataset, columns and release.")
    if str(content.get("incrowd")) != str(VERSION):
        raise UnsupportedVersion(f"{where} must start with 'incrowd: {VERSION}', the version of the format known here.")
    graph = any(content.get(name) is not None for name in _OF_GRAPHS)
    section = checked(GraphPolicySection if graph else PolicySection, document, where)
    if section.release is None and section.queries is None:
        raise InvalidParameter(f"{where}: release is missing. Where only questions are answered, write queries:.")
    _require_consent(section, where)
    section = _with_hierarchies(section, folder, where)
    columns = _columns(section.columns, ("columns",), document, (where, folder))
    if section.nodes is not None:
        beside = _columns(section.nodes.columns, ("nodes", "columns"), document, (where, folder))
        columns = node_columns(section.nodes.id, beside)
    try:
        unit = _unit(section.dataset.unit, graph=graph)
        schema = Schema(columns, unit) if section.edges is None else graph_schema(columns, unit, section.edges)
        if section.purpose is not None:
            require_gate(schema.unit)
        method = None if section.release is None else with_files(_method(document, where, schema), folder)
        method = None if method is None else with_population(method, schema, folder)
        tables = _tables(section, schema, document, (where, folder))
        budget = None if section.budget is None else _budget(section.budget)
        engine = _engine(section.engine)
    except InvalidParameter as error:
        told = str(error)
        raise InvalidParameter(told if told.startswith(where) else f"{where}: {told}") from None
    source, options = _source(section.source, folder, columns)
    said = {name: value for name, value in content.items() if name not in _ASIDE}
    files = population_hash(section.release if isinstance(section.release, dict) else {}, folder) | file_hashes(method)
    place = _place_of_graph(section, folder, columns, apart=getattr(method, "apart", False))
    own = section.columns if section.nodes is None else section.nodes.columns
    for declared in (own, *(table.columns for table in (section.tables or {}).values())):
        files |= files_of(declared, folder)
    mark = digest(f"incrowd policy {VERSION}", {"policy": said, "files": files})
    name, ledger = section.dataset.name, section.ledger
    return Policy(name, schema, method, source, options, budget, ledger, folder, mark, section, engine, tables, place)


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
        edge_rules(edges, apart=apart),
    )


def _require_consent(section: PolicySection, where: str) -> None:
    """Refuse a purpose of which nobody could tell who consented to it, and a registry without a purpose."""
    if section.purpose is not None:
        check_purpose(section.purpose)
        if section.consent is None:
            raise Refused(
                f"{where}: 'purpose' asks for consent, and the policy does not say where that is kept; nothing is "
                "ignored. Write consent: with registry: and key:."
            )
    elif section.consent is not None:
        raise InvalidParameter(f"{where}: consent: is for a purpose. Write purpose:, or leave consent: out.")


def _require_calendar(gate: ConsentGate | None, plan: Plan) -> None:
    """Refuse a release without an ε whose day could be chosen by who moved, and a calendar that nothing hangs on."""
    form = isinstance(plan.promise.loss, Syntactic)
    if gate is not None and form and not gate.calendar:
        raise InvalidParameter(
            "a release without an epsilon of people who may withdraw is made on days that are fixed before, or else "
            "its day shows that somebody left: list them under consent: calendar:."
        )
    if gate is not None and gate.calendar and not form:
        raise InvalidParameter("a calendar is for releases without an epsilon: leave consent: calendar: out.")


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
    found = []
    for name, table in (section.tables or {}).items():
        columns = _columns(table.columns, ("tables", name, "columns"), document, place)
        source, options = _source(table.source, place[1], columns)
        try:
            found.append(other_table(name, table, main.unit, columns, (source or "", options)))
        except InvalidParameter as error:
            raise InvalidParameter(f"{place_in(document, ('tables', name), place[0])}: {error}") from None
    return tuple(found)


def _method(document: Document, where: str, schema: Schema) -> Method:
    release = document.content["release"]
    if not isinstance(release, list):
        return _step(release, ("release",), (document, where), schema)
    return chain(_step(each, ("release", place), (document, where), schema) for place, each in enumerate(release))


def _step(release: Any, path: tuple[str | int, ...], source: tuple[Document, str], schema: Schema) -> Method:
    document, where = source
    name = release.get("method") if isinstance(release, dict) else None
    if name == _SAFE and release.get("levels") == _AUTO:
        name, release = _SCHEME, {key: value for key, value in release.items() if key != "levels"}
    graph = any(document.content.get(each) is not None for each in _OF_GRAPHS)
    if name not in (known := graph_method_names() if graph else method_names()):
        if name in (*graph_method_names(), *method_names()):
            raise InvalidParameter(
                f"the method {name!r} is for {'tables' if graph else 'graphs'}: a policy of a graph has nodes: and "
                "edges:, one of a table has columns:."
            )
        near = difflib.get_close_matches(str(name), known, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InvalidParameter(f"there is no method {name!r}; there are {', '.join(known)}.{hint}")
    model = section_of(method_class(name))
    own = len(path)
    inner = Document(release, {each[own:]: line for each, line in document.lines.items() if each[:own] == path})
    found = checked(model, inner, where)
    method: Method = instance_of(method_class(name), found)
    for key in ("levels", "sensitive"):
        for column in getattr(method, key, {}):
            try:
                schema[column]
            except InvalidParameter as error:
                raise InvalidParameter(f"{place_in(document, (*path, key, column), where)}: {error}") from None
    return method


def _unit(section: UnitSection, *, graph: bool) -> Unit:
    if graph != (section.kind is not None):
        raise InvalidParameter(
            "a graph protects edges or nodes: write unit: {kind: edge}, {kind: edge of one kind} or {kind: node}."
            if graph
            else "kind is for graphs: a table protects rows, or people with column."
        )
    kind = Kind(section.kind or (Kind.PERSON if section.column is not None else Kind.ROW))
    if graph and Adjacency(section.adjacency) is not Adjacency.ADD_REMOVE:
        raise InvalidParameter("edges and nodes of a graph are added or removed: leave adjacency out.")
    more = None if section.more is None else More(section.more)
    return Unit(kind, Adjacency(section.adjacency), section.column, section.max_rows, more)


def _budget(section: BudgetSection) -> Budget:
    return Budget.of(section.epsilon, section.delta, section.unbounded)


def _engine(section: str | EngineSection) -> Settings:
    if isinstance(section, EngineSection):
        return Spark(**section.spark.model_dump())
    return Spark() if section == "spark" else Local()


def _source(
    section: str | SourceSection | None, folder: Path, columns: tuple[Column, ...]
) -> tuple[str | None, SourceOptions]:
    types = {column.name: column.type for column in columns}
    if section is None:
        return None, SourceOptions(types=types)
    if isinstance(section, str):
        return _located(section, folder), SourceOptions(types=types)
    told = {name: value for name, value in section.model_dump(exclude={"path", "catalog"}).items() if value is not None}
    catalog = None if section.catalog is None else folder / section.catalog
    address = f"{IN_ENGINE}{section.table}" if section.path is None else _located(section.path, folder)
    return address, SourceOptions(**told, catalog=catalog, types=types)


def _located(address: str, folder: Path) -> str:
    """Return where the rows are: a relative path is taken from the policy's folder, anything else as it is."""
    return address if "://" in address or address.startswith(IN_ENGINE) else str(folder / address)


def _texts(value: Any) -> Any:
    """Return a mapping from Python as a YAML file would have given it: every scalar as text."""
    if isinstance(value, Mapping):
        return {str(key): _texts(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_texts(item) for item in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None else str(value)
