"""Rules beyond plain contributions: survey weights, negative values, the (p, q) rule; from the road of a policy."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from incrowd.core.domain import Numbers, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Role, Schema
from incrowd.errors import IncrowdError, SourceInvalid
from incrowd.methods.tabulation.protected.method import ProtectedTable
from incrowd.methods.tabulation.protected.rules import CellFacts, Dominance, Rules
from incrowd.methods.tabulation.protected.sources import _weighted
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.methods.tabulation.test_protected_table import AREA, SEX, WHO, released

GAIN = Column("gain", type=Type.INTEGER, hierarchy=Flat(Numbers(-500, 500)))
WEIGHT = Column("weight", Role.WEIGHT, type=Type.DECIMAL, hierarchy=Flat(Numbers(0, None, Type.DECIMAL)))
SCHEMA = Schema((AREA, SEX, GAIN, WEIGHT, WHO))
FORM: dict[str, Any] = {"missing": "drop", "outside": "drop"}


def firms(number: int = 80) -> pa.Table:
    chance = np.random.default_rng(6)
    return pa.table(
        {
            "area": chance.choice(list("abcd"), number, p=[0.4, 0.3, 0.25, 0.05]),
            "sex": chance.choice(["F", "M"], number),
            "gain": chance.integers(-400, 400, number),
            "weight": np.round(chance.gamma(2.0, 3.0, number), 2),
            "who": [f"w{place % 30}" for place in range(number)],
        }
    )


def source(folder: Path, **release: Any) -> dict[str, Any]:
    return {
        "incrowd": 1,
        "dataset": {"name": "firms"},
        "columns": {
            "area": {"hierarchy": {"tree": {"N": ["a", "b"], "S": ["c", "d"]}}, **FORM},
            "sex": {"categories": ["F", "M"], **FORM},
            "gain": {"type": "integer", "bounds": [-500, 500], "role": "sensitive"},
            "weight": {"type": "decimal", "role": "weight", "bounds": [0, None]},
            "who": {"role": "identifier"},
        },
        "release": {"method": "protected-table", "columns": ["area", "sex"], **release},
        "budget": {"unbounded": "a test"},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }


def test_weighted_sums_are_published_and_contributors_are_counted_without_weights() -> None:
    rows = firms()
    cells = released(ProtectedTable(columns=("area", "sex"), weight="weight", minimum=3), rows, SCHEMA)
    assert cells["*", "*"] == pytest.approx(sum(rows["weight"].to_pylist()), abs=4)
    alone = pa.concat_tables([rows.filter(pa.compute.not_equal(rows["area"], "d")), one("d", 40.0), one("d", 60.0)])
    cells = released(ProtectedTable(columns=("area", "sex"), weight="weight", minimum=3), alone, SCHEMA)
    assert cells["d", "F"] is None


def one(area: str, weight: float) -> pa.Table:
    return pa.table({"area": [area], "sex": ["F"], "gain": [9], "weight": [weight], "who": ["z" + str(weight)]})


def test_different_amounts_of_one_holding_are_one_contribution() -> None:
    rows = pa.table({"area": list("aaabbbccc"), "gain": [5, 6, 7, 5, 6, 7, 5, 6, 7], "who": list("xxx123456")})
    schema = Schema((AREA, Column("gain", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 500))), WHO))
    rule: dict[str, Any] = {"columns": ("area",), "value": "gain", "minimum": 3}
    assert released(ProtectedTable(**rule), rows, schema)[("a",)] == 18
    assert released(ProtectedTable(**rule, holding="who"), rows, schema)[("a",)] is None


def test_dominance_looks_at_weighted_contributions() -> None:
    rule: dict[str, Any] = {"columns": ("area",), "value": "gain", "dominance": Dominance(1, Fraction(1, 2))}
    amounts = {
        "area": ["a"] * 4 + ["b"] * 4 + ["c"] * 4,
        "sex": ["F"] * 12,
        "gain": [10] * 12,
        "who": list("123456789xyz"),
    }
    rows = pa.table(amounts | {"weight": [9.0, 1, 1, 1, *[2.0] * 8]})
    plain = Schema((AREA, SEX, Column("gain", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 500))), WEIGHT, WHO))
    assert released(ProtectedTable(**rule), rows, plain)[("a",)] == 40
    assert released(ProtectedTable(**rule, weight="weight"), rows, plain)[("a",)] is None


def test_weighted_contributions_are_whole_and_add_up_to_the_rounded_cell() -> None:
    chance = np.random.default_rng(3)
    for _ in range(50):
        cells, products = chance.integers(0, 5, 40), chance.gamma(1.0, 4.0, 40) * chance.choice([-1, 1], 40)
        whole = _weighted(cells, products)
        assert np.all(np.abs(whole - products) < 1)
        sums = [np.bincount(cells, part, 5) for part in (whole, products)]
        assert np.all(np.abs(sums[0] - sums[1]) <= 0.5)


def test_weighted_rules_are_at_least_as_strict_as_equal_respondents() -> None:
    """A respondent of weight w as w equal ones: the usual reading, under which a weight hides its respondent."""
    chance, strict = np.random.default_rng(4), 0
    for _ in range(200):
        amounts, weights = chance.integers(1, 60, 3), chance.integers(1, 5, 3)
        weighted, equal = np.sort(amounts * weights)[::-1], np.sort(np.repeat(amounts, weights))[::-1]
        for rules in (Rules(p=Fraction(3, 10)), Rules(dominance=Dominance(2, Fraction(3, 5)))):
            ours, theirs = (
                bool(rules.sensitive(CellFacts(np.array([part.sum()]), np.array([3]), part[:2, None]))[0])
                for part in (weighted, np.append(equal, 0))
            )
            assert ours >= theirs
            strict += ours > theirs
    assert strict > 50


def test_the_rule_of_p_and_q_is_that_of_their_ratio() -> None:
    cell = CellFacts(np.array([100]), np.array([4]), np.array([[60], [20]]))
    assert not Rules(p=Fraction(1, 5)).sensitive(cell)[0]
    assert Rules(p=Fraction(1, 5), q=Fraction(1, 2)).sensitive(cell)[0]  # 2/5 of 60 is 24, and the others have 20
    for ratio in (Fraction(1, 3), Fraction(2, 5), Fraction(9, 10)):
        both = Rules(p=ratio / 2, q=Fraction(1, 2)).demands(cell, _frame(), counts=False)
        assert both[1].tolist() == Rules(p=ratio).demands(cell, _frame(), counts=False)[1].tolist()


def _frame() -> Any:
    from incrowd.methods.tabulation.protected.frame import TableAxis, TableFrame

    return TableFrame((TableAxis("all", ("*",), (-1,)),))


def test_amounts_that_cancel_out_hide_nobody() -> None:
    """Two firms with +400 and −390 make a sum of 10: it stays open by a share of 790."""
    rows = pa.concat_tables([firms().filter(pa.compute.not_equal(firms()["area"], "d")), gain(400), gain(-390)])
    rule: dict[str, Any] = {"columns": ("area", "sex"), "value": "gain", "minimum": 3, "zeros": "suppressible"}
    assert released(ProtectedTable(**rule), rows, SCHEMA)["d", "F"] is None
    facts = CellFacts(np.array([10]), np.array([2]), np.array([[400], [390]]), np.array([790]))
    assert Rules(minimum=3).demands(facts, _frame(), counts=False)[0].tolist() == [79]
    assert Rules(p=Fraction(1, 10)).demands(facts, _frame(), counts=False)[1].tolist() == [40]


def gain(amount: int) -> pa.Table:
    return pa.table({"area": ["d"], "sex": ["F"], "gain": [amount], "weight": [1.0], "who": [f"g{amount}"]})


@pytest.mark.parametrize(
    "release",
    [
        {"value": "gain", "minimum": 4, "zeros": "suppressible", "holding": "who"},
        {"weight": "weight", "minimum": 4, "dominance": {"n": 1, "k": "1/2"}},
        {"value": "gain", "weight": "weight", "p": "1/5", "q": "1/2", "zeros": "suppressible"},
        {"value": "gain", "protect": "rounding", "base": 50},
    ],
)
def test_such_tables_are_released_and_verified(release: dict[str, Any], tmp_path: Path) -> None:
    release_to(firms(), source(tmp_path, **release), Destination(tmp_path / "out", "csv"))
    assert verify(tmp_path / "out").passed
    if release.get("protect") != "rounding":
        text = (tmp_path / "out" / "table.csv").read_text(encoding="utf-8")
        assert ",x" in text


def test_a_file_of_negative_sums_whose_empty_cell_follows_fails(tmp_path: Path) -> None:
    release_to(
        firms(), source(tmp_path, value="gain", minimum=5, zeros="suppressible"), Destination(tmp_path / "out", "csv")
    )
    file = tmp_path / "out" / "data.csv"
    lines = file.read_text(encoding="utf-8").splitlines()
    empty = [place for place, line in enumerate(lines) if line.endswith(",")]
    published = next(place for place, line in enumerate(lines) if line.replace('"', "").startswith("a,F,"))
    lines[empty[0]] += "7"
    lines[published] = lines[published].rpartition(",")[0] + ","
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    failed = {finding.about for finding in verify(tmp_path / "out").findings if finding.verdict == "failed"}
    assert "empty cells in the file" in failed


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"value": "gain", "minimum": 3}, "write zeros: suppressible"),
        ({"weight": "sex", "minimum": 3}, "survey weights, which are numbers"),
        ({"value": "gain", "q": Fraction(1, 2), "minimum": 3}, "it comes with p"),
        ({"value": "gain", "p": Fraction(1, 2), "q": Fraction(1, 2)}, "and is larger"),
        ({"weight": "weight", "minimum": 3, "protection": 2}, "protection is for counts"),
    ],
)
def test_what_the_rules_cannot_mean_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(IncrowdError, match=words):
        ProtectedTable(columns=("area",), **options).plan(SCHEMA)


def test_a_missing_or_negative_weight_is_refused() -> None:
    for weight in (-1.0, None):
        rows = pa.concat_tables([firms(), gain(5).set_column(3, "weight", pa.array([weight], pa.float64()))])
        free = Schema((AREA, SEX, GAIN, Column("weight", Role.WEIGHT, type=Type.DECIMAL), WHO))
        with pytest.raises(SourceInvalid, match="weight"):
            released(ProtectedTable(columns=("area",), weight="weight", minimum=3), rows, free)
