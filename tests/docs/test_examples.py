"""Every example in the documentation runs and prints what the page says."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
from pathlib import Path

import pytest

from incrowd.cli.main import main
from tests.docs.pages import DOCS, blocks, name, pages

CONSOLE = [page for page in pages() if blocks(page, "console")]
PYTHON = [page for page in pages() if blocks(page, "python")]


def steps(block: str) -> list[tuple[str, str]]:
    """Split a console block into commands and what each should print."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], ""))
        else:
            command, expected = found[-1]
            found[-1] = command, f"{expected}{line}\n"
    return found


def as_pattern(expected: str) -> re.Pattern[str]:
    """An ellipsis in the expected text stands for anything, white space for white space."""
    parts = [re.escape(part) for part in re.split(r"…", " ".join(expected.split()))]
    return re.compile(".*?".join(parts), re.DOTALL)


@pytest.mark.parametrize("page", CONSOLE, ids=name)
def test_console_examples_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(DOCS.parent / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns(".*", "__*"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for block in blocks(page, "console"):
        for command, expected in steps(block):
            program, *arguments = shlex.split(command)
            assert program == "incrowd"
            main(arguments)
            captured = capsys.readouterr()
            printed = " ".join((captured.out + captured.err).split())
            assert as_pattern(expected).fullmatch(printed), f"{command}\nprinted {printed}\nthe page says {expected}"


def test_there_are_console_examples() -> None:
    assert len(CONSOLE) >= 4


@pytest.mark.parametrize("page", PYTHON, ids=name)
def test_python_examples_run(page: Path) -> None:
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        test = parser.get_doctest(block, names, name(page), str(page), 0)
        assert test.examples, "a python block without an example"
        result = runner.run(test, clear_globs=False)
        names |= test.globs
        assert result.failed == 0
