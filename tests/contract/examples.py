"""For every method: policies that use it in different ways, and the rows to go with them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.policies import PEOPLE, changed, people

ROWS = 400


def rows() -> pa.Table:
    """Return people with ids, of whom some have several rows and some none."""
    ids = [None if n % 40 == 0 else f"p{n * 3 // 4}" for n in range(ROWS)]
    return people(ROWS, seed=21).append_column("id", pa.array(ids, pa.string()))


_PERSON = {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id"}}
POLICIES: dict[str, dict[str, dict[str, Any]]] = {
    "safe": {
        "k solved": PEOPLE,
        "epsilon solved": changed(PEOPLE, release__k=25, release__target={"delta": "1e-4"}),
        "rate solved": changed(PEOPLE, release__k=12, release__rate=None),
        "no sample": changed(PEOPLE, release__k=5, release__rate=1, budget={"unbounded": "public since 2020"}),
        "people": changed(PEOPLE, **_PERSON),
        "people with two rows": changed(
            PEOPLE, **_PERSON, dataset__unit__max_rows=2, release__levels={"age": 3, "zip": 2}
        ),
        "replaced": changed(PEOPLE, dataset__unit={"adjacency": "replace-one"}),
        "drafted": changed(PEOPLE, columns__sex__derived="rows", budget={"unbounded": "for the archive"}),
        "values themselves": changed(PEOPLE, release__levels={"age": 3, "zip": 2}, release__weights=True),
    },
}
EXAMPLES = [(method, name) for method, ways in POLICIES.items() for name in ways]
