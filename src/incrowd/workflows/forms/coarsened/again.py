"""Again: a coarser table computed a second time from its parent's file, row by row, without the policy."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pyarrow as pa

from incrowd.core.certificate import Certificate
from incrowd.methods.histograms.partition import text_of
from incrowd.methods.outcomes.histogram import COUNT
from incrowd.workflows.forms.coarsened.form import is_histogram
from incrowd.workflows.forms.coarsened.parent import parent_of
from incrowd.workflows.forms.form import Problem
from incrowd.workflows.forms.histogram.contents import read

Tuples = Counter[tuple[str | None, ...]]


def check_again(certificate: Certificate, file: Path, parent_file: Path) -> Problem | None:
    """Return that a file is not what the parent's file gives by the labels in the certificate, or None."""
    parent, step = parent_of(certificate), certificate.chain[-1]
    with parent_file.open("rb") as opened:
        if hashlib.file_digest(opened, "sha256").hexdigest() != parent.outputs[0].get("sha256"):
            return Problem("the parent's file is not the one that its certificate names")
    maps = {str(told["column"]): dict(told.get("labels", ())) for told in step["columns"]}
    names, counted = list(maps), is_histogram(certificate)
    before, after = _counted(read(parent_file), names, counted), _counted(read(file), names, counted)
    expected: Tuples = Counter()
    try:
        for labels, times in before.items():
            rise = zip(names, labels, strict=True)
            expected[tuple(maps[name][label] if maps[name] else label for name, label in rise)] += times
    except KeyError:
        return Problem("the certificate does not say what some label of the parent's file becomes")
    if expected.keys() != after.keys() or any(expected[key] != after[key] for key in expected):
        return Problem("it is not what the parent's file gives")
    return None


def _counted(table: pa.Table, names: list[str], counted: bool) -> Tuples:
    columns = [text_of(table[name].combine_chunks()).to_pylist() for name in names]
    times = table[COUNT].to_pylist() if counted else [1] * table.num_rows
    found: Tuples = Counter()
    for labels, count in zip(zip(*columns, strict=True), times, strict=True):
        found[labels] += count
    return found
