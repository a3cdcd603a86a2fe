"""The files of a learned model, looked at again: its columns and classes, and that its table is the model's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import ApproximatePrivacy, PurePrivacy
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import BinColumn, RecodeToBins
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.step import Step
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.models import TABLE, LearnedModel
from incrowd.methods.learning.output import ModelTable
from incrowd.methods.learning.steps import (
    CountAllRows,
    CountByTarget,
    CountGrid,
    FollowGradients,
    LearnFrom,
    MoveCenters,
    MultiplyColumns,
    PublishModel,
    SumByColumn,
)
from incrowd.methods.learning.stream_steps import SampleGradients
from incrowd.methods.learning.tree_steps import CountLeaves, GrowTrees, SumLeaves
from incrowd.methods.learning.trees import SplitCandidates
from incrowd.methods.learning.tuning.steps import TryModels
from incrowd.methods.shared.columns import digest_of
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one
from incrowd.verifier.files import columns_of

_SUMS = (
    CountByTarget,
    FollowGradients,
    MultiplyColumns,
    MoveCenters,
    CountGrid,
    SumByColumn,
    CountLeaves,
    SumLeaves,
    SampleGradients,
)
STEPS: tuple[type[Step], ...] = (KeepRows, RecodeToBins, LearnFrom, CountAllRows, GrowTrees, *_SUMS, PublishModel)
CLAIMS: tuple[type[Claim], ...] = (PurePrivacy, ApproximatePrivacy)
ORDER = (
    maybe(KeepRows),
    one(RecodeToBins),
    one(LearnFrom),
    maybe(CountAllRows, GrowTrees),
    one(*_SUMS),
    maybe(FollowGradients),
    one(PublishModel),
)


def contradiction(statement: Statement) -> Problem | None:
    """Return that columns differ, or were drafted from rows, or that sums are of other columns, or None."""
    recode, learn = statement.basis.need(RecodeToBins), statement.basis.need(LearnFrom)
    names = tuple(column.column for column in learn.columns)
    target = () if learn.target is None else (learn.target,)
    if recode.names != (*names, *target):
        return Problem("the columns that are recoded are not those that the model is learned from")
    if recode.drafted:
        return Problem("labels were drafted from rows, and no guarantee holds for those")
    counted = statement.basis.find(CountByTarget) or statement.basis.find(SumByColumn)
    followed = statement.basis.find(FollowGradients)
    if (counted is not None and counted.tables != len(names)) or (
        followed is not None and followed.columns != len(names)
    ):
        return Problem("the sums are over another number of columns")
    grid = statement.basis.find(CountGrid)
    if grid is not None and grid.columns != len(names):
        return Problem("the grid is over another number of columns")
    return _unlike_trees(statement)


def _leaves(statement: Statement) -> CountLeaves | SumLeaves | None:
    return statement.basis.find(CountLeaves) or statement.basis.find(SumLeaves)


def _unlike_trees(statement: Statement) -> Problem | None:
    """Return that the trees that grow are not those whose leaves are summed, or None."""
    grown, leaves = statement.basis.find(GrowTrees), _leaves(statement)
    chosen = leaves is not None and not (isinstance(leaves, CountLeaves) and leaves.dealt)
    if chosen != (grown is not None):
        return Problem("trees grow and their leaves are summed together, or rows are dealt to trees drawn without them")
    if grown is not None and leaves is not None and (grown.trees, grown.depth) != (leaves.trees, leaves.depth):
        return Problem("the trees that grow are not those whose leaves are summed")
    return None


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Read the files: the columns of the table, the model, and that both say the same."""
    file, document = files
    same = columns_of(file) == tuple(TABLE.names)
    yield CheckOutcome(
        "columns in the file", None if same else Problem("it is not the table of a model"), "they are a model's"
    )
    try:
        model = LearnedModel.load(document)
    except InvalidParameter as error:
        yield CheckOutcome("model", Problem(str(error)), "")
        return
    deviant = _deviant(statement, model)
    yield CheckOutcome("model", deviant, "its columns, classes and outputs are those of the certificate")
    if same and deviant is None:
        differs = None if _alike(_table(file), model.lines()) else Problem("the table has other numbers than the model")
        yield CheckOutcome("numbers in the file", differs, "they are those of the model")


def recount(statement: Statement, output: Output) -> Problem | None:
    """Return how an output in memory differs from what is stated, or None."""
    if not isinstance(output, ModelTable) or output.model is None:
        return Problem("it is not a learned model")
    again = LearnedModel.from_json(output.model.to_json())
    if not _alike(output.table, again.lines()):
        return Problem("the table has other numbers than the model")
    return _deviant(statement, again)


def reopen(statement: Statement, files: tuple[Path, ...]) -> ModelTable:
    """Read the published files, as anyone can."""
    return ModelTable(_table(files[0]), LearnedModel.load(files[1]), stated=statement.evidence)


def _table(file: Path) -> pa.Table:
    text = pa.schema([(name, pa.string()) for name in TABLE.names])
    batches = [batch.cast(text) for batch in open_source(str(file)).batches(TABLE.names)]
    table = pa.Table.from_batches(batches, schema=text)
    numbers = pc.cast(table["coefficient"], pa.float64())
    return table.set_column(len(TABLE) - 1, "coefficient", numbers)


def _alike(one_: pa.Table, other: pa.Table) -> bool:
    """Whether two tables of a model are the same; what is missing in one may be an empty text in the other."""
    if one_.num_rows != other.num_rows:
        return False
    texts = all(
        pc.all(pc.equal(pc.fill_null(one_[name], ""), pc.fill_null(other[name], "")), min_count=0).as_py()
        for name in TABLE.names[:-1]
    )
    first, second = (np.array(each["coefficient"].to_pylist(), np.float64) for each in (one_, other))
    return texts and bool(np.array_equal(first, second))


def _deviant(statement: Statement, model: LearnedModel) -> Problem | None:
    """Return where a model differs from what was declared, or from all that could be learned, or None."""
    tried = statement.basis.find(TryModels)
    each = (statement.steps,) if tried is None else tried.candidates
    alone = [replace(statement, basis=replace(statement.basis, steps=steps)) for steps in each]
    found = [_differs(one_alone, model) for one_alone in alone]
    return None if None in found else found[0]


def _differs(statement: Statement, model: LearnedModel) -> Problem | None:
    learn = statement.basis.need(LearnFrom)
    if [each.name for each in model.columns] != [each.column for each in learn.columns]:
        return Problem("the columns of the model are not those that it was learned from")
    for column, declared in zip(model.columns, learn.columns, strict=True):
        if not _same_labels(declared, list(column.labels)):
            return Problem(f"the model has classes of {column.name!r} that are not declared")
    if model.target != learn.target or (learn.outputs is not None and model.outputs != learn.outputs):
        return Problem("the model predicts something else than is stated")
    return _other_trees(statement, model)


def _other_trees(statement: Statement, model: LearnedModel) -> Problem | None:
    """Return that the trees of a model are others than is stated, or were not drawn as everybody can, or None."""
    leaves, grown = _leaves(statement), statement.basis.find(GrowTrees)
    stated = 0 if leaves is None else leaves.trees
    if len(model.trees) != stated or any(tree.cuts.depth != leaves.depth for tree in model.trees if leaves is not None):
        return Problem("the model has other trees than is stated")
    if leaves is None:
        return None
    candidates = SplitCandidates.of([len(column.labels) for column in model.columns], model.ordered)
    if grown is not None and grown.candidates != len(candidates):
        return Problem("the cuts of the trees were chosen among others than is stated")
    if grown is None and any(
        tree.cuts.to_json() != cuts.to_json()
        for tree, cuts in zip(model.trees, candidates.drawn(leaves.trees, leaves.depth), strict=True)
    ):
        return Problem("the cuts of the trees are not those that are drawn without rows")
    return None


def _same_labels(declared: BinColumn, labels: list[str | None]) -> bool:
    if isinstance(declared.labels, tuple):
        return list(declared.labels) == labels
    return (declared.number, declared.sha256) == (len(labels), digest_of(labels))
