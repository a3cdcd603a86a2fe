"""Picture: what a method's own `picture.py` says and draws of a release; where a method has none, the claims speak."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from incrowd.drawing.markup import Description
from incrowd.verifier.judge import statement_of

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.cells import Cells
    from incrowd.core.certificate import Certificate
    from incrowd.core.counts import Counts
    from incrowd.core.schema import Schema
    from incrowd.verifier.statement import Statement

_PLAIN = Description("See the claims", "The claims say what is known about it.")


class Picture(Protocol):
    """What a method's `picture.py` holds; `comparison` is there only where an output can be put beside the original."""

    EVIDENCE: Mapping[str, str]
    """The whole numbers of the evidence that people are shown, each with its name for them, in order."""

    def description(self, statement: Statement) -> Description:
        """Return in words what was published, from what is stated alone."""

    def picture(self, statement: Statement, output: Any) -> Markup | None:
        """Return the picture of a published output, made from it alone."""

    def comparison(self, statement: Statement, output: Any, schema: Schema) -> Comparison:
        """Return how a published output is put beside the original rows."""


class Comparison(Protocol):
    """A published output, and the cells in which original rows are counted to be shown beside it."""

    @property
    def cells(self) -> Cells:
        """In which cells the original rows are counted."""

    def section(self, original: Counts) -> Markup:
        """Return what is before and after; it may not leave."""


def describe(certificate: Certificate, own: Picture | None) -> Description:
    """Return what was published, in words."""
    return _PLAIN if own is None else own.description(statement_of(certificate))


def sizes(certificate: Certificate, own: Picture | None) -> list[tuple[str, int]]:
    """Return the whole numbers of the evidence under their names."""
    evidence = certificate.evidence
    names = {name: name.capitalize() for name in sorted(evidence)} if own is None else own.EVIDENCE
    return [(words, evidence[name]) for name, words in names.items() if isinstance(evidence.get(name), int)]
