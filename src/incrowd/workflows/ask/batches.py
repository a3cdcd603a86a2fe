"""Batches: several questions that are planned and paid for as one; a refusal names the question that it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from incrowd.errors import IncrowdError, InvalidParameter, Refused
from incrowd.queries.question import Question

T = TypeVar("T")


def numbered(number: int) -> AbstractContextManager[None]:
    """Say of which question a refusal is.

    >>> with numbered(2):
    ...     raise InvalidParameter("there is no such table.")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: question 2: there is no such table.
    """
    return refusing(f"question {number}")


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Say what a refusal is about."""
    try:
        yield
    except IncrowdError as problem:
        raise type(problem)(f"{what}: {problem}") from None


def understand_each(texts: Sequence[str], understand: Callable[[str], Question]) -> list[Question]:
    """Return the questions as they are understood, if all of them are about one dataset."""
    found = []
    for number, text in enumerate(texts, start=1):
        with numbered(number):
            found.append(understand(text))
            if len(found[-1].datasets) != 1 or found[-1].datasets != found[0].datasets:
                raise Refused("questions that are paid for as one are all about one dataset, the same for all.")
    if not found:
        raise InvalidParameter("a batch needs at least one question.")
    return found


def plan_together(questions: Mapping[int, Question], plan: Callable[[list[Question]], T]) -> T:
    """Plan different questions together, by their numbers; where one would be refused alone, it is named."""
    try:
        return plan(list(questions.values()))
    except IncrowdError:
        for number, question in questions.items():
            with numbered(number):
                plan([question])
        raise
