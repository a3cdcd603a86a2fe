"""Data, registry and key lie apart: whoever has one of the three cannot tell who withdrew."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pyarrow as pa

from incrowd.core.subjects import SubjectKey
from incrowd.governance.consent.event import Decided
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from tests.consents import FORM, consented, known_people

KEY = bytes(range(32))
IDS = [f"person-{number:04}" for number in range(600)]
ROWS = known_people().drop_columns(["id"]).append_column("id", pa.array(IDS))


def content(folder: Path) -> bytes:
    """Return every byte of every file below a folder, names too."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert files
    return b"".join(str(path.relative_to(folder)).encode() + path.read_bytes() for path in files)


def test_nobody_with_one_of_the_three_folders_can_tell_who_withdrew(tmp_path: Path) -> None:
    made = consented(FORM, tmp_path, IDS)
    release_to(ROWS, made.policy, Destination(tmp_path / "data" / "first", "csv"))
    women = [row["id"] for row in ROWS.to_pylist() if row["sex"] == "F"]
    made.decide(Decided.WITHDRAW, women)
    release_to(ROWS, made.policy, Destination(tmp_path / "data" / "second", "csv"))
    data, registry = content(tmp_path / "data"), content(tmp_path / "registry")
    key = SubjectKey(KEY)
    subjects = [key.pseudonym(each) for each in IDS]
    # the data's folder, with ledger, internal part and releases, names no event and nobody as the registry knows them
    assert not any(subject.encode() in data or bytes.fromhex(subject) in data for subject in subjects)
    assert b"withdraw" not in data
    # the registry names nobody as the data knows them, nor by a hash that could be tried without the key
    for each in IDS:
        guesses = [hashlib.sha256(each.encode()).hexdigest()[:32], SubjectKey(bytes(32)).pseudonym(each)]
        assert not any(guess.encode() in registry for guess in (each, *guesses))
    # (it does hold pseudonyms, all but those that a page of the database cuts in two)
    assert sum(subject.encode() in registry for subject in subjects) > 500
    # and the key lies in neither
    for folder in (data, registry):
        assert KEY not in folder
        assert KEY.hex().encode() not in folder
