"""Inputs of an attack: the files, opened and checked against each other; the ledger records the data access."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from incrowd.accounting.accountant import charge_of
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.core.certificate import Certificate
from incrowd.core.schema import Role
from incrowd.core.steps.around import gate_of
from incrowd.core.table import Opened, Rows
from incrowd.engines.columns import require
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.readers.sources import Source
from incrowd.errors import InvalidParameter
from incrowd.workflows.attack.attack import AttackReport, AttackRun, AttackTarget, attack_all
from incrowd.workflows.attack.publication import certificate_at, check_belongs, read_publication, table_of
from incrowd.workflows.consent.snapshot import taking_part
from incrowd.workflows.policy.internal import keep_result
from incrowd.workflows.policy.ledger import record_failure, record_look
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.policy.rows import open_here, open_rows
from incrowd.workflows.registry import linked_method_names
from incrowd.workflows.release.outsiders import divided

_ONE_CONTROL = "the control group is a file (--control) or the holdout group (--held-out): give one of the two."


@dataclass(frozen=True)
class AttackInput:
    """The release, the data, the policy, other releases, the control group; what is known and what is secret."""

    release: Path
    data: str | None
    policy_file: Path | Policy | None = None
    also: tuple[Path, ...] = ()
    control: str | None = None
    known_columns: tuple[str, ...] | None = None
    secret: str | None = None
    slack: Mapping[str, float] | None = None
    histories: tuple[str | None, str | None, str | None] = (None, None, None)
    count: str | None = None
    sizes: tuple[int, int, int | None] = (8, 2000, None)
    held_out: bool = False

    @cached_property
    def policy(self) -> Policy | None:
        """The policy of the release, if it was given."""
        return None if self.policy_file is None else load_policy(self.policy_file)

    @cached_property
    def look(self) -> bool:
        """Whether the ledger recorded this data access."""
        return record_look(self.policy, "attack")

    @property
    def look_sentence(self) -> str:
        """Whether the ledger recorded this data access, as a sentence."""
        if self.look:
            return "The ledger recorded this data access."
        return "No ledger recorded this data access: there is none yet, or --policy was not given."

    @property
    def title(self) -> str:
        """The name of what was attacked."""
        return self.release.name if self.policy is None else self.policy.name

    def table(self, address: str | None) -> pa.Table | None:
        """Read a table like the policy's source."""
        return None if address is None else table_of(open_rows(address, self.policy))

    def targets(self) -> tuple[AttackTarget, ...]:
        """Read everything, check that it fits together, and return each table with what is known of its people."""
        certificate = self.certificate
        if certificate is not None and certificate.method.name in linked_method_names():
            from incrowd.workflows.attack.linked import linked_targets

            return linked_targets(self, certificate)
        tables, knowledge, control = self.opened()
        return tuple(AttackTarget(name, published, knowledge, control) for name, published in tables)

    def opened(self) -> tuple[tuple[tuple[str, PublishedTable], ...], Knowledge, pa.Table | None]:
        """Read everything, check that it fits together, and return what attacks need."""
        tables = read_publication(self.release, self.policy, self.count)
        others = tuple(
            published
            for table in self.also
            for _, published in read_publication(table, self.policy, self.count, other=True)
        )
        tables = tuple((name, replace(table, earlier=others)) for name, table in tables)
        if self.data is None and self.policy is None:
            raise InvalidParameter("no data: name it with --against, or give --policy, which names it.")
        source = open_here(self.data, self.policy)
        _ = self.look
        people, control = self._held_out(source) if self.held_out else self._everybody(source)
        names = {name for _, table in tables for name in table.columns}
        common = [name for name in people.column_names if name in names]
        if not common:
            raise InvalidParameter("the release and the data have no column in common, so rows cannot be matched.")
        knowledge = self._knowledge(people, common)
        require(people.column_names, knowledge.known_columns)
        if control is not None:
            require(control.column_names, knowledge.known_columns)
        self._check(tables, knowledge)
        return tables, knowledge, control

    def _everybody(self, source: Source | Opened) -> tuple[pa.Table, pa.Table | None]:
        """Return the people whom the release could use (who consented, if it checks consent), and the control group."""
        gate = None if self.certificate is None else gate_of(self.certificate.steps)
        rows: Rows = source if self.policy is None else taking_part(LOCAL, source, self.policy, gate)
        return table_of(rows), self.table(self.control)

    @cached_property
    def certificate(self) -> Certificate | None:
        """The certificate of the release, if it is a release folder."""
        return certificate_at(self.release) if self.release.is_dir() else None

    @cached_property
    def private(self) -> bool:
        """Whether the release has an ε: results of attacks depend on many people's rows and may not hold it back."""
        if self.certificate is None:
            return False
        guarantee = self.certificate.guarantee
        return math.isfinite(charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency).epsilon)

    def thresholds(self, requested: Mapping[str, float]) -> dict[str, float]:
        """Return the requested thresholds and the policy's; of two with one name the stricter counts."""
        declared = {} if self.policy is None else self.policy.section.risk or {}
        written = {name: float(share) for name, share in declared.items()}
        return {
            name: min(thresholds[name] for thresholds in (requested, written) if name in thresholds)
            for name in (*requested, *written)
        }

    def keep(self, lab: AttackReport, over: Sequence[AttackRun]) -> Path | None:
        """Store the report with the internal files of the release; record a failed threshold in the ledger."""
        if over:
            record_failure(self.policy)
        if self.policy is None or self.certificate is None:
            return None
        return keep_result(self.policy, self.certificate.id, "attack", lab.by_risk(over))

    def _held_out(self, source: Opened) -> tuple[pa.Table, pa.Table]:
        if self.policy is None or self.certificate is None or not isinstance(source, Source):
            raise InvalidParameter(
                "the holdout group is stored beside the policy: give --policy, and the release's folder."
            )
        if self.control is not None:
            raise InvalidParameter(_ONE_CONTROL)
        released, holdout = divided(source, self.policy, self.certificate)
        return table_of(released), table_of(holdout)

    def _knowledge(self, people: pa.Table, common: Sequence[str]) -> Knowledge:
        quasi, sensitive = self._roles(common)
        secret = self.secret or next((name for name in sensitive if name not in (self.known_columns or ())), None)
        person, item, separator = self.histories
        if self.secret is not None:
            require(common, [self.secret])
        columns = self.known_columns or tuple(name for name in quasi or common if name not in (secret, person))
        few, trials, diversity = self.sizes
        if few < 1 or trials < 1 or (diversity or 2) < 2:
            raise InvalidParameter("--events and --trials must be at least 1, --diversity at least 2.")
        knowledge = Knowledge(people, columns, secret, self.slack or {}, person=person, item=item, separator=separator)
        return replace(knowledge, few=few, trials=trials, diversity=diversity)

    def _roles(self, common: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the quasi-identifiers and the sensitive columns of the policy or the certificate."""
        if self.policy is not None:
            roles = {column.name: str(column.role) for column in self.policy.schema.columns}
        elif self.certificate is not None:
            roles = {column.name: column.role for column in self.certificate.schema.columns}
        else:
            return [], []
        columns = [[name for name in common if role.covers(roles.get(name))] for role in (Role.QUASI, Role.SENSITIVE)]
        return columns[0], columns[1]

    def _check(self, tables: Sequence[tuple[str, PublishedTable]], knowledge: Knowledge) -> None:
        for name in knowledge.known_columns:
            if not any(name in table.columns for _, table in tables):
                raise InvalidParameter(
                    f"{name!r} was not released, so nobody can be matched by it: name other columns."
                )
        if knowledge.item is not None:
            return
        for _, table in tables:
            check_belongs(table, knowledge.people, [name for name in knowledge.known_columns if name in table.columns])
        if self.policy is not None and self.policy.plan.smallest_class is not None:
            self._check_size(tables, knowledge.people)

    def _check_size(self, tables: Sequence[tuple[str, PublishedTable]], people: pa.Table) -> None:
        if any(table.weights.sum() > people.num_rows for _, table in tables):
            raise InvalidParameter("the release has more rows than the data: it was made from other data.")


def numbers_of(text: str | None) -> dict[str, float]:
    """Return numbers by column from a text.

    >>> numbers_of("age=2,day=14")
    {'age': 2.0, 'day': 14.0}
    """
    values = {}
    for part in (text or "").split(",") if text else ():
        name, mark, number = part.partition("=")
        values[name.strip()] = _number(number) if mark else math.nan
        if not values[name.strip()] >= 0.0:
            raise InvalidParameter("write a number for each column, such as age=2,day=14; none of them negative.")
    return values


def thresholds_of(texts: Sequence[str]) -> dict[str, float]:
    """Return thresholds from texts: one for all, or one for an attack or a risk.

    >>> thresholds_of(["0.1", "linkability=0.05"])
    {'any': 0.1, 'linkability': 0.05}
    """
    thresholds = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        share = _number(number)
        if not 0.0 <= share <= 1.0:
            raise InvalidParameter("a threshold must be a share between 0 and 1, such as 0.1 or linkability=0.1.")
        thresholds[name or "any"] = share
    return thresholds


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


@dataclass(frozen=True)
class ControlGroup:
    """People who are not in the data: a file, or the holdout group of the release; or none."""

    address: str | None = None
    held_out: bool = False

    def __post_init__(self) -> None:
        if self.address is not None and self.held_out:
            raise InvalidParameter(_ONE_CONTROL)

    @property
    def there(self) -> bool:
        """Whether there is a control group."""
        return self.held_out or self.address is not None


NO_CONTROL = ControlGroup()


def attacked(release: Path, policy: Policy, against: str | None, control: ControlGroup) -> AttackReport | None:
    """Run all attacks that apply to a release, with a control group; None without one."""
    if not control.there:
        return None
    inputs = AttackInput(release, against, policy, control=control.address, held_out=control.held_out)
    return attack_all(inputs.targets())
