"""Registry: what makes certified releases: methods, questions, coarser tables; only the one named is imported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from incrowd import methods
from incrowd.core.certificate import Named, Vocabulary, glossary
from incrowd.core.guarantee import Guarantee
from incrowd.core.steps.around import AROUND
from incrowd.core.terms import Condition, Exposure, KeyedText, Theorem, joined
from incrowd.drawing.picture import Picture
from incrowd.errors import UnsupportedVersion
from incrowd.workflows.adapters import adapted_check, adapted_picture
from incrowd.workflows.distributions import admitted

if TYPE_CHECKING:
    from incrowd.core.plan import Method
    from incrowd.verifier.check import Check

CHAIN = "chain"
OTHERS = {
    "question": "incrowd.queries.check",
    "coarser table": "incrowd.workflows.coarsen",
    CHAIN: "incrowd.methods.perturbation.chain",
    "private look": "incrowd.workflows.plan.preview.method",
    "survey": "incrowd.methods.local.survey.output",
}
"""What makes certified releases and is no method of a policy: where its check is."""

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
    place = {**methods.METHODS, **methods.GRAPHS}.get(name) or _package(name)
    if isinstance(place, str):
        return cast("type[Any]", import_module(place).METHOD)
    package, cls = place
    return cast("type[Any]", getattr(import_module(f"{package}.method"), cls))


def chain(steps: Iterable[Method]) -> Method:
    """Return the method that performs several one after the other, or refuse those that cannot be."""
    return cast("Method", import_module(OTHERS[CHAIN]).METHOD(tuple(steps)))


def check_of(name: str) -> Check:
    """Return how the files of a method are checked, or refuse a method that is not known here."""
    own = import_module(_package(name))
    if hasattr(own, "CHECK"):
        return cast("Check", own.CHECK)
    return adapted_check(import_module(_module(name, "check") or f"{_package(name)}.check"))


def picture_of(name: str) -> Picture:
    """Return what a report says and draws of a method's releases."""
    own = import_module(_package(name))
    if hasattr(own, "PICTURE"):
        return cast("Picture", own.PICTURE)
    module = _module(name, "picture")
    return Picture() if module is None else adapted_picture(import_module(module))


def _module(name: str, part: str) -> str | None:
    """Return where a part of a method is: in its own package, or else beside it, where its family shares one."""
    own = _package(name)
    places = (f"{package}.{part}" for package in (own, own.rpartition(".")[0]))
    return next((place for place in places if find_spec(place) is not None), None)


def family_of(name: str) -> str:
    """Return the family that a method belongs to: the folder that its package lies in.

    >>> family_of("safe"), family_of("question")
    ('anonymity', 'queries')
    """
    parts = _package(name).split(".")
    return parts[2] if parts[1] == "methods" else parts[1]


def _package(name: str) -> str:
    places = {**methods.METHODS, **methods.GRAPHS, **OTHERS}
    place = places.get(name)
    package = place[0] if isinstance(place, tuple) else place
    outside = admitted(name)
    if package is None and outside is not None:
        return outside.module
    if package is None:
        raise UnsupportedVersion("this certificate was made by a method that is not known here.")
    return package


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
