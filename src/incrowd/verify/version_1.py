"""Version 1: certificates as they were written before they named their method, read into typed steps and claims.

Their ids, digests and signatures are checked on the original text.  Where words have changed since, `WORDS` holds each
old text with the one that means the same today; a text in `WITHDRAWN` is no longer held true, and neither is a claim of
which `withdrawn` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from incrowd.core.certificate import (
    Accounting,
    Certificate,
    Columns,
    Dataset,
    File,
    LedgerPlace,
    Named,
    Signature,
)
from incrowd.core.claims.claim import Claim, Status, claim_of
from incrowd.core.claims.privacy import Private
from incrowd.core.codec import decode, digest
from incrowd.core.guarantee import Guarantee
from incrowd.core.steps.samples import COINS, DrawnHere
from incrowd.core.steps.step import Step, step_of, walk
from incrowd.errors import InvalidParameter
from incrowd.verify.statement import MethodCheck, in_order

WORDS: Mapping[str, str] = {
    "every number of every group has noise of its own, and nothing else depends on rows": (
        "of what depends on rows, nothing enters the answer but sums under the stated noise, what the stated private "
        "selections chose, and names of groups whose noisy count reaches the stated threshold"
    ),
}
WITHDRAWN: frozenset[str] = frozenset()
_FIELDS = {
    "certificate",
    "id",
    "created",
    "tool",
    "policy_hash",
    "dataset",
    "guarantee",
    "claims",
    "chain",
    "accounting",
    "ledger",
    "outputs",
    "schema",
    "evidence",
    "limits",
    "approvals",
    "signature",
}
_BLENDING = ("crowd-blending", "crowd-blending, each table alone")
_EXAMPLE_4 = (
    "Gehrke, Hay, Lui & Pass 2012, Example 4: |mean over points − mean over rows| ≤ L·moves + 2·B·changed/points for "
    "every function that changes by at most L "
)
_BY_SIDE = f"{_EXAMPLE_4}along a side of the box and lies between −B and B"
_BY_DISTANCE = (
    f"{_EXAMPLE_4}times the Euclidean distance of two places, sides of the box being 1 long, and lies between −B and B"
)
_THRESHOLD = {"step", "least", "delta"}
_ORDERED = ("integer", "decimal", "date")
_UNTOLD = "how far its many values are apart is not told here"
_HERE = "Poisson, one secret coin per row with the chance in the column "


def read(plain: Mapping[str, Any], checks: Iterable[tuple[str, MethodCheck]]) -> Certificate:
    """Read a certificate of version 1; the first method that knows all its steps, in their order, has made it."""
    if set(plain) != _FIELDS:
        raise InvalidParameter("a certificate has missing or unknown fields.")
    try:
        claims = [_restated(each) for each in plain["claims"]]
        told = _today({"guarantee": plain["guarantee"], "claims": claims, "chain": _named(plain["chain"])})
        told = _with_secret_coins(told)
        types = {column["name"]: column["type"] for column in plain["schema"]["columns"]}
        name, steps, typed = _made_by(told, types, checks)
        return Certificate(
            id=_text(plain["id"]),
            created=_text(plain["created"]),
            tool=_text(plain["tool"]),
            charts="",
            method=Named(name),
            policy_hash=_text(plain["policy_hash"]),
            dataset=decode(Dataset, plain["dataset"]),
            guarantee=Guarantee.from_json(told["guarantee"]),
            claims=typed,
            steps=steps,
            accounting=decode(Accounting, _without_nothing(plain["accounting"])),
            ledger=decode(LedgerPlace, plain["ledger"]),
            schema=decode(Columns, plain["schema"]),
            evidence=dict(plain["evidence"]),
            outputs=tuple(decode(File, each) for each in plain["outputs"]),
            limits=tuple(map(_text, plain["limits"])),
            approvals=tuple(dict(each) for each in plain["approvals"]),
            signature=None if plain["signature"] is None else decode(Signature, plain["signature"]),
            original=plain,
        )
    except InvalidParameter:
        raise
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidParameter("this certificate lacks a field or holds one that cannot be read.") from None


def withdrawn(claim: Claim, certificate: Certificate) -> bool:
    """Whether a claim of version 1 is no longer held true.

    People of whom one row among several was kept blend with nobody, and neither do those who were drawn with a chance
    of their own; functions that change by L along each side of a box change by more across it.
    """
    unit, here = certificate.guarantee.unit, any(isinstance(step, DrawnHere) for step in walk(certificate.steps))
    if certificate.original is None:
        return False
    return claim.theorem == _BY_SIDE or (claim.kind in _BLENDING and (here or not unit.single))


def _restated(claim: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a claim about slowly changing functions in today's words, if it means the same: in a box with one side."""
    one = claim.get("theorem") == _BY_SIDE and len(claim["parameters"]["columns"]) == 1
    return {**claim, "theorem": _BY_DISTANCE} if one else claim


def _made_by(
    told: Mapping[str, Any], types: Mapping[str, str], checks: Iterable[tuple[str, MethodCheck]]
) -> tuple[str, tuple[Step, ...], tuple[Claim, ...]]:
    for name, check in checks:
        try:
            claims = tuple(claim_of(each, check.CLAIMS) for each in told["claims"])
            steps = tuple(step_of(each, check.STEPS) for each in _chain(told, claims, types, check))
        except (InvalidParameter, KeyError, TypeError, AttributeError):  # such steps another method makes, or none
            continue
        if in_order(steps, check.ORDER):
            return name, steps, claims
    raise InvalidParameter("this certificate tells of steps or claims that no method known here has.")


def _named(chain: list[Any]) -> list[Any]:
    """Return steps in which a certificate that one of them holds is told by its name, its digest and its steps."""
    return [
        {**step, "of": {"id": held["id"], "digest": _digest(held), "chain": _named(held["chain"])}}
        if isinstance(held := step.get("of"), Mapping)
        else step
        for step in chain
    ]


def _digest(plain: Mapping[str, Any]) -> str:
    return digest("incrowd certificate 1", {**plain, "signature": None})


def _chain(
    told: Mapping[str, Any], claims: tuple[Claim, ...], types: Mapping[str, str], check: MethodCheck
) -> list[Mapping[str, Any]]:
    """Return the steps as they are told today: some methods told those that a step holds one after the other."""
    chain = [_completed(each, claims, types) for each in told["chain"]]
    gathered = getattr(check, "from_version_1", None)
    return chain if gathered is None else list(gathered(chain, Guarantee.from_json(told["guarantee"]).loss))


def _completed(step: Mapping[str, Any], claims: tuple[Claim, ...], types: Mapping[str, str]) -> Mapping[str, Any]:
    """Return a step with the fields that version 2 added to it: they stood elsewhere in the certificate."""
    if isinstance(held := step.get("of"), Mapping):
        return {**step, "of": {**held, "chain": [_completed(each, claims, types) for each in held["chain"]]}}
    design = step.get("design")
    if step.get("drawn") == "here" and isinstance(design, str) and design.startswith(_HERE):
        return {**step, "column": design.removeprefix(_HERE)[1:-1]}
    private = next((claim for claim in claims if isinstance(claim, Private)), None)
    if step.get("step") == "threshold" and set(step) == _THRESHOLD and step["delta"] != "0" and private is not None:
        return {**step, "epsilon": str(private.epsilon)}
    if step.get("step") == "cut":
        ordered = {name: types[name] for name in _in_order(claims) if name not in step.get("places", {})}
        named = {name: kind for name, kind in ordered.items() if kind in _ORDERED}
        return {**step, "ordered": named} if named else step
    return step


def _in_order(claims: tuple[Claim, ...]) -> list[str]:
    """Return the columns that claims measure in order, but for those of which nobody is told the distances."""
    close = [claim for claim in claims if claim.parameters.get("distance") == "ordered"]
    told = [claim for claim in close if not any(each.text.endswith(_UNTOLD) for each in claim.preconditions)]
    return [str(claim.parameters["sensitive"]) for claim in told]


def _today(told: Any) -> Any:
    """Return the same with today's words; a claim that was withdrawn is refused by name."""
    if isinstance(told, Mapping):
        return {name: _today(part) for name, part in told.items()}
    if isinstance(told, list):
        return [_today(part) for part in told]
    if isinstance(told, str) and told in WITHDRAWN:
        raise InvalidParameter(f"this certificate claims: “{told}”. This is no longer held true, see CHANGELOG.")
    return WORDS.get(told, told) if isinstance(told, str) else told


def _with_secret_coins(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a sampled question promised with what it did not say: its coins must have stayed secret."""
    kinds = [step.get("step") for step in told["chain"]]
    guarantee = told["guarantee"]
    if kinds[:2] != ["understand", "sample"] or COINS in guarantee["assumes"]:
        return told
    coins = {"text": COINS, "status": str(Status.ASSUMED)}
    claims = [{**claim, "preconditions": _inserted(claim["preconditions"], coins)} for claim in told["claims"]]
    return {**told, "guarantee": {**guarantee, "assumes": sorted((*guarantee["assumes"], COINS))}, "claims": claims}


def _inserted(preconditions: list[Any], another: Mapping[str, str]) -> list[Any]:
    """Return preconditions with one more, the assumed ones behind the others and in the order of their words."""
    assumed = [each for each in preconditions if each["status"] == another["status"]]
    others = [each for each in preconditions if each["status"] != another["status"]]
    return [*others, *sorted((*assumed, another), key=lambda each: str(each["text"]))]


def _without_nothing(plain: Any) -> dict[str, Any]:
    return {name: part for name, part in dict(plain).items() if part is not None}


def _text(plain: Any) -> str:
    if not isinstance(plain, str):
        raise TypeError
    return plain
