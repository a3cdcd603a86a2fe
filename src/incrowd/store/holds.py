"""Holds: names of which each is held by one at a time among all who share a database, and let go when he is gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol


class Holds(Protocol):
    """Names that can be held; safe for many threads."""

    def alone(self, name: str) -> AbstractContextManager[bool]:
        """Hold a name until the end of the block, and tell whether that was possible: it is not waited for."""

    def close(self) -> None:
        """Let go of everything."""


@dataclass(frozen=True)
class OneMachine:
    """A file is used on one machine, where whoever works on the same knows it by locks on files."""

    @contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """Let everyone go on."""
        del name
        yield True

    def close(self) -> None:
        """Do nothing: nothing is held."""
