"""Running counts: what earlier periods of a series left with the data holder, found by the ledger and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.table import Table
from incrowd.errors import InvalidParameter, Refused
from incrowd.methods.histograms.continual.running import (
    ConsentAnswers,
    CountablePeople,
    PastPeriod,
    RunningRows,
    mark_of,
)
from incrowd.workflows.consent.snapshot import ConsentSnapshot
from incrowd.workflows.policy.internal import FOR_HOLDER, TOOK_PART, internal_folder
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
    _require_key({period.label: period.mark for period in past if period.people}, marks, running.mark)
    return running


def admitted_people(policy: Policy, ledger: Ledger, most: int) -> CountablePeople:
    """Return who may still take part in the period that is read: all but those who did in so many other ones.

    The rule is about each person alone, so removing somebody changes nobody else's rows.  Who has rows in a period and
    is admitted takes part in it, whatever a sample or a limit takes of them.
    """
    _require_delivered(policy, ledger)
    marks, column = FingerprintFile.of(policy), policy.schema.unit.column
    if column is None:
        raise InvalidParameter("periods per person need the person ID column.")
    lists = [(label, _state_of(policy, label, release, TOOK_PART)) for label, release in _delivered(policy, ledger)]
    _require_key({label: state["mark"] for label, state in lists if state["people"]}, marks, mark_of(marks.key()))
    others = [(label, state["people"]) for label, state in lists if label != policy.period]
    return CountablePeople(policy.schema[column], marks.key(), people_in(others, most))


def people_in(periods: Iterable[tuple[str, Iterable[str]]], most: int) -> frozenset[str]:
    """Return who took part in so many different periods, or in more.

    >>> people_in([("2025-01", ["ann"]), ("2025-01", ["ann", "bob"]), ("2025-03", ["bob"])], 2)
    frozenset({'bob'})
    """
    times: dict[str, set[str]] = {}
    for label, people in periods:
        for digest in people:
            times.setdefault(digest, set()).add(label)
    return frozenset(digest for digest, labels in times.items() if len(labels) >= most)


def _require_key(stored: Mapping[str, str], marks: FingerprintFile, mark: str) -> None:
    other_key = next((label for label, own in stored.items() if own != mark), None)
    if other_key is not None:
        raise Refused(
            f"the people counted in {other_key} are known under another key than the one in {marks.path}, so "
            "nobody would be known again, and people would be counted more often than was priced. Nothing was charged. "
            "Put the file back from a copy."
        )


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
    for label, release in _delivered(policy, ledger):
        yield PastPeriod.from_json(_state_of(policy, label, release, "running"))


def _delivered(policy: Policy, ledger: Ledger) -> Iterator[tuple[str, str]]:
    """Yield the periods whose release was delivered, each with the id of the release."""
    for label, releases in _runs(policy, ledger).items():
        for run in releases:
            if ledger.conclusions(run["release"])[-1:] not in ((), (None,)):
                yield label, run["release"]


def _state_of(policy: Policy, label: str, release: str, name: str) -> dict[str, Any]:
    """Return what was kept of a published period; without it the series cannot go on."""
    file = internal_folder(policy, release) / FOR_HOLDER
    try:
        state: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))[name]
        own = [str(state["label"]), str(state["mark"]), *map(str, state["people"])]
        if name == "running":
            PastPeriod.from_json(state)
    except (OSError, ValueError, KeyError, TypeError):
        raise Refused(
            f"the counts of period {label} are not in {file}, and later periods depend on them. Nothing was charged. "
            "Put them back from a copy; recomputing them from a file that changed since would not be covered."
        ) from None
    if own[0] != label:
        raise Refused(f"{file} holds another period than {label}: put the right one back. Nothing was charged.")
    return state
