"""Given: the files that the attack lab was given, opened and held against each other; the ledger records the look."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.core.certificate import Certificate
from incrowd.core.schema import Role
from incrowd.core.steps.around import gate_of
from incrowd.core.table import Opened, Rows
from incrowd.engines.columns import require
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.readers.sources import Source
from incrowd.errors import InvalidParameter
from incrowd.workflows.attack.attack import AttackReport, AttackRun
from incrowd.workflows.attack.publication import certificate_at, check_belongs, read_publication, table_of
from incrowd.workflows.consent.snapshot import taking_part
from incrowd.workflows.policy.internal import keep_result
from incrowd.workflows.policy.ledger import record_failure, record_look
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.policy.rows import open_rows
from incrowd.workflows.release.outsiders import divided


@dataclass(frozen=True)
class AttackInput:
    """What was published, the data, the policy, other releases, outsiders; what is known and looked for."""

    release: Path
    data: str | None
    policy_file: Path | Policy | None = None
    also: tuple[Path, ...] = ()
    outsiders: str | None = None
    known: tuple[str, ...] | None = None
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
        """Whether the ledger recorded this look."""
        return record_look(self.policy, "attack")

    @property
    def look_sentence(self) -> str:
        """What became of the record of this look, in words."""
        if self.look:
            return "The ledger recorded this as a look at the data."
        return "No ledger recorded this look: none was made yet, or --policy was not given."

    @property
    def title(self) -> str:
        """What was attacked, in a few words."""
        return self.release.name if self.policy is None else self.policy.name

    def table(self, address: str | None) -> pa.Table | None:
        """Read a table that was named, as the policy's source is read."""
        return None if address is None else table_of(open_rows(address, self.policy))

    def opened(self) -> tuple[tuple[tuple[str, PublishedTable], ...], Knowledge, pa.Table | None]:
        """Read everything, check that it belongs together, and return what attacks need."""
        tables = read_publication(self.release, self.policy, self.count)
        others = tuple(one for each in self.also for _, one in read_publication(each, self.policy, self.count))
        tables = tuple((name, replace(each, earlier=others)) for name, each in tables)
        if self.data is None and self.policy is None:
            raise InvalidParameter("no data: name it with --against, or give --policy, which says where it is.")
        source = open_rows(self.data, self.policy)
        _ = self.look
        people, outsiders = self._held_out(source) if self.held_out else self._everybody(source)
        names = {name for _, each in tables for name in each.columns}
        common = [name for name in people.column_names if name in names]
        if not common:
            raise InvalidParameter("what was published and the data have no column in common: nothing can be matched.")
        knowledge = self._knowledge(people, common)
        require(people.column_names, knowledge.known)
        if outsiders is not None:
            require(outsiders.column_names, knowledge.known)
        self._check(tables, knowledge)
        return tables, knowledge, outsiders

    def _everybody(self, source: Source | Opened) -> tuple[pa.Table, pa.Table | None]:
        """Return the people whom the release could use, those who consented where it asked, and the outsiders."""
        gate = None if self.certificate is None else gate_of(self.certificate.steps)
        rows: Rows = source if self.policy is None else taking_part(LOCAL, source, self.policy, gate)
        return table_of(rows), self.table(self.outsiders)

    @cached_property
    def certificate(self) -> Certificate | None:
        """The certificate of the release, if that is a folder of incrowd's."""
        return certificate_at(self.release) if self.release.is_dir() else None

    def thresholds(self, told: Mapping[str, float]) -> dict[str, float]:
        """Return the thresholds that were told and those of the policy; of two with one name the stricter counts."""
        declared = {} if self.policy is None else self.policy.section.risk or {}
        written = {name: float(share) for name, share in declared.items()}
        return {name: min(each[name] for each in (told, written) if name in each) for name in (*told, *written)}

    def keep(self, lab: AttackReport, over: Sequence[AttackRun]) -> Path | None:
        """Keep what was found with what is internal of the release; write a failed threshold into the ledger."""
        if over:
            record_failure(self.policy)
        if self.policy is None or self.certificate is None:
            return None
        return keep_result(self.policy, self.certificate.id, "attack", lab.by_risk(over))

    def _held_out(self, source: Opened) -> tuple[pa.Table, pa.Table]:
        if self.policy is None or self.certificate is None or not isinstance(source, Source):
            raise InvalidParameter(
                "who was held out is kept beside the policy: give --policy, and the release's folder."
            )
        if self.outsiders is not None:
            raise InvalidParameter("outsiders are those of --outsiders or those held out: give one of the two.")
        released, held = divided(source, self.policy, self.certificate)
        return table_of(released), table_of(held)

    def _knowledge(self, people: pa.Table, common: Sequence[str]) -> Knowledge:
        quasi, sensitive = self._roles(common)
        secret = self.secret or next((name for name in sensitive if name not in (self.known or ())), None)
        person, item, separator = self.histories
        if self.secret is not None:
            require(common, [self.secret])
        known = self.known or tuple(name for name in quasi or common if name not in (secret, person))
        few, trials, diversity = self.sizes
        if few < 1 or trials < 1 or (diversity or 2) < 2:
            raise InvalidParameter("--events and --trials are at least 1, --diversity at least 2.")
        told = Knowledge(people, known, secret, self.slack or {}, person=person, item=item, separator=separator)
        return replace(told, few=few, trials=trials, diversity=diversity)

    def _roles(self, common: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the quasi-identifiers and the sensitive columns, as the policy or the certificate tells."""
        if self.policy is not None:
            roles = {column.name: str(column.role) for column in self.policy.schema.columns}
        elif self.certificate is not None:
            roles = {column.name: column.role for column in self.certificate.schema.columns}
        else:
            return [], []
        found = [[name for name in common if role.covers(roles.get(name))] for role in (Role.QUASI, Role.SENSITIVE)]
        return found[0], found[1]

    def _check(self, tables: Sequence[tuple[str, PublishedTable]], knowledge: Knowledge) -> None:
        for name in knowledge.known:
            if not any(name in each.columns for _, each in tables):
                raise InvalidParameter(f"{name!r} was not published, so that nobody can be matched by it: name others.")
        if knowledge.item is not None:
            return
        for _, each in tables:
            check_belongs(each, knowledge.people, [name for name in knowledge.known if name in each.columns])
        if self.policy is not None and self.policy.plan.smallest_class is not None:
            self._check_size(tables, knowledge.people)

    def _check_size(self, tables: Sequence[tuple[str, PublishedTable]], people: pa.Table) -> None:
        if any(each.weights.sum() > people.num_rows for _, each in tables):
            raise InvalidParameter("the release has more rows than the data: it was made from something else.")


def numbers_of(text: str | None) -> dict[str, float]:
    """Return the numbers that a person wrote for some columns.

    >>> numbers_of("age=2,day=14")
    {'age': 2.0, 'day': 14.0}
    """
    found = {}
    for part in (text or "").split(",") if text else ():
        name, mark, number = part.partition("=")
        found[name.strip()] = _number(number) if mark else math.nan
        if not found[name.strip()] >= 0.0:
            raise InvalidParameter("write a number for each column, such as age=2,day=14; none of them negative.")
    return found


def thresholds_of(texts: Sequence[str]) -> dict[str, float]:
    """Return thresholds as they were written: one for all, or one for an attack or a risk.

    >>> thresholds_of(["0.1", "linkability=0.05"])
    {'any': 0.1, 'linkability': 0.05}
    """
    found = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        share = _number(number)
        if not 0.0 <= share <= 1.0:
            raise InvalidParameter("a threshold is a share between 0 and 1, such as 0.1 or linkability=0.1.")
        found[name or "any"] = share
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
