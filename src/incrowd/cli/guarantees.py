"""Releases as text on a command line: `k=20,rate=0.1 x8` becomes eight guarantees."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Approximate, Crowd, Gaussian, Laplace, Loss, Pure, Sampled, ZeroConcentrated
from incrowd.core.rounding import exact
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter

_REPEATED = re.compile(r"(?P<release>.*?)\s*[x×]\s*(?P<times>[0-9]{1,9})\s*")
_MOST = 10_000

Fields = dict[str, Fraction]


def guarantees(kind: str, text: str, unit: Unit) -> tuple[Guarantee, ...]:
    """Read one option: fields as `name=value` or in order, separated by commas, with `x8` behind for eight of them.

    >>> [guarantee.loss for guarantee in guarantees("pure", "1/2 x2", Unit())]
    [Pure(epsilon=Fraction(1, 2)), Pure(epsilon=Fraction(1, 2))]
    >>> guarantees("safe", "k=20,rate=0.1", Unit())[0].loss
    Sampled(rate=Fraction(1, 10), inner=Crowd(k=20, epsilon=Fraction(0, 1)), sample=None)
    """
    release, times = _times(kind, text)
    required, optional, build = KINDS[kind]
    fields = _fields(kind, release, required, optional)
    loss = build({name: value for name, value in fields.items() if name != "rate" or kind in _SAMPLED_BY_NATURE})
    if "rate" in fields and kind not in _SAMPLED_BY_NATURE:
        loss = Sampled(fields["rate"], loss)
    from incrowd.workflows.bounds.composition import STATED

    return (Guarantee(loss, unit, (STATED,)),) * times


def guarantee_in(path: str) -> Guarantee:
    """Read the guarantee in a certificate or in the JSON of a guarantee."""
    from incrowd.workflows.bounds.composition import guarantee_of

    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidParameter(f"{path} cannot be read as a certificate: give an existing JSON file.") from error
    if not isinstance(document, dict):
        raise InvalidParameter(f"{path} is not a certificate: a certificate is one JSON object.")
    return guarantee_of(document)


def _times(kind: str, text: str) -> tuple[str, int]:
    match = _REPEATED.fullmatch(text)
    if match is None:
        return text, 1
    times = int(match["times"])
    if not 1 <= times <= _MOST:
        raise InvalidParameter(f"--{kind}: a release can be repeated 1 to {_MOST:,} times.")
    return match["release"], times


def _fields(kind: str, text: str, required: tuple[str, ...], optional: tuple[str, ...]) -> Fields:
    names, fields = (*required, *optional), Fields()
    for position, piece in enumerate(text.split(",")):
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not equals:
            name, value = (names[position] if position < len(names) else ""), name
        if name not in names or name in fields:
            raise InvalidParameter(f"--{kind} takes {_form(required, optional)}.")
        fields[name] = exact(value, f"{name} of --{kind}")
    if any(name not in fields for name in required):
        raise InvalidParameter(f"--{kind} needs {_form(required, optional)}.")
    return fields


def _form(required: tuple[str, ...], optional: tuple[str, ...]) -> str:
    needed = ",".join(f"{name}=…" for name in required)
    extra = f", optionally {' and '.join(f'{name}=…' for name in optional)}" if optional else ""
    return f"{needed}{extra}, then x8 for eight such releases"


def _whole(value: Fraction, name: str) -> int:
    if value.denominator != 1:
        raise InvalidParameter(f"{name} must be a whole number.")
    return int(value)


def _safe(fields: Fields) -> Loss:
    return Sampled(fields["rate"], Crowd(_whole(fields["k"], "k")))


def _crowd(fields: Fields) -> Loss:
    return Sampled(fields["rate"], Crowd(_whole(fields["k"], "k"), fields["epsilon"]))


def _laplace(fields: Fields) -> Loss:
    return Laplace(fields["scale"], _whole(fields.get("sensitivity", Fraction(1)), "sensitivity"))


def _gaussian(fields: Fields) -> Loss:
    return Gaussian(fields["scale"], _whole(fields.get("sensitivity", Fraction(1)), "sensitivity"))


_SAMPLED_BY_NATURE = frozenset({"safe", "crowd"})
KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Callable[[Fields], Loss]]] = {
    "safe": (("k", "rate"), (), _safe),
    "crowd": (("k", "rate", "epsilon"), (), _crowd),
    "pure": (("epsilon",), ("rate",), lambda fields: Pure(fields["epsilon"])),
    "approximate": (("epsilon", "delta"), ("rate",), lambda fields: Approximate(fields["epsilon"], fields["delta"])),
    "rho": (("rho",), (), lambda fields: ZeroConcentrated(fields["rho"])),
    "laplace": (("scale",), ("sensitivity", "rate"), _laplace),
    "gaussian": (("scale",), ("sensitivity", "rate"), _gaussian),
}
