"""Policies and rows of the golden files: every method in every way that leads to other steps or other claims.

`make` wrote them down in `inputs/` once; what is tested is read from there, never from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.contract import examples
from tests.policies import changed

SIZE = 320
Policies = dict[str, dict[str, Any]]

_ILL = {"chronic": ["asthma", "diabetes"], "acute": ["flu", "cough", "injury"]}
_JOBS = {"nurse": "care", "doctor": "care", "cook": "trade", "baker": "trade", "clerk": "office", "judge": "office"}
COLUMNS: dict[str, dict[str, Any]] = {
    "sex": {"categories": ["F", "M"]},
    "age": {"type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [10, 50]}},
    "region": {"hierarchy": {"tree": {"north": ["A", "B"], "south": ["C", "D"]}}},
    "day": {"type": "date", "bounds": ["2024-01-01", "2025-12-31"], "hierarchy": {"dates": ["quarter", "year"]}},
    "income": {"type": "integer", "bounds": [0, 90000], "hierarchy": {"cuts": [[30000, 60000]]}},
    "ill": {"hierarchy": {"tree": _ILL}},
    "grade": {"categories": ["1", "2", "3", "4"], "hierarchy": {"groups": [2]}},
    "code": {"hierarchy": {"redaction": 3}},
    "job": {"hierarchy": {"file": "jobs.csv"}},
    "site": {"role": "identifier", "hierarchy": {"pseudonym": "site.key"}},
    "x": {"type": "decimal", "bounds": [0, 1], "outside": "ends"},
    "y": {"type": "decimal", "bounds": [-1, 1], "outside": "ends"},
    "member": {"type": "boolean"},
    "id": {"role": "identifier"},
    "chance": {"type": "decimal", "bounds": ["0.05", "0.3"], "role": "identifier"},
}


def wide() -> pa.Table:
    """Return people with columns of every kind as text; some have several rows, some values are missing or strange."""
    chance, rows = np.random.default_rng(29), SIZE
    days = np.datetime64("2024-01-01") + chance.integers(0, 731, rows)
    columns: dict[str, Any] = {
        "id": [f"p{n * 3 // 4}" for n in range(rows)],
        "sex": chance.choice(["F", "M"], rows),
        "age": chance.integers(0, 100, rows),
        "region": chance.choice(["A", "B", "C", "D"], rows),
        "day": days,
        "income": chance.integers(0, 90, rows) * 1000,
        "ill": chance.choice(["asthma", "diabetes", "flu", "cough", "injury"], rows),
        "grade": chance.choice(["1", "2", "3", "4"], rows),
        "code": [f"{n:03}" for n in chance.integers(100, 104, rows)],
        "job": chance.choice(list(_JOBS), rows),
        "site": chance.choice(["St. Anne", "St. Paul"], rows),
        "x": np.round(chance.beta(2, 5, rows), 3),
        "y": np.round(chance.uniform(-1, 1, rows), 3),
        "member": chance.choice(["true", "false"], rows),
        "chance": chance.choice(["0.05", "0.1", "0.2", "0.3"], rows),
        "bought": chance.choice(["tea+milk", "tea+bread", "wine", "wine+flowers", "beer+tea", "milk"], rows),
    }
    texts: dict[str, list[str | None]] = {name: [str(each) for each in values] for name, values in columns.items()}
    for name, step in {"sex": 60, "age": 70, "ill": 80, "day": 90}.items():
        texts[name] = [None if n % step == 7 else value for n, value in enumerate(texts[name])]
    texts["region"][11], texts["age"][12] = "E", "140"
    return pa.table({name: pa.array(values, pa.string()) for name, values in texts.items()})


def population() -> pa.Table:
    """Return everybody from whom the rows of some policies come."""
    chance, rows = np.random.default_rng(31), 600
    values = {
        "sex": chance.choice(["F", "M"], rows),
        "age": chance.integers(0, 100, rows).astype("U3"),
        "region": chance.choice(["A", "B", "C", "D", "E"], rows),
    }
    there = wide().select(["sex", "age", "region"])
    return pa.concat_tables([there, pa.table({name: pa.array(each.tolist()) for name, each in values.items()})])


def write_beside(folder: Path) -> None:
    """Write the files that policies name: a hierarchy and the key of a pseudonym."""
    (folder / "jobs.csv").write_text("".join(f"{job};{kind}\n" for job, kind in _JOBS.items()), encoding="utf-8")
    (folder / "site.key").write_text("a key for golden files, never for people\n", encoding="utf-8")


def policy(names: str, release: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a policy for some columns of the wide table."""
    columns = {name: COLUMNS[name] for name in names.split()}
    plain = {"incrowd": 1, "dataset": {"name": "wide"}, "columns": columns, "release": release}
    return changed(plain, **changes)


_ANYHOW = {"budget": {"unbounded": "golden files: compared with later versions"}}
_TARGET = {"epsilon": 2, "delta": "1e-4"}
_LOOSE = {"epsilon": 8, "delta": "1e-3"}
_SAMPLE: dict[str, Any] = {"rate": "1/2", "target": _TARGET}
_TWO = {"columns__id": COLUMNS["id"], "dataset__unit": {"column": "id", "max_rows": 2}}
_ONE = {"columns__id": COLUMNS["id"], "dataset__unit": {"column": "id"}}
_REPLACED = {"dataset__unit": {"adjacency": "replace-one"}}
_BOTH = {"columns__id": COLUMNS["id"], "dataset__unit": {"column": "id", "adjacency": "replace-one"}}
_BIASED = {"low": "0.05", "high": "0.1", "irregular": 2}
_REGULAR = {"low": "0.05", "high": "0.1"}
_HERE = {"low": "0.05", "high": "0.3", "probability": "chance"}
_ILL_IS = {"columns__ill__role": "sensitive"}


def _safe() -> Policies:
    base, more = "sex region", {"method": "safe", **_SAMPLE}
    drafted = {"columns__region__hierarchy__derived": "rows"}
    return {
        "robust k given": policy(base, {"method": "safe", "k": 12, "target": {"delta": "1e-4"}, "robust": _BIASED}),
        "robust k solved": policy("sex", {"method": "safe", "target": _TARGET, "robust": _BIASED}),
        "robust max rate": policy(
            "sex", {"method": "safe", "k": 14, "target": {"delta": "1e-4"}, "robust": _BIASED | {"max_rate": "1/2"}}
        ),
        "robust chances": policy(
            "sex chance", {"method": "safe", "target": {"epsilon": 3, "delta": "1e-3"}, "robust": _HERE}
        ),
        "robust people": policy("sex", {"method": "safe", "target": _TARGET, "robust": _BIASED}, **_ONE),
        "robust nobody irregular": policy("sex", {"method": "safe", "target": _TARGET, "robust": _REGULAR}),
        "pseudonyms": policy("sex site", more),
        "pseudonyms beside drafted": policy("sex site region", more, **drafted, **_ANYHOW),
        "public draft": policy(base, more, **drafted, columns__region__hierarchy__public="the atlas of 2020"),
        "dates and cuts": policy("day income", more, release__levels={"day": 2, "income": 1}),
        "groups and redaction": policy("grade code", more, release__levels={"grade": 1, "code": 1}),
        "hierarchy file": policy("job member", more, release__levels={"job": 1}),
        "replaced people": policy(base, more, release__levels={"region": 1}, **_BOTH),
        "replaced people with two rows": policy(
            "sex", more, release__target__epsilon=6, **_TWO, dataset__unit__adjacency="replace-one"
        ),
        "rows dropped": policy(
            base, more, columns__sex__missing="drop", columns__region__outside="drop", release__levels={"region": 1}
        ),
        "missing filled": policy(
            "sex age", more, columns__sex__missing="F", columns__age__outside="ends", release__levels={"age": 2}
        ),
        "sensitive and plain": policy(
            "sex ill grade", more, **_ILL_IS, columns__grade__role="plain", release__levels={"ill": 1, "grade": 1}
        ),
        "period and version": policy(
            "sex region", more, dataset__period="2024", dataset__version="2", dataset__population=100000
        ),
        "no sample of people": policy(base, {"method": "safe", "k": 5, "rate": 1}, **_ONE, **_ANYHOW),
        "no sample, drafted": policy(base, {"method": "safe", "k": 5, "rate": 1}, **drafted, **_ANYHOW),
        "weights of people": policy(base, more, release__weights=True, **_ONE),
    }


def _scheme() -> Policies:
    base, more = "sex age region", {"method": "scheme", "choosing": "1/5", **_SAMPLE}
    return {
        "epsilon solved": policy(base, more, release__k=20, release__target={"delta": "1e-4"}),
        "rate solved": policy(base, more, release__k=12, release__rate=None),
        "within levels": policy(base, more, release__lowest={"age": 1}, release__highest={"region": 1}),
        "replaced, weights": policy(base, more, release__weights=True, **_REPLACED),
        "people with two rows": policy(base, more, release__rate="1/4", release__target=_LOOSE, **_TWO),
        "drafted": policy(base, more, columns__sex__derived="rows", **_ANYHOW),
        "sensitive beside": policy("sex age ill", more, **_ILL_IS),
        "pseudonyms": policy("sex age site", more),
    }


def _suppressed() -> Policies:
    more = {"method": "suppressed-histogram", "columns": ["sex", "age"], "levels": {"age": 2}, **_SAMPLE}
    base = "sex age region"
    return {
        "epsilon solved": policy(base, more, release__k=20, release__target={"delta": "1e-4"}),
        "rate solved": policy(base, more, release__k=12, release__rate=None),
        "people with two rows": policy(base, more, release__target__epsilon=6, **_TWO),
        "replaced": policy(base, more, **_REPLACED),
        "robust before": policy(
            base, more, release__rate=None, release__k=14, release__target={"delta": "1e-4"}, release__robust=_BIASED
        ),
        "robust chances": policy(
            "sex age chance",
            more,
            release__rate=None,
            release__target={"epsilon": 3, "delta": "1e-3"},
            release__robust=_HERE,
        ),
        "open level": policy("code sex", {"method": "suppressed-histogram", "levels": {"code": 1}, **_SAMPLE}),
    }


def _blended() -> Policies:
    base = "sex age region"
    more = {"method": "blended-histogram", "columns": ["sex", "age"], "levels": {"age": 2}, "epsilon": 1, **_SAMPLE}
    return {
        "people": policy(base, more, **_ONE),
        "rounded": policy(base, more, release__round=5),
        "flagged, of people": policy(base, more, release__flag=True, **_ONE),
        "no sample, flagged": policy(
            base, more, release__target=None, release__rate=1, release__k=5, release__flag=True, **_ANYHOW
        ),
    }


def _private() -> Policies:
    base = "sex age region"
    known = {"method": "private-histogram", "columns": ["sex", "age"], "levels": {"age": 2}, "epsilon": 1}
    open_ = {"method": "private-histogram", "levels": {"code": 1}, "epsilon": 2, "delta": "1e-4"}
    gaussian = {"release__noise": "gaussian", "release__delta": "1e-5"}
    many = {"method": "private-histogram", "epsilon": 40}
    return {
        "Gaussian, of people with two rows": policy(base, known, **gaussian, **_TWO),
        "Gaussian, replaced": policy(base, known, **gaussian, **_REPLACED),
        "Gaussian, within an error": policy(base, known, **gaussian, release__epsilon=None, release__error=20),
        "Gaussian, unknown bins": policy("code sex", open_, release__noise="gaussian"),
        "within an error, sampled": policy(base, known, release__epsilon=None, release__error=20, release__rate="1/4"),
        "sampled, of people": policy(base, known, release__rate="1/4", **_ONE),
        "rounded": policy(base, known, release__round=10, release__clamp=True),
        "unknown bins, of people with two rows": policy("code sex", open_, **_TWO),
        "unknown bins, replaced": policy("code sex", open_, **_REPLACED),
        "very many bins": policy("sex age day income", many),
        "very many bins, of people with two rows": policy("sex age day income", many, **_TWO),
    }


def _common() -> Policies:
    more = {"method": "most-common", "columns": ["sex", "age"], "levels": {"age": 2}, "epsilon": 1}
    return {
        "replaced": policy("sex age", more, release__top=2, **_REPLACED),
        "of people": policy("sex age", more, release__top=2, release__counts=False, **_ONE),
        "one region": policy("region", {"method": "most-common", "epsilon": "1/2"}),
    }


def _points() -> Policies:
    more = {"method": "points", "columns": ["x", "y"], "s": 4, **_SAMPLE}
    return {
        "box": policy("x y", more),
        "box, noisy, uniform": policy("x y", more, release__epsilon=1, release__place="uniform"),
        "error given": policy("x", {"method": "points", "error": "1/5", **_SAMPLE}),
        "days": policy("day x", {"method": "points", "s": 3, "epsilon": 1, **_SAMPLE}),
        "people with two rows": policy("x y", more, release__target__epsilon=6, **_TWO),
        "replaced": policy("x y", more, **_REPLACED),
        "epsilon solved": policy("x y", more, release__k=20, release__target={"delta": "1e-4"}),
        "rate solved": policy("x y", more, release__k=8, release__rate=None),
        "no sample, noisy": policy("x y", {"method": "points", "s": 4, "k": 5, "epsilon": 1}, **_ANYHOW),
    }


def _demands() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every demand on a sensitive column of illnesses."""
    yield "l", {"l": 3}
    yield "entropy l", {"entropy_l": 2}
    yield "recursive", {"recursive": {"c": 3, "l": 2}}
    yield "t equal", {"t": "2/5", "distance": "equal"}
    yield "t ordered", {"t": "2/5", "distance": "ordered"}
    yield "t hierarchical", {"t": "2/5", "distance": "hierarchical"}
    yield "beta", {"beta": 2}
    yield "enhanced beta", {"enhanced_beta": 2}
    yield "disclosure", {"disclosure": 3}
    yield "harmless", {"l": 2, "t": "2/5", "harmless": ["flu", "cough"]}


def _full_domain() -> Policies:
    base, more = "sex age region", {"method": "full-domain", "k": 4}
    people: dict[str, Any] = {"file": "population.csv"}
    found = {
        f"demands {name}": policy(
            "sex age ill", more, **_ILL_IS, **_ANYHOW, release__sensitive={"ill": each}, release__suppression="1/5"
        )
        for name, each in _demands()
    }
    for quality in ("precision", "height", "average-size", "entropy", "divergence"):
        found[f"quality {quality}"] = policy(base, more, release__quality=quality, **_ANYHOW)
    for estimator in ("zayatz", "pitman", "snb", "dankar"):
        unique = {"share": "1/20", "people": 5000, "estimator": estimator}
        found[f"unique by {estimator}"] = policy(base, more, release__unique=unique, **_ANYHOW)
    return found | {
        "entropy of all": policy("sex age ill", more, **_ILL_IS, **_ANYHOW, release__entropy_l=2),
        "two sensitive columns": policy(
            "sex age ill income",
            more,
            **_ILL_IS,
            columns__income__role="sensitive",
            release__l=2,
            **_ANYHOW,
            release__sensitive={"income": {"t": "1/2"}},
        ),
        "ordered t of numbers": policy(
            "sex age income", more, columns__income__role="sensitive", release__t="1/2", **_ANYHOW
        ),
        "k-map": policy(base, more, release__population=people | {"k": 8}, **_ANYHOW),
        "presence": policy(
            base, more, release__population=people | {"presence": {"most": "1/2", "least": "1/10"}}, **_ANYHOW
        ),
        "average risk": policy(base, more, release__average_risk="1/8", **_ANYHOW),
        "importance and bounds of levels": policy(
            base, more, release__importance={"age": 2, "sex": "1/2"}, release__highest={"age": 2}, **_ANYHOW
        ),
        "nothing left": policy(
            base, more, release__suppression=1, release__highest={"region": 1}, release__quality="precision", **_ANYHOW
        ),
        "sensitive at a level": policy(
            "sex age ill", more, **_ILL_IS, release__levels={"ill": 1}, release__l=2, **_ANYHOW
        ),
        "people with two rows": policy(base, more, **_TWO, **_ANYHOW),
        "drafted": policy(base, more, columns__sex__derived="rows", **_ANYHOW),
        "pseudonyms": policy("sex age site", more, **_ANYHOW),
    }


def _local() -> Policies:
    base, more = "sex age ill", {"method": "local-recoding", "k": 4, "suppression": "1/10"}
    return {
        "each demand": policy(
            base,
            more,
            **_ILL_IS,
            **_ANYHOW,
            release__sensitive={"ill": {"entropy_l": 2, "recursive": {"c": 9, "l": 2}, "beta": 4, "disclosure": 4}},
        ),
        "hierarchical t": policy(
            base, more, **_ILL_IS, **_ANYHOW, release__sensitive={"ill": {"t": "1/2", "distance": "hierarchical"}}
        ),
        "importance and bounds of levels": policy(
            "sex age region",
            more,
            release__importance={"age": 3},
            release__highest={"region": 1},
            release__lowest={"age": 1},
            **_ANYHOW,
        ),
        "entropy, people with two rows": policy(base, more, **_ILL_IS, release__entropy_l="3/2", **_TWO, **_ANYHOW),
        "drafted": policy("sex age", more, columns__sex__derived="rows", **_ANYHOW),
    }


def _cells() -> Policies:
    base, more = "sex age region", {"method": "cell-suppression", "k": 4, "levels": {"age": 1}}
    return {
        "subsets, missing matches": policy(
            base, more, release__missing="matches", release__k=1, release__subsets={"1": 8, "2": 4}, **_ANYHOW
        ),
        "important, of people": policy(base, more, release__importance={"sex": 3}, **_ONE, **_ANYHOW),
        "sensitive and plain": policy(
            "sex age ill grade", more, **_ILL_IS, columns__grade__role="plain", release__missing="matches", **_ANYHOW
        ),
        "drafted": policy(base, more, columns__sex__derived="rows", **_ANYHOW),
    }


def _mondrian() -> Policies:
    base, more = "age income sex", {"method": "mondrian", "k": 4}
    ill = "age income ill"
    return {
        "means": policy(base, more, release__show="means", **_ANYHOW),
        "relaxed means": policy(base, more, release__show="means", release__relaxed=True, **_ANYHOW),
        "relaxed ranges": policy(base, more, release__relaxed=True, **_ANYHOW),
        "ordered categories": policy("age grade", more, release__ordered=["grade"], **_ANYHOW),
        "days and trees": policy("day region", more, release__show="nodes", **_ANYHOW),
        "l": policy(ill, more, **_ILL_IS, release__l=2, **_ANYHOW),
        "entropy l": policy(ill, more, **_ILL_IS, release__entropy_l=2, **_ANYHOW),
        "t": policy(ill, more, **_ILL_IS, release__t="1/2", **_ANYHOW),
        "hierarchical t, harmless": policy(
            ill,
            more,
            **_ILL_IS,
            **_ANYHOW,
            release__sensitive={"ill": {"t": "1/2", "distance": "hierarchical", "harmless": ["flu"]}},
        ),
        "drafted": policy(base, more, columns__sex__derived="rows", **_ANYHOW),
    }


def _itemsets() -> Policies:
    tree = {"drinks": ["tea", "milk", "wine", "beer"], "other goods": ["bread", "flowers"]}
    bought = {"columns__bought": {"separator": "+", "hierarchy": {"tree": tree}}}
    more = {"method": "itemsets", "k": 4, "m": 2}
    return {
        "one item known": policy("sex", more, release__m=1, **bought, **_ANYHOW),
        "sensitive beside": policy("sex ill", more, release__suppression="1/20", **bought, **_ILL_IS, **_ANYHOW),
        "drafted": policy("sex", more, columns__sex__derived="rows", **bought, **_ANYHOW),
    }


def _partition() -> Policies:
    base, more = (
        "age income sex",
        {"method": "partition", "choosing": 1, "least": 60, "levels": {"income": 1}, **_SAMPLE},
    )
    plain = {name: value for name, value in more.items() if name != "levels"}
    return {
        "epsilon solved": policy(base, more, release__k=14, release__target={"delta": "1e-4"}),
        "rate solved": policy(base, more, release__k=10, release__rate=None),
        "ordered, two cuts": policy("age grade", plain, release__ordered=["grade"], release__depth=2),
        "sensitive beside": policy("age sex ill", plain, **_ILL_IS, release__levels={"ill": 2}),
        "drafted": policy("age sex", plain, columns__sex__derived="rows", **_ANYHOW),
    }


def _slicing() -> Policies:
    base = "sex region age"
    more: dict[str, Any] = {
        "method": "slicing",
        "groups": [["sex", "region"], ["age"]],
        "levels": {"age": 2, "region": 1},
        "rate": "1/2",
        "target": {"epsilon": 3, "delta": "1e-4"},
    }
    auto = {"groups": "auto", "choosing": "1/2", "size": 2}
    return {
        "k given": policy(base, more, release__k=20, release__target={"delta": "1e-3"}),
        "three tables": policy(base, more, release__groups=["sex", "region", "age"], release__target__epsilon=5),
        "of people": policy(base, more, **_ONE),
        "replaced": policy(base, more, **_REPLACED),
        "joint, of people with two rows": policy(
            base, more, release__sample="joint", release__target__epsilon=6, **_TWO
        ),
        "chosen, joint": policy(base, more | auto, release__sample="joint"),
        "chosen, of people": policy(base, more | auto, release__target__epsilon=4, **_ONE),
        "drafted": policy(base, more, columns__sex__derived="rows", **_ANYHOW),
        "rate solved": policy(base, more, release__k=12, release__rate=None),
    }


WIDE: dict[str, Policies] = {
    "safe": _safe(),
    "scheme": _scheme(),
    "suppressed-histogram": _suppressed(),
    "blended-histogram": _blended(),
    "private-histogram": _private(),
    "most-common": _common(),
    "points": _points(),
    "full-domain": _full_domain(),
    "local-recoding": _local(),
    "cell-suppression": _cells(),
    "mondrian": _mondrian(),
    "itemsets": _itemsets(),
    "partition": _partition(),
    "slicing": _slicing(),
}


def slug(method: str, way: str) -> str:
    """Return the name of a folder."""
    words = "".join(letter if letter.isalnum() else " " for letter in f"{method} {way}".lower())
    return "-".join(words.split())


FEW = ("full-domain", "local-recoding", "cell-suppression", "mondrian", "itemsets")
"""Methods that release about as many rows as they read: they read few."""


def few() -> pa.Table:
    """Return the first rows of the wide table."""
    return wide().slice(0, 150)


def policies() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield name, data file and policy: the examples of the contract first, then those of the wide table."""
    for data, family in (("rows.csv", examples.POLICIES), ("wide.csv", WIDE)):
        for method, ways in family.items():
            for way, plain in ways.items():
                name = slug(method, way)
                where = "few.csv" if data == "wide.csv" and method in FEW else data
                named = {"dataset__name": name, "dataset__separate": "golden files"}
                yield name, where, changed(plain, **named, ledger=f"sqlite:///{method}.sqlite")
