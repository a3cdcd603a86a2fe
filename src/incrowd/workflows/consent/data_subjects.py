"""SubjectDesk: where somebody with a one-time token sees what was released, and withdraws."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from incrowd.core.subjects import Subject
from incrowd.errors import AccessDenied
from incrowd.governance.consent.event import ConsentEvent, Decided
from incrowd.workflows.consent.place import open_registry, person_column, subject_key
from incrowd.workflows.consent.subject import SubjectReport, report_of
from incrowd.workflows.policy.policy import Policy

_NEXT = timedelta(minutes=15)
_UNKNOWN = "this token is unknown, used or expired: ask the data holder for another."


@dataclass(frozen=True)
class SubjectView:
    """What a data subject sees, and the next token: it works once, for 15 minutes."""

    report: SubjectReport
    token: str


@dataclass(frozen=True)
class DataSubjectService:
    """Serves data subjects, for the policies that check consent; only the registry stores anything."""

    policies: tuple[Policy, ...]

    def view(self, token: str) -> SubjectView:
        """Use up a token and return the report of its person."""
        return _view(*self._redeem(token))

    def withdraw(self, token: str) -> SubjectView:
        """Use up a token, record a withdrawal and return the new report; the page is the same for every ID."""
        policy, person = self._redeem(token)
        registry, purpose = open_registry(policy), policy.section.purpose or ""
        event = ConsentEvent(person.pseudonym, Decided.WITHDRAW, purpose, registry.decision_time(), alike=person.alike)
        registry.record([event])
        return _view(policy, person)

    def _redeem(self, token: str) -> tuple[Policy, Subject]:
        for policy in self.policies:
            person = None if policy.gate is None else open_registry(policy).redeem(token, policy.name)
            if person is not None:
                return policy, person
        raise AccessDenied(_UNKNOWN)


def issue_token(policy: Policy, person: str, days: int = 7) -> str:
    """Return a one-time token for a person, known by the id that the data has."""
    subject = subject_key(policy).subject(person, person_column(policy))
    return open_registry(policy).issue(subject, policy.name, datetime.now(UTC) + timedelta(days=days))


def _view(policy: Policy, person: Subject) -> SubjectView:
    token = open_registry(policy).issue(person, policy.name, datetime.now(UTC) + _NEXT)
    return SubjectView(report_of(policy, person), token)
