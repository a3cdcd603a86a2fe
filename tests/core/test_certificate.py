"""Certificates round-trip, and refuse what they do not understand."""

import json
from dataclasses import replace
from typing import Any

import pytest

from incrowd.core.certificate import NONCE_BYTES, VERSION, Certificate, Signature, release_id
from incrowd.errors import IncrowdError, InvalidParameter, UnsupportedVersion
from incrowd.workflows.registry import vocabulary
from tests.certificates import certificate

CERTIFICATE = certificate()
SIGNATURE = Signature("Ed25519", "aa", "bb")


def read(plain: dict[str, Any]) -> Certificate:
    return Certificate.from_json(plain, vocabulary)


def test_a_certificate_survives_its_canonical_text() -> None:
    again = read(json.loads(CERTIFICATE.to_text()))
    assert again == CERTIFICATE
    assert again.to_text() == CERTIFICATE.to_text()


def test_the_signature_is_not_part_of_what_is_signed() -> None:
    signed = read(CERTIFICATE.signed(SIGNATURE).to_json())
    assert signed.signature == SIGNATURE
    assert signed.signed_part == CERTIFICATE.signed_part
    assert signed.digest() == CERTIFICATE.digest()
    assert signed.to_text() != CERTIFICATE.to_text()


@pytest.mark.parametrize("part", ["steps", "claims"])
def test_a_sentence_is_refused_since_readers_make_the_words(part: str) -> None:
    forged = json.loads(CERTIFICATE.to_text())
    forged[part][0]["sentence"] = "Nobody can be found."
    with pytest.raises(InvalidParameter):
        read(forged)


@pytest.mark.parametrize("version", [0, VERSION + 1, str(VERSION), None])
def test_another_version_is_refused(version: object) -> None:
    with pytest.raises(UnsupportedVersion):
        read(CERTIFICATE.to_json() | {"certificate": version})


@pytest.mark.parametrize("method", [{"name": "safe", "version": 99}, {"name": "magic", "version": 1}])
def test_another_method_or_another_version_of_it_is_refused(method: dict[str, object]) -> None:
    with pytest.raises(UnsupportedVersion):
        read(CERTIFICATE.to_json() | {"method": method})


@pytest.mark.parametrize("name", sorted(set(CERTIFICATE.to_json()) - {"certificate"}))
def test_a_certificate_without_a_field_is_refused(name: str) -> None:
    plain = CERTIFICATE.to_json()
    del plain[name]
    with pytest.raises(InvalidParameter, match=name):
        read(plain)


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="surprise"):
        read(CERTIFICATE.to_json() | {"surprise": 1})


@pytest.mark.parametrize(
    "broken",
    [
        {"claims": [{"kind": "x"}]},
        {"guarantee": {"guarantee": 1}},
        {"claims": 3},
        {"steps": [3]},
        {"evidence": []},
        {"approvals": [1]},
        {"signature": "signed"},
        {"outputs": [{"name": "data.csv"}]},
        {"ledger": None},
    ],
)
def test_a_field_of_another_shape_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises(IncrowdError):
        read(CERTIFICATE.to_json() | broken)


def test_the_id_binds_method_policy_guarantee_claims_and_steps() -> None:
    named = replace(CERTIFICATE, id=release_id(bytes(NONCE_BYTES), CERTIFICATE))
    assert named.names_itself()
    changes: dict[str, Any] = {"policy_hash": "0", "claims": CERTIFICATE.claims[1:], "steps": CERTIFICATE.steps[1:]}
    for name, value in changes.items():
        assert not replace(named, **{name: value}).names_itself(), name
    assert replace(named, evidence={}).names_itself(), "the evidence is bound by the ledger's conclusion"
    assert not replace(named, id="no name").names_itself()
