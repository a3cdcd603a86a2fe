"""Steps: whether the steps of microdata, and the columns of its file, say what the guarantee says."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from incrowd.core.certificate import Certificate
from incrowd.core.loss import Crowd, Grouped, RobustlySampled, Sampled, Syntactic
from incrowd.methods.outcomes.microdata import WEIGHT
from incrowd.workflows.forms.checks import drafted_of
from incrowd.workflows.forms.form import Problem
from incrowd.workflows.forms.microdata.claims import contradiction

_PERSON = "keep rows of each person"
_STEPS = ["sample", "recode", "suppress", "order"]


def check_steps(certificate: Certificate) -> Problem | None:
    """Return where the steps contradict the guarantee or the schema, or None."""
    unit, schema = certificate.guarantee.unit, certificate.schema
    try:
        names = [str(step["step"]) for step in certificate.chain]
        if names != ([_PERSON] if unit.column is not None else []) + _STEPS:
            return Problem("these steps are not known here", undecided=True)
        steps = {str(step["step"]): step for step in certificate.chain}
        recoded = list(steps["recode"]["columns"])
        drafted = drafted_of(recoded)
        if unit.column is not None and (steps[_PERSON]["column"], steps[_PERSON]["rows"]) != (
            unit.column,
            unit.max_rows,
        ):
            return Problem("the rows kept of each person are not those of the guarantee's unit")
        if [each["column"] for each in recoded] != list(schema["released"]):
            return Problem("the recoded columns are not the released ones")
        unlike = contradiction(certificate, steps["suppress"]["k"])
    except (KeyError, TypeError):
        return Problem("the steps cannot be read")
    if ", ".join(drafted) != _drafted(certificate):
        return Problem("what was drafted from rows is not what the guarantee says")
    return unlike or (None if _suppresses(certificate) else Problem("these steps do not give such a guarantee"))


def check_columns(certificate: Certificate, file: Path) -> Problem | None:
    """Return that a file has other columns than the released ones, or weights that are not 1/rate, or None."""
    steps = {str(step.get("step")): step for step in certificate.chain}
    weighted = certificate.chain[-1].get("weights") is True
    if _columns(file) != [*certificate.schema.get("released", ()), *([WEIGHT] if weighted else [])]:
        return Problem("the file's columns are not those that the certificate says are released")
    if weighted:
        weight = float(1 / Fraction(str(steps["sample"]["rate"])))
        if any(each != weight for each in _weights(file)):
            return Problem("some weight is not 1/rate: a weight must tell nothing about anyone")
    return None


def _suppresses(certificate: Certificate) -> bool:
    """Whether the guarantee is one of those that a sample, a recoding and a suppression can have."""
    loss = certificate.guarantee.loss
    loss = loss.inner if isinstance(loss, Grouped) else loss
    inner = loss.inner if isinstance(loss, Sampled | RobustlySampled) else loss
    return isinstance(inner, Crowd | Syntactic)


def _columns(file: Path) -> list[str]:
    if file.suffix == ".parquet":
        from pyarrow import parquet as pq

        return list(pq.read_schema(file).names)
    with file.open(encoding="utf-8", newline="") as text:
        return next(csv.reader(text, delimiter=_delimiter(file)), [])


def _weights(file: Path) -> Iterator[float | None]:
    if file.suffix == ".parquet":
        from pyarrow import parquet as pq

        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(columns=[WEIGHT]):
                yield from batch.column(0).unique().to_pylist()
        return
    with file.open(encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text, delimiter=_delimiter(file)):
            yield float(row[WEIGHT])


def _delimiter(file: Path) -> str:
    return "\t" if file.suffix == ".tsv" else ","


def _drafted(certificate: Certificate) -> str:
    loss = certificate.guarantee.loss
    return dict(loss.parameters).get("drafted from rows", "") if isinstance(loss, Syntactic) else ""
