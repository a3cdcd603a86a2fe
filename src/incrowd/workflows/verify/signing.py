"""Signatures: an Ed25519 key vouches for a certificate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.core.certificate import Certificate, Signature
from incrowd.errors import InvalidParameter, OutputUnavailable
from incrowd.verifier.files import CERTIFICATE

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_ALGORITHM = "Ed25519"

TrustedKeys = Path | tuple[Path, ...] | None
"""The files of a signer's public keys: one, several while a key is exchanged, or none."""


def sign(certificate: Certificate, key_file: Path) -> Certificate:
    """Return the certificate signed with the Ed25519 private key in a PEM file."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = private_key(key_file)
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
    value = key.sign(certificate.signed_part.encode()).hex()
    return certificate.signed(Signature(_ALGORITHM, public, value))


def sign_release(folder: Path, key_file: Path) -> Certificate:
    """Sign the certificate in the folder of a release, which nobody has signed; its files stay as they are.

    The ledger holds the digest of everything but the signature, so that the charge still fits.
    """
    from incrowd.workflows.certificates import read_certificate

    certificate = read_certificate(folder)
    if certificate.signature is not None:
        raise InvalidParameter("this certificate is already signed, and a signature is not replaced.")
    signed, file = sign(certificate, key_file), folder / CERTIFICATE
    written = file.with_name(f".{CERTIFICATE}.signed")
    try:
        written.write_text(signed.to_text(), encoding="utf-8")
        written.replace(file)
    except OSError as error:
        raise OutputUnavailable(f"{file} could not be written: {error.strerror or 'no reason given'}.") from None
    return signed


def private_key(file: Path) -> Ed25519PrivateKey:
    """Return the Ed25519 private key in a PEM file."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if not file.exists():
        raise InvalidParameter(
            f"{file} does not exist. Make a key once, and keep it: openssl genpkey -algorithm ed25519 -out {file}"
        )
    content = _read(file)
    try:
        key = load_pem_private_key(content, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidParameter(f"{file} does not contain an unencrypted private key in PEM format.") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidParameter(f"{file} is a key of another kind: certificates are signed with Ed25519.")
    return key


def files_of(trusted: TrustedKeys) -> tuple[Path, ...]:
    """Return the files of trusted public keys."""
    return () if trusted is None else (trusted,) if isinstance(trusted, Path) else trusted


def check_signature(certificate: Certificate, trusted: TrustedKeys = None) -> str | None:
    """Return what is wrong with a signature, or None; with trusted public keys, it must be by one of them."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    signature = certificate.signature
    if signature is None or signature.algorithm != _ALGORITHM:
        return "its algorithm is unknown"
    keys = [public_key(file) for file in files_of(trusted)]
    if keys and signature.public_key not in keys:
        return "it was made with another key"
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.public_key))
        key.verify(bytes.fromhex(signature.value), certificate.signed_part.encode())
    except ValueError:
        return "it cannot be read"
    except InvalidSignature:
        return "it does not match the certificate: something changed after signing"
    return None


def public_key(file: Path) -> str:
    """Return the Ed25519 public key in a PEM file, as hexadecimal text."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

    content = _read(file)
    try:
        key = load_pem_public_key(content)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise InvalidParameter(f"{file} does not contain a public key in PEM format.") from None
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidParameter(f"{file} is a key of another kind: certificates are signed with Ed25519.")
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidParameter(f"{file} cannot be read: {error.strerror or 'no reason given'}.") from None
