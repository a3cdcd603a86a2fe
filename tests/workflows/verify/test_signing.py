from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from incrowd.core.certificate import Certificate
from incrowd.errors import InvalidParameter
from incrowd.workflows.certificates import certificate_of
from incrowd.workflows.release.tables import release
from incrowd.workflows.verify.signing import check_signature, public_key, sign
from tests.policies import PEOPLE, people, written
from tests.released import Keys, key_pair


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return key_pair(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return release(people(), written(PEOPLE, tmp_path_factory.mktemp("ledger"))).certificate


def test_a_signature_covers_everything_but_itself(certificate: Certificate, keys: Keys) -> None:
    signed = sign(certificate, keys.private)
    assert signed.signature is not None
    assert signed.signature.public_key == public_key(keys.public)
    assert replace(signed, signature=None) == certificate
    assert check_signature(signed) is None
    assert check_signature(signed, keys.public) is None
    assert check_signature(certificate_of(signed.to_json()), keys.public) is None
    assert sign(signed, keys.private) == signed


def test_a_signature_does_not_fit_another_certificate(certificate: Certificate, keys: Keys) -> None:
    signed = sign(certificate, keys.private)
    assert check_signature(replace(signed, id="another")) == (
        "it does not match the certificate: something changed after signing"
    )


def test_each_of_several_keys_is_trusted_while_one_is_exchanged(
    certificate: Certificate, keys: Keys, tmp_path: Path
) -> None:
    new, other = key_pair(tmp_path, "new"), key_pair(tmp_path, "other")
    both = (keys.public, new.public)
    assert check_signature(sign(certificate, keys.private), both) is None
    assert check_signature(sign(certificate, new.private), both) is None
    assert check_signature(sign(certificate, other.private), both) == "it was made with another key"
    assert check_signature(sign(certificate, new.private), (keys.public,)) == "it was made with another key"


def test_another_key_is_not_trusted(certificate: Certificate, keys: Keys, tmp_path: Path) -> None:
    stranger = key_pair(tmp_path, "stranger")
    forged = sign(certificate, stranger.private)
    assert check_signature(forged) is None
    assert check_signature(forged, keys.public) == "it was made with another key"
    assert forged.signature is not None
    swapped = replace(forged, signature=replace(forged.signature, public_key=public_key(keys.public)))
    assert check_signature(swapped, keys.public) is not None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"algorithm": "RSA"}, "unknown"),
        ({"value": "zz"}, "cannot be read"),
        ({"value": "00"}, "does not match"),
        ({"public_key": "00"}, "cannot be read"),
    ],
)
def test_a_damaged_signature_is_told_apart(
    certificate: Certificate, keys: Keys, change: dict[str, str], said: str
) -> None:
    signed = sign(certificate, keys.private)
    assert signed.signature is not None
    assert said in str(check_signature(replace(signed, signature=replace(signed.signature, **change))))


def test_keys_of_other_kinds_and_locked_keys_are_refused(certificate: Certificate, tmp_path: Path) -> None:
    plain = (Encoding.PEM, PrivateFormat.PKCS8)
    wrong = {
        "rsa": rsa.generate_private_key(65537, 2048).private_bytes(*plain, NoEncryption()),
        "curve": ec.generate_private_key(ec.SECP256R1()).private_bytes(*plain, NoEncryption()),
        "locked": Ed25519PrivateKey.generate().private_bytes(*plain, BestAvailableEncryption(b"secret")),
    }
    for name, content in wrong.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidParameter, match=name):
            sign(certificate, tmp_path / name)
    curve = ec.generate_private_key(ec.SECP256R1()).public_key()
    (tmp_path / "public").write_bytes(curve.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(InvalidParameter, match="key of another kind"):
        public_key(tmp_path / "public")
    with pytest.raises(InvalidParameter, match="does not contain a public key"):
        public_key(tmp_path / "rsa")
    with pytest.raises(InvalidParameter, match="cannot be read: No such file"):
        public_key(tmp_path / "nowhere")
