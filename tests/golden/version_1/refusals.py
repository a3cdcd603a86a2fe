"""Cases that are refused, by hand: what methods say of columns, desks of questions, ledgers of releases.

The golden file holds more: every policy, parameter and question that the tests of commit 29e1c32 saw refused, which a
recorder around `load_policy`, the methods, `understand`, `measurement`, `batch` and `Terms` wrote down.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.golden.version_1.inputs import COLUMNS, policy
from tests.policies import changed

_TARGET = {"epsilon": 2, "delta": "1e-4"}
_SAMPLE: dict[str, Any] = {"rate": "1/2", "target": _TARGET}
_TWO = {"columns__id": COLUMNS["id"], "dataset__unit": {"column": "id", "max_rows": 2}}
_REPLACED = {"dataset__unit": {"adjacency": "replace-one"}}
_DRAFTED = {"columns__sex__derived": "rows"}
_BIASED = {"low": "0.05", "high": "0.1", "irregular": 2}
_HERE = {"low": "0.05", "high": "0.3", "probability": "chance"}
_ILL = {"columns__ill__role": "sensitive"}
_NOTE: dict[str, Any] = {"columns__note": {}}
_BOUGHT = {"separator": "+", "hierarchy": {"tree": {"drinks": ["tea", "milk"], "goods": ["bread"]}}}
_MANY = {f"columns__c{n}": {"type": "integer", "bounds": [0, 99]} for n in range(8)}


def _crowds() -> Iterator[dict[str, Any]]:
    safe = {"method": "safe", **_SAMPLE}
    yield policy("sex", {"method": "safe", "k": 5, "rate": "1/2", "target": {"delta": "1e-9"}})
    yield policy("sex", {"method": "safe", "k": 5, "rate": 1}, **_TWO)
    yield policy("id", safe)
    yield policy("sex", safe, **_NOTE)
    yield policy("sex", safe, release__levels={"sex": 7})
    yield policy("sex", safe, release__weights=True, columns__weight={"categories": ["1", "2"]})
    yield policy("sex site", safe, release__levels={"site": 0})
    yield policy("sex", safe, columns__bought=_BOUGHT)
    yield policy("sex", {"method": "safe", "target": _TARGET, "robust": _BIASED}, **_TWO)
    yield policy("sex", {"method": "safe", "k": 12, "target": _TARGET, "robust": _BIASED})
    yield policy("sex", {"method": "safe", "k": 4, "target": {"delta": "1e-9"}, "robust": _BIASED})
    yield policy("sex chance", {"method": "safe", "target": _TARGET, "robust": _HERE}, columns__chance__role="plain")
    yield policy("sex chance", {"method": "safe", "target": _TARGET, "robust": _HERE}, columns__chance__type="text")
    yield policy("sex", {"method": "safe", "target": _TARGET, "robust": _HERE})
    yield policy("sex", {"method": "safe", "k": 5, "target": _TARGET, "rate": "1/2"})
    yield policy("sex", {"method": "safe", "target": {"delta": "1e-4"}, "rate": "1/2"})
    scheme = {"method": "scheme", "choosing": "1/5", **_SAMPLE}
    yield policy("sex age", scheme, release__lowest={"town": 1})
    yield policy("sex age", scheme, release__lowest={"age": 2}, release__highest={"age": 1})
    yield policy("sex age", scheme, release__lowest={"age": 9})
    yield policy("sex age", scheme, release__choosing=0)
    wide = {f"columns__c{n}": COLUMNS["age"] for n in range(9)}
    yield policy("sex age", scheme, **wide)


def _histograms() -> Iterator[dict[str, Any]]:
    suppressed = {"method": "suppressed-histogram", **_SAMPLE}
    yield policy("sex age", suppressed, release__columns=["sex"], release__levels={"age": 1})
    yield policy("sex", suppressed, release__columns=["nobody"])
    yield policy("sex", suppressed, columns__count={"categories": ["1"]})
    yield policy("sex", suppressed, **_NOTE)
    yield policy("sex", suppressed, **_DRAFTED)
    yield policy("sex", {"method": "suppressed-histogram", "k": 5}, **_TWO)
    yield policy("sex", suppressed, release__round=0)
    blended = {"method": "blended-histogram", "epsilon": 1, **_SAMPLE}
    yield policy("sex code", blended, release__levels={"code": 1})
    yield policy("age", blended, **_MANY, release__clamp=False)
    yield policy("age day income", blended, release__epsilon="1/10")
    yield policy("sex", {"method": "blended-histogram", "epsilon": 1, "k": 5}, **_TWO)
    yield policy("sex", blended, release__epsilon=0)
    private = {"method": "private-histogram", "epsilon": 1}
    yield policy("sex", private, release__epsilon=None)
    yield policy("sex", private, release__error=5)
    yield policy("sex", private, release__epsilon=0)
    yield policy("sex", private, release__epsilon=None, release__error=-1)
    yield policy("sex", private, release__delta="1e-6")
    yield policy("sex", private, release__noise="gaussian")
    yield policy("sex", private, release__noise="gaussian", release__delta=1)
    yield policy("sex", private, release__rate=1)
    yield policy("sex", private, release__rate="1/2", **_REPLACED)
    yield policy("code sex", private, release__levels={"code": 1})
    yield policy("code sex", private, release__levels={"code": 1}, release__delta="1e-6", release__rate="1/2")
    yield policy("sex", private, **_MANY)
    yield policy("sex age day income", private, release__noise="gaussian", release__delta="1e-6")
    yield policy("sex", private, **_DRAFTED)
    yield policy("sex", private, release__noise="cauchy")
    common = {"method": "most-common", "epsilon": 1}
    yield policy("sex", common, release__top=9)
    yield policy("sex", common, release__top=0)
    yield policy("sex", common, columns__rank={"categories": ["1"]})
    yield policy("sex code", common, release__levels={"code": 1})
    yield policy("sex age day income", common)
    yield policy("sex", common, release__epsilon=0)
    yield policy("sex", common, **_DRAFTED)


def _points() -> Iterator[dict[str, Any]]:
    points = {"method": "points", "s": 4, **_SAMPLE}
    yield policy("x id", points, release__columns=["id"])
    yield policy("x", points, columns__x__derived="rows")
    yield policy("x", points, **_MANY, release__epsilon="1/10", release__s=20)
    yield policy("x", {"method": "points", "s": 4, "k": 5}, **_TWO)
    yield policy("x sex", points)
    yield policy("x", points, **_NOTE)
    yield policy("x", points, release__error="1/10")
    yield policy("x", points, release__s=None)
    yield policy("x", points, columns__x__bounds=None)
    yield policy("x", points, columns__x__outside="other")


def _syntactic() -> Iterator[dict[str, Any]]:
    base = {"method": "full-domain", "k": 4}
    for each in (
        {"l": 8},
        {"entropy_l": "15/2"},
        {"distance": "equal", "l": 2},
        {"harmless": ["helthy"], "l": 2},
        {},
        {"harmless": ["flu"]},
        {"recursive": {"c": 2, "l": 9}},
        {"recursive": {"c": 0, "l": 2}},
        {"t": 2},
        {"beta": 0},
        {"enhanced_beta": -1},
        {"disclosure": 0},
        {"t": "1/5", "distance": "far"},
    ):
        yield policy("sex age ill", base, **_ILL, release__sensitive={"ill": each})
    yield policy("sex age", base, release__sensitive={"sex": {"l": 2}})
    yield policy("sex age", base, release__sensitive={"ilness": {"l": 2}})
    yield policy(
        "sex age",
        base,
        release__sensitive={"note": {"t": "1/5", "distance": "ordered"}},
        columns__note={"role": "sensitive"},
    )
    yield policy("sex age", base, release__l=2)
    yield policy("sex age", base, release__t="1/5")
    yield policy("sex age ill", base, **_ILL, release__highest={"ill": 1})
    yield policy("sex age", base, release__levels={"sex": 1})
    yield policy("sex age", base, release__lowest={"age": 2}, release__highest={"age": 1})
    yield policy("sex code", base)
    yield policy("sex", base, columns__sex__role="plain")
    yield policy("sex", base, columns__bought=_BOUGHT)
    for people in (
        {"file": "population.csv"},
        {"file": "nobody.csv", "k": 5},
        {"file": "population.csv", "k": 0},
        {"file": "population.csv", "presence": {"most": 2}},
        {"file": "population.csv", "presence": {"most": "1/10", "least": "1/2"}},
    ):
        yield policy("sex age", base, release__population=people)
    yield policy("sex age grade", base, release__population={"file": "population.csv", "k": 5})
    for unique in (
        {"share": 2, "people": 1000},
        {"share": "1/10", "people": 0},
        {"share": "1/10", "people": 1000, "estimator": "guess"},
    ):
        yield policy("sex age", base, release__unique=unique)
    for wrong in ("average_risk", "suppression"):
        yield policy("sex age", base, **{f"release__{wrong}": 2})
    yield policy("sex age", base, release__importance={"town": 1})
    yield policy("sex age", base, release__quality="beauty")
    yield policy("sex age", base, release__seconds=0)
    for method in ("local-recoding", "mondrian", "full-domain"):
        yield policy("sex age ill", {"method": method, "k": 0}, **_ILL)
        yield policy("sex age ill", {"method": method, "k": 4}, **_ILL, release__l=9)
        yield policy("sex age ill", {"method": method, "k": 4}, **_ILL, release__entropy_l=0)
        yield policy("sex age ill", {"method": method, "k": 4}, **_ILL, release__t=2)
        yield policy("sex age", {"method": method, "k": 4}, release__l=2)
        yield policy("sex age", {"method": method, "k": 4}, columns__bought=_BOUGHT)


def _other_forms() -> Iterator[dict[str, Any]]:
    local = {"method": "local-recoding", "k": 4}
    yield policy("sex age ill", local, **_ILL, release__highest={"ill": 1})
    yield policy("sex age", local, release__levels={"sex": 1})
    yield policy("sex age", local, release__rounds=0)
    yield policy("sex age", local, release__left=2)
    cells = {"method": "cell-suppression", "k": 4}
    yield policy("sex age", cells, release__levels={"age": 9})
    yield policy("sex age ill", cells, **_ILL, release__importance={"ill": 2})
    yield policy("sex age", cells, release__subsets={"3": 4})
    yield policy("sex age", cells, release__missing="guessed")
    yield policy("sex age", cells, release__importance={"age": 0})
    yield policy("sex", cells, columns__sex__role="plain")
    mondrian = {"method": "mondrian", "k": 4}
    yield policy("sex age ill", mondrian, **_ILL, release__ordered=["ill"])
    yield policy("sex", mondrian, columns__sex__role="plain")
    yield policy("sex age", mondrian, columns__name={"role": "plain"})
    yield policy("sex age", mondrian, release__show="colors")
    yield policy("sex age", mondrian, release__ordered=["town"])


def _last_forms() -> Iterator[dict[str, Any]]:
    items = {"method": "itemsets", "k": 4, "m": 2}
    yield policy("sex", items)
    yield policy("sex", items, columns__bought=_BOUGHT, columns__sold=_BOUGHT)
    yield policy("sex", items, columns__bought=_BOUGHT | {"role": "sensitive"})
    yield policy("sex", items, columns__bought=_BOUGHT, **_TWO)
    yield policy("sex", items, columns__bought=_BOUGHT, **_NOTE)
    yield policy("sex code", items, columns__bought=_BOUGHT, release__levels={"code": 1})
    yield policy("sex", items, columns__bought=_BOUGHT, release__levels={"bought": 1})
    yield policy("sex", items, columns__bought=_BOUGHT, release__m=0)
    yield policy("sex", items, columns__bought=_BOUGHT, release__k=0)
    partition = {"method": "partition", "choosing": 1, **_SAMPLE}
    yield policy("age", partition, **_TWO)
    yield policy("age", partition, **_REPLACED)
    yield policy("code", partition, release__levels={"code": 1})
    yield policy("income", partition)
    yield policy("age", partition, release__depth=0)
    yield policy("age", partition, release__choosing=0)
    yield policy("age", partition, release__rate=1)
    slicing = {"method": "slicing", "groups": [["sex"], ["age"]], "levels": {"age": 2}, **_SAMPLE}
    yield policy("sex age id", slicing, release__groups=[["sex"], ["age", "id"]])
    yield policy("sex age", slicing, columns__slice={"categories": ["1"]}, release__groups=[["sex"], ["age", "slice"]])
    yield policy("sex age", slicing, release__groups=[["sex"], ["agee"]])
    yield policy("sex age", slicing, release__groups=[["sex"]])
    yield policy("sex age", slicing, release__groups=[["sex", "age"]])
    yield policy("sex age", slicing, release__groups="auto", release__choosing="1/2", release__size=9)
    yield policy("sex age", slicing, release__groups="auto")
    yield policy("sex age", slicing, release__sample="shared")
    yield policy("sex age", slicing, release__sample="odd")
    yield policy("sex age", slicing, release__k=8, release__target={"delta": "1e-9"})


def policies() -> Iterator[dict[str, Any]]:
    """Yield all such policies."""
    for family in (_crowds, _histograms, _points, _syntactic, _other_forms, _last_forms):
        for plain in family():
            yield changed(plain, dataset__name="refused")


_S, _V = ["staff"], ["visits"]
_COUNT = "SELECT COUNT(*) AS n FROM staff"
_ONE, _PAID = {"epsilon": "1"}, {"rho": "1/100"}
DESK: tuple[dict[str, Any], ...] = (
    {"desk": _S, "asked": [[_COUNT, _PAID]]},
    {"desk": _S, "asked": [[_COUNT, _ONE]], "account": "means"},
    {"desk": _S, "asked": [[_COUNT, {"rho": "1/100", "delta": "1e-6"}]], "account": "means"},
    {"desk": _S, "asked": [[_COUNT, _PAID]], "account": "means"},
    {"desk": _S, "asked": [[_COUNT, {"epsilon": "200"}]]},
    {"desk": _S, "asked": [[_COUNT, {"epsilon": "60"}], ["SELECT SUM(age) FROM staff", {"epsilon": "60"}]]},
    {"desk": _S, "asked": [["SELECT note, COUNT(*) FROM staff GROUP BY note", {"epsilon": "1", "delta": "1/100"}]]},
    {"desk": _S, "asked": [["SELECT COUNT(*) FROM visits", _ONE]]},
    {"desk": _V, "asked": [["SELECT COUNT(*) FROM wards", _ONE]]},
    {
        "desk": _V,
        "asked": [["SELECT patient, COUNT(*) FROM visits GROUP BY patient", {"epsilon": "1", "delta": "1e-6"}]],
    },
    {"desk": ["limited"], "asked": [["SELECT COUNT(*) FROM limited", {"epsilon": "3"}]]},
    {"desk": ["visits", "staff"], "asked": [["SELECT COUNT(*) FROM visits, staff", _ONE]]},
    {"desk": ["visits", "clinic"], "asked": [[["SELECT COUNT(*) FROM visits", "SELECT COUNT(*) FROM clinic"], _ONE]]},
    {"desk": _S, "asked": [[[_COUNT], {"error": "5"}]]},
    {"desk": ["safe-k-solved"], "asked": [[_COUNT, _ONE]]},
    {"desk": ["visits", "teaching"], "asked": [[_COUNT, _ONE]]},
)
_SAFE = policy("sex region", {"method": "safe", **_SAMPLE})
_FORM = policy("sex region", {"method": "full-domain", "k": 4})
RELEASES: tuple[dict[str, Any], ...] = (
    {"data": "wide.csv", "policies": [_FORM]},
    {"data": "wide.csv", "policies": [changed(_SAFE, budget={"epsilon": 1, "delta": "1e-3"})]},
    {"data": "wide.csv", "policies": [_SAFE, _SAFE]},
    {"data": "wide.csv", "policies": [_SAFE, changed(_SAFE, dataset__name="again")]},
    {"data": "wide.csv", "policies": [_SAFE, changed(_SAFE, **_REPLACED)]},
    {"data": "wide.csv", "policies": [_SAFE, changed(_SAFE, budget={"epsilon": 9, "delta": "1e-3"})]},
    {"data": "wide.csv", "policies": [changed(_SAFE, columns__nobody={"categories": ["1"]})]},
    {"data": "wide.csv", "policies": [changed(_SAFE, columns__region={"type": "integer", "bounds": [0, 9]})]},
    {"data": "wide.csv", "policies": [_SAFE], "form": "xlsx"},
    {"data": "wide.csv", "policies": [changed(_SAFE, columns__sex={"categories": ["F", "M", ""]})]},
    {
        "data": "wide.csv",
        "policies": [
            policy(
                "sex",
                {"method": "safe", "k": 12, "target": {"delta": "1e-4"}, "robust": _BIASED},
                budget={"epsilon": 90, "delta": "1e-2"},
            )
        ]
        * 2,
    },
)
COARSER: tuple[dict[str, Any], ...] = (
    {"folder": "safe-k-solved", "policy": "safe-k-solved", "levels": {"age": 1}},
    {"folder": "safe-k-solved", "policy": "safe-k-solved", "levels": {"age": 9}},
    {"folder": "safe-k-solved", "policy": "safe-k-solved"},
    {"folder": "safe-k-solved", "policy": "safe-k-solved", "columns": ["town"]},
    {"folder": "safe-k-solved", "policy": "safe-k-solved", "columns": ["sex"], "levels": {"age": 3}},
    {"folder": "safe-k-solved", "policy": "safe-people", "levels": {"age": 3}},
    {"folder": "full-domain-loss", "policy": "full-domain-loss", "columns": ["sex"]},
    {"folder": "points-noisy", "policy": "points-noisy", "columns": ["age"]},
    {"folder": "slicing-k-solved", "policy": "slicing-k-solved", "columns": ["sex"]},
    {"folder": "most-common-with-counts", "policy": "most-common-with-counts", "columns": ["sex"]},
    {"folder": "answer-count", "policy": "staff", "columns": ["n"]},
    {"folder": "partition-k-solved", "policy": "partition-k-solved", "columns": ["sex"]},
)


def cases() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield all cases by hand, each with its kind."""
    for plain in policies():
        yield "policy", {"policy": plain}
    for kind, given in (("desk", DESK), ("release", RELEASES), ("coarsen", COARSER)):
        for each in given:
            yield kind, each
