from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from incrowd.cli.main import main


@pytest.fixture(autouse=True)
def _unserved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command end where it would go on serving."""
    monkeypatch.setattr("incrowd.cli.studio._run", lambda folder, keys: None)


def test_the_example_is_copied_and_the_address_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "demo"
    assert main(["studio", str(folder), "--demo", "--no-open", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["address"].startswith("http://127.0.0.1:")
    assert "token=ic_" in told["address"]
    assert (folder / "policy.yaml").is_file()
    (folder / "policy.yaml").write_text("mine\n")
    assert main(["studio", str(folder), "--demo", "--no-open"]) == 0
    assert (folder / "policy.yaml").read_text() == "mine\n"


def test_a_folder_that_is_not_there_and_a_port_that_is_taken_are_refused(tmp_path: Path) -> None:
    assert main(["studio", str(tmp_path / "nowhere"), "--no-open"]) == 2
    assert main(["studio", str(tmp_path), "--no-open", "--port", "70000"]) == 2
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["studio", str(tmp_path), "--no-open", "--port", str(taken.getsockname()[1])]) == 2
