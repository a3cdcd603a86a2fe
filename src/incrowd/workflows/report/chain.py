"""Chain: the mechanism's steps in order, each as a small picture and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from incrowd.core.certificate import Certificate
from incrowd.core.rounding import exact
from incrowd.core.words import counted, share
from incrowd.workflows.report.answer_steps import answer_words
from incrowd.workflows.report.blanks import blank_words
from incrowd.workflows.report.count_steps import words_of
from incrowd.workflows.report.glyphs import START, Scene, picture
from incrowd.workflows.report.markup import Html, joined, section, table, tag
from incrowd.workflows.report.slices import slice_words


@dataclass(frozen=True)
class Step:
    """What happens to the rows, in words and as a scene after it happened."""

    title: str
    text: str
    scene: Scene | None


def chain_section(certificate: Certificate) -> Html:
    """Return the steps from the table to what is published."""
    first = Step("The table", "Rows as they were recorded. They stay with the data holder.", START)
    steps, scene = [first], START
    for plain in certificate.chain:
        step = _step(plain, scene)
        scene = replace(step.scene, gone=(), crossed=()) if step.scene else scene
        steps.append(step)
    recoded = recoded_columns(certificate)
    return section(
        "chain",
        "How it was made",
        tag("p", "The steps in order. The policy fixes every setting."),
        tag("ol", *map(_card, steps), class_="chain"),
        tag("p", tag("small", _KEY), class_="key"),
        _recodings(recoded) if recoded else "",
    )


def recoded_columns(certificate: Certificate) -> list[Mapping[str, Any]]:
    """Return what the certificate says of each recoded column."""
    return [column for step in certificate.chain if step.get("step") == "recode" for column in step.get("columns", ())]


def sampling_rate(certificate: Certificate) -> Fraction:
    """Return the rate of the secret sample; 1 if every row was read."""
    rates = [exact(str(step.get("rate")), "the rate") for step in certificate.chain if step.get("step") == "sample"]
    return math.prod(rates, start=Fraction(1))


_MISSING = {"class": "a class of their own", "drop": "row is left out"}
_OUTSIDE = {"ends": "nearest bound", "other": "one class for all", "drop": "row is left out"}
_KEY = (
    "Shapes stand for values and shades for details of them; dashed outlines are rows that take no part, crosses "
    "rows that are dropped. The pictures show the idea, not the data."
)


def _card(step: Step) -> Html:
    shown = picture(step.scene) if step.scene else ""
    return tag("li", shown, tag("h3", step.title), tag("p", step.text))


def _step(plain: Mapping[str, Any], scene: Scene) -> Step:
    match plain.get("step"):
        case "keep rows of each person":
            kept = "one row" if plain.get("rows") == 1 else f"at most {counted(int(plain.get('rows', 1)), 'row')}"
            text = (
                f"Of each person, known by the column “{plain.get('column')}”, {kept} takes part, {plain.get('rule')}."
            )
            return Step("Few rows a person", text, scene.without((6,)))
        case "sample":
            return _sample(plain, scene)
        case "recode":
            columns = plain.get("columns", ())
            coarser = [column for column in columns if str(column.get("level")) != "0"]
            text = f"{len(coarser)} of {counted(len(columns), 'column')} become coarser, row by row, by declared rules."
            return Step("Recode", text, replace(scene, coarse=True))
        case "suppress":
            text = f"Combinations that occur fewer than {plain.get('k')} times are dropped, over {plain.get('over')}."
            return Step("Drop what is rare", text, scene.without((3,), crossed=True))
        case "grid":
            columns = ", ".join(f"{column.get('column')}" for column in plain.get("columns", ()))
            text = f"The declared bounds of {columns} make a box, cut into {int(plain.get('cells', 1)):,} cells."
            return Step("Into cells", f"{text} Each row falls into one of them.", replace(scene, coarse=True))
        case "place points":
            text = f"Every cell gets as many new points as its count says: {plain.get('rule')}. No row is published."
            return Step("Make points", text, replace(scene, ordered=True))
        case "cut" | "cut items":
            return _cut(plain, scene)
        case "arrange" | "arrange by chosen cuts" | "arrange sets" | "arrange with missing cells":
            text = f"Rows are sorted by {plain.get('by')}, so that their order says nothing."
            return Step("Publish, sorted", text, replace(scene, ordered=True))
        case "choose cuts":
            text = (
                f"The table is cut into at most {2 ** int(plain.get('depth', 0)):,} boxes. A private selection with an "
                f"ε of {plain.get('epsilon')} places the cuts; it reads all rows."
            )
            return Step("Choose cuts privately", text, replace(scene, coarse=True))
        case "coarsen":
            names = ", ".join(str(column.get("column")) for column in plain.get("columns", ()))
            text = f"The released table was made coarser, down to {names}. No row was read again, and nothing spent."
            return Step("Make coarser", text, scene)
        case "order":
            weighted = " Every row carries the same weight." if plain.get("weights") is True else ""
            text = f"Rows are sorted by {plain.get('by')}, so that their order says nothing.{weighted}"
            return Step("Publish, sorted", text, replace(scene, ordered=True))
    if (
        counted_words := answer_words(plain) or words_of(plain) or slice_words(plain) or blank_words(plain)
    ) is not None:
        return Step(*counted_words, None)
    told = "; ".join(f"{name}: {value}" for name, value in plain.items() if name != "step")
    return Step(str(plain.get("step")), told, None)


def _cut(plain: Mapping[str, Any], scene: Scene) -> Step:
    columns = plain.get("columns", ())
    if plain.get("step") == "cut items":
        classes = " among rows that agree in the other quasi-identifiers" if columns else ""
        text = (
            f"The items in “{plain.get('items')}” are replaced by coarser ones until every combination of up to "
            f"{plain.get('m')} of them that occurs, occurs in {plain.get('k')} rows{classes}. Items left out: "
            f"{plain.get('items left out')}. This looks at all rows."
        )
        return Step("Make items coarser", text, replace(scene, coarse=True))
    until = ", ".join(f"{name} = {_listed(value)}" for name, value in dict(plain.get("until", {})).items())
    text = (
        f"The table is cut along {counted(len(columns), 'quasi-identifier')}, at {plain.get('at')}, as long as "
        f"every class keeps {until}. Classes are shown as {plain.get('shown as')}; other columns stay as they "
        "are. The cuts look at all rows."
    )
    return Step("Cut into classes", text, replace(scene, coarse=True))


def _sample(plain: Mapping[str, Any], scene: Scene) -> Step:
    if plain.get("drawn") == "here":
        text = (
            f"A secret coin for each row draws it with the row's own chance, from {plain.get('low')} to "
            f"{plain.get('high')}. Nobody knows which were drawn; the coins are forgotten."
        )
        return Step("Secret sample", text, scene.without((5, 9)))
    if "low" in plain:
        some = f", and up to {plain.get('max_rate')} for {plain.get('irregular')} of the people"
        text = (
            f"The rows are a sample that others drew, with chances from {plain.get('low')} to {plain.get('high')}"
            f"{some if plain.get('irregular') else ''}. Every row is read; what protects is that nobody knows who was "
            "drawn."
        )
        return Step("A sample drawn before", text, scene)
    if str(plain.get("rate")) == "1":
        return Step("No sample", "Every row is read. Without a secret sample there is no epsilon.", scene)
    drawn = share(str(plain.get("rate")))
    text = f"A secret coin for each row draws {drawn} on average. Nobody knows which; the coins are forgotten."
    return Step("Secret sample", text, scene.without((5, 9)))


def _recodings(columns: list[Mapping[str, Any]]) -> Html:
    rows = [
        [
            column.get("column"),
            _level(column),
            column.get("rule", ""),
            _provenance(str(column.get("provenance", ""))),
            _MISSING.get(str(column.get("missing")), column.get("missing", "")),
            _OUTSIDE.get(str(column.get("outside")), column.get("outside", "")),
        ]
        for column in columns
    ]
    head = ["Column", "Level", "Rule", "Where the rule comes from", "Missing values", "Values outside"]
    return joined(
        [tag("h3", "Recoding, column by column"), table("Recoding of each column", head, rows, class_="untitled")]
    )


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _level(column: Mapping[str, Any]) -> str:
    level, of = column.get("level"), column.get("of")
    if str(level) == "0":
        return "0: as it is"
    return f"{level} of {of}: all the same" if level == of else f"{level} of {of}"


def _provenance(words: str) -> Html:
    return tag("strong", f"⚠ {words}", class_="bad") if words == "drafted from rows" else tag("span", words)
