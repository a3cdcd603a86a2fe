"""Render: the report of a release on disk, written again; the internal one from the original rows, which is a look."""

from __future__ import annotations

import uuid
from pathlib import Path

from incrowd.core.cells import Cells
from incrowd.core.certificate import Certificate
from incrowd.core.domain import Type
from incrowd.engines.choose import engine_of
from incrowd.engines.columns import require
from incrowd.engines.writers.staging import beside
from incrowd.errors import InvalidParameter, OutputUnavailable, Refused
from incrowd.methods.outcomes.outcome import Outcome
from incrowd.methods.synthesis.points import SyntheticPoints
from incrowd.workflows.forms import form_of
from incrowd.workflows.forms.microdata.form import published_rows
from incrowd.workflows.looking import record_look
from incrowd.workflows.opening import open_rows, settings_of
from incrowd.workflows.policy import Policy
from incrowd.workflows.report.chain import recoded_columns
from incrowd.workflows.report.page import internal_report, public_report
from incrowd.workflows.verify import read_certificate

NAME = "report.html"
_READABLE, _PRIVATE = 0o644, 0o600


def render_public(release: Path, out: Path | None = None) -> Path:
    """Write the public report of a release, beside its certificate unless told where; return where it is."""
    certificate, folder = read_certificate(release), _folder(release)
    target = folder / NAME if out is None else _free(out)
    file = _file(certificate, folder)
    _write(public_report(certificate, None if file is None else form_of(certificate).reopen(certificate, file)), target)
    return target


def render_internal(release: Path, policy: Policy, against: str | None = None, out: Path | None = None) -> Path:
    """Write the internal report, with the original before and after; where it lies is apart from the release.

    The original is counted at the released levels.  That is a look at the rows, and the ledger records it.
    """
    certificate, folder = read_certificate(release), _folder(release)
    if policy.hash != certificate.policy_hash:
        raise Refused("this is not the policy the release was made under: give the same file, with its hierarchies.")
    kept = policy.folder / ".incrowd" / "internal"
    target = kept / _id(certificate) / NAME if out is None else _free(out)
    if target.resolve().is_relative_to(folder.resolve()):
        raise Refused("the internal report shows the original rows and may not lie in the folder of the release.")
    file = _file(certificate, folder)
    if file is None:
        raise InvalidParameter("the published file is not beside the certificate: put it there.")
    if len(certificate.outputs) > 1:
        raise InvalidParameter("there is no internal report about several tables: use the public one.")
    cells, released = _counted_alike(certificate, policy, file)
    with engine_of(settings_of(policy, against, None, None, None)) as engine:
        source = open_rows(against, policy, engine=engine)
        require(source.names, cells.names)
        record_look(policy, "report")
        original = engine.count(source, cells)
    _write(internal_report(certificate, released, original), target, _PRIVATE)
    return target


def _counted_alike(certificate: Certificate, policy: Policy, file: Path) -> tuple[Cells, Outcome]:
    """Return what was published, and the cells in which the original rows are counted beside it."""
    if isinstance(policy.method, SyntheticPoints):
        return policy.method.grid(policy.schema).cells, form_of(certificate).reopen(certificate, file)
    levels = {str(column["column"]): int(column["level"]) for column in recoded_columns(certificate)}
    cells = Cells.of(policy.schema, levels)
    return cells, published_rows(certificate, file, _types(cells))


def _folder(release: Path) -> Path:
    return release if release.is_dir() else release.parent


def _free(target: Path) -> Path:
    if target.exists():
        raise OutputUnavailable(f"{target} exists, and nothing is overwritten. Choose another name.")
    return target


def _id(certificate: Certificate) -> str:
    try:
        return str(uuid.UUID(certificate.id))
    except ValueError:
        raise InvalidParameter("the certificate's id is no UUID: say with --out where the report goes.") from None


def _types(cells: Cells) -> dict[str, Type]:
    """Return the types of the columns that were released as values; labels are text."""
    as_values = [r for r in cells.recodings if r.level == 0 and not r.top and not r.column.has_other]
    return {recoding.column.name: recoding.column.type for recoding in as_values}


def _file(certificate: Certificate, folder: Path) -> Path | None:
    """Return where the published file lies, or the first of several, if all are there."""
    paths = [folder / Path(str(output.get("name"))).name for output in certificate.outputs]
    return paths[0] if paths and all(path.is_file() for path in paths) else None


def _write(page: str, target: Path, mode: int = _READABLE) -> None:
    """Write beside, then rename: a reader never sees half a report."""
    try:
        with beside(target) as folder:
            written = folder / target.name
            written.write_text(page, encoding="utf-8")
            written.chmod(mode)
            written.replace(target)
    except OSError as error:
        why = error.strerror or "the operating system refused"
        raise OutputUnavailable(f"{target} could not be written: {why}. Nothing appeared there.") from None
