"""History: what was asked of a server before, for how much, and what is left; the budget as a card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, overload

from incrowd.client.reply import amount
from incrowd.drawing.card import card, facts, grid
from incrowd.errors import PackageMissing

if TYPE_CHECKING:
    import pyarrow as pa

_FIRST = 3
"""How many queries that were paid for as one a card shows."""
_HEAD = ("when", "queries", "cost", "spent after it", "id")


class BudgetCard(dict[str, Any]):
    """What is left of each dataset, and what the caller has spent of it and may spend; a card in a notebook.

    >>> BudgetCard({"births": {"left": {"epsilon": "2", "delta": "0"}}}).lines
    [('left of births', 'epsilon 2, delta 0')]
    """

    @property
    def lines(self) -> list[tuple[str, str]]:
        """What is left, of the dataset and of the caller's allowance, in words."""
        lines = []
        for name, status in self.items():
            lines.append(
                (f"left of {name}", amount(status["left"]) if status.get("left") is not None else "none is set")
            )
            if status.get("spent") is not None:
                lines.append((f"you spent of {name}", amount(status["spent"])))
                lines.append((f"left of your allowance for {name}", _left(status.get("allowance"), status["spent"])))
        return lines

    def _repr_html_(self) -> str:
        return card("budget", facts(self.lines))


@dataclass(frozen=True)
class PastQuery:
    """A query, or several that were paid for as one; `Client.answer` gives the answer with this `id` again."""

    number: int
    id: str
    at: str
    questions: tuple[str, ...]
    columns: tuple[str, ...]
    cost: Mapping[str, Mapping[str, str]]
    spent: Mapping[str, Mapping[str, str]]
    left: Mapping[str, str] | None
    own: bool
    repeated: bool
    state: str

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> PastQuery:
        """Read an entry of a server's history."""
        rest = [plain[name] for name in ("cost", "spent", "left", "own", "repeated", "state")]
        texts = tuple(plain["questions"]), tuple(plain["columns"])
        return cls(plain["number"], plain["id"], plain["at"], *texts, *rest)

    @property
    def short(self) -> str:
        """The first queries, and how many more there are."""
        more = len(self.questions) - _FIRST
        text = "; ".join(self.questions[:_FIRST]) or self.state
        return f"{text}; and {more:,} more" if more > 0 else text

    @property
    def row(self) -> tuple[str, ...]:
        """The entry as cells of text."""
        texts = "; ".join(self.questions) or self.state
        return self.at.replace("T", " ")[:19], texts, _amounts(self.cost), _amounts(self.spent), self.id


@dataclass(frozen=True)
class QueryHistory(Sequence[PastQuery]):
    """Past queries, the latest first, and how the budget stands now; `next` is where the next page begins."""

    entries: tuple[PastQuery, ...]
    next: int | None
    budget: BudgetCard

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> QueryHistory:
        """Read a server's reply."""
        return cls(tuple(map(PastQuery.of, plain["history"])), plain["next"], BudgetCard(plain["datasets"]))

    @overload
    def __getitem__(self, at: int) -> PastQuery: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[PastQuery, ...]: ...
    def __getitem__(self, at: int | slice) -> PastQuery | tuple[PastQuery, ...]:
        """Return the entry at a place, counted from the latest."""
        return self.entries[at]

    def __len__(self) -> int:
        """Return how many entries this page has."""
        return len(self.entries)

    def _repr_html_(self) -> str:
        rows = [(when, entry.short, *rest) for entry in self.entries for when, _, *rest in [entry.row]]
        note = "" if self.next is None else f"Earlier ones: history(before={self.next})."
        return card("history", grid(_HEAD, rows), facts(self.budget.lines), note=note)

    def to_arrow(self) -> pa.Table:
        """Return the entries as an Arrow table of text."""
        import pyarrow as pa

        columns = zip(*(entry.row for entry in self.entries), strict=True) if self.entries else [()] * len(_HEAD)
        return pa.Table.from_arrays([pa.array(values, pa.string()) for values in columns], names=list(_HEAD))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the entries to any library that speaks Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return the entries as a pandas frame."""
        try:
            import pandas as pd  # noqa: F401 (Arrow needs it)
        except ImportError:
            raise PackageMissing("a pandas frame needs the package pandas: pip install pandas.") from None
        return self.to_arrow().to_pandas()


def _left(allowance: Mapping[str, Any] | None, spent: Mapping[str, str]) -> str:
    """Return what is left of an allowance, and until when, in words.

    >>> _left({"epsilon": "2", "delta": "0", "until": "2030-12-31"}, {"epsilon": "0.5", "delta": "0"})
    'epsilon 1.5, delta 0, until 2030-12-31'
    >>> _left({"epsilon": "2", "delta": "0", "month": "0.5"}, {"epsilon": "1", "delta": "0", "epsilon_of_month": "0.1"})
    'epsilon 1, delta 0, epsilon this month 0.4'
    """
    if allowance is None:
        return "none is set"
    rest = {name: max(Decimal(0), Decimal(allowance[name]) - Decimal(spent[name])) for name in ("epsilon", "delta")}
    if allowance.get("month") is not None:
        month = Decimal(allowance["month"]) - Decimal(spent.get("epsilon_of_month", "0"))
        rest["epsilon this month"] = max(Decimal(0), month)
    return amount({name: f"{value:f}" for name, value in rest.items()} | _until(allowance))


def _until(allowance: Mapping[str, Any]) -> dict[str, str]:
    return {} if allowance.get("until") is None else {"until": allowance["until"]}


def _amounts(amounts: Mapping[str, Mapping[str, str]]) -> str:
    return "; ".join(f"{name}: {amount(parts)}" for name, parts in amounts.items())
