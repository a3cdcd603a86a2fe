"""Does a certificate contradict itself, its file, or the ledger?  All of them must tell one story."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.core.certificate import Certificate
from incrowd.core.loss import Crowd, Grouped, Sampled, Syntactic
from incrowd.workflows.claims import Problem, contradiction
from incrowd.workflows.result import WEIGHT

if TYPE_CHECKING:
    from incrowd.accounting.bookkeeping.standing import Standing
    from incrowd.accounting.ledger import Ledger

_PERSON = "keep rows of each person"
_STEPS = ["sample", "recode", "suppress", "order"]
_OUTPUTS = ("data.parquet", "data.csv", "data.tsv")
_BESIDE = ("certificate.json", "report.html")


def check_steps(certificate: Certificate) -> Problem | None:
    """Return where the steps contradict the guarantee or the schema, or None."""
    unit, schema = certificate.guarantee.unit, certificate.schema
    try:
        names = [str(step["step"]) for step in certificate.chain]
        if names != ([_PERSON] if unit.column is not None else []) + _STEPS:
            return Problem("these steps are not known here", undecided=True)
        steps = {str(step["step"]): step for step in certificate.chain}
        recoded = list(steps["recode"]["columns"])
        drafted = [each["column"] for each in recoded if each["provenance"] == "drafted from rows"]
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


def check_outputs(certificate: Certificate) -> Problem | None:
    """Return that a certificate names more than the one table that it speaks of, or something else."""
    names = [output.get("name") for output in certificate.outputs]
    if len(names) > 1:
        return Problem("the certificate names several files, and its claims speak of one table")
    if names and names[0] not in _OUTPUTS:
        return Problem(f"a release is one of {', '.join(_OUTPUTS)}, and the certificate names another file")
    return None


def check_folder(certificate: Certificate, folder: Path, named: Collection[str] = ()) -> Problem | None:
    """Return that a release's folder holds what neither its certificate nor the caller named, or None."""
    known = {*_BESIDE, *named, *(output.get("name") for output in certificate.outputs)}
    strange = sorted(each.name for each in folder.iterdir() if each.name not in known)
    if not strange:
        return None
    return Problem(f"the certificate does not speak of {', '.join(map(repr, strange))}: do not pass that on with it")


def check_columns(certificate: Certificate, file: Path) -> Problem | None:
    """Return that a file has other columns than the released ones, or weights that are not 1/rate, or None."""
    steps = {str(step.get("step")): step for step in certificate.chain}
    weighted = steps.get("order", {}).get("weights") is True
    if _columns(file) != [*certificate.schema.get("released", ()), *([WEIGHT] if weighted else [])]:
        return Problem("the file's columns are not those that the certificate says are released")
    if weighted:
        weight = float(1 / Fraction(str(steps["sample"]["rate"])))
        if any(each != weight for each in _weights(file)):
            return Problem("some weight is not 1/rate: a weight must tell nothing about anyone")
    return None


def check_accounting(certificate: Certificate) -> Problem | None:
    """Return why the amounts cannot be what this release cost, or None."""
    try:
        spent = {name: Decimal(certificate.accounting["spent"][name]) for name in ("epsilon", "delta")}
        total = {name: Decimal(certificate.accounting["total"][name]) for name in ("epsilon", "delta")}
        releases = int(certificate.accounting["releases"])
        private = [claim for claim in certificate.claims if claim.kind == "approximate differential privacy"]
        claimed = Decimal(str(private[0].parameters["epsilon"])) if private else Decimal("Infinity")
    except (KeyError, TypeError, ValueError, InvalidOperation):
        return Problem("the amounts cannot be read")
    if spent["epsilon"] != claimed or (private and spent["delta"] < certificate.guarantee.delta):
        return Problem("what was charged is not what the claim costs")
    if any(total[name] < spent[name] for name in spent):
        return Problem("the total is smaller than what this release spent")
    if releases < 1 or (releases == 1 and total != spent):
        return Problem("the total is not that of the releases counted")
    return None


def standing_at(ledger: Ledger, dataset: str, sequence: int) -> Standing:
    """Return how a dataset stood right after an entry, as the entries up to that one tell."""
    from incrowd.accounting.bookkeeping.datasets import known_dataset, standing_of
    from incrowd.store.link import Key, text_of

    told: dict[str, Any] = {}
    for link in ledger.chain.links():
        told.update(link.sets)
        if link.sequence == sequence:
            break

    def value(key: Key) -> Any:
        return told.get(text_of(key))

    return standing_of(value, known_dataset(value, dataset))


def _suppresses(certificate: Certificate) -> bool:
    """Whether the guarantee is one of those that a sample, a recoding and a suppression can have."""
    loss = certificate.guarantee.loss
    loss = loss.inner if isinstance(loss, Grouped) else loss
    return isinstance(loss.inner if isinstance(loss, Sampled) else loss, Crowd) or isinstance(loss, Syntactic)


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
