"""Check: whether a table can be published as it is; numbers and a verdict, no output data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.plan import Method
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
from incrowd.methods.anonymity.shared.demands import Demands
from incrowd.methods.shared.microdata import WEIGHT
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
    "the number of columns that must not be there: identifiers, and columns that the policy does not declare",
    Bound.AT_MOST,
)
NAMING = Meaning(
    "identifiers",
    "the number of columns that seem to be direct identifiers, by their values or their names",
    Bound.AT_MOST,
)


@dataclass(frozen=True)
class CheckResult:
    """The findings: each criterion with its required value, and how the table was read.

    `unexamined` are the columns without a criterion; `identities` say why some columns seem to be identifiers.
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
        """Return the values for JSON."""
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
    """The checked columns: quasi-identifiers, sensitive ones, and whether they are recoded first.

    `levels` are the levels of the quasi-identifiers of a released table: a population is recoded to them.
    """

    quasi: tuple[str, ...] = ()
    sensitive: tuple[str, ...] = ()
    recoded: bool = False
    levels: Mapping[str, int] = field(default_factory=dict)


def check(
    rows: Rows, criteria: CheckCriteria, columns: CheckedColumns, policy: Policy | None = None, engine: Engine = LOCAL
) -> CheckResult:
    """Count the table once, where it is stored, and compare it with the criteria, and the policy if there is one.

    The table is read unchanged, value by value; with `recoded`, after the policy's rules and levels.  A policy's roles
    say which columns are quasi-identifiers and sensitive, unless they are named.  Unchanged, the table must have no
    other columns, and no column may seem to be an identifier: a column with a criterion by its values, any other also
    by its name.  Without criteria, those of the policy's method are required; a method that requires only k must meet
    it over all released columns.

    >>> import pyarrow as pa
    >>> from incrowd.engines.readers.sources import open_source
    >>> rows = open_source(pa.table({"sex": ["F", "F", "M"], "zip": ["1", "1", "1"]}))
    >>> verdict = check(rows, CheckCriteria(k=2), CheckedColumns(("sex", "zip")))
    >>> verdict.passed, verdict.findings[0].value, verdict.findings[0].short
    (False, 1, 1)

    Where the policy names a purpose and the rows have a person ID column, only rows of people with consent in force are
    checked.
    """
    rows = rows if policy is None else taking_part(engine, rows, policy)
    if policy is not None and policy.method.checked_for is not None:
        result = _by_own_measure(Table(policy.schema, rows, engine), policy.method, criteria, columns)
    elif policy is not None and policy.method.one_part_each and not criteria.any and columns == CheckedColumns():
        result = _of_part(rows, policy, engine)
    else:
        result = _by_criteria(rows, criteria, _completed(columns, policy), policy, engine)
    return _and_identifiers(result, rows, policy if columns.recoded else None, engine)


def _and_identifiers(result: CheckResult, rows: Rows, recoded: Policy | None, engine: Engine) -> CheckResult:
    """Add the columns without a criterion, and those that seem to be identifiers; recoded, the former only."""
    present = rows.names if recoded is None else tuple(column.name for column in recoded.schema.released)
    names = tuple(name for name in present if name in rows.names)
    examined = {name for finding in result.findings if finding.measured.meaning is not COLUMNS for name in finding.over}
    examined |= {finding.sensitive for finding in result.findings if finding.sensitive is not None}
    unexamined = tuple(name for name in names if name not in examined)
    looked_at = unexamined if recoded is not None else names
    identities = {
        name: identity
        for name, identity in identities_of(rows, looked_at, engine).items()
        if identity.by_content or name in unexamined
    }
    finding = CriterionFinding(Measured(NAMING, 0, len(identities), None), tuple(identities))
    findings = (*result.findings, finding) if identities else result.findings
    return replace(result, findings=findings, unexamined=unexamined, identities=identities)


def _by_criteria(
    rows: Rows, criteria: CheckCriteria, columns: CheckedColumns, policy: Policy | None, engine: Engine
) -> CheckResult:
    """Check criteria over the quasi-identifiers of a table, and the policy's k over all released columns."""
    demands: Demands | None = None if policy is None else policy.method.demands
    released = () if policy is None else tuple(column.name for column in policy.schema.released)
    _check_parameters(criteria, columns, policy)
    require(rows.names, (*columns.quasi, *columns.sensitive, *released))
    names = tuple(dict.fromkeys((*columns.quasi, *columns.sensitive, *(released if demands is None else ()))))
    cells = _recoded(policy, names) if policy is not None and columns.recoded else as_is(rows, names, engine)
    counts = engine.count(rows, cells)
    findings = [] if policy is None or columns.recoded else [_columns(rows, policy.schema, policy.method)]
    if demands is not None:
        criteria = criteria.and_of(demands, columns.sensitive)
    elif policy is not None:
        guaranteed = policy.plan.smallest_class
        findings.append(crowds(counts, released, guaranteed, RELEASED))
        criteria = criteria if criteria.any else replace(criteria, k=guaranteed)
    findings.append(crowds(counts, columns.quasi, criteria.k))
    findings += _subsets(counts, columns.quasi, policy)
    findings += table_findings(_partition(counts, columns, criteria, policy, engine), columns.quasi, criteria)
    for sensitive in columns.sensitive:
        declared = _declared(policy, sensitive)
        findings += sensitive_findings(counts, columns.quasi, sensitive, criteria.of(sensitive), declared)
    return CheckResult(counts.total, "recoded by the policy" if columns.recoded else "as it is", tuple(findings))


def _by_own_measure(table: Table, method: Method, criteria: CheckCriteria, columns: CheckedColumns) -> CheckResult:
    """Check a table by the measure of its policy's method alone."""
    if criteria.any or columns.quasi or columns.sensitive:
        raise InvalidParameter(
            f"a policy of method {method.name} is checked for its own {method.checked_for}: omit other criteria and "
            "columns."
        )
    require(table.rows.names, [column.name for column in table.schema.released])
    counted, measured, over = method.measure(table, recoded=columns.recoded)
    finding = CriterionFinding(measured, over)
    findings = (finding,) if columns.recoded else (_columns(table.rows, table.schema, method), finding)
    return CheckResult(counted, "recoded by the policy" if columns.recoded else "as it is", findings)


def _of_part(rows: Rows, policy: Policy, engine: Engine) -> CheckResult:
    """Check one of several tables for the k of its policy, over all its columns."""
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


def _subsets(counts: Counts, quasi: tuple[str, ...], policy: Policy | None) -> Iterator[CriterionFinding]:
    """Yield the rarest combination for each size of subsets that the policy's method requires."""
    for size, k in sorted(({} if policy is None else policy.method.subsets).items()):
        by_subset = [crowds(counts, chosen, k, SUBSETS) for chosen in combinations(quasi, size)]
        yield from [min(by_subset, key=lambda finding: finding.value or 0)] if by_subset else []


def _partition(
    counts: Counts, columns: CheckedColumns, criteria: CheckCriteria, policy: Policy | None, engine: Engine
) -> Partition:
    """Return the sizes of all classes, and their population if one is named."""
    if criteria.population is None:
        return Partition(Sizes.of(counts, columns.quasi).counts)
    classes, rows = counts.marginal(columns.quasi), engine.open(criteria.population.file)
    require(rows.names, columns.quasi)
    levels = {name: level for name, level in columns.levels.items() if name in columns.quasi}
    if columns.recoded and policy is not None:
        levels = {name: level for name, level in counts.levels.items() if name in columns.quasi}
    cells = as_is(rows, columns.quasi, engine) if policy is None else Cells.of(policy.schema, levels, columns.quasi)
    people, outside = people_behind(classes, engine.count(rows, cells))
    return Partition(classes.counts, population=people, outside=outside)


def _completed(columns: CheckedColumns, policy: Policy | None) -> CheckedColumns:
    if policy is None:
        return columns
    roles = {role: tuple(c.name for c in policy.schema.columns if role.covers(c.role)) for role in Role}
    sensitive = columns.sensitive or tuple(name for name in roles[Role.SENSITIVE] if name not in columns.quasi)
    quasi = columns.quasi or tuple(name for name in roles[Role.QUASI] if name not in sensitive)
    return replace(columns, quasi=quasi, sensitive=sensitive)


def _check_parameters(criteria: CheckCriteria, columns: CheckedColumns, policy: Policy | None) -> None:
    if not columns.quasi:
        raise InvalidParameter("no quasi-identifiers to check: name them with --quasi, or give a policy that has some.")
    if policy is None and not criteria.any:
        raise InvalidParameter("nothing to check against: give --k, --l, --t or another criterion, or a policy.")
    unchecked = None if policy is None else policy.method.unchecked
    if unchecked is not None and not criteria.any:
        raise InvalidParameter(unchecked)
    if policy is None and columns.recoded:
        raise InvalidParameter(
            "--recoded needs a policy, which defines the recoding: give --policy, or omit --recoded."
        )
    if criteria.about_sensitive and not columns.sensitive:
        raise InvalidParameter("diversity and closeness need a sensitive column: name it with --sensitive.")


def _recoded(policy: Policy, names: Sequence[str]) -> Cells:
    levels = {**policy.method.lowest, **policy.method.levels}
    return Cells.of(policy.schema, levels, names)


def _columns(rows: Rows, schema: Schema, method: Method) -> CriterionFinding:
    """Compare the columns of a table with those that may be there: an upload check must not miss one."""
    allowed = {column.name for column in schema.released}
    allowed |= {WEIGHT} if method.weights else set()
    extra = tuple(name for name in rows.names if name not in allowed)
    return CriterionFinding(Measured(COLUMNS, 0, len(extra), None), extra)


def _declared(policy: Policy | None, name: str) -> Declared:
    if policy is None:
        return Declared()
    column = policy.schema[name]
    level = policy.method.levels.get(name, int(column.pseudonymous))
    return Declared(column.type, Recoding(column, level))
