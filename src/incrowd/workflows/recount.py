"""Recount: what was really written, read again from the file and held against its certificate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.errors import PromiseBroken
from incrowd.workflows.forms import form_of

if TYPE_CHECKING:
    from incrowd.core.certificate import Certificate
    from incrowd.methods.outcomes.outcome import Outcome


def require_written(certificate: Certificate, file: Path) -> None:
    """Raise unless the written file is what the certificate says, by the looks that a verifier takes.

    What the file alone cannot decide, such as a comparison with a population, does not stop it: the claim says so.
    """
    for look in form_of(certificate).looks(certificate, file):
        _require(holds=look.problem is None or look.problem.undecided)


def require_held(certificate: Certificate, outcome: Outcome) -> None:
    """Raise unless an outcome that stays in memory is what its certificate says."""
    _require(holds=form_of(outcome).recount(certificate, outcome) is None)


def _require(*, holds: bool) -> None:
    if not holds:
        raise PromiseBroken(
            "the output does not keep its promise. Nothing was published; the charge stays spent. "
            "This is a fault in the software: please report it."
        )
