"""Masked rows: a table like the original with some values changed; how its file is checked and drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from markupsafe import Markup
from numpy.typing import NDArray

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import Anonymity, Pseudonymity
from incrowd.core.schema import Role
from incrowd.core.statement import Statement
from incrowd.core.steps.rows import Arrange, KeepRows, Recode
from incrowd.core.unit import Unit
from incrowd.core.words import counted
from incrowd.drawing.charts import class_sizes
from incrowd.drawing.markup import EMPTY, Description
from incrowd.drawing.picture import Picture
from incrowd.engines.readers.sources import open_source
from incrowd.methods.perturbation.shared.frame import RowFrame
from incrowd.methods.perturbation.shared.steps import Masked, Masking, Preservation, maskings
from incrowd.methods.shared.outcome import Tabular
from incrowd.verifier.check import Check, CheckOutcome, Problem, maybe, one, some
from incrowd.verifier.files import columns_of

_NOT_IN_FILE = "it follows from the steps; only the holder of the original rows can see it, with `incrowd assess`"


@dataclass(frozen=True, eq=False)
class Stage:
    """The rows as a step left them; without a step, as they were read.  For the data holder alone."""

    step: Masking | None
    frame: RowFrame


@dataclass(frozen=True, eq=False)
class MaskedRows(Tabular):
    """Masked rows in the order of their values, with the quasi-identifiers `quasi`.

    `stages` are the rows after each mask, where they were released here; nothing of them is published.

    >>> rows = MaskedRows(pa.table({"age": [30.5, 30.5, 41.0]}), ("age",))
    >>> rows.sizes.tolist()
    [2, 1]
    """

    form: ClassVar[str] = "masked rows"

    quasi: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The sizes of the equivalence classes over the quasi-identifiers."""
        sizes: NDArray[np.int64] = np.bincount(RowFrame(self.table).groups(self.quasi)).astype(np.int64)
        return sizes

    @property
    def tuples(self) -> int:
        return len(np.unique(RowFrame(self.table).groups(self.table.column_names)))

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the output shows of itself."""
        if not len(self):
            return {"rows": 0, "classes": 0}
        return {"rows": len(self), "classes": len(self.sizes), "smallest class": int(self.sizes.min())}

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        bound = "bounded by the claims above, whatever the attacker knows"
        return {
            "singling out": bound if private else "not bounded: values are masked, and how well is measured",
            "linkability": bound if private else "not bounded: identifiers are not released; masked values may be near",
            "inference": bound if private else "not bounded: this release has no epsilon",
        }


def rows_of(table: pa.Table, quasi: tuple[str, ...], stages: tuple[Stage, ...] = ()) -> MaskedRows:
    """Return masked rows; without quasi-identifiers, all released columns count as such."""
    return MaskedRows(table, quasi or tuple(table.column_names), stages)


class MaskCheck(Check):
    """How the certificate and file of a masked table are judged: `MaskCheck(RoundValues)`.

    A mask whose step or claims say more than others overrides `step_contradiction` or `claim_outcomes`.
    """

    def __init__(self, *masks: type[Masking], claims: tuple[type[Claim], ...] = (), repeated: bool = False) -> None:
        masking = some(*masks) if repeated else one(*masks)
        super().__init__(
            order=(maybe(KeepRows), one(Recode), masking, one(Arrange)),
            claims=(*claims, Preservation, Masked, Pseudonymity),
            statistics_formats=True,
        )

    def contradiction(self, statement: Statement) -> Problem | None:
        released = set(statement.released)
        if statement.basis.need(Recode).names != statement.released:
            return Problem("the columns that are read are not the released ones")
        for step in maskings(statement.steps):
            if not released.issuperset(step.changes):
                return Problem("a column is changed that is not released")
            if not released.issuperset(step.reads) or step.household in released:
                return Problem("a step reads columns that are not released, or households that are")
            problem = self.step_contradiction(step, statement)
            if problem is not None:
                return problem
        return None

    def step_contradiction(self, step: Masking, statement: Statement) -> Problem | None:
        """Return where one step contradicts the rest of the statement, or None."""
        return None

    def undecidable(self, claim: Claim) -> Problem | None:
        return Problem(_NOT_IN_FILE, undecided=True) if isinstance(claim, Preservation) else None

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        (file,) = files
        same = columns_of(file) == statement.released
        problem = None if same else Problem("the file's columns are not those that the certificate says are released")
        yield CheckOutcome("columns in the file", problem, "they are the released ones, and no others")
        if same:
            yield from self._outcomes(statement, self.reopen(statement, files))

    def recount(self, statement: Statement, output: Any) -> Problem | None:
        if not isinstance(output, MaskedRows):
            return Problem("it is not a table of masked rows")
        problems = (outcome.problem for outcome in self._outcomes(statement, output))
        return next((problem for problem in problems if problem is not None), None)

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> MaskedRows:
        """Read the published file, as anyone can; every column is text."""
        names = list(statement.released)
        text = pa.schema([(name, pa.string()) for name in names])
        batches = [batch.cast(text) for batch in open_source(str(files[0])).batches(names)]
        return rows_of(pa.Table.from_batches(batches, schema=text), statement.of_role(Role.QUASI))

    def _outcomes(self, statement: Statement, rows: MaskedRows) -> Iterator[CheckOutcome]:
        for claim in statement.claims if len(rows) else ():
            yield from self.claim_outcomes(claim, rows)

    def claim_outcomes(self, claim: Claim, rows: MaskedRows) -> Iterator[CheckOutcome]:
        """Compare a claim with the published rows, of which there is at least one."""
        if isinstance(claim, Anonymity):
            least = int(MaskedRows(rows.table, claim.columns).sizes.min())
            text = f"the rarest combination occurs {least} times, k is {claim.k}"
            yield CheckOutcome(f"{claim.kind} in the file", Problem(text) if least < claim.k else None, text)


class MaskPicture(Picture):
    """What a report says of a masked table: the number of changed columns, and the sizes of equivalence classes."""

    evidence: Mapping[str, str] | None = {
        "rows": "Rows published",
        "classes": "Different combinations",
        "smallest class": "Rows of the rarest one",
    }

    def description(self, statement: Statement) -> Description:
        rows = int(statement.evidence["rows"])
        if rows == 0:
            return EMPTY
        names = {name for step in maskings(statement.steps) for name in step.changes}
        changed = f"Values of {counted(len(names), 'column')} of {len(statement.released)} were changed."
        size = f" The published table has {counted(rows, 'row')}."
        return Description("Masked values", f"{changed} How well that hides people is measured, not guaranteed.{size}")

    def draw(self, statement: Statement, output: Any) -> Markup | None:
        return class_sizes(output.sizes, over="in all quasi-identifiers") if len(output) else None
