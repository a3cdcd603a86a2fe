from __future__ import annotations

import json
import os
import socket
import stat
import time
import webbrowser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from incrowd.cli.main import main
from incrowd.workflows.policy.ledger_place import STATE, VARIABLE


@pytest.fixture(autouse=True)
def _unserved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command end where it would go on serving; what would be served is the keys alone."""
    monkeypatch.setattr("incrowd.web.studio.app.studio_app", lambda _folder, keys, _proxy: keys)
    monkeypatch.setattr("incrowd.cli.studio._run", lambda *_started: None)


def test_the_example_is_copied_and_the_address_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "demo"
    assert main(["studio", str(folder), "--demo", "--no-open", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    name, _, rest = printed["address"].removeprefix("http://").partition(".")
    assert len(name) == 32
    assert rest.startswith("localhost:")
    assert "token=ic_" in printed["address"]
    assert (folder / "policy.yaml").is_file()
    (folder / "policy.yaml").write_text("mine\n")
    assert main(["studio", str(folder), "--demo", "--no-open"]) == 0
    assert (folder / "policy.yaml").read_text() == "mine\n"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_port_that_somebody_else_has_at_either_address_is_refused(tmp_path: Path, address: str) -> None:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as taken:
        try:
            taken.bind((address, 0))
        except OSError:
            pytest.skip("this machine has no IPv6, so nobody can listen there")
        taken.listen()
        assert main(["studio", str(tmp_path), "--no-open", "--port", str(taken.getsockname()[1])]) == 2


def test_ledger_and_state_of_the_options_hold_for_everything_in_the_studio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: list[str | None] = []
    monkeypatch.setenv(STATE, "before")
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setattr(
        "incrowd.cli.studio._run", lambda *_started: places.extend(map(os.environ.get, (STATE, VARIABLE)))
    )
    assert main(["studio", str(tmp_path), "--no-open", "--state", "kept", "--ledger", "sqlite:///one.sqlite"]) == 0
    assert places == ["kept", "sqlite:///one.sqlite"]
    assert (os.environ[STATE], os.environ[VARIABLE]) == ("before", "")


def test_a_folder_that_is_not_there_and_a_port_that_is_none_are_refused(tmp_path: Path) -> None:
    assert main(["studio", str(tmp_path / "nowhere"), "--no-open"]) == 2
    assert main(["studio", str(tmp_path), "--no-open", "--port", "70000"]) == 2


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a browser that only writes down its command line does so."""
    script, record = tmp_path / "browser", tmp_path / "record"
    script.write_text(f'#!/bin/sh\nprintf "%s\\n" "$0" "$@" > {record}.part\nmv {record}.part {record}\n')
    script.chmod(0o700)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("BROWSER", f"{script} %s")
    monkeypatch.setattr(webbrowser, "_tryorder", None)
    monkeypatch.setattr(webbrowser, "_browsers", {})
    return record


def command_line(record: Path) -> list[str]:
    """Wait for the browser and return its command line."""
    end = time.monotonic() + 60
    while not record.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return record.read_text(encoding="utf-8").splitlines()


def modes(file: Path) -> list[int]:
    """Return who may read a file and look into its folder."""
    return [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)]


@pytest.mark.parametrize("entering", [True, False])
def test_no_command_line_and_no_open_file_holds_the_token(
    tmp_path: Path,
    recorded: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    entering: bool,
) -> None:
    files: list[Path] = []

    def served(_sockets: Any, keys: Any) -> None:
        words = command_line(recorded)
        line = " ".join(words)
        assert all(secret not in line for secret in (keys.token, keys.session, urlsplit(keys.address).netloc))
        files.append(Path(words[-1].removeprefix("file://")))
        assert modes(files[0]) == [0o600, 0o700]
        assert keys.address in files[0].read_text(encoding="utf-8")
        if entering:
            assert keys.exchange(keys.token)
            assert not files[0].parent.exists()

    monkeypatch.setattr("incrowd.cli.studio._run", served)
    assert main(["studio", str(tmp_path)]) == 0
    assert not files[0].parent.exists()
    assert list((tmp_path / "home").iterdir()) == []
    assert "token" not in capsys.readouterr().out


def test_without_a_browser_the_address_with_its_token_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", lambda _address: False)
    seen = ""

    def served(_sockets: Any, keys: Any) -> None:
        nonlocal seen
        end = time.monotonic() + 60
        while keys.address not in seen and time.monotonic() < end:
            seen += capsys.readouterr().err
            time.sleep(0.01)
        assert keys.address in seen

    monkeypatch.setattr("incrowd.cli.studio._run", served)
    assert main(["studio", str(tmp_path)]) == 0
