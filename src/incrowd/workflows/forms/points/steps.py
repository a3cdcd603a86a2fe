"""Steps: whether the steps of released points say what their guarantee says."""

from __future__ import annotations

from fractions import Fraction

from incrowd.core.certificate import Certificate
from incrowd.errors import InvalidParameter
from incrowd.workflows.forms.checks import steps_of
from incrowd.workflows.forms.form import Problem
from incrowd.workflows.forms.histogram.steps import crowd_loss
from incrowd.workflows.forms.points.contents import grid_of, place_of

_PERSON = "keep rows of each person"
_SMALL = ("suppress counts", "noise when small")


def check_steps(certificate: Certificate) -> Problem | None:
    """Return where the steps contradict each other, the schema or the guarantee, or None."""
    try:
        return _order(certificate) or _grid(certificate) or _promise(certificate)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, InvalidParameter):
        return Problem("the steps cannot be read")


def _order(certificate: Certificate) -> Problem | None:
    unit, names = certificate.guarantee.unit, [str(step["step"]) for step in certificate.chain]
    first = [_PERSON] if unit.column is not None else []
    if not any(names == [*first, "sample", "grid", small, "place points"] for small in _SMALL):
        return Problem("these steps are not known here", undecided=True)
    kept = steps_of(certificate).get(_PERSON)
    if kept is not None and (kept["column"], kept["rows"]) != (unit.column, unit.max_rows):
        return Problem("the rows kept of each person are not those of the guarantee's unit")
    return None


def _grid(certificate: Certificate) -> Problem | None:
    step, grid = steps_of(certificate)["grid"], grid_of(certificate)
    place_of(certificate)
    if any(axis.slices.pieces != told["pieces"] for axis, told in zip(grid.axes, step["columns"], strict=True)):
        return Problem("a side of the box cannot have as many pieces")
    if str(grid.size) != str(step["cells"]):
        return Problem("there are not as many cells as the sides of the box make")
    if not set(grid.names) <= set(certificate.schema["released"]):
        return Problem("the grid has columns that are not released")
    return None


def _promise(certificate: Certificate) -> Problem | None:
    small = steps_of(certificate).get("noise when small")
    if small is None and steps_of(certificate)["suppress counts"]["below"] != 0:
        return Problem("cells below k do not become empty")
    if small is not None and small["noise"] != "integer Laplace":
        return Problem("its noise is not known here", undecided=True)
    if small is not None and (
        small["clamp"] is not True or Fraction(str(small["scale"])) * Fraction(str(small["epsilon"])) != 1
    ):
        return Problem("the noise is not held between 0 and k − 1, or its scale is not 1/epsilon")
    held = certificate.guarantee.loss == crowd_loss(certificate)
    return None if held else Problem("these steps do not give such a guarantee")
