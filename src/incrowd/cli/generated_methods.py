"""Generated methods: those of dataclasses, compiled once for each verb and then read.

A dataclass writes the text of its methods and compiles it whenever its module is imported, which takes a fifth of a
small release.  The text is written as ever; where it was compiled before, that code is used.
"""

from __future__ import annotations

import atexit
import dataclasses
import marshal
from pathlib import Path
from types import CodeType
from typing import Any

from incrowd import __version__
from incrowd.store.compiled import compiled_place, read_compiled, write_compiled

_MOST = 2
"""How many times as much as one process used is kept: texts of earlier versions go in the end."""


class GeneratedMethods:
    """Executes texts, each compiled only if no earlier process has done so."""

    def __init__(self, place: Path) -> None:
        self._place, self._known, self._used = place, _read(place), dict[str, CodeType]()

    def execute(self, text: str, scope: dict[str, Any], names: dict[str, Any]) -> None:
        """Execute a text as `exec` does."""
        code = self._known.get(text)
        if code is None:
            code = compile(text, "<string>", "exec", dont_inherit=True)
        self._used[text] = code
        exec(code, scope, names)  # noqa: S102 - what `dataclasses` executes

    def write(self) -> None:
        """Keep what was compiled, for the next process."""
        if self._used.keys() <= self._known.keys():
            return
        union = self._known | self._used
        write_compiled(self._place, marshal.dumps(self._used if len(union) > _MOST * len(self._used) else union))


def keep_generated_methods(verb: str) -> None:
    """Let `dataclasses` use the code that earlier processes with this verb compiled."""
    methods = GeneratedMethods(compiled_place(__file__, f"{verb}-{__version__}"))
    setattr(dataclasses, "exec", methods.execute)  # noqa: B010 - where it is not read, nothing changes
    atexit.register(methods.write)


def _read(place: Path) -> dict[str, CodeType]:
    try:
        stored = marshal.loads(read_compiled(place) or b"")  # noqa: S302 - as trusted as compiled modules
    except (EOFError, ValueError, TypeError):
        return {}
    return stored if isinstance(stored, dict) else {}
