"""The README's example runs as it stands, and its links lead somewhere."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from incrowd.cli.main import main
from tests.docs.pages import DOCS, blocks

ROOT = DOCS.parent
README = ROOT / "README.md"
EXAMPLE = ROOT / "examples" / "hospital"


def test_the_example_runs_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INCROWD_LEDGER", raising=False)
    for name in ("discharges.csv", "diagnosis.csv"):
        shutil.copy(EXAMPLE / name, tmp_path / name)
    (tmp_path / "policy.yaml").write_text(blocks(README, "yaml")[0], encoding="utf-8")
    lines = [shlex.split(line, comments=True) for block in blocks(README, "sh") for line in block.splitlines()]
    commands = [words[1:] for words in lines if words and words[0] == "incrowd"]
    assert [words[0] for words in commands] == ["plan", "release", "verify", "bounds", "query", "serve", "rule"]
    for words in commands:
        if words[0] != "serve":  # it would go on answering
            assert main(words) == 0, words
    assert (tmp_path / "out" / "certificate.json").is_file()


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8")))
def test_every_link_leads_somewhere(target: str) -> None:
    assert (ROOT / target).exists()


def test_the_commands_it_names_are_there() -> None:
    named = re.findall(r"^(\./\w+)", "\n".join(blocks(README, "sh")), re.MULTILINE)
    assert named == ["./demo", "./test"]
    for name in named:
        assert (ROOT / name).stat().st_mode & 0o111
