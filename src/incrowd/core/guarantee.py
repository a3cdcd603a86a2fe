"""Guarantee: what is guaranteed, to whom, why, and on which assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from incrowd.core.loss import (
    Crowd,
    Grouped,
    Loss,
    Parallel,
    RobustlySampled,
    Sampled,
    Sequence,
    Syntactic,
    from_json,
    to_json,
    walk,
)
from incrowd.core.rounding import short
from incrowd.core.terms import Assumption, Theorem
from incrowd.core.unit import Kind, Unit
from incrowd.errors import InvalidParameter, MixedUnits, UnsupportedVersion

VERSION = 1


@dataclass(frozen=True)
class Guarantee:
    """A guarantee with its reasons, computed before a row is read.

    `delta` is the δ at which the loss is charged; a loss with a whole curve (a secret sample, Gaussian noise) needs it.
    Crowds and samples are about rows: where a person has several, they are inside a `Grouped` of at least that size.

    >>> from incrowd.core.loss import Pure
    >>> Guarantee(Pure(Fraction(1)), Unit(), (Theorem("dwork-2006-1", "Dwork et al. 2006, Proposition 1"),)).loss
    Pure(epsilon=Fraction(1, 1))
    """

    loss: Loss
    unit: Unit
    because: tuple[Theorem, ...]
    assumes: frozenset[Assumption] = field(default_factory=frozenset)
    delta: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if not 0 <= self.delta < 1:
            raise InvalidParameter("the delta of a guarantee lies in [0, 1).")
        if self.unit.max_rows > 1:
            _refuse_row_price(self.loss, self.unit.max_rows)
        if self.unit.kind is Kind.NODE and any(isinstance(part, Parallel) for part in walk(self.loss)):
            raise InvalidParameter("a node can touch every block of a partition: compose in sequence instead.")

    @property
    def syntactic(self) -> bool:
        """Whether some part of the guarantee is about the table's form only."""
        return any(isinstance(part, Syntactic) for part in walk(self.loss))

    def to_json(self) -> dict[str, Any]:
        """Return the plain form stored in ledgers and certificates."""
        return {
            "guarantee": VERSION,
            "loss": to_json(self.loss),
            "unit": self.unit.to_json(),
            "because": [theorem.key for theorem in self.because],
            "assumes": sorted(term.key for term in self.assumes),
            "delta": str(self.delta),
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Guarantee:
        """Read what `to_json` wrote.

        >>> from incrowd.core.loss import Crowd
        >>> guarantee = Guarantee(Crowd(5), Unit(), (Theorem("an-example", "Gehrke et al. 2012, Example 1"),))
        >>> Guarantee.from_json(guarantee.to_json()) == guarantee
        True
        """
        if plain.get("guarantee") != VERSION:
            raise UnsupportedVersion(
                f"this guarantee has version {plain.get('guarantee')!r}; this incrowd reads version {VERSION}."
            )
        try:
            return cls(
                from_json(plain["loss"]),
                Unit.from_json(plain["unit"]),
                tuple(map(Theorem.read, _texts(plain["because"]))),
                frozenset(map(Assumption.read, _texts(plain["assumes"]))),
                Fraction(short(str(plain["delta"]))),
            )
        except (KeyError, TypeError, ZeroDivisionError) as error:
            raise InvalidParameter("this guarantee lacks a field or holds one that cannot be read.") from error


ADDED_UP = Theorem("losses-add-up", "losses on the same rows add up")


def in_sequence(guarantees: tuple[Guarantee, ...], because: Theorem = ADDED_UP) -> Guarantee:
    """Return the joint guarantee of mechanisms that all read the same rows."""
    if not guarantees:
        raise InvalidParameter("composition needs at least one guarantee.")
    units = {guarantee.unit for guarantee in guarantees}
    if len(units) > 1:
        raise MixedUnits(
            f"these guarantees protect different units ({'; '.join(sorted(map(str, units)))}); "
            "state all of them for the unit of the dataset."
        )
    reasons = dict.fromkeys(theorem for guarantee in guarantees for theorem in guarantee.because)
    losses, delta = tuple(guarantee.loss for guarantee in guarantees), sum(guarantee.delta for guarantee in guarantees)
    return Guarantee(
        losses[0] if len(losses) == 1 else Sequence(losses),
        units.pop(),
        (*reasons, because),
        frozenset().union(*(guarantee.assumes for guarantee in guarantees)),
        min(Fraction(delta), Fraction(10**12 - 1, 10**12)),
    )


def _texts(plain: Any) -> list[str]:
    if not isinstance(plain, list) or not all(isinstance(key, str) for key in plain):
        raise TypeError
    return plain


def _refuse_row_price(loss: Loss, rows: int) -> None:
    """Refuse a loss that counts fewer rows than a person can have; coins and crowds are always per row."""
    match loss:
        case Grouped(size=size):
            if size < rows:
                raise InvalidParameter(
                    f"this guarantee groups {size} rows, but a person has up to {rows}. Group them all."
                )
        case Sequence(parts):
            for part in parts:
                _refuse_row_price(part, rows)
        case Parallel():
            raise InvalidParameter(
                f"a row lies in one block of a partition, but a person has up to {rows} and they can lie in several. "
                f"Write Grouped({rows}, ...) around the partition."
            )
        case Sampled() | RobustlySampled() | Crowd():
            raise InvalidParameter(
                f"crowds and secret samples count rows, and a person has up to {rows}. Write Grouped({rows}, ...) "
                "around them."
            )
