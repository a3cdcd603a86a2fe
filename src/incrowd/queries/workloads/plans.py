"""Plans of sets of questions: as they were chosen, and made again from a certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

from incrowd.core.steps.step import Step
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter
from incrowd.queries.catalog import Catalog
from incrowd.queries.question import QueryTerms
from incrowd.queries.steps.question import Understand
from incrowd.queries.steps.workload import AnswerSet, CountBlocks
from incrowd.queries.workloads.atoms import AtomStrategy, Blocks
from incrowd.queries.workloads.domain import CountQuestion, Domain, domain_of, read_table, table_of
from incrowd.queries.workloads.marginals import MarginalStrategy
from incrowd.queries.workloads.planning import KeyTables, SetChoice, key_tables
from incrowd.queries.workloads.question_set import CountTable, QuestionSet
from incrowd.queries.workloads.shares import exact_shares

Kept = TypeVar("Kept", bound=Step)


def chosen_set(
    choice: SetChoice, questions: Sequence[CountQuestion], unit: Unit, paid: QueryTerms, catalog: Catalog
) -> QuestionSet:
    """Return the questions of a choice on terms: ε or ρ for all of them, which their tables share."""
    over = choice.over
    terms = [_share(paid, share) for share in exact_shares(list(choice.strategy.shares))]
    if isinstance(over, KeyTables) and isinstance(choice.strategy, MarginalStrategy):
        nodes = {text: key for each in over.questions for text, key in zip(each.names, each.keys, strict=True)}
        trees = [nodes[text] for text in over.keys]
        tables = [
            table_of(questions[0], [trees[at] for at in axes], catalog, filtered=True) for axes in choice.strategy.sets
        ]
        parts = [CountTable.of(table, unit, each) for table, each in zip(tables, terms, strict=True)]
    elif isinstance(over, Domain) and isinstance(choice.strategy, AtomStrategy):
        pairs = zip(choice.strategy.parts, terms, strict=True)
        parts = [CountTable.of(over.table, unit, each, blocks) for blocks, each in pairs]
    else:
        raise TypeError("a strategy is one for what it is over")
    return QuestionSet(choice.places, tuple(questions), tuple(parts), over, unit)


def _share(paid: QueryTerms, share: Fraction) -> QueryTerms:
    if paid.rho is not None:
        return QueryTerms(rho=paid.rho * share)
    return QueryTerms(epsilon=(paid.epsilon or Fraction(0)) * share)


def set_again(step: AnswerSet, questions: Sequence[CountQuestion], unit: Unit, catalog: Catalog) -> QuestionSet:
    """Return the plan of a set of questions from what its certificate says: the same tables, on the same terms.

    Refused are tables that do not tell what is asked, and those in which a row would count twice.
    """
    told = [(_first(steps, Understand), _first(steps, CountBlocks)) for steps in step.parts]
    blocks = [None if each is None else Blocks(each.size, each.questions or ()) for _, each in told]
    terms = [terms_of({} if asked is None else asked.terms) for asked, _ in told]
    if len({each.source for each in questions}) != 1:
        raise InvalidParameter("these questions are not about the same rows.")
    over: KeyTables | Domain
    if any(blocks):
        over, tables = _cells_again(questions, blocks, catalog)
    else:
        over, tables = _keys_again(questions, [asked.question if asked else "" for asked, _ in told], catalog)
    each = zip(tables, terms, blocks, strict=True)
    parts = tuple(CountTable.of(table, unit, paid, part) for table, paid, part in each)
    return QuestionSet(step.places, tuple(questions), parts, over, unit)


def _cells_again(
    questions: Sequence[CountQuestion], blocks: Sequence[Blocks | None], catalog: Catalog
) -> tuple[Domain, list[CountQuestion]]:
    """Return the domain of questions, and its table for each of the parts, if the blocks of each are disjoint."""
    domain = domain_of(questions, catalog)
    known = [each for each in blocks if each is not None]
    places = {place for each in known for place in each.questions}
    if domain is None or len(known) < len(blocks) or not places <= set(range(len(questions))):
        raise InvalidParameter("these questions are not about one declared domain.")
    for each in known:
        domain.atoms.blocks(each)  # raises where a row would count twice
    if Blocks(1) not in known and len(places) < len(questions):
        raise InvalidParameter("these blocks do not tell what is asked.")
    return domain, [domain.table for _ in blocks]


def _keys_again(
    questions: Sequence[CountQuestion], texts: Sequence[str], catalog: Catalog
) -> tuple[KeyTables, list[CountQuestion]]:
    """Return questions by their keys, and tables by the keys that these texts name, if they tell what is asked."""
    over = key_tables(questions)
    nodes = {text: key for each in questions for text, key in zip(each.names, each.keys, strict=True)}
    named = [set(read_table(text, catalog).names) for text in texts]
    told = all(any(set(each.names) <= names for names in named) for each in questions)
    if not told or len({each.where for each in questions}) != 1:
        raise InvalidParameter("these tables do not tell what is asked.")
    keys = [[nodes[text] for text in over.keys if text in names] for names in named]
    return over, [table_of(questions[0], each, catalog, filtered=True) for each in keys]


def terms_of(plain: Mapping[str, str] | None) -> QueryTerms:
    """Return the terms that a certificate tells, or refuse what are none.

    >>> terms_of({"epsilon": "1/2"}).epsilon
    Fraction(1, 2)
    """
    try:
        return QueryTerms(**{name: Fraction(value) for name, value in (plain or {}).items()})
    except (TypeError, ValueError, ZeroDivisionError):
        raise InvalidParameter("these are no terms on which a question is asked.") from None


def _first(steps: tuple[Step, ...], kind: type[Kept]) -> Kept | None:
    return next((step for step in steps if isinstance(step, kind)), None)
