"""Masks: methods that change values of rows in memory, one by one or in a chain, by one road."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.accounting.accountant import charge_of
from incrowd.core.loss import Syntactic
from incrowd.core.plan import Plan
from incrowd.core.schema import Role
from incrowd.core.steps.rows import Arrange, keep_rows, recode
from incrowd.core.steps.step import Step, fold
from incrowd.errors import InvalidParameter, PromiseBroken
from incrowd.methods.cells import released_cells
from incrowd.methods.perturbation.frame import RowFrame
from incrowd.methods.perturbation.output import MaskedRows, rows_of

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table
    from incrowd.methods.perturbation.steps import Masking


@dataclass(frozen=True, kw_only=True)
class Mask:
    """What every masking method has: the levels at which columns are read, and its plan."""

    name: ClassVar[str]

    levels: Mapping[str, int] = field(default_factory=dict)

    def step(self, schema: Schema) -> Masking:
        """Return what happens, from the schema alone; refuse what the schema shows to be impossible."""
        raise NotImplementedError

    def masked(self, frame: RowFrame, schema: Schema, coins: Coins) -> RowFrame:
        """Return the frame with its values changed."""
        raise NotImplementedError

    def examine(self, frame: RowFrame) -> None:
        """Refuse rows that cannot be masked so; before anything is charged, and for the data holder's eyes."""

    def broken(self, before: RowFrame, after: RowFrame) -> str | None:  # noqa: ARG002 - most keep what they keep by construction
        """Return which statistic was to be kept and was not, as found by comparing, or None."""
        return None

    @property
    def beside(self) -> tuple[str, ...]:
        """The columns that are read beside the released ones."""
        return ()

    def settings(self) -> dict[str, Any]:
        """Return what people are told of the parameters."""
        return {}

    def plan(self, schema: Schema) -> Plan:
        """Promise a masked table, from the schema alone."""
        return plan_of(self.name, (self,), schema)


def plan_of(name: str, masks: Sequence[Mask], schema: Schema) -> Plan:
    """Return the plan of masks one after the other, each reading what the one before left."""
    levels = _levels(masks)
    steps: tuple[Step, ...] = (
        *keep_rows(schema.unit),
        recode(released_cells(schema, levels)),
        *(mask.step(schema) for mask in masks),
        Arrange(),
    )
    promise = fold(steps, schema.unit)
    numbers: dict[str, Any] = {}
    if not isinstance(promise.loss, Syntactic):
        numbers["epsilon"] = charge_of(promise.loss, 0, schema.unit.adjacency).epsilon
    settings = {key: value for mask in masks for key, value in mask.settings().items()}
    run, examine = partial(_release, tuple(masks), levels), partial(_examine, tuple(masks), levels)
    return Plan(name, steps, promise, numbers, run, None, settings, None if numbers else examine)


def _examine(masks: tuple[Mask, ...], levels: Mapping[str, int], table: Table) -> None:
    """Refuse rows that some mask cannot work on; nothing is drawn."""
    examined = [mask for mask in masks if type(mask).examine is not Mask.examine]
    if examined:
        frame = RowFrame.read(table, levels, _beside(masks))
        for mask in examined:
            mask.examine(frame)


def _release(masks: tuple[Mask, ...], levels: Mapping[str, int], table: Table, coins: Coins) -> MaskedRows:
    """Read the rows once, mask them in order, and release them in the order of what they show."""
    schema = table.schema
    frame = RowFrame.read(table, levels, _beside(masks), coins)
    for mask in masks:
        mask.examine(frame)  # of people with several rows, other ones take part than were examined before
        after = mask.masked(frame, schema, coins)
        broken = mask.broken(frame, after)
        if broken is not None:
            raise PromiseBroken(f"{mask.name} did not keep {broken}, so nothing was released. Please report this.")
        frame = after
    return rows_of(frame.released(schema), tuple(c.name for c in schema.released if c.role is Role.QUASI))


def _beside(masks: Sequence[Mask]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for mask in masks for name in mask.beside))


def _levels(masks: Sequence[Mask]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for mask in masks:
        for name, level in mask.levels.items():
            if levels.setdefault(name, level) != level:
                raise InvalidParameter(
                    f"{name!r} is read at two levels: name its level once, in the first step that needs it."
                )
    return levels
