"""Summary: half a page for the person who decides, before everything else in a report."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from incrowd.core.unit import Adjacency, Kind
from incrowd.core.words import chance, counted, short_down
from incrowd.errors import IncrowdError

if TYPE_CHECKING:
    import pyarrow as pa

    from incrowd.core.certificate import Certificate
    from incrowd.core.unit import Unit
    from incrowd.workflows.report.label import Label

_ROWS, _COLUMNS, _LONGEST = 5, 8, 40
_COUNT = "count"


@dataclass(frozen=True)
class ReportSummary:
    """What is published, some of it, the guarantee, the risk that remains, and what to decide: a sentence each."""

    size: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    guarantee: str
    risk: str
    decisions: tuple[str, ...]


def summary_of(certificate: Certificate, label: Label, assumptions: int, output: Any = None) -> ReportSummary:
    """Return the summary of a report, from the certificate and the published table alone."""
    batch = _first_rows(output)
    names = () if batch is None else tuple(batch.schema.names[:_COLUMNS])
    rows = () if batch is None else tuple(_texts(batch, names))
    return ReportSummary(
        _size(certificate, label, batch, output),
        names,
        rows,
        _guarantee(certificate, label),
        _risk(certificate, label),
        tuple(_decisions(certificate, label, assumptions)),
    )


def _first_rows(output: Any) -> pa.RecordBatch | None:
    """Return the start of the first published table; None where no table is published."""
    try:
        part = next(iter(output.parts), None) if output is not None else None
        batch = None if part is None else next(iter(part.batches()), None)
    except (AttributeError, NotImplementedError, IncrowdError):
        return None
    return None if batch is None or not batch.num_rows or not batch.num_columns else batch


def _texts(batch: pa.RecordBatch, names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return a few rows of a published table as text, spread over it, since equal rows are adjacent."""
    many = min(_ROWS, batch.num_rows)
    places = [batch.num_rows * (2 * place + 1) // (2 * many) for place in range(many)]
    chosen = batch.select(list(names)).take(places).to_pylist()
    return [tuple(_text(row[name]) for name in names) for row in chosen]


def _text(value: object) -> str:
    words = "missing" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _total(certificate: Certificate, output: Any) -> int | None:
    """Return the sum of published counts, or the first cell of a table with totals; None where neither is published."""
    try:
        batches = list(next(iter(output.parts)).batches()) if output is not None else []
        columns = [batch.column(_COUNT).to_pylist() for batch in batches if _COUNT in batch.schema.names]
    except (AttributeError, NotImplementedError, StopIteration, IncrowdError):
        return None
    counts = [count for column in columns for count in column]
    if "cells" in certificate.evidence:
        counts = counts[:1]
    numbers = [count for count in counts if isinstance(count, int)]
    return sum(numbers) if numbers and len(numbers) == len(counts) else None


def _size(certificate: Certificate, label: Label, batch: pa.RecordBatch | None, output: Any) -> str:
    """Say how much is published; where no row is, the noisy or published total, or the declared number of people."""
    rows = certificate.evidence.get("rows")
    if isinstance(rows, int) and not isinstance(rows, bool):
        return (
            "No row is published: all were suppressed."
            if rows == 0
            else f"{counted(rows, 'row')} {_are(rows)} published."
        )
    if isinstance(rows, list) and rows:
        return (
            f"{counted(len(rows), 'table')} with {counted(sum(rows), 'row')} are published; the first is shown below."
        )
    people, beside = certificate.dataset.population, ""
    if people is not None:
        beside = f" The data could be about {people:,} people, as declared."
    cells = certificate.evidence.get("bins", certificate.evidence.get("cells"))
    if isinstance(cells, int) and not isinstance(cells, bool):
        total = _total(certificate, output)
        noisy = ", noise included" if label.odds.bounded else ""
        adding = "" if total is None else f" Their total is {total:,}{noisy}."
        return f"{counted(cells, 'count')} {_are(cells)} published; no row is.{adding or beside}"
    if batch is not None:
        return f"A table is published; its first rows are below.{beside}"
    return f"No row is published.{beside}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _guarantee(certificate: Certificate, label: Label) -> str:
    if not label.odds.bounded:
        kinds = ", ".join(dict.fromkeys(claim.kind for claim in certificate.claims)) or "none"
        return f"It has no ε: only the form of the table is guaranteed ({kinds})."
    one, plus = certificate.guarantee.unit.kind, ", plus δ" if label.odds.delta else ""
    factor = f"by a factor of at most {label.odds.times}{plus}"
    return f"{label.odds.numbers}: one {one} changes the probability of any result {factor}."


def _risk(certificate: Certificate, label: Label) -> str:
    if not label.odds.bounded:
        return "Nothing bounds what someone with background knowledge can learn about one person."
    unit, people, delta = certificate.guarantee.unit, certificate.dataset.population, label.odds.delta
    right = f"Someone who guesses {_guessed(unit)}, at even odds, is right at most {label.odds.guess} of the time"
    if not delta:
        return f"{right}."
    beside = f"the failure probability δ is {label.odds.failure} for each {unit.kind}"
    if people is not None and not unit.kind.of_edges:
        together = chance(min(Decimal(1), delta * people))
        beside += f", and {together} for the declared {people:,} people together"
    return f"{right}; {beside}."


def _guessed(unit: Unit) -> str:
    """Return what an attacker guesses, by what the adjacency protects."""
    if unit.kind.of_edges:
        return "whether an edge is there" if unit.kind is Kind.RELATION else "whether two people are connected"
    if unit.kind is Kind.REPORT:
        return "which of two answers one person gave"
    if unit.kind is Kind.HISTORY:
        return "which of two series of answers, equal in the same rounds, one person gave"
    if unit.adjacency is Adjacency.ADD_REMOVE:
        return f"whether one {unit.kind} is in the data"
    return f"which of two records one {unit.kind} has"


def _decisions(certificate: Certificate, label: Label, assumptions: int) -> list[str]:
    decisions = []
    if not label.odds.bounded:
        decisions.append("Accept that there is no ε, for the reason that the data holder wrote.")
    if assumptions:
        decisions.append(
            f"Confirm {counted(assumptions, 'assumption')}, listed at the end: software cannot check them."
        )
    left = certificate.accounting.left
    if label.odds.bounded and left is not None:
        rest = short_down(Decimal(left.epsilon))
        decisions.append(f"Publish or not: the cost is charged either way, and ε {rest} remains for later releases.")
    else:
        decisions.append("Publish or not: published releases cannot be recalled.")
    return decisions
