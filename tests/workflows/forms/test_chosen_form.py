"""Microdata at chosen levels: what was released verifies, and what was forged does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from incrowd.workflows.verify import verify
from tests.released import Folder, failed, release_into

SCHEME: dict[str, Any] = {"release__method": "scheme", "release__levels": None, "release__choosing": "0.2"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return release_into(tmp_path_factory.mktemp("scheme") / "release", **SCHEME)


def test_rows_with_weights_are_released_and_verified(tmp_path: Path) -> None:
    found = verify(release_into(tmp_path / "release", release__weights=True, **SCHEME).out)
    assert found.passed, failed(found)


def lower(number: int) -> int:
    return number // 2


FORGED: list[tuple[tuple[str | int, ...], Callable[[Any], Any], str]] = [
    (("chain", 0, "sensitivity"), lower, "steps"),
    (("chain", 2, "columns", 0, "provenance"), lambda _: "drafted from rows", "steps"),
    (("chain", -1, "weights"), lambda _: True, "columns in the file"),
    (("claims", 0, "preconditions", -1, "status"), lambda _: "proved", "claims"),
]


@pytest.mark.parametrize(("place", "change", "about"), FORGED)
def test_a_choice_that_is_told_better_than_it_was_fails(
    made: Folder, tmp_path: Path, place: tuple[str | int, ...], change: Callable[[Any], Any], about: str
) -> None:
    copy = made.copied(tmp_path / "copy")
    copy.tamper(place, change)
    assert about in failed(verify(copy.out))
