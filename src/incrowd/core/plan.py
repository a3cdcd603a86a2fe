"""Plan: everything about a release that is known before a row is read; Method: makes a plan from a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from incrowd.core.coins import check_scale
from incrowd.core.loss import Syntactic
from incrowd.core.steps.around import ConsentGate, gate_of, steps_around
from incrowd.core.steps.periods import ReadPeriod
from incrowd.core.steps.step import ClaimBasis, claims_of
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    import pyarrow as pa

    from incrowd.core.cells import Cells
    from incrowd.core.claims.claim import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.guarantee import Guarantee
    from incrowd.core.schema import Schema
    from incrowd.core.steps.step import Step
    from incrowd.core.table import Table
    from incrowd.core.unit import Unit
    from incrowd.errors import IncrowdError


class Output(Protocol):
    """What is released: one table or several, with their columns and evidence."""

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns."""

    @property
    def parts(self) -> tuple[Output, ...]:
        """The tables that are written to a file each."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows batch by batch, the same every time."""

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the output itself shows: numbers, and names of columns."""

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        """Return the three tests of the EU's Opinion 05/2014 in words, for readers; nothing where they say nothing."""


@dataclass(frozen=True)
class Plan:
    """What will be done, what that guarantees and what is claimed; guarantee and claims are computed from the steps.

    `numbers` are those that an accountant computed, `settings` are the parameters for readers, and `draw` reads
    the rows and releases what was guaranteed.  `examine`, which only a guarantee of form may have, refuses rows that
    could not be released so, before anything is charged and for the data holder's eyes.  `cells` are those that are
    counted, where a count of all rows is known to come: then text is parsed once.
    """

    method: str
    steps: tuple[Step, ...]
    guarantee: Guarantee
    numbers: Mapping[str, Any]
    draw: Callable[[Any, Coins], Any] = field(compare=False)
    smallest_class: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    examine: Callable[[Any], None] | None = field(default=None, compare=False)
    cells: Cells | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.examine is not None and not isinstance(self.guarantee.loss, Syntactic):
            raise InvalidParameter("nothing computed across people may hold back a release that has an epsilon.")
        _check_scales(self.steps)

    @property
    def unit(self) -> Unit:
        """Whom the guarantee protects."""
        return self.guarantee.unit

    @property
    def basis(self) -> ClaimBasis:
        """What the claims are computed from."""
        return ClaimBasis(self.guarantee, self.steps, self.numbers)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Every claim that the guarantee implies, the strongest first."""
        return claims_of(self.basis)

    @property
    def verb(self) -> str:
        """What happens to the output, for messages."""
        return "released"

    def failure(self, error: IncrowdError) -> IncrowdError:
        """Return an error after the charge as this plan reports it; the caller adds what is not refunded."""
        return error

    def led_by(self, *steps: Step) -> Self:
        """Return the plan with steps in front of its own; they must leave the guarantee as it is.

        A planned consent gate and a planned period stay in front of all.
        """
        front = tuple(step for step in steps_around(self.steps)[:2] if isinstance(step, ConsentGate | ReadPeriod))
        return replace(self, steps=(*front, *steps, *self.steps[len(front) :])) if steps else self

    def gated(self, gate: ConsentGate | None) -> Plan:
        """Return the plan with a consent gate in the place of a planned one; None removes it."""
        behind = self.steps if gate_of(self.steps) is None else self.steps[1:]
        return replace(self, steps=behind if gate is None else (gate, *behind))

    def release(self, rows: object, coins: Coins) -> Output:
        """Read the rows and release what was guaranteed."""
        output: Output = self.draw(rows, coins)
        return output


def _check_scales(steps: tuple[Step, ...]) -> None:
    """Refuse noise that could not be drawn, before anything is charged."""
    for step in steps:
        scale = getattr(step, "scale", None)
        if isinstance(scale, Fraction):
            check_scale(scale)
        _check_scales(step.held)


class Method:
    """A way to protect a table: a frozen dataclass whose fields are the `release:` section of a policy.

    Below its plan stands what verbs use of a method; each default says that it does not apply.  The attributes are
    parameters that mean the same in every method that has them.
    """

    name: ClassVar[str]

    def plan(self, schema: Schema) -> Plan:
        """Check the parameters against a schema, solve what was left open, and say what would be done."""
        raise NotImplementedError

    located: ClassVar[tuple[str, ...]] = ()
    """The fields that hold names of files, which are found from the policy's folder."""
    hashed: ClassVar[tuple[str, ...]] = ()
    """Those of them whose content belongs to the policy."""
    one_part_each: ClassVar[bool] = False
    """Whether each released table holds some of the columns only."""
    running: ClassVar[bool] = False
    """Whether it is one plan for all periods of a calendar, and keeps counts from period to period."""
    checked_for: ClassVar[str | None] = None
    """What `measure` measures, in words; None where the usual criteria do."""
    libraries: ClassVar[tuple[str, ...] | None] = None
    """Of a method of graphs, what it imports while it releases; None for all that such methods import."""

    levels: Mapping[str, int] = MappingProxyType({})
    lowest: Mapping[str, int] = MappingProxyType({})
    sensitive: Mapping[str, Any] = MappingProxyType({})
    subsets: Mapping[int, int] = MappingProxyType({})
    weights: bool = False
    robust: Any = None
    population: Any = None
    expected_rows: int | None = None

    @property
    def demands(self) -> Any:
        """What every class of a released table must meet; None where all released columns make a class of k rows."""
        return None

    @property
    def unchecked(self) -> str | None:
        """Why a table alone is not checked for what this method demands, and what to do; None where it can be."""
        return None

    def measure(self, table: Table, *, recoded: bool) -> tuple[int, Any, tuple[str, ...]]:
        """Return how many rows there are, what was measured and expected of them, and over which columns."""
        raise NotImplementedError

    def at_epsilon(self, epsilon: Fraction) -> Method | None:
        """Return the same method at another ε, where it solves k for it and quickly; else None."""
        return None
