"""Plan: everything about a release that is known before a row is read; Method: makes a plan from a schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from incrowd.core.loss import Syntactic
from incrowd.core.steps.around import ConsentGate, gate_of
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
        """Return what the output itself shows."""


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

    def led_by(self, *steps: Step) -> Plan:
        """Return the plan with steps in front of its own; they must leave the guarantee as it is.

        A planned consent gate stays in front of all.
        """
        gate = gate_of(self.steps)
        behind = self.steps if gate is None else self.steps[1:]
        return replace(self, steps=(*(() if gate is None else (gate,)), *steps, *behind)) if steps else self

    def gated(self, gate: ConsentGate | None) -> Plan:
        """Return the plan with a consent gate in the place of a planned one; None removes it."""
        behind = self.steps if gate_of(self.steps) is None else self.steps[1:]
        return replace(self, steps=behind if gate is None else (gate, *behind))

    def release(self, rows: object, coins: Coins) -> Output:
        """Read the rows and release what was guaranteed."""
        output: Output = self.draw(rows, coins)
        return output


class Method(Protocol):
    """A way to protect a table: its parameters are its fields, the `release:` section of a policy."""

    name: ClassVar[str]

    def plan(self, schema: Schema) -> Plan:
        """Check the parameters against a schema, solve the missing ones, and return the plan."""
