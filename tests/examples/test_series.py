"""The five-year example: its command makes the first months here; all sixty are made by the same command."""

from __future__ import annotations

import shutil
from pathlib import Path

from examples.series.stays import lines
from incrowd.cli.main import main

SERIES = Path(__file__).resolve().parents[2] / "examples" / "series"


def test_the_command_makes_months_that_verify_and_a_page(tmp_path: Path) -> None:
    folder = tmp_path / "series"
    shutil.copytree(SERIES, folder, ignore=shutil.ignore_patterns(".incrowd", "__pycache__", "out"))
    (folder / "stays.csv").write_text("\n".join(lines(900)) + "\n", encoding="utf-8")
    policy, out = ["--policy", str(folder / "policy.yaml")], str(folder / "out")
    assert main(["series", "plan", *policy, "--json"]) == 0
    assert main(["series", "run", *policy, "--out", out, "--until", "2025-03"]) == 0
    assert main(["series", "run", *policy, "--out", out, "--period", "2025-03", "--json"]) == 0
    ledger = f"sqlite:///{folder}/.incrowd/ledger.sqlite"
    assert main(["verify", str(folder / "out" / "2025-03"), *policy, "--ledger", ledger]) == 0
    assert main(["series", "status", *policy, "--out", str(folder / "page.html")]) == 0
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "3 periods of 60 published" in page
    assert "Kinderklinik" in page
    assert "P00" not in page  # nobody's id
    assert main(["series", "status", *policy, "--out", str(folder / "page.html")]) == 2
    assert main(["series", "close", *policy, "--why", "the example ends", "--who", "me"]) == 0
    assert main(["series", "run", *policy, "--out", out, "--period", "2025-04"]) == 1
    assert main(["series", "run", *policy, "--out", out]) == 2
