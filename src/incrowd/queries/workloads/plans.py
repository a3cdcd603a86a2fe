"""Plans of sets of questions: as they were chosen, and made again from a certificate."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

from incrowd.core.steps.step import Step
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter
from incrowd.queries.catalog import Catalog
from incrowd.queries.question import Terms
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
    choice: SetChoice, questions: Sequence[CountQuestion], unit: Unit, paid: Terms, catalog: Catalog
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


def _share(paid: Terms, share: Fraction) -> Terms:
    if paid.rho is not None:
        return Terms(rho=paid.rho * share)
    return Terms(epsilon=(paid.epsilon or Fraction(0)) * share)


def set_again(step: AnswerSet, questions: Sequence[CountQuestion], unit: Unit, catalog: Catalog) -> QuestionSet:
    """Return the plan of a set of questions from what its certificate says: the same tables, on the same terms."""
    told = [(_first(steps, Understand), _first(steps, CountBlocks)) for steps in step.parts]
    over: KeyTables | Domain = key_tables(questions)
    if any(blocks is not None for _, blocks in told):
        domain = domain_of(questions, catalog)
        if domain is None:
            raise InvalidParameter("these questions are not about one declared domain.")
        over, tables = domain, [domain.table for _ in told]
    else:
        tables = [read_table("" if asked is None else asked.question, catalog) for asked, _ in told]
    parts = []
    for table, (asked, blocks) in zip(tables, told, strict=True):
        terms = Terms(**{name: Fraction(value) for name, value in ((asked and asked.terms) or {}).items()})
        parts.append(
            CountTable.of(table, unit, terms, None if blocks is None else Blocks(blocks.size, blocks.questions or ()))
        )
    return QuestionSet(step.places, tuple(questions), tuple(parts), over, unit)


def _first(steps: tuple[Step, ...], kind: type[Kept]) -> Kept | None:
    return next((step for step in steps if isinstance(step, kind)), None)
