"""Deliver: an output with its certificate goes into memory or into a folder, whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic

from incrowd.core.certificate import Certificate, Release
from incrowd.core.domain import Categories
from incrowd.core.schema import Schema
from incrowd.engines.readers.remote import EXTRAS, from_file_address, scheme_of
from incrowd.engines.settings import describe
from incrowd.engines.statistics_files import check_names
from incrowd.engines.writers.sinks import Folders, check_free, complete, staged, write_table
from incrowd.errors import GuaranteeBroken, InvalidParameter
from incrowd.verifier.files import CERTIFICATE, FORMATS, REPORT, STATISTICS, file_of, names_of, tables_of
from incrowd.verifier.judge import statement_of
from incrowd.workflows.policy.internal import INTERNAL
from incrowd.workflows.registry import check_of
from incrowd.workflows.release.prepare import PolicyOrder
from incrowd.workflows.release.run import Delivered, PendingRelease, R
from incrowd.workflows.report.page import public_report, summary_html
from incrowd.workflows.verify.signing import private_key, sign


@dataclass(frozen=True, repr=False)
class Released(Release[Any]):
    """A release in memory: `result` and `certificate`, and the report that explains both."""

    def report(self) -> str:
        """Return the public report as one self-contained HTML page."""
        return public_report(self.certificate, self.result)

    def _repr_html_(self) -> Any:
        return summary_html(self.certificate) + self.result._repr_html_()


@dataclass(frozen=True)
class Destination:
    """Where a release goes: folder, format, signing key, and a table of a database besides.

    An address of an object store, such as `s3://bucket/2025`, is a folder, too.
    """

    folder: Path | str
    form: str = "parquet"
    key: Path | None = None
    table: str | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    """Titles of columns, for formats that store them."""

    def __post_init__(self) -> None:
        text = from_file_address(str(self.folder))
        scheme = scheme_of(text)
        if scheme and scheme not in EXTRAS:
            raise InvalidParameter(f"a release goes into a folder, or to {', '.join(EXTRAS)}; not to {scheme}://.")
        object.__setattr__(self, "folder", text if scheme else Path(text))
        if self.form not in FORMATS:
            raise InvalidParameter(f"releases are written as parquet, csv, tsv, dta, sav or xpt, not {self.form!r}.")

    @property
    def place(self) -> Path:
        """The folder on this machine; an address is refused where nothing is uploaded."""
        if isinstance(self.folder, str):
            raise InvalidParameter(
                "only incrowd release, for one table, uploads to an address: name a folder, and copy it when it is "
                "done, the certificate last."
            )
        return self.folder

    @property
    def address(self) -> str | None:
        """The address of an object store; None for a folder on this machine."""
        return self.folder if isinstance(self.folder, str) else None

    def check(self, folders: Folders, schema: Schema) -> None:
        """Raise, before anything is charged, if a release of such columns could not go there."""
        check_free(folders)
        check_labels(self.form, schema)
        if self.form in STATISTICS:
            check_names(self.form, [column.name for column in schema.released])
        if self.key is not None:
            private_key(self.key)
        if self.table is not None:
            from incrowd.engines.writers.postgres import check_table

            check_table(self.table, [column.name for column in schema.released])


@dataclass(frozen=True)
class PublishedRelease:
    """Where a release went: the public folder, the internal one, and notes for the data holder."""

    folder: Path
    internal: Path
    release: Released
    notes: tuple[str, ...] = ()


class InMemory:
    """Delivery to the caller: the output and its certificate."""

    def appeared(self) -> bool:
        return False

    @contextmanager
    def deliver(
        self, made: PendingRelease[Any], certificate: Certificate
    ) -> Iterator[Delivered[tuple[Any, Certificate]]]:
        check = check_of(certificate.method.name)
        _require(holds=check.recount(statement_of(certificate), made.output) is None)
        yield Delivered(certificate, (made.output, certificate))


IN_MEMORY = InMemory()

Accompany = Callable[[PendingRelease[R], Certificate, Folders], tuple[str, ...]]
"""Compares files that were written with earlier releases, writes what stays with the data holder, and returns notes."""


def _alone(_made: PendingRelease[Any], _certificate: Certificate, _stage: Folders) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, eq=False)
class InFolder(Generic[R]):
    """Delivery into a folder: data, report and certificate appear together, or not at all."""

    destination: Destination
    internal: Path | None = None
    accompany: Accompany[R] = _alone

    @property
    def folders(self) -> Folders:
        return Folders(self.destination.place, self.internal)

    def appeared(self) -> bool:
        return (self.destination.place / CERTIFICATE).exists()

    @contextmanager
    def deliver(self, made: PendingRelease[R], certificate: Certificate) -> Iterator[Delivered[PublishedRelease]]:
        destination = self.destination
        # the table of a database appears when the outer block ends: after the folder, never without it
        with ExitStack() as loading, staged(self.folders) as stage:
            written = write_files(certificate, made.output, stage.public, destination)
            notes = self.accompany(made, written, stage)
            if destination.table is not None:
                from incrowd.engines.writers.postgres import load_table  # loaded before the charge, by `check`

                title = f"incrowd release {certificate.id}"
                loading.enter_context(load_table(made.output.reader, destination.table, title))
            complete(stage)
            release = Released(made.output, written)
            yield Delivered(
                written, PublishedRelease(destination.place, self.internal or destination.place, release, notes)
            )


def write_internal(stage: Folders, order: PolicyOrder, published: Path, key: bytes, source: Mapping[str, Any]) -> Path:
    """Write what only the data holder may know (where the rows are, the key of the commitment), and return where."""
    if stage.internal is None:
        raise AssertionError("a release under a policy has an internal folder")
    policy = order.policy
    inside = {
        "certificate": order.id,
        **source,
        "worked on": describe(policy.engine),
        "commitment key": key.hex(),
        "published": str(published.resolve()),
        "k": policy.plan.smallest_class,
        "policy": policy.section.model_dump(mode="json", exclude_none=True),
    }
    (stage.internal / INTERNAL).write_text(json.dumps(inside, indent=1, ensure_ascii=False), encoding="utf-8")
    return stage.internal


def published_output(certificate: Certificate, folder: Path) -> Any:
    """Return what was published, if all of its files lie beside the certificate; none is looked for elsewhere."""
    files = tuple(folder / Path(file.name).name for file in tables_of(certificate))
    if not files or not all(file.is_file() for file in files):
        return None
    return check_of(certificate.method.name).reopen(statement_of(certificate), files)


def check_form(form: str, method: str) -> None:
    """Refuse files of Stata, SPSS and SAS for a method whose check cannot read these formats.

    >>> check_form("sav", "safe")
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: releases of safe are written as parquet, csv or tsv; sav is for masks, whose ...
    """
    if form in STATISTICS and not check_of(method).statistics_formats:
        raise InvalidParameter(
            f"releases of {method} are written as parquet, csv or tsv; {form} is for masks, whose rows are like those "
            "of the source. Choose another format."
        )


def write_files(certificate: Certificate, output: Any, folder: Path, destination: Destination) -> Certificate:
    """Write tables, documents, report and certificate into a folder, and check the files as a verifier does.

    The report is made from the files and names the certificate's id, so that it can be hashed with them.
    """
    names = names_of(len(output.parts), destination.form, certificate.steps[-1])
    files = tuple(folder / name for name in names)
    for part, file in zip(output.parts, files, strict=True):
        write_table(part.reader(), file, destination.titles)
    for name, text in getattr(output, "documents", {}).items():
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
        files = (*files, folder / name)
    bare = replace(certificate, outputs=tuple(map(file_of, files)))
    check, statement = check_of(certificate.method.name), statement_of(bare)
    for outcome in check.inspect(statement, files):
        _require(holds=outcome.problem is None or outcome.problem.undecided)
    report = folder / REPORT
    report.write_text(public_report(bare, check.reopen(statement, files)), encoding="utf-8")
    whole = replace(bare, outputs=(*bare.outputs, file_of(report)))
    signed = whole if destination.key is None else sign(whole, destination.key)
    (folder / CERTIFICATE).write_text(signed.to_text(), encoding="utf-8")
    return signed


def check_labels(form: str, schema: Schema) -> None:
    """Refuse an empty text among the labels of a column in a text format: there it means a missing value.

    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.schema import Column
    >>> check_labels("csv", Schema((Column("ill", hierarchy=Flat(Categories(("", "flu")))),)))
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: 'ill' has an empty text among its labels, which in a csv file looks like a ...
    """
    for column in schema.released if form != "parquet" else ():
        levels = range(column.hierarchy.height + 1) if isinstance(column.domain, Categories) else ()
        if any("" in (column.hierarchy.labels(level) or ()) for level in levels):
            raise InvalidParameter(
                f"{column.name!r} has an empty text among its labels, which in a {form} file looks like a missing "
                "value. Release as parquet, or give that value another name."
            )


def _require(*, holds: bool) -> None:
    if not holds:
        raise GuaranteeBroken(
            "the output does not keep its guarantee. This is a fault in the software: please report it."
        )
