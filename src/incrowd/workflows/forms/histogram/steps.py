"""Steps: whether the steps of a histogram say what its guarantee says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from incrowd.core.certificate import Certificate
from incrowd.core.loss import THE_ROWS, Crowd, Grouped, Loss, NoisyWhenSmall, RobustlySampled, Sampled
from incrowd.workflows.forms.checks import drafted_of, steps_of, whole
from incrowd.workflows.forms.form import Problem
from incrowd.workflows.forms.histogram import noise

_PERSON = "keep rows of each person"
_FIRST = ["sample", "recode", "count"]
_MIDDLES = ("suppress counts", "noise when small", "noise", "threshold")
_KNOWN = (["suppress counts"], ["noise when small"], ["noise"], ["noise", "threshold"])
_LISTED = {
    "suppress counts": ("all", "those of at least k"),
    "noise when small": ("all", "those above zero"),
    "threshold": ("those from the threshold on",),
    "noise": ("all",),
    "select": ("those chosen",),
}
"""For the step that protects counts, which bins can be listed without telling more; a threshold comes before noise."""


def check_steps(certificate: Certificate) -> Problem | None:
    """Return where the steps contradict each other, the schema or the guarantee, or None."""
    try:
        steps = steps_of(certificate)
        middle = [name for name in _MIDDLES if name in steps]
        if middle not in _KNOWN:
            return Problem("these steps are not known here", undecided=True)
        return (
            check_start(certificate, [*middle, "publish counts"]) or check_bins(steps) or _promise(certificate, steps)
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return Problem("the steps cannot be read")


def check_start(certificate: Certificate, rest: list[str]) -> Problem | None:
    """Return that the steps up to the counts, with these after them, contradict the unit or the released columns."""
    unit, steps = certificate.guarantee.unit, steps_of(certificate)
    names = [str(step["step"]) for step in certificate.chain]
    if names != [*([_PERSON] if unit.column is not None else []), *_FIRST, *rest]:
        return Problem("these steps are not known here", undecided=True)
    kept = steps.get(_PERSON)
    if kept is not None and (kept["column"], kept["rows"]) != (unit.column, unit.max_rows):
        return Problem("the rows kept of each person are not those of the guarantee's unit")
    for step in ("recode", "count"):
        if [each["column"] for each in steps[step]["columns"]] != list(certificate.schema["released"]):
            return Problem(f"the columns of the step {step!r} are not the released ones")
    if drafted_of(steps["recode"]["columns"]):
        return Problem("bins were drafted from rows, and no promise holds for those")
    return None


def crowd_loss(certificate: Certificate) -> Loss:
    """Return the loss that a crowd-blending histogram of these steps has for the guarantee's unit."""
    steps = steps_of(certificate)
    small = steps.get("noise when small")
    if small is None:
        crowd = Crowd(whole(steps["suppress counts"]["k"]))
    else:
        crowd = NoisyWhenSmall(whole(small["k"]), Fraction(str(small["epsilon"])))
    sample = steps["sample"]
    if "low" in sample:
        low, high, largest = (Fraction(str(sample[name])) for name in ("low", "high", "max_rate"))
        drawn = {"before": THE_ROWS, "here": None}[sample["drawn"]]
        return RobustlySampled(low, high, whole(sample["irregular"]), largest, crowd, drawn)
    rate, rows = Fraction(str(sample["rate"])), certificate.guarantee.unit.max_rows
    if rate == 1:
        return crowd
    row = Sampled(rate, crowd)
    return Grouped(rows, row) if rows > 1 else row


def check_bins(steps: Mapping[str, Mapping[str, Any]]) -> Problem | None:
    """Hold the number of bins against their labels, and what is listed against what must be."""
    told, listed = steps["count"]["columns"], steps["count"]["listed"]
    sizes = [len(each["labels"]) if isinstance(each.get("labels"), list) else each.get("number") for each in told]
    closed = noise.known_bins(told)
    protected = next(allowed for step, allowed in _LISTED.items() if step in steps)
    if listed not in protected:
        return Problem("bins that these steps do not list are missing, or others are there")
    if listed == "all" and not closed:
        return Problem("not all bins are known, so not all can be listed")
    if closed and math.prod(sizes) != whole(steps["count"]["bins"]):
        return Problem("there are not as many bins as labels make")
    if not closed and not ({"suppress counts", "threshold"} & steps.keys()):
        return Problem("empty bins that are not known cannot have got noise")
    return None


def _promise(certificate: Certificate, steps: Mapping[str, Mapping[str, Any]]) -> Problem | None:
    if "noise" in steps:
        return noise.check_noise(certificate)
    if steps.get("suppress counts", {"below": 0})["below"] != 0:
        return Problem("counts below k do not become zero")
    small = steps.get("noise when small")
    if small is not None and small["noise"] != "integer Laplace":
        return Problem("its noise is not known here", undecided=True)
    if small is not None and Fraction(str(small["scale"])) * Fraction(str(small["epsilon"])) != 1:
        return Problem("the scale of the noise is not 1/epsilon")
    return (
        None
        if certificate.guarantee.loss == crowd_loss(certificate)
        else Problem("these steps do not give such a guarantee")
    )
