"""Internal: what stays with the data holder, in a folder for each release beside the policy, and nowhere else."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from incrowd.errors import InvalidParameter, OutputUnavailable
from incrowd.workflows.policy.ledger_place import state_folder
from incrowd.workflows.policy.policy import Policy

FOR_HOLDER = "cells.json"
TOOK_PART = "took part"
"""The part of it that lists who took part in a period, by keyed digests, where periods per person are bounded."""
"""What an output leaves with the data holder: true cells of a protected table, counts of a period."""
INTERNAL = "internal.json"
_PRIVATE = 0o600


def internal_folder(policy: Policy, release: str) -> Path:
    """Return where the data holder keeps what nobody else may know of a release."""
    return state_folder(policy.folder) / "internal" / release


def write_private(file: Path, plain: Mapping[str, Any]) -> None:
    """Write JSON into a new file that only its owner can read."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        json.dump(plain, opened, indent=1, ensure_ascii=False)


def keep_result(policy: Policy, release: str, verb: str, plain: Mapping[str, Any]) -> Path | None:
    """Keep what a verb found out about a release in its internal folder, if that is here; earlier results stay."""
    folder = internal_folder(policy, release)
    if not folder.is_dir():
        return None
    number = 1 + sum(1 for _ in folder.glob(f"{verb}.*.json"))
    file = folder / f"{verb}.{number}.json"
    try:
        write_private(file, plain)
    except OSError as error:
        raise OutputUnavailable(f"{file} could not be written: {error.strerror or 'no reason given'}.") from None
    return file


def check_apart(target: Path, releases: Sequence[Path]) -> None:
    """Refuse to write something internal beside a release, or over something."""
    folders = [release.resolve() if release.is_dir() else release.resolve().parent for release in releases]
    if any(target.resolve().is_relative_to(folder) for folder in folders):
        raise InvalidParameter(
            f"{target} is in the folder of the release, which is passed on as a whole: write it elsewhere, such as "
            f".incrowd/internal/{target.name}."
        )
    if target.exists():
        raise OutputUnavailable(f"{target} already exists. Choose another name.")
