"""A survey in a real browser: it draws as Python does, with uniform words, and sends nothing but the report."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from incrowd.methods.local.survey.definition import LocalSurvey
from incrowd.workflows.collect.collector import Collector
from incrowd.workflows.collect.participant import next_values
from incrowd.workflows.local.opening import open_survey
from tests.browser.collecting import Visit, serving
from tests.browser.devtools import DebuggedPage, debugged
from tests.statistics.alarm import FALSE_ALARM
from tests.surveys import (
    ANSWERS,
    LAY,
    MANY,
    MEMOIZED,
    RAPPOR,
    ROUNDS,
    TOGETHER,
    TOGETHER_ANSWERS,
    TRAVEL,
    WordCoins,
    scripts,
    survey,
    survey_file,
)

LABELS = [f"v{number}" for number in range(37)]
FAMILIES = ("response", "symmetric-unary", "optimal-unary", "local-hashing", "hadamard", "subset")


def cases() -> Iterator[tuple[LocalSurvey, dict[str, str]]]:
    """Yield surveys of every family and every kind of question, each with answers."""
    for mechanism in FAMILIES:
        for epsilon in ("1/2", "5"):
            yield survey({"a": {"categories": LABELS, "mechanism": mechanism}}, epsilon), {"a": "v17"}
    for mechanism in ("duchi", "window", "mixture"):
        asked = {"low": "-3/7", "high": "12", "cells": "50", "mechanism": mechanism}
        yield survey({"a": asked}, "2"), {"a": "3.14159"}
    yield survey({"a": {"first": "-5", "last": "94"}}, "2"), {"a": "33"}
    yield survey({"a": {"alphabet": "abcdefgh", "length": "6", "step": "2"}}, "3"), {"a": "bad"}
    yield survey_file(MANY).survey, ANSWERS
    for question in (
        {"low": "0", "high": "1", "cells": "6"},
        {"first": "3", "last": "19"},
        {"alphabet": "ab", "length": "3"},
    ):
        yield survey({"a": question | {"skip": "random"}}, "2"), {"a": ""}
    yield survey({"a": {"categories": LABELS, "skip": "v3"}}), {"a": ""}
    yield survey_file(LAY).survey, {"smoke": "", "sleep": "7.5"}
    yield survey_file(TOGETHER).survey, TOGETHER_ANSWERS
    yield survey_file(TOGETHER).survey, TOGETHER_ANSWERS | {"ill": "", "pain": "", "since": ""}
    yield (
        survey({"a": {"options": LABELS[:9]}, "b": {"from": "0999-11", "to": "1003-02"}}),
        {"a": " v8 ; v0", "b": "1000-01-31"},
    )


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Collector:
    return Collector.beside(open_survey(survey_file(MANY, tmp_path_factory.mktemp("survey"))))


@pytest.fixture(scope="module")
def opened(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DebuggedPage, str]]:
    with serving(collector) as address, debugged(tmp_path_factory.mktemp("browser")) as page:
        page.open(address, "document.documentElement?.dataset.ready === 'yes'")
        yield page, address


def test_the_same_words_give_the_same_reports_in_python_and_in_the_browser(opened: tuple[DebuggedPage, str]) -> None:
    page, _ = opened
    given, expected = [], []
    for asked, answers in cases():
        for words in scripts(4):
            coins = WordCoins(words)
            (report,) = asked.randomize({name: [each] for name, each in answers.items()}, coins)  # type: ignore[arg-type]
            expected.append([report, coins.at])
            given.append([asked.public, asked.id, answers, [str(word) for word in words]])
    run = (
        "([survey, id, answers, words]) => { let at = 0;"
        " const { report } = randomize(survey, id, answers, () => BigInt(words[at++])); return [report, at]; }"
    )
    loaded = f"import('/randomizer.js').then(({{ randomize }}) => {json.dumps(given)}.map({run}))"
    found: list[Any] = page.evaluate(loaded)
    assert found == expected


def test_permanent_answers_and_rounds_are_drawn_alike_in_python_and_in_the_browser(
    opened: tuple[DebuggedPage, str],
) -> None:
    page, _ = opened
    given, expected = [], []
    for told in (MEMOIZED, RAPPOR):
        asked = survey_file(told).survey
        for words in scripts(3):
            coins = WordCoins(words)
            memos, values = asked.memos(coins), dict.fromkeys(asked.names, 1)  # type: ignore[arg-type]
            used, next_used = next_values(asked, {name: [3, 0] for name in asked.names[:1]}, values)
            report = asked.report_round(memos, values, 7, coins)  # type: ignore[arg-type]
            expected.append([memos, report, next_used, used, coins.at])
            given.append([asked.public, asked.id, values, [str(word) for word in words]])
    run = (
        "([survey, id, values, words]) => { let at = 0; const next = () => BigInt(words[at++]);"
        " const memos = draw.memosOf(survey, next);"
        " const { report } = draw.randomizeRound(survey, id, memos, values, 7, next);"
        " const before = survey.questions.map(({ name }, place) => [name, place === 0 ? [3, 0] : []]);"
        " const after = before.map(([name, used]) => [name, draw.nextValue(survey, used, values[name])]);"
        " const part = key => Object.fromEntries(after.map(([name, one]) => [name, one[key]]));"
        " if (!draw.areMemos(survey, { memos, used: part('used') })) throw new Error('refused');"
        " return [memos, report, part('value'), part('used'), at]; }"
    )
    found = page.evaluate(f"import('/randomizer.js').then(draw => {json.dumps(given)}.map({run}))")
    assert found == expected
    asked = survey_file(ROUNDS).survey
    (words, *_) = scripts(1)
    (report,) = asked.randomize({"travel": ["bus"]}, WordCoins(words), 9)  # type: ignore[arg-type]
    once = [asked.public, asked.id, {"travel": "bus"}, [str(word) for word in words]]
    call = (
        "([survey, id, answers, words]) => { let at = 0;"
        " return randomize(survey, id, answers, () => BigInt(words[at++]), 9); }"
    )
    assert (
        page.evaluate(f"import('/randomizer.js').then(({{ randomize }}) => ({call})({json.dumps(once)}).report)")
        == report
    )


def test_a_browser_keeps_permanent_answers_and_another_one_goes_on_with_their_code(tmp_path: Path) -> None:
    at = Collector.beside(open_survey(survey_file(MEMOIZED, tmp_path)))
    with serving(at) as address, debugged(tmp_path / "browser") as page:
        visit = Visit(page)
        code = ""
        for turn, answer in ((1, "car"), (2, "car"), (3, "bus")):
            visit.arrive(address, at.tokens.issue(turn))
            assert visit.text("round") == f"Your round is {turn} of 12."
            assert "is not hidden" in visit.text("rounds")
            visit.randomize({"travel": answer})
            visit.send()
            earlier, code = code, page.evaluate("document.getElementById('permanent-code').value")
            assert not earlier or json.loads(earlier)["memos"] == json.loads(code)["memos"]
        assert json.loads(code)["used"] == {"travel": [3, 2]}
        page.evaluate("localStorage.clear()")
        visit.arrive(address, at.tokens.issue(4))
        page.evaluate(f"document.getElementById('permanent-code').value = {json.dumps(code)}")
        page.evaluate("document.getElementById('restore').click()")
        assert visit.text("message") == "Your permanent answers are stored in this browser."
        visit.randomize({"travel": "walk"})
        visit.send()
        assert (
            json.loads(page.evaluate("document.getElementById('permanent-code').value"))["memos"]
            == json.loads(code)["memos"]
        )
        page.evaluate(
            "Object.keys(localStorage).filter(name => name.includes('permanent'))"
            ".forEach(name => localStorage.removeItem(name))"
        )
        visit.arrive(address, at.tokens.issue(5))
        visit.randomize({"travel": "walk"})
        assert "New ones would reveal more" in visit.text("message")
    assert [report["round"] for report in at.reports()] == [1, 2, 3, 4]


def test_the_words_of_the_browser_are_uniform(opened: tuple[DebuggedPage, str]) -> None:
    """A chi-square test over all bytes of 20,000 words, at the suite's rate of false alarms."""
    page, _ = opened
    words = page.evaluate(
        "import('/randomizer.js').then(({ systemWords }) => { const next = systemWords(); "
        "return Array.from({ length: 20000 }, () => next().toString()); })"
    )
    drawn = np.array([int(word) for word in words], np.uint64).view(np.uint8)
    counts = np.bincount(drawn, minlength=256)
    statistic = float(((counts - drawn.size / 256) ** 2 / (drawn.size / 256)).sum())
    assert chi2.sf(statistic, 255) > FALSE_ALARM / 2
    assert chi2.cdf(statistic, 255) > FALSE_ALARM / 2


def test_nothing_but_the_randomized_report_leaves_the_browser(
    opened: tuple[DebuggedPage, str], collector: Collector
) -> None:
    page, address = opened
    visit, token = Visit(page), collector.tokens.issue()
    visit.arrive(address, token)
    page.requests.clear()
    rendered = visit.randomize(ANSWERS)
    assert page.evaluate("document.getElementById('coins').children.length") > 0
    assert visit.randomize(dict.fromkeys(ANSWERS, "")) == rendered  # the report was made
    assert visit.send() == "Thank you: your report was counted."
    assert collector.waiting == []
    (request,) = page.requests
    assert request["url"] == f"{address}/reports"
    assert json.loads(request["postData"]) == {"reports": [{"token": token, "report": json.loads(rendered)}]}
    assert [json.dumps(each) for each in collector.reports()] == [json.dumps(json.loads(rendered))]


def test_the_browser_stores_that_a_token_was_used_and_nothing_else(
    opened: tuple[DebuggedPage, str], collector: Collector
) -> None:
    page, address = opened
    visit, token = Visit(page), collector.tokens.issue()
    page.evaluate("localStorage.clear()")
    visit.arrive(address, token)
    visit.randomize(ANSWERS)
    assert visit.stored == {}
    visit.send()
    place = sha256(f"incrowd used token 1\n{collector.survey.id}\n{token}".encode()).hexdigest()
    assert visit.stored == {f"incrowd.used.{place}": "2"}
    assert page.evaluate("sessionStorage.length + document.cookie.length") == 0
    typed = "input:not([type=radio]):not([type=checkbox]), #questions select, #questions :checked[type=radio]"
    left = f"[...document.querySelectorAll('{typed}')].map(each => each.value).join('')"
    assert page.evaluate(f"{left} + document.getElementById('coins').textContent") + visit.text("sent") == ""


def test_a_collector_that_sends_no_reply_gets_the_same_report_and_after_a_reload_none(
    opened: tuple[DebuggedPage, str], collector: Collector
) -> None:
    page, address = opened
    visit, token = Visit(page), collector.tokens.issue()
    visit.arrive(address, token)
    visit.randomize(ANSWERS)
    page.evaluate(
        "window.bodies = []; window.fetch = (_, { body }) => { bodies.push(body); return Promise.reject(1); }"
    )
    assert visit.send().startswith("The server was not reached.")
    visit.send()
    first, second = page.evaluate("window.bodies")
    assert first == second
    visit.arrive(address, token)
    page.requests.clear()
    assert visit.randomize(ANSWERS) == ""
    assert visit.text("message").startswith("This token was used in this browser before.")
    assert page.requests == []


def test_a_second_person_at_the_same_browser_starts_afresh(tmp_path: Path) -> None:
    """At epsilon 20 a report is the answer, but for a chance below 1e-8."""
    at = Collector.beside(open_survey(survey_file(TRAVEL | {"epsilon": "20"}, tmp_path)))
    with serving(at) as address, debugged(tmp_path) as page:
        visit, tokens = Visit(page), [at.tokens.issue() for _ in range(3)]
        visit.arrive(address, tokens[0])
        visit.randomize({"travel": "car"})
        visit.send()
        visit.arrive(address, tokens[1])
        visit.randomize({"travel": "walk"})
        page.evaluate(f"location.hash = '{tokens[2]}'")  # nothing was sent, and another link is opened
        while page.evaluate("document.getElementById('token').value") != tokens[2]:
            time.sleep(0.02)
        assert (visit.text("sent"), page.evaluate("document.querySelectorAll(':checked[type=radio]').length")) == (
            "",
            0,
        )
        visit.randomize({"travel": "bike"})
        visit.send()
        assert [each["report"] for each in at.reports()] == [3, 1]
        assert [
            json.loads(each["postData"])["reports"][0]["token"] for each in page.requests if "postData" in each
        ] == [
            tokens[0],
            tokens[2],
        ]


def test_the_token_of_a_link_leaves_the_address_and_the_history(
    opened: tuple[DebuggedPage, str], collector: Collector
) -> None:
    page, address = opened
    visit, token = Visit(page), collector.tokens.issue()
    visit.arrive(address, token)
    assert page.evaluate("location.href") == f"{address}/"
    assert page.evaluate("document.getElementById('token').value") == token
    entries = page.call("Page.getNavigationHistory")["entries"]
    assert not any("#" in each["url"] for each in entries)


def test_what_earlier_versions_stored_is_removed_when_the_page_loads(opened: tuple[DebuggedPage, str]) -> None:
    page, address = opened
    old = {"incrowd.report.ab": '{"coins":[{"below":"4","drawn":"1"}],"text":"{}"}', "incrowd.spent": '{"ab":"3/2"}'}
    page.evaluate(f"localStorage.clear(); Object.assign(localStorage, {json.dumps(old | {'theirs': 'x'})})")
    Visit(page).arrive(address)
    place = sha256(b"incrowd used token 1\nab\n").hexdigest()
    assert Visit(page).stored == {f"incrowd.used.{place}": "3/2", "theirs": "x"}
    page.evaluate("localStorage.clear()")


def test_nothing_is_sent_where_a_used_token_cannot_be_stored(
    opened: tuple[DebuggedPage, str], collector: Collector
) -> None:
    page, address = opened
    visit = Visit(page)
    visit.arrive(address, collector.tokens.issue())
    visit.randomize(ANSWERS)
    page.evaluate("Storage.prototype.setItem = () => { throw new Error('full'); }")
    page.requests.clear()
    assert visit.send().startswith("This browser cannot store that the token was used, so nothing was sent.")
    assert page.requests == []


def test_a_token_that_cannot_be_one_is_refused_before_anything_is_randomized(opened: tuple[DebuggedPage, str]) -> None:
    page, address = opened
    visit = Visit(page)
    visit.arrive(address, "0123")
    assert visit.randomize(ANSWERS) == ""
    assert visit.text("message").startswith("A token has 64 digits")


def test_no_answer_is_sent_in_place_of_a_token(tmp_path: Path) -> None:
    """Questions may be called as the parts of the page are."""
    names = ("token", "send", "form", "sent", "coins")
    asked = {name: {"first": "0", "last": "99"} for name in names}
    at = Collector.beside(open_survey(survey_file(TRAVEL | {"questions": asked}, tmp_path)))
    with serving(at) as address, debugged(tmp_path) as page:
        visit, token = Visit(page), at.tokens.issue()
        visit.arrive(address, token)
        visit.randomize(dict.fromkeys(names, "77"))
        assert visit.send() == "Thank you: your report was counted."
        (body,) = (json.loads(each["postData"]) for each in page.requests if "postData" in each)
        assert body["reports"][0]["token"] == token


def test_a_browser_keeps_its_persons_bound(opened: tuple[DebuggedPage, str]) -> None:
    page, _ = opened
    allowed = page.evaluate(
        "import('/page.js').then(({ allowed }) => { localStorage.clear();"
        " const at = limit => allowed({ epsilon: '1/3', per_person: limit }, localStorage); const found = [at('1/3')];"
        " localStorage.setItem('incrowd.used.a', '1/3'); localStorage.setItem('incrowd.used.b', '1/3');"
        " found.push(at('999999999999999999/1000000000000000000'), at('1'), at(null));"
        " localStorage.setItem('incrowd.used.c', 'what?'); found.push(at('9'));"
        " localStorage.clear(); return found; })"
    )
    assert allowed == [True, False, True, True, False]


def test_the_page_fits_a_phone(opened: tuple[DebuggedPage, str], tmp_path: Path) -> None:
    page, _ = opened
    page.call("Emulation.setDeviceMetricsOverride", width=360, height=700, deviceScaleFactor=1, mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
