"""The page of a survey speaks to lay people: in their language, with their own answer, and with nothing left unsaid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from incrowd.drawing.catalog import languages, sentences
from incrowd.workflows.collect.collector import Collector
from incrowd.workflows.local.opening import open_survey
from tests.browser.collecting import Visit, serving
from tests.browser.devtools import DebuggedPage, debugged
from tests.surveys import LAY, SHUFFLED, survey, survey_file

LABELS = [f"v{number}" for number in range(9)]


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Collector:
    return Collector.beside(open_survey(survey_file(LAY, tmp_path_factory.mktemp("survey"))))


@pytest.fixture(scope="module")
def opened(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[DebuggedPage, str]]:
    with serving(collector) as address, debugged(tmp_path_factory.mktemp("browser")) as page:
        yield page, address


@pytest.fixture
def visit(opened: tuple[DebuggedPage, str], collector: Collector) -> Visit:
    page, address = opened
    arrived = Visit(page)
    arrived.arrive(address, f"token={collector.tokens.issue()}")
    return arrived


def body(visit: Visit) -> str:
    return str(visit.page.evaluate("document.body.innerText"))


def choose_language(visit: Visit, code: str) -> None:
    script = f"at.value = '{code}'; at.dispatchEvent(new Event('change'))"
    visit.page.evaluate(f"(at => {{ {script} }})(document.getElementById('language'))")


def test_the_page_says_who_asks_what_for_and_how_long_before_it_asks(visit: Visit) -> None:
    text = body(visit)
    for part in ("introduction", "organizer", "contact", "aim"):
        assert LAY[part] in text
    assert "about 2 min" in text
    assert "A number from 0 to 14 hours" in text
    assert "Your token was taken from the link." in text


def test_deniability_is_explained_with_the_persons_own_answer(visit: Visit) -> None:
    visit.fill({"smoke": "yes"})
    said = visit.text("explained-smoke")
    assert said == (
        "If your answer is “yes”, your report says so in 73 of 100 cases. If you had answered “no”, your report would "
        "say “yes” in 27 of 100 cases."
    )
    full = [
        visit.page.evaluate(f"document.querySelectorAll('svg')[{at}].querySelectorAll('.full').length") for at in (0, 1)
    ]
    assert full == [73, 27]
    visit.fill({"sleep": "8"})
    assert "at most 73.2 % sure" in visit.text("explained-sleep")


def test_the_shares_that_are_said_are_those_of_the_randomizers(visit: Visit) -> None:
    families = ("response", "symmetric-unary", "optimal-unary", "local-hashing", "hadamard", "subset")
    made = [survey({"a": {"categories": LABELS, "mechanism": family}}, "3/2").questions[0] for family in families]
    plain = json.dumps([question.public()["randomizers"][0] for question in made])
    said = visit.page.evaluate(
        f"import('/explanation.js').then(({{ supportOf }}) => {plain}.map(each => supportOf(each)"
        ".map(([top, bottom]) => Number(top) / Number(bottom))))"
    )
    expected = [[float(question.randomizer.p), float(question.randomizer.q)] for question in made]
    assert [[pytest.approx(share) for share in pair] for pair in expected] == said


def test_a_report_is_said_in_words_and_its_randomness_on_request(visit: Visit) -> None:
    report = json.loads(visit.randomize({"smoke": "yes", "sleep": "7,5"}))
    text = visit.text("meaning")
    if report["question"] == "smoke":
        assert ["yes", "no"][report["report"]] in text
    assert {"smoke": "Did you smoke", "sleep": "How long did you sleep"}[report["question"]] in text
    first = visit.page.evaluate("document.querySelector('#coins li').textContent")
    assert first.startswith("From 0 to 1, the number ")
    assert first.endswith(f"It picked question {1 + ['smoke', 'sleep'].index(report['question'])} of 2.")
    assert visit.page.evaluate("document.querySelector('#result details').open") is False
    assert visit.page.evaluate("document.activeElement.id") == "result-title"


def test_the_first_wrong_field_has_the_focus_and_says_what_is_asked(visit: Visit) -> None:
    assert visit.randomize({"smoke": "no", "sleep": "99"}) == ""
    assert visit.page.evaluate("document.activeElement.id") == "q-sleep"
    assert visit.page.evaluate("document.activeElement.getAttribute('aria-invalid')") == "true"
    assert "A number from 0 to 14 hours" in visit.text("error-sleep")
    assert visit.text("error-smoke") == ""
    assert visit.text("message") == "Nothing was randomized or sent."


def test_a_question_is_skipped_only_where_the_survey_says_what_is_sent_then(visit: Visit) -> None:
    assert visit.page.evaluate("document.querySelector('#card-sleep [type=checkbox]')") is None
    assert "as if you had answered “no”" in visit.text("skipped-smoke")
    assert visit.randomize({"sleep": "8"}) == ""
    visit.click("#skip-smoke")
    assert "If your answer is “no”" in visit.text("explained-smoke")
    assert visit.randomize({"sleep": "8"}) != ""


def test_the_language_can_be_switched_and_answers_stay(visit: Visit) -> None:
    visit.fill({"smoke": "yes", "sleep": "99"})
    visit.randomize({})
    choose_language(visit, "de")
    text = body(visit)
    for part in ("Schlaf und Rauchen", "Hast du geraucht?", "nein", "Eine Zahl von 0 bis 14 Stunden", "„ja“"):
        assert part in text
    assert "How long did you sleep?" in text  # the survey has no translation of it
    assert sentences("survey")["de"]["unreviewed"] in text
    assert visit.text("message") == sentences("survey")["de"]["nothing"]
    assert visit.page.evaluate("document.documentElement.lang") == "de"
    report = json.loads(visit.randomize({"sleep": "9"}))
    assert report["question"] in ("smoke", "sleep")
    choose_language(visit, "fr")
    assert visit.text("result-title") == "Ce qui sera envoyé"
    assert json.loads(visit.text("sent")) == report


def test_the_browsers_language_is_taken_where_the_catalog_has_it(visit: Visit) -> None:
    wanted: list[Any] = [[["nl-BE", "en"], "nl"], [["ja", "es-MX"], "es"], [["ja"], "en"], [[], "en"]]
    rows = json.dumps([[tags, list(languages())] for tags, _ in wanted])
    chosen = visit.page.evaluate(f"import('/explanation.js').then(at => {rows}.map(row => at.languageOf(...row)))")
    assert chosen == [code for _, code in wanted]


def test_two_tabs_send_one_report_for_a_token(visit: Visit, opened: tuple[DebuggedPage, str]) -> None:
    """The other tab marked the token as used after this one had randomized."""
    page, _ = opened
    visit.randomize({"smoke": "yes", "sleep": "8"})
    page.evaluate(
        "Promise.all([import('/page.js'), fetch('id.json').then(reply => reply.json())]).then(([at, { id }]) => "
        "localStorage.setItem(at.placeOf(id, document.getElementById('token').value), '1'))"
    )
    page.requests.clear()
    assert visit.send().startswith("This token was used in this browser before.")
    assert not any("postData" in request for request in page.requests)


def test_a_shuffled_survey_says_received_and_what_a_stop_loses(tmp_path_factory: pytest.TempPathFactory) -> None:
    at = Collector.beside(open_survey(survey_file(SHUFFLED, tmp_path_factory.mktemp("shuffled"))))
    with serving(at) as address, debugged(tmp_path_factory.mktemp("browser")) as page:
        visit = Visit(page)
        visit.arrive(address, at.tokens.issue())
        assert "keeps reports in memory until 20 have arrived" in visit.text("shuffled")
        assert "your report is lost" in visit.text("shuffled")
        visit.randomize({"travel": "car"})
        assert visit.send() == "Thank you: your report was received."


def test_without_scripts_the_page_says_so_in_every_language(opened: tuple[DebuggedPage, str]) -> None:
    page, address = opened
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(f"{address}/?without", "location.search === '?without' && document.readyState === 'complete'")
        text = page.evaluate("document.body.innerText")
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
    assert all(part["no-script"] in text for part in sentences("survey").values())
