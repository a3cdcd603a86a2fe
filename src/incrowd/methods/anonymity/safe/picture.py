"""Safe microdata in a report: its crowds, the sizes of its classes, and for the data holder each column before."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.steps.rows import Recode
from incrowd.core.steps.samples import SecretSample
from incrowd.drawing.charts import Share, class_sizes, share_bars
from incrowd.drawing.markup import joined, table, tag
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.classes import EVIDENCE, description

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.schema import Schema
    from incrowd.core.statement import Statement
    from incrowd.methods.outcomes.microdata import Microdata

__all__ = ["EVIDENCE", "comparison", "description", "picture"]

_MOST_CLASSES = 24
_MISSING = "(missing)"
_REST = "(all others)"


def picture(statement: Statement, output: Microdata) -> Markup | None:  # noqa: ARG001 - the shape of every picture
    """Return how many rows look like how many others, in all columns."""
    return class_sizes(output.counts.counts)


def comparison(statement: Statement, output: Microdata, schema: Schema) -> BeforeAndAfter:
    """Return how the released rows are compared with the original ones, recoded to the same levels."""
    sample, recode = statement.basis.find(SecretSample), statement.basis.need(Recode)
    levels = {column.column: column.level for column in recode.columns}
    return BeforeAndAfter(output.counts, Cells.of(schema, levels), Fraction(1) if sample is None else sample.rate)


@dataclass(frozen=True)
class BeforeAndAfter:
    """Released rows, the cells in which original ones are counted beside them, and the rate of the secret sample."""

    released: Counts
    cells: Cells
    rate: Fraction

    def section(self, original: Counts) -> Markup:
        """Return what became of the rows: totals, sizes of classes, and every column before and after."""
        if self.released.names != original.names:
            raise InvalidParameter("the original must be counted over the released columns, in their order.")
        columns = [tag("div", share_bars(name, shares_of(self.released, original, name))) for name in original.names]
        inside = tag("strong", "Nothing here may leave.")
        return joined(
            [
                tag("p", "From the original rows, recoded like the released ones. ", inside),
                self._totals(original),
                tag("div", class_sizes(original.counts, "original rows") or "", class_="sizes"),
                tag("div", *columns, class_="pair"),
            ]
        )

    def _totals(self, original: Counts) -> Markup:
        released, rate = self.released, float(self.rate)
        kept = released.total / max(1, original.total)
        once = [f"{int(np.count_nonzero(counts.counts == 1)):,}" for counts in (original, released)]
        rows = [
            ["Rows", f"{original.total:,}", f"{released.total:,}"],
            ["Different combinations of values", f"{len(original):,}", f"{len(released):,}"],
            ["Combinations that occur once", *once],
            ["Share of the rows that was released", "", f"{100 * kept:.2f} %"],
            ["Share that a sample draws on average", "", f"{100 * rate:.2f} %"],
            ["Share of the sample that was too rare, about", "", f"{100 * max(0.0, 1.0 - kept / rate):.1f} %"],
        ]
        return table("Rows before and after", ["", "Original, recoded", "Released"], rows)


def shares_of(released: Counts, original: Counts, name: str) -> tuple[Share, ...]:
    """Return the classes of a column in order; of many, the largest ones, and the others together."""
    before, after = _marginal(original, name), _marginal(released, name)
    if any(isinstance(label, float) for label in before):  # published files are read as text
        after = {label if label is None else float(str(label)): part for label, part in after.items()}
    one, other = ({_spelled(label): part for label, part in side.items()} for side in (before, after))
    shares = [Share(label, one.get(label, 0.0), other.get(label, 0.0)) for label in one | other]
    if len(shares) <= _MOST_CLASSES:
        return tuple(shares)
    largest = sorted(shares, key=lambda share: max(share.before, share.after), reverse=True)[: _MOST_CLASSES - 1]
    kept = set(map(id, largest))
    rest = [share for share in shares if id(share) not in kept]
    others = Share(_REST, sum(share.before for share in rest), sum(share.after for share in rest))
    return (*(share for share in shares if id(share) in kept), others)


def _marginal(counts: Counts, name: str) -> dict[object, float]:
    one = counts.marginal([name])
    labels, total = one.classes[0].labels().to_pylist(), max(1, one.total)
    return {labels[code]: int(n) / total for code, n in zip(one.codes()[0], one.counts, strict=True)}


def _spelled(label: object) -> str:
    return _MISSING if label is None else str(label)
