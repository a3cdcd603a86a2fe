"""What every method must be, whatever it does."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from numpy.typing import NDArray

from incrowd.cli.main import main
from incrowd.core.claims.claim import claim_of
from incrowd.core.coins import LARGEST_SCALE, Sample
from incrowd.core.guarantee import Guarantee
from incrowd.core.plan import Method
from incrowd.core.steps.step import step_of, walk
from incrowd.core.table import Rows, Table
from incrowd.core.terms import Term, joined
from incrowd.engines.local.counting import CountingLimits
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.methods import METHODS
from incrowd.methods.anonymity.slicing.steps import Sliced
from incrowd.methods.shared.microdata import Anonymized, Microdata
from incrowd.methods.shared.outcome import Outcome
from incrowd.workflows.certificates import certificate_of
from incrowd.workflows.plan.forecast import plan
from incrowd.workflows.policy.file import json_schema
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.registry import method_class, vocabulary
from incrowd.workflows.release.tables import release
from tests.coins import ScriptedCoins
from tests.contract.agreed import AgreedCoins
from tests.contract.examples import EXAMPLES, POLICIES, ROWS, rows
from tests.policies import with_ledger, written
from tests.tables import Batches

DOCS = Path(__file__).resolve().parents[2] / "docs" / "methods"
MEMBERS = [n for n in range(ROWS) if n % 3]
METHOD_CLASSES = [pytest.param(method_class(name), id=name) for name in METHODS]


@pytest.fixture(params=EXAMPLES, ids="-".join)
def policy(request: pytest.FixtureRequest) -> Policy:
    return example(*request.param)


@cache
def example(method: str, name: str) -> Policy:
    """Return a policy of the examples, the same one every time."""
    return load_policy(POLICIES[method][name])


@dataclasses.dataclass(frozen=True)
class Coins(AgreedCoins):
    """Coins that say the same every time: who is in the sample, which rows of a person come first, which noise."""

    _script: ScriptedCoins = dataclasses.field(
        default_factory=lambda: ScriptedCoins(MEMBERS, below=[(n * 7919) % 1000 for n in range(2 * ROWS)])
    )

    def below(self, bound: int, size: int) -> NDArray[np.int64]:
        return self._script.below(bound, size) if bound > 1000 else super().below(bound, size)

    def sample(self, rate: Fraction) -> Sample:
        return self._script.sample(rate)


def sources(folder: Path) -> Iterator[tuple[str, Rows]]:
    """The same rows as text from a file and, in small pieces, as codes; `test_verbs.py` has every other source."""
    table = rows()
    pyarrow.csv.write_csv(table, folder / "rows.csv")
    yield "rows.csv", open_source(folder / "rows.csv")
    yield "codes in batches of 7", Batches(_packed(table), 7)


def _packed(table: pa.Table) -> pa.Table:
    return pa.table({name: table[name].combine_chunks().dictionary_encode() for name in table.column_names})


def outcome_of(policy: Policy, rows_: Rows, engine: LocalEngine | None = None) -> Outcome:
    outcome: Outcome = policy.plan.draw(Table(policy.schema, rows_, engine or LocalEngine()), Coins(5))
    return outcome


@pytest.fixture
def outcome(request: pytest.FixtureRequest) -> Outcome:
    """What a policy releases of rows that come all at once."""
    return released(*request.node.callspec.params["policy"])


@cache
def released(method: str, name: str) -> Outcome:
    """Return what an example releases of rows that come all at once."""
    return outcome_of(example(method, name), Batches(rows(), ROWS))


def of_methods(*names: str) -> pytest.MarkDecorator:
    """Give a test the examples of some methods only."""
    return pytest.mark.parametrize(
        "policy", [pair for pair in EXAMPLES if pair[0] in names], indirect=True, ids="-".join
    )


def test_every_method_has_examples() -> None:
    assert list(METHODS) == list(POLICIES)


@pytest.mark.parametrize("method", METHOD_CLASSES)
def test_parameters_are_fields_that_cannot_be_changed(method: Any) -> None:
    assert issubclass(method, Method)
    assert method.__dataclass_params__.frozen
    assert inspect.signature(method.plan).parameters.keys() == {"self", "schema"}


def test_an_instance_cannot_be_changed(policy: Policy) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.method.levels = {}


@pytest.mark.parametrize("method", METHOD_CLASSES)
def test_the_docstring_states_guarantee_assumptions_and_source(method: Any) -> None:
    text = inspect.getdoc(method) or ""
    for word in ("Guarantee:", "Assumes:", "Source:"):
        assert word in text


@pytest.mark.parametrize("method", METHOD_CLASSES)
def test_every_method_has_its_page_with_every_option(method: Any) -> None:
    page = (DOCS / f"{method.name}.md").read_text(encoding="utf-8")
    for heading in ("Guarantee", "Assumes", "When not to use it", "Source", "Options", "Example"):
        assert f"\n## {heading}\n" in page
    for field in dataclasses.fields(method):
        assert f"| `{field.name}` |" in page
    assert method.name in (DOCS / "index.md").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def known() -> list[set[str]]:
    """The options of every method in the published schema."""
    sections = json_schema()["properties"]["release"]["anyOf"]
    return [set(section["properties"]) for section in sections if "properties" in section]


@pytest.mark.parametrize("method", METHOD_CLASSES)
def test_the_published_schema_knows_every_option(method: Any, known: list[set[str]]) -> None:
    assert {"method", *(field.name for field in dataclasses.fields(method))} in known


def test_the_guarantee_is_made_without_a_table_and_is_always_the_same(policy: Policy) -> None:
    guarantee = policy.method.plan(policy.schema).guarantee
    assert guarantee == policy.method.plan(policy.schema).guarantee
    assert guarantee.unit == policy.schema.unit
    assert Guarantee.from_json(json.loads(json.dumps(guarantee.to_json()))) == guarantee


def test_claims_and_steps_are_always_the_same_and_survive_as_json(policy: Policy) -> None:
    claims = policy.method.plan(policy.schema).claims
    assert claims == policy.method.plan(policy.schema).claims
    known = vocabulary(policy.method.name)
    for claim in claims:
        assert claim_of(json.loads(json.dumps(claim.to_json())), known.claims) == claim
        assert claim.unit == policy.schema.unit
        assert claim.theorem
        assert claim.not_protected
    steps = policy.method.plan(policy.schema).steps
    assert tuple(step_of(json.loads(json.dumps(step.to_json())), known.steps) for step in steps) == steps
    assert steps == policy.method.plan(policy.schema).steps


def test_every_assumption_of_the_guarantee_stands_in_its_strongest_claim(policy: Policy) -> None:
    plan = policy.method.plan(policy.schema)
    assert set(plan.claims[0].assumed) == set(map(str, plan.guarantee.assumes))


def test_a_release_does_not_depend_on_batches_or_formats(policy: Policy, outcome: Outcome, tmp_path: Path) -> None:
    first = outcome.to_arrow()
    assert first, "nothing was released, so nothing was compared"
    for name, source in sources(tmp_path):
        assert outcome_of(policy, source).to_arrow().equals(first), name


def test_a_release_does_not_depend_on_how_cells_are_counted(policy: Policy, outcome: Outcome) -> None:
    limits = CountingLimits(dense=1, buffered=50, held=4)
    limited = outcome_of(policy, Batches(rows(), 30), LocalEngine(limits)).to_arrow()
    assert limited.equals(outcome.to_arrow())


@of_methods("safe", "scheme")
@pytest.mark.usefixtures("policy")
def test_rows_come_out_in_the_order_of_their_values(outcome: Outcome) -> None:
    assert isinstance(outcome, Microdata)
    counts = outcome.counts
    places = np.stack(counts.codes(), axis=1)
    assert [tuple(row) for row in places] == sorted({tuple(row) for row in places})
    for column, codes in zip(counts.classes, counts.codes(), strict=True):
        labels = column.labels().take(pa.array(np.unique(codes))).drop_null().to_pylist()
        declared = column.recoding.column.hierarchy.labels(column.recoding.level)
        expected = sorted(labels) if declared is None else [each for each in declared if each in labels]
        assert [label for label in labels if label != "other"] == [label for label in expected if label != "other"]


@of_methods("safe", "scheme", "full-domain", "local-recoding", "cell-suppression", "mondrian", "partition")
def test_no_class_is_smaller_than_guaranteed(policy: Policy, outcome: Outcome) -> None:
    assert isinstance(outcome, Microdata | Anonymized)
    sizes = outcome.counts.counts if isinstance(outcome, Microdata) else outcome.sizes
    least = policy.method.plan(policy.schema).smallest_class
    assert least is not None
    assert sizes.min() >= least


@of_methods("slicing")
def test_no_class_of_any_table_is_smaller_than_guaranteed(policy: Policy, outcome: Outcome) -> None:
    least = policy.method.plan(policy.schema).smallest_class
    assert isinstance(outcome, Sliced)
    assert least is not None
    assert all(table.counts.counts.min() >= least for table in outcome.tables)


def test_methods_that_release_rows_name_a_smallest_class_and_others_do_not(policy: Policy, outcome: Outcome) -> None:
    rows_released = isinstance(outcome, Microdata | Anonymized | Sliced)
    assert rows_released == (policy.method.plan(policy.schema).smallest_class is not None)


@pytest.mark.parametrize(("method", "name"), EXAMPLES)
def test_the_guarantee_of_a_release_is_that_of_its_plan(method: str, name: str, tmp_path: Path) -> None:
    mapping = POLICIES[method][name]
    policy = load_policy(mapping)
    certificate = release(rows(), with_ledger(mapping, tmp_path)).certificate
    assert certificate.guarantee == plan(policy).guarantee == plan(load_policy(written(mapping, tmp_path))).guarantee
    assert certificate.claims == policy.plan.claims
    assert certificate.steps == policy.plan.steps


@pytest.mark.parametrize("method", POLICIES)
def test_the_guarantee_is_the_same_from_the_command_line_and_from_python(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mapping = next(iter(POLICIES[method].values()))
    file = written(mapping, tmp_path)
    guarantee = plan(load_policy(mapping)).guarantee
    pyarrow.csv.write_csv(rows(), tmp_path / "rows.csv")
    assert main(["plan", "--policy", str(file), "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert main(["release", "rows.csv", "--policy", str(file), "--out", "out", "--json"]) == 0
    certificate = json.loads(capsys.readouterr().out)["certificate"]
    assert Guarantee.from_json(certificate["guarantee"]) == guarantee
    assert planned["because"] == joined(guarantee.because)
    assert planned["unit"] == str(guarantee.unit)
    spent = certificate["accounting"]["spent"]["epsilon"]
    assert planned["epsilon"] is None if spent == "Infinity" else Decimal(planned["epsilon"]) == Decimal(spent)
    policy = load_policy(mapping)
    assert certificate_of(certificate).claims == policy.method.plan(policy.schema).claims


_QUOTED = {"question", "purpose", "public", "fill", "labels", "value"}
"""Fields that hold what the owner or an analyst wrote, or values that the policy declares."""


def test_nothing_in_a_plan_keeps_a_sentence_in_a_field(policy: Policy) -> None:
    """A certificate holds facts: a text in it is a name, a key or an exact number, and nobody reads words back."""
    plan = policy.plan
    for part in (*walk(plan.steps), *plan.claims, plan.guarantee.loss):
        assert [text for text in _texts(part) if text.count(" ") > 3 or "; " in text] == [], type(part).__name__


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts that a value holds, however deep; enums, terms and quoted fields are none."""
    if type(value) is str:
        yield value
    elif dataclasses.is_dataclass(value) and not isinstance(value, Term):
        for item in dataclasses.fields(value):
            yield from () if item.name in _QUOTED else _texts(getattr(value, item.name))
    elif isinstance(value, dict):
        yield from _texts(tuple(value.items()))
    elif isinstance(value, tuple | list | frozenset):
        for part in value:
            yield from _texts(part)


@pytest.mark.parametrize(
    ("method", "name", "field"),
    [
        ("blended-histogram", "k solved", "noise_epsilon"),
        ("private-histogram", "Laplace", "epsilon"),
        ("most-common", "with counts", "epsilon"),
        ("classifier", "pure", "epsilon"),
        ("tuning", "pure", "epsilon"),
    ],
)
def test_noise_that_cannot_be_drawn_is_refused_with_the_plan(method: str, name: str, field: str) -> None:
    policy = POLICIES[method][name]
    with pytest.raises(InvalidParameter, match=r"at most 2\^48"):
        _ = load_policy({**policy, "release": {**policy["release"], field: "1e-16"}}).plan


def test_no_example_plans_noise_that_cannot_be_drawn(policy: Policy) -> None:
    scales = [getattr(step, "scale", None) for step in walk(policy.plan.steps)]
    assert all(scale <= LARGEST_SCALE for scale in scales if isinstance(scale, Fraction))
