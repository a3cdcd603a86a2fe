"""RowAccessLog: which numbers made from the rows of a policy were shown here; what is chosen after that is marked.

Uniqueness, sizes of classes, the lattice and before/after are made from rows.  No guarantee covers a choice that was
made by them, so that the columns chosen for afterwards carry `derived: rows` until somebody names a public source.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from incrowd.errors import OutputUnavailable
from incrowd.workflows.policy.edit import Place, Value

_FILE = "studio.json"


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
        return self.folder / ".incrowd" / _FILE


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
