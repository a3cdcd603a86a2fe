from __future__ import annotations

from pathlib import Path
from typing import Any

from incrowd.workflows.plan.warnings import drafted_lines, vouched, vouched_words
from incrowd.workflows.policy.policy import load_policy
from tests.policies import PEOPLE, changed, with_ledger


def lines(tmp_path: Path, **changes: Any) -> Any:
    return load_policy(with_ledger(changed(PEOPLE, **changes), tmp_path))


def test_each_line_that_was_read_off_the_rows_is_named_with_what_to_write(tmp_path: Path) -> None:
    policy = lines(tmp_path, columns__sex__derived="rows", columns__zip__hierarchy__derived="rows")
    assert drafted_lines(policy) == (
        'columns.sex.categories comes from the data: write public: "source" below it',
        'columns.zip.hierarchy comes from the data: write public: "source" below it',
    )


def test_what_is_held_back_is_named_too(tmp_path: Path) -> None:
    policy = lines(tmp_path, columns__sex__derived="rows", columns__sex__role="identifier")
    assert drafted_lines(policy)[0].endswith('to release it write role: quasi, and public: "source"')


def test_the_guarantee_that_vouching_would_give_is_told(tmp_path: Path) -> None:
    declared = lines(tmp_path)
    drafted = lines(tmp_path, columns__sex__derived="rows")
    assert vouched(declared) is None
    assert vouched_words(declared) is None
    assert vouched(drafted).loss == declared.plan.guarantee.loss  # type: ignore[union-attr]
    assert str(vouched_words(drafted)).startswith("with public sources, the guarantee becomes epsilon ")


def test_what_has_no_epsilon_anyway_is_told_so(tmp_path: Path) -> None:
    policy = lines(
        tmp_path, columns__sex__derived="rows", release={"method": "full-domain", "k": 2, "lowest": {"zip": 1}}
    )
    assert "still has no epsilon" in str(vouched_words(policy))
