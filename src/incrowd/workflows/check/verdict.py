"""Verdict: whether an undescribed table can be published as it is; its roles are guessed."""

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
from incrowd.workflows.check.raw_cells import StoredIntegers, as_is
from incrowd.workflows.profile.column_names import KNOWN, spoken
from incrowd.workflows.profile.profile import ColumnProfile, TableProfile, profile
from incrowd.workflows.profile.subsets import Subset

K = 5
"""The minimum size of an equivalence class, if none is given."""
_NEARLY_ALL = 0.9
_FEW_ROWS = 20
_LISTED = 1 << 22  # rows whose integers are sorted in memory: 32 MB
_NAMED = 3


@dataclass(frozen=True)
class FileVerdict:
    """What was guessed and counted: direct identifiers, unique rows, and small classes.

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
        """Other columns in which nearly every row has a unique value."""
        return tuple(column for column in self.profile.columns if _is_key(column))

    @property
    def sensitive(self) -> tuple[ColumnProfile, ...]:
        """The columns that are sensitive by their names."""
        return tuple(column for column in self.profile.columns if column.role is Role.SENSITIVE)

    @property
    def passed(self) -> bool:
        """Whether no column seems to name people, and every class has at least k rows."""
        return not self.naming and not self.keys and not self.short

    @property
    def telling(self) -> Subset | None:
        """The one to three quasi-identifiers with the most unique rows; publicly known ones come first."""
        single = [Subset((column.name,), column.facts.spread) for column in self._quasi]
        candidates = [subset for subset in (*single, *self.profile.subsets) if set(subset.columns) <= set(self.quasi)]
        most = max((subset.spread.unique_share for subset in candidates), default=0.0)
        near = [subset for subset in candidates if subset.spread.unique_share >= _NEARLY_ALL * most > 0.0]
        return min(near, key=_obscurity, default=None)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        if self.passed:
            crowd = "there is no quasi-identifier"
            if self.quasi:
                crowd = f"every row equals at least {counted((self.smallest or 1) - 1, 'other')} in {_and(self.quasi)}"
            return f"No column seems to name people, and {crowd}; roles are guessed: have a person confirm them."
        return f"Do not publish this: {', and '.join(self._objections())}."

    def _objections(self) -> Iterator[str]:
        if self.naming:
            yield f"{counted(len(self.naming), 'column')} {'seems' if len(self.naming) == 1 else 'seem'} to name people"
        telling = self.telling
        if telling is not None:
            share = telling.spread.unique_share
            percent = f"{100 * share:.0f} %" if share >= 0.01 else "some"
            yield f"{percent} of the rows are unique in {_and(telling.columns)}"
        elif self.short:
            by = f" in {_and(self.quasi)}" if self.quasi else ", because there are no more"
            verb = "equals" if self.short == 1 else "equal"
            yield f"{counted(self.short, 'row')} {verb} fewer than {self.k - 1} others{by}"
        if self.keys and not self.naming and telling is None and not self.short:
            yield f"nearly every row has a unique value in {_and(tuple(column.name for column in self.keys))}"

    def reasons(self) -> tuple[tuple[str, str], ...]:
        """Return column and reason, the worst first."""
        reasons = [(column.name, column.identity.sentence) for column in self.naming if column.identity]
        reasons += [
            (c.name, f"a key: {c.facts.spread.unique_share:.0%} of the rows have a unique value") for c in self.keys
        ]
        if self.telling is not None:
            alone = self.telling.spread
            reasons.append(
                (", ".join(self.telling.columns), f"{alone.unique_share:.0%} of the rows are unique in these")
            )
        if self.short:
            few = f"{self.short:,} of {self.profile.rows:,} rows equal fewer than {self.k - 1} others in all of these"
            reasons.append((", ".join(self.quasi) or "all columns", few))
        return (*reasons, *((column.name, f"sensitive: {column.why_role}") for column in self.sensitive))

    def commands(self, data: str) -> tuple[tuple[str, str], ...]:
        """Return the three next commands, each with what it does."""
        file = shlex.quote(data)
        return (
            (f"incrowd profile {file} --write policy.yaml", "draft a policy: what is released, at which levels"),
            ("incrowd plan --policy policy.yaml", "show its guarantee; spends nothing"),
            ("incrowd release --policy policy.yaml --out out", "make the release"),
        )

    def to_json(self, data: str) -> dict[str, Any]:
        """Return the values for JSON."""
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
    """Guess the roles of all columns, find those that name people, and count the rows in small classes.

    Every column that is not an identifier, a key, sensitive or constant is a quasi-identifier.  Fewer than k rows are a
    small class, even if they are equal.

    >>> import pyarrow as pa
    >>> from incrowd.engines.readers.sources import open_source
    >>> members = pa.table({"email": [f"{n}@example.org" for n in range(20)], "sex": ["F", "M"] * 10})
    >>> verdict(open_source(members)).sentence
    'Do not publish this: 1 column seems to name people.'
    """
    table = profile(rows, engine)
    quasi = tuple(column.name for column in table.columns if _is_quasi(column))
    if not quasi:
        return FileVerdict(table, k, quasi, None, table.rows if table.rows < k else 0)
    if any(_isolates(rows, table, name, k, engine) for name in quasi):
        return FileVerdict(table, k, quasi, 1, table.rows)
    sizes = Sizes.of(engine.count(rows, as_is(rows, quasi, engine)), quasi)
    return FileVerdict(table, k, quasi, sizes.smallest, sizes.below(k))


def _isolates(rows: Rows, table: TableProfile, name: str, k: int, engine: Engine) -> bool:
    """Return whether integers of one column alone leave fewer than k rows in each class, and some row alone.

    Every class of more columns is part of one of this column's, so nothing else has to be counted.
    """
    if table.rows > _LISTED or table[name].facts.spread.unique_share < _NEARLY_ALL:
        return False
    sizes = engine.learn(rows, (name,), StoredIntegers).multiplicities()
    return len(sizes) > 0 and bool(sizes.min() == 1 and sizes.max() < k)


def _is_key(column: ColumnProfile) -> bool:
    spread = column.facts.spread
    if column.identity is not None or column.role is not Role.IDENTIFIER:
        return False
    return spread.unique_share >= _NEARLY_ALL and spread.rows >= _FEW_ROWS


def _is_quasi(column: ColumnProfile) -> bool:
    taken = column.identity is not None or _is_key(column) or column.role is Role.SENSITIVE
    return not taken and column.facts.spread.distinct > 1


def _obscurity(subset: Subset) -> tuple[int, int, float]:
    public = sum(spoken(name, KNOWN) is not None for name in subset.columns)
    return len(subset.columns) - public, len(subset.columns), -subset.spread.unique_share


def _and(names: tuple[str, ...]) -> str:
    if len(names) > _NAMED + 1:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
