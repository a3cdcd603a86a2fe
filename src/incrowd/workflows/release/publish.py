"""Publish: data, report and certificate appear together in a folder, or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from incrowd.core.certificate import Certificate, Release
from incrowd.core.domain import Categories
from incrowd.core.plan import Plan
from incrowd.core.rounding import exact
from incrowd.core.schema import Schema
from incrowd.core.steps.around import Compare, HoldOut, Rerun
from incrowd.core.steps.step import Step
from incrowd.core.table import Progress, Table
from incrowd.engines.choose import engine_of
from incrowd.engines.settings import describe
from incrowd.engines.writers.postgres import check_table, load_table
from incrowd.engines.writers.sinks import Folders, check_free, staged, write_table
from incrowd.engines.writers.statistics import check_names
from incrowd.errors import GuaranteeBroken, InvalidParameter
from incrowd.verifier.files import CERTIFICATE, FORMATS, REPORT, STATISTICS, file_of, names_of
from incrowd.verifier.judge import statement_of
from incrowd.workflows.consent.calendar import require_day
from incrowd.workflows.consent.changes import participants, require_crowds
from incrowd.workflows.consent.lineage import require_lineage
from incrowd.workflows.consent.participants import keep_participants
from incrowd.workflows.consent.snapshot import admit
from incrowd.workflows.plan.forecast import require_useful, warnings_of
from incrowd.workflows.policy.internal import INTERNAL, internal_folder
from incrowd.workflows.policy.ledger import failed_before, find_book
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.registry import check_of
from incrowd.workflows.release.certify import Stated, certify, columns_of, dataset_of
from incrowd.workflows.release.differences import (
    Earlier,
    Written,
    earlier_releases,
    hold_against,
)
from incrowd.workflows.release.outsiders import keep_held_out
from incrowd.workflows.release.perform import ChargeTarget, ExecutedPlan, concluding, perform
from incrowd.workflows.release.prepare import Prepared, TakingPart, load_for, prepare
from incrowd.workflows.report.page import public_report, summary_html
from incrowd.workflows.report.steps_page import keep_steps
from incrowd.workflows.verify.signing import private_key, sign


@dataclass(frozen=True)
class Released(Release[Any]):
    """A release in memory: `result` and `certificate`, and the report that explains both."""

    def report(self) -> str:
        """Return the public report as one self-contained HTML page."""
        return public_report(self.certificate, self.result)

    def _repr_html_(self) -> Any:
        return summary_html(self.certificate) + self.result._repr_html_()


@dataclass(frozen=True)
class Destination:
    """Where a release goes, in which format, with whose signature, and into which table of a database besides."""

    folder: Path
    form: str = "parquet"
    key: Path | None = None
    table: str | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    """What columns are called for people, in formats that say it."""

    def __post_init__(self) -> None:
        if self.form not in FORMATS:
            raise InvalidParameter(f"releases are written as parquet, csv, tsv, dta, sav or xpt, not {self.form!r}.")

    def check(self, folders: Folders, schema: Schema) -> None:
        """Raise, before anything is charged, if a release of such columns could not go there."""
        check_free(folders)
        check_labels(self.form, schema)
        if self.form in STATISTICS:
            check_names(self.form, [column.name for column in schema.released])
        if self.key is not None:
            private_key(self.key)
        if self.table is not None:
            check_table(self.table, [column.name for column in schema.released])


@dataclass(frozen=True)
class ReleaseTerms:
    """What the holder adds to a policy for one release: a share of people held out, and what was refused, anyway."""

    hold_out: Fraction | None = None
    anyway: bool = False


AS_IT_IS = ReleaseTerms()


def share_of(text: str | None) -> Fraction | None:
    """Return the share that a person wrote, in percent or not.

    >>> share_of("10%"), share_of("0.1")
    (Fraction(1, 10), Fraction(1, 10))
    """
    if text is None:
        return None
    number = exact(text.removesuffix("%"), "the share that is held out")
    return HoldOut(number / 100 if text.endswith("%") else number).share


@dataclass(frozen=True)
class PublishedRelease:
    """Where a release went: what may be passed on, what stays, and what its owner should know."""

    folder: Path
    internal: Path
    release: Released
    notes: tuple[str, ...] = ()


def release(data: object, policy: str | Path | Mapping[str, Any] | Policy, *, anyway: bool = False) -> Released:
    """Release a file or a frame under a policy, in memory: the result and its certificate.

    What will probably be empty by public numbers is refused before the charge, unless it is wanted anyway.
    """
    read = load_for(policy, data)
    if not anyway:
        require_useful(read)
    return Released(*carry_out(read.plan.led_by(*_rerun(read)), data, read))


def carry_out(plan: Plan, data: object, policy: Policy, progress: Progress | None = None) -> tuple[Any, Certificate]:
    """Charge a plan for the rows of a policy and carry it out; what came of it stays in memory."""
    admission = admit(policy, data)
    require_day(admission)
    plan = plan.gated(None if admission is None else admission.gate)
    stated = Stated.of(plan, policy)
    id_ = stated.fresh_id()
    check = check_of(plan.method)
    with ExitStack() as paid:
        with engine_of(policy.engine, data) as engine:
            ready = prepare(data, policy, engine, progress, TakingPart(admission))
            payer = ChargeTarget(policy.name, id_, bonds=(ready.bond,))
            paid.enter_context(concluding(ready.ledger, plan, payer))
            performed = perform(plan, ready.table, ready.ledger, payer)
        certificate = _certificate(id_, stated, (policy, ready), performed)
        _require(holds=check.recount(statement_of(certificate), performed.output) is None)
        ready.ledger.conclude(performed.entry, certificate.digest())
    return performed.output, certificate


def release_to(
    data: object,
    policy: str | Path | Mapping[str, Any] | Policy,
    destination: Destination,
    progress: Progress | None = None,
    terms: ReleaseTerms = AS_IT_IS,
) -> PublishedRelease:
    """Release a file or a frame into a folder: data, report and certificate appear together, or not at all.

    Where a table of a database is named, it holds the same rows and appears as soon as the folder has.  One without an
    ε is held against earlier ones of the same people first.
    """
    read = load_for(policy, data)
    if not terms.anyway:
        require_useful(read)
    earlier = earlier_releases(read, find_book(read), anyway=terms.anyway)
    admission = admit(read, data)
    require_day(admission, earlier)
    if not terms.anyway:
        require_lineage(read, find_book(read), admission)
    plan = read.plan.led_by(*_around(read, terms, earlier)).gated(None if admission is None else admission.gate)
    stated = Stated.of(plan, read)
    id_ = stated.fresh_id()
    folders = Folders(destination.folder, internal_folder(read, id_))
    destination.check(folders, read.schema)
    check_form(destination.form, plan.method)
    there = destination.folder / CERTIFICATE
    with ExitStack() as paid:
        with engine_of(read.engine, data) as engine:
            ready = prepare(data, read, engine, progress, TakingPart(admission, terms.hold_out))
            require_crowds(read, earlier, Table(read.schema, ready.source, engine), admission)
            payer = ChargeTarget(read.name, id_, bonds=(ready.bond,))
            paid.enter_context(concluding(ready.ledger, plan, payer, there.exists))
            performed = perform(plan, ready.table, ready.ledger, payer)
            certificate = _certificate(id_, stated, (read, ready), performed)
            took_part = participants(read, certificate, Table(read.schema, ready.source, engine), admission)
        # the table of a database appears when the outer block ends: after the folder, never without it
        with ExitStack() as loading, staged(folders) as stage:
            certificate = write_files(certificate, performed.output, stage.public, _titled(destination, read.schema))
            found = hold_against(Written(certificate, stage.public, plan.smallest_class), earlier, read)
            _write_internal(stage, (read, ready), certificate, destination.folder)
            _keep_stages(stage, performed.output)
            keep_participants(stage.internal, took_part)
            if destination.table is not None:
                loading.enter_context(load_table(performed.output.reader, destination.table, f"incrowd release {id_}"))
            ready.ledger.conclude(performed.entry, certificate.digest())
    notes = (*ready.notes, *found, *warnings_of(read))
    shown = Released(performed.output, certificate)
    return PublishedRelease(destination.folder, folders.internal or destination.folder, shown, notes)


def check_form(form: str, method: str) -> None:
    """Refuse files of Stata, SPSS and SAS of a method whose files are not read again in these formats.

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


def _titled(destination: Destination, schema: Schema) -> Destination:
    """Return where a release goes, with what its columns are called for people."""
    return replace(destination, titles={each.name: each.label for each in schema.released if each.label is not None})


def write_files(certificate: Certificate, output: Any, folder: Path, destination: Destination) -> Certificate:
    """Write tables, documents, report and certificate into a folder, and read them again with the eyes of a verifier.

    The report is made from what the files show and names the certificate's id, so that it can be hashed with them.
    """
    names = names_of(len(output.parts), destination.form)
    files = tuple(folder / name for name in names)
    for part, file in zip(output.parts, files, strict=True):
        write_table(part.reader(), file, destination.titles)
    for name, text in getattr(output, "documents", {}).items():
        (folder / name).write_text(text, encoding="utf-8")
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
    """Refuse an empty text among the labels of a column where files are text: there it is what is missing.

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


def _certificate(id_: str, stated: Stated, found: tuple[Policy, Prepared], performed: ExecutedPlan) -> Certificate:
    policy, ready = found
    columns = columns_of(policy.schema, performed.output.schema.names)
    return certify(id_, stated, performed, dataset_of(policy, ready.commitment), columns)


def _require(*, holds: bool) -> None:
    if not holds:
        raise GuaranteeBroken(
            "the output does not keep its guarantee. This is a fault in the software: please report it."
        )


def _around(policy: Policy, terms: ReleaseTerms, earlier: tuple[Earlier, ...]) -> Iterator[Step]:
    """Yield the steps that this release has besides those of its method."""
    if terms.hold_out is not None:
        yield HoldOut(terms.hold_out)
    yield from _rerun(policy)
    if earlier:
        yield Compare()


def _rerun(policy: Policy) -> Iterator[Step]:
    if failed_before(policy):
        yield Rerun()


def _keep_stages(stage: Folders, output: Any) -> None:
    """Keep what each step did to risk and utility apart too, where an output was made step by step."""
    stages = getattr(output, "stages", ())
    if stages and stage.internal is not None:
        keep_steps(stage.internal, stages, output.quasi)


def _write_internal(stage: Folders, found: tuple[Policy, Prepared], certificate: Certificate, published: Path) -> None:
    """Keep apart what only the data holder may know: rows and files and where they are, keys, and who was held out."""
    policy, ready = found
    if stage.internal is None:
        raise AssertionError("a release to a folder has an internal folder")
    inside = {
        "certificate": certificate.id,
        "source": ready.source.address,
        "read as": dict(ready.source.settings),
        "worked on": describe(policy.engine),
        "commitment key": ready.key.hex(),
        "published": str(published.resolve()),
        "k": policy.plan.smallest_class,
        "policy": policy.section.model_dump(mode="json", exclude_none=True),
    }
    (stage.internal / INTERNAL).write_text(json.dumps(inside, indent=1, ensure_ascii=False), encoding="utf-8")
    if ready.held is not None:
        keep_held_out(ready.held, stage.internal)
