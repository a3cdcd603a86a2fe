"""Registry: what makes certified releases: methods, questions, coarser tables; only the one named is imported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from incrowd import methods
from incrowd.core.certificate import Named, Vocabulary, glossary
from incrowd.core.guarantee import Guarantee
from incrowd.core.steps.around import AROUND
from incrowd.core.terms import Condition, Exposure, KeyedText, Theorem, joined
from incrowd.errors import UnsupportedVersion
from incrowd.workflows.distributions import admitted

if TYPE_CHECKING:
    from incrowd.core.plan import Method
    from incrowd.drawing.picture import Picture
    from incrowd.verifier.check import Check

CHAIN = "chain"
OTHERS = {
    "question": "incrowd.queries.check",
    "coarser table": "incrowd.workflows.coarsen.check",
    CHAIN: "incrowd.methods.perturbation.chain",
    "private look": "incrowd.workflows.plan.preview.method",
    "survey": "incrowd.methods.local.survey.output",
}
"""What makes certified releases and is not a method of a policy: the module with its CHECK and PICTURE."""

MODELS = ("marginals", "tree")
"""The methods that make a model, from which rows are drawn."""

LEARNING = ("classifier", "regressor", "kmeans", "pca", "tuning")
"""The methods that release a model that says something of rows."""


def method_names() -> tuple[str, ...]:
    """Return the names of the methods that a policy of a table can ask for."""
    return tuple(methods.METHODS)


def graph_method_names() -> tuple[str, ...]:
    """Return the names of the methods that a policy of a graph can ask for."""
    return tuple(methods.GRAPHS)


def method_class(name: str) -> type[Any]:
    """Return the class of a method of a policy."""
    return cast("type[Any]", _module(name).METHOD)


def chain(steps: Iterable[Method]) -> Method:
    """Return the method that performs several one after the other, or refuse those that cannot be."""
    return cast("Method", import_module(OTHERS[CHAIN]).METHOD(tuple(steps)))


def check_of(name: str) -> Check:
    """Return how the files of a method are checked, or refuse a method that is not known here."""
    return cast("Check", _module(name).CHECK)


def picture_of(name: str) -> Picture:
    """Return what a report says and draws of a method's releases."""
    return cast("Picture", _module(name).PICTURE)


def family_of(name: str) -> str:
    """Return the family that a method belongs to: the folder that its package lies in.

    >>> family_of("safe"), family_of("question")
    ('anonymity', 'queries')
    """
    parts = _place(name).split(".")
    return parts[2] if parts[1] == "methods" else parts[1]


def _module(name: str) -> ModuleType:
    return import_module(_place(name))


def _place(name: str) -> str:
    """Return the module of a method: one of ours, or one of a distribution that was named in this process."""
    outside = admitted(name)
    place = {**methods.METHODS, **methods.GRAPHS, **OTHERS}.get(name, None if outside is None else outside.module)
    if place is None:
        raise UnsupportedVersion("this certificate was made by a method that is not known here.")
    return place


def vocabulary(name: str) -> Vocabulary:
    """Return the steps and claims that a method can have."""
    check = check_of(name)
    return Vocabulary((*check.steps, *AROUND), check.claims, check.version)


def method_version(name: str) -> Named:
    """Return a method's name with the version of its steps and claims, as a certificate tells it."""
    return Named(name, vocabulary(name).version)


def reasons(guarantee: Guarantee) -> str:
    """Return why a guarantee holds, for people; one from a ledger may name theorems of methods that are not loaded."""
    if not all(theorem.meaning for theorem in guarantee.because):
        for name in names():
            vocabulary(name)
    return joined(Theorem.read(theorem.key) for theorem in guarantee.because)


def whole_glossary() -> dict[str, Any]:
    """Return what every kind, field and key means that any method known here can put into a certificate."""
    vocabularies = [vocabulary(name) for name in names()]
    terms = [term for kind in (Theorem, Condition, Exposure) for term in kind.declared.values()]
    claims, steps = (
        [part_class for one in vocabularies for part_class in getattr(one, part)] for part in ("claims", "steps")
    )
    keys = [key for kind in KeyedText.__subclasses__() for key in kind]
    return glossary(terms, claims, steps, keys)


def names() -> Iterator[str]:
    """Yield everything that makes certified releases."""
    yield from methods.METHODS
    yield from methods.GRAPHS
    yield from OTHERS
