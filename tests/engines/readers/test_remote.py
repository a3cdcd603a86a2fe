"""Rows behind an address: copied once, as one version, and nothing that is secret in the address is written."""

from __future__ import annotations

import gzip
import io
import json
import os
import ssl
import stat
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry
from pyarrow import parquet as pq

from incrowd.core.table import SourceOptions
from incrowd.engines.readers import remote
from incrowd.engines.readers.sources import Source, open_source
from incrowd.errors import IncrowdError, InvalidParameter, SourceChanged, SourceUnreadable
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from tests.tls import self_signed

TEXT = b"sex,age\nf,41\nm,30\n"
ROWS = [{"sex": "f", "age": "41"}, {"sex": "m", "age": "30"}]


class Bucket(MemoryFileSystem):  # type: ignore[misc]
    """An object store in memory, behind the scheme of a real one."""

    protocol = "s3"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    replaced: ClassVar[dict[str, bytes]] = {}

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.removeprefix("s3://").strip("/")

    def info(self, path: str, **_options: Any) -> Any:
        found = super().info(path)
        content = self.store[path].getvalue() if path in self.store else b""
        return found | {"ETag": f'"{hash(content)}"'}

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        reading = super()._open(path, mode=mode, **options)
        if mode == "rb" and path in self.replaced:
            content = io.BytesIO(reading.read())
            self.pipe(path, self.replaced.pop(path))
            return content
        return reading


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    monkeypatch.setitem(_registry, "s3", Bucket)
    monkeypatch.setattr(remote, "_SPOOLS", {})
    Bucket.store.clear()
    yield Bucket()
    Bucket.store.clear()


def parquet(rows: dict[str, list[Any]]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(rows), file)
    return file.getvalue()


def rows_of(source: Source, *names: str) -> list[Any]:
    return [row for batch in source.batches(names or source.names) for row in batch.to_pylist()]


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz", "people.parquet"])
def test_an_object_is_read_as_a_file_is(bucket: Bucket, name: str) -> None:
    content = {"people.csv": TEXT, "people.csv.gz": gzip.compress(TEXT)}.get(name)
    bucket.pipe(f"/data/{name}", content or parquet({"sex": ["f", "m"], "age": ["41", "30"]}))
    source = open_source(f"s3://data/{name}")
    assert rows_of(source) == ROWS
    assert rows_of(source, "age") == [{"age": "41"}, {"age": "30"}]
    assert source.address == f"s3://data/{name}"
    assert source.settings["version"]


def test_a_copy_has_no_name_and_ends_with_its_source(bucket: Bucket) -> None:
    bucket.pipe("/data/people.csv", TEXT)
    source = open_source("s3://data/people.csv")
    copy = source.stamps[0].path
    assert copy.is_symlink()
    assert copy.stat().st_nlink == 0
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    remote._SPOOLS.clear()
    del source
    assert not copy.parent.exists()


def test_one_version_is_read_and_an_object_that_changes_meanwhile_is_refused(bucket: Bucket) -> None:
    bucket.pipe("/data/people.csv", TEXT)
    first = open_source("s3://data/people.csv")
    bucket.pipe("/data/people.csv", TEXT + b"f,22\n")
    assert rows_of(first) == ROWS
    assert len(rows_of(open_source("s3://data/people.csv"))) == 3
    Bucket.replaced["/data/people.csv"] = TEXT + b"m,70\n"
    bucket.pipe("/data/people.csv", TEXT + b"f,23\n")
    with pytest.raises(SourceChanged, match=r"people\.csv changed"):
        open_source("s3://data/people.csv")


def test_a_prefix_with_partitions_and_a_pattern_are_one_table(bucket: Bucket) -> None:
    for year, sex in ((2024, "f"), (2025, "m")):
        bucket.pipe(f"/data/visits/year={year}/part.parquet", parquet({"sex": [sex]}))
        bucket.pipe(f"/data/visits-{year}.csv", b"sex,age\n" + f"{sex},30".encode())
    bucket.pipe("/data/visits/_SUCCESS", b"")
    source = open_source("s3://data/visits/")
    assert rows_of(source) == [{"sex": "f", "year": "2024"}, {"sex": "m", "year": "2025"}]
    assert rows_of(source, "year") == [{"year": "2024"}, {"year": "2025"}]
    assert [row["sex"] for row in rows_of(open_source("s3://data/visits-*.csv"))] == ["f", "m"]
    bucket.pipe("/data/visits-2026.csv", b"age,sex\n1,f\n")
    with pytest.raises(SourceUnreadable, match="same first line"):
        open_source("s3://data/visits-*.csv")
    with pytest.raises(SourceUnreadable, match="names no file"):
        open_source("s3://data/none")


def test_patterns_and_partitions_of_this_machine(tmp_path: Path) -> None:
    for month in ("01", "02"):
        folder = tmp_path / "t" / f"month={month}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"sex": [month]}), folder / "part.parquet")
        (tmp_path / f"m-{month}.csv").write_bytes(b"sex,age\r\nf,4\r\n")
    expected = [{"sex": "01", "month": "01"}, {"sex": "02", "month": "02"}]
    assert rows_of(open_source(tmp_path / "t")) == expected
    assert rows_of(open_source(f"{tmp_path}/t/*/part.parquet")) == expected
    assert rows_of(open_source(f"file://{tmp_path}/t")) == expected
    assert rows_of(open_source(f"{tmp_path}/m-*.csv")) == [{"sex": "f", "age": "4"}] * 2
    with pytest.raises(SourceUnreadable, match="no file is called"):
        open_source(f"{tmp_path}/x-*.csv")
    (tmp_path / "t" / "week=1").mkdir()
    pq.write_table(pa.table({"sex": ["x"]}), tmp_path / "t" / "week=1" / "part.parquet")
    with pytest.raises(SourceUnreadable, match="different columns"):
        open_source(tmp_path / "t")


def test_standard_input_is_read_once_and_serves_every_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_SPOOLS", {})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    source = open_source("-")  # text, and so delimited text
    assert rows_of(source) == rows_of(source) == ROWS
    assert rows_of(open_source("-", SourceOptions(format="csv"))) == ROWS
    assert source.address is None


def test_the_format_of_standard_input_is_known_by_its_first_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    pq.write_table(pa.table({"sex": ["f", "m"]}), file)
    wide = "kön\nman\nkvinna\n".encode("utf-16")
    for content, kind in ((file.getvalue(), "parquet"), (wide, "csv"), ("kön\nå\nå\n".encode(), "csv")):
        monkeypatch.setattr(remote, "_SPOOLS", {})
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        source = open_source("-")
        assert (source.format, len(rows_of(source))) == (kind, 2)
    for content in (b"<stata_dta><header>", b"\x1f\x8b\x08\x00", b""):
        monkeypatch.setattr(remote, "_SPOOLS", {})
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        with pytest.raises(SourceUnreadable):
            open_source("-")


class _Web(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status = 302 if self.path.startswith("/away") else 404 if "none" in self.path else 200
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:9/people.csv")
        self.send_header("ETag", '"v1"')
        self.send_header("Content-Length", str(len(TEXT) + ("short" in self.path)))
        self.end_headers()
        self.wfile.write(TEXT)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    certificate, key = self_signed(tmp_path)
    server = HTTPServer(("127.0.0.1", 0), _Web)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setattr(remote, "_SPOOLS", {})
    yield f"https://localhost:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_file_is_read_by_https_and_its_signature_is_not_repeated(web: str) -> None:
    source = open_source(f"{web}/people.csv?signature=SECRET")
    assert rows_of(source) == ROWS
    assert source.address is None  # two signed addresses may differ in what they name
    assert source.settings["version"] == "v1"
    for path in ("none.csv", "away.csv", "short.csv"):
        with pytest.raises(IncrowdError) as problem:
            open_source(f"{web}/{path}?signature=SECRET")
        assert "SECRET" not in str(problem.value)
        assert problem.value.__cause__ is None
    with pytest.raises(InvalidParameter, match="must not hold a user"):
        open_source(web.replace("localhost", "ann:SECRET@localhost") + "/people.csv")
    with pytest.raises(SourceUnreadable, match="http addresses are not read"):
        open_source("http://localhost/people.csv")


POLICY: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "people"},
    "columns": {"sex": {"categories": ["f", "m"]}, "age": {"type": "integer", "bounds": [0, 99]}},
    "release": {"method": "private-histogram", "columns": ["sex"], "epsilon": 1},
    "budget": {"epsilon": 10},
}


def test_no_credential_is_written_anywhere(web: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(json.dumps(POLICY))
    release_to(f"{web}/people.csv?signature=SECRET", file, Destination(tmp_path / "out"))
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 5
    assert not [path for path in written if b"SECRET" in path.read_bytes()]
    internal = next(path for path in written if path.name == "internal.json")
    assert json.loads(internal.read_text())["read as"]["version"] == "v1"
    for source in ("https://ann:pw@host/a.csv", "https://host/a.csv?signature=abc", "s3://key:secret@bucket/a.csv"):
        file.write_text(json.dumps(POLICY | {"source": source}))
        with pytest.raises(InvalidParameter, match="policies are passed around"):
            load_policy(file)


@pytest.mark.skipif(os.name != "posix", reason="links to open files are a matter of POSIX systems")
def test_without_open_files_as_paths_a_copy_is_a_private_file(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(remote, "_DESCRIPTORS", tmp_path / "nowhere")
    bucket.pipe("/data/people.csv", TEXT)
    source = open_source("s3://data/people.csv")
    assert stat.S_IMODE(source.stamps[0].path.lstat().st_mode) == 0o600
    assert rows_of(source) == ROWS
