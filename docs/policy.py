"""Write the tables of reference/policy.md from the models that read policies.

python docs/policy.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from incrowd.workflows.policy.file import json_schema
from incrowd.workflows.registry import (
    graph_method_names,
    linked_method_names,
    method_class,
    method_names,
    series_method_names,
)

PAGE = Path(__file__).parent / "reference" / "policy.md"
NAMES = (*method_names(), *linked_method_names(), *series_method_names(), *graph_method_names())
BEGIN, END = "<!-- tables -->\n", "<!-- end of tables -->\n"


def tables() -> str:
    """Return a heading and a table for each section and each method, from the JSON Schema and the methods' pages."""
    schema = json_schema()
    methods = {f"{method_class(name).__name__}Section": name for name in NAMES}
    parts = [_table("The whole file", schema)]
    nested: list[str] = []
    for name, section in schema["$defs"].items():
        word = name.removesuffix("Section")
        known = word in _UNDER
        title = f"In a method: {_UNDER[word]}" if known else f"`{word.lower()}`"
        (nested if known else parts).append(_table(title, section, word))
    written = (each for each in schema["properties"]["release"]["anyOf"] if each.get("title") in methods)
    parts += [_method(methods[section["title"]], section) for section in written]
    return "\n".join(each for each in (*parts, *nested) if each)


_UNDER = {
    "Robust": "`robust`",
    "LevelsByLook": "`chosen`",
    "Population": "`population`",
    "Presence": "`presence`",
    "Recursive": "`recursive`",
    "Sensitive": "`sensitive`",
    "Unique": "`unique`",
    "Change": "`columns` of `pram`",
    "Ends": "`columns` of `coding`",
    "Dominance": "`dominance`",
    "KeyNoise": "`noise` of `protected-table`",
    "TableLayout": "each of `tables` of `protected-table`",
}
"""What stands under a key of a method: its class, and where it is written."""

_MEANINGS = {
    "Constraint.never": "Labels that no row has together, such as `{sex: M, pregnant: yes}`.",
    "Constraint.when": "Where a row has these labels, `then` says which others it may have.",
    "Constraint.then": "The labels that a row may have where `when` holds.",
    "Constraint.column": "A column that follows from the column `by`.",
    "Constraint.by": "The column that decides `column`: as `table` says, else by its own hierarchy.",
    "Constraint.table": "For each label of `by`, the label of `column`; public.",
    "Constraint.order": "Columns of numbers or days, each at least as large as the one before.",
    "Constraint.total": "A column that is the sum of `parts`.",
    "Constraint.parts": "The columns that add up to `total`.",
    "Constraint.unique": "A column in which no two rows are alike.",
    "Candidate.method": "The method that makes the rows.",
    "Candidate.workload": "As `workload` of the method.",
    "Candidate.rounds": "As `rounds` of the method.",
    "Candidate.cells": "As `cells` of the method.",
    "Candidate.target_column": "As `target_column` of the method.",
    "Candidate.detail": "As `detail` of the method.",
    "Robust.low": "The least chance with which a regular person was drawn.",
    "Robust.high": "The largest chance with which a regular person was drawn.",
    "Robust.irregular": "How many people may have been drawn with another chance.",
    "Robust.max_rate": "The largest chance of the irregular ones; by default `high`.",
    "Robust.probability": "The column with each person's chance, where the sample is drawn here.",
    "LevelsByLook.epsilon": "What the look cost.",
    "LevelsByLook.ledger": "The ledger that it was charged to.",
    "LevelsByLook.entry": "The number of its entry there.",
    "LevelsByLook.hash": "The hash of that entry.",
    "Population.file": "A file with one row for each person from whom the table could come.",
    "Population.k": "So many of these people look like each released row.",
    "Population.presence": "Bounds on the share of a class that is in the table.",
    "Presence.most": "The largest share of the people of a class who are in the table.",
    "Presence.least": "The least share.",
    "Recursive.c": "The most frequent value is rarer than c times all but the l − 1 most frequent ones.",
    "Recursive.l": "The l of that rule.",
    "Sensitive.l": "Every class shows at least this number of different values.",
    "Sensitive.entropy_l": "Every class has an entropy of at least ln of this number.",
    "Sensitive.recursive": "Recursive (c,l)-diversity: `c` and `l`.",
    "Sensitive.t": "Every class is at most so far away from all rows.",
    "Sensitive.distance": "How t is measured; by default `ordered` for numbers and dates, else `equal`.",
    "Sensitive.beta": "No value is more than 1 + beta times as frequent in a class as in all rows.",
    "Sensitive.enhanced_beta": "The same, and no more than 1 − ln q times where q is its share in all rows.",
    "Sensitive.disclosure": "No share in a class over that in all rows has a binary logarithm of this size or more.",
    "Sensitive.present_disclosure": "The same for the values that the class shows.",
    "Sensitive.harmless": "Values that give nothing away.",
    "Unique.share": "The largest share of released rows that may be unique among these people.",
    "Unique.people": "How many people there are.",
    "Unique.estimator": "How uniqueness is estimated; by default `zayatz`.",
    "Change.stay": "The probability that a category stays as it is; else it becomes another one. This, or `matrix`.",
    "Change.matrix": "For each category the probabilities of what it becomes, in their order. This, or `stay`.",
    "Change.across": "Further columns that change together with this one.",
    "Change.within": "A level of the column's hierarchy: categories change within its classes only.",
    "Change.invariant": "Whether the matrix is made one that leaves frequencies as they are on average.",
    "Change.margins": "Public frequencies for that, in place of those of the rows.",
    "Ends.bottom": "Smaller values become this.",
    "Ends.top": "Larger values become this.",
    "Dominance.n": "So many largest contributors are looked at.",
    "Dominance.k": "A cell is sensitive in which they make up more than this share.",
    "KeyNoise.largest": "The noise is at most this, up and down.",
    "KeyNoise.variance": "Its variance; its mean is zero.",
    "TableLayout.columns": "One to three columns of this table.",
    "TableLayout.levels": "The finest level of each that is shown, where it is not that of all tables.",
    "KeyNoise.gap": "No published count is from 1 to this number.",
}
"""What each key of such a part means; a key of a method is explained on the method's own page."""


def _method(name: str, section: dict[str, Any]) -> str:
    """Return the table of one method: types from the schema, meanings and defaults from the method's page."""
    page = (PAGE.parent.parent / "methods" / f"{name}.md").read_text(encoding="utf-8")
    page = re.sub(r"\{doc\}`(?=\w)", "{doc}`/methods/", page)  # seen from here
    said = {key: (meaning, default) for key, meaning, default in _OPTION.findall(page)}
    lines = ["| `method` | `" + name + "` | required | The name of this method. |"]
    for key, about in section["properties"].items():
        if key != "method":
            meaning, default = said[key]
            lines.append(f"| `{key}` | {_kind(about)} | {default} | {meaning[0].upper()}{meaning[1:]} |")
    told = f"{section.get('description', '')} All about it: {{doc}}`/methods/{name}`."
    return "\n".join([f"## `method: {name}`\n", f"{told}\n", *_HEAD, *lines, ""])


_HEAD = ("| key | value | default | meaning |", "|---|---|---|---|")
_OPTION = re.compile(r"^\| `(\w+)` \| (.*?) \| ([^|]*?) \|$", re.MULTILINE)


def _table(title: str, section: dict[str, Any], word: str = "") -> str:
    if "properties" not in section:
        return ""
    rows = [
        f"| `{field}` | {_kind(about)} | {_default(field, about, section)} | "
        f"{(about.get('description') or _MEANINGS.get(f'{word}.{field}', '')).replace('|', '&#124;')} |"
        for field, about in section["properties"].items()
    ]
    told = section.get("description", "").split("\n\n", maxsplit=1)[0].replace("\n", " ")
    return "\n".join([f"## {title}\n", f"{told}\n", *_HEAD, *rows, ""])


def _choices(about: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what may stand in a place, one after the other."""
    return [inner for each in about.get("anyOf", [about]) for inner in each.get("oneOf", [each])]


def _kind(about: dict[str, Any]) -> str:
    choices = [each for each in _choices(about) if each.get("type") != "null"]
    words = []
    for each in choices:
        if "$ref" in each:
            words.append(each["$ref"].rsplit("/", 1)[-1].removesuffix("Section").lower())
        elif "enum" in each or "const" in each:
            words.append(", ".join(f"`{value}`" for value in each.get("enum", [each.get("const")])))
        elif "anyOf" in each or "pattern" in each:  # a number that may be written as 1/3
            words.append("number")
        else:
            kind = each.get("type", "anything")
            most = f", at most {each['maximum']:,}" if "maximum" in each else ""
            words.append("text or number" if isinstance(kind, list) else _NAMES.get(kind, kind) + most)
    return " or ".join(dict.fromkeys(words))


_NAMES = {"string": "text", "array": "list", "object": "mapping", "boolean": "true or false", "integer": "whole number"}


def _default(field: str, about: dict[str, Any], section: dict[str, Any]) -> str:
    if field in section.get("required", []):
        return "required"
    default = about.get("default")
    return "" if default is None or isinstance(default, dict) else f"`{default}`"


def updated(page: str) -> str:
    """Return the page with its tables made anew."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n" + tables() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
