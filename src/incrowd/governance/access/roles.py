"""Role: what kind of work somebody does here, and which rights it brings."""

from __future__ import annotations

from enum import StrEnum


class AccessRole(StrEnum):
    """The four kinds of people around a protected dataset."""

    OWNER = "owner"
    CURATOR = "curator"
    ANALYST = "analyst"
    AUDITOR = "auditor"


class Right(StrEnum):
    """One thing that somebody may do."""

    READ = "read"  # what is declared about the tables, the price of a question, what is left, certificates
    ASK = "ask"  # spend budget on an answer
    PUBLISH = "publish"  # his answers are for everyone: no analyst's allowance pays for them
    AUDIT = "audit"  # read the audit log
    ADMIT = "admit"  # make, rotate and revoke tokens


_RIGHTS = {
    AccessRole.OWNER: frozenset({Right.READ, Right.ASK, Right.PUBLISH, Right.ADMIT}),
    AccessRole.CURATOR: frozenset({Right.READ, Right.ASK, Right.PUBLISH}),
    AccessRole.ANALYST: frozenset({Right.READ, Right.ASK}),
    AccessRole.AUDITOR: frozenset({Right.READ, Right.AUDIT}),
}


def rights(role: AccessRole) -> frozenset[Right]:
    """Return what a role may do; who admits people does not read the log of it, and who reads the log asks nothing.

    >>> sorted(rights(AccessRole.ANALYST))
    [<Right.ASK: 'ask'>, <Right.READ: 'read'>]
    >>> Right.AUDIT in rights(AccessRole.OWNER), Right.ASK in rights(AccessRole.AUDITOR)
    (False, False)
    """
    return _RIGHTS[role]
