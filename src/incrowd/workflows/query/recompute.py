"""The plan of an answer, recomputed from its certificate and the policy: the same text on the same terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.core.steps.around import period_of
from incrowd.core.steps.step import walk
from incrowd.errors import InvalidParameter
from incrowd.queries.batch import Batch
from incrowd.queries.combined_measurement import CombinedMeasurement
from incrowd.queries.language.interpretation import interpret
from incrowd.queries.language.periods import reading_periods
from incrowd.queries.language.understanding import understand
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.query import Catalog, Query
from incrowd.queries.steps.query import Combine, QueryBatch, Understand
from incrowd.queries.steps.workload import AnswerSet
from incrowd.queries.workloads.domain import counting
from incrowd.queries.workloads.planning import set_again, terms_of
from incrowd.verifier.check import Problem
from incrowd.workflows.query.tables import relations_of

if TYPE_CHECKING:
    from incrowd.core.certificate import Certificate
    from incrowd.core.plan import Plan
    from incrowd.queries.workloads.query_set import CountWorkload
    from incrowd.workflows.policy.policy import Policy


def recomputed_plan(certificate: Certificate, policy: Policy) -> Plan | Problem:
    """Return the plan of a query or a batch; a problem where rows would be needed."""
    understood = [step for step in walk(certificate.steps) if isinstance(step, Understand)]
    sets = [step for step in walk(certificate.steps) if isinstance(step, AnswerSet)]
    free = {id(step) for answer_set in sets for steps in answer_set.questions for step in steps}
    relations = {relation.name: relation for relation in relations_of(policy)}
    tables = {name for step in understood for name in step.tables}
    if any(step.terms is None for step in understood if id(step) not in free):
        return Problem("its certificate does not say on which terms it was asked", undecided=True)
    if not tables <= set(relations) or any(relations[name].dataset is None for name in tables):
        return Problem("it reads tables of other policies, or public ones whose rows are not here", undecided=True)
    catalog = Catalog(tuple(relations.values()))
    read = period_of(certificate.steps)
    if read is not None:
        catalog, days = reading_periods(understood[0].question if len(understood) == 1 else "", catalog)
        if days is None or days.periods != read.periods:
            return Problem("its query reads other periods than its steps name")
    combined = next((step for step in certificate.steps if isinstance(step, Combine)), None)
    if combined is not None:
        return _recombined(combined, understood, catalog, certificate, policy)
    shared = {id(step) for answer_set in sets for step in answer_set.held}
    made = tuple(_measurement(step, catalog, policy) for step in understood if id(step) not in shared)
    if any(isinstance(step, QueryBatch) for step in certificate.steps):
        workloads = tuple(_workload(step, catalog, policy) for step in sets)
        return Batch(made, policy.schema.unit, certificate.guarantee.delta, None, workloads).plan
    return made[0].plan if made else Problem("its steps name no query")


def _workload(step: AnswerSet, catalog: Catalog, policy: Policy) -> CountWorkload:
    unit, queries = policy.schema.unit, []
    for steps in step.questions:
        query = _query(steps[0].question if isinstance(steps[0], Understand) else "", catalog, policy)
        counted = counting(query, unit, catalog)
        if counted is None:
            raise InvalidParameter("a set of queries counts rows, and one of these does not.")
        queries.append(counted)
    return set_again(step, queries, unit, catalog)


def _query(text: str, catalog: Catalog, policy: Policy) -> Query:
    return understand(text, catalog, _max_groups(policy))


def _recombined(
    step: Combine, understood: list[Understand], catalog: Catalog, certificate: Certificate, policy: Policy
) -> Plan | Problem:
    """Return the plan of a query that combines several: its parts follow from its own text."""
    combination = interpret(step.question, catalog, _max_groups(policy))
    if isinstance(combination, Query) or len(combination.parts) != len(understood):
        return Problem("the query that its steps name is made of other parts")
    unit = policy.schema.unit
    parts = zip(combination.parts, understood, strict=True)
    made = tuple(measurement(part, unit, terms_of(own.terms)) for part, own in parts)
    return CombinedMeasurement(combination, Batch(made, unit, certificate.guarantee.delta)).plan


def _measurement(step: Understand, catalog: Catalog, policy: Policy) -> Measurement:
    query = _query(step.question, catalog, policy)
    return measurement(query, policy.schema.unit, terms_of(step.terms))


def _max_groups(policy: Policy) -> int | None:
    return None if policy.section.queries is None else policy.section.queries.max_groups
