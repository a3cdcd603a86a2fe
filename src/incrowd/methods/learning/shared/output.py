"""Output: a learned model as a table of its numbers, with its file; how both are checked, and what a report draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.claims.privacy import ApproximatePrivacy, PurePrivacy
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import BinColumn, RecodeToBins
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.step import Step
from incrowd.core.words import counted
from incrowd.drawing.markup import EMPTY, Description, figure, table, tag
from incrowd.drawing.picture import Picture
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.interval_check import other_intervals
from incrowd.methods.learning.shared.models import TABLE, LearnedModel
from incrowd.methods.learning.shared.sensitivities import other_sensitivity
from incrowd.methods.learning.shared.steps import (
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
from incrowd.methods.learning.shared.tree_steps import CountLeaves, GrowTrees, SampleGradients, SumLeaves
from incrowd.methods.learning.shared.trees import SplitCandidates
from incrowd.methods.shared.columns import digest_of
from incrowd.methods.shared.model_file import MODEL
from incrowd.methods.shared.outcome import Tabular
from incrowd.verifier.check import STATED, Check, CheckOutcome, Place, Problem, maybe, one, undecided
from incrowd.verifier.files import columns_of

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.unit import Unit
    from incrowd.methods.learning.shared.fits import Floats
    from incrowd.methods.shared.outcome import ReleasedTuples


ESTIMATED = "rows estimated"
"""The evidence that a noisy count paid for and no file shows."""


@dataclass(frozen=True, eq=False)
class ModelTable(Tabular):
    """The numbers of a model, a line each; read again from its files, how many rows there were is not told."""

    form: ClassVar[str] = "learned model"

    model: LearnedModel | None = None
    rows: int | None = None

    @classmethod
    def of(cls, model: LearnedModel, rows: float) -> ModelTable:
        """Return a model with about how many rows it was learned from, by a noisy count."""
        return cls(model.lines(), model, max(0, round(rows)))

    @property
    def documents(self) -> dict[str, str]:
        """What is written beside the table: the model."""
        return {} if self.model is None else {MODEL: self.model.to_text()}

    def released_tuples(self) -> tuple[ReleasedTuples, ...]:
        return ()

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return how many numbers the model has, and about how many rows there were, which the file does not show."""
        return {"coefficients": len(self)} | ({} if self.rows is None else {ESTIMATED: self.rows})

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        return {
            "singling out": "no row of the data is published, only a model; the claims above bound what it depends on",
            "linkability": "no row of the data is published: there is nothing to link",
            "inference": "bounded by the claims above, for every attribute, whatever the attacker knows",
        }


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
ORDER = (
    maybe(KeepRows),
    one(RecodeToBins),
    one(LearnFrom),
    maybe(CountAllRows, GrowTrees),
    one(*_SUMS),
    maybe(FollowGradients),
    one(PublishModel),
)


class LearningCheck(Check):
    """The files of a learned model: its columns and classes, and that its table is the model's."""

    def __init__(self, order: tuple[Place, ...] = ORDER, nested: tuple[type[Step], ...] = ()) -> None:
        super().__init__(
            order=order, claims=(PurePrivacy, ApproximatePrivacy), nested=nested, stated=frozenset({ESTIMATED})
        )

    def contradiction(self, statement: Statement) -> Problem | None:
        recode, learn = statement.basis.need(RecodeToBins), statement.basis.need(LearnFrom)
        names = tuple(column.column for column in learn.columns)
        target = () if learn.target is None else (learn.target,)
        if recode.names != (*names, *target):
            return Problem("the columns that are recoded are not those that the model is learned from")
        if recode.drafted:
            return Problem("labels were drafted from rows, and no guarantee holds for those")
        if type(statement.evidence.get(ESTIMATED)) is not int or statement.evidence[ESTIMATED] < 0:
            return Problem("the number of rows is not a whole number")
        counted = statement.basis.find(CountByTarget) or statement.basis.find(SumByColumn)
        followed = statement.basis.find(FollowGradients)
        if (counted is not None and counted.tables != len(names)) or (
            followed is not None and followed.columns != len(names)
        ):
            return Problem("the sums are over another number of columns")
        grid = statement.basis.find(CountGrid)
        if grid is not None and grid.columns != len(names):
            return Problem("the grid is over another number of columns")
        return _unlike_trees(statement) or other_sensitivity(statement)

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
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
        problem = self.model_problem(statement, model)
        yield CheckOutcome("model", problem, "its columns, classes and outputs are those of the certificate")
        if model.inference is not None:
            yield undecided(STATED, "no file shows the noisy sums that confidence intervals come from")
        if same and problem is None:
            same = _alike(_table(file), model.lines())
            problem = None if same else Problem("the table has other numbers than the model")
            yield CheckOutcome("numbers in the file", problem, "they are those of the model")

    def recount(self, statement: Statement, output: Any) -> Problem | None:
        if not isinstance(output, ModelTable) or output.model is None:
            return Problem("it is not a learned model")
        again = LearnedModel.from_json(output.model.to_json())
        if not _alike(output.table, again.lines()):
            return Problem("the table has other numbers than the model")
        return self.model_problem(statement, again)

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> ModelTable:
        return ModelTable(_table(files[0]), LearnedModel.load(files[1]))

    def model_problem(self, statement: Statement, model: LearnedModel) -> Problem | None:
        """Return where a model differs from what was declared, or None."""
        return differs(statement, model)


def _leaves(statement: Statement) -> CountLeaves | SumLeaves | None:
    return statement.basis.find(CountLeaves) or statement.basis.find(SumLeaves)


def _unlike_trees(statement: Statement) -> Problem | None:
    """Return a problem if the trees that grow are not those whose leaves are summed, else None."""
    grown, leaves = statement.basis.find(GrowTrees), _leaves(statement)
    chosen = leaves is not None and not (isinstance(leaves, CountLeaves) and leaves.dealt)
    if chosen != (grown is not None):
        return Problem("trees grow and their leaves are summed together, or rows are dealt to trees drawn without them")
    if grown is not None and leaves is not None and (grown.trees, grown.depth) != (leaves.trees, leaves.depth):
        return Problem("the trees that grow are not those whose leaves are summed")
    return None


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
    first, second = (np.array(table["coefficient"].to_pylist(), np.float64) for table in (one_, other))
    return texts and bool(np.array_equal(first, second))


def differs(statement: Statement, model: LearnedModel) -> Problem | None:
    """Return where a model differs from what was declared, or from all that could be learned, or None."""
    learn = statement.basis.need(LearnFrom)
    if [column.name for column in model.columns] != [item.column for item in learn.columns]:
        return Problem("the columns of the model are not those that it was learned from")
    for column, declared in zip(model.columns, learn.columns, strict=True):
        if not _same_labels(declared, list(column.labels)):
            return Problem(f"the model has classes of {column.name!r} that are not declared")
    if model.target != learn.target or (learn.outputs is not None and model.outputs != learn.outputs):
        return Problem("the model predicts something else than is stated")
    return _other_trees(statement, model) or other_intervals(statement, model)


def _other_trees(statement: Statement, model: LearnedModel) -> Problem | None:
    """Return a problem if a model has other trees than stated, or they cannot be drawn again, else None."""
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
        for tree, cuts in zip(model.trees, candidates.random(leaves.trees, leaves.depth), strict=True)
    ):
        return Problem("the cuts of the trees are not those that are drawn without rows")
    return None


def _same_labels(declared: BinColumn, labels: list[str | None]) -> bool:
    if isinstance(declared.labels, tuple):
        return list(declared.labels) == labels
    return (declared.number, declared.sha256) == (len(labels), digest_of(labels))


_COLUMNS, _CLASSES, _LINE = 4, 24, 20
_MIDDLE, _WIDE, _LONG = 65.0, 28.0, 34


def _trees(model: LearnedModel) -> Markup:
    """Return how much each column parts rows, with the leaves of the first tree in words."""
    weights = np.zeros(len(model.columns))
    for tree in model.trees:
        for node, column in enumerate(tree.cuts.columns.tolist()):
            weights[column] += 1.0 / 2 ** ((node + 1).bit_length() - 1)
    weights /= sum(tree.cuts.depth for tree in model.trees)
    order = np.argsort(-weights, kind="stable")[:_CLASSES]
    order = order[weights[order] > 0]
    names = [model.columns[place].name for place in order.tolist()]
    title = "How much of the way of a row through the trees each column decides"
    chart = _bars(title, names, weights[order].tolist(), float(weights.max()))
    first = model.trees[0]
    rows = [
        [path, f"{number:.4g}"]
        for path, number in zip(first.cuts.paths(model.columns), first.leaves[:, -1].tolist(), strict=True)
    ]
    words = f"What the leaves of the first tree add to the score of “{model.outputs[-1]}”"
    caption = f"{title}, if both sides of every cut were equally likely: {counted(len(model.trees), 'tree')}."
    return figure(chart, caption, table(words, ["rows", "adds"], rows))


def _shape(model: LearnedModel, place: int, shape: Floats, largest: float) -> Markup:
    """Return a bar for each class of a column."""
    labels = ["missing" if label is None else label for label in model.columns[place].labels][:_CLASSES]
    return _bars(f"{model.columns[place].name}: what each class adds", labels, shape[:, -1].tolist(), largest)


def _bars(title: str, labels: Sequence[str], numbers: Sequence[float], largest: float) -> Markup:
    """Return a bar for each number, to the right if it adds and to the left if it takes away."""
    marks = []
    for line, (label, number) in enumerate(zip(labels, numbers, strict=False)):
        width, top = _WIDE * abs(number) / largest, line * _LINE
        name = label if len(label) <= _LONG else f"{label[: _LONG - 1]}…"
        start = _MIDDLE if number >= 0 else _MIDDLE - width
        look = {"y": top + 3, "width": f"{width:.2f}%", "height": _LINE - 6, "class_": "bar noisy"}
        marks += [
            tag("text", name, x=f"{_MIDDLE - _WIDE - 1}%", y=top + 14, class_="end"),
            tag("rect", x=f"{start:.2f}%", **look),
        ]
    return tag("svg", *marks, height=_LINE * len(labels) + 4, class_="chart", role="img", aria_label=title)


class LearningPicture(Picture):
    """A learned model in a report: what it is, and what each class of the columns that matter most adds to it."""

    evidence: Mapping[str, str] | None = {
        "coefficients": "Numbers of the model",
        ESTIMATED: "Rows of the data, as estimated with noise",
    }

    def description(self, statement: Statement) -> Description:
        numbers = int(statement.evidence["coefficients"])
        if numbers == 0:
            return EMPTY
        return Description("A model", self.text(statement, numbers), "nothing: it holds no row of anyone")

    def text(self, statement: Statement, numbers: int) -> str:
        """Return what the model predicts, how it was made, and how many numbers it has."""
        learn, made = statement.basis.need(LearnFrom), statement.basis.need(PublishModel)
        what = "of the columns themselves" if learn.target is None else f"that predicts {learn.target}"
        return (
            f"A model {what} from {counted(len(learn.columns), 'column')}: {made.model.words}, "
            f"{counted(numbers, 'number')}. The claims bound how it depends on the rows, and it can be used as often "
            "as anyone likes."
        )

    def draw(self, statement: Statement, output: Any) -> Markup | None:
        model: LearnedModel | None = output.model
        if model is None:
            return None
        if model.trees:
            return _trees(model)
        shapes = [table_ - table_.mean(axis=0) for table_ in model.tables]
        spread = [float(np.ptp(shape[:, -1])) for shape in shapes]
        order = sorted(range(len(shapes)), key=lambda place: -spread[place])[:_COLUMNS]
        largest = max((float(np.abs(shapes[place][:, -1]).max()) for place in order), default=0.0)
        if largest == 0.0:
            return None
        title = f"What classes of a column add to the score of “{model.outputs[-1]}”"
        parts = [tag("h4", model.columns[place].name) + _shape(model, place, shapes[place], largest) for place in order]
        names = [model.columns[place].name for place in order]
        rows = [
            [name, "missing" if label is None else label, f"{number:.4g}"]
            for name, place in zip(names, order, strict=True)
            for label, number in zip(model.columns[place].labels, shapes[place][:, -1].tolist(), strict=True)
        ]
        caption = f"{title}, less the mean of its classes: the {counted(len(order), 'column')} that matter most."
        return figure(tag("div", *parts), caption, table(title, ["column", "class", "adds"], rows))
