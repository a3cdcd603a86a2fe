"""The map of a release is the way that a real one takes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from tests.policies import PEOPLE, people, written

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "explanation" / "how-it-is-built.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "incrowd"
HOP = re.compile(r"^\| (\d+) (\w+) \| `([\w.]+)`[^|]*\| `([\w/<>*.]+)`", re.MULTILINE)


def hops() -> list[tuple[int, str, str]]:
    """Return the hops of the page: their number, the function and the file."""
    section = PAGE.split("## A file becomes a release")[1].split("\n## ")[0]
    return [(int(number), function.rsplit(".", 1)[-1], file) for number, _, function, file in HOP.findall(section)]


def traced(policy: Path, out: Path) -> list[tuple[str, str]]:
    """Return the functions of the package in the order of their first call during a release, with their files."""
    seen: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)):
            seen.setdefault((code.co_name, Path(code.co_filename).relative_to(SOURCE).as_posix()))

    rows = people(600, seed=3)
    sys.setprofile(note)
    try:
        release_to(rows, policy, Destination(out, "csv"))
    finally:
        sys.setprofile(None)
    return list(seen)


def fits(pattern: str, file: str) -> bool:
    """Whether a file is one that the page means; <words> and * stand for any folder or name."""
    return re.fullmatch(re.sub(r"<\w+>|\*", r"[\\w]+", pattern.replace(".", r"\.")), file) is not None


def test_the_ten_hops_are_those_of_a_real_release(tmp_path: Path) -> None:
    calls = traced(written(PEOPLE, tmp_path), tmp_path / "out")
    places = []
    for number, function, pattern in hops():
        found = [place for place, (name, file) in enumerate(calls) if name == function and fits(pattern, file)]
        assert found, f"hop {number}: {function} in {pattern} was never called"
        places.append(found[0])
    assert [number for number, _, _ in hops()] == list(range(1, 11))
    assert places[:9] == sorted(places[:9]), "the hops are taken in the order of the page"
    assert places[9] == places[7], "appearing is the end of staging"


def test_every_file_of_the_page_is_there() -> None:
    named = re.findall(
        r"`((?:workflows|methods|queries|engines|core|verifier|drawing|web|accounting|tests)/[\w/.]+\.py)`", PAGE
    )
    missing = [name for name in named if not (SOURCE / name).exists() and not (ROOT / name).exists()]
    assert named
    assert not missing
