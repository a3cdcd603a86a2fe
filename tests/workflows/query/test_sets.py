"""Sets of questions at the query service: priced beforehand, answered for one charge, certified, and planned again."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from incrowd.accounting.budget import Amount
from incrowd.core.certificate import Certificate
from incrowd.core.steps.step import walk
from incrowd.engines.sql.duckdb import Warehouse
from incrowd.errors import IncrowdError
from incrowd.queries.answer import AnswerTables
from incrowd.queries.check import CHECK
from incrowd.queries.query import QueryTerms
from incrowd.queries.steps.workload import AnswerSet
from incrowd.verifier.judge import statement_of
from incrowd.workflows.certificates import certificate_of
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.query.recompute import recomputed_plan
from incrowd.workflows.query.request import BatchRequest
from tests.contract.forging import caught, fitting, require_all_caught
from tests.workflows.query.test_service import service_of

RANGES = tuple(f"SELECT COUNT(*) AS n FROM people WHERE age BETWEEN {low} AND {low + 50}" for low in range(0, 70, 5))
TABLES = (
    "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex",
    "SELECT age > 40 AS old, COUNT(*) AS n FROM people GROUP BY old",
    "SELECT COUNT(*) AS n FROM people",
)
MEAN = "SELECT AVG(age) AS m FROM people"


def together(*texts: str, epsilon: str = "1", delta: str = "0") -> BatchRequest:
    return BatchRequest(texts, QueryTerms(epsilon=Fraction(epsilon), delta=Fraction(delta)))


def test_strategy_gain_and_errors_are_told_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service_of(tmp_path) as service:
        monkeypatch.setattr(Warehouse, "collect_together", lambda *_: pytest.fail("a row was read"))
        before = service.budgets.ledger.chain.head()
        priced = service.price(together(*RANGES))
        assert service.budgets.ledger.chain.head() == before
    assert priced.cost == Amount.up(1, 0)
    assert len(priced.expected) == len(RANGES)
    assert all(each.half_width is not None and each.half_width < 3.0 * len(RANGES) for each in priced.expected)
    (told,) = priced.notes
    assert told.startswith("14 counting queries are answered together, by least squares, from")
    assert "times smaller than with equal shares." in told


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_a_set_is_answered_for_one_charge_and_planned_again(tmp_path: Path, delta: str) -> None:
    with service_of(tmp_path) as service:
        answered = service.ask(together(MEAN, *RANGES, *TABLES, delta=delta))
        policy = service.planner.policies[0]
        assert service.budgets.ledger.conclusions(answered.certificate.id) == (answered.certificate.digest(),)
    assert len(answered.answers) == 1 + len(RANGES) + len(TABLES)
    assert [column.name for column in answered.answers[0].columns] == ["m"]
    assert float(answered.cost.epsilon) <= 1.0
    for answer in answered.answers[1:]:
        for row in answer.rows():
            assert row["n_low"] < row["n"] < row["n_high"]
    certificate = certificate_of(answered.certificate.to_json())
    assert certificate == answered.certificate
    assert caught(certificate.to_json()) is None
    assert CHECK.recount(statement_of(certificate), AnswerTables(answered.answers)) is None
    assert same_plan(certificate, policy)


def same_plan(certificate: Certificate, policy: Policy) -> bool:
    """Whether the policy makes the plan of a certificate again."""
    try:
        plan = recomputed_plan(certificate, policy)
    except IncrowdError:
        return False
    steps = getattr(plan, "steps", None)
    return bool(steps == certificate.steps)


def test_it_is_said_which_answers_are_those_of_a_set(tmp_path: Path) -> None:
    """The steps of a set stand before those of other questions; files are in the order in which was asked."""
    with service_of(tmp_path) as service:
        certificate = service.ask(together(TABLES[0], MEAN, TABLES[2], *RANGES[:4])).certificate
    (told,) = [each.sentence for each in walk(certificate.steps) if isinstance(each, AnswerSet)]
    assert told.startswith("6 counting queries (answers 1 and 3 to 7) are answered together from ")


def test_answers_of_a_set_agree_with_each_other(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        by_sex, by_age, (total,) = (
            [row["n"] for row in answer.rows()] for answer in service.ask(together(*TABLES)).answers
        )
    assert sum(by_sex) == pytest.approx(total)
    assert sum(by_age) == pytest.approx(total)


def set_of(plain: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = plain["steps"][0]["questions"][0][0]
    assert found["step"] == AnswerSet.kind
    return found


def step(part: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(each for each in part if each["step"] == name)


def rescaled(plain: dict[str, Any]) -> None:
    noise = step(set_of(plain)["parts"][0], "Laplace noise")
    noise.update(scale=str(Fraction(noise["scale"]) / 2), epsilon=str(Fraction(noise["epsilon"]) * 2))


def another_law(plain: dict[str, Any]) -> None:
    """Noise whose price is only stated; elsewhere it stands beside a threshold."""
    part = set_of(plain)["parts"][0]
    epsilon = step(part, "Laplace noise")["epsilon"]
    shared = {"step": "noise", "scales": ["1/9"], "epsilon": epsilon, "delta": "0"}
    part[part.index(step(part, "Laplace noise"))] = shared


def counted_as(*questions: int, blocks: int) -> Callable[[dict[str, Any]], Any]:
    """Let every table count the blocks of some questions."""

    def change(plain: dict[str, Any]) -> None:
        for part in set_of(plain)["parts"]:
            told = step(part, "count blocks")
            told.pop("size")
            told.update(questions=list(questions), blocks=blocks)

    return change


FORGED: list[Callable[[dict[str, Any]], Any]] = [
    counted_as(0, blocks=1),
    counted_as(-1, blocks=1),
    counted_as(*range(len(RANGES)), blocks=2),
    lambda plain: step(set_of(plain)["parts"][0], "count blocks").update(size=10**30, blocks=1),
    rescaled,
    another_law,
    lambda plain: step(set_of(plain)["parts"][0], "Laplace noise").update(scale="1/100"),
    lambda plain: set_of(plain)["parts"].pop(),
    lambda plain: set_of(plain)["parts"].append(copy.deepcopy(set_of(plain)["parts"][0])),
    lambda plain: step(set_of(plain)["parts"][0], "count blocks").update(size=2),
    lambda plain: step(set_of(plain)["parts"][0], "add up").update(rows=2),
    lambda plain: step(set_of(plain)["parts"][0], "bound what one unit contributes").update(rows=2),
    lambda plain: step(set_of(plain)["questions"][0], "understand").update(tables=["others"]),
    lambda plain: set_of(plain).update(places=list(range(1, len(RANGES) + 1))),
    lambda plain: set_of(plain)["places"].reverse(),
    lambda plain: set_of(plain)["questions"][0].pop(),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Policy]:
    with service_of(tmp_path_factory.mktemp("set")) as service:
        return service.ask(together(*RANGES)).certificate.to_json(), service.planner.policies[0]


@pytest.mark.parametrize("change", FORGED)
def test_no_certificate_of_a_set_guarantees_more_than_its_tables(
    made: tuple[dict[str, Any], Policy], change: Callable[[dict[str, Any]], Any]
) -> None:
    plain = json.loads(json.dumps(made[0]))
    change(plain)
    assert caught(fitting(plain)) is not None


def one_block(plain: dict[str, Any]) -> None:
    for part in set_of(plain)["parts"]:
        blocks = step(part, "count blocks")
        blocks.update(atoms=blocks["size"], blocks=1)


def other_text(plain: dict[str, Any]) -> None:
    step(set_of(plain)["questions"][3], "understand").update(question="SELECT COUNT(*) AS n FROM people WHERE age < 4")


def other_terms(**told: str) -> Callable[[dict[str, Any]], Any]:
    return lambda plain: step(set_of(plain)["parts"][0], "understand")["terms"].update(told)


DISHONEST = [
    one_block,
    other_text,
    counted_as(*range(len(RANGES)), blocks=len(RANGES)),
    other_terms(epsilon="1/0"),
    other_terms(epsilon="many"),
    other_terms(tip="1"),
]


@pytest.mark.parametrize("change", DISHONEST)
def test_a_strategy_that_is_not_one_for_these_texts_is_found_by_the_policy(
    made: tuple[dict[str, Any], Policy], change: Callable[[dict[str, Any]], None]
) -> None:
    honest, policy = made
    assert same_plan(certificate_of(honest), policy)
    other = json.loads(json.dumps(honest))
    change(other)
    assert not same_plan(certificate_of(fitting(other)), policy)


def asks(*texts: str) -> Callable[[dict[str, Any]], Any]:
    """Let the first questions of a set have other texts."""

    def change(plain: dict[str, Any]) -> None:
        for steps, text in zip(set_of(plain)["questions"], texts, strict=False):
            step(steps, "understand").update(question=text)

    return change


def counts(text: str) -> Callable[[dict[str, Any]], Any]:
    """Let the table of a set be another one, with as many groups."""

    def change(plain: dict[str, Any]) -> None:
        (part,) = set_of(plain)["parts"]
        step(part, "understand").update(question=text)

    return change


PAIRS = (TABLES[0], "SELECT age > 40 AS old, sex, COUNT(*) AS n FROM people GROUP BY old, sex", TABLES[2])
YOUNG = tuple(text.replace("FROM people", "FROM people WHERE age < 30") for text in PAIRS)


@pytest.mark.parametrize(
    "change",
    [
        asks(YOUNG[0]),
        asks(*YOUNG),
        counts("SELECT sex, age > 40, COUNT(*) FROM people WHERE age < 30 GROUP BY sex, age > 40"),
        counts("SELECT age > 40, sex, COUNT(*) FROM people GROUP BY age > 40, sex"),
        counts("SELECT sex, age > 50, COUNT(*) FROM people GROUP BY sex, age > 50"),
    ],
)
def test_tables_by_keys_that_do_not_tell_what_is_asked_are_found_by_the_policy(
    by_keys: tuple[dict[str, Any], Policy], change: Callable[[dict[str, Any]], None]
) -> None:
    honest, policy = by_keys
    assert same_plan(certificate_of(honest), policy)
    other = json.loads(json.dumps(honest))
    change(other)
    assert not same_plan(certificate_of(fitting(other)), policy)


@pytest.fixture(scope="module")
def by_keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Policy]:
    with service_of(tmp_path_factory.mktemp("keys")) as service:
        return service.ask(together(*PAIRS)).certificate.to_json(), service.planner.policies[0]


def test_what_a_set_says_cannot_be_changed_anywhere(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        require_all_caught(service.ask(together(*TABLES[:2], MEAN)).certificate.to_json())
