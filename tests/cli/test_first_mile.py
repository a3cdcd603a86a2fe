"""A messy file on the console: four commands from the raw file to a verified release that keeps the named column."""

from __future__ import annotations

import shlex
from pathlib import Path

import pyarrow.csv as pc
import pytest

from tests.browser.first_mile import FILES, MessyFile
from tests.cli.running import Runner

ROWS = 3000


@pytest.mark.parametrize("messy", FILES, ids=[messy.name for messy in FILES])
def test_four_commands_carry_a_messy_file_to_a_release_that_keeps_its_column(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, messy: MessyFile
) -> None:
    monkeypatch.chdir(tmp_path)
    messy.write(tmp_path / messy.name, ROWS)
    source = "" if messy.source is None else f" --public {shlex.quote(f'{messy.column}={messy.source}')}"
    source += f" --confirm {shlex.quote(messy.column)}" if messy.cleaned else ""
    options = f"--keep {shlex.quote(messy.column)} --rows {ROWS}{source}"
    draft = run(f"profile {messy.name} --write p.yaml {options}")
    assert draft.code == 0, draft.err
    assert "Recommended: --for" in draft.out
    assert "Columns as they will be published" in run("plan --policy p.yaml").out
    released = run("release --policy p.yaml --out out --format csv --no-spreadsheet")
    assert released.code == 0, released.err
    assert "remaining" in released.out  # the first draft does not spend the whole budget
    assert run("verify out --policy p.yaml").code == 0
    labels = set(pc.read_csv(tmp_path / "out" / "data.csv")[messy.column].to_pylist())
    assert len(labels - {"*"}) > 1


def test_a_column_whose_values_come_from_the_data_is_not_kept_without_a_source(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    messy = FILES[1]
    messy.write(tmp_path / messy.name, 200)
    column = shlex.quote(messy.column)
    refused = run(f"profile {messy.name} --write p.yaml --keep {column} --confirm {column}")
    assert refused.code == 2
    assert "its values come from the data" in refused.err
    assert not (tmp_path / "p.yaml").exists()
