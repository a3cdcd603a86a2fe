"""Steps page: what each mask of a chain did to risk and utility, for the data holder; made from the plain form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from incrowd.drawing.charts import class_sizes
from incrowd.drawing.markup import joined, table, tag
from incrowd.workflows.assess.step_effects import MaskedStage, plain_effects, step_effects
from incrowd.workflows.attack.attack import INTERNAL
from incrowd.workflows.policy.internal import write_private

STEPS, PAGE = "steps.json", "steps.html"
_STYLE = (files("incrowd.workflows.report") / "style.css").read_text(encoding="utf-8")
_NONE = "–"
_HARDLY = 0.01
"""The share of changed values up to which the page says in words that a column was left as it is."""
_FOUND = 0.5
"""The share of rows linked by nearness from which the page says in words that the masks hide hardly anybody."""
_PRIVATE = 0o600
_OVER = "in the quasi-identifiers"
_RISK = ["After", "Rows", "Alone", "Smallest class", "Linked at random", "Linked by nearness"]
_COLUMN = ["Column", "After", "Changed", "Empty", "Frequencies moved", "Mean", "Deviation", "Correlation as read"]


def keep_steps(folder: Path, stages: Sequence[MaskedStage], quasi: Sequence[str]) -> None:
    """Keep what each step did with what is internal of a release, as numbers and as a page."""
    plain = plain_effects(step_effects(stages, quasi))
    write_private(folder / STEPS, plain)
    page = folder / PAGE
    page.touch(_PRIVATE)
    page.write_text(steps_page(plain), encoding="utf-8")


def kept_steps(folder: Path) -> Markup | None:
    """Return what each step did as the internal folder of a release has it; None where it has nothing of it."""
    file = folder / STEPS
    return steps_section(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None


def steps_page(plain: Mapping[str, Any]) -> str:
    """Return a whole page that stays with the data holder."""
    head = tag("head", tag("meta", charset="utf-8"), tag("title", "INTERNAL. Steps"), tag("style", Markup(_STYLE)))  # noqa: S704
    banner = tag("div", tag("span", f"INTERNAL: {INTERNAL}."), class_="banner", role="note")
    body = tag("body", banner, tag("main", tag("h1", "What each step did"), steps_section(plain)))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def steps_section(plain: Mapping[str, Any]) -> Markup:
    """Return risk and utility after each step: tables over all of them, and pictures before and after each."""
    steps = plain["steps"]
    named = [f"{place}. {step['title']}" if place else step["title"] for place, step in enumerate(steps)]
    return joined(
        [
            tag("h3", "What each step did to the risk"),
            table("Risk, step by step", _RISK, [_risk(name, step) for name, step in zip(named, steps, strict=True)]),
            tag("p", _explanation()),
            tag("h3", "What each step did to the columns"),
            table("Columns, step by step", _COLUMN, _columns(named, steps)),
            *(tag("p", tag("strong", sentence)) for sentence in _without_effect(steps)),
            *(part for pair in zip(pairwise(named), pairwise(steps), strict=True) for part in _pictures(*pair)),
        ]
    )


def _explanation() -> str:
    return (
        "Unique: rows that no other equals in the quasi-identifiers. Linked at random: the share of rows that are "
        "linked rightly by picking one of the equal ones. Linked by nearness: the share whose nearest row as "
        "read is their own, by the numbers that some step changes, among 2,000 rows at most."
    )


def _risk(name: str, step: Mapping[str, Any]) -> list[str]:
    near = _NONE if step["near"] is None else f"{step['near']:.4f}"
    return [name, f"{step['rows']:,}", f"{step['alone']:,}", f"{step['smallest']:,}", f"{step['blind']:.4f}", near]


def _columns(named: Sequence[str], steps: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    places = range(len(steps[0]["columns"]))
    return [_column(name, step["columns"][place]) for place in places for name, step in zip(named, steps, strict=True)]


def _without_effect(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what the masks left as it was: rows, columns, and rows that are still nearest to themselves as read."""
    last = steps[-1]
    if len(steps) < 2 or not last["rows"]:
        return []
    rows, untouched, near = last["rows"], last.get("untouched", 0), last["near"] or 0.0
    sentences = [f"The masks changed no value in {untouched:,} of {rows:,} rows."] if untouched else []
    if near >= _FOUND:
        sentences.append(
            f"The nearest row as read is the right one for {near:.1%} of the released rows: an attacker who "
            "knows these numbers finds the row, although they were changed. Use a stronger mask."
        )
    return sentences + [
        f"Column “{column['name']}”: the masks left {1 - column['changed']:.1%} of the values as they were read."
        for column in last["columns"]
        if column["changed"] <= _HARDLY
    ]


def _column(step: str, column: Mapping[str, Any]) -> list[str]:
    shares = [f"{column[name]:.1%}" for name in ("changed", "empty", "moved")]
    numbers = (column[name] for name in ("mean", "deviation", "correlation"))
    return [column["name"], step, *shares, *(_NONE if number is None else f"{number:.6g}" for number in numbers)]


def _pictures(named: tuple[str, str], steps: tuple[Mapping[str, Any], Mapping[str, Any]]) -> list[Markup]:
    """Return the classes before and after a step beside each other, under its sentence."""
    charts = [class_sizes(_sizes(step), f"rows: {name}", _OVER) for name, step in zip(named, steps, strict=True)]
    both = tag("div", *(tag("div", chart) for chart in charts if chart is not None), class_="pair")
    return [tag("h3", named[1]), tag("p", steps[1]["sentence"]), both]


def _sizes(step: Mapping[str, Any]) -> Any:
    sizes = np.array([int(size) for size in step["sizes"]], np.int64)
    return np.repeat(sizes, list(step["sizes"].values()))
