"""ONNX: a learned model as a graph that any runtime evaluates, from its public file alone.

Every column is an input of its own, a tensor with one line for each row: numbers as doubles, of which NaN is missing,
everything else as the texts that were declared, of which the empty one is missing.  The graph adds the same doubles in
the same order as `LearnedModel.scores`, so that scores agree in every bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, PackageMissing
from incrowd.methods.learning.shared.inputs import ColumnEncoder
from incrowd.methods.learning.shared.models import LearnedModel, ScoreLink, Use
from incrowd.workflows.export.formats import Exported, PublisherInfo

_OPSETS = {"": 17, "ai.onnx.ml": 3}
_IR = 8
_WHOLE = float(2**62)  # floats below it convert to whole numbers of 64 bits without overflow
_NOTES = (
    "each column is an input: numbers as doubles (NaN is missing), others as declared texts (empty is missing)",
    "predictions about rows that are private are as private as these rows",
)


def exported(source: Path, _publisher: PublisherInfo) -> Exported:
    """Return a model of a release, or a file model.json, as ONNX."""
    model = LearnedModel.load(source)
    return Exported(onnx_of(model).SerializeToString(deterministic=True), _NOTES)


def onnx_of(model: LearnedModel) -> Any:
    """Return the graph of a model, checked: `prediction`, and `probabilities` or `scores` beside it."""
    if model.trees:
        raise InvalidParameter(
            "trees are not written as ONNX: model.json has every cut and leaf, and predict reads it."
        )
    graph = _Graph()
    scores = graph.constant(model.offset[None])
    for column, table in zip(model.columns, model.tables, strict=True):
        padded = np.concatenate([table, np.zeros((1, table.shape[1]))])
        scores = graph.node("Add", scores, graph.node("Gather", graph.constant(padded), _codes(graph, column)))
    outputs = _outputs(graph, model, scores)
    return graph.model(outputs, hashlib.sha256(model.to_text().encode()).hexdigest())


def _codes(graph: _Graph, column: ColumnEncoder) -> str:
    """Return the code of each row, −1 where it adds nothing."""
    return _placed(graph, column) if column.places is not None else _numbered(graph, column)


def _placed(graph: _Graph, column: ColumnEncoder) -> str:
    value = graph.input(column.name, text=True)
    places = {"": column.missing} | dict(column.places or {})
    return graph.node(
        "LabelEncoder",
        value,
        domain="ai.onnx.ml",
        keys_strings=list(places),
        values_int64s=list(places.values()),
        default_int64=column.outside,
    )


def _numbered(graph: _Graph, column: ColumnEncoder) -> str:
    column_input, (low, high) = graph.input(column.name, text=False), column.ends or (-np.inf, np.inf)
    if column.type is Type.INTEGER:
        small = graph.node("Less", graph.node("Abs", column_input), graph.constant(_WHOLE))
        readable = graph.node("And", small, graph.node("Equal", graph.node("Floor", column_input), column_input))
    else:
        readable = graph.node("LessOrEqual", graph.node("Abs", column_input), graph.constant(np.finfo(np.float64).max))
    value = column_input
    if column.moved:
        value = graph.node("Min", graph.node("Max", column_input, graph.constant(low)), graph.constant(high))
    above = graph.node("GreaterOrEqual", value, graph.constant(low))
    inside = graph.node("And", above, graph.node("LessOrEqual", value, graph.constant(high)))
    starts = np.array(column.starts or (np.inf,))[None]
    passed = graph.node("GreaterOrEqual", graph.node("Unsqueeze", value, graph.constant([1])), graph.constant(starts))
    code = graph.node("ReduceSum", graph.node("Cast", passed, to=7), graph.constant([1]), keepdims=0)
    code = graph.node("Where", graph.node("And", inside, readable), code, graph.constant(column.outside))
    return graph.node("Where", graph.node("Equal", column_input, column_input), code, graph.constant(column.missing))


def _outputs(graph: _Graph, model: LearnedModel, scores: str) -> list[Any]:
    """Return what the graph says: as `LearnedModel.predicted`."""
    if model.use is Use.NUMBERS:
        low, high = model.bounds or (-np.inf, np.inf)
        alone = graph.node("Squeeze", scores, graph.constant([1]))
        bounded = graph.node("Min", graph.node("Max", alone, graph.constant(low)), graph.constant(high))
        return [graph.output("prediction", bounded)]
    if model.use is Use.COMPONENTS:
        return [graph.output("scores", scores, len(model.outputs))]
    if model.use is Use.CLUSTERS:
        return [graph.output("prediction", _labels(graph, model.outputs, scores), text=True)]
    if model.link is ScoreLink.SOFTMAX:
        chances = graph.node("Softmax", scores, axis=1)
    else:
        bounded = graph.node("Min", graph.node("Max", scores, graph.constant(1e-6)), graph.constant(1.0))
        chances = graph.node("Div", bounded, graph.node("ReduceSum", bounded, graph.constant([1]), keepdims=1))
    label = graph.output("prediction", _labels(graph, model.outputs, chances), text=True)
    return [label, graph.output("probabilities", chances, len(model.outputs))]


def _labels(graph: _Graph, names: Sequence[str], values: str) -> str:
    best = graph.node("ArgMax", values, axis=1, keepdims=0)
    return graph.node("Gather", graph.constant(list(names)), best)


class _Graph:
    """A graph while it is built: nodes, constants and inputs, each with a name of its own."""

    def __init__(self) -> None:
        try:
            import onnx
        except ModuleNotFoundError:
            raise PackageMissing("ONNX files need the package onnx: pip install 'incrowd[onnx]'.") from None
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []

    def constant(self, value: Any) -> str:
        """Add a constant: doubles, whole numbers or texts."""
        array = np.array(value)
        array = array.astype(object) if array.dtype.kind == "U" else array
        name = f"constant {len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def input(self, name: str, *, text: bool) -> str:
        """Add a column of rows."""
        if name in ("prediction", "probabilities", "scores"):
            raise InvalidParameter(f"the model reads a column {name!r}, which is what an ONNX file calls its outputs.")
        self._inputs.append(self._tensor(name, ["rows"], text))
        return name

    def output(self, name: str, value: str, width: int | None = None, *, text: bool = False) -> Any:
        """Call a value an output."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        return self._tensor(name, ["rows"] if width is None else ["rows", width], text)

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node, and return the name of its result."""
        name = f"node {len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def model(self, outputs: list[Any], digest: str) -> Any:
        """Return the whole, as a file of ONNX holds it, with the digest of the model that it was made from."""
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, "incrowd learned model", self._inputs, outputs, self._constants)
        opsets = [helper.make_opsetid(domain, version) for domain, version in _OPSETS.items()]
        made = helper.make_model(graph, opset_imports=opsets, ir_version=_IR, producer_name="incrowd")
        helper.set_model_props(made, {"sha256 of model.json": digest})
        self._onnx.checker.check_model(made)
        return made

    def _tensor(self, name: str, shape: list[Any], text: bool) -> Any:
        proto = self._onnx.TensorProto
        return self._onnx.helper.make_tensor_value_info(name, proto.STRING if text else proto.DOUBLE, shape)
