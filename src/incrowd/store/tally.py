"""Tally: the running totals that every entry carries, to be held against all entries before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from incrowd.store.chain_entry import ChainEntry, Key

Sums = Mapping[str, Any]


class Tally(Protocol):
    """What is summed over a chain."""

    @property
    def under(self) -> Key:
        """The beginning of the keys whose values add up to the totals."""

    def total(self, values: Mapping[Key, Any]) -> Sums:
        """Return the totals of these values: those of all keys that begin with `under`."""

    def after(self, totals: Sums, link: ChainEntry) -> Sums:
        """Return the totals after one more entry, from what it says happened."""

    def few(self, totals: Sums) -> bool:
        """Whether so few values are summed that they can be added up again at every charge."""


class NoTally:
    """Nothing is summed: entries are bound to each other and keyed, and no more.

    >>> NoTally().total({("notes",): 1})
    {}
    """

    under: Key = ("",)

    def total(self, _values: Mapping[Key, Any]) -> Sums:
        """Return no totals."""
        return {}

    def after(self, totals: Sums, _link: ChainEntry) -> Sums:
        """Return no totals."""
        return totals

    def few(self, _totals: Sums) -> bool:
        """Return that there is nothing to add up."""
        return False
