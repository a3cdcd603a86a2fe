"""Steps: values beyond a bound become the bound."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from incrowd.core.terms import Theorem
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.steps import Exactness, KeptStatistic, Masking, check_columns, some


@dataclass(frozen=True)
class CodedColumn:
    """The bounds of one column, the lower one, the upper one, or both."""

    column: str
    bottom: Fraction | None = None
    top: Fraction | None = None

    def __post_init__(self) -> None:
        if self.bottom is None and self.top is None:
            raise InvalidParameter(f"{self.column!r} needs a bottom, a top, or both.")
        if self.bottom is not None and self.top is not None and self.bottom >= self.top:
            raise InvalidParameter(f"the bottom of {self.column!r} must lie below its top.")


@dataclass(frozen=True, kw_only=True)
class CodeEnds(Masking):
    """Values above a declared top become the top, those below a declared bottom become the bottom."""

    kind: ClassVar[str] = "code ends"
    title: ClassVar[str] = "Cut off the ends"
    source: ClassVar[Theorem] = Theorem(
        "end-coding", "top and bottom coding by declared bounds: values between them stay as they are"
    )

    columns: tuple[CodedColumn, ...]

    def __post_init__(self) -> None:
        check_columns(self.changes)

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns whose values are changed."""
        return tuple(each.column for each in self.columns)

    @property
    def record_wise(self) -> bool:
        """Whether each row is changed by itself, given nothing but its own values."""
        return self.household is None

    @property
    def kept(self) -> tuple[tuple[KeptStatistic, Exactness], ...]:
        """What is kept: whatever lies inside."""
        return ((KeptStatistic.INSIDE, Exactness.EXACT),)

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return f"In {some(self.changes)}, values beyond a declared bound become the bound, each by itself."
