from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.hospital import policy
from tests.cli.running import Runner


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("incrowd ver", ["verify"]),
        ("incrowd ledger ca", ["carve"]),
        ("incrowd plan --min", ["--minimal"]),
        ("incrowd release --format ", ["parquet", "csv", "tsv"]),
        ("incrowd check --engine s", ["spark"]),
        ("incrowd plan --policy ", ["policy.yaml"]),
        ("incrowd plan --policy more/", ["more/policy.yaml"]),
        ("incrowd query --classical per", ["perturbed-copy="]),
    ],
)
def test_a_shell_completes(run: Runner, monkeypatch: pytest.MonkeyPatch, line: str, offered: list[str]) -> None:
    Path("more").mkdir()
    for folder in (Path(), Path("more")):
        policy(folder).write_text("# what may leave\nincrowd: 1\n", encoding="utf-8")
        (folder / "compose.yaml").write_text("services: {}\n", encoding="utf-8")
    monkeypatch.setenv("_INCROWD_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    done = run("")
    assert done.code == 0
    assert done.out.split() == offered


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_what_bash_is_told_works_in_bash(tmp_path: Path) -> None:
    (tmp_path / "incrowd").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m incrowd "$@"\n', encoding="utf-8")
    (tmp_path / "incrowd").chmod(0o755)
    script = (
        'PATH=".:$PATH"; eval "$(incrowd --show-completion bash)"; '
        "COMP_WORDS=(incrowd hier); COMP_CWORD=1; _incrowd_completion incrowd; echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout == "hierarchy\n"
    assert done.stderr == ""
