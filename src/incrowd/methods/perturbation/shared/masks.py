"""Masks: methods that change values of rows in memory, alone or in a chain, from the plan to the masked rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from incrowd.accounting.accountant import charge_of
from incrowd.core.coins import Coins
from incrowd.core.loss import Syntactic
from incrowd.core.plan import Method, Plan
from incrowd.core.schema import Role, Schema
from incrowd.core.steps.rows import Arrange, keep_rows, recode
from incrowd.core.steps.step import Step, fold
from incrowd.core.table import Table
from incrowd.core.words import counted
from incrowd.errors import GuaranteeBroken, Infeasible, InvalidParameter
from incrowd.methods.perturbation.shared.frame import Places, RowFrame, covariance
from incrowd.methods.perturbation.shared.output import MaskedRows, Stage, rows_of
from incrowd.methods.perturbation.shared.steps import Masking
from incrowd.methods.shared.columns import released_cells

_SINGULAR = 1e-10  # of a correlation matrix: below, a column repeats others and nothing can be predicted


class NoCoins:
    """Coins for a step that draws none: any draw fails."""

    def __getattr__(self, name: str) -> object:
        """Refuse any draw; Python's own lookups find nothing."""
        error = AttributeError if name.startswith("__") else AssertionError
        raise error(f"a step without randomness asked for {name}")


NO_COINS: Coins = NoCoins()  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class MaskInput:
    """What a mask works on: rows, their schema, and coins, which fail where no draw is allowed."""

    frame: RowFrame
    schema: Schema
    coins: Coins = NO_COINS

    def take(self, rows: Places) -> MaskInput:
        """Return the input with some of the rows."""
        return replace(self, frame=self.frame.take(rows))


@dataclass(frozen=True, kw_only=True)
class Mask(Method):
    """What every mask has: the levels at which columns are read, and its plan."""

    name: ClassVar[str]
    handles_households: ClassVar[bool] = False
    """Whether the mask treats households itself; else shared columns are changed once for each household."""
    handles_groups: ClassVar[bool] = False
    """Whether the mask works within groups itself; else it gets one group after the other."""

    levels: Mapping[str, int] = field(default_factory=dict)

    def step(self, schema: Schema) -> Masking:
        """Return the step, from the schema alone; refuse parameters that do not fit the schema."""
        raise NotImplementedError

    def masked(self, rows: MaskInput) -> RowFrame:
        """Return the rows with their values changed."""
        raise NotImplementedError

    def examine(self, rows: MaskInput) -> None:
        """Refuse rows that cannot be masked this way, before the charge; only the data holder sees the error."""

    def broken(self, rows: MaskInput, after: RowFrame) -> str | None:
        """Compare the masked rows with the input; return the statistic that was not preserved, or None."""
        return None

    def groups(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns whose groups of equal rows are masked separately."""
        return ()

    def scope(self, schema: Schema, columns: Sequence[str], reads: Sequence[str] = ()) -> dict[str, Any]:
        """Return the groups and the household column of a step; refuse a step that would split households."""
        within = self.groups(schema)
        for name in within:
            if schema[name] in schema.unreleased or name in columns:
                raise InvalidParameter(f"{name!r} cannot make groups: it is changed, or an identifier. Name others.")
        shared = [name for name in columns if schema[name].shared]
        others = [name for name in (*columns, *reads, *within) if not schema[name].shared]
        if shared and others:
            raise InvalidParameter(
                f"{shared[0]!r} is shared by the rows of a household and {others[0]!r} is not: one step "
                f"{self.name!r} for both would split households. Use a step for each."
            )
        return {"within": within, "household": schema.household if shared else None}

    def settings(self) -> dict[str, Any]:
        """Return the parameters that a plan shows."""
        return {}

    def plan(self, schema: Schema) -> Plan:
        """Guarantee a masked table, from the schema alone."""
        return plan_of(self.name, (self,), schema)


@dataclass(frozen=True, kw_only=True)
class GroupedMask(Mask):
    """A mask that can treat groups of rows separately: rows that agree in named columns, or rows of one stratum."""

    within: tuple[str, ...] | Literal["strata"] = ()

    def groups(self, schema: Schema) -> tuple[str, ...]:
        if self.within != "strata":
            return tuple(self.within)
        if not schema.of_role(Role.STRATA):
            raise InvalidParameter("there are no strata to work within: give a column the role strata, or name some.")
        return schema.of_role(Role.STRATA)


@dataclass(frozen=True)
class PlannedMask:
    """A mask with its step under a schema: it works on all rows, on each group, or on households as one."""

    mask: Mask
    step: Masking

    @property
    def may_refuse(self) -> bool:
        """Whether some rows cannot be masked this way."""
        return type(self.mask).examine is not Mask.examine or self.step.household is not None

    @property
    def _by_household(self) -> str | None:
        return None if self.mask.handles_households else self.step.household

    @property
    def _by_group(self) -> tuple[str, ...]:
        return () if self.mask.handles_groups else self.step.within

    def examine(self, rows: MaskInput) -> None:
        """Refuse rows that the mask cannot work on, group by group, and households whose rows contradict."""
        if self._by_household is not None:
            names = [name for name in (*self.step.changes, *self.step.reads) if rows.schema[name].shared]
            need_agreement(rows.frame, self._by_household, names, self.mask.name)
            rows = rows.take(rows.frame.households(self._by_household)[0])
        if not self._by_group:
            self.mask.examine(rows)
            return
        parts = rows.frame.parts(self._by_group)
        refusals = [refusal for part in parts if (refusal := self._refusal(rows.take(part))) is not None]
        if refusals:
            raise Infeasible(
                f"in {len(refusals):,} of {counted(len(parts), 'group')} of rows alike in "
                f"{', '.join(self._by_group)}: {refusals[0]} Or make larger groups: name fewer columns in `within`, or "
                "generalize them."
            )

    def _refusal(self, group: MaskInput) -> str | None:
        """Return why a group of rows cannot be masked by itself, or None."""
        try:
            self.mask.examine(group)
        except Infeasible as error:
            return str(error)
        return None

    def apply(self, rows: MaskInput) -> RowFrame:
        """Return the rows as the mask leaves them."""
        if self._by_household is None:
            return self._apply_to_groups(rows)
        first, number = rows.frame.households(self._by_household)
        after = self._apply_to_groups(rows.take(first))
        return rows.frame.replaced(**{name: after.values(name).take(pa.array(number)) for name in self.step.changes})

    def _apply_to_groups(self, rows: MaskInput) -> RowFrame:
        """Mask each group of rows separately, and put all rows back in their order."""
        if not self._by_group:
            return self._checked(rows)
        parts = rows.frame.parts(self._by_group)
        after = [self._checked(rows.take(part)) for part in parts]
        back = pa.array(np.argsort(np.concatenate(parts), kind="stable"))
        return rows.frame.replaced(
            **{name: pa.concat_arrays([frame.values(name) for frame in after]).take(back) for name in self.step.changes}
        )

    def _checked(self, rows: MaskInput) -> RowFrame:
        after = self.mask.masked(rows)
        broken = self.mask.broken(rows, after)
        if broken is not None:
            raise GuaranteeBroken(f"{self.mask.name} did not keep {broken}: nothing was released. Please report this.")
        return after


def plan_of(name: str, masks: Sequence[Mask], schema: Schema) -> Plan:
    """Return the plan of masks one after the other, each of which reads what the one before left."""
    levels = _levels(masks)
    planned = tuple(PlannedMask(mask, mask.step(schema)) for mask in masks)
    masking = tuple(mask.step for mask in planned)
    _check_levels(planned, levels)
    for place, step in enumerate(masking):
        step.check_order(masking[:place], masking[place + 1 :])
    steps: tuple[Step, ...] = (*keep_rows(schema.unit), recode(released_cells(schema, levels)), *masking, Arrange())
    guarantee = fold(steps, schema.unit)
    numbers: dict[str, Any] = {}
    if not isinstance(guarantee.loss, Syntactic):
        numbers["epsilon"] = charge_of(guarantee.loss, 0, schema.unit.adjacency).epsilon
    settings = {key: value for mask in masks for key, value in mask.settings().items()}
    release, examine = partial(_release, planned, levels), partial(_examine, planned, levels)
    return Plan(name, steps, guarantee, numbers, release, None, settings, None if numbers else examine)


def _examine(planned: tuple[PlannedMask, ...], levels: Mapping[str, int], table: Table) -> None:
    """Refuse rows that some mask cannot work on; nothing is drawn.

    A step that suppresses rows draws no coins: it is applied, so that the masks after it examine the remaining rows.
    """
    if not any(mask.may_refuse for mask in planned):
        return
    rows = MaskInput(RowFrame.read(table, levels, _unreleased(planned)), table.schema)
    for mask in planned:
        mask.examine(rows)
        if mask.step.suppresses_rows:
            rows = replace(rows, frame=mask.apply(rows))


def _release(planned: tuple[PlannedMask, ...], levels: Mapping[str, int], table: Table, coins: Coins) -> MaskedRows:
    """Read the rows once, mask them in order, and release them in the order of the released values.

    After each mask of a chain the rows are sorted by their current values.  The next mask breaks ties by this order;
    the order of the rows as they were read would reveal values that a mask has just hidden.
    """
    schema = table.schema
    frame = RowFrame.read(table, levels, _unreleased(planned), coins)
    stages = [Stage(None, frame)]
    for mask in planned:
        rows = MaskInput(frame, schema, coins)
        mask.examine(rows)  # again: the random choice among a person's rows may differ from that before the charge
        frame = mask.apply(rows)
        frame = frame.ordered() if len(planned) > 1 else frame
        stages.append(Stage(mask.step, frame))
    return rows_of(frame.released(schema), schema.quasi, tuple(stages))


def _check_levels(planned: Sequence[PlannedMask], levels: Mapping[str, int]) -> None:
    """Refuse to compute with a column that is read at a level at which it has labels and no numbers."""
    for mask in planned:
        labeled = [name for name in mask.step.numbers if levels.get(name)]
        if labeled:
            raise InvalidParameter(
                f"{mask.mask.name!r} computes with numbers, and {labeled[0]!r} at level {levels[labeled[0]]} has "
                "labels and no numbers: leave out the level, or the column."
            )


def _unreleased(planned: Sequence[PlannedMask]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(mask.step.household for mask in planned if mask.step.household is not None))


def _levels(masks: Sequence[Mask]) -> dict[str, int]:
    levels: dict[str, int] = {}
    for mask in masks:
        for name, level in mask.levels.items():
            if levels.setdefault(name, level) != level:
                raise InvalidParameter(f"{name!r} is read at two levels: name its level in one step only.")
    return levels


def need_numbers(schema: Schema, names: Sequence[str], *, whole: bool = False) -> None:
    """Refuse columns that are not released as numbers, and, where rows are worked on `whole`, may be missing."""
    if not names:
        raise InvalidParameter("name the columns whose values are changed: columns: [income, …].")
    if len(set(names)) < len(names):
        raise InvalidParameter("a column is named once: it is changed once by one step.")
    for name in names:
        column = schema[name]
        if column in schema.unreleased:
            raise InvalidParameter(f"{name!r} is an identifier: it is never released, so it need not be changed.")
        if column.type not in ("integer", "decimal") or column.has_other:
            raise InvalidParameter(
                f"{name!r} is not released as numbers: declare a numeric type, outside: ends or drop."
            )
        if whole and column.missing == "class":
            raise InvalidParameter(f"{name!r} may be missing, and rows are masked together: let missing be drop.")


def need_spread(frame: RowFrame, names: Sequence[str], *, whole: bool) -> None:
    """Refuse columns that do not vary and, where `whole`, columns one of which follows from the others."""
    values = frame.matrix(names)
    for name, column in zip(names, values.T, strict=True):
        present = column[~np.isnan(column)]
        if len(present) < 2:
            raise Infeasible(
                f"{name!r} has a value in fewer than two rows, which show no spread to mask it by. Suppress these rows."
            )
        if not present.std() > 0:
            raise Infeasible(f"{name!r} is the same in every row: there is nothing to mask in it. Leave it out.")
    if not whole:
        return
    if len(values) <= len(names):
        raise Infeasible("there are no more rows than columns that are masked together. Mask fewer columns.")
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    if np.linalg.eigvalsh(covariance(scaled)).min() < _SINGULAR:
        raise Infeasible(
            f"the covariances of {', '.join(names)} are singular: one of these columns follows from the others. "
            "Leave it out, and compute it again from the released ones."
        )


def need_agreement(frame: RowFrame, household: str, names: Sequence[str], step: str) -> None:
    """Refuse households whose rows differ in a column that they are declared to share."""
    first, number = frame.households(household)
    for name in names:
        values = frame.groups([name])
        if not np.array_equal(values[first][number], values):
            raise Infeasible(
                f"rows of some household differ in {name!r}, which they are declared to share, so {step!r} would split "
                f"it: clean {name!r} first, or remove shared."
            )


def lost_values(before: RowFrame, after: RowFrame, columns: Sequence[str]) -> str | None:
    """Return a problem if some value of a column got lost, where values may only change rows, else None."""
    both = ((np.sort(before.numbers(name)), np.sort(after.numbers(name))) for name in columns)
    same = all(np.array_equal(old, new, equal_nan=True) for old, new in both)
    return None if same else "every value of a column"
