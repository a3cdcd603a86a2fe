"""Preservation: the statistics that a masked release claims to keep, held against the rows it was made from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from incrowd.core.table import Engine, Rows, Table
from incrowd.core.unit import ExtraRowsRule
from incrowd.methods.perturbation.frame import RowFrame
from incrowd.methods.perturbation.preserved import preserved
from incrowd.methods.perturbation.steps import Preservation
from incrowd.workflows.assess.released import ReadRelease
from incrowd.workflows.policy.policy import Policy


@dataclass(frozen=True)
class PreservedStatistic:
    """A claim that something is kept, and whether it is; None where the two tables cannot show it."""

    columns: tuple[str, ...]
    sentence: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        """What was found, in words."""
        return {True: "kept", False: "NOT KEPT", None: "not shown by the two tables"}[self.holds]


def preserved_statistics(
    released: ReadRelease, original: Rows, policy: Policy, engine: Engine
) -> tuple[PreservedStatistic, ...]:
    """Compare what is claimed to be kept; where rows were left out at random before masks read them, nothing can be."""
    claims = [claim for claim in released.claims if isinstance(claim, Preservation)]
    if not claims:
        return ()
    unit = policy.schema.unit
    if not released.whole or (unit.column is not None and unit.more is not ExtraRowsRule.REFUSE):
        return tuple(PreservedStatistic(claim.columns, claim.sentence, None) for claim in claims)
    levels = {name: level[0] for name, level in released.levels.items()}
    before = RowFrame.read(Table(policy.schema, original, engine), levels, ())
    after = _unfolded(released)
    return tuple(
        PreservedStatistic(claim.columns, claim.sentence, preserved(claim, before, after, policy.schema.weight))
        for claim in claims
    )


def _unfolded(released: ReadRelease) -> RowFrame:
    """Return the released rows one by one, as text."""
    (shown,) = released.tables
    rows = np.ones(shown.labels.num_rows, np.int64) if shown.rows is None else shown.rows
    return RowFrame(shown.labels.take(pa.array(np.repeat(np.arange(len(rows)), rows))))
