"""Compare: the differences between two families of records, each with where it is, before and after."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.facts.plain import text_of

FOLDER = Path(__file__).parent / "committed"
MISSING = "nothing"


def read(family: str, folder: Path = FOLDER) -> dict[str, Any]:
    """Return the committed records of a family; none where there is no file."""
    file = folder / f"{family}.json"
    if not file.is_file():
        return {}
    records: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return records


def write(family: str, records: Mapping[str, Any], folder: Path = FOLDER) -> None:
    """Write the records of a family."""
    folder.mkdir(exist_ok=True)
    (folder / f"{family}.json").write_text(f"{text_of(dict(records))}\n", encoding="utf-8")


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each difference: the record, the path in it, the value before and after.

    >>> list(differences({"safe": {"k": "5", "rate": "0.5"}}, {"safe": {"k": "6", "rate": "0.5"}}))
    ['safe › k: "5" → "6"']
    >>> list(differences({"safe": {"steps": [{}]}}, {"scheme": {}}))
    ['safe: {"steps": [{}]} → nothing', 'scheme: nothing → {}']
    """
    for name in sorted({*before, *after}):
        for path, old, new in _differing((name,), before.get(name, MISSING), after.get(name, MISSING)):
            yield f"{' › '.join(path)}: {_shown(old)} → {_shown(new)}"


def _differing(path: tuple[str, ...], old: Any, new: Any) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if old == new:
        return
    parts, others = _parts(old), _parts(new)
    if parts is None or others is None or type(old) is not type(new):
        yield path, old, new
        return
    for key in dict.fromkeys((*parts, *others)):
        yield from _differing((*path, key), parts.get(key, MISSING), others.get(key, MISSING))


def _parts(value: Any) -> dict[str, Any] | None:
    """Return the parts of a mapping or a list by their names; the kind of a step or claim is a part of its name."""
    if isinstance(value, list):
        return {f"{place + 1}{_kind(part)}": part for place, part in enumerate(value)}
    return value if isinstance(value, dict) else None


def _kind(part: Any) -> str:
    kind = part.get("kind", part.get("step")) if isinstance(part, dict) else None
    return "" if kind is None else f" {kind}"


def _shown(value: Any) -> str:
    return MISSING if value is MISSING else json.dumps(value, ensure_ascii=False, sort_keys=True)
