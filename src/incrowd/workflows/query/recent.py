"""Recent: what was computed last, to be had again without computing it; it must depend on its key alone."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class LruCache(Generic[T]):
    """So many values by their keys, the longest unused forgotten first; safe for many threads.

    >>> recent = LruCache[int](2)
    >>> [recent.of(key, lambda: len(key)) for key in ("a", "bb", "a")], list(recent.kept)
    ([1, 2, 1], ['bb', 'a'])
    """

    most: int
    kept: OrderedDict[Hashable, T] = field(default_factory=OrderedDict)
    lock: Lock = field(default_factory=Lock)

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, or make it and remember it; a failure is not remembered."""
        found = self.find(key)
        return self.keep(key, make()) if found is None else found

    def find(self, key: Hashable) -> T | None:
        """Return the value of a key if it is remembered."""
        with self.lock:
            if key in self.kept:
                self.kept.move_to_end(key)
            return self.kept.get(key)

    def keep(self, key: Hashable, value: T) -> T:
        """Remember a value and return it."""
        with self.lock:
            self.kept[key] = value
            while len(self.kept) > self.most:
                self.kept.popitem(last=False)
        return value
