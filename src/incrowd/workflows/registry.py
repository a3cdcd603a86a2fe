"""Registry: methods, queries and coarser tables, which make certified releases; also those of other distributions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from incrowd import methods
from incrowd.core import loss
from incrowd.core.certificate import Named, Vocabulary, glossary
from incrowd.core.guarantee import Guarantee
from incrowd.core.plan import Method
from incrowd.core.steps.around import AROUND, OutsideCode
from incrowd.core.terms import Condition, Exposure, KeyedText, Theorem, joined
from incrowd.drawing.picture import Picture
from incrowd.errors import InvalidParameter, PackageMissing, Refused, UnsupportedVersion
from incrowd.verifier.check import Check

if TYPE_CHECKING:
    from incrowd.core.plan import Plan


GROUP = "incrowd.methods"


@dataclass(frozen=True)
class OutsideMethod:
    """A method of another distribution: its module, and the code that it is."""

    module: str
    code: OutsideCode


_admitted: dict[str, OutsideMethod] = {}  # by name; grows when a policy or a flag names a distribution, never by a file


def admitted(name: str) -> OutsideMethod | None:
    """Return the method of another distribution with a name, if that distribution was named in this process."""
    return _admitted.get(name)


def admit(distribution: str) -> tuple[str, ...]:
    """Load the methods of a distribution and return their names; refuse names of our own and broken modules."""
    try:
        installed = metadata.distribution(distribution)
    except (metadata.PackageNotFoundError, ValueError):
        raise PackageMissing(
            f"the distribution {distribution!r} is not installed here. Install it with pip, or leave it out."
        ) from None
    entries = [entry for entry in installed.entry_points if entry.group == GROUP]
    if not entries:
        raise InvalidParameter(f"{distribution!r} has no method: it declares no entry point of the group {GROUP!r}.")
    for entry in entries:
        _refuse_taken(entry.name, installed.name)
        module = _load(entry, installed.name)
        code = OutsideCode(installed.name, installed.version, digest_of(module))
        _admitted[entry.name] = OutsideMethod(module.__name__, code)
    return tuple(entry.name for entry in entries)


def outside_plan(plan: Plan) -> Plan:
    """Return a plan that names the code it comes from, where that is of another distribution."""
    outside = admitted(plan.method)
    if outside is None:
        return plan
    try:
        same = loss.from_json(loss.to_json(plan.guarantee.loss)) == plan.guarantee.loss
    except (InvalidParameter, KeyError, TypeError, AttributeError):
        same = False
    if not same:
        raise InvalidParameter(
            f"the method {plan.method!r} of {outside.code.distribution} brings a loss of its own. A method composes "
            "the losses of incrowd.core.loss, which every accountant knows."
        )
    return plan.led_by(outside.code)


def require_admitted(name: str, steps: object) -> None:
    """Refuse to read a certificate whose method is code that nobody named here."""
    for step in steps if isinstance(steps, list) else ():
        if isinstance(step, dict) and step.get("step") == OutsideCode.kind and admitted(name) is None:
            source = str(step.get("distribution"))
            raise Refused(
                f"the guarantee of this certificate depends on the code of the distribution {source!r}, which incrowd "
                f"did not check, and a certificate alone does not make it run. If you trust it, install it and add "
                f"--distribution {source}."
            )


def digest_of(module: ModuleType) -> str:
    """Return the SHA-256 of all files of the package that a module belongs to, by name and content."""
    total = hashlib.sha256()
    for path, place in sorted(_files(module.__name__.partition(".")[0])):
        content = path.read_bytes()
        total.update(f"{place}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()


def _files(package: str) -> Iterator[tuple[Path, str]]:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise InvalidParameter(f"the package {package!r} has no files that could be hashed.")
    if not spec.submodule_search_locations:
        yield Path(spec.origin), Path(spec.origin).name
    for folder in map(Path, spec.submodule_search_locations or ()):
        for path in folder.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path, path.relative_to(folder).as_posix()


def _refuse_taken(name: str, distribution: str) -> None:
    other = _admitted.get(name)
    if name in _own() or (other and other.code.distribution != distribution):
        owner = "incrowd" if other is None else other.code.distribution
        raise InvalidParameter(f"{distribution!r} cannot call a method {name!r}: {owner} has one of this name.")


def _load(entry: metadata.EntryPoint, distribution: str) -> ModuleType:
    try:
        module = import_module(entry.module)
    except ImportError as error:
        raise PackageMissing(f"{entry.module} of {distribution!r} cannot be imported: {error}.") from None
    parts = {name: getattr(module, name, None) for name in ("METHOD", "CHECK", "PICTURE")}
    method = parts["METHOD"]
    named = isinstance(method, type) and issubclass(method, Method) and method.name == entry.name
    if not (named and isinstance(parts["CHECK"], Check) and isinstance(parts["PICTURE"], Picture)):
        raise InvalidParameter(
            f"{entry.module} of {distribution!r} needs METHOD (a Method with name = {entry.name!r}), CHECK (a Check) "
            "and PICTURE (a Picture)."
        )
    return module


CHAIN = "chain"
OTHERS = {
    "question": "incrowd.queries.check",
    "coarser table": "incrowd.workflows.coarsen.check",
    CHAIN: "incrowd.methods.perturbation.chain",
    "private look": "incrowd.workflows.plan.preview.method",
    "survey": "incrowd.methods.local.survey.output",
}
"""What makes certified releases and is not a method of a policy: the module with its CHECK and PICTURE."""

MODELS = ("marginals", "tree", "comparison")
"""The methods that make a model, from which rows are drawn."""

LEARNING = ("classifier", "regressor", "kmeans", "pca", "tuning")
"""The methods that release a model that says something of rows."""


def _own() -> dict[str, str]:
    """Return all methods of incrowd itself, by name."""
    return {**methods.METHODS, **methods.LINKED, **methods.SERIES, **methods.GRAPHS}


def method_names() -> tuple[str, ...]:
    """Return the names of the methods that a policy of a table can ask for."""
    return tuple(methods.METHODS)


def linked_method_names() -> tuple[str, ...]:
    """Return the names of the methods that a policy of linked tables can ask for."""
    return tuple(methods.LINKED)


def series_method_names() -> tuple[str, ...]:
    """Return the names of the methods that a policy of a table with periods can ask for besides."""
    return tuple(methods.SERIES)


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
    place = {**_own(), **OTHERS}.get(name, None if outside is None else outside.module)
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
    yield from _own()
    yield from OTHERS
