"""Forms: the kinds of releases, read top to bottom."""

from __future__ import annotations

from incrowd.core.certificate import Certificate
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.workflows.forms.form import Form
from incrowd.workflows.forms.microdata.form import MICRODATA

FORMS: tuple[Form, ...] = (MICRODATA,)


def form_of(released: Certificate | Outcome) -> Form:
    """Return the form of an outcome, or of a certificate by its last step; a strange step is microdata's to refuse."""
    if isinstance(released, Outcome):
        return next(form for form in FORMS if form.name == released.form)
    last = released.chain[-1].get("step") if released.chain else None
    return next((form for form in FORMS if form.ending == last), MICRODATA)
