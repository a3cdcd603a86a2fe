"""Steps: rows are cut into classes that meet what is demanded, and published in an order that tells nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import Anonymity
from incrowd.core.domain import Type
from incrowd.core.loss import Syntactic
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee
from incrowd.core.terms import Exposure
from incrowd.core.unit import Unit
from incrowd.core.words import counted
from incrowd.criteria.catalog import criteria_of, in_order
from incrowd.criteria.closeness import Closeness
from incrowd.criteria.demand import BECAUSE, MINIMALITY, Demand, Form, Term, form_assumptions, spelled
from incrowd.criteria.recount import Places
from incrowd.errors import InvalidParameter


@dataclass(frozen=True, kw_only=True)
class Cut(Step):
    """Rows are cut into classes, as long as every class meets what is demanded; the cuts look at all rows.

    `until` names what is demanded.  `places` and `ordered` tell how far the values of a sensitive column are apart: by
    their declared places, or by their places among numbers or days of a type.
    """

    kind: ClassVar[str] = "cut"
    title: ClassVar[str] = "Cut into classes"
    glyph: ClassVar[str | None] = "coarser"

    columns: tuple[str, ...]
    sensitive: tuple[str, ...]
    until: Mapping[str, Term]
    places: Mapping[str, Places] | None = None
    ordered: Mapping[str, Type] | None = None

    def __post_init__(self) -> None:
        close = [criterion.column for criterion in self.criteria if isinstance(criterion, Closeness)]
        measured = [*(self.places or ()), *(self.ordered or ())]
        if not set(measured) <= set(close) or len(set(measured)) != len(measured):
            raise InvalidParameter("how far values are apart is told of columns whose distances are bounded, and once.")

    @property
    def where(self) -> str:
        """Where the table is cut, for people."""
        raise NotImplementedError

    @property
    def labels(self) -> str:
        """As what a class is shown, for people."""
        raise NotImplementedError

    @property
    def left_out(self) -> Fraction:
        """The share of the rows that may be missing from the output."""
        return Fraction(0)

    @property
    def left_open(self) -> tuple[Exposure, ...]:
        """Which attacks the cut leaves open beside those of every such table."""
        return (MINIMALITY,)

    @property
    def criteria(self) -> tuple[Demand, ...]:
        """What is demanded of every class."""
        return criteria_of(self.until, self.sensitive, dict.fromkeys(self.ordered or (), "ordered"))

    @property
    def form(self) -> tuple[tuple[str, str | tuple[str, ...]], ...]:
        """What is demanded, in order."""
        demands = in_order(self.until, self.sensitive).items()
        return tuple(
            (name, tuple(map(str, value)) if isinstance(value, tuple) else str(value)) for name, value in demands
        )

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        until = spelled(in_order(self.until, self.sensitive))
        return (
            f"The table is cut along {counted(len(self.columns), 'quasi-identifier')}, at {self.where}, as long as "
            f"every class keeps {until}. Classes are shown as {self.labels}; other columns stay as they are. The cuts "
            "look at all rows."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee a form, and nothing to those who know more."""
        if inner.loss is not None:
            return inner
        return StepGuarantee(Syntactic(Anonymity.kind, self.form), (BECAUSE,), form_assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim each criterion that is demanded."""
        untold = frozenset(
            criterion.column
            for criterion in self.criteria
            if isinstance(criterion, Closeness)
            and criterion.distance != "equal"
            and not self._measured(criterion.column)
        )
        form = Form(self.columns, basis.unit, self.left_open, self.left_out, untold)
        return tuple(criterion.claim(form) for criterion in self.criteria)

    def _measured(self, column: str) -> bool:
        return column in (self.places or ()) or column in (self.ordered or ())


@dataclass(frozen=True, kw_only=True)
class CutWithoutSome(Cut):
    """A cut that may leave out a share of the rows."""

    suppression: Fraction

    def __post_init__(self) -> None:
        super().__post_init__()
        require_share(self.suppression)

    @property
    def left_out(self) -> Fraction:
        return self.suppression


def require_share(share: Fraction) -> None:
    """Refuse what is not a share.

    >>> require_share(Fraction(1, 20))
    """
    if not 0 <= share <= 1:
        raise InvalidParameter("what may be left out is a share, from 0 to 1.")
