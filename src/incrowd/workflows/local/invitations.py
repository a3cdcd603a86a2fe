"""Invitations: which people may be asked, where a survey has a purpose; consent is read when they are invited."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from incrowd.core.schema import Column
from incrowd.core.steps.around import ConsentGate
from incrowd.errors import InvalidParameter, Refused
from incrowd.workflows.consent.place import ConsentPlace
from incrowd.workflows.consent.snapshot import admitted_at
from incrowd.workflows.local.survey_file import SurveyFile

_MOST = 10_000_000  # tokens: more than a survey invites, and they fit in memory


def consent_place(file: SurveyFile, people: Path | None = None) -> ConsentPlace | None:
    """Return the place of the consent registry of a survey; registry and key lie apart from a file of people."""
    if file.consent is None:
        return None
    return ConsentPlace(file.folder, file.consent, (("the file of people", people),))


def consenting_people(file: SurveyFile, people: Iterable[str], data: Path) -> frozenset[str]:
    """Return the people whose consent is in force now."""
    place, purpose = consent_place(file, data), file.survey.purpose
    if place is None or purpose is None:
        raise InvalidParameter("this survey names no purpose: write purpose: and consent: into it.")
    return admitted_at(place, ConsentGate(purpose)).by(Column("person")).among(people)


def invited_people(file: SurveyFile, people: Path) -> list[str]:
    """Return the people of a file, one id a line, whose consent is in force now; each will have a token.

    Nothing links tokens to people: the collector does not know who sent a report.
    """
    try:
        ids = [line.strip() for line in people.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeError):
        raise InvalidParameter(f"{people} cannot be read: it names people, an id a line, in UTF-8.") from None
    if len(set(ids)) < len(ids) or not 1 <= len(ids) <= _MOST:
        raise InvalidParameter("a file of people names each of them once, 1 to 10,000,000 of them.")
    consenting = consenting_people(file, ids, people)
    return [person for person in ids if person in consenting]


def require_no_purpose(file: SurveyFile) -> None:
    """Refuse tokens for unnamed people where respondents must have consented."""
    if file.survey.purpose is not None:
        raise Refused("this survey asks people who consented to its purpose: name them with --for FILE, an id a line.")
