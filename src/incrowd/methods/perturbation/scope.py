"""Scope: on which rows a mask works at once: all of them, each group by itself, households as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from incrowd.errors import GuaranteeBroken, Infeasible

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.methods.perturbation.frame import RowFrame
    from incrowd.methods.perturbation.masks import Mask
    from incrowd.methods.perturbation.steps import Masking


class NoCoins:
    """Coins for what draws none: asked for one, it fails."""

    def __getattr__(self, name: str) -> object:
        """Refuse whatever is asked for; what Python itself asks of an object is just not there."""
        error = AttributeError if name.startswith("__") else AssertionError
        raise error(f"a step that draws no coins asked for {name}")


_NONE: Coins = NoCoins()  # type: ignore[assignment]


def examined(mask: Mask, step: Masking, frame: RowFrame, schema: Schema) -> None:
    """Refuse rows on which a mask cannot work, in each group by itself, and households whose rows contradict."""
    rows = frame
    if step.household is not None and not mask.whole:
        shared = [name for name in (*step.changes, *step.reads) if schema[name].shared]
        need_agreement(frame, step.household, shared, mask.name)
        rows = frame.take(frame.households(step.household)[0])
    if not step.within or mask.groups_itself:
        mask.examine(rows, schema)
        return
    for part in rows.parts(step.within):
        try:
            mask.examine(rows.take(part), schema)
        except Infeasible as error:
            raise Infeasible(f"in some group of rows alike in {', '.join(step.within)}: {error}") from None


def need_agreement(frame: RowFrame, household: str, names: Sequence[str], step: str) -> None:
    """Refuse households whose rows differ in a column that they are declared to share."""
    first, number = frame.households(household)
    for name in names:
        values = frame.groups([name])
        if not np.array_equal(values[first][number], values):
            raise Infeasible(
                f"some household has rows that differ in {name!r}, which they are declared to share: the step "
                f"{step!r} would tear it apart. Clean {name!r} first, or remove shared."
            )


def applied(mask: Mask, step: Masking, frame: RowFrame, schema: Schema, coins: Coins = _NONE) -> RowFrame:
    """Return the frame as a mask leaves it; without coins where it draws none."""
    if step.household is None or mask.whole:
        return _in_groups(mask, step, frame, schema, coins)
    first, number = frame.households(step.household)
    after = _in_groups(mask, step, frame.take(first), schema, coins)
    return frame.replaced(**{name: after.values(name).take(pa.array(number)) for name in step.changes})


def _in_groups(mask: Mask, step: Masking, frame: RowFrame, schema: Schema, coins: Coins) -> RowFrame:
    """Mask each group of rows by itself, and put all rows back in their order."""
    if not step.within or mask.groups_itself:
        return _checked(mask, frame, schema, coins)
    parts = frame.parts(step.within)
    after = [_checked(mask, frame.take(part), schema, coins) for part in parts]
    back = pa.array(np.argsort(np.concatenate(parts), kind="stable"))
    return frame.replaced(
        **{name: pa.concat_arrays([each.values(name) for each in after]).take(back) for name in step.changes}
    )


def _checked(mask: Mask, frame: RowFrame, schema: Schema, coins: Coins) -> RowFrame:
    """Mask rows, and hold the result against what was to be kept."""
    after = mask.masked(frame, schema, coins)
    broken = mask.broken(frame, after, schema)
    if broken is not None:
        raise GuaranteeBroken(f"{mask.name} did not keep {broken}, so nothing was released. Please report this.")
    return after
