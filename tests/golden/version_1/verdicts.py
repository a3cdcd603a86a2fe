"""What `verify` says of a golden folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.workflows.verify.verify import verify
from tests.golden.version_1.files import FOLDER, FOLDERS


def verdict(entry: Mapping[str, Any], ledgers: Path | None = None) -> dict[str, Any]:
    """Return all findings about a folder of the index: alone, or with the ledger, the key and the parent it has."""
    ledger, key, parent = None, None, None
    if ledgers is not None:
        ledger = Ledger.open(f"sqlite:///{ledgers / entry['ledger']}")
        key = FOLDER / "key.pub" if entry["signed"] else None
        parent = FOLDERS / entry["parent"] if "parent" in entry else None
    found = verify(FOLDERS / entry["folder"], ledger=ledger, trusted=key, parent=parent)
    lines = [f"{each.verdict}: {each.about}: {each.why}" for each in found.findings]
    return {"passed": found.passed, "complete": found.complete, "findings": lines}
