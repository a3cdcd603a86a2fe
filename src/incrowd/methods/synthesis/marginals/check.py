"""Check: the files of synthetic rows and their model against the certificate, slowly and from outside."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.claims.privacy import ApproximatePrivacy
from incrowd.core.days import DayRule
from incrowd.core.domain import Type, Weekday
from incrowd.core.hierarchy.calendar import Period
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import BinColumn, RecodeToBins
from incrowd.core.steps.rows import KeepRows
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.columns import digest_of
from incrowd.methods.synthesis.marginals.budget import Sensitivity
from incrowd.methods.synthesis.marginals.constraints import ConstraintKind, NumberConstraint
from incrowd.methods.synthesis.marginals.declared import number_zeros
from incrowd.methods.synthesis.marginals.junction import JunctionTree, summed
from incrowd.methods.synthesis.marginals.model import TableModel, Zero, ZeroTable, zeros_of
from incrowd.methods.synthesis.marginals.output import STATED, SyntheticRows
from incrowd.methods.synthesis.marginals.patterns import PatternKind
from incrowd.methods.synthesis.marginals.steps import (
    DeclaredZero,
    DrawnColumn,
    DrawRows,
    MeasureTables,
    spent,
    table_names,
)
from incrowd.methods.synthesis.marginals.synthetic_model import ModelColumn, SyntheticModel
from incrowd.verifier.check import Check, CheckOutcome, Place, Problem, maybe, one
from incrowd.verifier.files import columns_of

_CLOSE = 1e-6  # shares in a certificate are printed to six digits
_MOST_ROWS = 10**8  # as the method draws at most
_NORMAL = 1.959964  # the two-sided 95 % quantile of the normal law
_UNREADABLE = (KeyError, TypeError, ValueError, ZeroDivisionError)


class SyntheticCheck(Check):
    """The files of a model: the rows' columns and values, the model itself, and what was spent on it."""

    def __init__(
        self,
        order: tuple[Place, ...] = (maybe(KeepRows), one(RecodeToBins), one(MeasureTables), one(DrawRows)),
        stated: frozenset[str] = STATED,
    ) -> None:
        super().__init__(order=order, claims=(ApproximatePrivacy,), stated=stated)

    def contradiction(self, statement: Statement) -> Problem | None:
        recode, measure = statement.basis.need(RecodeToBins), statement.basis.need(MeasureTables)
        names = measure.names
        if not recode.names == names == statement.released:
            return Problem("the columns of the model are not the released ones")
        if recode.drafted:
            return Problem("labels were drafted from rows, and no guarantee holds for those")
        if not {number.column for number in statement.basis.need(DrawRows).numbers} <= set(names):
            return Problem("numbers are drawn in a column that is not released")
        return _overspent(statement, measure)

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        file, document = files
        same = columns_of(file) == statement.released
        problem = None if same else Problem("the file's columns are not those that the certificate says are released")
        yield CheckOutcome("columns in the file", problem, "they are the released ones, and no others")
        try:
            model = SyntheticModel.load(document)
        except InvalidParameter as error:
            yield CheckOutcome("model", Problem(str(error)), "")
            return
        problem = _model_problem(statement, model)
        yield CheckOutcome("model", problem, "its cliques, classes and tables are those of the certificate")
        if same and problem is None:
            problem = _values_problem(statement, self.reopen(statement, files).table, model)
            yield CheckOutcome("values in the file", problem, "all are such as the model can show")

    def recount(self, statement: Statement, output: Any) -> Problem | None:
        if not isinstance(output, SyntheticRows):
            return Problem("it is not a table of synthetic rows")
        if output.model is None:
            return Problem("it has no model")
        return _model_problem(statement, output.model) or _values_problem(statement, output.table, output.model)

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> SyntheticRows:
        names = list(statement.released)
        text = pa.schema([(name, pa.string()) for name in names])
        batches = [batch.cast(text) for batch in open_source(str(files[0])).batches(names)]
        table = pa.Table.from_batches(batches, schema=text)
        return SyntheticRows(table, SyntheticModel.load(files[1]))


def _overspent(statement: Statement, measure: MeasureTables) -> Problem | None:
    """Return a problem if the tables in the evidence cost more than ρ, or cannot be read."""
    try:
        if not _well_formed(statement.evidence):
            return Problem("the evidence has other fields than measurements have")
        names = set(measure.names)
        if any(not set(table["columns"]) <= names for table in statement.evidence["tables"]):
            return Problem("a table is named that no such columns make")
        if statement.evidence["pairs"] != max(1, math.comb(len(names), 2)):
            return Problem("the mean error is not that of all pairs of columns")
        pieces = [([item.column], item.size) for item in measure.details or ()]
        pieces += [(list(item.columns), item.size) for item in measure.patterns or ()]
        if [(item["columns"], item["classes"]) for item in statement.evidence["tables"] if "classes" in item] != pieces:
            return Problem("other columns were measured in finer pieces than the steps say")
        listed = [item["columns"] for item in statement.evidence.get("errors of tables", [])]
        if listed != table_names(measure.evaluated, measure.names):
            return Problem("errors are told of other tables than the steps say")
        cost = spent(statement.evidence, Sensitivity.of(statement.basis.unit))
        if cost > measure.rho:
            return Problem("the tables that were measured cost more than was guaranteed")
        return _misstated(statement, measure)
    except _UNREADABLE:
        return Problem("the tables that were measured cannot be read")


def _well_formed(evidence: Mapping[str, Any]) -> bool:
    """Whether the evidence has no fields but those of measurements, and numbers in them."""
    tables, errors = evidence["tables"], evidence.get("errors of tables", [])
    numbers = [evidence[name] for name in ("mean error of pairs", "margin of the error", "error scale")]
    numbers += [evidence[name] for name in ("margin of each table", "scale of each table") if name in evidence]
    numbers += [value for item in (*tables, *errors) for name, value in item.items() if name != "columns"]
    forms = ({"columns", "scale"}, {"columns", "scale", "epsilon"}, {"columns", "scale", "classes"})
    proper = all(set(item) in forms for item in tables) and all(set(item) == {"columns", "error"} for item in errors)
    whole = all(
        type(evidence[name]) is int for name in ("rows", "pairs", "rows declared", "rows estimated") if name in evidence
    )
    return proper and whole and set(evidence) <= {*STATED, "rows"} and all(Fraction(number) >= 0 for number in numbers)


def _misstated(statement: Statement, measure: MeasureTables) -> Problem | None:
    """Return a problem if rows, errors or their margins are not what noise and steps make of them, else None."""
    evidence, requested = statement.evidence, statement.basis.need(DrawRows).rows
    total = evidence["rows estimated"] if measure.total is None else evidence["rows declared"]
    rows = min(_most_rows(statement), total if requested is None else requested)
    if measure.total not in (None, total) or evidence["rows"] != rows:
        return Problem("there are other rows than the steps and the estimate say")
    stated = [(evidence["margin of the error"], evidence["error scale"], evidence["pairs"])]
    if "errors of tables" in evidence:
        stated.append((evidence["margin of each table"], evidence["scale of each table"], 1))
    size = max(1, min(_MOST_ROWS, total))
    margins = [math.ceil(_NORMAL * float(Fraction(scale))) / (2.0 * tables * size) for _, scale, tables in stated]
    far = any(abs(float(item[0]) - margin) > _CLOSE for item, margin in zip(stated, margins, strict=True))
    errors = [evidence["mean error of pairs"], *(item["error"] for item in evidence.get("errors of tables", ()))]
    if far or not all(0 <= float(error) <= 1 for error in errors):
        return Problem("an error has another margin than its noise has, or is no share")
    return None


def _most_rows(statement: Statement) -> int:
    """Return how many rows can be drawn: a column that is unique has so many values."""
    constraints = statement.basis.need(MeasureTables).constraints or ()
    unique = {item.columns[0] for item in constraints if item.kind is ConstraintKind.UNIQUE}
    numbers = [item for item in statement.basis.need(DrawRows).numbers if item.column in unique]
    return min([_MOST_ROWS, *(round(_place(item.high) - _place(item.low)) + 1 for item in numbers)])


def _values_problem(statement: Statement, table: pa.Table, model: SyntheticModel) -> Problem | None:
    numbers = {number.column: number for number in statement.basis.need(DrawRows).numbers}
    for column in model.columns:
        values = _texts(table[column.name])
        if column.name in numbers:
            if not _between(values, numbers[column.name]):
                return Problem(f"column {column.name!r} shows numbers beyond its bounds")
            if not on_declared_days(values, numbers[column.name]):
                return Problem(f"column {column.name!r} shows a day that is not declared")
            continue
        labels = column.labels if column.leaves is None else column.leaves.labels
        declared = pc.is_in(values, value_set=pa.array(labels, pa.string()))
        if not pc.all(declared).as_py() and len(values):
            return Problem(f"column {column.name!r} shows a label that is not declared")
    inside = {*numbers, *(column.name for column in model.columns if column.leaves is not None)}
    for zero in statement.basis.need(MeasureTables).zeros or ():
        if not set(zero.columns) & inside and occurs(zero, table):
            return Problem("rows show what is declared never to occur")
    for constraint in statement.basis.need(MeasureTables).constraints or ():
        if violated(constraint, table, numbers):
            return Problem(f"rows contradict a constraint: {constraint}")
    return None


def violated(constraint: NumberConstraint, table: pa.Table, numbers: Mapping[str, DrawnColumn]) -> bool:
    """Whether a row does not fulfil a constraint; rows in which a part of it is missing fulfil it."""
    read = [_numbers(table[name], numbers[name]) for name in constraint.columns]
    if constraint.kind is ConstraintKind.UNIQUE:
        present = [value for value in read[0] if value is not None]
        return len(set(present)) < len(present)
    rows = [values for values in zip(*read, strict=True) if None not in values]
    if constraint.kind is ConstraintKind.SUM:
        return any(sum(values[:-1]) != values[-1] for values in rows)
    return any(list(values) != sorted(values) for values in rows)


def _numbers(column: pa.ChunkedArray, bounds: DrawnColumn) -> list[Any]:
    """Return numbers exactly, as they are written, and days as numbers."""
    plain = column.combine_chunks()
    plain = plain.dictionary_decode() if pa.types.is_dictionary(plain.type) else plain
    read = _day if bounds.type is Type.DATE else Fraction
    return [None if text is None else read(text) for text in pc.cast(plain, pa.string()).to_pylist()]


def occurs(zero: DeclaredZero, table: pa.Table) -> bool:
    """Whether a row has the labels of a zero."""
    matches = pa.array(np.ones(table.num_rows, np.bool_))
    for name, labels in zip(zero.columns, zero.labels, strict=True):
        own = pc.is_in(pc.cast(table[name].combine_chunks(), pa.string()), value_set=pa.array(labels, pa.string()))
        matches = pc.and_(matches, own)
    return bool(pc.any(matches, min_count=0).as_py())


def _model_problem(statement: Statement, model: SyntheticModel) -> Problem | None:
    """Return where a model differs from what was declared and measured, or None."""
    measure = statement.basis.need(MeasureTables)
    names = [column.name for column in model.columns]
    numbers = {number.column: number for number in statement.basis.need(DrawRows).numbers}
    if names != [column.column for column in measure.columns]:
        return Problem("the columns of the model are not the released ones")
    for column, declared in zip(model.columns, measure.columns, strict=True):
        if not _same_labels(declared, column.labels):
            return Problem(f"the model shows classes of {column.name!r} that are not declared")
        if not _same_range(column, numbers.get(column.name)):
            return Problem(f"the model draws numbers of {column.name!r} that are not declared")
    if list(model.constraints) != list(measure.constraints or ()):
        return Problem("the model has other constraints than the certificate")
    details = {item.column: item for item in measure.details or ()}
    for column in model.columns:
        if not _same_pieces(column, details.get(column.name)):
            return Problem(f"the model has other pieces of {column.name!r} than were measured")
    if problem := _patterns_problem(measure, model):
        return problem
    zeros = _zeros(measure, model)
    tables = [tuple(map(names.index, item["columns"])) for item in statement.evidence["tables"]]
    prior = [tuple(map(names.index, clique)) for clique in statement.cliques]
    tree = JunctionTree.of(model.model.tree.sizes, [*tables, *(zero.columns for zero in zeros), *prior])
    if tree.cliques != model.model.tree.cliques:
        return Problem("the model has other cliques than the tables that were measured make")
    return _improper(statement, model.model, zeros)


def _patterns_problem(measure: MeasureTables, model: SyntheticModel) -> Problem | None:
    """Return a problem if the model rounds numbers or keeps distances that no pattern counted, else None."""
    counted = {(item.kind, item.columns): item.starts for item in measure.patterns or ()}
    for column in model.columns:
        grains = () if column.numbers is None else column.numbers.grains
        if not {grain for grain, _ in grains} <= set(counted.get((PatternKind.ROUND, (column.name,)), ())):
            return Problem(f"the model rounds numbers of {column.name!r} in a way that was not counted")
    for distance in model.distances:
        if counted.get((PatternKind.DISTANCE, distance.columns)) != tuple(map(int, distance.law.starts)):
            return Problem(f"the model keeps a distance of {' and '.join(distance.columns)} that was not counted")
    return None


def _zeros(measure: MeasureTables, model: SyntheticModel) -> tuple[Zero | ZeroTable, ...]:
    """Return the cells that never occur, by labels and by the ends of classes of numbers."""
    names = [column.name for column in model.columns]
    ranges = {column.name: column.numbers for column in model.columns if column.numbers is not None}
    sizes = {column.name: len(column.values) for column in model.columns}
    labels = zeros_of(measure.zeros or (), names, [column.labels for column in model.columns])
    return (*labels, *number_zeros(measure.constraints or (), names, (ranges, sizes)))


def _same_pieces(column: ModelColumn, declared: BinColumn | None) -> bool:
    """Whether values are drawn inside classes where finer pieces were measured, and of those pieces."""
    if column.leaves is not None:
        return declared is not None and _same_labels(declared, column.leaves.labels)
    pieces = column.numbers is not None and bool(column.numbers.chances)
    return pieces == (declared is not None) and (declared is None or _numbered(column, declared))


def _numbered(column: ModelColumn, declared: BinColumn) -> bool:
    """Whether a column has as many pieces as were measured; missing values are a piece that is no number."""
    numbers = column.numbers
    absent = 0 if numbers is None else len(column.values) - numbers.size
    return numbers is not None and len(numbers.starts) + absent == declared.size


def _improper(statement: Statement, model: TableModel, zeros: tuple[Zero | ZeroTable, ...]) -> Problem | None:
    """Return a problem if tables are not a distribution over all columns: they disagree, or show what never occurs."""
    for own_table, clique, parent, shared in zip(
        model.tables, model.tree.cliques, model.tree.parents, model.tree.separators, strict=True
    ):
        above = own_table if parent < 0 else summed(model.tables[parent], model.tree.cliques[parent], shared)
        own = own_table if parent < 0 else summed(own_table, clique, shared)
        if abs(own_table.sum() - 1) > _CLOSE or np.abs(above - own).max() > _CLOSE:
            return Problem("the tables of the model are no distribution, or disagree about what they share")
    for zero in zeros:
        chances = model.table(zero.columns)
        if chances is None or np.any(chances[zero.table(model.tree.sizes)] > 0):
            return Problem("the model gives a chance to what is declared never to occur")
    total = statement.evidence.get("rows declared", statement.evidence.get("rows estimated"))
    return None if round(model.total) == total else Problem("the model is of another number of rows")


def _same_labels(declared: BinColumn, labels: list[str | None]) -> bool:
    if isinstance(declared.labels, tuple):
        return list(declared.labels) == labels
    return (declared.number, declared.sha256) == (len(labels), digest_of(labels))


def _same_range(column: ModelColumn, numbers: DrawnColumn | None) -> bool:
    """Whether numbers are drawn where the certificate says so, and inside the bounds that it tells."""
    if numbers is None or column.numbers is None:
        return numbers is None and column.numbers is None
    starts, end = column.numbers.starts, column.numbers.end - column.numbers.whole
    days, whole = numbers.type is Type.DATE, numbers.type is not Type.DECIMAL
    inside = list(starts) == sorted(starts) and _place(numbers.low) <= starts[0] and end == _place(numbers.high)
    form = (column.numbers.whole, column.numbers.days, None if whole else column.numbers.decimals)
    same = form == (whole, days, numbers.decimals) and column.numbers.allowed == numbers.allowed
    return inside and starts[-1] <= end and same


def _texts(column: pa.ChunkedArray) -> pa.Array:
    plain = column.combine_chunks().unique()
    plain = plain.dictionary_decode() if pa.types.is_dictionary(plain.type) else plain
    return pc.cast(plain, pa.string())


def _between(values: pa.Array, bounds: DrawnColumn) -> bool:
    read = _day if bounds.type is Type.DATE else float
    try:
        numbers = [read(value) for value in values.to_pylist() if value is not None]
    except ValueError:
        return False
    return all(_place(bounds.low) <= number <= _place(bounds.high) for number in numbers)


def on_declared_days(values: pa.Array, declared: DrawnColumn) -> bool:
    """Whether all days of a column are among its declared ones, if there are some."""
    rule = declared.allowed
    days = [] if rule is None else [date.fromisoformat(value) for value in values.to_pylist() if value is not None]
    return rule is None or all(_on(rule, day) and _last(rule, day) for day in days)


def _on(rule: DayRule, day: date) -> bool:
    text = day.isoformat()
    named = not rule.weekdays or tuple(Weekday)[day.weekday()] in rule.weekdays
    return named and text not in rule.off and text[5:] not in rule.off


def _last(rule: DayRule, day: date) -> bool:
    """Whether no later day of the same period could be, where only the last one can."""
    if rule.last_of is None:
        return True
    later = day + timedelta(days=1)
    while _period(rule.last_of, later) == _period(rule.last_of, day):
        if _on(rule, later):
            return False
        later += timedelta(days=1)
    return True


def _period(of: Period, day: date) -> tuple[int, ...]:
    if of is Period.WEEK:
        return day.isocalendar()[:2]
    return (day.year, *{Period.MONTH: (day.month,), Period.QUARTER: ((day.month - 1) // 3,)}.get(of, ()))


def _place(end: str) -> float:
    """Return where a bound lies: a number, or a day as its number since 1970-01-01."""
    try:
        return float(end)
    except ValueError:
        return _day(end)


def _day(text: str) -> float:
    return float((date.fromisoformat(text) - date(1970, 1, 1)).days)
