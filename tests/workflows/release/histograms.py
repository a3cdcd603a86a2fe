"""Histograms and selections, released into folders, to be tampered with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from incrowd.verifier.check import Verdict
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, people

BINS: dict[str, Any] = {"columns": ["sex", "age"], "levels": {"age": 2}}
SAMPLE: dict[str, Any] = {"rate": "1/5", "epsilon": 1, "delta": "1e-4"}
ANYHOW = {"budget": {"unbounded": "published since 1990"}}
PERSON = {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id", "max_rows": 2}}
REPLACED = {"dataset__unit": {"adjacency": "replace-one"}}
SUPPRESSED = {"method": "suppressed-histogram", **BINS, **SAMPLE}
BLENDED = {"method": "blended-histogram", **BINS, **SAMPLE, "noise_epsilon": 1, "flag": True}
NOISY = {"method": "private-histogram", **BINS, "epsilon": 1}
COMMON = {"method": "most-common", **BINS, "epsilon": 1, "top": 3}
WAYS: dict[str, dict[str, Any]] = {
    "suppressed": {"release": SUPPRESSED},
    "suppressed for good": {"release": {"method": "suppressed-histogram", **BINS, "k": 5}, **ANYHOW},
    "suppressed at an open level": {"release": {**SUPPRESSED, "columns": ["zip", "sex"], "levels": {"zip": 1}}},
    "blended": {"release": BLENDED},
    "blended for good": {"release": {"method": "blended-histogram", **BINS, "k": 5, "noise_epsilon": 1}, **ANYHOW},
    "blended and rounded": {"release": {**BLENDED, "round": 5, "flag": False}},
    "blended for people": {"release": BLENDED, **PERSON},
    "blended for the replaced": {"release": BLENDED, **REPLACED},
    "Laplace": {"release": NOISY},
    "Laplace on a sample for people": {"release": {**NOISY, "rate": "1/5"}, **PERSON},
    "Gaussian": {"release": {**NOISY, "noise": "gaussian", "delta": "1e-6"}},
    "Gaussian for people": {"release": {**NOISY, "noise": "gaussian", "delta": "1e-6"}, **PERSON},
    "unknown bins": {
        "release": {"method": "private-histogram", "levels": {"zip": 1, "age": 2}, "epsilon": 1, "delta": "1e-6"}
    },
    "most common": {"release": COMMON},
    "winner": {"release": {**COMMON, "top": 1, "counts": False}, **REPLACED},
}


def rows() -> pa.Table:
    return people(1500).append_column("id", pa.array([str(n // 2) for n in range(1500)]))


def released(way: str, folder: Path, form: str = "csv") -> Path:
    """Release in one of the ways, and return the folder."""
    policy = changed(PEOPLE, ledger=f"sqlite:///{folder}/ledger.sqlite", **WAYS[way])
    release_to(rows(), policy, Destination(folder / "out", form))
    return folder / "out"


def undecided(folder: Path) -> list[str]:
    """What a verification could not decide, besides what nobody can know here."""
    known = ("assumption", "ledger", "signature")
    found = verify(folder).findings
    return [each.about for each in found if each.verdict is Verdict.UNKNOWN and each.about not in known]


def certificate(folder: Path) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads((folder / "certificate.json").read_text())
    return plain


def step(plain: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in plain["steps"] if each["step"] == name)
    return found
