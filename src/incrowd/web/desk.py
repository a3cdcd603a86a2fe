"""Desk: what the server needs from whoever answers questions; the server itself knows no rows and no budgets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from incrowd.workflows.ask.asking import Asking


class JsonDocument(Protocol):
    """A price, an answer or a certificate."""

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""


class QuestionDesk(Protocol):
    """Where questions are answered; safe for many threads."""

    def price(self, asking: Asking) -> JsonDocument:
        """Say what a question would cost and how exact its answer would be; reads no row and writes nothing."""

    def ask(self, asking: Asking, ready: Callable[[], None]) -> JsonDocument:
        """Charge a question and answer it, or refuse; call `ready` before anybody can see that the answer is there."""

    def schema(self) -> Mapping[str, Any]:
        """Return the public description of the tables."""

    def budget(self, analyst: str | None) -> Mapping[str, Any]:
        """Return what is left of each dataset, and what an analyst has spent of it."""

    def releases(self) -> Sequence[Mapping[str, Any]]:
        """Return what was released so far, each with its id and dataset."""

    def certificate(self, id_: str) -> JsonDocument | None:
        """Return the certificate of a release."""

    def within(self, datasets: Collection[str]) -> QuestionDesk:
        """Return a desk that knows these datasets and the public tables alone."""
