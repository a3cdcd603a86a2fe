"""The steps of a histogram, as its certificate tells them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from incrowd.core.domain import Provenance
from incrowd.core.unit import Kind, Unit
from incrowd.methods.histograms.partition import Partition

Step = Mapping[str, Any]


def counted(partition: Partition, unit: Unit, rate: Fraction | None, listed: str) -> list[Step]:
    """Return the steps up to the counts: whose rows, which sample, which recoding, which bins and which are listed."""
    steps: list[Step] = [_sample(rate), {"step": "recode", "columns": _recodings(partition)}]
    if unit.kind is Kind.PERSON:
        rule = {"column": unit.column, "rows": unit.max_rows, "rule": "at random among a person's own"}
        steps.insert(0, {"step": "keep rows of each person", **rule})
    size = "not known before rows are read" if partition.size is None else partition.size
    return [*steps, {"step": "count", "bins": size, "listed": listed, "columns": partition.told()}]


def published(base: int, *, flagged: bool) -> Step:
    """Return the last step: in which order and how rounded counts are published, and whether exact ones are marked."""
    return {"step": "publish counts", "by": "declared classes", "round": base, "exact": flagged}


def _sample(rate: Fraction | None) -> Step:
    if rate is None:
        return {"step": "sample", "rate": "1", "design": "none: every row is read"}
    return {
        "step": "sample",
        "rate": str(rate),
        "design": "Poisson, one secret coin per row",
        "coins": "AES-256 in counter mode under a key from the operating system, forgotten afterwards",
    }


def _recodings(partition: Partition) -> list[dict[str, Any]]:
    return [
        {
            "column": recoding.column.name,
            "level": recoding.level,
            "of": recoding.column.hierarchy.height,
            "rule": recoding.column.hierarchy.rule,
            "provenance": _words(recoding.column.hierarchy.provenance),
            "missing": str(recoding.column.missing),
            "outside": str(recoding.column.rule_outside) if recoding.column.domain.closed else "nothing is outside",
        }
        for recoding in partition.cells.recodings
    ]


def _words(provenance: Provenance) -> str:
    return f"drafted from rows, vouched for by {provenance.public}" if provenance.derived else "declared"
