"""Forging: every way to change one thing in a certificate, with an id that fits again."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from incrowd.core.certificate import NONCE_BYTES, meaning_digest
from incrowd.core.codec import digest
from incrowd.core.steps.step import ClaimBasis, claims_of, fold
from incrowd.errors import IncrowdError
from incrowd.verifier.judge import judge, numbers_of
from incrowd.workflows.certificates import certificate_of
from incrowd.workflows.registry import check_of

Path = tuple[str | int, ...]
_BOUND = {"policy": "policy_hash", "method": "method", "guarantee": "guarantee", "claims": "claims", "steps": "steps"}


@dataclass(frozen=True)
class Forgery:
    """One change: where, what was done there, and the plain certificate that results."""

    path: Path
    change: str
    plain: dict[str, Any]

    @property
    def top(self) -> str:
        """The part of the certificate that is changed; empty for the certificate itself."""
        return str(self.path[0]) if self.path else ""

    @property
    def leaf(self) -> str | int:
        """The innermost key."""
        return self.path[-1] if self.path else ""

    @property
    def name(self) -> str:
        return f"{'/'.join(map(str, self.path))}: {self.change}"


def forgeries(plain: dict[str, Any]) -> Iterator[Forgery]:
    """Yield every forgery of one leaf or one item: changed, removed, added, doubled; the id is made to fit."""
    for path, change, forged in _changed(plain, ()):
        if path[:1] not in (("certificate",), ("id",), ("signature",)):
            yield Forgery(path, change, fitting(forged))


def fitting(plain: dict[str, Any]) -> dict[str, Any]:
    """Return a certificate with the id that its plan has."""
    nonce = UUID(plain["id"]).bytes[:NONCE_BYTES]
    content = {name: plain.get(field) for name, field in _BOUND.items()} | {"nonce": nonce.hex()}
    mark = digest(f"incrowd release {plain['certificate']}", content)
    return {**plain, "id": str(UUID(hex=nonce.hex() + mark[: 32 - 2 * NONCE_BYTES]))}


def refolded(plain: dict[str, Any]) -> dict[str, Any]:
    """Return a certificate whose guarantee and claims follow from its steps again, as a thorough forger makes it."""
    read = certificate_of(fitting(plain))
    guarantee = fold(read.steps, read.guarantee.unit, read.guarantee.delta)
    claims = claims_of(ClaimBasis(guarantee, read.steps, numbers_of(read.claims)))
    glossary = meaning_digest(guarantee, claims, read.steps)
    return fitting(replace(read, guarantee=guarantee, claims=claims, glossary=glossary).to_json())


def placed(plain: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """Return a copy with another value at a place."""
    forged = copy.deepcopy(plain)
    inner: Any = forged
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return forged


def _changed(value: Any, path: Path) -> Iterator[tuple[Path, str, Any]]:
    """Yield (where, what, the whole with that change) for everything inside a value."""
    if isinstance(value, dict):
        yield path, "a key added", {**value, "certified": "GDPR"}
        for name in value:
            left = {key: part for key, part in value.items() if key != name}
            yield (*path, name), "removed", left
            for where, what, inner in _changed(value[name], (*path, name)):
                yield where, what, {**value, name: inner}
    elif isinstance(value, list):
        yield from _items(value, path)
    else:
        yield from ((path, "changed", other) for other in _others(value))


def _items(value: list[Any], path: Path) -> Iterator[tuple[Path, str, Any]]:
    yield path, "an item added", [*value, "and safe"]
    for place, item in enumerate(value):
        yield (*path, place), "removed", [*value[:place], *value[place + 1 :]]
        yield (*path, place), "doubled", [*value[: place + 1], item, *value[place + 1 :]]
        for where, what, inner in _changed(item, (*path, place)):
            yield where, what, [*value[:place], inner, *value[place + 1 :]]


def _others(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1)
    elif isinstance(value, str):
        yield from _texts(value)
    else:
        yield "something"


def _texts(value: str) -> Iterator[str]:
    """Yield other numbers, larger and smaller, for a number that is text; and another text for any text."""
    yield f"{value} " if value else "x"
    yield "something else"
    numerator, slash, denominator = value.partition("/")
    try:
        number = float(numerator) / float(denominator) if slash else float(value)
    except (ValueError, ZeroDivisionError):
        return
    if not math.isfinite(number):
        yield "1"
        return
    yield from (repr(number * 2 + 1e-3), repr(number / 2))


def caught(plain: dict[str, Any]) -> str | None:
    """Return what the certificate alone shows to be wrong; None if nothing."""
    try:
        certificate = certificate_of(plain)
        problems = (look for look in judge(certificate, check_of(certificate.method.name)) if look.problem is not None)
        return next((look.about for look in problems if look.problem and not look.problem.undecided), None)
    except IncrowdError as error:
        return type(error).__name__


def require_all_caught(plain: dict[str, Any]) -> None:
    """Change guarantee, claims and glossary leaf by leaf; a change of a step may leave guarantee and claims alone."""
    assert caught(plain) is None
    honest = certificate_of(plain)
    for forgery in forgeries(plain):
        problem = caught(forgery.plain)
        said = forgery.top in ("guarantee", "claims", "glossary")
        assert problem or not said, forgery.name
        if forgery.top == "steps" and problem is None:
            read = certificate_of(forgery.plain)
            assert (read.guarantee, read.claims) == (honest.guarantee, honest.claims), forgery.name
