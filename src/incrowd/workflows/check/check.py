"""Check: does this table already keep its rows in crowds?  Numbers and a verdict, and no output data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, ClassVar, Protocol, runtime_checkable

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Role, Schema
from incrowd.core.table import Engine, Rows, Table
from incrowd.criteria.k_anonymity import RELEASED, SUBSETS
from incrowd.criteria.measure import Bound, Meaning, Measured
from incrowd.criteria.partition import Partition
from incrowd.engines.columns import require
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import InvalidParameter
from incrowd.measures.risk.classes import Sizes
from incrowd.methods.anonymity.syntactic.demands import Demands
from incrowd.methods.outcomes.microdata import WEIGHT
from incrowd.workflows.check.criteria import (
    CheckCriteria,
    CriterionFinding,
    Declared,
    crowds,
    sensitive_findings,
    table_findings,
)
from incrowd.workflows.check.raw_cells import as_is
from incrowd.workflows.consent.snapshot import taking_part
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.policy.population import people_behind
from incrowd.workflows.profile.identifiers import Identity
from incrowd.workflows.profile.profile import identities_of

COLUMNS = Meaning(
    "columns",
    "how many columns are there that must not be: identifiers, and what the policy does not declare",
    Bound.AT_MOST,
)
NAMING = Meaning(
    "identifiers",
    "how many columns look as if they said who somebody is, by what they hold or are called",
    Bound.AT_MOST,
)


@runtime_checkable
class OwnMeasure(Protocol):
    """A method that measures tables itself: the usual criteria say nothing about what it guarantees."""

    name: ClassVar[str]
    checked_for: ClassVar[str]
    """What is measured, in words."""

    def measure(self, table: Table, *, recoded: bool) -> tuple[int, Measured, tuple[str, ...]]:
        """Return how many rows there are, what was found and expected, and over which columns."""


@dataclass(frozen=True)
class CheckResult:
    """What was found: each criterion with what was expected, and how the table was looked at.

    `unexamined` are the columns that no criterion was about; `identities` say why some columns look like identifiers.
    """

    rows: int
    measured: str
    findings: tuple[CriterionFinding, ...]
    unexamined: tuple[str, ...] = ()
    identities: Mapping[str, Identity] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return all(finding.passed is not False for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {
            "passed": self.passed,
            "rows": self.rows,
            "measured": self.measured,
            "findings": [finding.to_json() for finding in self.findings],
            "unexamined": list(self.unexamined),
            "identifiers": {name: identity.to_json() for name, identity in self.identities.items()},
        }


@dataclass(frozen=True)
class CheckedColumns:
    """Which columns are looked at: quasi-identifiers, sensitive ones, and whether they are recoded first.

    `levels` tell at which levels the quasi-identifiers of a released table are, so that a population is brought there.
    """

    quasi: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    recoded: bool = False
    levels: Mapping[str, int] = field(default_factory=dict)


def check(
    rows: Rows, wanted: CheckCriteria, asked: CheckedColumns, policy: Policy | None = None, engine: Engine = LOCAL
) -> CheckResult:
    """Count the table once, where it lives, and hold it against what is wanted, and the policy if there is one.

    The table is taken as it is, value by value as written; with `recoded`, after the policy's rules and levels.  With
    a policy its roles say which columns are quasi-identifiers and sensitive, unless they are named.  As it is, the
    table must hold no other columns, and no column may look like an identifier: one that a criterion is about by what
    it holds, any other also by what it is called.  What the policy's method demands of every class is expected, where
    nothing else is wanted; a method that demands nothing but k must find it over all released columns.

    >>> import pyarrow as pa
    >>> from incrowd.engines.readers.sources import open_source
    >>> rows = open_source(pa.table({"sex": ["F", "F", "M"], "zip": ["1", "1", "1"]}))
    >>> verdict = check(rows, CheckCriteria(k=2), CheckedColumns(("sex", "zip")))
    >>> verdict.passed, verdict.findings[0].found, verdict.findings[0].short
    (False, 1, 1)

    Where the policy names a purpose and the rows say whose they are, only those of people who consent now are looked
    at.
    """
    rows = rows if policy is None else taking_part(engine, rows, policy)
    if policy is not None and isinstance(policy.method, OwnMeasure):
        found = _by_own_measure(Table(policy.schema, rows, engine), policy.method, wanted, asked)
    elif _offered(policy, "one_part_each") and policy is not None and not wanted.any and asked == CheckedColumns():
        found = _of_part(rows, policy, engine)
    else:
        found = _by_criteria(rows, wanted, _completed(asked, policy), policy, engine)
    return _and_identifiers(found, rows, policy if asked.recoded else None, engine)


def _and_identifiers(found: CheckResult, rows: Rows, recoded: Policy | None, engine: Engine) -> CheckResult:
    """Add the columns that nobody examined, and those that look like identifiers; once recoded, only what is left."""
    present = rows.names if recoded is None else tuple(column.name for column in recoded.schema.released)
    names = tuple(name for name in present if name in rows.names)
    examined = {name for each in found.findings if each.measured.meaning is not COLUMNS for name in each.over}
    examined |= {each.sensitive for each in found.findings if each.sensitive is not None}
    unexamined = tuple(name for name in names if name not in examined)
    looked_at = unexamined if recoded is not None else names
    identities = {
        name: identity
        for name, identity in identities_of(rows, looked_at, engine).items()
        if identity.by_content or name in unexamined
    }
    finding = CriterionFinding(Measured(NAMING, 0, len(identities), None), tuple(identities))
    findings = (*found.findings, finding) if identities else found.findings
    return replace(found, findings=findings, unexamined=unexamined, identities=identities)


def _by_criteria(
    rows: Rows, wanted: CheckCriteria, asked: CheckedColumns, policy: Policy | None, engine: Engine
) -> CheckResult:
    """Hold a table against criteria over its quasi-identifiers, and the policy's k over all released columns."""
    demands: Demands | None = _offered(policy, "demands")
    released = () if policy is None else tuple(column.name for column in policy.schema.released)
    _check_parameters(wanted, asked, policy)
    require(rows.names, (*asked.quasi, *asked.sensitive, *released))
    names = tuple(dict.fromkeys((*asked.quasi, *asked.sensitive, *(released if demands is None else ()))))
    cells = _recoded(policy, names) if policy is not None and asked.recoded else as_is(rows, names, engine)
    counts = engine.count(rows, cells)
    findings = [] if policy is None or asked.recoded else [_columns(rows, policy.schema, policy.method)]
    if demands is not None:
        wanted = wanted.and_of(demands, asked.sensitive)
    elif policy is not None:
        guaranteed = policy.plan.smallest_class
        findings.append(crowds(counts, released, guaranteed, RELEASED))
        wanted = wanted if wanted.any else replace(wanted, k=guaranteed)
    findings.append(crowds(counts, asked.quasi, wanted.k))
    findings += _subsets(counts, asked.quasi, policy)
    findings += table_findings(_partition(counts, asked, wanted, policy, engine), asked.quasi, wanted)
    for sensitive in asked.sensitive:
        declared = _declared(policy, sensitive)
        findings += sensitive_findings(counts, asked.quasi, sensitive, wanted.of(sensitive), declared)
    return CheckResult(counts.total, "recoded by the policy" if asked.recoded else "as it is", tuple(findings))


def _by_own_measure(table: Table, method: OwnMeasure, wanted: CheckCriteria, asked: CheckedColumns) -> CheckResult:
    """Hold a table against what the method of its policy measures itself, and nothing else."""
    if wanted.any or asked.quasi or asked.sensitive:
        raise InvalidParameter(
            f"a policy of method {method.name} is checked for its own {method.checked_for}: leave other criteria and "
            "columns out."
        )
    require(table.rows.names, [column.name for column in table.schema.released])
    counted, found, over = method.measure(table, recoded=asked.recoded)
    finding = CriterionFinding(found, over)
    findings = (finding,) if asked.recoded else (_columns(table.rows, table.schema, method), finding)
    return CheckResult(counted, "recoded by the policy" if asked.recoded else "as it is", findings)


def _of_part(rows: Rows, policy: Policy, engine: Engine) -> CheckResult:
    """Hold one of several tables against the k of its policy, over all columns that it has."""
    released = tuple(column.name for column in policy.schema.released)
    names = tuple(name for name in released if name in rows.names) or released
    require(rows.names, names)
    counts = engine.count(rows, as_is(rows, names, engine))
    guaranteed = policy.plan.smallest_class
    return CheckResult(
        counts.total,
        "as it is",
        (_columns(rows, policy.schema, policy.method), crowds(counts, names, guaranteed, RELEASED)),
    )


def _offered(policy: Policy | None, name: str) -> Any:
    """Return what the policy's method offers to this verb under a name, or None."""
    return None if policy is None else getattr(policy.method, name, None)


def _subsets(counts: Counts, quasi: tuple[str, ...], policy: Policy | None) -> Iterator[CriterionFinding]:
    """Return for each size of subsets that the policy's method speaks of, how its rarest combination fares."""
    for size, k in sorted((_offered(policy, "subsets") or {}).items()):
        each = [crowds(counts, chosen, k, SUBSETS) for chosen in combinations(quasi, size)]
        yield from [min(each, key=lambda finding: finding.found or 0)] if each else []


def _partition(
    counts: Counts, asked: CheckedColumns, wanted: CheckCriteria, policy: Policy | None, engine: Engine
) -> Partition:
    """Return the sizes of all classes, and the people behind them if a population is named."""
    if wanted.population is None:
        return Partition(Sizes.of(counts, asked.quasi).counts)
    classes, rows = counts.marginal(asked.quasi), engine.open(wanted.population.file)
    require(rows.names, asked.quasi)
    levels = {name: level for name, level in asked.levels.items() if name in asked.quasi}
    if asked.recoded and policy is not None:
        levels = {name: level for name, level in counts.levels.items() if name in asked.quasi}
    cells = as_is(rows, asked.quasi, engine) if policy is None else Cells.of(policy.schema, levels, asked.quasi)
    people, outside = people_behind(classes, engine.count(rows, cells))
    return Partition(classes.counts, population=people, outside=outside)


def _completed(asked: CheckedColumns, policy: Policy | None) -> CheckedColumns:
    if policy is None:
        return asked
    roles = {role: tuple(c.name for c in policy.schema.columns if role.covers(c.role)) for role in Role}
    sensitive = asked.sensitive or tuple(name for name in roles[Role.SENSITIVE] if name not in asked.quasi)
    quasi = asked.quasi or tuple(name for name in roles[Role.QUASI] if name not in sensitive)
    return replace(asked, quasi=quasi, sensitive=sensitive)


def _check_parameters(wanted: CheckCriteria, asked: CheckedColumns, policy: Policy | None) -> None:
    if not asked.quasi:
        raise InvalidParameter("no quasi-identifiers to check: name them with --quasi, or give a policy that has some.")
    if policy is None and not wanted.any:
        raise InvalidParameter("nothing to check against: give --k, --l, --t or another criterion, or a policy.")
    unchecked: str | None = _offered(policy, "unchecked")
    if unchecked is not None and not wanted.any:
        raise InvalidParameter(unchecked)
    if policy is None and asked.recoded:
        raise InvalidParameter("only a policy says how to recode: give --policy, or leave --recoded out.")
    if wanted.about_sensitive and not asked.sensitive:
        raise InvalidParameter("diversity and closeness are about a sensitive column: name it with --sensitive.")


def _recoded(policy: Policy, names: Sequence[str]) -> Cells:
    levels = {**getattr(policy.method, "lowest", {}), **getattr(policy.method, "levels", {})}
    return Cells.of(policy.schema, levels, names)


def _columns(rows: Rows, schema: Schema, method: object) -> CriterionFinding:
    """Hold the columns that are there against those that may be: an upload gate that misses a name is none."""
    allowed = {column.name for column in schema.released}
    allowed |= {WEIGHT} if getattr(method, "weights", False) else set()
    extra = tuple(name for name in rows.names if name not in allowed)
    return CriterionFinding(Measured(COLUMNS, 0, len(extra), None), extra)


def _declared(policy: Policy | None, name: str) -> Declared:
    if policy is None:
        return Declared()
    column = policy.schema[name]
    level = getattr(policy.method, "levels", {}).get(name, int(column.pseudonymous))
    return Declared(column.type, Recoding(column, level))
