"""The law of every randomized answer, enumerated: no pair of values loses more than the guarantee, one reaches it."""

from __future__ import annotations

import pytest

from incrowd.methods.local.mechanisms.randomizer import Family
from tests.replay import golden
from tests.replay.answers import FAMILIES, GRAPHS, TABLES, family_parts, graph_parts, survey_parts, table_parts


def check(name: str, parts: golden.Parts) -> None:
    golden.check(name, parts)
    assert min(parts.values()) >= 0.9


@pytest.mark.parametrize(("method", "name"), TABLES, ids=["-".join(item) for item in TABLES])
def test_masked_values_lose_their_guarantee_and_no_more(method: str, name: str) -> None:
    check(f"{method}, {name}", table_parts(method, name))


@pytest.mark.parametrize("name", GRAPHS)
def test_answers_about_pairs_of_nodes_lose_their_guarantee_and_no_more(name: str) -> None:
    check(f"graph, {name}", graph_parts(name))


@pytest.mark.parametrize(("family", "epsilon"), FAMILIES)
def test_reports_of_every_family_lose_their_guarantee_and_no_more(family: Family, epsilon: str) -> None:
    check(f"survey, {family} at {epsilon}", family_parts(family, epsilon))


def test_no_question_of_a_survey_loses_more_than_the_survey_states() -> None:
    check("survey, all kinds of questions", survey_parts())
