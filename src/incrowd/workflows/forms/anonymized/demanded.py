"""Demanded: what a cutting step says that every class meets, and so which claims must be made and what the loss is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from incrowd.core.certificate import Certificate, Claim
from incrowd.core.domain import Type
from incrowd.core.loss import Syntactic
from incrowd.workflows.forms.checks import drafted_of, steps_of

OF_COLUMN: Mapping[str, Mapping[str, str]] = {
    "distinct l-diversity": {"l": "l"},
    "entropy l-diversity": {"l": "entropy l"},
    "recursive (c,l)-diversity": {"c": "c", "l": "recursive l"},
    "t-closeness": {"t": "t"},
    "β-likeness": {"beta": "beta"},
    "enhanced β-likeness": {"beta": "enhanced beta"},
    "δ-disclosure privacy": {"disclosure": "disclosure"},
}
"""The claims about one sensitive column: for each of their parameters the demand that it repeats."""
OF_TABLE: Mapping[str, Mapping[str, str]] = {
    "k-anonymity": {"k": "k"},
    "k-map": {"k": "k-map", "population": "population"},
    "δ-presence": {"least": "least presence", "most": "most presence", "population": "population"},
    "average risk": {"limit": "average risk"},
    "population uniqueness": {"limit": "unique", "among": "unique among", "estimate": "unique by"},
}
"""The claims about all classes, in the same way."""
OF_ALL_ROWS = ("t-closeness", "β-likeness", "enhanced β-likeness", "δ-disclosure privacy")
"""The claims that compare a class with all rows."""
OF_PEOPLE = ("k-map", "δ-presence")
"""The claims that compare a class with a population."""
KINDS = (*OF_TABLE, *OF_COLUMN)

_GENERAL = ("k", "l", "entropy l", "t")
_TOGETHER = (
    "average risk", "unique", "unique among", "unique by", "k-map", "least presence", "most presence", "population"
)  # fmt: skip
_EACH = ("l", "entropy l", "c", "recursive l", "t", "distance", "beta", "enhanced beta", "disclosure", "harmless")
_SHARE = "at most a share of "


def key_of(until: Mapping[str, Any], name: str, column: str | None) -> str:
    """Return under which name something is demanded of a column: of it by name, or of all.

    >>> key_of({"l": 2, "l of ill": 3}, "l", "ill"), key_of({"l": 2}, "l", "ill")
    ('l of ill', 'l')
    """
    named = f"{name} of {column}"
    return named if column is not None and named in until else name


def expected(cut: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Return every claim that the demands call for: its kind, and the sensitive column it is about.

    >>> list(expected({"until": {"k": 2, "l of ill": 3}, "sensitive": ["ill"]}))
    [('k-anonymity', None), ('distinct l-diversity', 'ill')]
    """
    until = cut["until"]
    yield from ((kind, None) for kind, names in OF_TABLE.items() if all(name in until for name in names.values()))
    for column in cut["sensitive"]:
        for kind, names in OF_COLUMN.items():
            if all(key_of(until, name, column) in until for name in names.values()):
                yield kind, column


def left_out(cut: Mapping[str, Any]) -> Fraction:
    """Return the share of the rows that may be missing from the output.

    >>> left_out({"rows left out": "at most a share of 1/20"}), left_out({})
    (Fraction(1, 20), Fraction(0, 1))
    """
    return Fraction(str(cut.get("rows left out", f"{_SHARE}0")).removeprefix(_SHARE))


def shown(claim: Claim, certificate: Certificate) -> bool:
    """Return whether a claim can be counted again in the output, by what the steps tell."""
    cut = steps_of(certificate)["cut"]
    if claim.kind in OF_PEOPLE or (claim.kind in OF_ALL_ROWS and left_out(cut)):
        return False
    return claim.kind != "t-closeness" or _measurable(claim, certificate)


def type_of(certificate: Certificate, name: str) -> Type | None:
    """Return the declared type of a column, or None."""
    types = {str(column["name"]): str(column["type"]) for column in certificate.schema.get("columns", ())}
    return Type(types[name]) if name in types else None


def _measurable(claim: Claim, certificate: Certificate) -> bool:
    """Return whether how far values are apart is told: they are equally far, or in the order of numbers, or listed."""
    steps, column = steps_of(certificate), str(claim.parameters["sensitive"])
    places = steps["cut"].get("places", {}).get(column, {})
    if claim.parameters["distance"] == "hierarchical":
        return "labels above" in places
    levels = {str(each["column"]): each["level"] for each in steps["recode"]["columns"]}
    by_type = levels[column] == 0 and type_of(certificate, column) in (Type.INTEGER, Type.DECIMAL, Type.DATE)
    return claim.parameters["distance"] == "equal" or by_type or "in order" in places


def loss_of(certificate: Certificate) -> Syntactic:
    """Return the loss of a table that meets what the cutting step demands, or raise TypeError."""
    steps = steps_of(certificate)
    drafted, cut = drafted_of(steps["recode"]["columns"]), steps["cut"]
    each = [f"{name} of {column}" for column in sorted(cut["sensitive"]) for name in _EACH]
    known = [*_GENERAL, *_TOGETHER, *each]
    until = cut["until"]
    if not set(until) <= set(known):
        raise TypeError("a demand that is not known here")
    told = [(name, _text(until[name])) for name in known if name in until]
    return Syntactic("k-anonymity", (*told, *([("drafted from rows", ", ".join(drafted))] if drafted else [])))


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
