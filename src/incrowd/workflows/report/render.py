"""Render: the report of a release on disk, written again; the internal one from the original rows, which is a look."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.core.certificate import Certificate
from incrowd.core.steps.around import gate_of
from incrowd.drawing.markup import joined
from incrowd.engines.columns import require
from incrowd.engines.settings import engine_of
from incrowd.engines.writers.sinks import staging_folder
from incrowd.errors import InvalidParameter, OutputUnavailable, Refused
from incrowd.verifier.files import REPORT
from incrowd.verifier.judge import statement_of
from incrowd.workflows.assess.assess import assess
from incrowd.workflows.assess.released import released_of
from incrowd.workflows.assess.section import section
from incrowd.workflows.attack.inputs import NO_CONTROL, ControlGroup, attacked
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.consent.snapshot import taking_part
from incrowd.workflows.policy.internal import internal_folder
from incrowd.workflows.policy.ledger import record_look
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.rows import open_rows, settings_of
from incrowd.workflows.registry import picture_of
from incrowd.workflows.release.deliver import published_output
from incrowd.workflows.report.page import internal_report, public_report
from incrowd.workflows.report.steps_page import kept_steps

if TYPE_CHECKING:
    from markupsafe import Markup

    from incrowd.core.table import Engine, Rows
    from incrowd.drawing.picture import Comparison

_READABLE, _PRIVATE = 0o644, 0o600


def render_public(release: Path, out: Path | None = None) -> Path:
    """Write the public report of a release, beside its certificate unless told where; return where it is."""
    certificate, folder = read_certificate(release), _folder(release)
    target = folder / REPORT if out is None else _free(out)
    _write(public_report(certificate, published_output(certificate, folder)), target)
    return target


def render_internal(
    release: Path,
    policy: Policy,
    against: str | None = None,
    out: Path | None = None,
    control: ControlGroup = NO_CONTROL,
) -> Path:
    """Write the internal report, with the original before and after; where it lies is apart from the release.

    The original is counted at the released levels.  That is a look at the rows, and the ledger records it.  Beside a
    control group, all attacks that apply are run and reported too.
    """
    certificate, folder = read_certificate(release), _folder(release)
    if policy.hash != certificate.policy_hash:
        raise Refused("this is not the policy the release was made under: give the same file, with its hierarchies.")
    internal = internal_folder(policy, "any").parent
    target = internal / _id(certificate) / REPORT if out is None else _free(out)
    if target.resolve().is_relative_to(folder.resolve()):
        raise Refused("the internal report shows the original rows and may not lie in the folder of the release.")
    output = published_output(certificate, folder)
    if output is None:
        raise InvalidParameter("the published file is not beside the certificate: put it there.")
    comparison = _comparison(certificate, output, policy)
    released = released_of(certificate, folder)
    with engine_of(settings_of(policy, against, None, None, None)) as engine:
        source = open_rows(against, policy, engine=engine)
        record_look(policy, "report")
        taking = taking_part(engine, source, policy, gate_of(certificate.steps))
        before = joined([] if comparison is None else [_before(comparison, taking, engine)])
        assessment = assess(released, source, policy, engine)
    assessment = replace(assessment, lab=attacked(folder, policy, against, control))
    steps = kept_steps(internal / _id(certificate))
    parts = joined([before, *([] if steps is None else [steps]), section(assessment)])
    _write(internal_report(certificate, output, parts), target, _PRIVATE)
    return target


def _before(comparison: Comparison, source: Rows, engine: Engine) -> Markup:
    require(source.names, comparison.cells.names)
    return comparison.section(engine.count(source, comparison.cells))


def _comparison(certificate: Certificate, output: Any, policy: Policy) -> Comparison | None:
    """Return how the method puts its output beside the original rows, if it does."""
    return picture_of(certificate.method.name).comparison(statement_of(certificate), output, policy.schema)


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
        raise InvalidParameter("the certificate's id is not a UUID: say with --out where the report goes.") from None


def _write(page: str, target: Path, mode: int = _READABLE) -> None:
    """Write beside, then rename: a reader never sees half a report."""
    try:
        with staging_folder(target) as folder:
            written = folder / target.name
            written.write_text(page, encoding="utf-8")
            written.chmod(mode)
            written.replace(target)
    except OSError as error:
        why = error.strerror or "the operating system refused"
        raise OutputUnavailable(f"{target} could not be written: {why}. Nothing appeared there.") from None
