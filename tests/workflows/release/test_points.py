"""Released points from the command line to the verifier, and forgeries of them."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd.cli.main import main
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import changed, with_ledger, written
from tests.released import Folder, failed, problems, rehash

CALLS: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "calls"},
    "columns": {
        "east": {"type": "decimal", "bounds": [0, 10]},
        "age": {"type": "integer", "bounds": [0, 99]},
        "day": {"type": "date", "bounds": ["2024-01-01", "2024-12-31"]},
        "note": {"role": "identifier"},
    },
    "release": {"method": "points", "s": 3, "rate": "1/2", "noise_epsilon": 1, "epsilon": 1, "delta": "1e-3"},
}
SUPPRESSED: dict[str, Any] = {"release__noise_epsilon": None}
OPEN: dict[str, Any] = {"release__epsilon": None, "release__delta": None, "release__rate": None, "release__k": 5}
UNBOUNDED: dict[str, Any] = {**OPEN, "budget": {"unbounded": "for the tests"}}


def calls(rows: int = 800) -> pa.Table:
    chance = np.random.default_rng(3)
    days = np.datetime64("2024-01-01") + chance.integers(0, 366, rows)
    return pa.table(
        {
            "east": chance.beta(2, 5, rows) * 10,
            "age": chance.integers(0, 100, rows),
            "day": pa.array(days.astype("datetime64[D]")),
            "note": [f"n{row}" for row in range(rows)],
        }
    )


def released(path: Path, form: str = "csv", **changes: Any) -> Folder:
    path.mkdir(parents=True, exist_ok=True)
    release_to(calls(), written(changed(CALLS, **changes), path), Destination(path / "out", form))
    return Folder(path)


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return released(tmp_path_factory.mktemp("noisy") / "release")


@pytest.fixture(scope="module")
def suppressed(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return released(tmp_path_factory.mktemp("suppressed") / "release", **SUPPRESSED)


def points(folder: Folder) -> list[list[str]]:
    with (folder.out / "data.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def forge(folder: Folder, to: Path, change: Callable[[list[list[str]]], list[list[str]]]) -> list[str]:
    """Return what a verifier finds in a copy with other data and a hash to fit."""
    copy = folder.copied(to)
    file = copy.out / "data.csv"
    file.write_text("".join(f"{','.join(row)}\n" for row in change(points(copy))))
    rehash(copy.out, "data.csv")
    return failed(verify(copy.out))


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        SUPPRESSED,
        {"release__place": "uniform"},
        {**UNBOUNDED, "release__noise_epsilon": None, "release__place": "uniform"},
        UNBOUNDED,
        {"dataset__unit": {"adjacency": "replace-one"}, "release__epsilon": 3, "release__delta": "1e-2"},
        {"release__columns": ["east"], "release__s": None, "release__error": "0.01"},
        {"dataset__unit": {"column": "note", "max_rows": 2}, "release__epsilon": 3, "release__delta": "1e-2"},
    ],
    ids=["noisy", "suppressed", "uniform", "no sample", "no sample, noisy", "replaced", "error given", "people"],
)
def test_a_release_verifies_with_every_claim_derived_again(changes: dict[str, Any], form: str, tmp_path: Path) -> None:
    folder = released(tmp_path, form, **changes)
    found = verify(folder.out)
    assert failed(found) == []
    assert found.complete
    assert len(folder.certificate["steps"]) >= 4


def test_the_command_line_goes_from_rows_to_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(CALLS, tmp_path)
    pa.csv.write_csv(calls(), tmp_path / "calls.csv")
    rows, out = str(tmp_path / "calls.csv"), str(tmp_path / "out")
    assert main(["plan", "--policy", str(file)]) == 0
    assert main(["release", rows, "--policy", str(file), "--out", out]) == 0
    ledger = f"sqlite:///{tmp_path}/.incrowd/ledger.sqlite"
    assert main(["verify", out, "--ledger", ledger]) == 0
    assert main(["report", out, "--out", str(tmp_path / "again.html")]) == 0
    inside = ["report", out, "--internal", "--against", rows, "--policy", str(file)]
    assert main([*inside, "--out", str(tmp_path / "inside.html")]) == 0
    capsys.readouterr()
    public, private = ((tmp_path / name).read_text() for name in ("again.html", "inside.html"))
    assert "Map of published points" in public
    assert "Before: original rows" not in public
    assert "Before: original rows" in private
    assert "Do not publish" in private
    assert "Synthetic points" in (tmp_path / "out" / "report.html").read_text()


def test_a_release_in_memory_is_recounted_too(tmp_path: Path) -> None:
    made = release(calls(), with_ledger(CALLS, tmp_path))
    assert made.result.form == "points"
    assert made.certificate.evidence["rows"] == len(made.result)
    assert made.result.to_pandas().shape == (len(made.result), 3)


def test_the_certificate_names_neither_rows_nor_sample(noisy: Folder) -> None:
    evidence = noisy.certificate["evidence"]
    assert evidence["rows"] == len(points(noisy)) - 1
    assert not {"original", "sampled", "suppressed"} & set(evidence)
    claim = noisy.certificate["claims"][-1]
    assert claim["kind"] == "Lipschitz error"
    assert set(claim["parameters"]) >= {"points move at most", "points added or lost, 19 times in 20 at most"}


def test_an_added_column_is_found(noisy: Folder, tmp_path: Path) -> None:
    found = forge(noisy, tmp_path / "copy", lambda rows: [[*row, "x"] for row in rows])
    assert "columns in the file" in found


@pytest.mark.parametrize("strange", [["4.9", "16", "2024-03-01"], ["", "16", "2024-03-01"], ["99", "16", "2024-03-01"]])
def test_a_point_beside_the_centers_is_found(noisy: Folder, tmp_path: Path, strange: list[str]) -> None:
    found = forge(noisy, tmp_path / "copy", lambda rows: [rows[0], strange, *rows[2:]])
    assert "places of the points" in found


def test_points_in_another_order_are_found(noisy: Folder, tmp_path: Path) -> None:
    assert "places of the points" in forge(noisy, tmp_path / "copy", lambda rows: [rows[0], *reversed(rows[1:])])


def test_a_lost_point_is_found(noisy: Folder, tmp_path: Path) -> None:
    assert forge(noisy, tmp_path / "copy", lambda rows: rows[:-1]) == ["points in each cell"]


def test_a_cell_below_k_is_found(suppressed: Folder, tmp_path: Path) -> None:
    def thinned(rows: list[list[str]]) -> list[list[str]]:
        first = [row for row in rows[1:] if row == rows[1]]
        return [rows[0], first[0], *(row for row in rows[1:] if row != rows[1])]

    assert "points in each cell" in forge(suppressed, tmp_path / "copy", thinned)


@pytest.mark.parametrize(
    ("steps", "change"),
    [
        (("claims", -1, "parameters", "points move at most"), lambda _: "0.01"),
        (("claims", -1, "parameters", "points added or lost, expected at most"), lambda _: "1"),
        (("claims", -1, "parameters", "place"), lambda _: "uniform"),
        (("claims", -1, "unit"), lambda _: "one node"),
        (("claims", 0, "parameters", "k"), lambda k: k + 1),
        (("claims",), lambda claims: claims[:-1]),
        (("claims",), lambda claims: claims[1:]),
        (("steps", 1, "cells"), lambda _: "28"),
        (("steps", 1, "columns", 0, "pieces"), lambda _: 4),
        (("steps", 1, "columns", 0, "low"), lambda _: "nothing"),
        (("steps", 2, "scale"), lambda _: "2"),
        (("steps", 2, "clamp"), lambda _: False),
        (("steps", 2, "k"), lambda k: k + 1),
        (("steps", 3, "at"), lambda _: "corners"),
    ],
)
def test_a_forged_certificate_fails(
    noisy: Folder, tmp_path: Path, steps: tuple[Any, ...], change: Callable[[Any], Any]
) -> None:
    copy = noisy.copied(tmp_path / "copy")
    copy.forge(steps, change)
    assert problems(copy.out)


def test_a_bound_on_what_suppression_drops_is_not_believed(suppressed: Folder, tmp_path: Path) -> None:
    copy = suppressed.copied(tmp_path / "copy")
    claim = {"points added or lost, 19 times in 20 at most": "3"}
    copy.forge(("claims", -1, "parameters"), lambda told: told | claim)
    assert problems(copy.out)


def test_a_second_release_from_the_same_rows_without_a_sample_is_refused(tmp_path: Path) -> None:
    file = written(changed(CALLS, **UNBOUNDED), tmp_path)
    release_to(calls(), file, Destination(tmp_path / "one"))
    assert main(["plan", "--policy", str(file)]) == 1


def test_noise_that_drowns_everything_costs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = {f"x{n}": {"type": "decimal", "bounds": [0, 1]} for n in range(10)}
    file = written(changed(CALLS, columns=columns, release__s=10), tmp_path)
    assert main(["plan", "--policy", str(file)]) == 2
    assert "stand for nobody" in capsys.readouterr().err
    assert not (tmp_path / ".incrowd").exists()


def test_policies_say_what_they_need() -> None:
    assert load_policy(changed(CALLS, release__columns=["east", "day"])).method.name == "points"
