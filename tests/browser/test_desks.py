"""The desks of the studio as a person uses them: board, verifier, export, a question, a survey; for everybody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.visiting import Visit, assert_accessible, browsing, sideways, visiting
from tests.web.studio.desks import BOOK, furnish
from tests.web.studio.visiting import rows

if TYPE_CHECKING:
    from playwright.sync_api import Page

P = "?policy=policy.yaml"
PAGES = (
    "/board", "/verify", "/verify?release=out&to=ddi", f"/console{P}&sql=SELECT+COUNT(*)+AS+n+FROM+stays&epsilon=0.1",
    f"/map{P}", "/consent?policy=asked/policy.yaml", "/survey?survey=survey.yaml",
    "/graph?policy=club/policy.yaml&release=club-out",
)  # fmt: skip


@pytest.fixture(scope="module")
def visit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    folder = tmp_path_factory.mktemp("desks")
    (folder / "stays.csv").write_text(rows(), encoding="utf-8")
    (folder / "policy.yaml").write_text(BOOK, encoding="utf-8")
    furnish(folder)
    with browsing() as browser, visiting(browser, folder) as inside:
        yield inside


@pytest.fixture(scope="module")
def page(visit: Visit) -> Page:
    return visit.tab()


def go(page: Page, address: str) -> None:
    """Open a page when no work goes on behind it, so that it is not loaded again by itself."""
    twin = f"{address}{'&' if '?' in address else '?'}format=json"
    while page.evaluate("twin => fetch(twin).then(reply => reply.json())", twin)["job"] is not None:
        page.wait_for_timeout(50)
    page.goto(address)


def test_from_the_board_a_release_is_verified_and_exported(visit: Visit, page: Page) -> None:
    go(page, f"{visit.address}/board")
    page.click("text=published in club-out")
    page.wait_for_selector("h2#verdict:text-is('Verified')")
    page.select_option("#f-to", "dp-registry")
    page.click("button:text-is('Show')")
    with page.expect_download() as told:
        page.click("button:has-text('Download')")
    assert told.value.suggested_filename == "club-out-dp-registry.yaml"
    assert "karate club" in Path(told.value.path()).read_text(encoding="utf-8")
    assert visit.complaints == []


def test_dropped_files_are_verified_where_they_are(visit: Visit, page: Page) -> None:
    go(page, f"{visit.address}/verify")
    files = sorted((visit.folder / "out").iterdir())
    page.set_input_files("#drop", [str(file) for file in files if file.name != "certificate.json"])
    page.wait_for_selector("text=certificate.json is missing")
    page.set_input_files("#drop", [str(file) for file in files])
    page.wait_for_url("**/verify?release=received-*")
    page.wait_for_selector("h2#verdict:text-is('Verified')")
    assert visit.complaints == []


def test_a_question_is_priced_while_one_types_and_asked_by_keyboard(visit: Visit, page: Page) -> None:
    go(page, f"{visit.address}/console{P}")
    page.focus("#f-sql")
    page.keyboard.type("SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward")
    page.keyboard.press("Tab")
    page.keyboard.type("0.5")
    page.wait_for_selector("label:has-text('Type stays to spend ε 0.5')")
    page.focus("#f-name")
    page.keyboard.type("other")
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('#f-name').validationMessage") == "Type stays to spend."
    page.fill("#f-name", "")
    page.keyboard.type("stays")
    page.keyboard.press("Enter")
    page.wait_for_selector("h2:text-is('The answer')")
    assert page.locator("svg.chart .middle").count() == 3
    assert page.locator("li.past").count() == 1
    page.reload()
    page.wait_for_selector("h2:text-is('The answer')")
    assert visit.complaints == []


def test_answers_are_randomized_in_the_browser_and_only_reports_are_sent(visit: Visit, page: Page) -> None:
    go(page, f"{visit.address}/survey?survey=survey.yaml")
    sent: list[str] = []
    page.on("request", lambda each: sent.append(each.post_data or "") if each.method == "POST" else None)
    page.select_option("#q-ward", "west")
    page.click("#own button")
    assert json.loads(page.inner_text("#sent").partition("(reads")[0])["question"] == "ward"
    assert page.locator("#draws .draw").count() >= 1
    assert sent == []
    page.click("text=Randomize all answers")
    page.wait_for_selector("#estimates svg .truth", state="attached")
    assert page.inner_text("#truth").startswith("The true share is 30.0 %")
    assert len(sent) == 1
    assert "east" not in sent[0]
    assert visit.complaints == []


@pytest.mark.parametrize("path", PAGES)
def test_every_desk_can_be_read_by_everybody_in_light_and_dark_and_on_a_phone(
    visit: Visit, page: Page, path: str
) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    go(page, visit.address + path)
    assert_accessible(page)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 844})
    assert sideways(page) == []
    assert_accessible(page)
    page.emulate_media(color_scheme="light")
    assert visit.complaints == []
