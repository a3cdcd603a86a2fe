"""A biased sample: the accountant, the second derivation, and brute force over unequal coins agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import SampleReused
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, people, written
from tests.released import Folder, problems, release_into

RATES = {"low": "0.05", "high": "0.1", "irregular": 2}
ROBUST: dict[str, Any] = {
    "release__rate": None,
    "release__k": 30,
    "release__epsilon": None,
    "release__delta": "1e-6",
    "release__robust": RATES,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return release_into(tmp_path_factory.mktemp("robust") / "release", **ROBUST)


def test_a_release_of_a_biased_sample_is_verified_with_all_its_claims(made: Folder) -> None:
    found = verify(made.out, ledger=Ledger.open(made.ledger))
    assert found.passed
    assert found.complete
    kinds = [claim.kind for claim in found.certificate.claims]
    assert kinds[:2] == ["approximate differential privacy", "zero-knowledge with respect to robust sampling"]
    assert {"crowd-blending", "k-anonymity"} <= set(kinds)
    assert "sample that others drew" in (made.out / "report.html").read_text()


def test_a_second_release_of_a_biased_sample_is_refused(made: Folder) -> None:
    policy = written(changed(PEOPLE, **ROBUST), made.path, "again.yaml")
    with pytest.raises(SampleReused, match="incrowd coarsen"):
        release_to(people(), policy, Destination(made.path / "again"))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("claims", 0, "parameters", "epsilon"), "0.5"),
        (("claims", 0, "parameters", "irregular"), 0),
        (("claims", 0, "parameters", "adjacency"), "replace-one"),
        (("claims", 1, "parameters", "high"), "1/20"),
        (("claims", 2, "parameters", "delta"), "1e-9"),
        (("steps", 0, "irregular"), 0),
        (("steps", 0, "drawn"), "here"),
        (("steps", 0, "rate"), "1/20"),
        (("guarantee", "loss", "irregular"), 0),
    ],
)
def test_a_changed_number_is_found(made: Folder, tmp_path: Path, place: tuple[str | int, ...], value: object) -> None:
    copy = made.copied(tmp_path / "copy")
    copy.forge(place, lambda _: value)
    assert problems(copy.out)


def test_a_smaller_epsilon_fails_even_where_the_whole_certificate_tells_it(made: Folder, tmp_path: Path) -> None:
    copy = made.copied(tmp_path / "copy")
    places = (("accounting", "spent", "epsilon"), ("accounting", "total", "epsilon"))
    for place in (*places, ("claims", 0, "parameters", "epsilon")):
        copy.forge(place, lambda _: "0.9")
    assert problems(copy.out)
