"""Contents: whether a file, or an outcome in memory, holds the bins and counts that its steps can make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.certificate import Certificate
from incrowd.core.keys import Layout
from incrowd.methods.histograms.partition import digest_of, rounded, text_of
from incrowd.methods.outcomes.histogram import COUNT, EXACT
from incrowd.workflows.forms.checks import steps_of, whole
from incrowd.workflows.forms.form import Problem

Numbers = NDArray[np.int64]


def read(file: Path) -> pa.Table:
    """Read a published histogram as anyone can: labels as text, counts as whole numbers."""
    if file.suffix == ".parquet":
        from pyarrow import parquet as pq

        with pq.ParquetFile(file) as opened:
            return opened.read()
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter="\t" if file.suffix == ".tsv" else ",", newlines_in_values=True)
    with csv.open_csv(file, parse_options=parse) as reader:
        names = reader.schema.names
    known = {COUNT: pa.int64(), EXACT: pa.bool_()}
    types = {name: known.get(name, pa.dictionary(pa.int32(), pa.string())) for name in names}
    told = csv.ConvertOptions(
        column_types=types, strings_can_be_null=True, null_values=[""], quoted_strings_can_be_null=False
    )
    return csv.read_csv(file, parse_options=parse, convert_options=told)


def check_columns(certificate: Certificate, names: Sequence[str]) -> Problem | None:
    """Return that there are other columns than the labels, the counts, and where promised the marks."""
    flagged = steps_of(certificate)["publish counts"]["exact"] is True
    if list(names) != [*certificate.schema.get("released", ()), COUNT, *([EXACT] if flagged else [])]:
        return Problem("the columns are not those that the certificate says are released")
    return None


def check_bins(certificate: Certificate, table: pa.Table) -> Problem | None:
    """Return that a bin is missing, strange, there twice or out of its place; or that the evidence counts others."""
    step = steps_of(certificate)["count"]
    columns = [codes_of(table[str(told["column"])], told) for told in step["columns"]]
    if any(size < 0 for _, size, _ in columns):
        return Problem("some label is not one of those that the certificate lists")
    layout = Layout(tuple(max(1, size) for _, size, _ in columns))
    keys = layout.pack([codes for codes, _, _ in columns])
    if step["listed"] == "all":
        if len(keys) != whole(step["bins"]) or not np.array_equal(keys, np.arange(layout.size)):
            return Problem("the bins are not all those that the certificate lists, each once and in order")
    elif all(declared for _, _, declared in columns):
        if not bool(np.all(keys[1:] > keys[:-1])):
            return Problem("some bin is there twice, or out of its order")
    elif len(np.unique(keys)) != len(keys):
        return Problem("some bin is there twice")
    if certificate.evidence.get("bins", len(keys)) != len(keys):
        return Problem("there are not as many bins as the certificate's evidence says")
    return None


def check_counts(certificate: Certificate, table: pa.Table) -> Problem | None:
    """Return that some count is one that these steps cannot give, or that its mark is wrong."""
    steps, counts = steps_of(certificate), table[COUNT].to_numpy()
    base = whole(steps["publish counts"]["round"])
    exact = table[EXACT].to_numpy() if EXACT in table.column_names else None
    if base < 1:
        return Problem("counts are rounded to multiples of a whole number of at least 1")
    if np.any(counts % base):
        return Problem(f"some count is not a multiple of {base}")
    if not _possible(steps, counts, exact, base):
        return Problem("some count is one that these steps cannot give")
    above = counts[counts > 0]
    told = certificate.evidence.get("smallest count above zero")
    if told is not None and (not len(above) or int(above.min()) != told):
        return Problem("the smallest count is not the one that the certificate's evidence says")
    return None


def _possible(steps: Mapping[str, Any], counts: Numbers, exact: NDArray[np.bool_] | None, base: int) -> bool:
    """Whether all counts are such as the step that protects them can give."""

    def least(k: int) -> int:
        return int(rounded(np.array([k]), base)[0])

    if "suppress counts" in steps:
        large = counts >= least(whole(steps["suppress counts"]["k"]))
        return bool(np.all(large if steps["count"]["listed"] != "all" else large | (counts == 0)))
    if "noise when small" in steps:
        small = steps["noise when small"]
        k, clamped = whole(small["k"]), small["clamp"] is True
        if clamped and np.any(counts < 0):
            return False
        if exact is None:
            return True
        noisy = counts[~exact]
        return bool(np.all(counts[exact] >= least(k)) and (not clamped or np.all(noisy <= least(k - 1))))
    threshold = steps.get("threshold")
    if threshold is not None:
        return bool(np.all(counts >= least(whole(threshold["least"]))))
    return steps["noise"]["clamp"] is not True or not np.any(counts < 0)


def codes_of(column: pa.ChunkedArray, told: Mapping[str, Any]) -> tuple[NDArray[np.int32], int, bool]:
    """Return the place of each row's label, how many labels there are (−1: strange ones), and whether all are told."""
    coded = _encoded(column)
    values = text_of(coded.dictionary)
    places, gaps = coded.indices.fill_null(len(values)).to_numpy(), coded.null_count > 0
    have = [*values.to_pylist(), None]
    labels = told.get("labels")
    if isinstance(labels, list):
        codes = pc.index_in(pa.array(have, pa.string()), value_set=pa.array(labels, pa.string()))
        found = codes.fill_null(-1).to_numpy().astype(np.int32)[places]
        return found, -1 if np.any(found < 0) else len(labels), True
    first = _first_places(places)
    order = np.full(len(have), -1, np.int32)
    order[first] = np.arange(len(first), dtype=np.int32)
    size = len(first)
    if "sha256" in told and size == told["number"]:
        size = size if digest_of([have[place] for place in first]) == told["sha256"] else -1
    return order[places], max(size, int(gaps)) if size >= 0 else size, False


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    whole_column = coded.unify_dictionaries().combine_chunks()
    if isinstance(whole_column, pa.ChunkedArray):
        return whole_column.chunk(0) if whole_column.num_chunks else pa.array([], coded.type)
    return whole_column


def _first_places(places: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the different places in the order in which they first occur."""
    values, at = np.unique(places, return_index=True)
    return values[np.argsort(at)]
