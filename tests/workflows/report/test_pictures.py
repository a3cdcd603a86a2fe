"""Every method says and draws what its releases show, in memory as in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from incrowd.verifier.judge import statement_of
from incrowd.workflows.coarsen.method import Coarser, coarsen
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.registry import method_names, names, picture_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.report.page import public_report
from tests.contract.examples import POLICIES, rows
from tests.policies import PEOPLE, changed, people, with_ledger, written

COUNTS = {"method": "suppressed-histogram", "columns": ["sex", "age"], "levels": {"age": 1}, "k": 20}


@pytest.mark.parametrize("name", method_names())
def test_a_release_is_described_counted_and_drawn(name: str, tmp_path: Path) -> None:
    policy = next(iter(POLICIES[name].values()))
    released = release(rows(), with_ledger(policy, tmp_path))
    own, certificate = picture_of(name), released.certificate
    assert own is not None
    description, page = own.description(statement_of(certificate)), released.report()
    assert str(description.short) in page
    shown = page.split('id="evidence"')[1].split("</section>")[0]
    assert "<table" in str(own.draw(statement_of(certificate), released.result))
    assert str(own.draw(statement_of(certificate), released.result)) in shown
    assert any(words in shown for words in (own.evidence or {}).values())


@pytest.mark.parametrize("name", list(names()))
def test_everything_that_is_certified_has_words_of_its_own(name: str) -> None:
    own = picture_of(name)
    assert own is not None
    assert all(callable(part) for part in (own.description, own.draw))


@pytest.mark.parametrize(
    ("release_section", "words"),
    [
        (
            {"method": "safe", "levels": {"age": 1, "zip": 2}, "rate": 1, "k": 20},
            "by how many rows have the same values",
        ),
        (COUNTS, "Every count is a sum of released ones"),
    ],
)
def test_a_coarser_table_is_drawn_as_what_it_is(release_section: dict[str, Any], words: str, tmp_path: Path) -> None:
    policy = written(changed(PEOPLE, release=release_section, budget={"unbounded": "an old rule"}), tmp_path)
    release_to(people(), policy, Destination(tmp_path / "out", "csv"))
    coarser = coarsen(tmp_path / "out", load_policy(policy), Coarser(columns=("sex",)), tmp_path / "coarser")
    page = (tmp_path / "coarser" / "report.html").read_text(encoding="utf-8")
    assert page == public_report(coarser.certificate, coarser.result)
    assert words in page
    assert "Make coarser" in page
