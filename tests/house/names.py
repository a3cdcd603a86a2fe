"""Names that say nothing: where they are bound in the package; `python -m tests.house.names` counts them by folder."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "incrowd"
BANNED = frozenset(
    ("told", "found", "each", "kept", "shown", "asked", "wanted", "known", "given", "whose", "said", "drawn", "strange")
)
"""Participles that do not say what a value is (the style guide names what to write instead)."""


@dataclass(frozen=True)
class Binding:
    """A banned name, and where it is bound."""

    name: str
    place: str


def banned_bindings(package: Path = PACKAGE) -> Iterator[Binding]:
    """Yield every assignment, parameter, target, field, function and property of the package with a banned name."""
    for path in sorted(package.rglob("*.py")):
        for name, line in _bound(ast.parse(path.read_text(encoding="utf-8"))):
            if name.lstrip("_") in BANNED:
                yield Binding(name, f"{path.relative_to(package)}:{line}")


def _bound(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):  # assignments, fields, loops, `with`, comprehensions, walrus
                yield name, node.lineno
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node.lineno
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name, node.lineno
            case ast.MatchMapping(rest=str(name)):
                yield name, node.lineno


if __name__ == "__main__":
    bindings = list(banned_bindings())
    for folder, number in Counter("/".join(item.place.split("/")[:2]) for item in bindings).most_common():
        print(f"{number:6,} {folder}")
    print(f"{len(bindings):6,} in all", file=sys.stdout)
