"""The ids of a policy's own table, which tell whether a decision names somebody; for the data holder alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from incrowd.core.nearest import nearest_ids
from incrowd.core.schema import Column
from incrowd.core.subjects import alike_form, normal_id, written_id
from incrowd.core.table import Opened
from incrowd.engines.people import PersonIds
from incrowd.engines.settings import Local, engine_of
from incrowd.errors import IncrowdError
from incrowd.workflows.consent.place import person_column
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.release.prepare import open_data


@dataclass(frozen=True)
class TableMatch:
    """Whether a row of the table has exactly an id, how many other ids are written alike, and the nearest ones."""

    present: bool
    alike: int
    nearest: tuple[str, ...] = field(default=(), repr=False)
    """Values of the table: for the data holder's terminal, never for logs."""

    def ok(self, *, gives: bool) -> bool:
        """Whether the id is in the table; a consent may be there before the rows, unless it resembles another id."""
        return self.present or (gives and not self.alike)

    def sentence(self, *, gives: bool) -> str | None:
        """Return what the data holder should know; no value of the table stands in it."""
        if self.present:
            return None
        if gives:
            return (
                f"No row of the table has exactly this id, but {self.alike} other ids of it differ in case, leading "
                "zeros or invisible characters only. A consent counts for the exact id: check it."
                if self.alike
                else "No row of the table has this id yet."
            )
        return "No row of the table has exactly this id."


@dataclass(frozen=True, eq=False)
class TableIds:
    """The ids of all people in a table, and how many have each form."""

    person: Column
    names: frozenset[str] = field(repr=False)
    forms: dict[str, int] = field(repr=False)

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
        forms: dict[str, int] = {}
        for name in names:
            form = alike_form(name)
            forms[form] = forms.get(form, 0) + 1
        return cls(person, names, forms)

    def match(self, person: str) -> TableMatch:
        """Return whether an id is in the table, and which are near."""
        own = written_id(person, self.person)
        present = own in self.names
        alike = self.forms.get(alike_form(own), 0) - present
        return TableMatch(present, alike, () if present else nearest_ids(own, self.names))


def _rows(policy: Policy, engine: object) -> Opened:
    from incrowd.workflows.graph.reading import open_graph

    if policy.graph is not None:
        return open_graph(policy, engine).nodes  # type: ignore[arg-type]
    return open_data(None, policy, engine)  # type: ignore[arg-type]
