"""The ids of a policy's own table, which tell whether a decision names somebody; for the data holder alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property, partial

from incrowd.core.nearest import IdIndex
from incrowd.core.schema import Column
from incrowd.core.subjects import alike_form, normal_id, written_id
from incrowd.core.table import Engine, Opened
from incrowd.engines.people import PersonIds
from incrowd.engines.settings import Local, engine_of
from incrowd.errors import IncrowdError
from incrowd.workflows.consent.place import person_column
from incrowd.workflows.policy.linked_tables import open_tables
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.release.prepare import open_data


@dataclass(frozen=True)
class TableMatch:
    """Whether a row of the table has exactly an id, and how many other ids are written alike."""

    present: bool
    alike: int
    person: str = field(default="", repr=False)
    ids: TableIds | None = field(default=None, repr=False, compare=False)

    @property
    def nearest(self) -> tuple[str, ...]:
        """The nearest ids, if none is exactly this: values of the table, for the data holder's terminal, never logs."""
        return () if self.present or self.ids is None else self.ids.index.nearest(self.person)

    def sentence(self, *, gives: bool) -> str | None:
        """Return what the data holder should know; no value of the table stands in it."""
        if self.present:
            return None
        if not self.alike:
            return "No row of the table has this id yet." if gives else "No row of the table has this id."
        others = "1 other id of it differs" if self.alike == 1 else f"{self.alike} other ids of it differ"
        exact = " A consent counts for the exact id: check it." if gives else ""
        return (
            f"No row of the table has exactly this id, but {others} in case, leading zeros or invisible characters "
            f"only.{exact}"
        )


@dataclass(frozen=True, eq=False)
class TableIds:
    """The ids of all people in a table."""

    person: Column
    names: frozenset[str] = field(repr=False)

    @classmethod
    def of(cls, policy: Policy) -> TableIds | None:
        """Read the ids of a policy's own table; None where it names none here, or it cannot be read."""
        if not isinstance(policy.engine, Local):
            return None
        try:
            with engine_of(policy.engine) as engine:
                person, rows = person_column(policy), _rows(policy, engine)
                names = frozenset(map(normal_id, engine.learn(rows, [person.name], partial(PersonIds, person)).names))
        except (IncrowdError, OSError):
            return None
        return cls(person, names)

    @cached_property
    def index(self) -> IdIndex:
        """All ids, to compare others with."""
        return IdIndex.of(self.names)

    @cached_property
    def forms(self) -> Counter[str]:
        """How many ids have each form."""
        return Counter(self.index.forms)

    def match(self, person: str) -> TableMatch:
        """Return whether an id is in the table; where it is not, the others are compared with it."""
        own = written_id(person, self.person)
        return TableMatch(True, 0) if own in self.names else TableMatch(False, self.forms[alike_form(own)], own, self)


def _rows(policy: Policy, engine: Engine) -> Opened:
    from incrowd.workflows.graph.reading import open_graph

    return open_graph(policy, engine).nodes if policy.graph is not None else open_people(None, policy, engine)


def open_people(data: object, policy: Policy, engine: Engine) -> Opened:
    """Open the table that has a row of each person: of linked tables the first one."""
    return open_tables(policy, data, engine)[0] if policy.linked else open_data(data, policy, engine)
