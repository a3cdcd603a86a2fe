"""Model cards: the fields of registries, the guarantee with its conditions, and nothing for what is not a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from ruamel.yaml import YAML

from incrowd.errors import InvalidParameter
from incrowd.workflows.export.formats import PublisherInfo, exported
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "bounds": [0, 99], "outside": "bound"},
    "ville": {"categories": ["Orléans", "Łódź"]},
}


def released(release: dict[str, Any], folder: Path) -> Path:
    policy = {
        "incrowd": 1,
        "dataset": {"name": "villes"},
        "columns": COLUMNS,
        "release": {"epsilon": 2, **release},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }
    rows = pa.table({"age": [20, 60] * 200, "ville": ["Orléans", "Łódź"] * 200})
    release_to(rows, policy, Destination(folder / "out"))
    return folder / "out"


def test_a_card_has_the_fields_of_registries_and_the_guarantee(tmp_path: Path) -> None:
    out = released({"method": "classifier", "target_column": "ville", "delta": "1e-6"}, tmp_path)
    made = exported(out, "model-card", PublisherInfo(license="https://example.org/licence"))
    _, head, body = made.content.decode().split("---\n", 2)
    fields = YAML(typ="safe").load(head)
    assert fields["pipeline_tag"] == "tabular-classification"
    assert "differential-privacy" in fields["tags"]
    assert fields["license_link"] == "https://example.org/licence"
    for words in ("## Privacy guarantee", "ε", "assumed: no software can check it", "Orléans", "incrowd verify"):
        assert words in body
    assert max(map(len, body.splitlines())) < 2000


def test_a_table_has_no_model_card(tmp_path: Path) -> None:
    out = released({"method": "private-histogram"}, tmp_path)
    with pytest.raises(InvalidParameter, match="choose croissant"):
        exported(out, "model-card")
