"""The policy file as a whole: what stands in it, for a table and for a graph, and its published JSON Schema."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pydantic import Field, field_validator, model_validator

from incrowd.attacks import attack_names
from incrowd.attacks.finding import Risk
from incrowd.workflows.policy.ledger_place import DEFAULT
from incrowd.workflows.policy.method_section import method_schemas
from incrowd.workflows.policy.scalars import Exact, Whole
from incrowd.workflows.policy.sections import (
    AnyEngine,
    AnySource,
    BudgetSection,
    ColumnSection,
    ConsentSection,
    DatasetSection,
    EdgesSection,
    NodesSection,
    PeriodSection,
    QueriesSection,
    Section,
    TableSection,
)


class PolicySection(Section):
    """The whole policy file."""

    incrowd: Whole = Field(description="The version of this format: 1.")
    dataset: DatasetSection = Field(description="Name, unit of privacy and size of the data.")
    source: AnySource | None = Field(None, description="Where the rows are; DATA on the command line overrides it.")
    columns: dict[str, ColumnSection] = Field(description="Every column of the source, by its name.")
    hierarchies: str | None = Field(None, description="A folder of files in ARX's format, each named after its column.")
    release: dict[str, Any] | tuple[dict[str, Any], ...] | None = Field(
        None,
        description="The method and its parameters, or a list of masks; may be left out if only queries are answered.",
    )
    budget: BudgetSection | None = Field(
        None, description="Permanent privacy budget; default: the cost of the first release."
    )
    period: PeriodSection | None = Field(
        None, description="The periods of a table that is released again and again: incrowd series."
    )
    ledger: str = Field(
        DEFAULT,
        description="Address of the ledger; a path is relative to the policy's folder. If it is left out, "
        "--ledger or INCROWD_LEDGER overrides the default.",
    )
    engine: AnyEngine = Field("local", description="The engine; not part of guarantee and policy hash.")
    tables: dict[str, TableSection] | None = Field(None, description="More tables that queries may read.")
    queries: QueriesSection | None = Field(None, description="Which queries are allowed.")
    nodes: NodesSection | None = Field(
        None, description="The nodes of a graph, in place of source and columns; default: those of edges."
    )
    edges: EdgesSection | None = Field(None, description="The edges of a graph, beside its nodes or alone.")
    risk: dict[str, Exact] | None = Field(
        None,
        description="Maximum gain of an attack over its control group: for each attack or risk, or for any; incrowd "
        "attack exits with 1 above it. Not part of the guarantee, nor of the policy's hash.",
    )
    purpose: str | None = Field(
        None,
        description="What people must have consented to, such as research/newborns: only their rows are used.",
    )
    consent: ConsentSection | None = Field(None, description="Where consent is recorded, for a purpose.")

    @field_validator("risk")
    @classmethod
    def _known_risks(cls, risk: dict[str, Fraction] | None) -> dict[str, Fraction] | None:
        names = ("any", *attack_names(), *map(str, Risk)) if risk else ()
        for name, share in (risk or {}).items():
            if name not in names:
                raise ValueError(f"there is no attack or risk {name!r}; there are {', '.join(names)}")
            if not 0 <= share <= 1:
                raise ValueError(f"the share of {name!r} lies between 0 and 1")
        return risk


class GraphPolicySection(PolicySection):
    """The whole policy file of a graph: edges, and perhaps nodes, in place of source and columns."""

    columns: dict[str, ColumnSection] = Field(default_factory=dict)
    nodes: NodesSection = Field(default_factory=lambda: NodesSection(id="id"))
    edges: EdgesSection

    @model_validator(mode="after")
    def _a_graph_alone(self) -> GraphPolicySection:
        for name in ("source", "columns", "tables", "queries", "hierarchies", "period"):
            if getattr(self, name):
                raise ValueError(f"a policy of a graph has nodes and edges: {name} is for tables, leave it out")
        if self.release is None or not isinstance(self.release, dict):
            raise ValueError("a policy of a graph has one method under release")
        return self


def json_schema() -> dict[str, Any]:
    """Return the published JSON Schema of policy files."""
    schema = PolicySection.model_json_schema()
    methods = method_schemas()
    for method in methods:
        schema["$defs"].update(method.pop("$defs", {}))
    schema["properties"]["release"] = {
        "description": schema["properties"]["release"]["description"],
        "anyOf": [*methods, {"type": "array", "minItems": 1, "items": {"anyOf": methods}}],
    }
    schema["anyOf"] = [{"required": ["release"]}, {"required": ["queries"]}]
    schema["required"] = [name for name in schema["required"] if name != "columns"]
    schema["allOf"] = [{"anyOf": [{"required": ["columns"]}, {"required": ["edges"]}]}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "incrowd policy", **schema}
