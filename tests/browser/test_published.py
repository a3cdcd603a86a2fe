"""The page checks a survey as the Python client does: the same digests, the same sums, the same refusals."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import pytest

from incrowd.core.codec import digest
from incrowd.errors import InvalidParameter
from incrowd.methods.local.mechanisms.hashed import SIZES, Galois
from incrowd.methods.local.mechanisms.ratio import Weights, exponential_below
from incrowd.methods.local.survey.definition import LocalSurvey
from incrowd.methods.local.survey.published import survey_from
from incrowd.workflows.collect.collector import Collector
from incrowd.workflows.local.opening import open_survey
from tests.browser.collecting import Visit, serving
from tests.browser.devtools import DebuggedPage, debugged
from tests.browser.test_surveys import cases
from tests.surveys import MEMOIZED, RAPPOR, ROUNDS, SHUFFLED, TRAVEL, survey, survey_file

LABELS = {"categories": ["a", "b", "c", "d"]}
STRANGE = 'Straße "Ünïcode" \\ 通勤\u0001\u2028\t😀'


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DebuggedPage]:
    with debugged(tmp_path_factory.mktemp("browser")) as page:
        yield page


@pytest.fixture(scope="module")
def honest_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    at = Collector.beside(open_survey(survey_file(TRAVEL, tmp_path_factory.mktemp("survey"))))
    with serving(at) as address:
        yield address


@pytest.fixture
def page(browser: DebuggedPage, honest_address: str) -> DebuggedPage:
    """A page that is not asked anything, with the scripts of surveys."""
    Visit(browser).arrive(honest_address)
    return browser


def in_browser(page: DebuggedPage, call: str, given: list[Any]) -> list[Any]:
    """Return what a function of the page's check makes of each value, or the message of its refusal."""
    each = f"value => {{ try {{ return [true, {call}]; }} catch (problem) {{ return [false, problem.message]; }} }}"
    return list(page.evaluate(f"import('/published.js').then(check => {json.dumps(given)}.map({each}))"))


def honest() -> list[LocalSurvey]:
    """Return surveys of every family, kind of question and way to collect."""
    made = [survey_file(TRAVEL | {"title": STRANGE, "per_person": "7/2"}).survey, survey_file(SHUFFLED).survey]
    made += [
        survey_file({**TRAVEL, "epsilon": None, "odds": "3"}).survey,
        survey({"a": LABELS}, "28"),
    ]
    made += [survey_file(told | {"people": "panel"}).survey for told in (ROUNDS, MEMOIZED, RAPPOR)]
    return made + [asked for asked, _ in cases()]


def accepted(public: Any) -> bool:
    """Whether the Python client would randomize for such a survey."""
    try:
        survey_from(public)
    except InvalidParameter:
        return False
    return True


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from leaves(part, (*path, key))


def poison(public: dict[str, Any], chance: Random) -> dict[str, Any]:
    """Return a survey with something changed, removed or added."""
    changed = copy.deepcopy(public)
    path = chance.choice([each for each in leaves(public) if each and "labels" not in each[:-1]])
    place: Any = changed
    for key in path[:-1]:
        place = place[key]
    value = place[path[-1]]
    match chance.randrange(8):
        case 0:
            del place[path[-1]]
        case 1 if isinstance(value, dict):
            value["more"] = "1"
        case 2:
            place[path[-1]] = chance.choice([None, 1, True, [], {}, "x", "", "0", "-1", "1.5", "1e3"])
        case 3 if isinstance(value, str):
            place[path[-1]] = chance.choice([f"0{value}", f"{value}/1", f" {value}", f"-{value}", "response", "duchi"])
        case _ if isinstance(value, str) and value.isdecimal():
            place[path[-1]] = str(max(0, int(value) + chance.choice([1, -1, 2, 10**6, 10**13, -5])))
    return changed if changed != public else poison(public, chance)


def test_a_digest_is_the_same_in_both_languages(page: DebuggedPage) -> None:
    texts = ["a" * length for length in (0, 1, 55, 56, 63, 64, 65, 119, 120, 1000)] + [STRANGE]
    assert in_browser(page, "check.sha256(value)", texts) == [
        [True, sha256(each.encode()).hexdigest()] for each in texts
    ]
    values = [asked.public for asked in honest()] + [{"é": 1, "z": None, "𝒳": [], "\uff5e": {"b": "", "a": STRANGE}}]
    expected = [[True, digest("incrowd survey 1", each)] for each in values]
    assert in_browser(page, "check.surveyId(value)", values) == expected


def test_the_sum_below_the_exponential_is_the_same_in_both_languages(page: DebuggedPage) -> None:
    chance = Random(5)
    numbers = [Fraction(28), Fraction(1, 10**4), Fraction(1), Fraction(28 * 10**40 - 1, 10**40)]
    numbers += [Fraction(chance.randrange(1, 28_000), chance.choice([1000, 1009, 3 * 10**18])) for _ in range(40)]
    sums = in_browser(
        page,
        "check.exponentialBelow(check.fraction(value)).map(number => number.toString(16))",
        [str(each) for each in numbers],
    )
    assert [Fraction(int(top, 16), int(bottom, 16)) for _, (top, bottom) in sums] == [
        exponential_below(each) for each in numbers
    ]


def test_both_clients_accept_and_refuse_the_same_surveys(page: DebuggedPage) -> None:
    chance, given = Random(8), [json.loads(json.dumps(asked.public)) for asked in honest()]
    poisoned = [poison(each, chance) for each in given for _ in range(30)]
    rows = [[each, digest("incrowd survey 1", each)] for each in given + poisoned]
    found = [fits for fits, _ in in_browser(page, "check.checkedId(...value)", rows)]
    expected = [accepted(each) for each in given + poisoned]
    assert found == expected
    assert all(expected[: len(given)])
    assert 50 < sum(expected[len(given) :]) < len(poisoned) / 2  # another title is another survey, and fine


def test_weights_are_compared_with_epsilon_to_the_last_fraction(page: DebuggedPage) -> None:
    """The largest fraction below e^epsilon passes, and the next one above it is refused: with 16 bits, and with 50."""
    rows, chance = [], Random(3)
    for bits in (16, 50):
        for epsilon in [Fraction(chance.randrange(1, 8000), 1000) for _ in range(20)]:
            own = Weights.below(epsilon, bits)
            above = (own.own + 1, own.other)
            for top, bottom in ((own.own, own.other), above):
                public = json.loads(json.dumps(survey({"a": {"categories": ["x", "y"]}}, str(epsilon)).public))
                public["questions"][0]["randomizers"][0] |= {"own": str(top), "other": str(bottom)}
                rows.append([public, digest("incrowd survey 1", public)])
    found = in_browser(page, "check.checkedId(...value)", rows)
    assert [fits for fits, _ in found] == [True, False] * 40 == [accepted(public) for public, _ in rows]
    assert {message for fits, message in found if not fits} == {
        "This survey would reveal more about your answer than it states. Nothing was randomized or sent."
    }


def test_every_finite_field_is_known_and_no_other(page: DebuggedPage) -> None:
    base = survey({"a": {"categories": ["x", "y"]}}, "3").public
    rows = []
    for width in range(2, 258):
        field = Galois(width) if width in SIZES else None
        of = ("2", "1", "2") if field is None else (str(field.prime), str(field.degree), str(field.modulus))
        plain = {"family": "local-hashing", "size": "2", "own": "2", "other": "1", "width": str(width)}
        plain |= dict(zip(("prime", "degree", "modulus"), of, strict=True))
        public = base | {"questions": [{**base["questions"][0], "randomizers": [plain]}]}
        rows.append([public, digest("incrowd survey 1", public)])
    found = [fits for fits, _ in in_browser(page, "check.checkedId(...value)", rows)]
    assert found == [width in SIZES for width in range(2, 258)] == [accepted(public) for public, _ in rows]


def replaced(questions: dict[str, Any], epsilon: str = "1", **changes: Any) -> dict[str, Any]:
    """Return a published survey of one question with other weights or fields."""
    public: dict[str, Any] = json.loads(json.dumps(survey({"a": questions}, epsilon).public))
    question = public["questions"][0]
    for name, value in changes.items():
        at = question["randomizers"][-1] if name in question["randomizers"][-1] else question
        at[name] = value
    return public


def memoized_with(place: int | None, told: dict[str, Any] = MEMOIZED, **changes: Any) -> dict[str, Any]:
    """Return a published memoized survey with other weights, rounds or randomizers."""
    public: dict[str, Any] = json.loads(json.dumps(survey_file(told).survey.public))
    question = public["questions"][0]
    if "randomizers" in changes:
        question["randomizers"] = question["randomizers"][: changes["randomizers"]]
    elif place is None:
        public["rounds"] |= changes
    else:
        question["randomizers"][place] |= changes
    return public


MILLION: dict[str, Any] = {"own": "1000000000000", "other": "1"}
POISONED = {
    "response": replaced(LABELS | {"mechanism": "response"}, **MILLION),
    "symmetric-unary": replaced(LABELS | {"mechanism": "symmetric-unary"}, own="27", other="10"),  # its square counts
    "optimal-unary": replaced(LABELS | {"mechanism": "optimal-unary"}, **MILLION),
    "local-hashing": replaced(LABELS | {"mechanism": "local-hashing"}, **MILLION),
    "hadamard": replaced(LABELS | {"mechanism": "hadamard"}, **MILLION),
    "subset": replaced(LABELS | {"mechanism": "subset"}, **MILLION),
    "duchi": replaced({"low": "0", "high": "1", "cells": "2", "mechanism": "duchi"}, **MILLION),
    "window": replaced({"low": "0", "high": "1", "cells": "2", "mechanism": "window"}, **MILLION),
    "mixture": replaced({"low": "0", "high": "1", "cells": "2", "mechanism": "mixture"}, **MILLION),
    "the last level of a tree": replaced({"first": "0", "last": "99"}, **MILLION),
    "more labels than values": replaced(LABELS | {"mechanism": "response"}, labels=["a", "b", "c", "d", "e"]),
    "numbers by the randomizer of categories": replaced({"low": "0", "high": "1", "cells": "8"}, randomizers=[
        {"family": "response", "size": "4", "own": "2", "other": "1"}]),
    "a hash outside of its field": replaced(LABELS | {"mechanism": "local-hashing"}, prime="1009"),
    "levels on a choice": replaced(LABELS, steps=["1"]),
    "permanent answers that are the truth": memoized_with(0, **MILLION),
    "permanent bits that are the truth": memoized_with(0, RAPPOR, own="27", other="10"),
    "more different answers than were charged": memoized_with(None, distinct="3"),
    "permanent answers without a second step": memoized_with(None, randomizers=1),
    "an epsilon without end": replaced(LABELS) | {"epsilon": "100000"},
}  # fmt: skip


@pytest.mark.parametrize("name", POISONED)
def test_the_python_client_refuses_a_survey_that_would_send_the_truth(name: str) -> None:
    with pytest.raises(InvalidParameter):
        survey_from(POISONED[name])


def test_the_page_refuses_every_survey_that_would_send_the_truth(page: DebuggedPage) -> None:
    rows = [[public, digest("incrowd survey 1", public)] for public in POISONED.values()]
    found = in_browser(page, "check.checkedId(...value)", rows)
    assert [name for name, (fits, _) in zip(POISONED, found, strict=True) if fits] == []
    assert all(message.endswith("Nothing was randomized or sent.") for _, message in found)


@pytest.mark.parametrize(
    ("public", "named", "message"),
    [
        (POISONED["response"], None, "This survey would reveal more about your answer than it states."),
        (POISONED["more labels than values"], None, "This is not a survey as a collector publishes it."),
        (replaced(LABELS), "0" * 64, "This survey is not the one that its collector names."),
        (None, None, "This is not a survey as a collector publishes it."),
    ],
)
def test_a_lying_collector_gets_nothing_from_the_page(
    public: Any, named: str | None, message: str, tmp_path: Path, browser: DebuggedPage
) -> None:
    at = Collector.beside(open_survey(survey_file(TRAVEL, tmp_path)))
    documents = {"/survey.json": public, "/id.json": {"id": named or digest("incrowd survey 1", public)}}
    with serving(at, documents) as address:
        visit = Visit(browser)
        visit.arrive(address, at.tokens.issue(), ready="no")
        assert visit.text("message") == f"{message} Nothing was randomized or sent."
        assert browser.evaluate("document.getElementById('form').hidden") is True
        browser.evaluate("document.querySelector('#form button').click(); document.getElementById('send').click()")
        assert not any("postData" in request for request in browser.requests)
        assert visit.stored == {}
