"""A learned model in a report: what it is, and what each class of the columns that matter most adds to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.core.words import counted
from incrowd.drawing.markup import EMPTY, Description, figure, table, tag
from incrowd.methods.learning.steps import LearnFrom, PublishModel

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.statement import Statement
    from incrowd.methods.learning.fits import Floats
    from incrowd.methods.learning.models import LearnedModel

EVIDENCE: Mapping[str, str] = {
    "coefficients": "Numbers of the model",
    "rows estimated": "Rows of the data, as estimated with noise",
}
_COLUMNS, _CLASSES, _LINE = 4, 24, 20
_MIDDLE, _WIDE, _LONG = 65.0, 28.0, 34


def description(statement: Statement) -> Description:
    """Return in words what was published, from what is stated alone."""
    numbers = int(statement.evidence["coefficients"])
    if numbers == 0:
        return EMPTY
    learn, made = statement.basis.need(LearnFrom), statement.basis.need(PublishModel)
    what = "of the columns themselves" if learn.target is None else f"that predicts {learn.target}"
    text = (
        f"A model {what} from {counted(len(learn.columns), 'column')}: {made.model.words}, "
        f"{counted(numbers, 'number')}. It is made from noisy sums over all rows, and can be used as often as anyone "
        "likes."
    )
    return Description("A model", text, "nothing: it holds no row of anyone")


def picture(statement: Statement, output: Any) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return the shape of the columns that matter most: what each class adds to the last output."""
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
    drawn = _bars(title, names, weights[order].tolist(), float(weights.max()))
    first = model.trees[0]
    rows = [
        [path, f"{number:.4g}"]
        for path, number in zip(first.cuts.paths(model.columns), first.leaves[:, -1].tolist(), strict=True)
    ]
    words = f"What the leaves of the first tree add to the score of “{model.outputs[-1]}”"
    caption = f"{title}, if both sides of every cut were equally likely: {counted(len(model.trees), 'tree')}."
    return figure(drawn, caption, table(words, ["rows", "adds"], rows))


def _shape(model: LearnedModel, place: int, shape: Floats, largest: float) -> Markup:
    """Return a bar for each class of a column."""
    labels = ["missing" if label is None else label for label in model.columns[place].labels][:_CLASSES]
    return _bars(f"{model.columns[place].name}: what each class adds", labels, shape[:, -1].tolist(), largest)


def _bars(title: str, labels: Sequence[str], numbers: Sequence[float], largest: float) -> Markup:
    """Return a bar for each number, to the right if it adds and to the left if it takes away."""
    drawn = []
    for line, (label, number) in enumerate(zip(labels, numbers, strict=False)):
        width, top = _WIDE * abs(number) / largest, line * _LINE
        name = label if len(label) <= _LONG else f"{label[: _LONG - 1]}…"
        start = _MIDDLE if number >= 0 else _MIDDLE - width
        look = {"y": top + 3, "width": f"{width:.2f}%", "height": _LINE - 6, "class_": "bar noisy"}
        drawn += [
            tag("text", name, x=f"{_MIDDLE - _WIDE - 1}%", y=top + 14, class_="end"),
            tag("rect", x=f"{start:.2f}%", **look),
        ]
    return tag("svg", *drawn, height=_LINE * len(labels) + 4, class_="chart", role="img", aria_label=title)
