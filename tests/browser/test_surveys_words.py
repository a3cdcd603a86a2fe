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
from tests.surveys import LAY, SHUFFLED, TOGETHER, survey, survey_file

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
    assert visit.text("message") == "Please look at the marked answers. Nothing was randomized or sent."


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
    assert visit.text("message").endswith(sentences("survey")["de"]["nothing"])
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


@pytest.fixture
def together(opened: tuple[DebuggedPage, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    """A visitor of a survey whose reports hold all answers."""
    at = Collector.beside(open_survey(survey_file(TOGETHER, tmp_path_factory.mktemp("together"))))
    with serving(at) as address:
        arrived = Visit(opened[0])
        arrived.arrive(address, f"token={at.tokens.issue()}")
        yield arrived


def test_a_report_of_all_answers_says_what_each_reveals_and_the_sum(together: Visit) -> None:
    assert "ε = 0.8 + 0.8 + 0.8 + 0.8 + 0.8 = 4" in together.text("several")
    assert "(ε = 4)" in together.text("promise")
    assert together.text("hint-pain") == "Choose up to 2. Choosing none is an answer, too."
    assert "at most 4 options, ε = 0.2 each: ε = 0.8 in all" in together.text("explained-pain")
    assert together.text("hint-since") == "A month from January 2015 to November 2026"
    together.fill({"ill": "yes", "hours": "37,5", "since": "03", "since-year": "2020", "age": "46 to 59"})
    for option in ("back", "hands", "feet"):
        together.fill({"pain": option})
    assert together.randomize({}) == ""
    assert together.page.evaluate("document.activeElement.id") == "q-pain-0"
    together.fill({"pain": "feet"})  # a third one is too many: it is taken back
    report = json.loads(together.randomize({}))
    assert set(report["reports"]) == {"ill", "pain", "since", "age", "hours"}
    assert together.text("meaning").count("About this question:") == 5
    assert together.send() == "Thank you: your report was counted."


def test_nothing_has_to_be_chosen_and_a_month_can_be_skipped(together: Visit) -> None:
    together.click("#skip-since")
    assert together.randomize({"ill": "no", "hours": "0", "age": "45"}) != ""


def test_answers_that_are_changed_meet_the_same_chance(visit: Visit) -> None:
    """Nobody can try until the report shows what they like; a report that was sent cannot be changed."""
    first = visit.randomize({"smoke": "yes", "sleep": "8"})
    for _ in range(5):
        visit.click("#again")
        assert visit.randomize({}) == first
    visit.page.evaluate("window.fetch = () => Promise.reject(1)")
    visit.send()
    assert visit.page.evaluate("document.getElementById('again').hidden") is True
    assert visit.text("sent") == first


def test_a_survey_is_answered_by_the_keyboard_alone(visit: Visit) -> None:
    """From the top of the page: language, the radio buttons, the skip box, the number, the two buttons."""
    where = "document.activeElement.id || document.activeElement.textContent"
    visit.page.evaluate("document.body.tabIndex = -1, document.body.focus()")
    visit.press("Tab", "Tab")
    assert visit.page.evaluate(where) == "q-smoke-0"
    visit.press("Space", "ArrowDown", "Tab", "Tab")
    assert visit.page.evaluate(where) == "q-sleep"
    visit.press("8", "Enter")
    assert visit.page.evaluate(where) == "result-title"
    assert visit.page.evaluate("document.getElementById('q-smoke-1').checked") is True
    visit.press("Tab")
    assert visit.page.evaluate(where) == "send"
    visit.press("Enter")
    assert visit.said() == "Thank you: your report was counted."
    assert visit.page.evaluate(where) == "message"


def test_every_field_has_a_name_for_readers_of_screens(together: Visit) -> None:
    """The accessibility tree of the browser: no field or button without a name, and a group for each question."""
    nodes = together.page.call("Accessibility.getFullAXTree")["nodes"]
    names: dict[str, list[str]] = {}
    for node in nodes:
        if not node["ignored"]:
            names.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
    fields = [name for role in ("textbox", "radio", "checkbox", "combobox", "button") for name in names[role]]
    assert len(fields) == 19
    assert all(fields)
    assert {part.get("text", name) for name, part in TOGETHER["questions"].items()} <= set(names["group"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground_in_light_and_dark(visit: Visit, scheme: str) -> None:
    """Contrast of at least 4.5 (WCAG 2.2, 1.4.3) for every text of the page."""
    visit.page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    visit.randomize({"smoke": "yes", "sleep": "99"})
    least = visit.page.evaluate(
        """(() => {
          const light = text => { const [r, g, b] = text.match(/[0-9.]+/g).map(Number).map(part => part / 255)
            .map(part => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const ground = at => { while (at) { const color = getComputedStyle(at).backgroundColor;
            if (!/, 0\\)$/.test(color) && color !== 'transparent') return color; at = at.parentElement; }
            return 'rgb(255, 255, 255)'; };
          const texts = [...document.querySelectorAll('body *')].filter(at => at.offsetParent && !at.disabled
            && [...at.childNodes].some(part => part.nodeType === 3 && part.data.trim()));
          return Math.min(...texts.map(at => { const [a, b] = [getComputedStyle(at).color, ground(at)].map(light)
            .sort((one, other) => other - one); return (a + 0.05) / (b + 0.05); })); })()"""
    )
    visit.page.call("Emulation.setEmulatedMedia", features=[])
    assert least >= 4.5
