"""A certificate is judged without the algorithm that made the release: a fault there is not repeated."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, NoReturn

import pytest

from incrowd.methods import GRAPHS, METHODS, SERIES
from incrowd.workflows.graph.release import release_graph
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.registry import check_of, method_class, picture_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.contract.examples import POLICIES, rows
from tests.graphs import EXAMPLES as GRAPH_EXAMPLES
from tests.graphs import example_graph, graph_files, graph_policy
from tests.policies import with_ledger


def _fail(*_: Any, **__: Any) -> NoReturn:
    raise AssertionError("a check used the algorithm of its method")


def _without_algorithm(monkeypatch: pytest.MonkeyPatch, method: type) -> None:
    """Replace every function of a method's class, and of the classes it builds on, by one that fails."""
    for cls in method.__mro__:
        own = [name for name, value in vars(cls).items() if inspect.isfunction(value) and not name.startswith("__")]
        for name in own if cls.__module__.startswith("incrowd.methods") else ():
            monkeypatch.setattr(cls, name, _fail)


@pytest.mark.parametrize("name", METHODS)
def test_verify_passes_without_the_algorithm(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = load_policy(with_ledger(next(iter(POLICIES[name].values())), tmp_path))
    release_to(rows(), policy, Destination(tmp_path / "out", "csv"))
    _without_algorithm(monkeypatch, method_class(name))
    outcome = verify(tmp_path / "out")
    assert outcome.passed, outcome.failure


@pytest.mark.parametrize("example", GRAPH_EXAMPLES)
def test_verify_passes_without_the_algorithm_for_graphs(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit, release = GRAPH_EXAMPLES[example]
    graph_files(tmp_path, example_graph(example))
    release_graph(load_policy(graph_policy(tmp_path, release, unit)), Destination(tmp_path / "out", "csv"))
    _without_algorithm(monkeypatch, method_class(release["method"]))
    outcome = verify(tmp_path / "out")
    assert outcome.passed, outcome.failure


@pytest.mark.parametrize("name", [*METHODS, *SERIES, *GRAPHS])
def test_a_method_has_one_check_and_one_picture(name: str) -> None:
    assert check_of(name) is check_of(name)
    assert {*check_of(name).steps} >= {step for place in check_of(name).order for step in place.classes}
    assert picture_of(name) is not None
