"""The files of a model, looked at again: the rows' columns and values, the model itself, and what was spent on it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import ApproximatePrivacy
from incrowd.core.domain import Type
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import BinColumn, RecodeToBins
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.step import Step
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.columns import digest_of
from incrowd.methods.synthesis.marginals.budget import Sensitivity
from incrowd.methods.synthesis.marginals.junction import JunctionTree, summed
from incrowd.methods.synthesis.marginals.model import TableModel, Zero
from incrowd.methods.synthesis.marginals.output import SyntheticRows
from incrowd.methods.synthesis.marginals.steps import DeclaredZero, DrawnColumn, DrawRows, MeasureTables, spent
from incrowd.methods.synthesis.marginals.synthetic_model import ModelColumn, SyntheticModel
from incrowd.methods.synthesis.marginals.workload import table_names
from incrowd.methods.synthesis.marginals.zeros import zeros_of
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one
from incrowd.verifier.files import columns_of

STEPS: tuple[type[Step], ...] = (KeepRows, RecodeToBins, MeasureTables, DrawRows)
CLAIMS: tuple[type[Claim], ...] = (ApproximatePrivacy,)
ORDER = (maybe(KeepRows), one(RecodeToBins), one(MeasureTables), one(DrawRows))
_CLOSE = 1e-6
_MOST_ROWS = 10**8
_NORMAL = 1.959964
_UNREADABLE = (KeyError, TypeError, ValueError, ZeroDivisionError)


def contradiction(statement: Statement) -> Problem | None:
    """Return that columns differ, were drafted from rows, or that more was spent than guaranteed, or None."""
    recode, measure = statement.basis.need(RecodeToBins), statement.basis.need(MeasureTables)
    names = measure.names
    if not recode.names == names == statement.released:
        return Problem("the columns of the model are not the released ones")
    if recode.drafted:
        return Problem("labels were drafted from rows, and no guarantee holds for those")
    if not {number.column for number in statement.basis.need(DrawRows).numbers} <= set(names):
        return Problem("numbers are drawn in a column that is not released")
    return _overspent(statement, measure)


def _overspent(statement: Statement, measure: MeasureTables) -> Problem | None:
    """Return that the tables which the evidence names cost more than ρ, or cannot be read; nothing names none."""
    try:
        names = set(measure.names)
        if any(not set(table["columns"]) <= names for table in statement.evidence["tables"]):
            return Problem("a table is named that no such columns make")
        if statement.evidence["pairs"] != max(1, math.comb(len(names), 2)):
            return Problem("the mean error is not that of all pairs of columns")
        told = [each["columns"] for each in statement.evidence.get("errors of tables", [])]
        if told != table_names(measure.told, measure.names):
            return Problem("errors are told of other tables than the steps say")
        cost = spent(statement.evidence, Sensitivity.of(statement.basis.unit))
        if cost > measure.rho:
            return Problem("the tables that were measured cost more than was guaranteed")
        return _misstated(statement, measure)
    except _UNREADABLE:
        return Problem("the tables that were measured cannot be read")


def _misstated(statement: Statement, measure: MeasureTables) -> Problem | None:
    """Return that rows, errors or their margins are not what noise and steps make of them, or None."""
    told, asked = statement.evidence, statement.basis.need(DrawRows).rows
    total = told["rows estimated"] if measure.total is None else told["rows declared"]
    if measure.total not in (None, total) or told["rows"] != (min(_MOST_ROWS, total) if asked is None else asked):
        return Problem("there are other rows than the steps and the estimate say")
    shown = [(told["margin of the error"], told["error scale"], told["pairs"])]
    if "errors of tables" in told:
        shown.append((told["margin of each table"], told["scale of each table"], 1))
    rows = max(1, min(_MOST_ROWS, total))
    margins = [math.ceil(_NORMAL * float(Fraction(scale))) / (2.0 * tables * rows) for _, scale, tables in shown]
    far = any(abs(float(each[0]) - margin) > _CLOSE for each, margin in zip(shown, margins, strict=True))
    errors = [told["mean error of pairs"], *(each["error"] for each in told.get("errors of tables", ()))]
    if far or not all(0 <= float(error) <= 1 for error in errors):
        return Problem("an error has another margin than its noise has, or is no share")
    return None


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Read the files: the columns, that every value is one that the model can show, and the model."""
    file, document = files
    same = columns_of(file) == statement.released
    problem = None if same else Problem("the file's columns are not those that the certificate says are released")
    yield CheckOutcome("columns in the file", problem, "they are the released ones, and no others")
    try:
        model = SyntheticModel.load(document)
    except InvalidParameter as error:
        yield CheckOutcome("model", Problem(str(error)), "")
        return
    deviant = _deviant(statement, model)
    yield CheckOutcome("model", deviant, "its cliques, classes and tables are those of the certificate")
    if same and deviant is None:
        strange = _strange(statement, reopen(statement, files).table, model)
        yield CheckOutcome("values in the file", strange, "all are such as the model can show")


def recount(statement: Statement, output: Output) -> Problem | None:
    """Return which column of an output in memory shows something else, or None."""
    if not isinstance(output, SyntheticRows):
        return Problem("it is not a table of synthetic rows")
    if output.model is None:
        return Problem("it has no model")
    return _deviant(statement, output.model) or _strange(statement, output.table, output.model)


def reopen(statement: Statement, files: tuple[Path, ...]) -> SyntheticRows:
    """Read the published files, as anyone can; every column is text."""
    names = list(statement.released)
    text = pa.schema([(name, pa.string()) for name in names])
    batches = [batch.cast(text) for batch in open_source(str(files[0])).batches(names)]
    table = pa.Table.from_batches(batches, schema=text)
    return SyntheticRows(table, SyntheticModel.load(files[1]), stated=statement.evidence)


def _strange(statement: Statement, table: pa.Table, model: SyntheticModel) -> Problem | None:
    drawn = {number.column: number for number in statement.basis.need(DrawRows).numbers}
    for column in model.columns:
        values = _texts(table[column.name])
        if column.name in drawn:
            if not _between(values, drawn[column.name]):
                return Problem(f"column {column.name!r} shows numbers beyond its bounds")
            continue
        known = pc.is_in(values, value_set=pa.array(column.labels, pa.string()))
        if not pc.all(known).as_py() and len(values):
            return Problem(f"column {column.name!r} shows a label that is not declared")
    for zero in statement.basis.need(MeasureTables).zeros or ():
        if not set(zero.columns) & set(drawn) and _occurs(zero, table):
            return Problem("rows show what is declared never to occur")
    return None


def _occurs(zero: DeclaredZero, table: pa.Table) -> bool:
    """Whether a row has the labels of a zero."""
    found = pa.array(np.ones(table.num_rows, np.bool_))
    for name, labels in zip(zero.columns, zero.labels, strict=True):
        own = pc.is_in(pc.cast(table[name].combine_chunks(), pa.string()), value_set=pa.array(labels, pa.string()))
        found = pc.and_(found, own)
    return bool(pc.any(found, min_count=0).as_py())


def _deviant(statement: Statement, model: SyntheticModel) -> Problem | None:
    """Return where a model differs from what was declared and measured, or None."""
    measure = statement.basis.need(MeasureTables)
    names = [column.name for column in model.columns]
    drawn = {number.column: number for number in statement.basis.need(DrawRows).numbers}
    if names != [column.column for column in measure.columns]:
        return Problem("the columns of the model are not the released ones")
    for column, declared in zip(model.columns, measure.columns, strict=True):
        if not _same_labels(declared, column.labels):
            return Problem(f"the model shows classes of {column.name!r} that are not declared")
        if not _same_range(column, drawn.get(column.name)):
            return Problem(f"the model draws numbers of {column.name!r} that are not declared")
    zeros = zeros_of(measure.zeros or (), names, [column.labels for column in model.columns])
    tables = [tuple(map(names.index, each["columns"])) for each in statement.evidence["tables"]]
    tree = JunctionTree.of(model.model.tree.sizes, [*tables, *(zero.columns for zero in zeros)])
    if tree.cliques != model.model.tree.cliques:
        return Problem("the model has other cliques than the tables that were measured make")
    return _improper(statement, model.model, zeros)


def _improper(statement: Statement, model: TableModel, zeros: tuple[Zero, ...]) -> Problem | None:
    """Return that tables are no distribution over all columns: they disagree, or show what never occurs."""
    for table, clique, parent, shared in zip(
        model.tables, model.tree.cliques, model.tree.parents, model.tree.separators, strict=True
    ):
        above = table if parent < 0 else summed(model.tables[parent], model.tree.cliques[parent], shared)
        own = table if parent < 0 else summed(table, clique, shared)
        if abs(table.sum() - 1) > _CLOSE or np.abs(above - own).max() > _CLOSE:
            return Problem("the tables of the model are no distribution, or disagree about what they share")
    for zero in zeros:
        known = model.table(zero.columns)
        if known is None or np.any(known[zero.table(model.tree.sizes)] > 0):
            return Problem("the model gives a chance to what is declared never to occur")
    told = statement.evidence.get("rows declared", statement.evidence.get("rows estimated"))
    return None if round(model.total) == told else Problem("the model is of another number of rows")


def _same_labels(declared: BinColumn, labels: list[str | None]) -> bool:
    if isinstance(declared.labels, tuple):
        return list(declared.labels) == labels
    return (declared.number, declared.sha256) == (len(labels), digest_of(labels))


def _same_range(column: ModelColumn, drawn: DrawnColumn | None) -> bool:
    """Whether numbers are drawn where the certificate says so, and inside the bounds that it tells."""
    if drawn is None or column.numbers is None:
        return drawn is None and column.numbers is None
    starts, end = column.numbers.starts, column.numbers.end - column.numbers.whole
    inside = list(starts) == sorted(starts) and float(drawn.low) <= starts[0] and end == float(drawn.high)
    return inside and starts[-1] <= end and column.numbers.whole == (drawn.type is Type.INTEGER)


def _texts(column: pa.ChunkedArray) -> pa.Array:
    plain = column.combine_chunks().unique()
    plain = plain.dictionary_decode() if pa.types.is_dictionary(plain.type) else plain
    return pc.cast(plain, pa.string())


def _between(values: pa.Array, drawn: Any) -> bool:
    try:
        numbers = [float(value) for value in values.to_pylist() if value is not None]
    except ValueError:
        return False
    return all(float(drawn.low) <= number <= float(drawn.high) for number in numbers)
