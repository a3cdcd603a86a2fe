"""The studio as a person uses it: eight screens from a raw file to a signed release, once paid, at every width."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.web.studio.launch import LaunchFile
from tests.browser.visiting import PATIENCE, Visit, assert_accessible, browsing, serving, sideways, visiting
from tests.web.studio.visiting import POLICY, rows

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

PAGES = ("columns", "hierarchies", "output", "workbench", "lattice", "plan", "policy")
P = "?policy=policy.yaml"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as started:
        yield started


def table() -> str:
    lines = (f"p{n:05d},{n * 7 % 100},{'FM'[n % 2]},{('east', 'west', 'north')[n % 3]}" for n in range(2000))
    return "patient,age,sex,ward\n" + "\n".join(lines) + "\n"


def charges(folder: Path) -> int:
    address = f"sqlite:///{folder / '.incrowd' / 'ledger.sqlite'}"
    return sum(bool(entry.charged) for entry in Ledger.open(address).entries())


def onward(page: Page) -> None:
    """Follow the button to the next screen."""
    page.click(".onward a, .onward button")
    page.wait_for_load_state()


def reload(page: Page) -> None:
    """Load a page again, once more where the browser was just exchanging it for the next."""
    from playwright.sync_api import Error

    try:
        page.reload()
    except Error:
        page.wait_for_load_state()
        page.reload()


@pytest.fixture(scope="module")
def walked(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Visit, Page]]:
    """The eight screens, walked once: a raw file is dropped, drafted, planned, paid, released, signed and verified."""
    folder = tmp_path_factory.mktemp("walked")
    raw = tmp_path_factory.mktemp("elsewhere") / "stays.csv"
    raw.write_text(table(), encoding="utf-8")
    with visiting(browser, folder) as visit:
        page = visit.tab()
        page.set_input_files("#drop", str(raw))
        page.wait_for_url("**/open?data=stays.csv")
        page.click("text=Draft policy.yaml")
        page.wait_for_url("**/columns?**")
        page.fill("#f-rows", "2000")
        page.fill("#f-population", "100000")
        page.click("form[action='/columns/dataset'] button")
        onward(page)
        onward(page)
        onward(page)
        page.wait_for_selector("text=Would be released")
        onward(page)
        page.click("text=Create a signing key")
        page.wait_for_selector("option:has-text('keys/signing.pem')", state="attached")
        page.fill("#f-name", "stays")
        page.click("button.spend")
        reload(page)  # in the middle of paying
        page.wait_for_url("**/released?**")
        page.wait_for_selector("text=✓ verified")
        yield visit, page


def test_a_raw_file_becomes_a_signed_release_that_is_verified_and_paid_once(walked: tuple[Visit, Page]) -> None:
    visit, page = walked
    assert page.is_visible("text=✓ Signed")
    assert_accessible(page)
    assert charges(visit.folder) == 1
    certificate = json.loads((visit.folder / "out" / "certificate.json").read_text())
    assert certificate["signature"]["algorithm"] == "Ed25519"
    drafted = (visit.folder / "policy.yaml").read_text()
    assert "# Drafted for microdata" in drafted  # comments stay
    assert "population: 100000" in drafted
    assert visit.complaints == []


def test_back_and_forward_pay_nothing_and_half_of_the_budget_remains(walked: tuple[Visit, Page]) -> None:
    visit, page = walked
    page.go_back()
    page.go_forward()
    page.goto(f"{visit.address}/plan{P}")
    assert page.is_visible("text=Would be released")  # the first draft spends half of its budget
    assert charges(visit.folder) == 1


def test_before_and_after_and_the_attack_lab_run_behind_the_page(walked: tuple[Visit, Page]) -> None:
    visit, page = walked
    page.goto(f"{visit.address}/proof{P}&release=out")
    page.click("text=Compare with the rows")
    page.wait_for_selector("text=Rows released")
    page.select_option("#f-attack", "linkage")
    page.click("button:text('Attack')")
    page.wait_for_selector("text=Attack again")
    assert page.is_visible("text=Can other data be linked to a person's row?")
    assert_accessible(page)


@pytest.fixture(scope="module")
def visit(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    """A studio whose policy was written by hand."""
    folder = tmp_path_factory.mktemp("visit")
    (folder / "stays.csv").write_text(rows(), encoding="utf-8")
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    with visiting(browser, folder) as inside:
        yield inside


@pytest.fixture(scope="module")
def page(visit: Visit) -> Page:
    return visit.tab()


@pytest.mark.parametrize("name", ["open", *PAGES])
def test_every_page_can_be_read_by_everybody_in_light_and_dark_and_on_a_phone(
    visit: Visit, page: Page, name: str
) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{visit.address}/{name}{P}")
    assert_accessible(page)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 844})
    assert sideways(page) == []
    assert_accessible(page)
    page.emulate_media(color_scheme="light")
    assert visit.complaints == []


def test_changes_that_are_not_saved_are_said_and_saved_on_the_way_on(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "stays.csv").write_text(rows(), encoding="utf-8")
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    with visiting(browser, tmp_path) as visit:
        page = visit.tab(f"/columns{P}")
        asked: list[str] = []

        def dismiss(dialog: Dialog) -> None:
            asked.append(dialog.type)
            dialog.dismiss()

        page.on("dialog", dismiss)
        assert not page.is_visible(".unsaved")
        page.select_option("select[name=role-1]", "sensitive")
        assert page.is_visible("#edits .unsaved >> text=not saved yet")
        page.click("nav a:has-text('Release board')")
        page.wait_for_timeout(0)
        assert asked == ["beforeunload"]  # the browser asks, and the page stays
        page.click("button:has-text('Save and go on')")
        page.wait_for_url("**/hierarchies?**")
        assert asked == ["beforeunload"]
        assert "role: sensitive\n    type: integer" in (tmp_path / "policy.yaml").read_text()


def test_a_dropped_hierarchy_is_attached_to_its_column(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "stays.csv").write_text(rows(), encoding="utf-8")
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    dropped = tmp_path / "elsewhere.csv"
    dropped.write_text("east;coast;*\nwest;coast;*\nnorth;inland;*\n", encoding="utf-8")
    with visiting(browser, tmp_path) as visit:
        page = visit.tab(f"/hierarchies{P}&column=ward")
        with page.expect_navigation(url="**/hierarchies?policy=policy.yaml&column=ward"):
            page.set_input_files("#drop", str(dropped))
        assert page.is_visible("td:text-is('coast')")
        assert page.is_visible("text=Undo the last change")
        assert "file: hierarchies/elsewhere.csv" in (tmp_path / "policy.yaml").read_text()


def test_a_slider_moved_by_the_keyboard_changes_the_guarantee_at_once_and_writes_nothing(
    visit: Visit, page: Page
) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{visit.address}/workbench{P}")
    before = page.inner_text("#live")
    page.focus("input[type=range][data-for='s-1']")
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#live >> text=not saved yet")
    assert page.inner_text("#live") != before
    assert page.input_value("#s-1") == "0.8"
    assert "epsilon=0.8" in page.url
    page.reload()
    assert page.input_value("#s-1") == "0.8"
    assert (visit.folder / "policy.yaml").read_text() == POLICY


def test_a_file_leads_the_browser_in_once_and_is_removed(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "opened"
    folder.mkdir()
    with serving(folder) as keys:
        file = LaunchFile.to(keys.address)
        keys.on_entry = file.remove
        context = browser.new_context()
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(file.address)
        page.wait_for_url(f"{keys.origin}/")
        page.wait_for_selector("#drop", state="attached")
        assert [path.name for path in tmp_path.iterdir()] == ["opened"]
        other = browser.new_context().new_page()
        reply = other.goto(keys.address)
        assert reply is not None
        assert reply.status == 401
        other.context.close()
        context.close()


def test_two_tabs_and_a_double_click_pay_once_by_the_keyboard_alone(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "stays.csv").write_text(rows(), encoding="utf-8")
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    with visiting(browser, tmp_path) as inside:
        tabs = [inside.tab(f"/plan{P}") for _ in range(2)]
        for tab in tabs:
            tab.focus("#f-name")
            tab.keyboard.type("stays")
        for tab in tabs:
            tab.evaluate("document.querySelector('form[action=\"/plan/release\"]').requestSubmit()")
            tab.keyboard.press("Enter")
        for tab in tabs:
            tab.wait_for_url(re.compile(r"/released\?"))
        assert charges(tmp_path) == 1
        first = tabs[0]
        first.wait_for_selector("text=✓ verified")  # after that the page is not loaded again
        first.keyboard.press("Tab")
        assert first.evaluate("document.activeElement.textContent") == "Skip to the page"
