"""What a table of a certain form claims, and which attacks it leaves open: an honest name, and no epsilon."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from incrowd.core.certificate import Claim, Precondition, Status
from incrowd.core.schema import Role, Schema
from incrowd.core.unit import Kind, Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.demands import Demands
from incrowd.methods.crowds.safe_claims import PERSON_COLUMN, ROW_IS_PERSON

__all__ = [
    "BECAUSE",
    "EXTREMES",
    "HOMOGENEITY",
    "INTERSECTION",
    "MINIMALITY",
    "QUASI",
    "Demands",
    "Form",
    "assumptions",
    "claims",
    "quasi_identifiers",
]

QUASI = "people can be looked up by the quasi-identifiers and by no other column"
BECAUSE = "counted in the output: a property of its form, which bounds nothing for those who know more"

HOMOGENEITY = "homogeneity: a class whose members agree in a sensitive value gives that value away"
EXTREMES = "extremes: a range shows the least and the greatest value in it, and they are somebody's"
INTERSECTION = "intersection: a second release, or outside knowledge, can split classes"
MINIMALITY = (
    "minimality: classes were cut by looking at all rows, so somebody who knows the method and the others' rows "
    "can conclude from where they end"
)
_HARMLESS = "harmless values: that somebody has one of those named as harmless is not hidden"
_INSIDERS = (
    "insiders: somebody who knows who is in the table sees its classes, which may be as small as k-anonymity says"
)

_COUNTED = Precondition("the written output was counted again", Status.CHECKED)
_ALL_ROWS = Precondition(
    "each class was held against all rows, those left out included, when it was made; the file alone does not show it",
    Status.PROVED,
)
_DISTANT = Precondition(
    "each class was measured when it was made; how far its many values are apart is not told here", Status.PROVED
)
_PEOPLE = (
    Precondition(
        "each class was held against the population when it was made; the file alone does not show it", Status.PROVED
    ),
    Precondition("the population file has one row for each person from whom the table could come", Status.ASSUMED),
)
_SAMPLE = Precondition("the rows are a simple random sample of so many people", Status.ASSUMED)


@dataclass(frozen=True)
class Form:
    """Which columns make a class, and what attacks the method leaves open beside those of every such table.

    `all_rows` tells whether every row is in the output: only then does it show how far a class is from all rows.
    """

    quasi: tuple[str, ...]
    left_open: tuple[str, ...] = field(default=(EXTREMES, MINIMALITY))
    all_rows: bool = True


def quasi_identifiers(schema: Schema) -> tuple[str, ...]:
    """Return the columns that make a class, or refuse a schema without one."""
    found = tuple(column.name for column in schema.released if column.role is Role.QUASI)
    if not found:
        raise InvalidParameter("no column can be looked up: give at least one column the role quasi.")
    return found


def assumptions(unit: Unit) -> frozenset[str]:
    """Return what must be true outside our code for the form of a table to mean anything."""
    return frozenset({QUASI, PERSON_COLUMN if unit.kind is Kind.PERSON else ROW_IS_PERSON})


def claims(demands: Demands, form: Form, schema: Schema) -> tuple[Claim, ...]:
    """Return a claim for each demand, k-anonymity first."""
    unit = schema.unit
    several = {"people": math.ceil(demands.k / unit.max_rows)} if unit.max_rows > 1 else {}
    people = ("k counts rows: a class may be as few people as `people` says",) if unit.max_rows > 1 else ()
    told = [
        _Told("k-anonymity", {"k": demands.k, **several}, _THEOREMS["k-anonymity"], open=(*people, HOMOGENEITY)),
        *(each for column in demands.about(schema) for each in _about_column(demands, form, schema, column)),
        *_about_all(demands),
    ]
    return tuple(each.claim(form, unit, people) for each in told)


@dataclass(frozen=True)
class _Told:
    """One claim before it is written out."""

    kind: str
    given: Mapping[str, Any]
    theorem: str
    shown: tuple[Precondition, ...] = (_COUNTED,)
    open: tuple[str, ...] = ()

    def claim(self, form: Form, unit: Unit, people: tuple[str, ...]) -> Claim:
        assumed = (Precondition(text, Status.ASSUMED) for text in sorted(assumptions(unit)))
        open_ = tuple(dict.fromkeys((*people, *self.open, *form.left_open, INTERSECTION)))
        given = {**self.given, "columns": list(form.quasi)}
        return Claim(self.kind, given, str(unit), self.theorem, (*self.shown, *assumed), open_)


def _about_column(demands: Demands, form: Form, schema: Schema, column: str) -> Iterator[_Told]:
    told = demands.of(column).told()
    about = {"sensitive": column, **({"harmless": told["harmless"]} if "harmless" in told else {})}
    open_ = (_HARMLESS,) if "harmless" in told else ()
    for kind, names in _OF_COLUMN.items():
        if not all(name in told for name in names.values()):
            continue
        given = {parameter: told[name] for parameter, name in names.items()} | about
        if kind == "t-closeness":
            given["distance"] = demands.distance(schema, column)
        shown = _COUNTED if form.all_rows or kind not in _OF_ALL_ROWS else _ALL_ROWS
        if shown is _COUNTED and kind == "t-closeness" and not demands.measurable(schema, column):
            shown = _DISTANT
        yield _Told(kind, given, _THEOREMS[kind], (shown,), open_)


def _about_all(demands: Demands) -> Iterator[_Told]:
    told, open_ = demands.told(), (HOMOGENEITY,)
    if "k-map" in told:
        given = {"k": told["k-map"], "population": told["population"]}
        yield _Told("k-map", given, _THEOREMS["k-map"], _PEOPLE, (*open_, _INSIDERS))
    if "most presence" in told:
        given = {"least": told["least presence"], "most": told["most presence"], "population": told["population"]}
        yield _Told("δ-presence", given, _THEOREMS["δ-presence"], _PEOPLE, open_)
    if "average risk" in told:
        yield _Told("average risk", {"limit": told["average risk"]}, _THEOREMS["average risk"], open=open_)
    if "unique" in told:
        kind, given = "population uniqueness", {"limit": told["unique"], "among": told["unique among"]}
        given |= {"estimate": told["unique by"]}
        yield _Told(kind, given, _THEOREMS[kind], (_COUNTED, _SAMPLE), open_)


_OF_COLUMN: Mapping[str, Mapping[str, str]] = {
    "distinct l-diversity": {"l": "l"},
    "entropy l-diversity": {"l": "entropy l"},
    "recursive (c,l)-diversity": {"c": "c", "l": "recursive l"},
    "t-closeness": {"t": "t"},
    "β-likeness": {"beta": "beta"},
    "enhanced β-likeness": {"beta": "enhanced beta"},
    "δ-disclosure privacy": {"disclosure": "disclosure"},
}
"""The claims about one sensitive column: for each of their parameters the demand that it is."""
_OF_ALL_ROWS = ("t-closeness", "β-likeness", "enhanced β-likeness", "δ-disclosure privacy")
_THEOREMS: Mapping[str, str] = {
    "k-anonymity": (
        "Samarati & Sweeney 1998, counted: every combination of the quasi-identifiers occurs at least k times"
    ),
    "distinct l-diversity": (
        "Machanavajjhala et al. 2006, counted: every class shows at least l values of the sensitive column"
    ),
    "entropy l-diversity": (
        "Machanavajjhala et al. 2006, Definition 4.1, counted: the entropy of every class is at least ln l"
    ),
    "recursive (c,l)-diversity": (
        "Machanavajjhala et al. 2006, Definition 4.2, counted: the most frequent value of every class is rarer than c "
        "times all but the l − 1 most frequent"
    ),
    "t-closeness": "Li, Li & Venkatasubramanian 2007, counted: no class is further than t from the whole table",
    "β-likeness": (
        "Cao & Karras 2012, Definition 2, counted: no value is more than 1 + β times as frequent in a class as in all "
        "rows"
    ),
    "enhanced β-likeness": (
        "Cao & Karras 2012, Definition 3, counted: no value of share q in all rows is more than 1 + min(β, −ln q) "
        "times as frequent in a class"
    ),
    "δ-disclosure privacy": (
        "Brickell & Shmatikov 2008, Definition 1, counted: the share of every value in a class, over its share in all "
        "rows, has a binary logarithm below δ in size"
    ),
    "k-map": "Sweeney 2001, counted: at least k people of the population look like each released row",
    "δ-presence": (
        "Nergiz, Atzori & Clifton 2007, Definition 2, counted: the share of the people of each released class who are "
        "in the table lies between two bounds"
    ),
    "average risk": "El Emam 2013, counted: classes over rows",
    "population uniqueness": "Zayatz 1991, Hoshino 2001, Chen & Keller-McNulty 1998 and, between them, Dankar et al. "
    "2012: the share of released rows that are unique among so many people, by the estimate that is named",
}
