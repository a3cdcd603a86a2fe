"""Rows and releases at addresses of real protocols: S3, Azure Blob and Google Cloud Storage, Delta and Iceberg tables.

    python -m tests.clouds s3 az gs delta iceberg

It needs the extras of these names, and for the first three a server, which the usual variables of each service name:
AWS_ENDPOINT_URL (moto_server), AZURE_STORAGE_CONNECTION_STRING (azurite-blob --disableTelemetry) and
STORAGE_EMULATOR_HOST (gcp-storage-emulator).  It stops at the first thing that does not hold.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from incrowd.engines.readers.remote import filesystem
from incrowd.engines.readers.sources import open_source
from incrowd.errors import OutputUnavailable, SourceUnreadable
from incrowd.workflows.release.deliver import Destination, PublishedRelease
from incrowd.workflows.release.tables import ReleaseTerms, release_to
from incrowd.workflows.verify.verify import verify

POLICY = {
    "incrowd": 1,
    "dataset": {"name": "people"},
    "columns": {"sex": {"categories": ["f", "m"]}},
    "release": {"method": "private-histogram", "columns": ["sex"], "epsilon": 1},
    "budget": {"epsilon": 10},
}
TEXT = b"sex\n" + b"f\nm\n" * 300
_SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_CONNECTION_STRING")


def rows_of(address: str) -> int:
    """Return how many rows are behind an address."""
    source = open_source(address)
    return sum(batch.num_rows for batch in source.batches(source.names))


def object_store(scheme: str) -> None:
    """Read an object, a new version of it, a prefix and a pattern; release to an address, and go on after a failure."""
    bucket = f"b{secrets.token_hex(6)}"
    files, root = filesystem(f"{scheme}://{bucket}"), f"{scheme}://{bucket}"
    files.mkdir(bucket)
    files.pipe_file(f"{bucket}/people.csv", TEXT)
    assert rows_of(f"{root}/people.csv") == 600
    first = open_source(f"{root}/people.csv").settings["version"]
    files.pipe_file(f"{bucket}/people.csv", TEXT + b"f\n")
    assert rows_of(f"{root}/people.csv") == 601
    assert open_source(f"{root}/people.csv").settings["version"] != first
    for year in (2024, 2025):
        file = io.BytesIO()
        pq.write_table(pa.table({"sex": ["f"] * 5}), file)
        files.pipe_file(f"{bucket}/visits/year={year}/part.parquet", file.getvalue())
    for address in (f"{root}/visits", f"{root}/visits/", f"{root}/visits/*/*.parquet"):
        assert open_source(address).names == ("sex", "year")
        assert rows_of(address) == 10
    _refused(SourceUnreadable, lambda: open_source(f"{root}/none.csv"))

    def released() -> PublishedRelease:
        destination = Destination(f"{root}/out")
        return release_to(f"{root}/people.csv", "policy.yaml", destination, terms=ReleaseTerms(key=bucket))

    Path("policy.yaml").write_text(json.dumps(POLICY), encoding="utf-8")
    made = released()
    names = sorted(str(name).rpartition("/")[2] for name in files.find(f"{bucket}/out"))
    assert names == ["certificate.json", "data.parquet", "report.html"]
    files.rm(f"{bucket}/out/certificate.json")  # as if the upload had been cut short
    assert released().release.certificate == made.release.certificate
    downloaded = Path("downloaded")
    downloaded.mkdir()
    for name in names:
        (downloaded / name).write_bytes(filesystem(root).cat_file(f"{bucket}/out/{name}"))
    assert verify(downloaded).passed
    policy = Path("other.yaml")
    policy.write_text(json.dumps(POLICY), encoding="utf-8")
    _refused(OutputUnavailable, lambda: release_to(f"{root}/people.csv", policy, Destination(f"{root}/visits")))


def delta(_scheme: str) -> None:
    """Read the current version of a Delta table, without rows that were deleted."""
    from deltalake import DeltaTable, write_deltalake

    write_deltalake("visits", pa.table({"sex": ["f", "m", "x"], "year": [1, 2, 2]}), partition_by=["year"])
    DeltaTable("visits").delete("sex = 'x'")
    assert rows_of("visits") == 2
    assert open_source("visits").settings["version"] == "delta 1"


def iceberg(_scheme: str) -> None:
    """Read the current snapshot of an Iceberg table."""
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("here", uri="sqlite:///catalog.db", warehouse=Path.cwd().as_uri())
    catalog.create_namespace("clinic")
    rows = pa.table({"sex": ["f", "m", "x"]})
    table = catalog.create_table("clinic.visits", schema=rows.schema)
    table.append(rows)
    table.delete("sex == 'x'")
    place = Path(table.location().removeprefix("file://"))
    assert rows_of(str(place)) == 2
    assert open_source(str(place)).settings["version"].startswith("iceberg ")


def _refused(error: type[Exception], work: Callable[[], Any]) -> None:
    with pytest.raises(error) as problem:
        work()
    assert not any(os.environ[name] in str(problem.value) for name in _SECRETS if name in os.environ)


def main(names: list[str]) -> None:
    """Try each of these, in a folder of its own, and look for credentials in everything that was written there."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            {"delta": delta, "iceberg": iceberg}.get(name, object_store)(name)
            content = b"".join(path.read_bytes() for path in Path(folder).rglob("*") if path.is_file())
            for variable in _SECRETS:
                secret = os.environ.get(variable, "")
                assert not secret or secret.encode() not in content, f"{variable} was written"
        print(f"{name}: read, and where it is a store, written")


if __name__ == "__main__":
    main(sys.argv[1:])
