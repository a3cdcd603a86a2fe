"""PolicyFile: the policy file that the command line uses, and which results from its rows were shown here.

Uniqueness, sizes of classes, the lattice and before/after are computed from rows.  No guarantee covers a choice based
on them, so columns that are changed afterwards carry `derived: rows` until the data holder names a public source.
"""

from __future__ import annotations

import glob
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from incrowd.errors import InvalidParameter, OutputUnavailable, Refused
from incrowd.workflows.policy.document import Document, read_document
from incrowd.workflows.policy.edit import Place, Value, edited, replaced_at
from incrowd.workflows.policy.ledger_place import state_folder
from incrowd.workflows.policy.policy import Policy, load_policy, policy_of

_FILE = "studio.json"
_TEXTS = 50


@dataclass(frozen=True)
class RowAccessLog:
    """What was shown of some rows, remembered beside the policies about them: whichever of these was open."""

    folder: Path
    rows: str

    @property
    def what(self) -> tuple[str, ...]:
        """What was shown, in words; nothing if rows were not looked at here.  An unreadable memory counts as a look."""
        try:
            memory = json.loads(self._file.read_text(encoding="utf-8"))
            return tuple(map(str, memory.get(self.rows, ())))
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, AttributeError, TypeError):
            return ("something unknown",)

    def add(self, what: str) -> None:
        """Remember that something was shown."""
        if what in self.what:
            return
        try:
            memory = json.loads(self._file.read_text(encoding="utf-8")) if self._file.exists() else {}
            memory[self.rows] = [*self.what, what]
            self._file.parent.mkdir(parents=True, exist_ok=True)
            written = self._file.with_name(f".{_FILE}.{os.getpid()}")
            written.write_text(json.dumps(memory, indent=1), encoding="utf-8")
            written.replace(self._file)
        except (OSError, ValueError, TypeError, AttributeError):
            raise OutputUnavailable(
                f"{self._file.name} beside the ledger could not be written, so this data access could not be "
                "recorded: the result is not shown."
            ) from None

    @property
    def _file(self) -> Path:
        return state_folder(self.folder) / _FILE


def provenance(column: str, content: dict[str, object] | None, source: str, seen: RowAccessLog) -> dict[Place, Value]:
    """Return what is written into a column for which something was chosen: a mark after a look, and a source if any.

    `content` is the column's section as it will be.  The mark stands beside the rule that was chosen, or beside the
    values where there is no rule; a source that vouched for something else is taken away.

    >>> provenance("age", {"hierarchy": {"intervals": ["5"]}}, "yearbook", RowAccessLog(Path("nowhere"), "a.csv"))
    {}
    """
    if not seen.what:
        return {}
    inside: Place = ("hierarchy",) if content and content.get("hierarchy") is not None else ()
    place: Place = ("columns", column, *inside)
    return {(*place, "derived"): "rows", (*place, "public"): source or None}


_SAVING = Lock()  # a file is compared with what the page showed and replaced in one act
_FILES = ("source", "path", "file", "hierarchies", "pseudonym", "registry", "key", "catalog")
"""The keys under which a policy names files."""


@dataclass(frozen=True)
class PolicyHistory:
    """Earlier texts of a policy, the last first: what a change here replaced."""

    folder: Path
    name: str

    @property
    def _files(self) -> list[Path]:
        return sorted(self.folder.glob(f"{glob.escape(self.name)}.[0-9][0-9][0-9][0-9][0-9][0-9]"))

    @property
    def last(self) -> str | None:
        """The text before the last change; None where nothing can be undone."""
        files = self._files
        try:
            return files[-1].read_text(encoding="utf-8") if files else None
        except (OSError, UnicodeDecodeError):
            return None

    def push(self, text: str) -> None:
        """Store a text that is about to be replaced; the oldest go."""
        files = self._files
        number = int(files[-1].suffix[1:]) + 1 if files else 1
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{self.name}.{number:06d}").write_text(text, encoding="utf-8")
        for old in files[: max(0, len(files) + 1 - _TEXTS)]:
            old.unlink(missing_ok=True)

    def pop(self) -> None:
        """Forget the last text."""
        for file in self._files[-1:]:
            file.unlink(missing_ok=True)


@dataclass(frozen=True)
class PolicyFile:
    """A policy file as it was when a page was asked for."""

    path: Path
    name: str
    root: Path

    @cached_property
    def text(self) -> str:
        """What is written in it."""
        try:
            return self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise InvalidParameter(f"the policy {self.name} cannot be read as UTF-8 text.") from None

    @property
    def base(self) -> str:
        """What tells this text from another: a form that was made from another text changes nothing."""
        return sha256(self.text.encode()).hexdigest()[:32]

    @cached_property
    def document(self) -> Document:
        """The text, parsed once."""
        return read_document(self.text)

    @property
    def content(self) -> dict[str, Any]:
        """Its plain content, every scalar as text."""
        content = self.document.content
        return content if isinstance(content, dict) else {}

    @cached_property
    def policy(self) -> Policy:
        """The policy, or the line that is wrong; the files that it names lie in the folder that was opened."""
        self._check_inside(self.content, "")
        return policy_of(self.document, self.path.resolve().parent, str(self.path))

    def _check_inside(self, content: Any, key: str) -> None:
        """Refuse a policy that names a file elsewhere: only what was opened is read here."""
        if isinstance(content, dict | list):
            for name, part in content.items() if isinstance(content, dict) else [(key, part) for part in content]:
                self._check_inside(part, name)
        if isinstance(content, str) and key in _FILES and "://" not in content:
            place = self.path.parent / content.rpartition("::")[0] if "::" in content else self.path.parent / content
            if not place.resolve().is_relative_to(self.root.resolve()):
                raise Refused(
                    f"{self.name} names a file outside the opened folder, at {key}: open a folder that contains "
                    "both, or use the command line."
                )

    @property
    def seen(self) -> RowAccessLog:
        """Whether its rows were looked at here, and by what."""
        source = self.at("source", "path") or self.at("source") or self.name
        return RowAccessLog(self.path.parent, str(source))

    def at(self, *place: str) -> Any:
        """Return the plain value at a place; None where there is none."""
        value: Any = self.content
        for name in place:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def trial(self, changes: Mapping[Place, Value]) -> Policy:
        """Return the policy that it would be with some changes; nothing is written."""
        content: Any = self.content
        for place, value in changes.items():
            content = replaced_at(content, place, value)
        self._check_inside(content, "")
        return load_policy(content, folder=self.path.resolve().parent)

    def save(self, changes: Mapping[Place, Value], base: str | None) -> PolicyFile:
        """Write some changes, if the file is still the one that the form was made from and can be read with them."""
        return self.write(edited(self.text, changes), base)

    @property
    def history(self) -> PolicyHistory:
        """The earlier texts that can be restored."""
        return PolicyHistory(self.path.parent / ".incrowd" / "undo", self.path.name)

    def undo(self, base: str | None) -> PolicyFile:
        """Restore the text before the last change made here."""
        earlier = self.history.last
        if earlier is None:
            raise InvalidParameter("there is no earlier text of this policy to restore.")
        file = self.write(earlier, base, remember=False)
        self.history.pop()
        return file

    def write(self, text: str, base: str | None, *, remember: bool = True) -> PolicyFile:
        """Replace the text: whole or not at all, and only by one that can be read as a policy."""
        load_policy(f"{text}\n", folder=self.path.resolve().parent)
        written = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        with _SAVING:
            now = PolicyFile(self.path, self.name, self.root)
            if base is not None and now.base != base:
                raise Refused(
                    f"{self.name} was changed in another tab or editor: reload this page. Nothing was written."
                )
            try:
                written.write_text(text, encoding="utf-8")
                if remember and now.text != text:
                    self.history.push(now.text)
                written.replace(self.path)
            except OSError as error:
                raise OutputUnavailable(f"{self.name} could not be written: {error.strerror or 'no reason'}.") from None
            finally:
                written.unlink(missing_ok=True)
        return PolicyFile(self.path, self.name, self.root)
