"""Bring the list of the public interface up to date: `python docs/interface.py`; what goes is deprecated first."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import incrowd

PAGE = Path(__file__).parent / "reference" / "stability.md"
_CALCULATORS = ("amplify", "compose", "crowd", "pld", "safe")
_START, _END = "<!-- public interface -->", "<!-- end of public interface -->"


def updated(page: str) -> str:
    """Return the page with every public name and its parameters as they are now."""
    before, _, rest = page.partition(_START)
    rows = "\n".join(["| name | parameters |", "|---|---|", *_rows()])
    return f"{before}{_START}\n{rows}\n{_END}{rest.partition(_END)[2]}"


def _rows() -> Iterator[str]:
    for name in dir(incrowd):
        value = getattr(incrowd, name)
        if inspect.ismodule(value):
            yield from (f"| `{name}.{part}` | {_parameters(getattr(value, part))} |" for part in _CALCULATORS)
        else:
            yield f"| `{name}` | {_parameters(value)} |"


def _parameters(value: object) -> str:
    if not callable(value) or _is_error(value):
        return ""
    names = [name for name in inspect.signature(value).parameters if name != "self" and name[0] != "_"]
    return ", ".join(f"`{name}`" for name in names)


def _is_error(value: object) -> bool:
    """Whether this is a class of errors, whose parameters are their text."""
    return isinstance(value, type) and issubclass(value, Exception)


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
