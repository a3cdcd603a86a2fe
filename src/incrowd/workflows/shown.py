"""Shown: what a published file shows beside its counts: the evidence, the order of its rows, and nothing hidden."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from incrowd.core.certificate import Certificate
from incrowd.methods.outcomes.anonymized import Anonymized
from incrowd.methods.outcomes.itemsets import ItemTable
from incrowd.methods.outcomes.microdata import Microdata
from incrowd.workflows.files import paths_of
from incrowd.workflows.forms.form import Look, Problem

if TYPE_CHECKING:
    from incrowd.methods.outcomes.outcome import Outcome

_TOLD_ELSEWHERE = {"levels", "thresholds"}  # the labels show the levels; thresholds are customs, not seen in a file


def shown(certificate: Certificate, published: Outcome, file: Path) -> Iterator[Look]:
    """Hold what a published file shows against the certificate; `published` is what the file was reopened as."""
    yield Look("evidence", check_evidence(certificate, published), "the file shows the same")
    tables = list(zip(published.parts, paths_of(certificate, file), strict=True))
    scattered = (problem for part, path in tables if (problem := _order(part, path)) is not None)
    yield Look("order of the rows", next(scattered, None), "it tells nothing: what looks alike stands together")
    noted = (problem for _, path in tables if (problem := _metadata(path)) is not None)
    yield Look("metadata of the file", next(noted, None), "there is none")


def check_evidence(certificate: Certificate, published: Outcome) -> Problem | None:
    """Return that the evidence is not what the published table shows, or None; chosen levels stand in its labels."""
    try:
        private = Decimal(str(certificate.accounting["spent"]["epsilon"])).is_finite()
    except (KeyError, TypeError, InvalidOperation):
        return Problem("the amounts cannot be read")
    seen: dict[str, Any] = json.loads(json.dumps(published.evidence(certificate.guarantee.unit, private=private)))
    told = certificate.evidence
    wrong = sorted(name for name in {*seen, *told} - _TOLD_ELSEWHERE if seen.get(name) != told.get(name))
    return Problem(f"the evidence {wrong[0]!r} is not what the file shows") if wrong else None


def _order(published: Outcome, file: Path) -> Problem | None:
    """Return that rows that look alike are scattered: where they stand could tell who is who."""
    published = published.rows if isinstance(published, ItemTable) else published
    if not isinstance(published, Microdata | Anonymized):
        return None
    tuples = len(published.counts) if isinstance(published, Microdata) else len(published.keys)
    return Problem("rows that look alike do not stand together") if _runs(published, file) > tuples else None


def _runs(published: Outcome, file: Path) -> int:
    """Return how many stretches of rows that look alike there are."""
    from incrowd.engines.readers.sources import open_source

    names, runs, last = published.schema.names, 0, None
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
    import numpy as np

    changed = np.zeros(max(0, len(rows) - 1), np.bool_)
    for column in rows.columns:
        coded = column.combine_chunks().dictionary_encode()
        codes = coded.indices.fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False)
        changed |= codes[1:] != codes[:-1]
    return int(changed.sum())


def _metadata(file: Path) -> Problem | None:
    """Return that a Parquet file carries notes that no table shows; releases are written without any."""
    if file.suffix != ".parquet":
        return None
    from pyarrow import parquet as pq

    if pq.read_metadata(file).metadata:
        return Problem("the file carries notes beside its table, and no release is written with any")
    return None
