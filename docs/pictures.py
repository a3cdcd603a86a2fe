"""Take the pictures of the report and of the studio that the documentation shows, with a browser that needs no screen.

python -m docs.pictures            all of them, into docs/_static
python -m docs.pictures synthetic  only reports of synthetic tables: one table, and linked ones
python -m docs.pictures --to DIR   elsewhere, also at the width of a phone: to look at
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.cli.main import main
from tests.browser.visiting import browsing, visiting

if TYPE_CHECKING:
    from playwright.sync_api import Page

DOCS = Path(__file__).parent
HOSPITAL = DOCS.parent / "examples" / "hospital"
QUERY = "SELECT sex, COUNT(*) AS stays FROM discharges_2025 GROUP BY sex"
BUDGET = "queries: {most_epsilon: 1}\nbudget: {epsilon: 3, delta: 1e-5}"
CLASSIC = """\
release: {method: full-domain, k: 5, suppression: 0.05, lowest: {zip: 1}}
budget: {unbounded: the rows are invented}
"""
SYNTHETIC = """\
release: {method: marginals, epsilon: 1, delta: 1e-6, levels: {zip: 3}}
budget: {epsilon: 2, delta: 1e-5}
"""
POLICY = "?policy=policy.yaml"
DESK, PHONE = 1240, 390


def furnish(folder: Path) -> None:
    """Copy the hospital example, allow queries, and add a policy for k-anonymity."""
    shutil.copytree(HOSPITAL, folder, ignore=shutil.ignore_patterns(".*", "__*"), dirs_exist_ok=True)
    file = folder / "policy.yaml"
    text = file.read_text(encoding="utf-8").replace("budget: {epsilon: 1, delta: 1e-6}", BUDGET)
    file.write_text(text, encoding="utf-8")
    head = text[: text.index("release:")].replace("discharges-2025", "k-anonymous")
    (folder / "classic.yaml").write_text(head + CLASSIC, encoding="utf-8")


def release(folder: Path) -> None:
    """Release the hospital's rows."""
    if main(["release", "--policy", str(folder / "policy.yaml"), "--out", str(folder / "out")]) != 0:
        sys.exit("the release failed: there is no report to photograph.")


def console(page: Page, origin: str) -> None:
    """Ask one query, and wait for its answer."""
    page.goto(f"{origin}/console{POLICY}")
    page.fill("#f-sql", QUERY)
    page.fill("#f-epsilon", "0.5")
    page.wait_for_selector("#f-name")
    page.fill("#f-name", "discharges-2025")
    page.press("#f-name", "Enter")
    page.wait_for_selector("h2:text-is('The answer')")


def lattice(page: Page, origin: str) -> None:
    """Search the levels, and wait for the diagram."""
    page.goto(f"{origin}/lattice?policy=classic.yaml")
    page.click("form[action='/lattice/look'] button")
    page.wait_for_selector("h2:has-text('combinations of levels')")


def take(to: Path, *, phone: bool) -> None:
    """Photograph the report and four pages of the studio."""
    with tempfile.TemporaryDirectory() as name, browsing() as browser:
        folder = Path(name) / "hospital"
        furnish(folder)
        with visiting(browser, folder, DESK) as visit:
            page = visit.tab()
            page.set_default_timeout(60_000)
            pages = {
                "studio-guarantee": lambda: page.goto(f"{visit.address}/workbench{POLICY}"),
                "studio-lattice": lambda: lattice(page, visit.address),
                "studio-console": lambda: console(page, visit.address),
                "studio-board": lambda: (release(folder), page.goto(f"{visit.address}/board")),
            }
            for picture, visit_page in pages.items():
                page.set_viewport_size({"width": DESK, "height": 800})
                visit_page()
                page.wait_for_load_state("networkidle")
                shoot(page, to / f"{picture}.png", phone=phone)
            report = visit.context.new_page()
            report.goto((folder / "out" / "report.html").as_uri())
            report.set_viewport_size({"width": 960, "height": 592})
            shoot(report, to / "report.png", phone=phone)


def synthetic(to: Path, *, phone: bool) -> None:
    """Photograph the reports of a synthetic table and of linked ones."""
    with tempfile.TemporaryDirectory() as name, browsing() as browser:
        one, linked = Path(name) / "hospital", Path(name) / "stays"
        for folder in (one, linked):
            ignored = shutil.ignore_patterns(".*", "__*")
            shutil.copytree(HOSPITAL.with_name(folder.name), folder, ignore=ignored)
        text = (one / "policy.yaml").read_text(encoding="utf-8")
        (one / "policy.yaml").write_text(text[: text.index("release:")] + SYNTHETIC, encoding="utf-8")
        page = browser.new_page(viewport={"width": 960, "height": 1800})
        for folder, picture in ((one, "report-synthetic"), (linked, "report-linked")):
            release(folder)
            page.goto((folder / "out" / "report.html").as_uri())
            part = page.locator("h2:text-is('What the output itself shows')").bounding_box() or {"y": 0}
            end = page.locator("h2:text-is('What was released')").bounding_box() or {"y": part["y"] + 900}
            clip = {"x": 0, "y": part["y"] - 16, "width": 960, "height": end["y"] - part["y"]}
            page.screenshot(path=to / f"{picture}.png", full_page=True, clip=clip)  # type: ignore[arg-type]
            if phone:
                shoot(page, to / f"{picture}-whole.png", phone=True)


def shoot(page: Page, picture: Path, *, phone: bool) -> None:
    """Save what a screen shows; for looking, whole pages at both widths."""
    page.screenshot(path=picture, full_page=phone)
    if phone:
        page.set_viewport_size({"width": PHONE, "height": 844})
        page.screenshot(path=picture.with_stem(f"{picture.stem}-{PHONE}"), full_page=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m docs.pictures")
    parser.add_argument("which", nargs="?", choices=("synthetic",))
    parser.add_argument("--to", type=Path)
    options = parser.parse_args()
    if options.which is None:
        take(options.to or DOCS / "_static", phone=options.to is not None)
    synthetic(options.to or DOCS / "_static", phone=options.to is not None)
