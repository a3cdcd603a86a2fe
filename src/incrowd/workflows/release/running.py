"""Running counts: what earlier periods of a series left with the data holder, found by the ledger and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.table import Table
from incrowd.errors import InvalidParameter, Refused
from incrowd.methods.histograms.continual.running import ConsentAnswers, PastPeriod, RunningRows
from incrowd.workflows.consent.snapshot import ConsentSnapshot
from incrowd.workflows.policy.internal import FOR_HOLDER, internal_folder
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.sources import FingerprintFile
from incrowd.workflows.release.recover import hidden_releases


def running_rows(policy: Policy, ledger: Ledger, table: Table, admission: ConsentSnapshot | None) -> RunningRows:
    """Return the rows of a period with its past: the periods whose release was delivered.

    A missing period counts as one without rows: nothing of it was published, and nothing of it enters later.
    """
    calendar, label = policy.calendar, policy.period
    if calendar is None or label is None:
        raise InvalidParameter(f"{policy.method.name} counts over periods: release one with incrowd series run.")
    _require_delivered(policy, ledger)
    number = calendar.labels.index(label) + 1
    past = tuple(sorted(_past(policy, ledger), key=lambda period: period.number))
    if past and past[-1].number >= number:
        raise Refused(
            f"period {past[-1].label} was released before {label}: running counts go forward, and an earlier period "
            "stays missing. Nothing was charged."
        )
    marks = FingerprintFile.of(policy)
    running = RunningRows(table, number, label, past, marks.key(), None if admission is None else _answers(admission))
    other_key = next((period for period in past if period.people and period.mark != running.mark), None)
    if other_key is not None:
        raise Refused(
            f"the people counted in {other_key.label} are known under another key than the one in {marks.path}, so "
            "nobody would be known again, and people would be counted more often than was priced. Nothing was charged. "
            "Put the file back from a copy."
        )
    return running


def _answers(admission: ConsentSnapshot) -> ConsentAnswers:
    """Return what the registry says now of people who were counted before, whether or not they have a row today."""

    def linked(name: str) -> tuple[str, str]:
        subject = admission.key.linked(name)
        return subject.pseudonym, subject.alike

    def stands(pseudonym: str, alike: str) -> bool:
        return pseudonym in admission.subjects and not admission.unlinked.excludes(pseudonym, alike)

    return ConsentAnswers(linked, stands)


def _runs(policy: Policy, ledger: Ledger) -> dict[str, list[dict[str, str]]]:
    section = policy.section.period
    return {} if section is None else ledger.runs(policy.name, section.series)


def _require_delivered(policy: Policy, ledger: Ledger) -> None:
    """Refuse to count on while a period is finished and not in its place: it may still be delivered or discarded.

    Its counts would enter this period.  If it were discarded afterwards, it would be missing: its people could be
    counted once more, and one person would move the series by more than was priced.
    """
    runs = {run["release"]: label for label, releases in _runs(policy, ledger).items() for run in releases}
    finished = hidden_releases(policy, ledger)
    hidden = next((release for release in finished if release.certificate.id in runs), None)
    if hidden is not None:
        raise Refused(
            f"period {runs[hidden.certificate.id]} is finished, and not in its place; later periods depend on whether "
            f"it is delivered. Nothing was charged. {hidden.sentence}"
        )


def _past(policy: Policy, ledger: Ledger) -> Iterator[PastPeriod]:
    for label, releases in _runs(policy, ledger).items():
        for run in releases:
            if ledger.conclusions(run["release"])[-1:] not in ((), (None,)):
                yield _state_of(policy, label, run["release"])


def _state_of(policy: Policy, label: str, release: str) -> PastPeriod:
    """Return what was kept of a published period; without it the series cannot go on."""
    file = internal_folder(policy, release) / FOR_HOLDER
    try:
        period = PastPeriod.from_json(json.loads(file.read_text(encoding="utf-8"))["running"])
    except (OSError, ValueError, KeyError, TypeError):
        raise Refused(
            f"the counts of period {label} are not in {file}, and later periods depend on them. Nothing was charged. "
            "Put them back from a copy; recomputing them from a file that changed since would not be covered."
        ) from None
    if period.label != label:
        raise Refused(f"{file} holds another period than {label}: put the right one back. Nothing was charged.")
    return period
