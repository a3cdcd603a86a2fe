"""The plan of a private look: made from the policy alone, charged like any release."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.cells import Cells
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.plan import Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.rows import KeepRows, keep_rows, recoded
from incrowd.core.steps.step import Step, fold
from incrowd.errors import IncrowdError, InvalidParameter, Refused
from incrowd.mechanisms.vector_noise import AddCube
from incrowd.methods.anonymity.shared.scores import expected_rows
from incrowd.methods.shared.columns import row_limits
from incrowd.methods.shared.sampling import SampledSuppression, charged
from incrowd.verifier.check import maybe, one
from incrowd.workflows.plan.compare import best_rate, public_table, safe_at
from incrowd.workflows.plan.forecast import declared_rows
from incrowd.workflows.plan.preview.check import PreviewCheck, PreviewPicture
from incrowd.workflows.plan.preview.choices import choices_of, details_at
from incrowd.workflows.plan.preview.output import MISS, KeptChoices
from incrowd.workflows.plan.preview.steps import FINENESS, MeasureKept, RecodeAtSeveral, WeighedChoice

if TYPE_CHECKING:
    from incrowd.core.certificate import Certificate
    from incrowd.core.coins import Coins
    from incrowd.core.table import Table
    from incrowd.workflows.policy.policy import Policy

NAME = "private look"


@dataclass(frozen=True)
class PrivatePreview:
    """How many rows each of several choices would keep, in expectation over the coins of its sample, with one noise.

    Guarantee: ε-differential privacy of everything that is shown; what is chosen by it costs nothing more.

    Assumes: the choices come from public numbers alone; one row is one person, or the person column says whose it is.

    Source: the expectation as `scheme` scores it; Hardt & Talwar 2010, Steinke & Ullman 2016 for the noise.

    Proof.  A row lies in one cell of each choice.  Adding it raises the cell's count by one, and so what choice c keeps
    by a step between 0 and its width w_c: all choices at once.  A person with r rows moves choice c by r·w_c at most.
    Replacing a person lowers it by at most r·w_c and raises it by at most r·w_c, so the difference is no larger.  Which
    rows of a person are kept depends on that person alone.  `AddCube` is private for such moves.  ∎
    """

    epsilon: Fraction
    names: tuple[str, ...]
    choices: tuple[WeighedChoice, ...]
    schema: Schema

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise InvalidParameter("a private preview needs an epsilon above 0, such as 0.05.")

    @cached_property
    def mechanism(self) -> AddCube:
        """The noise for all choices together."""
        return AddCube(self.epsilon, tuple(choice.width for choice in self.choices), self.schema.unit.max_rows)

    @cached_property
    def within(self) -> tuple[int, ...]:
        """The half-widths of intervals that all hold with a chance of 95 %: known before a row is read."""
        return tuple(half + 1 for half in self.mechanism.law.together(MISS))

    @cached_property
    def details(self) -> tuple[float, ...]:
        """What a kept row keeps of its details at each choice, as the declaration says."""
        return details_at(self.schema, [choice.levels for choice in self.choices])

    def reach(self, place: int) -> float:
        """Return the half-width of a choice's interval, in rows."""
        return self.within[place] / FINENESS

    @property
    def plan(self) -> Plan:
        """What will be done and what that guarantees."""
        unit = self.schema.unit
        guarantee = fold(self.steps, unit)
        epsilon = charged(guarantee.loss, guarantee.delta, unit.adjacency)
        return Plan(NAME, self.steps, guarantee, {"epsilon": epsilon}, self.release, None, {"epsilon": epsilon})

    @property
    def steps(self) -> tuple[Step, ...]:
        """Rows kept of each person, their levels, the measurement."""
        unit, highest = self.schema.unit, map(max, zip(*self._levels, strict=True))
        ends = zip(self._cells.recodings, highest, strict=True)
        columns = tuple(recoded(recoding, high) for recoding, high in ends)
        measured = MeasureKept(self.epsilon, unit.max_rows, self.choices)
        return (*keep_rows(unit), RecodeAtSeveral(columns), measured)

    def release(self, table: Table, coins: Coins) -> KeptChoices:
        """Count all rows once at the finest levels, roll up, and add the noise."""
        sums = np.array([self.sums(table, coins)], np.int64)
        noisy = self.mechanism.release(sums, coins)[0]
        return KeptChoices(self.names, self.choices, self.details, tuple(map(int, noisy)), self.within)

    def sums(self, table: Table, coins: Coins) -> list[int]:
        """Return what each choice keeps in expectation, exactly, in steps of 1/FINENESS row: nothing to be shown."""
        finest = table.engine.count(table.rows, self._cells, *row_limits(table, coins))
        counts = {levels: finest.rollup(dict(zip(self.names, levels, strict=True))).counts for levels in self._levels}
        return [
            int(expected_rows(choice.k, choice.rate, FINENESS).of(counts[choice.levels]).sum())
            for choice in self.choices
        ]

    @property
    def _levels(self) -> set[tuple[int, ...]]:
        return {choice.levels for choice in self.choices}

    @property
    def _cells(self) -> Cells:
        lowest = map(min, zip(*self._levels, strict=True))
        return Cells.of(self.schema, dict(zip(self.names, lowest, strict=True)))


def look_of(policy: Policy, epsilon: Fraction) -> PrivatePreview:
    """Return the private look that a policy allows, or say why there is none; no row is read."""
    method = policy.method
    if not isinstance(method, SampledSuppression) or method.unsampled or method.robust is not None:
        raise InvalidParameter(
            "a private preview needs method: safe with a secret sample (rate below 1), and this policy has method "
            f"{method.name}. Change the method, or add --compare."
        )
    return _weighing(method, policy, epsilon)


def compared_look(policy: Policy, epsilon: Fraction) -> PrivatePreview:
    """Return the private look that refines a comparison: around its route by method safe, whatever the policy's is."""
    table = public_table(policy)
    return _weighing(safe_at(table, best_rate(table)), policy, epsilon)


def _weighing(method: SampledSuppression, policy: Policy, epsilon: Fraction) -> PrivatePreview:
    schema = policy.schema
    if schema.drafted:
        raise Refused(
            f"the rules of {', '.join(schema.drafted)} are data-dependent (derived: rows), so a private preview has no "
            'guarantee. Write public values there, or add public: "source".'
        )
    choices = choices_of(method, schema, declared_rows(policy))
    return PrivatePreview(epsilon, tuple(column.name for column in schema.released), choices, schema)


def look_again(certificate: Certificate, policy: Policy) -> Plan:
    """Return the plan of a look that was taken, made again from its policy: its own, or that of its comparison."""
    measured = next(step for step in certificate.steps if isinstance(step, MeasureKept))
    ways = (look_of, compared_look) if isinstance(policy.method, SampledSuppression) else (compared_look,)
    plans = []
    for way in ways:
        with suppress(IncrowdError):
            plans.append(way(policy, measured.epsilon).plan)
    if not plans:
        raise InvalidParameter("this policy allows no private preview.")
    return next((plan for plan in plans if plan.steps == certificate.steps), plans[0])


CHECK = PreviewCheck(order=(maybe(KeepRows), one(RecodeAtSeveral), one(MeasureKept)), claims=(PurePrivacy,))
PICTURE = PreviewPicture()
