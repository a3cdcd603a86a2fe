"""Project: what was read of another program's project, and the folder that it becomes."""

from __future__ import annotations

import csv
import io
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from incrowd.errors import OutputUnavailable, SourceUnreadable
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.profile.draft_text import listed_text, section_lines, word

_HEAD = """\
# Imported from {program}: a start, not a decision. Keep it internal.
#
# Hierarchies marked  derived: rows  may come from the data: a guarantee with an ε cannot depend on them. Where a public
# source has the same values, add a line  public: "that source"; or remove that line if they were made without the data.
{notes}
incrowd: 1
dataset:
  name: {name}   # budgets are stored under this name, permanently
  # unit: {{column: person_id, max_rows: 1}}   # if one person can have several rows
source: {source}
columns:
"""
_BLOCK = 1 << 20


@dataclass(frozen=True)
class ImportedColumn:
    """A column: its section of a policy without the hierarchy file, and the rows of its hierarchy if there is one."""

    name: str
    section: Mapping[str, Any]
    hierarchy: Sequence[Sequence[str]] | None = None


@dataclass(frozen=True)
class ImportedProject:
    """A project of another program: columns, release section, how its data is read, and what could not be imported."""

    program: str
    name: str
    columns: tuple[ImportedColumn, ...]
    release: Mapping[str, Any]
    reading: Mapping[str, Any]
    open_data: Callable[[], BinaryIO] | None
    left_out: tuple[str, ...] = ()
    budget: str = field(default="the criterion of the imported project has no epsilon")

    def policy_text(self) -> str:
        """Return the policy, which names files in its own folder."""
        notes = "".join(f"# Not imported: {_one_line(note)}\n" for note in self.left_out)
        keys = ", ".join(f"{key}: {_scalar(value)}" for key, value in self.reading.items())
        source = f"{{path: data.csv{', ' if keys else ''}{keys}}}"
        stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", self.name).strip("-.") or "imported"
        text = _HEAD.format(program=self.program, notes=notes, name=word(stem), source=source)
        for place, column in enumerate(self.columns, start=1):
            section = dict(column.section)
            if column.hierarchy is not None:
                section["hierarchy"] = {"file": _file_name(place, column.name), "derived": "rows"}
            text += "\n".join([f"  {word(column.name)}:", *section_lines(section, 4)]) + "\n"
        text += "\n".join(["release:", *section_lines(self.release, 2)]) + "\n"
        return text + f"budget: {{unbounded: {_scalar(self.budget)}}}\n"

    def write(self, folder: Path) -> Path:
        """Write policy, hierarchies and data into a new folder, and check that the policy can be loaded."""
        try:
            folder.mkdir()
        except OSError as error:
            raise OutputUnavailable(f"{folder} was not made: {error.strerror or 'no reason given'}.") from None
        try:
            self._fill(folder)
            load_policy(folder / "policy.yaml")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return folder / "policy.yaml"

    def _fill(self, folder: Path) -> None:
        for place, column in enumerate(self.columns, start=1):
            if column.hierarchy is not None:
                (folder / "hierarchies").mkdir(exist_ok=True)
                lines = io.StringIO()
                csv.writer(lines, delimiter=";", lineterminator="\n").writerows(column.hierarchy)
                (folder / _file_name(place, column.name)).write_text(lines.getvalue(), encoding="utf-8")
        if self.open_data is not None:
            with self.open_data() as source, (folder / "data.csv").open("xb") as target:
                for block in _blocks(source):
                    target.write(block)
        (folder / "policy.yaml").write_text(self.policy_text(), encoding="utf-8")


def decoded(content: bytes) -> str:
    r"""Return the text of a file that may be in UTF-8 or in the encoding of a Windows machine.

    >>> decoded("Köln".encode("cp1252")), decoded("\ufeffKöln".encode())
    ('Köln', 'Köln')
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _file_name(place: int, column: str) -> str:
    """Return the name of a hierarchy file: nothing that a project says is ever a path."""
    plain = re.sub(r"[^a-z0-9]+", "-", column.lower()).strip("-")[:40]
    return f"hierarchies/{place:02d}{'-' if plain else ''}{plain}.csv"


def _blocks(source: BinaryIO) -> Iterator[bytes]:
    while block := source.read(_BLOCK):
        yield block


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:200]


def _scalar(value: Any) -> str:
    return listed_text([str(value)])[1:-1] if isinstance(value, str) else str(value).lower()


def unreadable(path: Path, what: str) -> SourceUnreadable:
    """Return the error of a project that cannot be read; it quotes nothing of the file."""
    return SourceUnreadable(f"{path.name} cannot be imported: {what}.")
