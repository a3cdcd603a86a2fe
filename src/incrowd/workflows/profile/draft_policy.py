"""The draft as a file: what is derived from rows is marked, and comments say what its owner has to decide."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.core.recoding import Recoding
from incrowd.core.schema import Column, Role
from incrowd.errors import OutputUnavailable
from incrowd.workflows.policy.columns import column_of
from incrowd.workflows.policy.sections import ColumnSection
from incrowd.workflows.profile.draft_columns import drafted_section
from incrowd.workflows.profile.profile import ColumnProfile, TableProfile

_WIDTH = 116
_RATE, _K = 0.1, 10
_HEAD = """\
# Drafted from the rows of {source}: a start, not a decision. It lists values that occur there, so keep it internal.
#
# 1. Check every role. An identifier is never released; everything else is, at its level.
# 2. What is marked `derived: rows` was read off the rows, and so may betray somebody: it voids every promise but
#    k-anonymity. Write what is publicly known instead and remove the mark; or, where a public source says the same, add
#    a line  public: "that source"  below it.
# 3. Choose levels by what the readers of the release need, not by trying which keeps the most rows.

incrowd: 1
dataset:
  name: {name}
  # unit: {{column: person_id, max_rows: 1}}   # if one person can have several rows
  # population: 1000000                      # public; how many people the data could be about
source: {address}
columns:
"""
_TAIL = """\
release:
  method: safe
  rate: 0.1
  target: {{epsilon: 1, delta: 1e-8}}   # delta: well below one over the number of people
  levels: {levels}
# While anything is derived from rows there is no epsilon, and the ledger refuses unless its owner gives a reason:
# budget: {{unbounded: "reason"}}
"""
_FEWEST_CELLS = 12


@dataclass(frozen=True)
class Origin:
    """Where the rows are: how the policy names them, and how a missing value is spelled there."""

    address: str
    nulls: tuple[str, ...] = ()


def draft(profile: TableProfile, origin: Origin) -> str:
    """Return the text of a policy that can be read and run as it is."""
    sections = {column.name: drafted_section(column) for column in profile.columns}
    levels = drafted_levels(profile, sections, _RATE, _K)
    source = _word(origin.address)
    if origin.nulls:
        source = f"{{path: {source}, nulls: {_listed(('', *origin.nulls))}}}"
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(origin.address).stem).strip("-.") or "data"
    head = _HEAD.format(source=_printable(origin.address), name=_word(stem), address=source)
    chosen = "{" + ", ".join(f"{_word(name)}: {level}" for name, level in levels.items()) + "}"
    columns = "".join(_column(column, sections[column.name]) for column in profile.columns)
    return head + columns + _TAIL.format(levels=_wrapped(chosen, 4))


def write_draft(text: str, path: Path) -> None:
    """Write a draft where nothing is yet."""
    failure = "a file of this name exists, and nothing is overwritten"
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
            return
    except FileExistsError:
        pass
    except OSError as error:
        failure = error.strerror or "the operating system refused"
    raise OutputUnavailable(f"{path} was not written: {failure}. Choose another name.")


def _column(column: ColumnProfile, section: dict[str, Any]) -> str:
    why = column.why_role
    if section["role"] == "identifier" != str(column.role):
        why = "no row has a value"
    if section["role"] == "identifier" != str(column.role) and column.facts.values is None:
        why = "text that nothing makes coarser cannot be released: list categories or give a hierarchy to change that"
    facts = f"{column.why_type}; {column.facts.spread.distinct} different values, {column.facts.missing} missing"
    lines = [f"  {_word(column.name)}:   # {facts}", f"    role: {section['role']}   # {why}"]
    for key, value in section.items():
        if key != "role":
            lines += _entry(key, value, 4)
    return "\n".join(lines) + "\n"


def _entry(key: str, value: Any, indent: int) -> list[str]:
    room = " " * indent
    if isinstance(value, dict):
        return [f"{room}{key}:", *(line for inner, item in value.items() for line in _entry(inner, item, indent + 2))]
    if key == "categories":
        return [f"{room}{key}: {_wrapped(_listed(value), indent + 2)}"]
    if isinstance(value, list):
        return [f"{room}{key}: [{', '.join(value)}]"]
    return [f"{room}{key}: {value}"]


def _listed(values: Sequence[str]) -> str:
    return "[" + ", ".join(_quoted(value) for value in values) + "]"


def _wrapped(text: str, indent: int) -> str:
    """Break a long list or mapping between its items; spaces inside quotes are kept by not breaking there."""
    if len(text) + indent + 14 <= _WIDTH:
        return text
    items = re.findall(r'(?:"(?:[^"\\]|\\.)*"|[^",])+,?|,', text)
    lines, line = [], ""
    for item in (each.strip(" ") for each in items):
        if line and len(line) + len(item) + indent + 1 > _WIDTH:
            lines.append(line)
            line = ""
        line = f"{line} {item}" if line else item
    return textwrap.indent("\n".join([*lines, line]), " " * indent).lstrip()


def _word(text: str) -> str:
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_./-]*", text) and text.lower() not in ("null", "true", "false")
    return text if plain else _quoted(text)


def _quoted(text: str) -> str:
    return '"' + "".join(_escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def drafted_levels(profile: TableProfile, sections: Mapping[str, Any], rate: float, k: int) -> dict[str, int]:
    """Return a level for each released column: the largest is raised until k sampled rows a cell are in sight.

    Only the sizes of the drafted domains and the number of rows decide, not how the rows fall into cells.
    """
    distinct = {column.name: column.facts.spread.distinct for column in profile.columns}
    columns = [column_of(name, ColumnSection(**section), Path()) for name, section in sections.items()]
    free = [column for column in columns if column.role is not Role.IDENTIFIER]
    levels = {column.name: 0 for column in free}
    room = max(_FEWEST_CELLS, profile.rows * rate / k)
    while free:
        sizes = {column.name: _classes(column, levels[column.name], distinct[column.name]) for column in free}
        if math.prod(sizes.values()) <= room and not any(_open(column, levels[column.name]) for column in free):
            break
        widest = max(free, key=lambda column: (_open(column, levels[column.name]), sizes[column.name]))
        levels[widest.name] += 1
    return {name: level for name, level in levels.items() if level}


def _classes(column: Column, level: int, distinct: int) -> float:
    """Return how many classes a level has, as declared, or about how many of the values that occur."""
    members = Recoding(column, level).classes
    if members is not None:
        return max(1, len(members.marks))
    return max(1.0, math.pow(distinct, 1.0 - level / column.hierarchy.height))


def _open(column: Column, level: int) -> bool:
    """Return whether free text or bare decimals would be released."""
    return level == 0 and column.hierarchy.members(0) is None
