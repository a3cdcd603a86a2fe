"""Randomize: reports from a table of answers, one for each person, and the same one again from a memo."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, OutputUnavailable, Refused
from incrowd.methods.local.survey.definition import LocalSurvey, report_text
from incrowd.noise.system import SystemCoins, permutation
from incrowd.store.disk import force
from incrowd.workflows.local.invitations import consenting_people
from incrowd.workflows.local.opening import OpenSurvey

_DONE = "randomized"


@dataclass(frozen=True)
class Randomized:
    """How many reports were written, and how many of them are new."""

    reports: int
    new: int


@dataclass(frozen=True)
class AnswersFile:
    """A table of answers, one row a person; with a memo, `person` is the person ID column."""

    path: Path
    memo: Path | None = None
    person: str | None = None

    def __post_init__(self) -> None:
        if (self.memo is None) != (self.person is None):
            raise InvalidParameter("a memo stores reports by person ID: give both --memo FILE and --person COLUMN.")

    def read(self, survey: LocalSurvey) -> tuple[list[str], dict[str, list[str]]]:
        """Return who answered, and the answers to each question."""
        columns = _columns(self.path, [*survey.names, *([] if self.person is None else [self.person])])
        rows = range(len(columns[survey.names[0]]))
        people = [str(row) for row in rows] if self.person is None else columns.pop(self.person)
        if len(set(people)) < len(people):
            raise InvalidParameter(
                "a person is in the table twice, and each person sends one report. Keep one row for each person."
            )
        return people, columns


def randomize_answers(opened: OpenSurvey, answers: AnswersFile, out: Path) -> Randomized:
    """Write one report for each person of a table to a file of lines.

    Fresh randomness for the same people would cost them ε once more, so a second run needs the memo of the first:
    people in it keep their report, whatever they answer now.  The memo links people to reports: it stays with the data
    holder.

    The reports of a shuffled survey are one crowd: they are written in a random order, and a line holds the
    survey, a question and a report, none of which depends on the place of a person.  A file for fewer people than a
    batch is refused, and so is a second file that would show, beside the first, the reports of fewer.
    """
    if opened.file.survey.rounds is not None:
        raise Refused(
            "a survey with rounds is answered on its page, or by the class Participant, which keep what belongs to the "
            "person: answers of a table are not randomized for it."
        )
    survey, mark = opened.file.survey, opened.folder.parent / f"{opened.folder.name}.{_DONE}"
    earlier = {} if answers.memo is None else _read_memo(answers.memo, survey)
    if mark.exists() and not earlier:
        raise Refused(
            "answers to this survey were randomized before: fresh randomness for the same people would cost them "
            "epsilon once more. Give the memo of that run (--memo), or ask other people under another name."
        )
    require_new(out)
    people, columns = _taking_part(opened, answers)
    if survey.batches is not None:
        _check_crowd(survey.batches.batch, people, earlier)
    coins = SystemCoins()
    new = [row for row, person in enumerate(people) if person not in earlier]
    made = survey.randomize({name: [column[row] for row in new] for name, column in columns.items()}, coins)
    fresh = {people[row]: report for row, report in zip(new, made, strict=True)}
    mark.touch()
    if answers.memo is not None:
        write_lines(answers.memo, (json.dumps([person, report]) for person, report in {**earlier, **fresh}.items()))
    order = range(len(people)) if survey.batches is None else permutation(coins, len(people)).tolist()
    write_lines(out, (report_text(earlier.get(people[row]) or fresh[people[row]]) for row in order))
    return Randomized(len(people), len(new))


def _check_crowd(batch: int, people: Sequence[str], earlier: Collection[str]) -> None:
    """Refuse a file whose reports, alone or beside those of earlier runs, are of fewer people than a batch."""
    again = sum(person in earlier for person in people)
    new = len(people) - again
    if 0 < again < len(earlier):
        raise Refused(
            "the table lacks some people of an earlier run: comparing both files would show their reports. Nothing was "
            "randomized. Give all people of the memo, or new ones alone."
        )
    if len(people) < batch or 0 < new < batch:
        raise Refused(
            f"this survey shuffles reports among {batch:,} people or more, and the table has {new:,} new ones. Nothing "
            "was randomized. Wait for more people, or open a survey with a smaller batch."
        )


def _taking_part(opened: OpenSurvey, answers: AnswersFile) -> tuple[list[str], dict[str, list[str]]]:
    """Return people and answers, of those alone who consent now where the survey has a purpose."""
    people, columns = answers.read(opened.file.survey)
    if opened.file.survey.purpose is None:
        return people, columns
    if answers.person is None:
        raise InvalidParameter("this survey has a purpose, so people must be known: give --memo FILE, --person COLUMN.")
    consenting = consenting_people(opened.file, people, answers.path)
    rows = [row for row, person in enumerate(people) if person in consenting]
    return [people[row] for row in rows], {name: [column[row] for row in rows] for name, column in columns.items()}


def read_reports(path: Path) -> list[Any]:
    """Read a file of reports, one a line."""
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    except (OSError, ValueError):
        raise InvalidParameter(f"{path} is not a file of reports, one JSON object a line.") from None


def _columns(answers: Path, names: list[str]) -> dict[str, list[str]]:
    if answers.suffix == ".csv":
        return _csv(answers, names)
    texts: dict[str, list[str]] = {name: [] for name in names}
    source = open_source(str(answers))
    _require(names, list(source.names))
    for batch in source.batches(names):
        for name, column in zip(names, batch.columns, strict=True):
            texts[name] += ["" if value is None else str(value) for value in column.to_pylist()]
    return texts


def _csv(answers: Path, names: list[str]) -> dict[str, list[str]]:
    try:
        with answers.open(encoding="utf-8", newline="") as text:
            rows = csv.reader(text)
            header = next(rows, [])
            _require(names, header)
            places = [header.index(name) for name in names]
            records = [[row[place] for place in places] for row in rows if row]
    except (OSError, UnicodeError, IndexError, csv.Error):
        raise InvalidParameter(f"{answers} cannot be read as a table with a header line, in UTF-8.") from None
    return {name: [row[place] for row in records] for place, name in enumerate(names)}


def _require(names: list[str], there: list[str]) -> None:
    missing = [name for name in names if name not in there]
    if missing:
        raise InvalidParameter(f"the table has no column {missing[0]!r}: it needs one for each question.")


def _read_memo(memo: Path, survey: LocalSurvey) -> dict[str, Mapping[str, Any]]:
    if not memo.exists():
        return {}
    try:
        reports = dict(json.loads(line) for line in memo.read_text(encoding="utf-8").splitlines())
        survey.read(list(reports.values()))
    except (OSError, ValueError, TypeError):
        raise InvalidParameter(f"{memo} is not a memo of this survey: one line for each person.") from None
    return reports


def require_new(out: Path) -> None:
    """Refuse a file that is there already."""
    if out.exists():
        raise OutputUnavailable(f"{out} is there already, and nothing is overwritten. Choose another name.")


def write_lines(path: Path, lines: Iterator[str]) -> None:
    """Write a file whole or not at all, readable by its owner alone."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w", encoding="utf-8") as text:
            text.writelines(f"{line}\n" for line in lines)
            text.flush()
            # before the rename: reports are randomized once, and must not be lost after that is recorded
            os.fsync(text.fileno())
        beside.replace(path)
        force(path.absolute().parent)
    except OSError as error:
        raise OutputUnavailable(f"{path} could not be written: {error.strerror or 'no reason given'}.") from None
