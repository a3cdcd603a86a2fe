"""What a published file shows beside its counts: the evidence, the order of its rows, and nothing hidden."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from incrowd.core.certificate import Certificate
from incrowd.core.codec import encode
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Schema
from incrowd.engines.readers.sources import open_source
from incrowd.verifier.check import STATED, CheckOutcome, Problem, undecided

_LEVELS = frozenset({"levels"})  # which level a label is from, only its hierarchy tells


def check_output(
    certificate: Certificate, output: Any, files: tuple[Path, ...], stated: frozenset[str]
) -> Iterator[CheckOutcome]:
    """Compare published files with the certificate; `output` is what they were reopened as.

    `stated` are keys of the evidence that were paid for and that no file shows.
    """
    stated |= _LEVELS
    yield CheckOutcome("evidence", _evidence(certificate, output, stated), "the file shows the same")
    names = sorted(stated & set(certificate.evidence))
    if names:
        yield undecided(STATED, f"no file shows {', '.join(names)}")
    files = files[: len(output.parts)]  # documents stand after the tables
    scattered = any(_scattered(part, path) for part, path in zip(output.parts, files, strict=True))
    order = Problem("equal rows are not adjacent") if scattered else None
    yield CheckOutcome("order of the rows", order, "reveals nothing: equal rows are adjacent")
    notes = Problem("the file contains metadata, and releases contain none")
    yield CheckOutcome("metadata of the file", notes if any(map(_annotated, files)) else None, "there is none")


def _evidence(certificate: Certificate, output: Any, elsewhere: frozenset[str]) -> Problem | None:
    """Return a problem if the evidence is not what the published table shows, else None."""
    try:
        private = Decimal(certificate.accounting.spent.epsilon).is_finite()
    except InvalidOperation:
        return Problem("the amounts cannot be read")
    seen, stated = encode(output.evidence(certificate.guarantee.unit, private=private)), certificate.evidence
    compared = {*seen, *stated} - elsewhere
    wrong = sorted(name for name in compared if seen.get(name) != stated.get(name))
    return Problem(f"the evidence {wrong[0]!r} is not what the file shows") if wrong else None


def check_levels(certificate: Certificate, schema: Schema, files: tuple[Path, ...]) -> Problem | None:
    """Return a problem if a file's labels are not of the levels in the evidence, by the policy's hierarchies.

    Open levels, whose labels no hierarchy lists, are not compared.
    """
    for name, stated in certificate.evidence.get("levels", {}).items():
        levels = stated if isinstance(stated, list) else [stated]
        classes = [Recoding(schema[name], level).classes for level in levels]
        if any(item is None for item in classes):
            continue
        labels = {label for item in classes if item is not None for label in _text(item.values()).to_pylist()}
        for batch in open_source(str(files[0])).batches([name]):
            if not set(_text(batch.column(name).unique()).to_pylist()) <= labels | {None}:
                return Problem(f"the labels of {name!r} are not those of the levels in the evidence")
    return None


def _scattered(output: Any, file: Path) -> bool:
    """Whether equal rows are scattered: their order could reveal who is who."""
    tuples = getattr(output, "tuples", None)  # how many different rows there are; outputs without rows have none
    return tuples is not None and _runs(output.schema.names, file) > tuples


def _runs(names: list[str], file: Path) -> int:
    """Return the number of runs of equal rows."""
    runs, last = 0, None
    for batch in open_source(str(file)).batches(names):
        plain = pa.table({name: _text(batch.column(name)) for name in names})
        rows = plain if last is None else pa.concat_tables([last, plain])
        runs += (last is None and len(rows) > 0) + _changes(rows)
        last = rows.slice(max(0, len(rows) - 1))
    return runs


def _text(column: pa.Array) -> pa.Array:
    decoded = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return decoded.cast(pa.string())


def _changes(rows: pa.Table) -> int:
    """Return how many rows differ from the one before."""
    changed = np.zeros(max(0, len(rows) - 1), np.bool_)
    for column in rows.columns:
        coded = column.combine_chunks().dictionary_encode()
        codes = coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False)
        changed |= codes[1:] != codes[:-1]
    return int(changed.sum())


def _annotated(file: Path) -> bool:
    """Whether a Parquet file carries notes that no table shows."""
    if file.suffix != ".parquet":
        return False
    from pyarrow import parquet as pq

    return bool(pq.read_metadata(file).metadata)
