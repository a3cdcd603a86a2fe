"""One sabotage: a line of the source that carries a guarantee, and what replaces it.

The line is matched by its exact text, without its indentation, and must occur exactly once in its file; where the same
text occurs several times, `within` names the class or function, as in `AddLaplace.release`.  So a refactoring that
moves or rewords the line makes the table fail, and whoever changed it puts the new text there.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path


class Misfit(AssertionError):
    """A sabotage does not fit the source any more."""


@dataclass(frozen=True)
class Sabotage:
    """A change of one line that breaks a guarantee, and the tests that must notice it."""

    area: str
    file: str
    line: str
    instead: str
    tests: tuple[str, ...]
    within: str = ""

    @property
    def name(self) -> str:
        """The sabotage in one line."""
        where = f" ({self.within})" if self.within else ""
        return f"{self.file}{where}: {self.line} -> {self.instead}"

    def applied(self, source: str) -> str:
        """Return the source with the line replaced; refuse unless it occurs once and the result compiles.

        >>> Sabotage("toy", "toy.py", "noise = 1", "noise = 0", ()).applied("def f():\\n    noise = 1\\n")
        'def f():\\n    noise = 0\\n'
        """
        lines = source.splitlines(keepends=True)
        first, last = self._range(source, len(lines))
        places = [place for place in range(first, last) if lines[place].strip() == self.line]
        if len(places) != 1:
            raise Misfit(f"the line occurs {len(places)} times, not once. Change the table: {self.name}")
        (place,) = places
        old = lines[place]
        lines[place] = old[: len(old) - len(old.lstrip())] + self.instead + "\n"
        changed = "".join(lines)
        try:
            tree = ast.parse(changed)
        except SyntaxError as error:
            raise Misfit(f"the sabotaged source does not compile: {self.name}") from error
        if ast.dump(tree) == ast.dump(ast.parse(source)):
            raise Misfit(f"the sabotage changes nothing: {self.name}")
        return changed

    def _range(self, source: str, lines: int) -> tuple[int, int]:
        """Return the lines in which to look: all, or those of one definition."""
        if not self.within:
            return 0, lines
        body: list[ast.stmt] = ast.parse(source).body
        node: ast.stmt | None = None
        for name in self.within.split("."):
            node = next((item for item in body if getattr(item, "name", None) == name), None)
            if not isinstance(node, ast.ClassDef | ast.FunctionDef):
                raise Misfit(f"{self.file} has no {self.within}. Change the table: {self.name}")
            body = node.body
        assert node is not None
        return node.lineno - 1, node.end_lineno or lines


def applied_in(sabotage: Sabotage, root: Path) -> str:
    """Return the sabotaged source of a checkout."""
    return sabotage.applied((root / "src" / "incrowd" / sabotage.file).read_text(encoding="utf-8"))


Line = tuple[str, str, str] | tuple[str, str, str, str]
"""A file below src/incrowd, a line, what replaces it, and where the line is not unique the definition that holds it."""


def area(name: str, tests: str, *lines: Line) -> tuple[Sabotage, ...]:
    """Return the sabotages of an area, which share the arguments of pytest; `_or_` joins the words of `-k`."""
    words = tuple(word.replace("_or_", " or ") for word in tests.split())
    return tuple(Sabotage(name, line[0], line[1], line[2], words, "".join(line[3:])) for line in lines)
