"""The report in a real browser: it fits, it can be read in the dark and on paper, and it loads nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from incrowd.drawing.charts import WIDE
from incrowd.methods.anonymity.safe import PICTURE
from incrowd.verifier.judge import statement_of
from incrowd.workflows.report.page import internal_report, public_report, summary_html
from tests.browser.chromium import DARK, measured, run
from tests.certificates import PERSON, UNSAMPLED, certificate, counted, policy, shown


@pytest.fixture(scope="module")
def bounded() -> str:
    chosen = policy(**PERSON)
    return public_report(certificate(chosen), shown(chosen, 10))


@pytest.fixture(scope="module")
def unbounded() -> str:
    return public_report(certificate(policy(**UNSAMPLED)))


@pytest.fixture(scope="module")
def internal() -> str:
    released, everyone, certified = shown(policy(), 50), counted(policy()), certificate()
    comparison = PICTURE.comparison(statement_of(certified), released, policy().schema)
    return internal_report(certified, released, comparison.section(everyone))


def test_the_page_fits_a_phone_a_tablet_and_a_desk(tmp_path: Path, bounded: str, internal: str) -> None:
    script = """
      const scrolling = ".drawn, svg, details:not([open]) *";
      return [360, 800, 1400].map(width => {
        view.frameElement.style.width = `${width}px`;
        const all = [...page.querySelectorAll("main *")].filter(each => !each.closest(scrolling));
        const beyond = all.filter(each => each.getBoundingClientRect().right > width + 1);
        return [page.documentElement.scrollWidth, beyond.map(each => each.outerHTML.slice(0, 80))];
      });
    """
    for text in (bounded, internal):
        assert measured(tmp_path, text, script, 1400) == [[360, []], [800, []], [1400, []]]


def test_text_is_large_enough_to_read(tmp_path: Path, bounded: str) -> None:
    script = """
      const texts = [...page.querySelectorAll("main *:not(sup)")].filter(each => !each.children.length);
      const sizes = texts.filter(each => each.textContent.trim())
        .map(each => parseFloat(view.getComputedStyle(each).fontSize));
      return [sizes.length, Math.min(...sizes)];
    """
    many, smallest = measured(tmp_path, bounded, script, 360)
    assert many > 100
    assert smallest >= 11.0


def test_the_summary_is_what_a_reader_sees_first_and_then_the_label(tmp_path: Path, bounded: str) -> None:
    script = 'return ["#summary", ".label"].map(name => page.querySelector(name).getBoundingClientRect().top)'
    summary, label = measured(tmp_path, bounded, script)
    assert summary < 250
    assert summary < label


def test_no_epsilon_is_red_and_on_top(tmp_path: Path, unbounded: str) -> None:
    script = """
      const alert = page.querySelector(".alert"), style = view.getComputedStyle(alert);
      return [alert.textContent, style.color, alert.getBoundingClientRect().top];
    """
    text, color, top = measured(tmp_path, unbounded, script)
    assert "No epsilon" in text
    assert color == "rgb(179, 38, 30)"
    assert top < 300


def test_the_page_turns_dark_with_its_reader(tmp_path: Path, bounded: str) -> None:
    script = """
      const style = view.getComputedStyle(page.body), chart = view.getComputedStyle(page.querySelector(".chart text"));
      return [style.backgroundColor, style.color, chart.fill];
    """
    light, dark = measured(tmp_path, bounded, script), measured(tmp_path, bounded, script, 1100, DARK)
    assert light[0] == "rgb(255, 255, 255)"
    assert dark[0] == "rgb(20, 24, 29)"
    assert dark[1] == dark[2] == "rgb(232, 235, 239)"


def test_charts_are_drawn_as_wide_as_the_page(tmp_path: Path, bounded: str) -> None:
    script = """
      const boxes = [...page.querySelectorAll("svg.chart")].map(each => each.getBoundingClientRect());
      const line = page.querySelector(".curve").getBoundingClientRect();
      const mark = page.querySelector(".mark").getBoundingClientRect();
      const inside = line.left <= mark.left && mark.right <= line.right;
      return [boxes.map(box => [box.width, box.height]), line.width, inside];
    """
    for width in (360, 1100):
        boxes, line, inside = measured(tmp_path, bounded, script, width)
        assert len(boxes) == 2
        assert all(wide >= min(width, 928) - 60 and tall > 200 for wide, tall in boxes)
        assert line == pytest.approx(WIDE / 100 * boxes[0][0], rel=0.02)
        assert inside


def test_everything_that_scrolls_or_folds_can_be_reached_by_keyboard(tmp_path: Path, bounded: str) -> None:
    script = """
      const scrolls = [...page.querySelectorAll(".scroll")].every(each => each.tabIndex === 0);
      const folds = [...page.querySelectorAll("summary")].every(each => each.tabIndex === 0);
      const skip = page.querySelector(".skip");
      skip.focus();
      return [scrolls, folds, page.activeElement.className, skip.getBoundingClientRect().left >= 0];
    """
    assert measured(tmp_path, bounded, script) == [True, True, "skip", True]


def test_the_browser_itself_forbids_scripts_and_loading(tmp_path: Path, bounded: str) -> None:
    attack = "<script>document.title = 'owned'</script><img src='http://example.org/x.png'>"
    page = tmp_path / "attacked.html"
    page.write_text(bounded.replace("<main", f"{attack}<main", 1), encoding="utf-8")
    assert "<title>Release report" in run(tmp_path, page, "--dump-dom")
    script = "return [...page.images].map(each => each.naturalWidth)"
    assert measured(tmp_path, bounded.replace("<main", f"{attack}<main", 1), script) == [0]


def test_the_internal_banner_stays_in_sight(tmp_path: Path, internal: str) -> None:
    script = """
      view.scrollTo(0, 1500);
      const box = page.querySelector(".banner").getBoundingClientRect();
      return [view.scrollY > 1000, box.top, page.querySelector(".banner").textContent];
    """
    scrolled, top, text = measured(tmp_path, internal, script)
    assert scrolled
    assert top == 0
    assert text.startswith("INTERNAL")


def test_the_summary_shows_in_a_notebook(tmp_path: Path) -> None:
    summary = f"<!doctype html><body>{summary_html(certificate())}</body>"
    script = """
      const box = page.querySelector("div").getBoundingClientRect();
      return [box.height, page.documentElement.scrollWidth <= page.documentElement.clientWidth];
    """
    height, fits = measured(tmp_path, summary, script, 500)
    assert 100 < height < 500
    assert fits


def printed(folder: Path, text: str) -> Path:
    page, target = folder / "page.html", folder / "page.pdf"
    page.write_text(text, encoding="utf-8")
    run(folder, page, "--no-pdf-header-footer", f"--print-to-pdf={target}")
    return target


def test_the_page_prints(tmp_path: Path, bounded: str) -> None:
    content = printed(tmp_path, bounded).read_bytes()
    assert content.startswith(b"%PDF")
    assert 3 <= content.count(b"/Type /Page\n") + content.count(b"/Type /Page ") <= 12


def test_internal_stands_on_every_printed_page(tmp_path: Path, internal: str) -> None:
    reader = shutil.which("pdftotext")
    if reader is None:
        pytest.skip("pdftotext (poppler-utils) is not installed: the text of a PDF cannot be read")
    command = [reader, str(printed(tmp_path, internal)), "-"]
    pages = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout.split("\f")
    full = [page for page in pages if page.strip()]
    assert len(full) > 3
    assert all("INTERNAL" in page.strip().splitlines()[0] for page in full)
