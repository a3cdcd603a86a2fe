"""Phrases that readers stumble over, in what the package shows; `python -m tests.house.phrases` lists them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "incrowd"
TEXTS = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/**/*.md",
    "examples/**/*.md",
    "examples/**/*.yaml",
    "src/incrowd/**/*.html",
    "src/incrowd/**/*.js",
)
PAST = ("docs/decisions/",)
"""Decisions record what was said when they were made."""
PHRASES = {
    "hang on": r"\bhangs? on\b|\bhung on\b",
    "hold against": r"\b(?:hold|holds|held|holding) (?:it |them |this |what \w+ \w+ |\w+ )?against\b",
    "second route": r"\bsecond route\b",
    "tell apart people": r"\btells? people apart\b",
    "stay at home": r"\bstays? at home\b",
    "let out": r"\blets? (?:\w+ )?out safely\b",
    "so many, so likely": r"\b(?:at (?:least|most) so (?:many|likely)|so many people are|pay so much)\b",
    "whoever": r"\bwhoever\b",
    "who cannot": r"(?:^|[.!?] )Who [a-z]+ [^?]*?\.(?:\s|$)",
    "is no": r"(?<!there )\b(?:is|was) no (?:certificate|graph|policy|ledger|registry|number|UUID|table|file|secret"
    r"|promise|guarantee|method|key|text|JSON|Consent|release)\b",
    "tight curve": r"\btight curve\b",
    "derived again, made again": r"\b(?:derived?|derives|made|make|makes) (?:\w+ ){0,3}again\b",
    "the coins": r"\bcoins?\b",
    "what came of it": r"\b(?:what came of|nothing came of|came of it)\b",
    "probably come out": r"\bprobably comes? out\b",
    "nearly as likely": r"\bnearly as (?:likely|well)\b",
    "apart from a chance": r"\bapart from a chance\b",
    "stand in for": r"\bstand in for each other\b",
    "look alike": r"\blooks? alike\b",
    "stays spent": r"\bstays? (?:spent|charged)\b",
    "the mark": r"\b(?:the|a|this|its) marks?\b",
    "in hand": r"\bquestions? in hand\b",
    "the book of": r"\bbook of\b",
    "how long somebody waits": r"\bhow long somebody\b",
    "what is out": r"\bwhat is out stays out\b",
    "blind guess": r"\bblind guess\b|\bguessing blindly\b",
    "outsiders": r"\boutsiders?\b",
    "promise": r"\bpromis(?:e|es|ed|ing)\b",
}
_COMPILED = {
    name: re.compile(pattern, re.IGNORECASE if name != "who cannot" else 0) for name, pattern in PHRASES.items()
}
_KEY = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")
"""A key of a term in certificates: data, not text."""
_CODE = re.compile(r"```.*?```|`[^`\n]*`|<code>.*?</code>|\bid=\"[a-z]+\"|\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)


@dataclass(frozen=True)
class Use:
    """A phrase, and where it stands."""

    phrase: str
    place: str
    text: str


def uses(root: Path = ROOT) -> Iterator[Use]:
    """Yield every listed phrase in docs, pages and string literals of the package; commands show their docstrings."""
    for pattern in TEXTS:
        for path in sorted(root.glob(pattern)):
            place = path.relative_to(root).as_posix()
            if not place.startswith(PAST) and path.suffix != ".js":
                yield from _in(_CODE.sub(" ", path.read_text(encoding="utf-8")), place)
    for path in sorted((root / "src" / "incrowd").rglob("*.py")):
        place = path.relative_to(root).as_posix()
        for text, line in _literals(path, commands="/cli/" in place):
            yield from _in(_CODE.sub(" ", text), f"{place}:{line}")


def _in(text: str, place: str) -> Iterator[Use]:
    for name, pattern in _COMPILED.items():
        for match in pattern.finditer(text):
            yield Use(name, place, text[max(0, match.start() - 40) : match.end() + 40].replace("\n", " "))


def _literals(path: Path, *, commands: bool) -> Iterator[tuple[str, int]]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    quiet = {id(node.body[0].value) for node in ast.walk(tree) if _documented(node) and not commands}  # type: ignore[attr-defined]
    quiet |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)} if not commands else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet:
            if _KEY.fullmatch(node.value):
                continue
            yield node.value, node.lineno


def _documented(node: ast.AST) -> bool:
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return isinstance(node, kinds) and ast.get_docstring(node) is not None


if __name__ == "__main__":
    from collections import Counter

    found = list(uses())
    for use in found:
        print(f"{use.phrase:24} {use.place}: …{use.text}…")
    for name, number in Counter(use.phrase for use in found).most_common():
        print(f"{number:5} {name}")
    print(f"{len(found):5} in all")
