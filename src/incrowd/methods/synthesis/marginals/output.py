"""Output: synthetic rows with their model, and what a report shows of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from incrowd.core.statement import Statement
from incrowd.core.words import counted
from incrowd.drawing.charts import Bar, bars
from incrowd.drawing.markup import EMPTY, Description, figure, joined, table, tag
from incrowd.drawing.picture import Picture
from incrowd.methods.shared.model_file import MODEL
from incrowd.methods.shared.outcome import Tabular
from incrowd.methods.synthesis.marginals.pairs import pair_tables
from incrowd.methods.synthesis.marginals.steps import MeasureTables, table_names
from incrowd.methods.synthesis.marginals.synthetic_model import SyntheticModel

if TYPE_CHECKING:
    from markupsafe import Markup
    from numpy.typing import NDArray

    from incrowd.core.unit import Unit
    from incrowd.methods.synthesis.marginals.evaluation import Evaluation, TableErrors
    from incrowd.methods.synthesis.marginals.search import TableSelection


@dataclass(frozen=True, eq=False)
class SyntheticRows(Tabular):
    """Rows that were drawn from a model, in a random order.

    Read again from its files, what was measured is not told; `declared` says that how many rows there are is so.
    `errors` are those of each table of the workload, where the policy asks for them.
    """

    form: ClassVar[str] = "synthetic rows"

    model: SyntheticModel | None = None
    search: TableSelection | None = None
    evaluation: Evaluation | None = None
    names: tuple[str, ...] = ()
    declared: bool = False
    errors: TableErrors | None = None

    @property
    def documents(self) -> dict[str, str]:
        """What is written beside the rows: the model."""
        return {} if self.model is None else {MODEL: self.model.to_text()}

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the rows show and, where they were released here, what was measured with noise."""
        if self.search is None or self.evaluation is None:
            return {"rows": len(self)}
        pairs = max(1, len(self.names) * (len(self.names) - 1) // 2)
        return {
            "rows": len(self),
            "rows declared" if self.declared else "rows estimated": round(self.search.model.total),
            "tables": [
                {"columns": [self.names[column] for column in measured.columns], "scale": str(measured.scale)}
                | ({} if measured.epsilon is None else {"epsilon": str(measured.epsilon)})
                | ({} if measured.pieces is None else {"classes": measured.pieces})
                for measured in self.search.rounds
            ],
            "pairs": pairs,
            "mean error of pairs": f"{self.evaluation.error:.6f}",
            "margin of the error": f"{self.evaluation.margin:.6f}",
            "error scale": str(self.evaluation.scale),
            **self._errors(),
        }

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        return {
            "singling out": "no row of the data is published: all rows are drawn from noisy tables",
            "linkability": "no row of the data is published: there is nothing to link",
            "inference": "bounded by the claims above, for every attribute, whatever the attacker knows",
        }

    def _errors(self) -> dict[str, Any]:
        """Return how far each table of the workload is from the rows', if that was measured."""
        errors = self.errors
        if errors is None:
            return {}
        named = zip(table_names(errors.tables, self.names), errors.errors, strict=True)
        return {
            "errors of tables": [{"columns": columns, "error": f"{error:.6f}"} for columns, error in named],
            "margin of each table": f"{errors.margin:.6f}",
            "scale of each table": str(errors.scale),
        }


STATED = frozenset(
    {"rows declared", "rows estimated", "tables", "pairs", "mean error of pairs", "margin of the error", "error scale"}
    | {"errors of tables", "margin of each table", "scale of each table"}
)
"""The evidence that noisy measurements paid for and no file shows."""
_SHOWN = 12


def _range(evidence: Mapping[str, Any]) -> str:
    """Return in words the smallest and the largest error of a table, where each was measured."""
    errors = sorted(evidence.get("errors of tables", []), key=lambda item: float(item["error"]))
    if not errors:
        return ""
    least, most = (f"{float(item['error']):.1%} ({_name(item)})" for item in (errors[0], errors[-1]))
    margin = float(evidence["margin of each table"])
    return (
        f" Of {counted(len(errors), 'table')}, each measured privately, it is from {least} to {most}; each is right "
        f"within {margin:.1%} in 19 of 20 cases."
    )


def _measured(evidence: Mapping[str, Any]) -> Markup | None:
    chosen = [item for item in evidence["tables"] if len(item["columns"]) > 1 and "classes" not in item][:_SHOWN]
    if not chosen:
        return None
    title = "Tables that were measured, with the standard deviation of their noise in rows"
    rows = [Bar(_name(item), round(Fraction(item["scale"])), exact=False) for item in chosen]
    numbers = table(title, ["columns", "rows"], [[item.name, f"{item.count:,}"] for item in rows])
    return figure(bars(title, rows), f"{title}: the first {len(rows)}, beside every column by itself.", numbers)


def _errors(evidence: Mapping[str, Any]) -> Markup | None:
    """Return the error of each table, the largest first."""
    errors = sorted(evidence.get("errors of tables", []), key=lambda item: -float(item["error"]))
    if not errors:
        return None
    title = f"Share of the rows that would have to move, ± {float(evidence['margin of each table']):.2%} each"
    return table(title, ["columns", "error"], [[_name(item), f"{float(item['error']):.2%}"] for item in errors])


def _promises(measure: MeasureTables) -> Markup | None:
    """Return what is declared of every row and true of every drawn one."""
    lines = [[str(item)] for item in (*(measure.constraints or ()), *(f"never {zero}" for zero in measure.zeros or ()))]
    if not lines:
        return None
    part = f": the first {_SHOWN} of {len(lines):,}" if len(lines) > _SHOWN else ""
    return table(f"Declared, and true of every row{part}", ["constraint"], lines[:_SHOWN])


def _pairs(measure: MeasureTables, model: SyntheticModel | None) -> Markup | None:
    """Return the pairs of columns that depend on each other most in the published model: Cramér's V, from 0 to 1."""
    if model is None or len(measure.names) < 2:
        return None
    tables = pair_tables(model.model.tree, model.model.tables)
    strengths = sorted(((_strength(own), pair) for pair, own in tables.items()), key=lambda item: -item[0])[:_SHOWN]
    title = "Pairs that depend on each other most in the published model (Cramér’s V, 0 to 1)"
    named = [[" × ".join(measure.names[column] for column in pair), f"{value:.2f}"] for value, pair in strengths]
    return table(title, ["columns", "V"], named)


def _strength(shares: NDArray[np.float64]) -> float:
    """Return Cramér's V of a table of shares, over the classes that occur.

    >>> round(_strength(np.array([[0.5, 0.0], [0.0, 0.5]])), 3)
    1.0
    """
    rows, columns = shares.sum(axis=1) > 1e-9, shares.sum(axis=0) > 1e-9
    own = shares[np.ix_(rows, columns)]
    even = np.outer(own.sum(axis=1), own.sum(axis=0))
    smaller = min(own.shape) - 1
    return math.sqrt(max(0.0, float(((own - even) ** 2 / even).sum())) / smaller) if smaller > 0 else 0.0


def _unknown(evidence: Mapping[str, Any], measure: MeasureTables) -> Markup | None:
    """Return how much of what depends on what was not measured: the model takes it from other tables, or as chance."""
    if len(measure.names) < 2:
        return None
    measured = {
        pair
        for item in evidence["tables"]
        if "classes" not in item
        for pair in combinations(sorted(map(measure.names.index, item["columns"])), 2)
    }
    every = math.comb(len(measure.names), 2)
    text = (
        f"Of {counted(every, 'pair')} of columns, {len(measured):,} were measured together. What the model cannot "
        "know: how the others depend on each other beyond what follows from those, and what no noisy count shows."
    )
    return tag("p", text)


def _name(item: Mapping[str, Any]) -> str:
    return " × ".join(item["columns"])


class SyntheticPicture(Picture):
    """Synthetic rows in a report: how good they are, in words and numbers, and which tables were measured."""

    evidence: Mapping[str, str] | None = {
        "rows": "Rows drawn",
        "rows estimated": "Rows of the data, as estimated with noise",
        "rows declared": "Rows of the data, as declared",
    }

    def description(self, statement: Statement) -> Description:
        evidence = statement.evidence
        rows = int(evidence["rows"])
        if rows == 0:
            return EMPTY
        error, margin = float(evidence["mean error of pairs"]), float(evidence["margin of the error"])
        good = (
            f" Over all pairs of columns, {error:.1%} of the rows would have to move to make their tables those of the "
            f"data, on average; that was measured privately, and is right within {margin:.1%} in 19 of 20 cases."
        )
        made = f"{counted(rows, 'row')} drawn from a model; none is a row of the data."
        return Description("Synthetic rows", f"{made}{good}{_range(evidence)}", "nothing: no row is anyone's")

    def draw(self, statement: Statement, output: Any) -> Markup | None:
        measure = statement.basis.need(MeasureTables)
        model = output.model if isinstance(output, SyntheticRows) else None
        parts = (_measured(statement.evidence), _errors(statement.evidence), _promises(measure), _pairs(measure, model))
        present = [part for part in (*parts, _unknown(statement.evidence, measure)) if part is not None]
        return joined(present) if present else None
