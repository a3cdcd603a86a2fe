"""Single sign-on: who a proxy in front says a user is, in a header that it signs, and only from its own address.

The header holds a JSON Web Token.  Pomerium, Cloudflare Access and Identity-Aware Proxy send one; others can be set up
to.  The keys are files: what they say about themselves in a token (`alg`, `kid`, `jku`) chooses nothing.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.core.codec import unrepeated
from incrowd.errors import AccessDenied, InvalidParameter

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

LONGEST = 8192  # characters of a token: with more, a proxy has put something else there
_SKEW = 60.0  # seconds by which the clock of a proxy may be ahead
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_OWN = ("authorization", "cookie", "host", "x-incrowd-mark")
_KEYS = {"from", "header", "keys", "audience", "issuer", "user", "groups"}


class NotSignedOn(AccessDenied):
    """A request has an assertion that does not hold, or that does not come from the proxy."""


@dataclass(frozen=True)
class SignedOnUser:
    """A user as the proxy knows them, and their groups."""

    name: str
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class SingleSignOn:
    """What is believed about users, and from whom."""

    addresses: frozenset[str]
    header: str
    audience: str
    keys: tuple[PublicKeyTypes, ...] = field(repr=False)
    issuer: str | None = None
    user: str = "email"
    groups: str = "groups"
    clock: Callable[[], float] = time.time

    @classmethod
    def read(cls, file: Path) -> SingleSignOn:
        """Read the settings of a file in JSON or YAML; keys lie beside it."""
        plain = _document(file)
        unknown = sorted(set(plain) - _KEYS)
        if unknown:
            raise _bad(file, f"it does not know {', '.join(unknown)}; it takes {', '.join(sorted(_KEYS))}")
        header, audience = plain.get("header"), plain.get("audience")
        if not isinstance(header, str) or not _NAME.fullmatch(header) or header.lower() in _OWN:
            raise _bad(file, "header: is the name of the proxy's own header, such as X-Pomerium-Jwt-Assertion")
        if not isinstance(audience, str) or not audience:
            raise _bad(file, "audience: is what the proxy's tokens name as aud, such as the host of this server")
        named = {name: plain[name] for name in ("issuer", "user", "groups") if name in plain}
        if not all(isinstance(value, str) and value for value in named.values()):
            raise _bad(file, "issuer:, user: and groups: are texts")
        addresses = frozenset(_address(file, text) for text in _texts(file, plain, "from"))
        keys = tuple(_key(file.parent / name) for name in _texts(file, plain, "keys"))
        return cls(addresses, header.lower(), audience, keys, **named)

    def identity(self, peer: str | None, headers: Iterable[tuple[bytes, bytes]]) -> SignedOnUser | None:
        """Return who sent a request; None where the proxy says nothing.  What does not hold is refused."""
        values = [value for name, value in headers if name.decode("latin-1").lower() == self.header]
        if not values:
            return None
        if len(values) > 1 or peer is None or _canonical(peer) not in self.addresses:
            raise NotSignedOn("this is not a request of the proxy that signs users on.")
        claims = self._verified(values[0].decode("latin-1"))
        if claims is None:
            raise NotSignedOn("the assertion of the proxy does not hold, or has expired: sign on again.")
        name, groups = claims.get(self.user), claims.get(self.groups, ())
        if not isinstance(name, str) or not isinstance(groups, list | tuple):
            raise NotSignedOn("the assertion of the proxy names no user.")
        return SignedOnUser(name, tuple(group for group in groups if isinstance(group, str)))

    def _verified(self, token: str) -> Mapping[str, Any] | None:
        """Return the claims of a token that one of the keys signed, for this server and for now; None otherwise."""
        parts = token.split(".")
        if len(token) > LONGEST or len(parts) != 3:
            return None
        try:
            header, claims = (json.loads(_decoded(part), object_pairs_hook=unrepeated) for part in parts[:2])
            signature = _decoded(parts[2])
        except (ValueError, RecursionError, InvalidParameter):
            return None
        if not isinstance(header, dict) or not isinstance(claims, dict) or "crit" in header:
            return None
        signed = f"{parts[0]}.{parts[1]}".encode()
        if not any(_holds(key, header.get("alg"), signature, signed) for key in self.keys):
            return None
        return claims if self._is_for_now(claims) else None

    def _is_for_now(self, claims: Mapping[str, Any]) -> bool:
        now, audience = self.clock(), claims.get("aud")
        times = [claims.get("exp"), claims.get("nbf", 0), claims.get("iat", 0)]
        if any(type(moment) not in (int, float) for moment in times):
            return False
        named = audience if isinstance(audience, list) else [audience]
        issued = self.issuer is None or claims.get("iss") == self.issuer
        return self.audience in named and issued and times[0] > now and max(times[1:]) <= now + _SKEW


def _holds(key: PublicKeyTypes, algorithm: object, signature: bytes, signed: bytes) -> bool:
    """Whether a key signed a text, by the one algorithm that belongs to its kind."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    try:
        match key, algorithm:
            case ed25519.Ed25519PublicKey(), "EdDSA":
                key.verify(signature, signed)
            case rsa.RSAPublicKey(), "RS256":
                key.verify(signature, signed, padding.PKCS1v15(), SHA256())
            case ec.EllipticCurvePublicKey(), "ES256" if len(signature) == 64:
                r, s = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
                key.verify(encode_dss_signature(r, s), signed, ec.ECDSA(SHA256()))
            case _:
                return False
    except (InvalidSignature, ValueError):
        return False
    return True


def _key(file: Path) -> PublicKeyTypes:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(file.read_bytes())
    except (OSError, ValueError):
        raise _bad(file, "it is no public key in PEM") from None
    weak = isinstance(key, rsa.RSAPublicKey) and key.key_size < 2048
    other = isinstance(key, ec.EllipticCurvePublicKey) and not isinstance(key.curve, ec.SECP256R1)
    if weak or other or not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey):
        raise _bad(file, "keys are Ed25519, P-256, or RSA with 2048 bits at least")
    return key


def _document(file: Path) -> dict[str, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        plain = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, YAMLError):
        raise _bad(file, "it cannot be read") from None
    if not isinstance(plain, dict):
        raise _bad(file, "it has keys and values")
    return plain


def _texts(file: Path, plain: Mapping[str, Any], key: str) -> Sequence[str]:
    values = plain.get(key)
    if not isinstance(values, list) or not values or not all(isinstance(value, str) for value in values):
        raise _bad(file, f"{key}: is a list of texts, one at least")
    return values


def _address(file: Path, text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise _bad(file, f"from: lists IP addresses, and {text} is none") from None


def _canonical(peer: str) -> str:
    """Return an address as it is listed; one of IPv4 that came through IPv6 is one of IPv4."""
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _decoded(part: str) -> bytes:
    if not re.fullmatch(r"[A-Za-z0-9_-]*", part):
        raise ValueError
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except binascii.Error:
        raise ValueError from None


def _bad(file: Path, why: str) -> InvalidParameter:
    return InvalidParameter(f"{file.name} does not set up single sign-on: {why}.")
