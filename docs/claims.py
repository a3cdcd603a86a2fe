"""Write the page of all kinds and keys that a certificate can hold: `python docs/claims.py`."""

from __future__ import annotations

import inspect
from pathlib import Path

from incrowd.core.terms import Assumption, Condition, Exposure, KeyedText, Term, Theorem
from incrowd.workflows.registry import names, vocabulary

PAGE = Path(__file__).parent / "reference" / "claims.md"
_INTRODUCTION = """# What certificates say

A certificate holds kinds, keys, fields and numbers, and no sentence. `verify`, the report and the studio make the
sentences. The meaning of a kind, a field or a key never changes after the freeze of the format; its wording elsewhere
may improve. A certificate holds a digest of the meanings that it uses, and `verify` compares it with those here.
"""
_SECTIONS: tuple[tuple[str, str, type[Term]], ...] = (
    ("Theorems", "Why a guarantee or a claim holds.", Theorem),
    (
        "Conditions",
        "What must be true for a claim: proved of the program, or checked on each release.",
        Condition,
    ),
    ("Assumptions", "What must be true and only people can know.", Assumption),
    ("Exposures", "What a claim does not protect.", Exposure),
)


def page() -> str:
    """Return the page."""
    known = [vocabulary(name) for name in names()]
    parts = [_INTRODUCTION]
    for title, about, kind in _SECTIONS:
        terms = sorted(term for term in kind.declared.values() if type(term) is kind)
        rows = [f"| `{term.key}` | {_escaped(term.meaning)} |" for term in terms]
        parts.append("\n".join([f"## {title}", "", about, "", "| key | meaning |", "|---|---|", *rows, ""]))
    for title, about, part in (("Claims", "What is claimed.", "claims"), ("Steps", "What happens to rows.", "steps")):
        classes = {(cls.kind, cls.__qualname__): cls for one in known for cls in getattr(one, part)}
        rows = [f"| `{kind}` | {_escaped(_first(cls))} |" for (kind, _), cls in sorted(classes.items())]
        parts.append(
            "\n".join([f"## {title}", "", about, "", "| kind | meaning |", "|---|---|", *dict.fromkeys(rows), ""])
        )
    return "\n".join([*parts, *map(_keys, sorted(KeyedText.__subclasses__(), key=lambda kind: kind.__name__))])


def _keys(kind: type[KeyedText]) -> str:
    """Return the section of a closed list of keys."""
    rows = [f"| `{key}` | {_escaped(key.text)} |" for key in kind]
    return "\n".join([f"## Keys: {kind.__name__}", "", _first(kind), "", "| key | meaning |", "|---|---|", *rows, ""])


def _first(cls: type) -> str:
    return " ".join((inspect.getdoc(cls) or "").split("\n\n")[0].split())


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
