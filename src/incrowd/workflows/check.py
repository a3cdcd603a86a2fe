"""Check: does this table already keep its rows in crowds?  Numbers and a verdict, and no output data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from incrowd.core.cells import Cells
from incrowd.core.domain import Type
from incrowd.core.schema import Role
from incrowd.core.table import Engine, Rows
from incrowd.engines.columns import require
from incrowd.engines.local import LOCAL
from incrowd.errors import InvalidParameter
from incrowd.methods.outcomes.microdata import WEIGHT
from incrowd.workflows.as_is import as_is
from incrowd.workflows.criteria import COLUMNS, RELEASED, Finding, Wanted, crowds, sensitive_findings
from incrowd.workflows.policy import Policy


@dataclass(frozen=True)
class Verdict:
    """What was found: each criterion with what was expected, and how the table was looked at."""

    rows: int
    measured: str
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return all(finding.passed is not False for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        found = [asdict(finding) | {"passed": finding.passed, "means": finding.means} for finding in self.findings]
        return {"passed": self.passed, "rows": self.rows, "measured": self.measured, "findings": found}


@dataclass(frozen=True)
class Asked:
    """Which columns are looked at: quasi-identifiers, sensitive ones, and whether they are recoded first."""

    quasi: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    recoded: bool = False


def check(rows: Rows, wanted: Wanted, asked: Asked, policy: Policy | None = None, engine: Engine = LOCAL) -> Verdict:
    """Count the table once, where it lives, and hold it against what is wanted, and the policy if there is one.

    The table is taken as it is, value by value as written; with `recoded`, after the policy's rules and levels.  With
    a policy its roles say which columns are quasi-identifiers and sensitive, unless they are named.  The policy's
    method must find its k over all released columns, and as it is the table must hold no other columns.

    >>> import pyarrow as pa
    >>> from incrowd.engines.sources import open_source
    >>> rows = open_source(pa.table({"sex": ["F", "F", "M"], "zip": ["1", "1", "1"]}))
    >>> verdict = check(rows, Wanted(k=2), Asked(("sex", "zip")))
    >>> verdict.passed, verdict.findings[0].found, verdict.findings[0].short
    (False, 1, 1)
    """
    asked = _completed(asked, policy)
    released = () if policy is None else tuple(column.name for column in policy.schema.released)
    names = tuple(dict.fromkeys((*asked.quasi, *asked.sensitive, *released)))
    _check_parameters(wanted, asked, policy)
    require(rows.names, names)
    cells = _recoded(policy, names) if policy is not None and asked.recoded else as_is(rows, names, engine)
    counts = engine.count(rows, cells)
    findings = [] if policy is None or asked.recoded else [_columns(rows, policy)]
    k = wanted.k
    if policy is not None:
        promised = policy.method.smallest_class(policy.schema)
        findings.append(crowds(counts, released, promised, RELEASED))
        k = promised if k is None and not wanted.any else k
    findings.append(crowds(counts, asked.quasi, k))
    for sensitive in asked.sensitive:
        findings += sensitive_findings(counts, asked.quasi, sensitive, wanted, _kind(policy, sensitive))
    return Verdict(counts.total, "recoded by the policy" if asked.recoded else "as it is", tuple(findings))


def _completed(asked: Asked, policy: Policy | None) -> Asked:
    if policy is None:
        return asked
    roles = {role: tuple(c.name for c in policy.schema.columns if c.role is role) for role in Role}
    sensitive = asked.sensitive or tuple(name for name in roles[Role.SENSITIVE] if name not in asked.quasi)
    quasi = asked.quasi or tuple(name for name in roles[Role.QUASI] if name not in sensitive)
    return Asked(quasi, sensitive, asked.recoded)


def _check_parameters(wanted: Wanted, asked: Asked, policy: Policy | None) -> None:
    if not asked.quasi:
        raise InvalidParameter("no quasi-identifiers to check: name them with --quasi, or give a policy that has some.")
    if policy is None and not wanted.any:
        raise InvalidParameter("nothing to check against: give --k, --l, --entropy-l or --t, or a policy.")
    if policy is None and asked.recoded:
        raise InvalidParameter("only a policy says how to recode: give --policy, or leave --recoded out.")
    if wanted.about_sensitive and not asked.sensitive:
        raise InvalidParameter("diversity and closeness are about a sensitive column: name it with --sensitive.")


def _recoded(policy: Policy, names: Sequence[str]) -> Cells:
    return Cells.of(policy.schema, getattr(policy.method, "levels", {}), names)


def _columns(rows: Rows, policy: Policy) -> Finding:
    """Hold the columns that are there against those that may be: an upload gate that misses a name is none."""
    allowed = {column.name for column in policy.schema.released}
    allowed |= {WEIGHT} if getattr(policy.method, "weights", False) else set()
    extra = tuple(name for name in rows.names if name not in allowed)
    return Finding(COLUMNS, extra, None, 0, len(extra), None)


def _kind(policy: Policy | None, name: str) -> Type | None:
    return None if policy is None else policy.schema[name].type
