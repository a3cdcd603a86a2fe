"""Verdict: may this table leave as it is?  For a table of which nobody has said anything: roles are guessed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from incrowd.core.schema import Role
from incrowd.core.table import Engine, Rows
from incrowd.core.words import counted
from incrowd.engines.local.engine import LOCAL
from incrowd.measures.risk.classes import Sizes
from incrowd.workflows.check.raw_cells import as_is
from incrowd.workflows.profile.column_names import KNOWN, spoken
from incrowd.workflows.profile.profile import ColumnProfile, Subset, TableProfile, profile

K = 5
"""So many rows should look alike, where nobody asks for another number."""
_NEARLY_ALL = 0.9
_FEW_ROWS = 20
_NAMED = 3


@dataclass(frozen=True)
class FileVerdict:
    """What was guessed and counted: who is named, who is alone, and in how small a crowd.

    `smallest` is the number of rows in the smallest class over all guessed quasi-identifiers, `short` the number of
    rows in classes below k.
    """

    profile: TableProfile
    k: int
    quasi: tuple[str, ...]
    smallest: int | None
    short: int

    @property
    def naming(self) -> tuple[ColumnProfile, ...]:
        """The columns that seem to name people."""
        return tuple(column for column in self.profile.columns if column.identity is not None)

    @property
    def keys(self) -> tuple[ColumnProfile, ...]:
        """The columns of something else in which nearly every row has a value of its own."""
        return tuple(column for column in self.profile.columns if _is_key(column))

    @property
    def sensitive(self) -> tuple[ColumnProfile, ...]:
        """The columns that people would rather keep to themselves, by their names."""
        return tuple(column for column in self.profile.columns if column.role is Role.SENSITIVE)

    @property
    def passed(self) -> bool:
        """Whether nobody seems to be named, and every row looks like k − 1 others."""
        return not self.naming and not self.keys and not self.short

    @property
    def telling(self) -> Subset | None:
        """The one to three quasi-identifiers by which the most rows are alone; those that others know come first."""
        alone = [Subset((column.name,), column.facts.spread) for column in self._quasi]
        found = [each for each in (*alone, *self.profile.subsets) if set(each.columns) <= set(self.quasi)]
        most = max((each.spread.unique_share for each in found), default=0.0)
        near = [each for each in found if each.spread.unique_share >= _NEARLY_ALL * most > 0.0]
        return min(near, key=_obscurity, default=None)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        if self.passed:
            crowd = "there is nothing to look rows up by"
            if self.quasi:
                crowd = (
                    f"every row looks like at least {counted((self.smallest or 1) - 1, 'other')} by {_and(self.quasi)}"
                )
            return f"No column seems to name people, and {crowd}; roles are guessed, so have somebody confirm them."
        return f"Do not upload this: {', and '.join(self._objections())}."

    def _objections(self) -> Iterator[str]:
        if self.naming:
            yield f"{counted(len(self.naming), 'column')} {'seems' if len(self.naming) == 1 else 'seem'} to name people"
        telling = self.telling
        if telling is not None:
            share = telling.spread.unique_share
            told = f"{100 * share:.0f} %" if share >= 0.01 else "some"
            yield f"{told} of the rows are unique by {_and(telling.columns)}"
        elif self.short:
            by = f" by {_and(self.quasi)}" if self.quasi else ", because there are no more"
            look = "looks" if self.short == 1 else "look"
            yield f"{counted(self.short, 'row')} {look} like fewer than {self.k - 1} others{by}"
        if self.keys and not self.naming and telling is None and not self.short:
            yield f"nearly every row has a value of its own in {_and(tuple(column.name for column in self.keys))}"

    def reasons(self) -> tuple[tuple[str, str], ...]:
        """Return column and reason, the worst first."""
        found = [(column.name, column.identity.sentence) for column in self.naming if column.identity]
        found += [
            (c.name, f"a key: {c.facts.spread.unique_share:.0%} of the rows have a value of their own")
            for c in self.keys
        ]
        if self.telling is not None:
            alone = self.telling.spread
            found.append(
                (", ".join(self.telling.columns), f"{alone.unique_share:.0%} of the rows are alone with these")
            )
        if self.short:
            few = (
                f"{self.short:,} of {self.profile.rows:,} rows look like fewer than {self.k - 1} others by all of these"
            )
            found.append((", ".join(self.quasi) or "all columns", few))
        return (*found, *((column.name, f"sensitive: {column.why_role}") for column in self.sensitive))

    def commands(self, data: str) -> tuple[tuple[str, str], ...]:
        """Return the three next commands, each with what it does."""
        file = shlex.quote(data)
        return (
            (f"incrowd profile {file} --write policy.yaml", "draft what may leave, and how coarse"),
            ("incrowd plan --policy policy.yaml", "see what that guarantees; nothing is spent"),
            ("incrowd release --policy policy.yaml --out out", "make the table that may leave"),
        )

    def to_json(self, data: str) -> dict[str, Any]:
        """Return the plain form."""
        telling = self.telling
        alone = None if telling is None else {"columns": telling.columns, "unique_share": telling.spread.unique_share}
        return {
            "passed": self.passed,
            "rows": self.profile.rows,
            "measured": "as it is",
            "sentence": self.sentence,
            "identifiers": {column.name: column.identity.to_json() for column in self.naming if column.identity},
            "keys": [column.name for column in self.keys],
            "quasi": list(self.quasi),
            "sensitive": [column.name for column in self.sensitive],
            "k": self.k,
            "smallest": self.smallest,
            "short": self.short,
            "alone": alone,
            "reasons": [{"column": column, "why": why} for column, why in self.reasons()],
            "next": [command for command, _ in self.commands(data)],
            "columns": [column.to_json() for column in self.profile.columns],
        }

    @property
    def _quasi(self) -> list[ColumnProfile]:
        return [column for column in self.profile.columns if column.name in self.quasi]


def verdict(rows: Rows, k: int = K, engine: Engine = LOCAL) -> FileVerdict:
    """Guess the roles of all columns, look for those that name people, and count how many rows are in small crowds.

    Every column that is no identifier, no key, not sensitive and not the same in all rows is a quasi-identifier.  Fewer
    than k rows are a small crowd, however alike they are.

    >>> import pyarrow as pa
    >>> from incrowd.engines.readers.sources import open_source
    >>> members = pa.table({"email": [f"{n}@example.org" for n in range(20)], "sex": ["F", "M"] * 10})
    >>> verdict(open_source(members)).sentence
    'Do not upload this: 1 column seems to name people.'
    """
    found = profile(rows, engine)
    quasi = tuple(column.name for column in found.columns if _is_quasi(column))
    if not quasi:
        return FileVerdict(found, k, quasi, None, found.rows if found.rows < k else 0)
    sizes = Sizes.of(engine.count(rows, as_is(rows, quasi, engine)), quasi)
    return FileVerdict(found, k, quasi, sizes.smallest, sizes.below(k))


def _is_key(column: ColumnProfile) -> bool:
    spread = column.facts.spread
    if column.identity is not None or column.role is not Role.IDENTIFIER:
        return False
    return spread.unique_share >= _NEARLY_ALL and spread.rows >= _FEW_ROWS


def _is_quasi(column: ColumnProfile) -> bool:
    taken = column.identity is not None or _is_key(column) or column.role is Role.SENSITIVE
    return not taken and column.facts.spread.distinct > 1


def _obscurity(subset: Subset) -> tuple[int, int, float]:
    known = sum(spoken(name, KNOWN) is not None for name in subset.columns)
    return len(subset.columns) - known, len(subset.columns), -subset.spread.unique_share


def _and(names: tuple[str, ...]) -> str:
    if len(names) > _NAMED + 1:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
