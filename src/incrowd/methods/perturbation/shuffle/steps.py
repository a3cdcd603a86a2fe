"""Steps: the values of columns are dealt out again, in the order that a model gives."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from incrowd.core.terms import Theorem
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.steps import Exactness, KeptStatistic, Masking, alike, check_columns, some


class ScoreModel(StrEnum):
    """Of what the normal scores of the shuffled columns are predicted."""

    COPULA = "copula"
    LINEAR = "linear"


_WORDS = {ScoreModel.COPULA: "normal scores of the ranks", ScoreModel.LINEAR: "values as they are"}


@dataclass(frozen=True, kw_only=True)
class ShuffleValues(Masking):
    """New values are drawn from a model of the columns given others; the old values are dealt out in their order."""

    kind: ClassVar[str] = "shuffle values"
    title: ClassVar[str] = "Shuffle"
    glyph: ClassVar[str | None] = None
    source: ClassVar[Theorem] = Theorem(
        "data-shuffling",
        "Muralidhar & Sarathy 2006, data shuffling, on normal scores: values only change rows; "
        "given the other columns, what a row gets is independent of what it had",
    )

    columns: tuple[str, ...]
    given: tuple[str, ...]
    model: ScoreModel

    def __post_init__(self) -> None:
        check_columns(self.columns)
        if set(self.columns) & set(self.given):
            raise InvalidParameter("a column is shuffled, or the others are predicted from it; not both.")

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns whose values are changed."""
        return self.columns

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that are read beside those that are changed."""
        return (*self.given, *self.within)

    def rests_on(self, kept: KeptStatistic) -> frozenset[str] | None:
        """Return the columns that a statistic speaks of: rank correlations also of those that the model is given."""
        own = frozenset((*self.changes, *self.within))
        return own | frozenset(self.given) if kept is KeptStatistic.RANK_CORRELATIONS else own

    @property
    def kept(self) -> tuple[tuple[KeptStatistic, Exactness], ...]:
        """What is kept: all values, and rank correlations where they are monotone."""
        return ((KeptStatistic.VALUES, Exactness.EXACT), (KeptStatistic.RANK_CORRELATIONS, Exactness.LIMIT))

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        given = f"given {_WORDS[self.model]} of {some(self.given)}" if self.given else "given nothing else"
        return (
            f"Values of {some(self.columns)} are dealt out again in the order of new ones, drawn from a normal model "
            f"of their scores {given}{alike(self.within)}. The model is fitted to all rows; dependence that is not "
            "monotone is lost."
        )
