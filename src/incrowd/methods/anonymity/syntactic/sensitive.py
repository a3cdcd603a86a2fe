"""Sensitive: what every class must meet in one sensitive column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, fields, replace
from fractions import Fraction
from typing import Any, Literal

from incrowd.core.domain import Dates, Numbers
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column
from incrowd.criteria.catalog import OF_COLUMN, OF_EACH
from incrowd.criteria.closeness import CLOSENESS, Closeness
from incrowd.criteria.demand import ColumnDemand, Term
from incrowd.errors import Infeasible, InvalidParameter

Distance = Literal["equal", "ordered", "hierarchical"]
_CHECKED = sorted(OF_COLUMN, key=lambda each: each is Closeness)
"""The criteria in the order in which they are looked at, closeness last."""
_FEW = 8


@dataclass(frozen=True)
class Recursive:
    """Recursive (c,l)-diversity: the most frequent value is rarer than c times all but the l − 1 most frequent ones.

    Source: Machanavajjhala et al. 2006, Definition 4.2.
    """

    c: Fraction
    l: int  # noqa: E741 (the name that everyone knows it by)


@dataclass(frozen=True)
class Sensitive:
    """What every class must meet in one sensitive column; what is left out is not demanded.

    Values named as harmless give nothing away: classes of nothing else are diverse and close enough, and neither
    likeness nor disclosure bounds them.

    Source: Machanavajjhala et al. 2006 (l), Li, Li & Venkatasubramanian 2007 (t), Cao & Karras 2012 (beta), Brickell &
    Shmatikov 2008 (disclosure; present_disclosure passes over values that a class lacks, as ARX does).

    >>> Sensitive(l=3, t=Fraction(1, 5), harmless=("healthy",)).terms()
    {'l': 3, 't': '1/5', 'harmless': ('healthy',)}
    """

    l: int | None = None  # noqa: E741 (the name that everyone knows it by)
    entropy_l: Fraction | None = None
    recursive: Recursive | None = None
    t: Fraction | None = None
    distance: Distance | None = None
    beta: Fraction | None = None
    enhanced_beta: Fraction | None = None
    disclosure: Fraction | None = None
    present_disclosure: Fraction | None = None
    harmless: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(each is not None and each <= 0 for each in (self.disclosure, self.present_disclosure)):
            raise InvalidParameter("disclosure is above 0: how large the binary logarithm of a ratio of shares may be.")
        if self.distance is not None and self.distance not in CLOSENESS:
            raise InvalidParameter(f"a distance is {', '.join(CLOSENESS)}, not {self.distance!r}.")
        self.criteria("", "equal")

    @property
    def any(self) -> bool:
        """Whether anything is demanded at all."""
        return bool(self.criteria("", "equal"))

    def criteria(self, column: str, distance: Distance) -> list[ColumnDemand]:
        """Return the criteria on a column whose values are so far apart."""
        found: list[ColumnDemand] = []
        for kind in _CHECKED:
            value = getattr(self, kind.option)
            if value is not None:
                make: Callable[..., ColumnDemand] = CLOSENESS[distance] if kind is Closeness else kind
                parameters = astuple(value) if isinstance(value, Recursive) else (value,)
                found.append(make(column, *parameters, harmless=frozenset(self.harmless)))
        return found

    def or_else(self, general: Sensitive) -> Sensitive:
        """Return the same demands, and those of another where there is none here.

        >>> Sensitive(l=4).or_else(Sensitive(l=3, t=Fraction(1, 5))).terms()
        {'l': 4, 't': '1/5'}
        """
        return replace(general, **{name: value for name, value in self._given().items() if value not in (None, ())})

    def terms(self) -> dict[str, Term]:
        """Return the demands as they stand in certificates."""
        terms: dict[str, Term] = {} if self.distance is None else {"distance": self.distance}
        for criterion in self.criteria("", self.distance or "equal"):
            terms |= criterion.terms()
        if self.harmless:
            terms["harmless"] = tuple(sorted(set(self.harmless)))
        return {name: terms[name] for name in OF_EACH if name in terms}

    def check(self, column: Column, level: int) -> None:
        """Refuse what the declaration of a column at its level shows to be impossible or mistaken."""
        if not self.any:
            raise InvalidParameter(
                f"nothing is demanded of {column.name!r}: give l, entropy_l, recursive, t, beta, enhanced_beta or "
                "disclosure, or leave it out."
            )
        if self.distance is not None and self.t is None:
            raise InvalidParameter(f"{column.name!r} has a distance, but nothing is measured by it: give t too.")
        classes = Recoding(column, level).classes
        if self.distance == "ordered" and classes is None and not isinstance(column.domain, Numbers | Dates):
            raise InvalidParameter(
                f"the values of {column.name!r} have no order: list its categories in order, or let distance be equal."
            )
        if classes is None:
            return
        labels = classes.labels().to_pylist()
        unknown = [value for value in self.harmless if value not in labels]
        if unknown:
            raise InvalidParameter(
                f"{column.name!r} never shows {unknown[0]!r}, which is named as harmless: it shows {_some(labels)}."
            )
        most = max(self.l or 0, self.entropy_l or 0, self.recursive.l if self.recursive else 0)
        if most > len(labels):
            raise Infeasible(
                f"a class shows at most {len(labels)} values of {column.name!r}, missing and other values counted, "
                f"and l is {most}: demand less, or release the column at a lower level."
            )

    def _given(self) -> dict[str, Any]:
        return {item.name: getattr(self, item.name) for item in fields(self)}


def _some(labels: list[str | None]) -> str:
    named = [repr(label) for label in labels if label is not None]
    return ", ".join(named[:_FEW]) + (", …" if len(named) > _FEW else "")
