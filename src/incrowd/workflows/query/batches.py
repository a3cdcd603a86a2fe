"""Batches: several questions that are planned and paid for as one; a refusal names the question that it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from incrowd.core.unit import Unit
from incrowd.errors import IncrowdError, InvalidParameter, Refused
from incrowd.queries.batch import Batch, batch
from incrowd.queries.question import Catalog, Query, QueryTerms


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


def understand_each(texts: Sequence[str], understand: Callable[[str], Query]) -> list[Query]:
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


def plan_together(questions: Mapping[int, Query], unit: Unit, terms: QueryTerms, catalog: Catalog) -> Batch:
    """Plan different questions together, by their numbers; where one would be refused alone, it is named.

    What would be said of each of them is said of all.
    """
    try:
        return batch(list(questions.values()), unit, terms, catalog)
    except IncrowdError as problem:
        alone = {number: _refused(question, unit, terms) for number, question in questions.items()}
        if any(each is None or str(each) != str(problem) for each in alone.values()):
            for number, each in alone.items():
                with numbered(number):
                    if each is not None:
                        raise each from None
        raise


def _refused(question: Query, unit: Unit, terms: QueryTerms) -> IncrowdError | None:
    """Return why a question is refused alone, or None."""
    try:
        batch([question], unit, terms)
    except IncrowdError as problem:
        return problem
    return None
