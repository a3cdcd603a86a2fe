"""Protect: a table and a policy in, a certified release out."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.certificate import NONCE_BYTES, Certificate, release_id
from incrowd.core.schema import Schema
from incrowd.core.table import Engine, Opened, Progress, Table
from incrowd.engines.choose import engine_of, settings_for
from incrowd.engines.columns import require
from incrowd.engines.local.fingerprint import keyed
from incrowd.engines.settings import described
from incrowd.engines.writers.postgres import check_table, load_table
from incrowd.engines.writers.sinks import Folders, check_free, publish, write_table
from incrowd.errors import InvalidParameter, OutputUnavailable
from incrowd.workflows.book import open_book
from incrowd.workflows.certify import Inputs, certificate_of
from incrowd.workflows.files import FORMATS, check_labels, names_of
from incrowd.workflows.perform import Performed, perform
from incrowd.workflows.plan import warnings_of
from incrowd.workflows.policy import Policy, load_policy
from incrowd.workflows.recount import require_held, require_written
from incrowd.workflows.report import public_report
from incrowd.workflows.result import Released
from incrowd.workflows.signing import private_key, sign


@dataclass(frozen=True)
class Destination:
    """Where a release goes, in which format, with whose signature, and into which table of a database besides."""

    folder: Path
    form: str = "parquet"
    key: Path | None = None
    table: str | None = None

    def __post_init__(self) -> None:
        if self.form not in FORMATS:
            raise InvalidParameter(f"releases are written as parquet, csv or tsv, not {self.form!r}.")

    def check(self, folders: Folders, schema: Schema) -> None:
        """Raise, before anything is charged, if a release of such columns could not go there."""
        check_free(folders)
        check_labels(self.form, schema)
        if self.key is not None:
            private_key(self.key)
        if self.table is not None:
            check_table(self.table, [column.name for column in schema.released])


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
    source: Opened
    table: Table
    ledger: Ledger
    id: str
    key: bytes
    commitment: str


def release(data: object, policy: str | Path | Mapping[str, Any] | Policy) -> Released:
    """Release a file or a frame under a policy, in memory: the result and its certificate."""
    loaded = _loaded(policy, data)
    id_ = _fresh_id(loaded)
    with engine_of(loaded.engine, data) as engine:
        ready = prepare(data, loaded, id_, engine)
        performed = perform(loaded.method, ready.table, ready.ledger, loaded.name, id_)
    certificate = _certificate(ready, performed, ())
    require_held(certificate, performed.outcome)
    return Released(performed.outcome, certificate)


def release_to(
    data: object,
    policy: str | Path | Mapping[str, Any] | Policy,
    destination: Destination,
    progress: Progress | None = None,
) -> Published:
    """Release a file or a frame into a folder: data, certificate and report appear together, or not at all.

    Where a table of a database is named, it holds the same rows and appears as soon as the folder has.
    """
    loaded = _loaded(policy, data)
    id_ = _fresh_id(loaded)
    folders = Folders(destination.folder, loaded.folder / ".incrowd" / "internal" / id_)
    destination.check(folders, loaded.schema)
    with engine_of(loaded.engine, data) as engine:
        ready = prepare(data, loaded, id_, engine, progress)
        performed = perform(loaded.method, ready.table, ready.ledger, loaded.name, id_)
    result = performed.outcome
    names, written = names_of(len(result.parts), destination.form), list[Certificate]()

    def write(stage: Folders) -> None:
        for part, name in zip(result.parts, names, strict=True):
            write_table(part.reader(), stage.public / name)
        certificate = _certificate(ready, performed, tuple(_output(stage.public / name) for name in names))
        if destination.key is not None:
            certificate = sign(certificate, destination.key)
        (stage.public / "certificate.json").write_text(certificate.to_text(), encoding="utf-8")
        (stage.public / "report.html").write_text(public_report(certificate, result), encoding="utf-8")
        _write_internal(stage, ready, certificate)
        written.append(certificate)

    def check(stage: Folders) -> None:
        require_written(written[0], stage.public / names[0])
        if destination.table is not None:
            loading.enter_context(load_table(result.reader, destination.table, f"incrowd release {id_}"))

    try:
        with ExitStack() as loading:  # the table appears when this ends: after the folder, never without it
            publish(folders, write, check)
    except OutputUnavailable as error:
        raise OutputUnavailable(f"{error} The charge stays spent.") from None
    notes = (*ready.source.notes, *warnings_of(loaded, performed.promise))
    return Published(destination.folder, folders.internal or destination.folder, Released(result, written[0]), notes)


def _loaded(policy: str | Path | Mapping[str, Any] | Policy, data: object) -> Policy:
    loaded = policy if isinstance(policy, Policy) else load_policy(policy)
    return replace(loaded, engine=settings_for(data, loaded.engine))


def prepare(data: object, policy: Policy, id_: str, engine: Engine, progress: Progress | None = None) -> Prepared:
    """Open and check everything that can be checked before a charge, where the rows live.

    What the certificate will say about the promise was worked out for the id of the release, which needs no data.
    Structure and types are checked here, so that one ragged line costs nothing.
    """
    source = open_data(data, policy, engine)
    engine.validate(source, policy.schema, progress)
    ledger = open_book(policy)
    key = secrets.token_bytes(32)
    content = engine.digest(source)
    marks = (keyed(content, hashlib.sha256(b"source " + ledger.secret).digest()), *filter(None, (source.address,)))
    section = policy.section.dataset
    ledger.register(
        Declaration(policy.name, policy.schema.unit, policy.budget, marks, section.same_people_as, section.separate)
    )
    rows = source if progress is None else engine.watched(source, progress)
    return Prepared(policy, source, Table(policy.schema, rows, engine), ledger, id_, key, keyed(content, key))


def open_data(data: object, policy: Policy, engine: Engine) -> Opened:
    """Open the data named by the caller, or else by the policy; every declared column must be there."""
    named = data if data is not None else policy.source
    if named is None:
        raise InvalidParameter("no data: name a file, or write source: in the policy.")
    source = engine.open(named, policy.options)
    require(source.names, policy.schema.names)
    return source


def _fresh_id(policy: Policy) -> str:
    """Return a new name for a release, bound to everything that its certificate will tell about the promise."""
    method, schema = policy.method, policy.schema
    told = (method.claims(schema), method.chain(schema))
    return release_id(secrets.token_bytes(NONCE_BYTES), policy.hash, method.guarantee(schema), told)


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
        "worked on": described(ready.policy.engine),
        "commitment key": ready.key.hex(),
        "policy": ready.policy.section.model_dump(mode="json", exclude_none=True),
    }
    (stage.internal / "internal.json").write_text(json.dumps(inside, indent=1, ensure_ascii=False), encoding="utf-8")
