"""Output: linked synthetic tables, one file each; how their files are checked, and what a report says of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.domain import Type
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import RecodeToBins
from incrowd.core.words import counted
from incrowd.drawing.markup import EMPTY, Description, joined, table, tag
from incrowd.drawing.picture import Picture
from incrowd.engines.readers.sources import open_source
from incrowd.methods.shared.outcome import Outcome, Tabular
from incrowd.methods.synthesis.linked.levels import ModelPart
from incrowd.methods.synthesis.linked.steps import (
    DrawLinkedRows,
    KeepLinkedRows,
    KeptTable,
    LinkedPrivacy,
    MeasuredLevel,
    MeasureLinked,
    spent,
)
from incrowd.methods.synthesis.marginals.check import occurs, on_declared_days, violated
from incrowd.methods.synthesis.marginals.steps import DrawnColumn
from incrowd.verifier.check import Check, CheckOutcome, Problem, one

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.unit import Unit
    from incrowd.methods.synthesis.linked.synthesis import DrawnLevel


@dataclass(frozen=True, eq=False)
class LinkedTable(Tabular):
    """One of the tables."""

    form: ClassVar[str] = "table of linked ones"

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return nothing: what is shown is shown by all tables together."""
        return {}


@dataclass(frozen=True, eq=False)
class LinkedOutput(Outcome):
    """Synthetic tables by name, the people first, whose keys match.

    Read again from files, what was measured is not told.
    """

    form: ClassVar[str] = "linked synthetic tables"

    tables: Mapping[str, pa.Table]
    levels: tuple[DrawnLevel, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns of the people."""
        return next(iter(self.tables.values())).schema

    @property
    def parts(self) -> tuple[Outcome, ...]:
        """A table a file."""
        return tuple(map(LinkedTable, self.tables.values()))

    def __len__(self) -> int:
        rows: int = next(iter(self.tables.values())).num_rows
        return rows

    def __getitem__(self, name: str) -> LinkedTable:
        """Return a table by its name."""
        return LinkedTable(self.tables[name])

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the people."""
        yield from next(iter(self.tables.values())).to_batches()

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return how many rows each table has and, where they were released here, what was measured with noise."""
        rows = [own.num_rows for own in self.tables.values()]
        if not self.levels:
            return {"rows": rows}
        return {
            "rows": rows,
            "people estimated": round(self.levels[0].selection.model.total),
            "weights estimated": [round(level.selection.model.total) for level in self.levels[1:]],
            "tables": [
                [
                    {"columns": list(measured.columns), "scale": str(measured.scale)}
                    | ({} if measured.epsilon is None else {"epsilon": str(measured.epsilon)})
                    | ({} if measured.pieces is None else {"classes": measured.pieces})
                    for measured in level.selection.rounds
                ]
                for level in self.levels
            ],
            "pairs": [_pairs(len(level.selection.model.tree.sizes)) for level in self.levels],
            "mean errors of pairs": [f"{level.evaluation.error:.6f}" for level in self.levels],
            "margins of the errors": [f"{level.evaluation.margin:.6f}" for level in self.levels],
            "error scales": [str(level.evaluation.scale) for level in self.levels],
        }

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        return {
            "singling out": "no row of the data is published: all rows are drawn from noisy tables",
            "linkability": "no row of the data is published: keys are new, and link drawn rows only",
            "inference": "bounded by the claims above, for every attribute, whatever the attacker knows",
        }


_OF_LEVELS = frozenset({"tables", "pairs", "mean errors of pairs", "margins of the errors", "error scales"})
STATED = _OF_LEVELS | {"people estimated", "weights estimated"}
"""The evidence that noisy measurements paid for and no file shows."""
_UNREADABLE = (KeyError, TypeError, ValueError, ZeroDivisionError, IndexError)
_MOST_ROWS = 10**8
_CLOSE = 1e-6  # shares in a certificate are printed to six digits
_NORMAL = 1.959964  # the two-sided 95 % quantile of the normal law
_SURE = 6.0  # standard deviations of noise: more in one case of 10^9


class LinkedCheck(Check):
    """The files of linked tables: their columns, values and keys, and what was spent on their models."""

    def __init__(self) -> None:
        super().__init__(
            order=(one(KeepLinkedRows), one(RecodeToBins), one(MeasureLinked), one(DrawLinkedRows)),
            claims=(LinkedPrivacy,),
            stated=STATED,
        )

    def contradiction(self, statement: Statement) -> Problem | None:
        basis = statement.basis
        keep, measure, draw = basis.need(KeepLinkedRows), basis.need(MeasureLinked), basis.need(DrawLinkedRows)
        recode, people = basis.need(RecodeToBins), keep.tables[0]
        titles = tuple(title for level in measure.levels for title in _titles(level, people.name))
        if not recode.names == titles == statement.released:
            return Problem("the columns of the models are not the released ones")
        if recode.drafted:
            return Problem("labels were drafted from rows, and no guarantee holds for those")
        names = tuple(own.name for own in keep.tables)
        if not names == tuple(level.table for level in measure.levels) == draw.names:
            return Problem("the tables that are read, measured and drawn are not the same")
        limits = (people.person, people.max_rows, people.more, people.parent)
        if limits != (basis.unit.column, basis.unit.max_rows, basis.unit.more, None):
            return Problem("the rows per person do not match the guarantee's unit")
        if not {number.column for number in draw.numbers} <= set(titles):
            return Problem("numbers are drawn in a column that is not released")
        return _structure(keep, measure) or _overspent(statement, measure)

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        return self.outcomes(statement, self.reopen(statement, files))

    def recount(self, statement: Statement, output: Any) -> Problem | None:
        if not isinstance(output, LinkedOutput):
            return Problem("it is not an output of linked tables")
        problems = (outcome.problem for outcome in self.outcomes(statement, output))
        return next((problem for problem in problems if problem is not None and not problem.undecided), None)

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> LinkedOutput:
        tables = statement.basis.need(KeepLinkedRows).tables
        return LinkedOutput({own.name: _read(file, own) for own, file in zip(tables, files, strict=True)})

    def outcomes(self, statement: Statement, output: LinkedOutput) -> Iterator[CheckOutcome]:
        """Compare tables with the statement."""
        keep, measure = statement.basis.need(KeepLinkedRows), statement.basis.need(MeasureLinked)
        pairs = list(zip(keep.tables, measure.levels, strict=True))
        same = all(
            output.tables[own.name].column_names == [*own.keys, *(column.column for column in level.labels)]
            for own, level in pairs
        )
        problem = None if same else Problem("the files' columns are not those that the certificate says are released")
        yield CheckOutcome("columns in the files", problem, "they are the released ones, and keys")
        if not same:
            return
        yield CheckOutcome("keys in the files", _keys_problem(keep, output), "every foreign key names a row above it")
        yield CheckOutcome(
            "rows of a person", _bounds_problem(keep, output), "nobody has more rows in a table than were read"
        )
        numbers = {number.column: number for number in statement.basis.need(DrawLinkedRows).numbers}
        wrong = None
        for own, level in pairs:
            wrong = wrong or _values_problem(output.tables[own.name], level, numbers, keep.tables[0].name)
        yield CheckOutcome("values in the files", wrong, "all are declared labels, or numbers between declared bounds")
        if wrong is None:
            for own, level in pairs:
                bounds = _own_numbers(level, numbers, keep.tables[0].name)
                wrong = wrong or _contradicted(output.tables[own.name], own, level, bounds)
            yield CheckOutcome(
                "constraints in the files", wrong, "every row is as declared, and sequences are in order"
            )


def _pairs(columns: int) -> int:
    return max(1, columns * (columns - 1) // 2)


def _titles(level: MeasuredLevel, people: str) -> list[str]:
    return [column.column if level.table == people else f"{level.table}.{column.column}" for column in level.labels]


def _structure(keep: KeepLinkedRows, measure: MeasureLinked) -> Problem | None:
    """Return a problem if the models do not have the columns that the tables and their links make, else None."""
    for own, level in zip(keep.tables, measure.levels, strict=True):
        labels = [(column.column, column.size) for column in level.labels]
        own_columns = [(column.column, column.size) for column in level.columns if column.part is ModelPart.OWN]
        below = [(other.name, other.max_rows + 1) for other in keep.tables if other.parent == own.name]
        numbers = [(column.table, column.size) for column in level.columns if column.part is ModelPart.NUMBER]
        if labels != own_columns or below != numbers:
            return Problem("a model has other columns than its table and the tables below it make")
        if own.parent is not None and own.parent not in [other.name for other in keep.tables]:
            return Problem("a table lies below one that is not there")
    return None


def _overspent(statement: Statement, measure: MeasureLinked) -> Problem | None:
    """Return a problem if what the evidence names costs more than ρ, or cannot be read."""
    evidence = statement.evidence
    try:
        if set(evidence) != {*STATED, "rows"} or not _well_formed(evidence, len(measure.levels)):
            return Problem("the evidence has other fields than measurements have")
        sizes = [len(level.columns) for level in measure.levels]
        for size, tables in zip(sizes, evidence["tables"], strict=True):
            if any(not set(item["columns"]) <= set(range(size)) for item in tables):
                return Problem("a table is named that no such columns make")
        for level, tables in zip(measure.levels, evidence["tables"], strict=True):
            names = [column.column for column in level.columns]
            pieces = [([names.index(item.column)], item.size) for item in level.details or ()]
            pieces += [(list(map(names.index, item.columns)), item.size) for item in level.patterns or ()]
            if [(item["columns"], item["classes"]) for item in tables if "classes" in item] != pieces:
                return Problem("other columns were measured in finer pieces than the steps say")
        if evidence["pairs"] != [_pairs(size) for size in sizes]:
            return Problem("the mean error is not that of all pairs of columns")
        if not all(map(_begun, measure.levels, evidence["tables"])):
            return Problem("a column that is drawn was never measured")
        if _misstated(evidence, measure):
            return Problem("an error has another margin than its noise has, or a table has more weight than its people")
        costs = spent(evidence, measure, statement.basis.unit.adjacency)
        if any(cost > level.rho for cost, level in zip(costs, measure.levels, strict=True)):
            return Problem("the tables that were measured cost more than was guaranteed")
        requested = statement.basis.need(DrawLinkedRows).rows
        people, most = evidence["people estimated"] if requested is None else requested, _most(statement)
        if evidence["rows"][0] != min(people, most):
            return Problem("there are other people than the steps and the estimate say")
    except _UNREADABLE:
        return Problem("the tables that were measured cannot be read")
    return None


def _begun(level: MeasuredLevel, tables: list[dict[str, Any]]) -> bool:
    """Whether every column that is drawn is in a table that was measured without a choice, as the first ones are."""
    first = {place for item in tables if not {"epsilon", "classes"} & set(item) for place in item["columns"]}
    return {place for place, column in enumerate(level.columns) if column.target} <= first


def _misstated(evidence: Mapping[str, Any], measure: MeasureLinked) -> bool:
    """Whether a margin is not that of its noise, or an estimated weight is far above that of the estimated people."""
    people, totals = evidence["people estimated"], [evidence["people estimated"], *evidence["weights estimated"]]
    doubts = list(map(_doubt, measure.levels, evidence["tables"]))
    for level, total, doubt in zip(measure.levels, totals, doubts, strict=True):
        if not 0 <= total <= level.weight * (people + 1 + _SURE * doubts[0]) + _SURE * doubt:
            return True
    parts = zip(evidence["margins of the errors"], evidence["error scales"], evidence["pairs"], totals, strict=True)
    return any(
        abs(float(margin) - math.ceil(_NORMAL * float(Fraction(scale))) / (2.0 * pairs * max(1, total))) > _CLOSE
        for margin, scale, pairs, total in parts
    )


def _doubt(level: MeasuredLevel, tables: list[dict[str, Any]]) -> float:
    """Return the standard deviation of the weight of a table, as estimated from the sums of its first tables."""
    sizes = level.sizes
    squares = [
        float(Fraction(item["scale"])) ** 2 * math.prod(sizes[place] for place in item["columns"])
        for item in tables
        if not {"epsilon", "classes"} & set(item)
    ]
    return math.sqrt(1.0 / sum(1.0 / square for square in squares))


def _most(statement: Statement) -> int:
    return _MOST_ROWS // (1 + sum(own.max_rows for own in statement.basis.need(KeepLinkedRows).tables[1:]))


def _well_formed(evidence: Mapping[str, Any], levels: int) -> bool:
    """Whether the evidence has a part for each table, and numbers in it."""
    lists = [*(evidence[name] for name in _OF_LEVELS), evidence["rows"], [0, *evidence["weights estimated"]]]
    totals = [evidence["people estimated"], *evidence["weights estimated"]]
    if any(len(part) != levels for part in lists) or not all(type(total) is int for total in totals):
        return False
    forms = ({"columns", "scale"}, {"columns", "scale", "epsilon"}, {"columns", "scale", "classes"})
    items = [item for tables in evidence["tables"] for item in tables]
    if not all(set(item) in forms and all(type(place) is int for place in item["columns"]) for item in items):
        return False
    shares = [Fraction(error) for error in evidence["mean errors of pairs"]]
    noisy = [Fraction(item[name]) for item in items for name in item if name != "columns"]
    noisy += [Fraction(number) for name in ("margins of the errors", "error scales") for number in evidence[name]]
    whole = all(type(rows) is int and rows >= 0 for rows in (*evidence["rows"], *evidence["pairs"]))
    return whole and all(0 <= share <= 1 for share in shares) and all(number >= 0 for number in noisy)


def _keys_problem(keep: KeepLinkedRows, output: LinkedOutput) -> Problem | None:
    """Return a problem if a key is missing, not numbered, or names no row, or a row of another person; else None."""
    people = {}
    for own in keep.tables:
        columns = {key: output.tables[own.name][key] for key in own.keys}
        rows = output.tables[own.name].num_rows
        if any(column.null_count for column in columns.values()):
            return Problem("a key is missing")
        numbers = {key: column.to_numpy() for key, column in columns.items()}
        name = own.id if own.parent is not None else own.person
        if name is not None and not np.array_equal(numbers[name], np.arange(1, rows + 1)):
            return Problem(f"the rows of {own.name} are not numbered one after the other")
        if own.parent is None:
            people[own.name] = np.arange(1, rows + 1)
            continue
        parents = people.get(own.parent)
        foreign = numbers[own.foreign_key or ""]
        if parents is None or (rows and not (foreign.min() >= 1 and foreign.max() <= len(parents))):
            return Problem(f"a foreign key of {own.name} names no row")
        people[own.name] = parents[foreign - 1]
        if own.person is not None and not np.array_equal(numbers[own.person], people[own.name]):
            return Problem(f"a row of {own.name} belongs to another person than its parent")
    return None


def _bounds_problem(keep: KeepLinkedRows, output: LinkedOutput) -> Problem | None:
    """Return a problem if somebody has more rows in a table than are read of a person, else None."""
    people: dict[str, Any] = {}
    for own in keep.tables:
        if own.parent is None:
            people[own.name] = np.arange(output.tables[own.name].num_rows)
            continue
        foreign = output.tables[own.name][own.foreign_key or ""].to_numpy()
        people[own.name] = people[own.parent][foreign - 1] if len(foreign) else foreign
        if np.bincount(people[own.name], minlength=1).max() > own.max_rows:
            return Problem(f"somebody has more rows in {own.name} than are read of a person")
    return None


def _values_problem(
    rows: pa.Table, level: MeasuredLevel, numbers: Mapping[str, DrawnColumn], people: str
) -> Problem | None:
    for column, title in zip(level.labels, _titles(level, people), strict=True):
        values = _texts(rows[column.column])
        if title in numbers:
            if not _between(values, numbers[title]):
                return Problem(f"column {title!r} shows numbers beyond its bounds")
            if not on_declared_days(values, numbers[title]):
                return Problem(f"column {title!r} shows a day that is not declared")
        elif isinstance(column.labels, tuple):
            declared = pc.is_in(values, value_set=pa.array(column.labels, pa.string()))
            if len(values) and not pc.all(declared).as_py():
                return Problem(f"column {title!r} shows a label that is not declared")
        else:
            return Problem(f"the labels of {title!r} are known by their hash only", undecided=True)
    return None


def _contradicted(
    rows: pa.Table, own: KeptTable, level: MeasuredLevel, bounds: Mapping[str, DrawnColumn]
) -> Problem | None:
    """Return a problem if rows contradict a constraint, or if those of a parent fall in the column of their order."""
    for zero in level.zeros or ():
        if not set(zero.columns) & set(bounds) and occurs(zero, rows):
            return Problem(f"rows of {level.table} show what is declared never to occur")
    for constraint in level.constraints or ():
        if violated(constraint, rows, bounds):
            return Problem(f"rows of {level.table} contradict a constraint: {constraint}")
    if level.ascending is None:
        return None
    foreign, before = rows[own.foreign_key or ""].to_pylist(), None
    for place, value in enumerate(_ordered(rows[level.ascending])):
        same = place and foreign[place] == foreign[place - 1]
        if same and before is not None and value is not None and value < before:  # type: ignore[operator]
            return Problem(f"the rows of one parent in {level.table} fall in {level.ascending!r}")
        before = value
    return None


def _own_numbers(level: MeasuredLevel, numbers: Mapping[str, DrawnColumn], people: str) -> dict[str, DrawnColumn]:
    """Return the columns of a table whose numbers are drawn, by their names there."""
    named = zip(level.labels, _titles(level, people), strict=True)
    return {column.column: numbers[title] for column, title in named if title in numbers}


def _ordered(column: pa.ChunkedArray) -> list[Fraction | date | None]:
    """Return numbers or days so that they can be compared."""

    def read(text: str) -> Fraction | date:
        try:
            return Fraction(text)
        except ValueError:
            return date.fromisoformat(text)

    plain = pc.cast(column.combine_chunks(), pa.string()).to_pylist()
    return [None if text is None else read(text) for text in plain]


def _texts(column: pa.ChunkedArray) -> pa.Array:
    plain = column.combine_chunks().unique()
    plain = plain.dictionary_decode() if pa.types.is_dictionary(plain.type) else plain
    return pc.cast(plain, pa.string())


def _between(values: pa.Array, bounds: DrawnColumn) -> bool:
    read = date.fromisoformat if bounds.type is Type.DATE else float
    try:
        low, high = read(bounds.low), read(bounds.high)
        return all(low <= read(value) <= high for value in values.to_pylist() if value is not None)  # type: ignore[operator]
    except ValueError:
        return False


def _read(file: Path, own: KeptTable) -> pa.Table:
    """Read a file: keys as numbers, everything else as text."""
    source = open_source(str(file))
    names = list(source.names)
    types = pa.schema([(name, pa.int64() if name in own.keys else pa.string()) for name in names])
    return pa.Table.from_batches([batch.cast(types) for batch in source.batches(names)], schema=types)


class LinkedPicture(Picture):
    """Linked tables in a report: how many rows each has, and how good they are."""

    evidence: Mapping[str, str] | None = {"people estimated": "People in the data, as estimated with noise"}

    def description(self, statement: Statement) -> Description:
        evidence, names = statement.evidence, statement.basis.need(DrawLinkedRows).names
        rows = evidence["rows"]
        if not rows[0]:
            return EMPTY
        parts = ", ".join(f"{name} ({counted(int(number), 'row')})" for name, number in zip(names, rows, strict=True))
        full = (
            f"{counted(len(names), 'table')} drawn from models: {parts}. No row is a row of the data; keys are new, "
            "and every foreign key names a row."
        )
        return Description("Linked synthetic tables", full, "nothing: no row is anyone's")

    def draw(self, statement: Statement, output: Any) -> Markup | None:
        evidence, names = statement.evidence, statement.basis.need(DrawLinkedRows).names
        parts = zip(
            names, evidence["rows"], evidence["mean errors of pairs"], evidence["margins of the errors"], strict=True
        )
        title = "Share of the weight that would have to move, on average over all pairs of columns, measured privately"
        lines = [
            [name, f"{rows:,}", f"{float(error):.1%} ± {float(margin):.1%}"] for name, rows, error, margin in parts
        ]
        errors = table(title, ["table", "rows", "error"], lines)
        constraints = _constraints(statement.basis.need(MeasureLinked))
        return joined([errors, *([] if constraints is None else [constraints]), tag("p", _UNKNOWN)])


_UNKNOWN = (
    "What the models cannot know: what rows of one person have in common beyond what the rows above and the one before "
    "explain, what depends on columns that were not measured together, and what no noisy count shows."
)
_SHOWN = 12


def _constraints(measure: MeasureLinked) -> Markup | None:
    """Return what is declared of every row of each table, and the order of sequences; None where nothing is."""
    lines = [
        [level.table, text]
        for level in measure.levels
        for text in (
            *map(str, level.constraints or ()),
            *(f"never {zero}" for zero in level.zeros or ()),
            *([] if level.ascending is None else [f"{level.ascending} never falls within a parent"]),
        )
    ]
    part = f": the first {_SHOWN} of {len(lines):,}" if len(lines) > _SHOWN else ""
    return table(f"True of every row{part}", ["table", "constraint"], lines[:_SHOWN]) if lines else None
