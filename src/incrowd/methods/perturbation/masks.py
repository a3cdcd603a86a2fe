"""Masks: methods that change values of rows in memory, one by one or in a chain, by one road."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from incrowd.accounting.accountant import charge_of
from incrowd.core.loss import Syntactic
from incrowd.core.plan import Plan
from incrowd.core.schema import Role
from incrowd.core.steps.rows import Arrange, keep_rows, recode
from incrowd.core.steps.step import Step, fold
from incrowd.errors import InvalidParameter
from incrowd.methods.cells import released_cells
from incrowd.methods.perturbation.frame import RowFrame
from incrowd.methods.perturbation.output import MaskedRows, Stage, rows_of
from incrowd.methods.perturbation.scope import applied, examined

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table
    from incrowd.methods.perturbation.steps import Masking


@dataclass(frozen=True, kw_only=True)
class Mask:
    """What every masking method has: the levels at which columns are read, and its plan."""

    name: ClassVar[str]
    whole: ClassVar[bool] = False
    """Whether it minds households by itself; else shared columns are changed once for each."""
    numeric: ClassVar[bool] = False
    """Whether it computes with the numbers of the columns that it changes."""
    groups_itself: ClassVar[bool] = False
    """Whether it works within groups by itself; else it is given one group after the other."""

    levels: Mapping[str, int] = field(default_factory=dict)

    def step(self, schema: Schema) -> Masking:
        """Return what happens, from the schema alone; refuse what the schema shows to be impossible."""
        raise NotImplementedError

    def masked(self, frame: RowFrame, schema: Schema, coins: Coins) -> RowFrame:
        """Return the frame with its values changed."""
        raise NotImplementedError

    def examine(self, frame: RowFrame, schema: Schema) -> None:
        """Refuse rows that cannot be masked so; before anything is charged, and for the data holder's eyes."""

    def broken(self, before: RowFrame, after: RowFrame, schema: Schema) -> str | None:  # noqa: ARG002 - most keep what they keep by construction
        """Return which statistic was to be kept and was not, as found by comparing, or None."""
        return None

    def groups(self, schema: Schema) -> tuple[str, ...]:  # noqa: ARG002 - most work on all rows together
        """Return the columns in which the rows of a group agree, within which it works."""
        return ()

    def numbers(self, step: Masking) -> tuple[str, ...]:
        """Return the columns whose numbers it computes with."""
        return step.changes if self.numeric else ()

    def scope(self, schema: Schema, columns: Sequence[str], reads: Sequence[str] = ()) -> dict[str, Any]:
        """Return within which groups, and for which households as one, columns are changed; refuse what tears them."""
        within = self.groups(schema)
        for name in within:
            if schema[name] in schema.unreleased or name in columns:
                raise InvalidParameter(
                    f"groups cannot be made within {name!r}: it is changed itself, or an identifier. Name others."
                )
        shared = [name for name in columns if schema[name].shared]
        others = [name for name in (*columns, *reads, *within) if not schema[name].shared]
        if shared and others:
            raise InvalidParameter(
                f"{shared[0]!r} is shared by the rows of a household and {others[0]!r} is not: one step of "
                f"{self.name!r} for both would tear households apart. Use a step for each, of columns of one kind."
            )
        return {"within": within, "household": schema.household if shared else None}

    def settings(self) -> dict[str, Any]:
        """Return what people are told of the parameters."""
        return {}

    def plan(self, schema: Schema) -> Plan:
        """Guarantee a masked table, from the schema alone."""
        return plan_of(self.name, (self,), schema)


@dataclass(frozen=True, kw_only=True)
class GroupedMask(Mask):
    """A mask that can work within each group of rows by itself: rows alike in named columns, or of one stratum."""

    within: tuple[str, ...] | Literal["strata"] = ()

    def groups(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns in which the rows of a group agree: those that are named, or the strata."""
        if self.within != "strata":
            return tuple(self.within)
        if not schema.of_role(Role.STRATA):
            raise InvalidParameter("there are no strata to work within: give a column the role strata, or name some.")
        return schema.of_role(Role.STRATA)


Mill = tuple[Mask, "Masking"]
"""A mask, and what it says that it does under a schema."""


def plan_of(name: str, masks: Sequence[Mask], schema: Schema) -> Plan:
    """Return the plan of masks one after the other, each reading what the one before left."""
    levels = _levels(masks)
    mills = tuple((mask, mask.step(schema)) for mask in masks)
    masking = tuple(step for _, step in mills)
    _check_levels(mills, levels)
    for place, step in enumerate(masking):
        step.check_beside(masking[:place], masking[place + 1 :])
    steps: tuple[Step, ...] = (
        *keep_rows(schema.unit),
        recode(released_cells(schema, levels)),
        *masking,
        Arrange(),
    )
    guarantee = fold(steps, schema.unit)
    numbers: dict[str, Any] = {}
    if not isinstance(guarantee.loss, Syntactic):
        numbers["epsilon"] = charge_of(guarantee.loss, 0, schema.unit.adjacency).epsilon
    settings = {key: value for mask in masks for key, value in mask.settings().items()}
    run, examine = partial(_release, mills, levels), partial(_examine, mills, levels)
    return Plan(name, steps, guarantee, numbers, run, None, settings, None if numbers else examine)


def _examine(mills: tuple[Mill, ...], levels: Mapping[str, int], table: Table) -> None:
    """Refuse rows that some mask cannot work on; nothing is drawn.

    A step that leaves out rows draws no coins: it is rehearsed, so that those after it are held against what is left.
    """
    if not any(type(mask).examine is not Mask.examine or step.household is not None for mask, step in mills):
        return
    frame = RowFrame.read(table, levels, _beside(mills))
    for mask, step in mills:
        examined(mask, step, frame, table.schema)
        if step.leaves_out:
            frame = applied(mask, step, frame, table.schema)


def _release(mills: tuple[Mill, ...], levels: Mapping[str, int], table: Table, coins: Coins) -> MaskedRows:
    """Read the rows once, mask them in order, and release them in the order of what they show.

    After each mask the rows stand in the order of what they show now: what follows breaks ties by it, and that of the
    rows as they were read would tell of values that a mask has just hidden.
    """
    schema = table.schema
    frame = RowFrame.read(table, levels, _beside(mills), coins)
    stages = [Stage(None, frame)]
    for mask, step in mills:
        examined(mask, step, frame, schema)  # of people with several rows, other ones take part than before
        frame = applied(mask, step, frame, schema, coins)
        frame = frame.ordered() if len(mills) > 1 else frame
        stages.append(Stage(step, frame))
    return rows_of(frame.released(schema), schema.quasi, tuple(stages))


def _check_levels(mills: Sequence[Mill], levels: Mapping[str, int]) -> None:
    """Refuse to compute with a column that is read at a level at which it has labels and no numbers."""
    for mask, step in mills:
        labeled = [name for name in mask.numbers(step) if levels.get(name)]
        if labeled:
            raise InvalidParameter(
                f"{labeled[0]!r} is read at level {levels[labeled[0]]}, where it has labels and no numbers, and "
                f"{mask.name!r} computes with numbers: leave its level out, or leave {labeled[0]!r} out of that step."
            )


def _beside(mills: Sequence[Mill]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(step.household for _, step in mills if step.household is not None))


def _levels(masks: Sequence[Mask]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for mask in masks:
        for name, level in mask.levels.items():
            if levels.setdefault(name, level) != level:
                raise InvalidParameter(
                    f"{name!r} is read at two levels: name its level once, in the first step that needs it."
                )
    return levels
