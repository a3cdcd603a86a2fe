"""A histogram is verified from its certificate and its file alone, and no forged one passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from incrowd.core.certificate import Certificate
from incrowd.workflows.forms import form_of
from incrowd.workflows.report import public_report
from incrowd.workflows.verify import verify
from tests.workflows.forms.histogram.releases import WAYS, certificate, failures, released, rewrite, step, undecided

Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize("way", WAYS)
def test_what_was_released_is_verified_down_to_its_last_claim(way: str, tmp_path: Path) -> None:
    out = released(way, tmp_path)
    found = verify(out)
    assert found.passed, [each for each in found.findings if each.outcome == "failed"]
    assert undecided(out) == []
    told = Certificate.from_json(certificate(out))
    page = public_report(told, form_of(told).reopen(told, out / "data.csv"))
    assert "<svg" in page
    assert "<script" not in page


@pytest.mark.parametrize("form", ["parquet", "tsv"])
@pytest.mark.parametrize("way", ["blended", "unknown bins", "most common"])
def test_other_formats_are_verified_too(way: str, form: str, tmp_path: Path) -> None:
    assert verify(released(way, tmp_path, form)).passed


def drop_a_line(lines: list[str]) -> list[str]:
    return [lines[0], *lines[2:]]


def repeat_a_line(lines: list[str]) -> list[str]:
    return [*lines, lines[-1]]


def swap_lines(lines: list[str]) -> list[str]:
    return [lines[0], lines[2], lines[1], *lines[3:]]


def rename_a_bin(lines: list[str]) -> list[str]:
    return [lines[0], lines[1].replace("F", "f", 1), *lines[2:]]


@pytest.mark.parametrize("way", ["suppressed", "blended", "Laplace"])
@pytest.mark.parametrize("change", [drop_a_line, repeat_a_line, swap_lines, rename_a_bin])
def test_other_bins_than_the_declared_ones_fail(
    way: str, change: Callable[[list[str]], list[str]], tmp_path: Path
) -> None:
    out = released(way, tmp_path)
    file = out / "data.csv"
    file.write_text("\n".join(change(file.read_text().splitlines())) + "\n")
    assert "bins in the file" in failures(out)


@pytest.mark.parametrize(
    ("way", "count"),
    [("suppressed", "1"), ("suppressed at an open level", "0"), ("blended", "-1"), ("blended and rounded", "7")],
)
def test_counts_that_the_steps_cannot_give_fail(way: str, count: str, tmp_path: Path) -> None:
    out = released(way, tmp_path)
    file = out / "data.csv"
    lines = [line.split(",") for line in file.read_text().splitlines()]
    lines[1][lines[0].index("count")] = count
    file.write_text("\n".join(",".join(cells) for cells in lines) + "\n")
    assert "counts in the file" in failures(out)


def test_a_mark_on_a_small_count_fails(tmp_path: Path) -> None:
    out = released("blended", tmp_path)
    file = out / "data.csv"
    file.write_text(file.read_text().replace("false", "true"))
    assert "counts in the file" in failures(out)


def test_ranks_out_of_order_fail(tmp_path: Path) -> None:
    out = released("most common", tmp_path)
    file = out / "data.csv"
    head, first, second, *rest = file.read_text().splitlines()
    file.write_text("\n".join([head, second, first, *rest]) + "\n")
    assert "ranks in the file" in failures(out)


def lower_delta(plain: dict[str, Any]) -> None:
    plain["claims"][0]["parameters"]["delta"] = "1/1000000"
    plain["guarantee"]["delta"] = "1/1000000"


def other_k(plain: dict[str, Any]) -> None:
    for claim in plain["claims"]:
        claim["parameters"]["k"] += 3


def other_noise(plain: dict[str, Any]) -> None:
    plain["claims"][0]["parameters"]["noise"] = "1/2"


def no_blending(plain: dict[str, Any]) -> None:
    plain["claims"] = [claim for claim in plain["claims"] if claim["kind"] != "crowd-blending"]


def nothing_assumed(plain: dict[str, Any]) -> None:
    plain["claims"][0]["preconditions"] = []


CLAIMS: list[tuple[str, Change, str]] = [
    ("blended", lower_delta, "claim: approximate differential privacy"),
    ("suppressed", lower_delta, "claim: approximate differential privacy"),
    ("blended", other_k, "claim: crowd-blending"),
    ("blended", other_noise, "claim: approximate differential privacy"),
    ("blended", no_blending, "claims"),
    ("suppressed", nothing_assumed, "claims"),
    ("Laplace", nothing_assumed, "claims"),
    ("most common", nothing_assumed, "claims"),
]


@pytest.mark.parametrize(("way", "change", "about"), CLAIMS)
def test_claims_that_say_too_much_or_too_little_fail(way: str, change: Change, about: str, tmp_path: Path) -> None:
    out = released(way, tmp_path)
    plain = certificate(out)
    change(plain)
    rewrite(out, plain)
    assert about in failures(out)


@pytest.mark.parametrize("way", ["Laplace", "Gaussian", "Gaussian for people", "Laplace on a sample for people"])
def test_a_smaller_epsilon_than_the_noise_costs_fails_even_if_everything_agrees_on_it(way: str, tmp_path: Path) -> None:
    out = released(way, tmp_path)
    plain = certificate(out)
    plain["claims"][0]["parameters"]["epsilon"] = "0.9"
    for amounts in ("spent", "total"):
        plain["accounting"][amounts]["epsilon"] = "0.9"
    rewrite(out, plain)
    kind = plain["claims"][0]["kind"]
    assert f"claim: {kind}" in failures(out)


STEPS: list[tuple[str, str, str, Any]] = [
    ("blended", "noise when small", "epsilon", "1/2"),
    ("blended", "noise when small", "scale", "1/2"),
    ("blended", "noise when small", "k", 2),
    ("suppressed", "suppress counts", "k", 2),
    ("suppressed", "sample", "rate", "1/9"),
    ("suppressed", "count", "bins", 7),
    ("Laplace", "noise", "scale", "5"),
    ("Laplace", "noise", "within", 1),
    ("unknown bins", "threshold", "least", 3),
    ("most common", "select", "scale", "3"),
    ("blended for people", "keep rows of each person", "rows", 1),
]


@pytest.mark.parametrize(("way", "name", "key", "value"), STEPS)
def test_steps_that_do_not_give_the_guarantee_fail(way: str, name: str, key: str, value: Any, tmp_path: Path) -> None:
    out = released(way, tmp_path)
    plain = certificate(out)
    step(plain, name)[key] = value
    rewrite(out, plain)
    assert "steps" in failures(out)


def test_bins_drafted_from_rows_fail(tmp_path: Path) -> None:
    out = released("blended", tmp_path)
    plain = certificate(out)
    step(plain, "recode")["columns"][0]["provenance"] = "drafted from rows"
    rewrite(out, plain)
    assert "steps" in failures(out)
