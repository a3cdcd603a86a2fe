"""Forms: the kinds of releases, read top to bottom."""

from __future__ import annotations

from incrowd.core.certificate import Certificate
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.workflows.forms.anonymized.form import ANONYMIZED
from incrowd.workflows.forms.anonymized.partitioned import PARTITIONED
from incrowd.workflows.forms.answer.form import ANSWER
from incrowd.workflows.forms.blanked.form import BLANKED
from incrowd.workflows.forms.chosen.form import CHOSEN
from incrowd.workflows.forms.coarsened.form import COARSENED
from incrowd.workflows.forms.form import Form
from incrowd.workflows.forms.histogram.form import HISTOGRAM
from incrowd.workflows.forms.itemsets.form import ITEMSETS
from incrowd.workflows.forms.microdata.form import MICRODATA
from incrowd.workflows.forms.points.form import POINTS
from incrowd.workflows.forms.selection.form import SELECTION
from incrowd.workflows.forms.sliced.form import SLICED

FORMS: tuple[Form, ...] = (
    MICRODATA,
    CHOSEN,
    HISTOGRAM,
    SELECTION,
    POINTS,
    ANONYMIZED,
    BLANKED,
    ITEMSETS,
    PARTITIONED,
    SLICED,
    COARSENED,
    ANSWER,
)


def form_of(released: Certificate | Outcome) -> Form:
    """Return the form of an outcome, or of a certificate by its last step; a strange step is microdata's to refuse."""
    if isinstance(released, Outcome):
        return next(form for form in FORMS if form.name == released.form)
    last = released.chain[-1].get("step") if released.chain else None
    return next((form for form in FORMS if form.ending == last), MICRODATA)
