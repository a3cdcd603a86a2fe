"""Files of histograms and selections are held against the steps alone, and what was changed in either is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd.core.domain import Provenance
from incrowd.core.loss import Approximate
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import BinColumn, Count, ListedBins, PublishCounts, RecodeToBins
from incrowd.core.steps.counts import Law
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.samples import EveryRow, SecretSample
from incrowd.core.unit import Adjacency, Unit
from incrowd.methods.histograms import blended, most_common, private, suppressed
from incrowd.methods.histograms.most_common import PermuteAndFlip, PublishRanking, ReadOff, Winners
from incrowd.methods.histograms.private import AddBinNoise, HideUnknown
from incrowd.methods.histograms.shared import check as contents
from incrowd.methods.histograms.shared import partition
from incrowd.methods.shared.outcome import Histogram
from incrowd.verifier.check import Check
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from tests.policies import PEOPLE, changed, people
from tests.statements import statement_of, with_step

BINS: dict[str, Any] = {"columns": ["sex", "age"], "levels": {"age": 2}}
SAMPLE: dict[str, Any] = {"rate": "1/5", "epsilon": 1, "delta": "1e-4"}
ANYHOW = {"budget": {"unbounded": "published since 1990"}}
PERSON = {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id", "max_rows": 2}}
REPLACED = {"dataset__unit": {"adjacency": "replace-one"}}
SUPPRESSED = {"method": "suppressed-histogram", **BINS, **SAMPLE}
BLENDED = {"method": "blended-histogram", **BINS, **SAMPLE, "noise_epsilon": 1, "flag": True}
NOISY = {"method": "private-histogram", **BINS, "epsilon": 1}
OPEN: dict[str, Any] = {"method": "private-histogram", "levels": {"zip": 1, "age": 2}, "epsilon": 1, "delta": "1e-6"}
COMMON = {"method": "most-common", **BINS, "epsilon": 1, "top": 3}
MANY = {"columns__zip": {"type": "integer", "bounds": [0, 1999], "outside": "other"}}
WAYS: dict[str, tuple[Check, dict[str, Any]]] = {
    "suppressed": (suppressed.CHECK, {"release": SUPPRESSED}),
    "suppressed for good": (
        suppressed.CHECK,
        {"release": {"method": "suppressed-histogram", **BINS, "k": 5}, **ANYHOW},
    ),
    "suppressed at an open level": (
        suppressed.CHECK,
        {"release": {**SUPPRESSED, "columns": ["zip", "sex"], "levels": {"zip": 1}}},
    ),
    "survey": (
        suppressed.CHECK,
        {
            "release": {
                **SUPPRESSED,
                "rate": None,
                "epsilon": None,
                "k": 20,
                "delta": "1e-6",
                "robust": {"low": "0.05", "high": "0.1"},
            }
        },
    ),
    "blended": (blended.CHECK, {"release": BLENDED}),
    "blended for good": (
        blended.CHECK,
        {"release": {"method": "blended-histogram", **BINS, "k": 5, "noise_epsilon": 1}, **ANYHOW},
    ),
    "blended and rounded": (blended.CHECK, {"release": {**BLENDED, "round": 5, "flag": False}}),
    "blended for people": (blended.CHECK, {"release": BLENDED, **PERSON}),
    "unclamped": (blended.CHECK, {"release": {**BLENDED, "clamp": False}}),
    "Laplace": (private.CHECK, {"release": NOISY}),
    "Laplace on a sample for people": (private.CHECK, {"release": {**NOISY, "rate": "1/5"}, **PERSON}),
    "Gaussian for people": (private.CHECK, {"release": {**NOISY, "noise": "gaussian", "delta": "1e-6"}, **PERSON}),
    "hashed labels": (
        private.CHECK,
        {"release": {**NOISY, "columns": ["sex", "zip"], "levels": {}, "clamp": True}, **MANY},
    ),
    "unknown bins": (private.CHECK, {"release": OPEN}),
    "unknown bins, Gaussian": (private.CHECK, {"release": {**OPEN, "noise": "gaussian", "round": 3}, **REPLACED}),
    "unknown bins, Gaussian, of rows": (private.CHECK, {"release": {**OPEN, "noise": "gaussian"}}),
    "most common": (most_common.CHECK, {"release": COMMON}),
    "winner": (most_common.CHECK, {"release": {**COMMON, "top": 1, "counts": False}, **REPLACED}),
}
Lines = Callable[[list[str]], list[str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("histograms")


def released(way: str, folder: Path, form: str = "csv") -> tuple[Statement, Path]:
    """Release in one of the ways, once, and return what is said about it and its file."""
    own = folder / way.replace(" ", "_") / form
    policy = load_policy(changed(PEOPLE, ledger=f"sqlite:///{own}/ledger.sqlite", **WAYS[way][1]))
    if not own.exists():
        own.mkdir(parents=True)
        rows = people(1500).append_column("id", pa.array([str(n // 2) for n in range(1500)]))
        release_to(rows, policy, Destination(own / "out", form))
    evidence = json.loads((own / "out" / "certificate.json").read_text())["evidence"]
    plan = policy.method.plan(policy.schema)
    statement = statement_of(plan, policy.schema, **evidence)
    return replace(statement, released=statement.basis.need(Count).names), own / "out" / f"data.{form}"


def problems(way: str, statement: Statement, file: Path) -> list[str]:
    return [look.about for look in WAYS[way][0].inspect(statement, (file,)) if look.problem is not None]


def forged(way: str, folder: Path, into: Path, change: Lines) -> list[str]:
    """Return what is found in a copy of a file with other lines."""
    statement, file = released(way, folder)
    copy = into / "data.csv"
    copy.write_text("\n".join(change(file.read_text().splitlines())) + "\n")
    return problems(way, statement, copy)


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("way", WAYS)
def test_what_was_released_holds_in_the_file_and_in_memory(way: str, form: str, folder: Path) -> None:
    check, (statement, file) = WAYS[way][0], released(way, folder, form)
    assert check.contradiction(statement) is None
    assert problems(way, statement, file) == []
    again = check.reopen(statement, (file,))
    assert check.recount(statement, again) is None
    assert again.form in ("histogram", "selection")


def drop_a_line(lines: list[str]) -> list[str]:
    return [lines[0], *lines[2:]]


def repeat_a_line(lines: list[str]) -> list[str]:
    return [*lines, lines[-1]]


def swap_lines(lines: list[str]) -> list[str]:
    return [lines[0], lines[2], lines[1], *lines[3:]]


def rename_a_bin(lines: list[str]) -> list[str]:
    return [lines[0], lines[1].replace("F", "f", 1), *lines[2:]]


@pytest.mark.parametrize("way", ["suppressed", "blended", "Laplace", "hashed labels"])
@pytest.mark.parametrize("change", [drop_a_line, repeat_a_line, swap_lines, rename_a_bin])
def test_other_bins_than_the_declared_ones_are_found(way: str, change: Lines, folder: Path, tmp_path: Path) -> None:
    assert "bins in the file" in forged(way, folder, tmp_path, change)


def test_other_labels_than_the_hashed_ones_are_found(folder: Path, tmp_path: Path) -> None:
    def renumbered(lines: list[str]) -> list[str]:
        return [line.replace(",1999,", ",2999,") for line in lines]

    assert forged("hashed labels", folder, tmp_path, renumbered) == ["bins in the file"]


@pytest.mark.parametrize("way", ["suppressed at an open level", "unknown bins"])
def test_a_bin_that_is_there_twice_is_found_where_bins_are_not_known(way: str, folder: Path, tmp_path: Path) -> None:
    assert "bins in the file" in forged(way, folder, tmp_path, repeat_a_line)


def test_bins_that_are_listed_in_part_stand_in_their_order() -> None:
    columns = (BinColumn("sex", ("F", "M")), BinColumn("age", ("young", "old")))
    statement = _partial(columns)
    good = pa.table({"sex": ["F", "M", "M"], "age": ["old", "young", "old"], "count": [9, 8, 7]})
    assert suppressed.CHECK.recount(statement, Histogram(good)) is None
    for rows in ([1, 0, 2], [0, 0, 2], [0, 2, 1]):
        found = suppressed.CHECK.recount(statement, Histogram(good.take(rows)))
        assert found is not None
        assert "order" in found.text


def _partial(columns: tuple[BinColumn, ...]) -> Statement:
    policy = load_policy(changed(PEOPLE, **WAYS["suppressed for good"][1]))
    plan = policy.method.plan(policy.schema)
    statement = with_step(statement_of(plan, policy.schema), Count, listed=ListedBins.FROM_K, columns=columns)
    return replace(statement, released=("sex", "age"))


@pytest.mark.parametrize(
    ("way", "count"),
    [
        ("suppressed", "1"),
        ("suppressed at an open level", "0"),
        ("blended", "-1"),
        ("blended and rounded", "7"),
        ("hashed labels", "-1"),
        ("unknown bins", "3"),
    ],
)
def test_counts_that_the_steps_cannot_give_are_found(way: str, count: str, folder: Path, tmp_path: Path) -> None:
    def recounted(lines: list[str]) -> list[str]:
        cells = lines[1].split(",")
        cells[lines[0].split(",").index("count")] = count
        return [lines[0], ",".join(cells), *lines[2:]]

    assert "counts in the file" in forged(way, folder, tmp_path, recounted)


def test_a_mark_on_a_small_count_is_found(folder: Path, tmp_path: Path) -> None:
    def marked(lines: list[str]) -> list[str]:
        return [line.replace("false", "true") for line in lines]

    assert forged("blended", folder, tmp_path, marked) == ["counts in the file"]


def test_another_column_is_found(folder: Path, tmp_path: Path) -> None:
    for way in ("suppressed", "most common"):
        assert forged(way, folder, tmp_path, lambda lines: [f"{line},x" for line in lines]) == ["columns in the file"]


@pytest.mark.parametrize("name", ["bins", "bins above zero", "smallest count above zero", "exact counts"])
def test_evidence_that_counts_otherwise_is_found(name: str, folder: Path) -> None:
    statement, file = released("blended", folder)
    evidence = {**statement.evidence, name: statement.evidence[name] + 1}
    assert problems("blended", replace(statement, evidence=evidence), file) == ["counts in the file"]


def other_rank(lines: list[str]) -> list[str]:
    return [line.replace("3,", "4,", 1) if line.startswith("3,") else line for line in lines]


def strange_bin(lines: list[str]) -> list[str]:
    return [line.replace(",F,", ",f,").replace(",M,", ",m,") for line in lines]


def same_bin(lines: list[str]) -> list[str]:
    return [lines[0], lines[1], "2" + lines[1][1:], *lines[3:]]


def rising_counts(lines: list[str]) -> list[str]:
    return [*lines[:-1], lines[-1].rpartition(",")[0] + ",99999"]


@pytest.mark.parametrize("change", [swap_lines, drop_a_line, other_rank, strange_bin, same_bin, rising_counts])
def test_a_selection_that_is_none_is_found(change: Lines, folder: Path, tmp_path: Path) -> None:
    assert forged("most common", folder, tmp_path, change) == ["ranks in the file"]


FORGED: list[tuple[str, type[Any], dict[str, Any], str]] = [
    ("suppressed", PublishCounts, {"exact": True}, "marked"),
    ("suppressed", Count, {"listed": ListedBins.CHOSEN}, "bins that these steps do not list"),
    ("suppressed at an open level", Count, {"listed": ListedBins.ALL}, "not all bins are known"),
    ("suppressed", RecodeToBins, {"columns": ()}, "released"),
    ("blended", Count, {"listed": ListedBins.FROM_K}, "bins that these steps do not list"),
    ("blended for people", KeepRows, {"rows": 1}, "rows used"),
    ("blended for people", KeepRows, {"column": "name"}, "rows used"),
    ("Laplace", AddBinNoise, {"within": 1}, "5 %"),
    ("Laplace", AddBinNoise, {"scale": Fraction(5)}, "5 %"),
    ("Laplace", PublishCounts, {"exact": True}, "none is exact"),
    ("Laplace", Count, {"listed": ListedBins.FROM_THRESHOLD}, "bins that these steps do not list"),
    ("Gaussian for people", AddBinNoise, {"within": 1}, "5 %"),
    ("Gaussian for people", AddBinNoise, {"scale": Fraction(10**9)}, "too wide"),
    ("unknown bins", HideUnknown, {"least": 3}, "one person"),
    ("unknown bins", HideUnknown, {"delta": Fraction(1), "least": 2}, "larger than that of the guarantee"),
    ("unknown bins", HideUnknown, {"epsilon": Decimal("0.9")}, "the noise has a delta"),
    ("unknown bins, Gaussian", HideUnknown, {"epsilon": Decimal("0.9")}, "the noise has a delta"),
    ("unknown bins, Gaussian, of rows", HideUnknown, {"epsilon": Decimal("0.9")}, "the noise has a delta"),
    ("most common", ReadOff, {"within": 0}, "5 %"),
    ("most common", Winners, {"top": 99}, "as many winners"),
    ("winner", PermuteAndFlip, {"top": 2}, "one winner"),
    ("winner", PublishRanking, {"counts": True}, "one winner"),
]


@pytest.mark.parametrize(("way", "kind", "changes", "why"), FORGED)
def test_steps_that_contradict_what_else_is_said_are_found(
    way: str, kind: type[Any], changes: dict[str, Any], why: str, folder: Path
) -> None:
    found = WAYS[way][0].contradiction(with_step(released(way, folder)[0], kind, **changes))
    assert found is not None
    assert why in found.text
    assert found.undecided == (why == "too wide")


def test_bins_that_were_drafted_from_rows_carry_no_guarantee(folder: Path) -> None:
    statement, _ = released("Laplace", folder)
    columns = statement.basis.need(RecodeToBins).columns
    drafted = with_step(
        statement, RecodeToBins, columns=tuple(replace(each, provenance=Provenance(derived=True)) for each in columns)
    )
    found = private.CHECK.contradiction(drafted)
    assert found is not None
    assert "come from the data" in found.text


def test_unknown_bins_need_a_threshold_with_a_delta_and_known_ones_have_none(folder: Path) -> None:
    open_bins = released("unknown bins", folder)[0].basis.need(Count)
    for way, check in (("Laplace", private.CHECK), ("blended", blended.CHECK)):
        statement, _ = released(way, folder)
        found = check.contradiction(with_step(statement, Count, columns=open_bins.columns))
        assert found is not None
        assert "bins" in found.text


@pytest.mark.parametrize("way", ["unknown bins", "unknown bins, Gaussian"])
def test_a_sample_saves_nothing_where_bins_are_unknown_or_rows_are_replaced(way: str, folder: Path) -> None:
    statement, _ = released(way, folder)
    steps = tuple(SecretSample(Fraction(1, 2)) if isinstance(each, EveryRow) else each for each in statement.steps)
    found = private.CHECK.contradiction(replace(statement, basis=replace(statement.basis, steps=steps)))
    assert found is not None
    assert "secret sample" in found.text


def test_another_output_is_no_histogram(folder: Path) -> None:
    histogram, selection = released("Laplace", folder), released("most common", folder)
    assert private.CHECK.recount(histogram[0], most_common.CHECK.reopen(selection[0], (selection[1],))) is not None
    assert most_common.CHECK.recount(selection[0], private.CHECK.reopen(histogram[0], (histogram[1],))) is not None


def test_the_guarantee_of_unknown_bins_has_the_delta_of_threshold_and_noise(folder: Path) -> None:
    for way, parts in (("unknown bins", 1), ("unknown bins, Gaussian", 2)):
        basis = released(way, folder)[0].basis
        hidden = basis.need(HideUnknown)
        assert basis.guarantee.loss == Approximate(Fraction(hidden.epsilon), parts * hidden.delta)
        assert basis.guarantee.delta == parts * hidden.delta


@pytest.mark.parametrize("base", [1, 2, 5, 6])
def test_counts_are_rounded_as_the_releases_are(base: int) -> None:
    counts = np.arange(-20, 40)
    assert partition.rounded(counts, base).tolist() == [contents.rounded(int(count), base) for count in counts]


def test_noise_too_narrow_or_too_wide_to_write_out_is_given_no_credit() -> None:
    for scale in (Fraction(1, 10**9), Fraction(10**9)):
        assert contents.noise_delta(Law.GAUSSIAN, scale, Unit(), Fraction(1)) == 1.0
    assert contents.noise_delta(Law.LAPLACE, Fraction(3), Unit(adjacency=Adjacency.REPLACE), Fraction(1, 3)) == 1.0
    assert contents.tail(Law.LAPLACE, Fraction(1, 10**400), 1) == 0.0
