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
_UNKNOWN = "this token is unknown, was used, or is past its end: ask the holder of the data for another."


@dataclass(frozen=True)
class SubjectView:
    """What somebody sees, and the token by which they go on: it works once, for a quarter of an hour."""

    report: SubjectReport
    token: str


@dataclass(frozen=True)
class DataSubjectService:
    """The desk of the policies that ask for consent; nothing is remembered but what the registry holds."""

    policies: tuple[Policy, ...]

    def view(self, token: str) -> SubjectView:
        """Use a token up and show what it stands for."""
        return _view(*self._whose(token))

    def withdraw(self, token: str) -> SubjectView:
        """Use a token up, record a withdrawal, and show what holds from now on, alike for every id."""
        policy, person = self._whose(token)
        registry, purpose = open_registry(policy), policy.section.purpose or ""
        event = ConsentEvent(person.pseudonym, Decided.WITHDRAW, purpose, registry.decision_time(), alike=person.alike)
        registry.record([event])
        return _view(policy, person)

    def _whose(self, token: str) -> tuple[Policy, Subject]:
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
