"""Steps of a classical answer: one, which promises the form of the answer and no epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Syntactic
from incrowd.core.steps.step import Promise, Step

if TYPE_CHECKING:
    from incrowd.core.unit import Unit
    from incrowd.queries.classical.protections import Protection


@dataclass(frozen=True)
class AnswerClassically(Step):
    """A question is answered in a way that was tried before noise was measured."""

    kind: ClassVar[str] = "answer classically"
    title: ClassVar[str] = "A classical answer"

    question: str
    protection: str
    parameters: tuple[tuple[str, str], ...]
    source: str
    broken_by: str

    @classmethod
    def of(cls, question: str, protection: Protection) -> AnswerClassically:
        """Return the step that answers a question by a protection.

        >>> from incrowd.core.unit import Unit
        >>> from incrowd.queries.classical.protections import SizeControl
        >>> AnswerClassically.of("SELECT COUNT(*) FROM t", SizeControl(5)).around(Promise(), Unit()).loss.criterion
        'classical answer by size-control'
        """
        return cls(question, protection.name, protection.parameters, protection.source, protection.broken_by)

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return f"The question is answered by {self.protection} ({self.source}). It is broken by {self.broken_by}."

    def around(self, inner: Promise, unit: Unit) -> Promise:  # noqa: ARG002 - without an epsilon it is the same for all
        """Promise a form, and no epsilon."""
        loss = Syntactic(f"classical answer by {self.protection}", self.parameters)
        return Promise(loss, (self.source, f"broken by {self.broken_by}"))
