"""Models: what is learned, as a file of plain JSON that anyone can read, and what it says of rows.

A model is made from noisy statistics alone, so whoever has it may use it as often as they like.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.drawing.card import LISTED, card, grid, plain
from incrowd.drawing.card import facts as fact_table
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.fits import Floats
from incrowd.methods.learning.shared.inference import LinearInference
from incrowd.methods.learning.shared.inputs import ColumnEncoder
from incrowd.methods.learning.shared.trees import DecisionTree
from incrowd.methods.shared.model_file import ModelFile

TABLE = pa.schema(
    [("column", pa.string()), ("value", pa.string()), ("output", pa.string()), ("coefficient", pa.float64())]
)
"""The table of a model: a line for each of its numbers."""
_VERSION = 1
_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
_SHOWN = 12  # names of columns and outputs in a notebook
_DIGITS = 9  # of a stored weight: a model file is read on every machine alike
_KEYS = frozenset(
    (
        *("incrowd learned model", "use", "outputs", "target", "link", "bounds", "columns", "vectors", "offset"),
        *("tables", "trees", "inference"),
    )
)


class Use(StrEnum):
    """What a model is for."""

    CLASSES = "classes"
    NUMBERS = "numbers"
    CLUSTERS = "clusters"
    COMPONENTS = "components"


class ScoreLink(StrEnum):
    """How scores become chances of classes, or a number."""

    SOFTMAX = "softmax"
    SHARES = "shares"
    NUMBER = "number"


@dataclass(frozen=True, eq=False, repr=False)
class LearnedModel(ModelFile):
    """What every model has: its use, the columns that it reads, its outputs, and a table of numbers for each column.

    What a row gets is `offset` plus the lines of its classes in the tables, a number for each output.  A model of
    `trees` has no tables: a row gets the lines of its leaves.  `vectors` are centers or components, a line for each
    output: a number for each column of numbers, one for each class of others.
    """

    use: Use
    columns: tuple[ColumnEncoder, ...]
    outputs: tuple[str, ...]
    offset: Floats
    tables: tuple[Floats, ...]
    target: str | None = None
    link: ScoreLink | None = None
    bounds: tuple[float, float] | None = None
    vectors: Floats | None = None
    trees: tuple[DecisionTree, ...] = ()
    inference: LinearInference | None = None

    @property
    def ordered(self) -> tuple[bool, ...]:
        """Of which columns the codes have an order."""
        return tuple(column.ordered for column in self.columns)

    def __repr__(self) -> str:
        return plain("learned model", self.facts)

    def _repr_html_(self) -> str:
        lines = [] if self.inference is None else [list(row.values()) for row in self.coefficients().to_pylist()]
        parts = [grid(["column", "value", "estimate", "low", "high"], lines[:LISTED])] if lines else []
        return card("learned model", fact_table(self.facts), *parts)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """What it is, for people."""
        names = [column.name for column in self.columns]
        numbers = self.offset.size + sum(table.size for table in self.tables)
        numbers += sum(tree.leaves.size for tree in self.trees)
        outputs = ", ".join(self.outputs[:_SHOWN]) + (", …" if len(self.outputs) > _SHOWN else "")
        return [
            ("gives", f"{self.use}: {outputs}"),
            *([] if self.target is None else [("predicts", self.target)]),
            ("reads", ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")),
            ("numbers", f"{numbers:,}"),
        ]

    def codes(self, table: pa.Table) -> NDArray[np.int64]:
        """Return the codes of rows, one row each."""
        missing = [column.name for column in self.columns if column.name not in table.column_names]
        if missing:
            raise InvalidParameter(f"the model reads a column {missing[0]!r}, and the table has none of that name.")
        return np.stack([column.codes(table[column.name].combine_chunks()) for column in self.columns], axis=1)

    def scores(self, table: pa.Table) -> Floats:
        """Return what each output says of each row."""
        return self.coded_scores(self.codes(table))

    def coded_scores(self, codes: NDArray[np.int64]) -> Floats:
        """Return what each output says of rows that are codes of the columns, −1 where a column adds nothing."""
        total = np.tile(self.offset, (len(codes), 1))
        for place, numbers in enumerate(self.tables):
            total += np.concatenate([numbers, np.zeros((1, numbers.shape[1]))])[codes[:, place]]
        for tree in self.trees:
            total += tree.leaves[tree.cuts.ends(codes, self.ordered)]
        return total

    def chances(self, table: pa.Table) -> Floats:
        """Return the chance of each class for each row."""
        scores = self.scores(table)
        if self.link is ScoreLink.SOFTMAX:
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        else:
            weights = np.clip(scores, 1e-6, 1.0)
        shares: Floats = weights / weights.sum(axis=1, keepdims=True)
        return shares

    def numbers(self, table: pa.Table) -> Floats:
        """Return the number that is expected for each row, within the declared bounds."""
        low, high = self.bounds or (-np.inf, np.inf)
        return np.clip(self.scores(table)[:, 0], low, high)

    def intervals(self, table: pa.Table, level: float = 0.95, *, single: bool = True) -> tuple[Floats, Floats]:
        """Return the ends of an interval for each row: for what it is itself, or for the mean of rows like it.

        They know the noise of the model and the spread of rows, and lie within the declared bounds.
        """
        if self.inference is None:
            raise InvalidParameter(
                "this model has no intervals: learn it by method: regressor with model: linear, from enough rows for "
                "its noise."
            )
        codes, names = self.codes(table), [column.name for column in self.columns]
        design = np.ones((len(codes), len(self.inference.terms)))
        for place, ((name, label), values) in enumerate(zip(self.inference.terms, self.inference.values, strict=True)):
            if name is not None:
                own = codes[:, names.index(name)]
                labels = self.columns[names.index(name)].labels
                design[:, place] = own == labels.index(label) if values is None else np.array(values)[own]
        line, wide = design @ self.inference.estimates, self.inference.around(design, level, single=single)
        low, high = self.bounds or (-np.inf, np.inf)
        return np.clip(line - wide, low, high), np.clip(line + wide, low, high)

    def coefficients(self, level: float = 0.95) -> pa.Table:
        """Return the coefficients of a linear model in declared units, each with its confidence interval."""
        if self.inference is None:
            self.intervals(pa.table({}))  # which says why there are none
        assert self.inference is not None  # noqa: S101 - as above
        low, high = self.inference.intervals(level)
        columns, labels = zip(*self.inference.terms, strict=True)
        numbers = {"estimate": self.inference.estimates, "low": low, "high": high}
        return pa.table({"column": pa.array(columns, pa.string()), "value": pa.array(labels, pa.string()), **numbers})

    def nearest(self, table: pa.Table) -> NDArray[np.int64]:
        """Return the number of the cluster that each row is nearest to, counted from 0."""
        return np.asarray(self.scores(table).argmax(axis=1), np.int64)

    def predicted(self, table: pa.Table) -> pa.Table:
        """Return one line for each row: `prediction`, and `p_CLASS` for every class; or a number for each component."""
        if self.use is Use.CLASSES:
            chances = self.chances(table)
            labels = pa.array(self.outputs, pa.string()).take(pa.array(chances.argmax(axis=1)))
            shares = {f"p_{name}": chances[:, place] for place, name in enumerate(self.outputs)}
            return pa.table({"prediction": labels, **shares})
        if self.use is Use.NUMBERS:
            return pa.table({"prediction": self.numbers(table)})
        if self.use is Use.CLUSTERS:
            return pa.table({"prediction": pa.array(self.outputs).take(pa.array(self.nearest(table)))})
        scores = self.scores(table)
        return pa.table({name: scores[:, place] for place, name in enumerate(self.outputs)})

    def lines(self) -> pa.Table:
        """Return the model as a table: a line for each number; those without a column hold for every row."""
        lines = list(self._lines())
        return pa.table([[line[place] for line in lines] for place in range(len(TABLE))], schema=TABLE)

    def _lines(self) -> Iterator[tuple[str | None, str | None, str, float]]:
        for output, number in zip(self.outputs, self.offset.tolist(), strict=True):
            yield None, None, output, number
        for number_, tree in enumerate(self.trees):
            for path, line in zip(tree.cuts.paths(self.columns), tree.leaves.tolist(), strict=True):
                for output, number in zip(self.outputs, line, strict=True):
                    yield f"tree {number_ + 1}", path, output, number
        for column, table in zip(self.columns, self.tables, strict=not self.trees):
            for label, line in zip(column.labels, table.tolist(), strict=True):
                for output, number in zip(self.outputs, line, strict=True):
                    yield column.name, label, output, number

    def to_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = {"incrowd learned model": _VERSION, "use": str(self.use), "outputs": list(self.outputs)}
        stated = {"target": self.target, "link": self.link}
        plain |= {name: str(value) for name, value in stated.items() if value is not None}
        plain |= {} if self.bounds is None else {"bounds": list(self.bounds)}
        plain["columns"] = [column.to_json() for column in self.columns]
        plain |= {} if self.vectors is None else {"vectors": self.vectors.tolist()}
        plain |= {} if self.inference is None else {"inference": self.inference.to_json()}
        plain |= {"trees": [tree.to_json() for tree in self.trees]} if self.trees else {}
        return plain | {"offset": self.offset.tolist(), "tables": [table.tolist() for table in self.tables]}

    @classmethod
    def from_json(cls, plain: object) -> Self:
        if not isinstance(plain, Mapping) or plain.get("incrowd learned model") != _VERSION:
            raise InvalidParameter("this is no learned model that this version of incrowd can read.")
        try:
            return cls(**_read(plain))
        except _UNREADABLE:
            raise InvalidParameter(
                "this is no model that incrowd wrote: its columns, outputs or numbers differ."
            ) from None


def rounded(numbers: Floats) -> Floats:
    """Return numbers with nine digits, as files hold them.

    >>> rounded(np.array([1 / 3])).tolist()
    [0.333333333]
    """
    return np.array([float(f"{number:.{_DIGITS}g}") for number in numbers.ravel()]).reshape(numbers.shape)


def _read(plain: Mapping[str, Any]) -> dict[str, Any]:
    columns = tuple(map(ColumnEncoder.from_json, plain["columns"]))
    outputs = tuple(map(str, plain["outputs"]))
    sizes = tuple(len(column.labels) for column in columns)
    trees = tuple(DecisionTree.from_json(item, sizes, len(outputs)) for item in plain.get("trees", ()))
    tables = tuple(
        _numbers(item, (size, len(outputs))) for size, item in zip(() if trees else sizes, plain["tables"], strict=True)
    )
    if not set(plain) <= _KEYS or not columns or len(set(outputs)) < len(outputs):
        raise ValueError("keys")
    bounds, vectors = plain.get("bounds"), plain.get("vectors")
    return {
        "use": Use(plain["use"]),
        "columns": columns,
        "outputs": outputs,
        "offset": _numbers(plain["offset"], (len(outputs),)),
        "tables": tables,
        "target": plain.get("target"),
        "link": None if "link" not in plain else ScoreLink(plain["link"]),
        "bounds": None if bounds is None else (float(bounds[0]), float(bounds[1])),
        "vectors": None if vectors is None else _numbers(vectors, (len(outputs), len(vectors[0]))),
        "trees": trees,
        "inference": None if "inference" not in plain else LinearInference.from_json(plain["inference"]),
    }


def _numbers(values: Sequence[Any], shape: tuple[int, ...]) -> Floats:
    numbers = np.array(values, np.float64)
    if numbers.shape != shape or not np.isfinite(numbers).all():
        raise ValueError("numbers")
    return numbers
