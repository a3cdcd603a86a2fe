"""Certificates with absurd numbers: verification ends in bounded time, and says what is wrong."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from incrowd.core.certificate import Certificate
from incrowd.core.codec import encode
from incrowd.core.steps.step import ClaimBasis, Step, claims_of, fold
from incrowd.errors import IncrowdError
from incrowd.verifier.files import CERTIFICATE
from incrowd.verifier.judge import numbers_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from tests.contract.examples import POLICIES, rows
from tests.contract.forging import fitting

BILLION, LONG = 10**9, Fraction(10**899)
ABSURD: dict[str, tuple[str, Any]] = {
    "itemsets": ("m", BILLION),
    "most-common": ("top", BILLION),
    "partition": ("depth", BILLION),
    "points": ("pieces", BILLION),
    "scheme": ("rate", Fraction(1, BILLION)),
    "slicing": ("tables", BILLION),
    "marginals": ("rho", LONG),
}
"""For each method, a field of one of its steps and the number that a forger writes there."""
SECONDS = 60
"""Of the processor, for all of them together; each of them alone took more."""
VERIFY = "import sys; from incrowd.cli.main import main; print([main(['verify', each]) for each in sys.argv[1:]])"


def forged(value: Any, name: str, number: Any) -> Any:
    """Return a value with a number in every field of a name, as its class would not let anyone write it."""
    if isinstance(value, tuple):
        return tuple(forged(part, name, number) for part in value)
    if not is_dataclass(value):
        return value
    made = replace(value)  # type: ignore[type-var]
    for field in fields(value):
        part = number if field.name == name else forged(getattr(value, field.name), name, number)
        object.__setattr__(made, field.name, part)
    return made


def attempted(make: Callable[[], Any], otherwise: Any) -> Any:
    """Return what is made, or something else where it cannot be."""
    try:
        return make()
    except (IncrowdError, ArithmeticError, ValueError, MemoryError):
        return otherwise


def sentence(step: Step) -> str:
    return str(attempted(lambda: step.sentence, "unknown"))


def forge(honest: Certificate, name: str, number: Any) -> dict[str, Any]:
    """Return the plain form of a certificate with another number, and with all that follows from it."""
    plain = dict(json.loads(honest.to_text()))
    steps = forged(honest.steps, name, number)
    assert steps != honest.steps
    short = name in ("depth", "tables")  # here the loss itself, or the sentence, takes too long to be made
    unit, delta = honest.guarantee.unit, honest.guarantee.delta
    guarantee = honest.guarantee if short else attempted(lambda: fold(steps, unit, delta), honest.guarantee)
    claims = attempted(lambda: claims_of(ClaimBasis(guarantee, steps, numbers_of(honest.claims))), honest.claims)
    if not short:
        plain["guarantee"] = guarantee.to_json()
        plain["claims"] = [claim.to_json() for claim in claims]
    plain["steps"] = [
        encoded(step, old) if step != original else old
        for step, original, old in zip(steps, honest.steps, plain["steps"], strict=True)
    ]
    return fitting(plain)


def encoded(step: Step, old: dict[str, Any]) -> dict[str, Any]:
    """Return a step as a certificate holds it."""
    return {**old, **{name: encode(part) for name, part in step.to_json().items()}}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    made = []
    for method, (name, number) in ABSURD.items():
        folder = tmp_path_factory.mktemp(method)
        policy = folder / "policy.yaml"
        policy.write_text(json.dumps(next(iter(POLICIES[method].values())), default=str), encoding="utf-8")
        release_to(rows(), load_policy(policy), Destination(folder / "out", "csv"))
        plain = forge(read_certificate(folder / "out"), name, number)
        (folder / "out" / CERTIFICATE).write_text(json.dumps(plain, ensure_ascii=False), encoding="utf-8")
        made.append(folder / "out")
    return made


def test_absurd_numbers_are_judged_in_bounded_time(folders: list[Path]) -> None:
    command = [sys.executable, "-c", VERIFY, *map(str, folders)]
    ended = subprocess.run(  # a limit of processor time holds however busy the machine is
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS)),
    )
    assert ended.returncode == 0, ended.stderr
    codes = dict(zip(ABSURD, json.loads(ended.stdout.splitlines()[-1]), strict=True))
    assert set(codes.values()) <= {0, 1, 2}, codes
    assert {name for name, code in codes.items() if code == 0} <= {"itemsets"}  # more items than any row has
