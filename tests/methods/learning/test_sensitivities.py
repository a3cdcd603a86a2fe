"""What one row adds to the sums of a model is recomputed from the columns that a certificate names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import pytest

from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, Step
from incrowd.methods.learning.shared.sensitivities import other_sensitivity
from incrowd.methods.learning.shared.steps import LearnFrom
from incrowd.methods.learning.shared.trials import TryModels
from incrowd.methods.learning.tuning import CHECK
from incrowd.workflows.policy.policy import load_policy
from tests.contract.examples import EXAMPLES, POLICIES

MODELS = [item for item in EXAMPLES if item[0] in ("classifier", "regressor", "kmeans", "pca", "tuning")]
MOVES = {"residual", "outputs", "reach", "weight", "square", "numbers", "centers"}
"""Fields of sums that follow from the columns of a model."""


def statements(method: str, way: str) -> Iterator[Statement]:
    """Yield what the certificate of an example says, or of each candidate that is tried."""
    policy = load_policy(POLICIES[method][way])
    plan, types = policy.plan, {column.name: str(column.type) for column in policy.schema.columns}
    tried = next((step for step in plan.steps if isinstance(step, TryModels)), None)
    for steps in (plan.steps,) if tried is None else tried.candidates:
        yield Statement(ClaimBasis(plan.guarantee, steps, {}), (), (), types=types)


def changed(statement: Statement) -> Iterator[tuple[str, Statement]]:
    """Yield statements in which a field of a sum is one less, or half."""
    for place, step in enumerate(statement.steps):
        for field in () if isinstance(step, LearnFrom) else fields(step):  # type: ignore[arg-type]
            value = getattr(step, field.name)
            for other in {value - 1, value // 2} - {0} if field.name in MOVES else ():
                forged: Step = replace(step, **{field.name: other})  # type: ignore[type-var]
                steps = (*statement.steps[:place], forged, *statement.steps[place + 1 :])
                yield f"{step.kind}: {field.name}", replace(statement, basis=replace(statement.basis, steps=steps))


@pytest.mark.parametrize(("method", "way"), MODELS, ids=["-".join(item) for item in MODELS])
def test_a_sensitivity_that_the_columns_do_not_give_is_shown(method: str, way: str) -> None:
    for statement in statements(method, way):
        assert other_sensitivity(statement) is None
        assert [name for name, forged in changed(statement) if other_sensitivity(forged) is None] == []


@pytest.mark.parametrize("way", [way for method, way in MODELS if method == "tuning"])
def test_what_a_row_adds_to_a_score_follows_from_what_is_predicted(way: str) -> None:
    """A thousandth of it would make the score a thousand times as exact at the same stated cost."""
    plan = load_policy(POLICIES["tuning"][way]).plan
    evidence = {"rows estimated": 1, "coefficients": 1}
    statement = Statement(plan.basis, plan.claims, (), evidence, types={})
    place, tried = next((at, step) for at, step in enumerate(plan.steps) if isinstance(step, TryModels))
    honest = CHECK.contradiction(statement)
    for closeness in {None, 1, 512, 1024} - {tried.closeness}:
        steps = (*plan.steps[:place], replace(tried, closeness=closeness), *plan.steps[place + 1 :])
        forged = CHECK.contradiction(replace(statement, basis=replace(statement.basis, steps=steps)))
        assert honest is None
        assert forged is not None, closeness


def test_every_kind_of_sum_is_tried() -> None:
    names = {name for item in MODELS for statement in statements(*item) for name, _ in changed(statement)}
    assert names >= {
        "follow gradients: residual",
        "follow gradients of samples: residual",
        "sum by column: reach",
        "sum by column: weight",
        "sum in leaves: weight",
        "multiply columns: square",
        "move centers: square",
        "move centers: weight",
    }
