"""Labels: what a column shows, as steps list it: each label, or their number and hash where there are many."""

from __future__ import annotations

import hashlib
import json

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.recoding import Classes
from incrowd.core.steps.bins import BinColumn

_LABELS = 1000  # a longer list of labels is stated by its hash


def text_of(labels: pa.Array) -> pa.Array:
    """Return labels as the text by which certificates and files are compared.

    >>> text_of(pa.array([1, None])).to_pylist()
    ['1', None]
    """
    if pa.types.is_dictionary(labels.type):
        return text_of(labels.dictionary).take(labels.indices)
    return pc.cast(labels, pa.string())


def digest_of(labels: list[str | None]) -> str:
    """Return the SHA-256 of a list of labels as JSON text.

    >>> digest_of(["F", "M", None])[:8]
    'a0f1a88e'
    """
    return hashlib.sha256(json.dumps(labels, ensure_ascii=True).encode()).hexdigest()


def bin_column(name: str, classes: Classes | None) -> BinColumn:
    """Return the labels of a column as steps list them; at an open level, that they are those that occur."""
    if classes is None:
        return BinColumn(name)
    labels = text_of(classes.values()).to_pylist()
    if len(labels) <= _LABELS:
        return BinColumn(name, tuple(labels))
    return BinColumn(name, number=len(labels), sha256=digest_of(labels))
