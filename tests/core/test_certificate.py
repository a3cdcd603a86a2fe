"""Certificates round-trip, and refuse what they do not understand."""

import json
from fractions import Fraction

import pytest

from incrowd.core.certificate import Certificate, Claim, Precondition, Status
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Crowd, Sampled
from incrowd.core.unit import Unit
from incrowd.errors import IncrowdError, InvalidParameter, UnsupportedVersion

CERTIFICATE = Certificate(
    id="a1",
    created="2026-01-01T00:00:00Z",
    tool="incrowd 0",
    policy_hash="00",
    dataset={"name": "births"},
    guarantee=Guarantee(Sampled(Fraction(1, 10), Crowd(20)), Unit(), "Theorem 1", delta=Fraction(1, 10**6)),
    claims=(
        Claim(
            "approximate differential privacy",
            {"epsilon": "0.19", "delta": "1e-6"},
            "one row, added or removed",
            "Li et al. 2010, Theorem 1",
            (Precondition("the sample is secret", Status.ASSUMED),),
            ("what everyone in a cell has in common",),
        ),
    ),
    chain=({"step": "sample", "rate": "1/10"},),
    accounting={"spent": {"epsilon": "0.19", "delta": "1e-6"}},
    ledger={"id": "l", "sequence": 3, "hash": "ff"},
)


def test_a_certificate_survives_its_canonical_text() -> None:
    again = Certificate.from_json(json.loads(CERTIFICATE.to_text()))
    assert again == CERTIFICATE
    assert again.to_text() == CERTIFICATE.to_text()


def test_the_signature_is_not_part_of_what_is_signed() -> None:
    signed = Certificate.from_json(CERTIFICATE.to_json() | {"signature": {"value": "xx"}})
    assert signed.signed_part() == CERTIFICATE.signed_part()
    assert signed.digest() == CERTIFICATE.digest()
    assert signed.to_text() != CERTIFICATE.to_text()


def test_another_version_is_refused() -> None:
    with pytest.raises(UnsupportedVersion):
        Certificate.from_json(CERTIFICATE.to_json() | {"certificate": 2})


@pytest.mark.parametrize("name", ["guarantee", "claims", "ledger", "outputs"])
def test_a_certificate_without_a_field_is_refused(name: str) -> None:
    plain = CERTIFICATE.to_json()
    del plain[name]
    with pytest.raises(InvalidParameter, match=name):
        Certificate.from_json(plain)


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="surprise"):
        Certificate.from_json(CERTIFICATE.to_json() | {"surprise": 1})


@pytest.mark.parametrize("broken", [{"claims": [{"kind": "x"}]}, {"guarantee": {"guarantee": 1}}, {"claims": 3}])
def test_a_field_of_another_shape_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises(IncrowdError):
        Certificate.from_json(CERTIFICATE.to_json() | broken)
