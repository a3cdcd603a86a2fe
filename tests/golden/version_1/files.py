"""Reading and writing the golden files of version 1; what recurs in a file is kept there once."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from incrowd.workflows.policy.policy import Policy, load_policy

FOLDER = Path(__file__).parent
INPUTS, FOLDERS, LEDGERS = FOLDER / "inputs", FOLDER / "folders", FOLDER / "ledgers"
_LONG, _MARK = 16, "§"


def index() -> list[dict[str, Any]]:
    """Return what is known of each folder: its kind, policy, data, method, ledger, parent, and whether it is signed."""
    found: list[dict[str, Any]] = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
    return found


def golden(name: str) -> Any:
    """Return what a golden file holds."""
    plain = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return _unpacked(plain["content"], plain["shared"])


def write_golden(name: str, content: Mapping[str, Any], folder: Path = FOLDER) -> None:
    """Write a golden file, one line for each item."""
    pool = _Pool()
    for value in content.values():
        pool.count(value)
    lines = [f"{_line(key)}: {_line(pool.packed(value))}" for key, value in content.items()]
    parts = ('{"content": {', ",\n".join(lines), '}, "shared": [', ",\n".join(map(_line, pool.shared)), "]}\n")
    (folder / f"{name}.json").write_text("\n".join(parts), encoding="utf-8")


def certificate(folder: str) -> dict[str, Any]:
    """Return the certificate of a folder."""
    found: dict[str, Any] = json.loads((FOLDERS / folder / "certificate.json").read_text(encoding="utf-8"))
    return found


def read_policy(name: str) -> Policy:
    """Return a policy of the inputs; JSON is read as what it is, which is quicker than as YAML."""
    with chdir(INPUTS):
        return load_policy(json.loads((INPUTS / f"{name}.yaml").read_text(encoding="utf-8")))


def unpack_ledgers(folder: Path, names: Iterable[str]) -> None:
    """Write ledgers and what lies beside them into a folder, where they may be opened and written to."""
    for name in names:
        content = gzip.decompress((LEDGERS / f"{name}.gz").read_bytes())
        (folder / name).write_bytes(content)


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@dataclass
class _Pool:
    """Values that occur more than once: each is kept in one place and named by its number elsewhere."""

    seen: Counter[str] = field(default_factory=Counter)
    places: dict[str, int] = field(default_factory=dict)
    shared: list[Any] = field(default_factory=list)

    def count(self, value: Any) -> None:
        """Count a value, and what is in it if it was not met before."""
        text = _line(value)
        self.seen[text] += 1
        if self.seen[text] == 1:
            for inner in _inside(value):
                self.count(inner)

    def packed(self, value: Any) -> Any:
        """Return a value with names in place of what is shared."""
        text = _line(value)
        if self.seen[text] == 1 or len(text) <= _LONG:
            return self._opened(value)
        if text not in self.places:
            self.places[text] = len(self.shared)
            self.shared.append(None)
            self.shared[self.places[text]] = self._opened(value)
        return f"{_MARK}{self.places[text]}"

    def _opened(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self.packed(inner) for key, inner in value.items()}
        assert not str(value).startswith(_MARK), "no text of its own begins like the name of a shared value"
        return [self.packed(inner) for inner in value] if isinstance(value, list) else value


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()


def _unpacked(value: Any, shared: list[Any]) -> Any:
    if isinstance(value, dict):
        return {key: _unpacked(inner, shared) for key, inner in value.items()}
    if isinstance(value, list):
        return [_unpacked(inner, shared) for inner in value]
    if isinstance(value, str) and value.startswith(_MARK):
        return _unpacked(shared[int(value.removeprefix(_MARK))], shared)
    return value
