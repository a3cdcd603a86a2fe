"""A coarser table as a form: every promise is its parent's, and its file is held against the parent's file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from incrowd.core.certificate import Certificate, Claim
from incrowd.engines.local.smallest_class import smallest_class
from incrowd.errors import IncrowdError
from incrowd.methods.outcomes.histogram import COUNT, Histogram
from incrowd.methods.outcomes.microdata import WEIGHT, Microdata
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.workflows.forms.coarsened.parent import COARSEN, carried, charged, parent_of, step_of
from incrowd.workflows.forms.form import Form, Look, Problem
from incrowd.workflows.forms.histogram.contents import read
from incrowd.workflows.forms.microdata.form import published_rows, suppressed_below

_SAME = ("policy_hash", "dataset", "guarantee", "accounting", "ledger", "limits")


class _Coarsened:
    """A table that was computed from a released one."""

    name = "coarsened"
    ending = COARSEN

    def check_claim(self, claim: Claim, certificate: Certificate) -> Problem | None:
        """Derive the parent's claim again; the child's is that one, about the columns that are left."""
        parent, released = parent_of(certificate), list(certificate.schema.get("released", ()))
        for told in parent.claims:
            if claim in carried((told,), released):
                return _form_of(parent).check_claim(told, parent)
        return Problem("the release that this table was made from does not claim it")

    def check_complete(self, certificate: Certificate) -> Problem | None:
        parent = parent_of(certificate)
        if certificate.claims != carried(parent.claims, list(certificate.schema.get("released", ()))):
            return Problem("the claims are not those that the parent hands down")
        return _form_of(parent).check_complete(parent)

    def check_steps(self, certificate: Certificate) -> Problem | None:
        """Return where child and parent tell different stories, or where the parent contradicts itself."""
        try:
            parent, step = parent_of(certificate), certificate.chain[-1]
            named = [str(column["column"]) for column in step["columns"]]
            if len(parent.outputs) != 1 or not parent.names_itself():
                return Problem("the parent's certificate names no single file, or contradicts its id")
            if certificate.chain[:-1] != parent.chain:
                return Problem("the steps before the last are not the parent's")
            if any(getattr(certificate, name) != getattr(parent, name) for name in _SAME):
                return Problem("guarantee, accounting, dataset or policy are not the parent's")
            if named != certificate.schema["released"] or not set(named) <= set(parent.schema["released"]):
                return Problem("the columns are not among those that the parent released")
        except (KeyError, TypeError, ValueError, AttributeError, IncrowdError):
            return Problem("the step that made it coarser cannot be read")
        return _form_of(parent).check_steps(parent)

    def looks(self, certificate: Certificate, file: Path) -> Iterator[Look]:
        """Look at the file alone; whether it is what the parent's file gives needs that file too."""
        released = [str(name) for name in certificate.schema["released"]]
        table = read(file)
        counted = is_histogram(certificate)
        extra = [COUNT] if counted else [WEIGHT] if charged(certificate).chain[-1].get("weights") is True else []
        right = table.column_names == [*released, *extra]
        strange = None if right else Problem("the columns are not those that the certificate says are released")
        yield Look("columns in the file", strange, "they are the released ones, and no others")
        if counted:
            same = certificate.evidence.get("bins") == table.num_rows
            odd = None if same else Problem("there are not as many bins as the certificate's evidence says")
            yield Look("bins in the file", odd, f"{table.num_rows:,} bins")
        elif right:
            smallest, k = smallest_class(file, tuple(released)), suppressed_below(charged(certificate))
            rare = smallest is not None and (smallest < k or smallest != certificate.evidence.get("smallest class"))
            told = f"the rarest tuple occurs {smallest} times, k is {k}"
            yield Look("crowds in the file", Problem(told) if rare else None, told)

    def recount(self, certificate: Certificate, outcome: Outcome) -> Problem | None:  # noqa: ARG002 - a form has it
        return Problem("a coarser table is checked in its file, beside that of its parent")

    def reopen(self, certificate: Certificate, file: Path) -> Outcome:
        return Histogram(read(file)) if is_histogram(certificate) else _rows(certificate, file)


def is_histogram(certificate: Certificate) -> bool:
    """Whether the release that all of it came from was one of counts."""
    return charged(certificate).chain[-1].get("step") == "publish counts"


def _rows(certificate: Certificate, file: Path) -> Microdata:
    return published_rows(certificate, file, {})


def _form_of(parent: Certificate) -> Form:
    from incrowd.workflows.forms import form_of

    return COARSENED if step_of(parent) is not None else form_of(parent)


COARSENED: Form = _Coarsened()
