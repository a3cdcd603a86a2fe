"""Form: how a kind of release is recounted, verified and shown; a certificate's last step tells which it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from incrowd.core.certificate import Certificate, Claim
    from incrowd.methods.outcomes.outcome import Outcome


@dataclass(frozen=True)
class Problem:
    """Why something does not hold, or why it could not be decided."""

    text: str
    undecided: bool = False


@dataclass(frozen=True)
class Look:
    """One look into a written file: what was looked at, what is wrong (None: nothing), and what holds otherwise."""

    about: str
    problem: Problem | None
    otherwise: str


class Form(Protocol):
    """What is known about one kind of release, without the data and without the accountants.

    The looks into a file are taken twice: before a release appears, where a problem stops it, and whenever somebody
    verifies it.  Where a release consists of several tables, `file` is the first, and the others lie beside it.
    """

    name: str
    """What an outcome calls its form."""
    ending: str
    """The step that ends the chain of such a release."""

    def check_claim(self, claim: Claim, certificate: Certificate) -> Problem | None:
        """Derive a claim again from its parameters; return what is wrong with it, or None."""

    def check_complete(self, certificate: Certificate) -> Problem | None:
        """Return which claim the guarantee carries and the certificate keeps silent about, or None."""

    def check_steps(self, certificate: Certificate) -> Problem | None:
        """Return where the steps contradict the guarantee or the schema, or None."""

    def looks(self, certificate: Certificate, file: Path) -> Iterator[Look]:
        """Read the written file and hold it against the certificate."""

    def recount(self, certificate: Certificate, outcome: Outcome) -> Problem | None:
        """Hold an outcome that stays in memory against its certificate."""

    def reopen(self, certificate: Certificate, file: Path) -> Outcome:
        """Read what was published, as anyone can, for the pictures of the report."""
