"""A loss as JSON and back: exact fractions as text, one tag per class, nothing unknown let through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, cast

from incrowd.core import loss as losses
from incrowd.core.loss import Loss
from incrowd.core.rounding import short
from incrowd.errors import InvalidParameter, UnknownLoss

TAGS: dict[str, type] = {
    "pure": losses.Pure,
    "approximate": losses.Approximate,
    "profile": losses.Profile,
    "zero-concentrated": losses.ZeroConcentrated,
    "laplace": losses.Laplace,
    "gaussian": losses.Gaussian,
    "crowd": losses.Crowd,
    "noisy-when-small": losses.NoisyWhenSmall,
    "syntactic": losses.Syntactic,
    "sequence": losses.Sequence,
    "parallel": losses.Parallel,
    "sampled": losses.Sampled,
    "robustly-sampled": losses.RobustlySampled,
    "grouped": losses.Grouped,
}
_TAG_OF = {cls: tag for tag, cls in TAGS.items()}


def to_json(loss: Loss) -> dict[str, Any]:
    """Return the plain form of a loss.

    >>> to_json(losses.Sampled(Fraction(1, 10), losses.Crowd(20)))
    {'loss': 'sampled', 'rate': '1/10', 'inner': {'loss': 'crowd', 'k': 20, 'epsilon': '0'}, 'sample': None}
    """
    tag = _TAG_OF.get(type(loss))
    if tag is None:
        raise UnknownLoss(f"a loss of class {type(loss).__name__} cannot be written down: no tag is declared for it.")
    return {"loss": tag} | {field.name: _plain(getattr(loss, field.name)) for field in fields(loss)}


def from_json(plain: Mapping[str, Any]) -> Loss:
    """Read what `to_json` wrote; an unknown class or field is refused.

    >>> from_json({"loss": "pure", "epsilon": "1/2"})
    Pure(epsilon=Fraction(1, 2))
    """
    tag = plain.get("loss")
    cls = TAGS.get(tag) if isinstance(tag, str) else None
    if cls is None:
        raise UnknownLoss(f"the loss class {tag!r} is not known here; a newer version of incrowd may know it.")
    names = [field.name for field in fields(cls)]
    if set(plain) != {"loss", *names}:
        raise UnknownLoss(f"a loss of class {tag!r} has exactly the fields {', '.join(names)}.")
    try:
        return cast("Loss", cls(**{name: _READ[name](plain[name]) for name in names}))
    except (TypeError, ValueError, KeyError, ZeroDivisionError, AttributeError) as error:
        raise InvalidParameter(f"a loss of class {tag!r} holds a field that cannot be read.") from error


def _plain(value: Any) -> Any:
    match value:
        case Fraction():
            return str(value)
        case tuple():
            return [_plain(item) for item in value]
        case None | str() | int():
            return value
        case _:
            return to_json(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _optional_text(value: object) -> str | None:
    return None if value is None else _text(value)


def _fraction(value: object) -> Fraction:
    return Fraction(short(_text(value)))


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    return value


def _points(value: Any) -> tuple[tuple[Fraction, Fraction], ...]:
    return tuple((_fraction(epsilon), _fraction(delta)) for epsilon, delta in value)


def _pairs(value: Any) -> tuple[tuple[str, str], ...]:
    return tuple((_text(name), _text(parameter)) for name, parameter in value)


_READ: dict[str, Callable[[Any], Any]] = {
    "epsilon": _fraction,
    "delta": _fraction,
    "rho": _fraction,
    "scale": _fraction,
    "rate": _fraction,
    "low": _fraction,
    "high": _fraction,
    "max_rate": _fraction,
    "k": _whole,
    "sensitivity": _whole,
    "size": _whole,
    "irregular": _whole,
    "criterion": _text,
    "sample": _optional_text,
    "points": _points,
    "parameters": _pairs,
    "parts": lambda value: tuple(from_json(part) for part in value),
    "inner": from_json,
}
