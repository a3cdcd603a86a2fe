"""Protect: a table and a policy in, a certified release out."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from incrowd.accounting.bookkeeping.datasets import Declaration
from incrowd.accounting.ledger import Ledger
from incrowd.core.certificate import NONCE_BYTES, Certificate, release_id
from incrowd.core.table import Table
from incrowd.engines.columns import require
from incrowd.engines.fingerprint import content_digest, keyed
from incrowd.engines.local import LocalEngine
from incrowd.engines.sinks import Folders, check_free, publish, write_table
from incrowd.engines.sources import Source, open_source
from incrowd.engines.validate import Progress, needed, validate
from incrowd.errors import InvalidParameter, OutputUnavailable, SourceInvalid
from incrowd.workflows.book import open_book
from incrowd.workflows.certify import Inputs, certificate_of
from incrowd.workflows.perform import Performed, perform
from incrowd.workflows.plan import warnings_of
from incrowd.workflows.policy import Policy, load_policy
from incrowd.workflows.recount import require_held, require_written
from incrowd.workflows.report import public_report
from incrowd.workflows.result import Released
from incrowd.workflows.signing import private_key, sign

DATA = "data"


@dataclass(frozen=True)
class Destination:
    """Where a release goes, in which format, and with whose signature."""

    folder: Path
    form: str = "parquet"
    key: Path | None = None

    def __post_init__(self) -> None:
        if self.form not in ("parquet", "csv", "tsv"):
            raise InvalidParameter(f"releases are written as parquet, csv or tsv, not {self.form!r}.")


@dataclass(frozen=True)
class Watched:
    """Rows that tell how many of them have been read."""

    source: Source
    progress: Progress

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the source."""
        return self.source.names

    @property
    def rows(self) -> int | None:
        """How many rows there are, or None if only reading them would tell."""
        return self.source.rows

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read these columns, and tell after each batch."""
        done = 0
        for batch in self.source.batches(columns):
            yield batch
            done += len(batch)
            self.progress(done, self.rows)


@dataclass(frozen=True)
class Published:
    """Where a release went: what may be passed on, what stays, and what its owner should know."""

    folder: Path
    internal: Path
    release: Released
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """Everything that is checked before a charge: a table that can be read, a ledger that knows it."""

    policy: Policy
    source: Source
    table: Table
    ledger: Ledger
    id: str
    key: bytes
    commitment: str


def release(data: object, policy: str | Path | Mapping[str, Any] | Policy) -> Released:
    """Release a file or a frame under a policy, in memory: the result and its certificate."""
    ready = prepare(data, policy)
    performed = perform(ready.policy.method, ready.table, ready.ledger, ready.policy.name, ready.id)
    certificate = _certificate(ready, performed, ())
    require_held(certificate, performed.outcome)
    return Released(performed.outcome, certificate)


def release_to(
    data: object,
    policy: str | Path | Mapping[str, Any] | Policy,
    destination: Destination,
    progress: Progress | None = None,
) -> Published:
    """Release a file or a frame into a folder: data, certificate and report appear together, or not at all."""
    loaded = policy if isinstance(policy, Policy) else load_policy(policy)
    id_ = _fresh_id(loaded)
    folders = Folders(destination.folder, loaded.folder / ".incrowd" / "internal" / id_)
    check_free(folders)
    if destination.key is not None:
        private_key(destination.key)
    ready = prepare(data, loaded, progress, id_)
    table = ready.table if progress is None else replace(ready.table, rows=Watched(ready.source, progress))
    performed = perform(loaded.method, table, ready.ledger, loaded.name, ready.id)
    result = performed.outcome
    name, written = f"{DATA}.{destination.form}", list[Certificate]()

    def write(stage: Folders) -> None:
        write_table(result.reader(), stage.public / name)
        certificate = _certificate(ready, performed, (_output(stage.public / name),))
        if destination.key is not None:
            certificate = sign(certificate, destination.key)
        (stage.public / "certificate.json").write_text(certificate.to_text(), encoding="utf-8")
        (stage.public / "report.html").write_text(public_report(certificate, result), encoding="utf-8")
        _write_internal(stage, ready, certificate)
        written.append(certificate)

    def check(stage: Folders) -> None:
        require_written(written[0], stage.public / name)

    try:
        publish(folders, write, check)
    except OutputUnavailable as error:
        raise OutputUnavailable(f"{error} The charge stays spent.") from None
    notes = (*ready.source.notes, *warnings_of(loaded, performed.promise))
    return Published(destination.folder, folders.internal or destination.folder, Released(result, written[0]), notes)


def prepare(
    data: object,
    policy: str | Path | Mapping[str, Any] | Policy,
    progress: Progress | None = None,
    id_: str | None = None,
) -> Prepared:
    """Open and check everything that can be checked before a charge; the promise first, since it needs no data."""
    loaded = policy if isinstance(policy, Policy) else load_policy(policy)
    _promise(loaded)
    source = open_data(data, loaded)
    _validate(source, loaded, progress)
    ledger = open_book(loaded)
    key = secrets.token_bytes(32)
    content = _content(source)
    marks = (keyed(content, hashlib.sha256(b"source " + ledger.secret).digest()), *filter(None, (source.address,)))
    section = loaded.section.dataset
    ledger.register(
        Declaration(loaded.name, loaded.schema.unit, loaded.budget, marks, section.same_people_as, section.separate)
    )
    table = Table(loaded.schema, source, LocalEngine())
    return Prepared(loaded, source, table, ledger, id_ or _fresh_id(loaded), key, keyed(content, key))


def _content(source: Source) -> bytes:
    try:
        content = content_digest(source)
    except UnicodeError:
        content = None  # the error's own text holds a piece of the source
    if content is None:
        raise SourceInvalid("the source holds text that is not valid Unicode; nothing was released or charged.")
    return content


def open_data(data: object, policy: Policy) -> Source:
    """Open the data named by the caller, or else by the policy; every declared column must be there."""
    named = data if data is not None else policy.source
    if named is None:
        raise InvalidParameter("no data: name a file, or write source: in the policy.")
    source = open_source(named, policy.options)
    require(source.names, policy.schema.names)
    return source


def _fresh_id(policy: Policy) -> str:
    """Return a new name for a release, bound to everything that its certificate will tell about the promise."""
    method, schema = policy.method, policy.schema
    told = (method.claims(schema), method.chain(schema))
    return release_id(secrets.token_bytes(NONCE_BYTES), policy.hash, method.guarantee(schema), told)


def _promise(policy: Policy) -> None:
    """Work out everything that the certificate will say about the promise, so that nothing of it can fail later."""
    policy.method.guarantee(policy.schema)
    policy.method.claims(policy.schema)
    policy.method.chain(policy.schema)


def _validate(source: Source, policy: Policy, progress: Progress | None) -> None:
    """Check structure and types before the charge, so that one ragged line costs nothing."""
    checks = needed(source, policy.schema)
    if checks:
        validate(source, checks, progress=progress).raise_if_any()


def _certificate(ready: Prepared, performed: Performed, outputs: tuple[Mapping[str, Any], ...]) -> Certificate:
    return certificate_of(ready.policy, performed, Inputs(ready.id, ready.commitment), outputs)


def _output(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    return {"name": path.name, "sha256": found, "bytes": path.stat().st_size}


def _write_internal(stage: Folders, ready: Prepared, certificate: Certificate) -> None:
    """Keep apart what only the data holder may know: where the rows were, and the key of the commitment."""
    if stage.internal is None:
        raise AssertionError("a release to a folder has an internal folder")
    inside = {
        "certificate": certificate.id,
        "source": ready.source.address,
        "read as": dict(ready.source.settings),
        "commitment key": ready.key.hex(),
        "policy": ready.policy.section.model_dump(mode="json", exclude_none=True),
    }
    (stage.internal / "internal.json").write_text(json.dumps(inside, indent=1, ensure_ascii=False), encoding="utf-8")
