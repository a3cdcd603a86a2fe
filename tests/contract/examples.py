"""For every method: policies that use it in different ways, and the rows to go with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.policies import PEOPLE, changed, people

ROWS = 400
_ITEMS = ("tea", "milk", "bread", "wine", "beer", "flowers")


def rows() -> pa.Table:
    """Return people with ids, of whom some have several rows and some none, and with what they bought."""
    ids = [None if n % 40 == 0 else f"p{n * 3 // 4}" for n in range(ROWS)]
    bought = ["+".join(item for place, item in enumerate(_ITEMS) if n % (place + 2) == 0) for n in range(ROWS)]
    table = people(ROWS, seed=21).append_column("id", pa.array(ids, pa.string()))
    table = table.append_column("weight", pa.array([1.5 + n % 7 for n in range(ROWS)]))
    table = table.append_column("home", pa.array([f"h{n // 2}" for n in range(ROWS)], pa.string()))
    table = table.append_column("record", pa.array([f"r{n}" for n in range(ROWS)], pa.string()))
    return table.append_column("bought", pa.array([each or None for each in bought], pa.string()))


_PERSON = {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id"}}
_ANYHOW = {"budget": {"unbounded": "public since 2020"}}
_BINS: dict[str, Any] = {"columns": ["sex", "age"], "levels": {"age": 2}}
_SAMPLE: dict[str, Any] = {"rate": "1/2", "epsilon": 2, "delta": "1e-4"}
_BLENDED = {"method": "blended-histogram", **_BINS, "noise_epsilon": 1, **_SAMPLE}
_NOISY = {"method": "private-histogram", **_BINS, "epsilon": 1}
_COMMON = {"method": "most-common", **_BINS, "epsilon": 1}
_FORM = {"unbounded": "compared with other tools"}
_POINTS: dict[str, Any] = {"method": "points", "columns": ["age"], "s": 5, **_SAMPLE}
_GENERALIZED = {"method": "full-domain", "k": 5, "lowest": {"zip": 1}}
_LOCAL = {"method": "local-recoding", "k": 5, "lowest": {"zip": 1}}
_CELLS: dict[str, Any] = {"method": "cell-suppression", "k": 5, "levels": {"zip": 1}}
_MONDRIAN = {"method": "mondrian", "k": 5, "levels": {"zip": 1}}
_BOUGHT: dict[str, Any] = {
    "separator": "+",
    "hierarchy": {"tree": {"drinks": ["tea", "milk", "wine", "beer"], "other goods": ["bread", "flowers"]}},
}
_ITEMSETS = {"columns__zip": None, "columns__bought": _BOUGHT, "budget": _FORM}
_EACH = {"l": 2, "recursive": {"c": 9, "l": 2}, "t": "2/5", "beta": 1, "disclosure": 3, "harmless": ["M"]}
_PARTITION = {
    "method": "partition",
    "choosing": 1,
    "rate": "1/2",
    "epsilon": 1,
    "delta": "1e-4",
    "levels": {"age": 1, "zip": 2},
    "least": 100,
}
_SLICING: dict[str, Any] = {
    "method": "slicing",
    "groups": [["sex", "age"], ["zip"]],
    "levels": {"age": 2, "zip": 1},
    "rate": "1/2",
    "epsilon": 2,
    "delta": "1e-4",
}
_TABLE: dict[str, Any] = {"method": "protected-table", "columns": ["sex", "age"], "levels": {"age": 1}}
_RECORDS = {"columns__record": {"role": "identifier"}, "dataset__unit": {"column": "record", "more": "refuse"}}
_NOISE = {"largest": 5, "variance": 2, "gap": 2}
_KEY = str(Path(__file__).parent / "record.key")
_MASKED: dict[str, Any] = {"budget": _FORM, "columns__age__missing": "drop", "columns__zip__role": "plain"}
_MODEL: dict[str, Any] = {
    "method": "marginals",
    "epsilon": 2,
    "delta": "1e-4",
    "levels": {"zip": 2, "age": 1},
}
_COMPARED: dict[str, Any] = {
    **_MODEL,
    "method": "comparison",
    "candidates": {"adaptive": {"rounds": 3}, "tree": {"method": "tree"}},
}
_SEX: dict[str, Any] = {
    "method": "classifier",
    "target_column": "sex",
    "columns": ["age", "zip"],
    "epsilon": 2,
    "delta": "1e-4",
}
_ZIPS = {"columns__zip": {"categories": ["02100", "02200", "94100", "94200"]}}
_AGE: dict[str, Any] = {
    "method": "regressor",
    "target_column": "age",
    "columns": ["sex"],
    "epsilon": 2,
    "delta": "1e-4",
}
_CLUSTERS: dict[str, Any] = {
    "method": "kmeans",
    "clusters": 3,
    "columns": ["sex", "age"],
    "epsilon": 2,
    "delta": "1e-4",
}
_COMPONENTS: dict[str, Any] = {
    "method": "pca",
    "components": 2,
    "columns": ["sex", "age"],
    "epsilon": 2,
    "delta": "1e-4",
}
_TUNED: dict[str, Any] = {
    "method": "tuning",
    "target_column": "sex",
    "models": ["naive-bayes"],
    "column_sets": {"both": ["age", "zip"], "age": ["age"]},
    "runs": 2,
    "epsilon": 2,
    "delta": "1e-4",
}
_TUNED_NUMBERS: dict[str, Any] = {
    "method": "tuning",
    "target_column": "age",
    "models": ["moments", "additive"],
    "column_sets": {"sex": ["sex"]},
    "runs": 2,
    "epsilon": 2,
    "delta": "1e-4",
}
_LEVEL = {"levels": {"zip": 1}}
_SURVEY: dict[str, Any] = {
    **_MASKED,
    "columns__weight": {"role": "weight", "type": "decimal", "missing": "drop"},
    "columns__sex__role": "strata",
}
_COINED = {"sex": {"stay": "4/5"}, "zip": {"stay": "3/4"}, "age": {"stay": "1/2"}}
_CHOSEN_GROUPS: dict[str, Any] = {"groups": "auto", "choosing": "0.5", "size": 2}
POLICIES: dict[str, dict[str, dict[str, Any]]] = {
    "safe": {
        "k solved": PEOPLE,
        "epsilon solved": changed(PEOPLE, release__k=25, release__epsilon=None, release__delta="1e-4"),
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
    "scheme": {
        "k solved": changed(PEOPLE, release__method="scheme", release__levels=None, release__choosing="0.2"),
        "levels auto": changed(PEOPLE, release__levels="auto", release__choosing="0.2", release__highest={"age": 2}),
        "people": changed(PEOPLE, **_PERSON, release__levels="auto", release__choosing="1/2"),
    },
    "suppressed-histogram": {
        "k solved": changed(PEOPLE, release__method="suppressed-histogram"),
        "no sample": changed(PEOPLE, release={"method": "suppressed-histogram", "columns": ["sex"], "k": 5}, **_ANYHOW),
        "rounded": changed(PEOPLE, release__method="suppressed-histogram", release__round=5, **_PERSON),
    },
    "blended-histogram": {
        "k solved": changed(PEOPLE, release=_BLENDED),
        "epsilon solved": changed(
            PEOPLE, release=_BLENDED, release__k=20, release__epsilon=None, release__delta="1e-4"
        ),
        "rate solved": changed(PEOPLE, release=_BLENDED, release__k=12, release__rate=None, release__flag=True),
        "no sample": changed(
            PEOPLE,
            release=_BLENDED,
            release__epsilon=None,
            release__delta=None,
            release__rate=1,
            release__k=5,
            **_ANYHOW,
        ),
        "people with two rows": changed(PEOPLE, **_PERSON, dataset__unit__max_rows=2, release=_BLENDED),
        "replaced": changed(PEOPLE, dataset__unit={"adjacency": "replace-one"}, release=_BLENDED, release__clamp=False),
    },
    "private-histogram": {
        "Laplace": changed(PEOPLE, release=_NOISY),
        "within an error": changed(PEOPLE, release=_NOISY, release__epsilon=None, release__error=10),
        "Gaussian": changed(PEOPLE, release=_NOISY, release__noise="gaussian", release__delta="1e-6"),
        "sampled": changed(PEOPLE, release=_NOISY, release__rate="1/2", release__clamp=True),
        "unknown bins": changed(
            PEOPLE,
            release={"method": "private-histogram", "levels": {"age": 3, "zip": 1}, "epsilon": 2, "delta": "1e-4"},
        ),
        "people with two rows": changed(PEOPLE, **_PERSON, dataset__unit__max_rows=2, release=_NOISY),
        "replaced": changed(PEOPLE, dataset__unit={"adjacency": "replace-one"}, release=_NOISY),
    },
    "most-common": {
        "with counts": changed(PEOPLE, release=_COMMON, release__top=3),
        "without counts": changed(PEOPLE, release=_COMMON, release__counts=False),
        "people with two rows": changed(PEOPLE, **_PERSON, dataset__unit__max_rows=2, release=_COMMON),
    },
    "marginals": {
        "adaptive": changed(PEOPLE, release=_MODEL),
        "people with two rows": changed(
            PEOPLE, **_PERSON, dataset__unit__max_rows=2, release=_MODEL, release__rows=100
        ),
        "replaced": changed(PEOPLE, dataset__unit={"adjacency": "replace-one"}, release=_MODEL, release__rounds=3),
        "each table": changed(PEOPLE, release=_MODEL, release__errors="tables", release__rounds=3),
    },
    "tree": {
        "pairs": changed(PEOPLE, release=_MODEL, release__method="tree"),
        "people with two rows": changed(
            PEOPLE,
            **_PERSON,
            dataset__unit__max_rows=2,
            release=_MODEL,
            release__method="tree",
            release__errors="tables",
        ),
    },
    "comparison": {
        "two ways": changed(PEOPLE, release=_COMPARED),
        "people with two rows, replaced": changed(
            PEOPLE,
            **_PERSON,
            dataset__unit__max_rows=2,
            dataset__unit__adjacency="replace-one",
            release=_COMPARED,
            release__rows=100,
        ),
    },
    "classifier": {
        "gradient": changed(PEOPLE, **_ZIPS, release=_SEX),
        "pure": changed(PEOPLE, **_ZIPS, release=_SEX, release__delta=None),
        "additive, people with two rows": changed(
            PEOPLE, **_ZIPS, **_PERSON, dataset__unit__max_rows=2, release=_SEX, release__model="additive"
        ),
        "moments, replaced": changed(
            PEOPLE, **_ZIPS, dataset__unit={"adjacency": "replace-one"}, release=_SEX, release__model="moments"
        ),
        "few rows": changed(PEOPLE, **_ZIPS, release=_SEX, release__expected_rows=400, release__levels={"age": 1}),
        "tree, people with two rows": changed(
            PEOPLE, **_ZIPS, **_PERSON, dataset__unit__max_rows=2, release=_SEX, release__model="tree"
        ),
        "random trees": changed(PEOPLE, **_ZIPS, release=_SEX, release__model="random-trees", release__depth=3),
        "stream": changed(
            PEOPLE,
            **_ZIPS,
            release=_SEX,
            release__model="stream",
            release__columns=["age"],
            release__expected_rows=400,
        ),
    },
    "regressor": {
        "moments": changed(PEOPLE, release=_AGE),
        "people": changed(PEOPLE, **_PERSON, release=_AGE),
        "linear": changed(PEOPLE, release=_AGE, release__model="linear"),
        "additive": changed(PEOPLE, release=_AGE, release__model="additive"),
        "forest": changed(PEOPLE, release=_AGE, release__model="forest", release__expected_rows=400),
        "stream": changed(PEOPLE, release=_AGE, release__model="stream", release__expected_rows=400),
    },
    "kmeans": {
        "rows": changed(PEOPLE, release=_CLUSTERS),
        "people with two rows": changed(PEOPLE, **_PERSON, dataset__unit__max_rows=2, release=_CLUSTERS),
        "grid": changed(PEOPLE, release=_CLUSTERS, release__columns=["age"], release__expected_rows=400),
    },
    "pca": {
        "rows": changed(PEOPLE, release=_COMPONENTS),
        "people": changed(PEOPLE, **_PERSON, release=_COMPONENTS),
    },
    "tuning": {
        "models and columns": changed(PEOPLE, **_ZIPS, release=_TUNED),
        "pure": changed(PEOPLE, **_ZIPS, release=_TUNED, release__delta=None),
        "numbers": changed(PEOPLE, release=_TUNED_NUMBERS),
        "folds, people with two rows": changed(
            PEOPLE, **_ZIPS, **_PERSON, dataset__unit__max_rows=2, release=_TUNED, release__folds=2
        ),
    },
    "points": {
        "noisy": changed(PEOPLE, release=_POINTS, release__noise_epsilon=1),
        "suppressed": changed(PEOPLE, release=_POINTS, release__place="uniform"),
        "people": changed(PEOPLE, **_PERSON, release=_POINTS),
        "no sample": changed(PEOPLE, release={"method": "points", "columns": ["age"], "s": 5, "k": 5}, **_ANYHOW),
    },
    "full-domain": {
        "loss": changed(PEOPLE, release=_GENERALIZED, budget=_FORM),
        "suppressed": changed(
            PEOPLE, release=_GENERALIZED, release__suppression="1/10", release__quality="discernibility", budget=_FORM
        ),
        "diverse, of people": changed(
            PEOPLE, **_PERSON, columns__sex__role="sensitive", release=_GENERALIZED, release__l=2, budget=_FORM
        ),
        "close": changed(PEOPLE, columns__sex__role="sensitive", release=_GENERALIZED, release__t="1/5", budget=_FORM),
        "each column, all together": changed(
            PEOPLE,
            columns__sex__role="sensitive",
            release=_GENERALIZED,
            release__suppression="1/10",
            release__sensitive={"sex": _EACH},
            release__average_risk="1/5",
            release__unique={"share": "1/100", "people": 10000},
            budget=_FORM,
        ),
    },
    "local-recoding": {
        "rounds": changed(PEOPLE, release=_LOCAL, budget=_FORM),
        "some left out, of people": changed(
            PEOPLE,
            **_PERSON,
            columns__sex__role="sensitive",
            release=_LOCAL | {"l": 2, "suppression": "1/10", "left": "1/2", "rounds": 3},
            budget=_FORM,
        ),
        "close": changed(PEOPLE, columns__sex__role="sensitive", release=_LOCAL, release__t="1/5", budget=_FORM),
    },
    "cell-suppression": {
        "missing is a value": changed(PEOPLE, release=_CELLS, budget=_FORM),
        "missing matches": changed(
            PEOPLE, release=_CELLS, release__missing="matches", release__importance={"age": 2}, budget=_FORM
        ),
        "subsets": changed(PEOPLE, release=_CELLS, release__k=1, release__subsets={"1": 9, "2": 4}, budget=_FORM),
        "people with two rows": changed(
            PEOPLE, **_PERSON, columns__sex__role="sensitive", dataset__unit__max_rows=2, release=_CELLS, budget=_FORM
        ),
    },
    "mondrian": {
        "ranges": changed(PEOPLE, release=_MONDRIAN, budget=_FORM),
        "relaxed, nodes": changed(
            PEOPLE, release=_MONDRIAN, release__relaxed=True, release__show="nodes", budget=_FORM
        ),
        "people with two rows": changed(PEOPLE, **_PERSON, dataset__unit__max_rows=2, release=_MONDRIAN, budget=_FORM),
        "each column": changed(
            PEOPLE, columns__sex__role="sensitive", release=_MONDRIAN, release__sensitive={"sex": _EACH}, budget=_FORM
        ),
    },
    "itemsets": {
        "beside others": changed(
            PEOPLE, **_ITEMSETS, release={"method": "itemsets", "k": 5, "m": 2, "levels": {"age": 2}}
        ),
        "alone, some left out": changed(
            PEOPLE,
            **_ITEMSETS,
            columns__age__role="sensitive",
            columns__sex=None,
            release={"method": "itemsets", "k": 4, "m": 3, "suppression": "1/10", "levels": {"age": 2}},
        ),
    },
    "partition": {
        "k solved": changed(PEOPLE, release=_PARTITION),
        "people": changed(PEOPLE, **_PERSON, release=_PARTITION),
    },
    "slicing": {
        "k solved": changed(PEOPLE, release=_SLICING),
        "groups chosen": changed(PEOPLE, release=_SLICING | _CHOSEN_GROUPS),
        "one release, split": changed(PEOPLE, release=_SLICING, release__sample="joint"),
        "people with two rows": changed(
            PEOPLE, **_PERSON, dataset__unit__max_rows=2, release=_SLICING, release__epsilon=4
        ),
    },
    "protected-table": {
        "counts": changed(PEOPLE, release=_TABLE, release__minimum=15, release__protection=3, budget=_FORM),
        "a list": changed(
            PEOPLE,
            release={
                "method": "protected-table",
                "tables": [
                    {"columns": ["sex", "age"], "levels": {"age": 1}},
                    {"columns": ["age"], "levels": {"age": 2}},
                ],
                "minimum": 15,
                "protection": 3,
            },
            budget=_FORM,
        ),
        "sums of holdings": changed(
            PEOPLE,
            **_PERSON,
            dataset__unit__max_rows=3,
            release={"method": "protected-table", "columns": ["sex"], "value": "age", "p": "1/10", "minimum": 3},
            budget=_FORM,
        ),
        "rounded": changed(PEOPLE, release=_TABLE, release__protect="rounding", release__base=5, budget=_FORM),
        "adjusted": changed(PEOPLE, release=_TABLE, release__protect="adjustment", release__minimum=5, budget=_FORM),
        "record keys": changed(
            PEOPLE,
            **_RECORDS,
            release=_TABLE,
            release__protect="cell-key",
            release__noise=_NOISE,
            release__key=_KEY,
            budget=_FORM,
        ),
    },
    "microaggregation": {
        "of all quasi-identifiers": changed(
            PEOPLE,
            **_MASKED,
            release={"method": "microaggregation", "columns": ["sex", "age"], "k": 4, "grouping": "gower", **_LEVEL},
        ),
    },
    "noise": {
        "uncorrelated": changed(PEOPLE, **_MASKED, release={"method": "noise", "columns": ["age"], **_LEVEL}),
    },
    "orthogonal": {
        "blocks": changed(PEOPLE, **_MASKED, release={"method": "orthogonal", "columns": ["age"], **_LEVEL}),
    },
    "rank-swap": {
        "neighbors": changed(PEOPLE, **_MASKED, release={"method": "rank-swap", "columns": ["age"], **_LEVEL}),
    },
    "record-swap": {
        "rows": changed(
            PEOPLE,
            **_MASKED,
            release={"method": "record-swap", "area": "zip", "similar": ["sex"], "risk": ["age"], **_LEVEL},
        ),
    },
    "pram": {
        "every column": changed(
            PEOPLE,
            dataset__unit={"adjacency": "replace-one"},
            budget={"epsilon": 20},
            columns__zip={"role": "quasi", "categories": ["10001", "10002", "10003"]},
            release={"method": "pram", "columns": _COINED, "levels": {"age": 2}},
        ),
        "one column, invariant": changed(
            PEOPLE,
            **_MASKED,
            release={"method": "pram", "columns": {"sex": {"stay": "4/5", "invariant": True}}, **_LEVEL},
        ),
    },
    "shuffle": {
        "given others": changed(
            PEOPLE, **_MASKED, release={"method": "shuffle", "columns": ["age"], "given": ["sex"], **_LEVEL}
        ),
    },
    "coding": {
        "both ends": changed(
            PEOPLE, **_MASKED, release={"method": "coding", "columns": {"age": {"bottom": 20, "top": 70}}, **_LEVEL}
        ),
    },
    "rounding": {
        "random": changed(
            PEOPLE, **_MASKED, release={"method": "rounding", "columns": {"age": 5}, "direction": "random", **_LEVEL}
        ),
    },
    "local-suppression": {
        "by frequency": changed(
            PEOPLE, **_MASKED, release={"method": "local-suppression", "threshold": 1 / 5, **_LEVEL}
        ),
        "by weights, whole households": changed(
            PEOPLE,
            **_SURVEY,
            columns__home={"role": "household"},
            release={"method": "local-suppression", "threshold": "1/20", "risk": "survey", **_LEVEL},
        ),
    },
    "calibration": {
        "of strata": changed(PEOPLE, **_SURVEY, release={"method": "calibration", **_LEVEL}),
    },
}
EXAMPLES = [(method, name) for method, ways in POLICIES.items() for name in ways]
