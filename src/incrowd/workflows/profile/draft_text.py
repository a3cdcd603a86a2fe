"""The text of a draft: what is requested, and YAML with comments on what the data holder has to decide."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from incrowd.errors import InvalidParameter
from incrowd.workflows.profile.draft_columns import DraftColumn
from incrowd.workflows.profile.profile import PersonColumn


class DraftGoal(StrEnum):
    """What is released: rows, synthetic rows, counts, a table with totals, answers, or rows under k-anonymity alone."""

    MICRODATA = "microdata"
    SYNTHETIC = "synthetic"
    COUNTS = "counts"
    TABLE = "table"
    QUERIES = "queries"
    CLASSIC = "classic"


class IntendedUse(StrEnum):
    """What readers do with a release."""

    ROWS = "rows"
    TABLES = "tables"


class Readers(StrEnum):
    """Who will use a release: everybody, named recipients under a contract, or the data holder's own organization."""

    PUBLIC = "public"
    CONTRACT = "contract"
    OWN = "own"


_LEAST = {
    Readers.PUBLIC: (11, "for the public: European Medicines Agency, Policy 0070"),
    Readers.CONTRACT: (5, "a common custom for recipients under contract"),
    Readers.OWN: (3, "a common custom within one organization"),
    None: (5, "a common custom; more for the public, less within one organization"),
}
"""The smallest class or count of a draft without an epsilon, by its readers, and where the number comes from."""


def smallest_text(readers: Readers | None) -> str:
    """Return the smallest class or count of a draft as a value of YAML, with its reason.

    >>> smallest_text(Readers.PUBLIC)
    '11   # for the public: European Medicines Agency, Policy 0070'
    """
    number, why = _LEAST[readers]
    return f"{number}   # {why}"


@dataclass(frozen=True)
class DraftPeriod:
    """The reference period of the rows, as declared: a year, two years, or two days.

    >>> DraftPeriod("2023-2024").bounds, DraftPeriod("2024-03-01 to 2024-03-31").bounds
    (('2023-01-01', '2024-12-31'), ('2024-03-01', '2024-03-31'))
    """

    text: str

    def __post_init__(self) -> None:
        self.bounds  # noqa: B018 - refused at once

    @property
    def bounds(self) -> tuple[str, str]:
        """The first and the last day."""
        years = re.fullmatch(r"(\d{4})(?:\s*(?:-|to)\s*(\d{4}))?", self.text.strip())
        if years:
            return f"{years[1]}-01-01", f"{years[2] or years[1]}-12-31"
        days = re.fullmatch(r"(\d{4}-\d\d-\d\d)\s*to\s*(\d{4}-\d\d-\d\d)", self.text.strip())
        if not days:
            raise InvalidParameter(f"the period {self.text!r} cannot be read: write 2024, 2023-2024 or DAY to DAY.")
        return days[1], days[2]


@dataclass(frozen=True)
class Origin:
    """The source of the rows: its address in the policy, and the keys for reading it."""

    address: str
    reading: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DraftRequest:
    """The goal of a draft, what is publicly known about the table, and what the data holder decided.

    `public` has sources of some columns' values; `rows` and `population` are approximate public numbers.  `keep` are
    the columns that must stay, `unit` is the person ID column, `confirmed` are columns whose cleaning is confirmed, and
    `readers` are those who will use the release.
    """

    goal: DraftGoal = DraftGoal.MICRODATA
    period: DraftPeriod | None = None
    public: Mapping[str, str] = field(default_factory=dict)
    keep: tuple[str, ...] = ()
    rows: int | None = None
    population: int | None = None
    unit: str | None = None
    confirmed: frozenset[str] = frozenset()
    readers: Readers | None = None


_WIDTH = 116
BUDGET = 2
"""How many releases like its own the budget of a draft can pay: the first draft never spends the whole budget."""
_DELTA = 6


def delta_text(population: int | None, times: int = 1) -> str:
    """Return a δ well below one over a public number of people, at most a millionth; `times` as much for a budget.

    >>> delta_text(None), delta_text(1_800_000), delta_text(1_800_000, 2)
    ('1e-6', '1e-8', '2e-8')
    """
    digits = 0 if population is None else len(str(population)) + (str(population).strip("0") != "1")
    return f"{times}e-{max(_DELTA, digits)}"


_HEAD = """\
# Drafted for {goal} from {source}: a start, not a decision. Keep it internal.
#
# 1. Check every role. An identifier is never released; everything else is, at its level.
# 2. Most of it is public knowledge or a rule that would be the same for other rows. Values marked  derived: rows  come
#    from the data and may disclose something: they void every guarantee but k-anonymity. Write public values instead
#    and remove that key; or, where a public source has the same values, add a line  public: "that source".
# 3. Choose levels by what the readers of the release need, not by trying which releases the most rows.

incrowd: 1
dataset:
  name: {name}   # budgets are stored under this name, permanently
{dataset}source: {address}
columns:
"""
_PEOPLE = """\
  unit: {{column: {column}, max_rows: 1}}   # one person; one row of each is used, chosen at random
  # For more rows per person write a larger max_rows: a number chosen without the data, not the largest in it.
"""
_ROWS = """\
  # unit: {column: person_id, max_rows: 1}   # if one person can have several rows: without it, rows are protected
"""
_HOLDING = """\
  # Every row is counted; several rows of one {column} in a cell are one contribution: see holding below.
  # A dataset has one unit of privacy for good. For other releases about the same people, too, write instead
  # unit: {{column: {column}, max_rows: 1}}   # and leave holding out: one row of each is counted, at random
"""
_NUMBERS = {
    "rows": "about how many, if that is public: then plan shows the expected output",
    "population": "how many people the data could be about, if that is public",
}
TAILS = {
    DraftGoal.MICRODATA: """\
release:
  method: scheme        # levels are chosen from the data, by a private choice
  choosing: 0.1         # of epsilon, for that choice
  rate: 1/2             # sampling rate: each row is sampled in secret
  epsilon: 1            # privacy loss of choice and release together
  delta: {delta:<15}# well below 1 / number of people
  lowest: {levels}{highest}
{budget}# Values from the data have no epsilon. To release such a column nevertheless, for k-anonymity alone:
# budget: {{unbounded: "reason"}}
""",
    DraftGoal.COUNTS: """\
release:
  method: private-histogram
  columns: {columns}
  levels: {levels}
  epsilon: 1
{budget}""",
    DraftGoal.SYNTHETIC: """\
release:
  method: marginals     # new rows, drawn from noisy counts of the table
  epsilon: 1
  delta: {delta:<15}# well below 1 / number of people
  levels: {levels}
{budget}""",
    DraftGoal.TABLE: """\
release:
  method: protected-table   # exact counts with totals; small cells, and others that would give them away, are left out
  columns: {columns}
  levels: {levels}
  # {smaller} are left out
  minimum: {smallest}
{holding}  total: Total   # the name of totals, in the language of the table
# A table of exact counts has no epsilon. The request for such a draft decided that:
budget: {{unbounded: "a table with totals was requested, which has no epsilon"}}
""",
    DraftGoal.QUERIES: """\
queries: {{table: rows}}   # the name of the table in queries
{budget}""",
    DraftGoal.CLASSIC: """\
release:
  method: full-domain   # the finest levels with at least k rows per class, searched in all rows
  k: {smallest}
  suppression: 0.05     # at most this share of the rows is suppressed
  seconds: 30           # time limit of the search; it returns the best levels so far
  lowest: {lowest}
  levels: {levels}
# k-anonymity is a property of the table's form: it has no epsilon. The request for a classic draft decided that:
budget: {{unbounded: "k-anonymity was requested, which has no epsilon"}}
""",
}


def head_text(origin: Origin, wish: DraftRequest, person: PersonColumn | None) -> str:
    """Return everything before the columns."""
    source = word(origin.address)
    if origin.reading:
        keys = ", ".join(f"{key}: {_value(value)}" for key, value in origin.reading.items())
        source = wrapped(f"{{path: {source}, {keys}}}", 2)
    dataset = "" if wish.period is None else f"  period: {_quoted(wish.period.text)}\n"
    people = _HOLDING if wish.goal is DraftGoal.TABLE else _PEOPLE
    dataset += _ROWS if person is None else people.format(column=word(person.name))
    name, address = word(stem(origin)), _printable(origin.address)
    for key, words in _NUMBERS.items():
        number = getattr(wish, key)
        line = f"# {key}: N" if number is None else f"{key}: {number}"
        dataset += f"  {line:<17} # {words}\n"
    return _HEAD.format(goal=wish.goal, source=address, name=name, dataset=dataset, address=source)


def _value(value: Any) -> str:
    return (
        _listed(value) if isinstance(value, list) else _quoted(value) if isinstance(value, str) else f"{value}".lower()
    )


def holding_text(column: str | None) -> dict[str, str]:
    """Return what a table with totals counts, rows or contributors with several rows, and the line that merges these.

    >>> holding_text("firm")["smaller"]
    'cells with fewer values of firm than this'
    """
    if column is None:
        return {"smaller": "counts below this", "holding": ""}
    name = word(column)
    line = f"  holding: {name}   # several rows of one {name} in a cell are one contribution\n"
    return {"smaller": f"cells with fewer values of {name} than this", "holding": line}


def mapping_text(levels: Mapping[str, int]) -> str:
    """Return columns and levels as YAML writes them in one line."""
    return "{" + ", ".join(f"{word(name)}: {level}" for name, level in levels.items()) + "}"


def stem(origin: Origin) -> str:
    """Return the name of a dataset, after its file, in letters of any alphabet.

    >>> stem(Origin("νοσηλείες 2024.csv"))
    'νοσηλείες-2024'
    """
    written = unicodedata.normalize("NFC", Path(origin.address).stem)
    return re.sub(r"[^\w.-]+", "-", written).strip("-.") or "data"


def column_text(column: DraftColumn) -> str:
    """Return the section of a column, with the reasons as comments."""
    public = "" if column.public is None else f"   # {column.public}"
    lines = [f"  {word(column.name)}:{public}", f"    role: {column.section['role']}   # {column.why}"]
    for key, value in column.section.items():
        if key != "role":
            lines += _entry(key, value, 4)
    return "\n".join(lines) + "\n"


def _entry(key: str, value: Any, indent: int) -> list[str]:
    room = " " * indent
    if key == "tree":
        lines = [f"{room}  {word(label)}: {wrapped(_listed(words), indent + 4)}" for label, words in value.items()]
        return [f"{room}tree:", *lines]
    if key == "spellings":
        lines = [f"{room}  {word(label)}: {wrapped(_listed(others), indent + 4)}" for label, others in value.items()]
        return [f"{room}spellings:", *lines]
    if isinstance(value, dict):
        return [f"{room}{key}:", *(line for inner, item in value.items() for line in _entry(inner, item, indent + 2))]
    if key in ("categories", "missing", "units"):
        return [f"{room}{key}: {wrapped(_listed(value), indent + 2)}"]
    if isinstance(value, list):
        return [f"{room}{key}: [{', '.join(value)}]"]
    if key == "outside":
        becomes = "an open-ended label" if value == "ends" else "the bound, or an open-ended label"
        return [f"{room}{key}: {value}   # values beyond the bounds: {becomes}; or other, or drop"]
    texts = ("public", "confirmed", "decimal", "thousands")
    return [f"{room}{key}: {_quoted(value) if key in texts else str(value).lower() if value is True else value}"]


def listed_text(values: Sequence[str]) -> str:
    """Return texts as a list of YAML in one line.

    >>> listed_text(["a", "b: c"])
    '["a", "b: c"]'
    """
    return _listed(values)


def section_lines(section: Mapping[str, Any], indent: int) -> list[str]:
    """Return a section as lines of YAML, texts in quotes.

    >>> section_lines({"k": "5", "lowest": {"age": "1"}}, 2)
    ['  k: "5"', '  lowest:', '    age: "1"']
    """
    room, lines = " " * indent, list[str]()
    for key, value in section.items():
        if isinstance(value, Mapping):
            lines += [f"{room}{word(key)}:", *section_lines(value, indent + 2)]
        else:
            text = _listed(value) if isinstance(value, list | tuple) else _quoted(str(value))
            lines.append(f"{room}{word(key)}: {text}")
    return lines


def _listed(values: Sequence[str]) -> str:
    return "[" + ", ".join(_quoted(value) for value in values) + "]"


def wrapped(text: str, indent: int) -> str:
    """Break a long list or mapping between its items; spaces inside quotes are kept by not breaking there."""
    if len(text) + indent + 14 <= _WIDTH:
        return text
    items = re.findall(r'(?:"(?:[^"\\]|\\.)*"|[^",])+,?|,', text)
    lines, line = [], ""
    for item in (part.strip(" ") for part in items):
        if line and len(line) + len(item) + indent + 1 > _WIDTH:
            lines.append(line)
            line = ""
        line = f"{line} {item}" if line else item
    return textwrap.indent("\n".join([*lines, line]), " " * indent).lstrip()


def word(text: str) -> str:
    """Return a name, in quotes where YAML needs them."""
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
