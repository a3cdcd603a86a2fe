"""A release for an object store: made and checked here, uploaded, and its certificate last of all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

from incrowd.cli.main import main
from incrowd.errors import InvalidParameter, OutputUnavailable, Refused
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination, PublishedRelease
from incrowd.workflows.release.tables import ReleaseTerms, release_to
from incrowd.workflows.verify.verify import verify

POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "people"},
    "columns": {"sex": {"categories": ["f", "m"]}},
    "release": {"method": "safe", "rate": "1/2", "epsilon": 1, "delta": "1e-4"},
    "budget": {"epsilon": 10, "delta": "1/10"},
}
OUT = "s3://results/2025"


class Results(MemoryFileSystem):  # type: ignore[misc]
    """An object store that notes what is written, and fails from a number of objects on."""

    protocol = "s3"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    written: ClassVar[list[str]] = []
    room: ClassVar[list[int]] = [99]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("s3://").strip("/")

    def put_file(self, lpath: str, rpath: str, **options: Any) -> None:
        self.pipe_file(rpath, Path(lpath).read_bytes())

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        if len(self.written) >= self.room[0]:
            raise ConnectionError("https://results.example.org/?signature=SECRET")
        self.written.append(path.rpartition("/")[2])
        super().pipe_file(path, value)


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[Results]]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(_registry, "s3", Results)
    Path("policy.yaml").write_text(json.dumps(POLICY))
    Path("people.csv").write_text("sex\n" + "f\nm\n" * 300)
    yield Results
    Results.store.clear()
    Results.written.clear()
    Results.room[0] = 99


def released(key: str | None = None, out: str = OUT) -> PublishedRelease:
    return release_to("people.csv", "policy.yaml", Destination(out), terms=ReleaseTerms(key=key))


def charges() -> int:
    ledger = find_book(load_policy(Path("policy.yaml")))
    return 0 if ledger is None else sum(entry.kind == "charge" for entry in ledger.entries())


def test_the_certificate_is_uploaded_last_and_what_is_there_verifies(results: type[Results], tmp_path: Path) -> None:
    made = released()
    assert sorted(results.written[:-1]) == ["data.parquet", "report.html"]
    assert results.written[-1] == "certificate.json"
    there = tmp_path / "downloaded"
    there.mkdir()
    for path, file in results.store.items():
        (there / Path(path).name).write_bytes(file.getvalue())
    assert verify(there).passed
    assert f"uploaded to {OUT}, its certificate last" in made.notes
    Path(".incrowd", "published").rename("elsewhere")
    with pytest.raises(OutputUnavailable, match="nothing is overwritten"):
        released()
    assert charges() == 1


def test_an_upload_that_was_cut_short_goes_on_at_no_cost(results: type[Results]) -> None:
    results.room[0] = 1
    with pytest.raises(OutputUnavailable) as problem:
        released("may")
    assert "SECRET" not in str(problem.value)
    assert "--recover deliver" in str(problem.value)
    assert "/results/2025/certificate.json" not in results.store
    with pytest.raises(Refused, match="was made before"):
        released()
    results.room[0] = 99
    again = released("may")
    assert "made before with this key" in again.notes[0]
    assert results.written[-1] == "certificate.json"
    before = len(results.written)
    assert main(f"release people.csv --policy policy.yaml --out {OUT} --recover deliver".split()) == 0
    assert released("may").release.certificate == again.release.certificate
    assert len(results.written) == before  # all of it is there
    assert charges() == 1


def test_another_release_is_not_replaced_and_no_secret_is_taken(results: type[Results]) -> None:
    released("may")
    results().pipe("/results/2025/certificate.json", b"{}")
    with pytest.raises(Refused, match="another release"):
        released("may")
    for out in ("https://results.example.org/2025", "ftp://results/2025"):
        with pytest.raises(InvalidParameter, match="a release goes into a folder"):
            Destination(out)
    with pytest.raises(InvalidParameter, match="credentials in the environment"):
        released(out="s3://key:secret@results/2025")
    assert charges() == 1
