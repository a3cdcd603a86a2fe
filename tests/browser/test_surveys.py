"""A survey in a real browser: it draws as Python does, with uniform words, and sends nothing but the report."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from scipy.stats import chi2

from incrowd.methods.local.survey.definition import LocalSurvey
from incrowd.web.collect.app import SIZE, collector_app
from incrowd.web.settings import Settings
from incrowd.workflows.collect.collector import Collector
from incrowd.workflows.local.opening import open_survey
from tests.browser.devtools import DebuggedPage, debugged
from tests.ports import free_port
from tests.statistics.alarm import FALSE_ALARM
from tests.surveys import ANSWERS, MANY, WordCoins, scripts, survey, survey_file

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


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Collector:
    return Collector.beside(open_survey(survey_file(MANY, tmp_path_factory.mktemp("survey"))))


@contextmanager
def serving(collector: Collector) -> Iterator[str]:
    port = free_port()
    config = uvicorn.Config(collector_app(collector, Settings(size=SIZE)), port=port, log_config=None, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


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
    token = collector.tokens.issue()
    page.requests.clear()
    fill = " ".join(f"document.getElementById('{name}').value = '{each}';" for name, each in ANSWERS.items())
    said = page.evaluate(
        f"(async () => {{ {fill} document.querySelector('#form button').click(); "
        f"document.getElementById('token').value = '{token}';"
        "const shown = document.getElementById('sent').textContent;"
        "document.getElementById('send').click(); const said = document.getElementById('said');"
        "while (!said.textContent) await new Promise(done => setTimeout(done, 20));"
        "return [shown, said.textContent, document.getElementById('coins').children.length]; })()"
    )
    shown, told, coins = said
    assert told == "Thank you: your report was counted."
    assert coins > 0
    assert collector.waiting == []
    (request,) = page.requests
    assert request["url"] == f"{address}/reports"
    assert json.loads(request["postData"]) == {"reports": [{"token": token, "report": json.loads(shown)}]}
    assert [json.dumps(each) for each in collector.reports()] == [json.dumps(json.loads(shown))]
    again = "(document.querySelector('#form button').click(), document.getElementById('sent').textContent)"
    assert page.evaluate(again) == shown


def test_a_browser_keeps_its_persons_bound(opened: tuple[DebuggedPage, str]) -> None:
    page, _ = opened
    refused = page.evaluate(
        "import('/page.js').then(({ reportOf }) => {"
        " localStorage.setItem('incrowd.spent', JSON.stringify({ other: '1' }));"
        "try { reportOf({ epsilon: '3/2', per_person: '2', questions: [] }, 'new', {}); return 'sent'; }"
        "catch (problem) { return problem.message; } })"
    )
    assert refused.startswith("You have answered as many surveys as your bound allows.")


def test_the_page_fits_a_phone(opened: tuple[DebuggedPage, str], tmp_path: Path) -> None:
    page, _ = opened
    page.call("Emulation.setDeviceMetricsOverride", width=360, height=700, deviceScaleFactor=1, mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
