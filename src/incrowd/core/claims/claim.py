"""Claim: one typed statement about a release, with its theorem, what it needs and what it leaves open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

from incrowd.core.codec import encode, pick
from incrowd.core.rounding import exact, round_up
from incrowd.core.terms import Assumption, Condition, Exposure, KeyedText, Theorem, joined
from incrowd.core.unit import Unit
from incrowd.core.words import counted, short_up
from incrowd.errors import InvalidParameter

GROUPS = Exposure(
    "facts-about-groups", "facts about a whole group: people like you can be described, with or without your data"
)
"""What no guarantee to single people protects."""


class Status(StrEnum):
    """How far a precondition is known to hold."""

    PROVED = "proved"
    CHECKED = "checked"
    ASSUMED = "assumed"
    NOT_MET = "not met"


@dataclass(frozen=True)
class Precondition:
    """Something that must be true for a claim, and how we know."""

    term: Condition
    status: Status

    @property
    def text(self) -> str:
        """What must be true, in words."""
        return self.term.text


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What every claim has; the fields of its kind are the numbers and names that it states.

    `numbers` names the fields that an accountant computed: everything else follows from the steps.  Claims are
    listed in the order of `rank`, the strongest first.
    """

    kind: ClassVar[str]
    rank: ClassVar[int] = 50
    numbers: ClassVar[Mapping[str, str]] = {}
    """The fields that an accountant computed, each with the name under which a plan knows its number."""
    signs: ClassVar[Mapping[str, str]] = {"epsilon": "ε", "delta": "δ"}
    """The fields that are losses, each with the symbol that readers show."""
    restates: ClassVar[bool] = False
    """Whether it repeats a stronger claim by a weaker formula; its δ is not the failure probability of the release."""

    unit: Unit
    theorem: tuple[Theorem, ...]
    preconditions: tuple[Precondition, ...] = ()
    not_protected: tuple[Exposure, ...] = ()

    @property
    def sentence(self) -> str:
        """What is claimed, in words."""
        raise NotImplementedError

    @property
    def reads(self) -> str | None:
        """What of a person is used, in words, where the unit does not say all of it."""
        return None

    @property
    def source(self) -> str:
        """Why it holds, in words."""
        return joined(self.theorem)

    @property
    def parameters(self) -> dict[str, Any]:
        """What is stated, in plain form."""
        return {name: part for name, part in encode(self).items() if name not in _SHARED}

    @property
    def facts(self) -> tuple[str, ...]:
        """What is stated, in words: losses last and rounded up; the unit says who is protected."""
        stated = ((name, value) for name, value in self.parameters.items() if name not in _OF_UNIT)
        return tuple(self._fact(*fact) for fact in sorted(stated, key=lambda item: _PLACES.get(item[0], 1)))

    def _fact(self, name: str, value: Any) -> str:
        if name in self.signs:
            return f"{self.signs[name]} ≤ {short_up(round_up(exact(str(value))))}"
        if name == "columns":
            return f"over {counted(len(value), 'column')}"
        stated = vars(self).get(name)
        words = stated.text if isinstance(stated, KeyedText) else _listed(value)
        return f"{name.replace('_', ' ')} = {words}"

    @property
    def assumed(self) -> tuple[str, ...]:
        """What cannot be checked by software."""
        return tuple(condition.text for condition in self.preconditions if condition.status is Status.ASSUMED)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        plain: dict[str, Any] = {"kind": self.kind, "parameters": self.parameters}
        return plain | {name: encode(getattr(self, name)) for name in _SHARED}


def _listed(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_listed(part)}" for name, part in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


_SHARED = tuple(item.name for item in fields(Claim))
_OF_UNIT = frozenset({"adjacency", "max_rows"})
_PLACES = {"k": 0, "rate": 0, "epsilon": 2, "delta": 3}


def claim_of(plain: Mapping[str, Any], classes: Iterable[type[Claim]]) -> Claim:
    """Read a claim of one of the classes, or refuse it."""
    kind = plain.get("kind")
    parameters = plain.get("parameters")
    if isinstance(parameters, Mapping):
        flat = {**parameters, **{name: part for name, part in plain.items() if name != "parameters"}}
        same_kind = [cls for cls in classes if cls.kind == kind]
        claim = pick(same_kind, flat, lambda claim: {**encode(claim), "kind": claim.kind})
        if claim is not None and claim.to_json() == plain:
            return claim
    raise InvalidParameter("a claim has an unknown kind, or a field that its kind does not have.")


def proved(*terms: Condition) -> tuple[Precondition, ...]:
    """Return conditions that follow from how the program works."""
    return tuple(Precondition(term, Status.PROVED) for term in terms)


def checked(*terms: Condition) -> tuple[Precondition, ...]:
    """Return conditions that are tested on each release."""
    return tuple(Precondition(term, Status.CHECKED) for term in terms)


def assumed(terms: Iterable[Assumption]) -> tuple[Precondition, ...]:
    """Return conditions that software cannot check, in the order of their keys."""
    return tuple(Precondition(term, Status.ASSUMED) for term in sorted(terms))
