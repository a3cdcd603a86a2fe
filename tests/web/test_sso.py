"""Single sign-on: a proxy's assertion is believed from its address, with its signature, for this server and for now."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from incrowd.errors import AccessDenied, InvalidParameter
from incrowd.governance.access_list import AccessList
from incrowd.governance.grant import AccessRole, User
from incrowd.web.settings import Settings
from incrowd.web.sso import SingleSignOn
from tests.web.serving import OFFICER, Server, server

HEADER = "X-Proxy-Assertion"
ASK = {"sql": "SELECT COUNT(*) FROM births", "epsilon": 1}
Sign = Callable[[bytes], bytes]
ED, EC, RSA = (
    ed25519.Ed25519PrivateKey.generate(),
    ec.generate_private_key(ec.SECP256R1()),
    rsa.generate_private_key(65537, 2048),
)


def ec_signature(text: bytes) -> bytes:
    return b"".join(part.to_bytes(32, "big") for part in decode_dss_signature(EC.sign(text, ec.ECDSA(SHA256()))))


KINDS: dict[str, tuple[Any, str, Sign]] = {
    "Ed25519": (ED, "EdDSA", ED.sign),
    "P-256": (EC, "ES256", ec_signature),
    "RSA": (RSA, "RS256", lambda text: RSA.sign(text, padding.PKCS1v15(), SHA256())),
}


def part(content: Any) -> str:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@dataclass(frozen=True)
class Assertion:
    claims: dict[str, Any]
    algorithm: str = "EdDSA"
    sign: Sign = ED.sign
    header: dict[str, Any] | None = None

    def __str__(self) -> str:
        signed = f"{part({'alg': self.algorithm, **(self.header or {})})}.{part(self.claims)}"
        return f"{signed}.{part(self.sign(signed.encode()))}"

    def but(self, **claims: Any) -> Assertion:
        return replace(self, claims={name: value for name, value in (self.claims | claims).items() if value != ""})


def assertion(name: str = "gülşen@example.org", **claims: Any) -> Assertion:
    now = time.time()
    return Assertion({"email": name, "aud": "incrowd", "iss": "proxy", "exp": now + 300, "iat": now, **claims})


def setup(folder: Path, **changes: Any) -> Path:
    for name, (key, _, _) in KINDS.items():
        pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (folder / f"{name}.pem").write_bytes(pem)
    plain = {"from": ["127.0.0.1", "::1"], "header": HEADER, "keys": ["Ed25519.pem"], "audience": "incrowd"} | changes
    (folder / "sso.yaml").write_text(json.dumps({name: value for name, value in plain.items() if value is not None}))
    return folder / "sso.yaml"


@pytest.fixture
def here(tmp_path: Path) -> Server:
    return server(tmp_path, Settings(pace=0.0, threads=2, rate=1000, sso=str(setup(tmp_path, issuer="proxy"))))


def admit(access: AccessList, name: str, role: AccessRole = AccessRole.ANALYST, **options: Any) -> str:
    user = User(name, role, options.pop("datasets", None))
    return access.admit(user, access.now() + timedelta(days=1), OFFICER, **options).id


def status(here: Server, token: object, **headers: str) -> int:
    return here.client.get("/v1/schema", headers={HEADER: str(token), **headers}).status_code


def test_a_user_whom_the_proxy_signs_on_has_the_role_of_the_access_list(here: Server) -> None:
    number = admit(here.books.access, "gülşen@example.org", datasets=("births",))
    headers = {HEADER: str(assertion())}
    assert here.client.get("/v1/sessions", headers=headers).json() == {
        "holder": "gülşen@example.org",
        "role": "analyst",
        "datasets": ["births"],
        "mark": None,
    }
    assert here.client.post("/v1/query", json=ASK, headers=headers).status_code == 200
    assert here.client.post("/v1/tokens", json={}, headers=headers).status_code in (400, 403)
    here.books.access.revoke(number, OFFICER)
    assert status(here, assertion()) == 401


def test_groups_give_roles_and_an_own_entry_goes_first(here: Server) -> None:
    access = here.books.access
    admit(access, "statistics", AccessRole.CURATOR, group=True)
    token = assertion("ann", groups=["unknown", "statistics"])
    roles = [here.client.get("/v1/sessions", headers={HEADER: str(token)}).json()]
    own = admit(access, "ann", AccessRole.AUDITOR)
    roles.append(here.client.get("/v1/sessions", headers={HEADER: str(token)}).json())
    assert [(who["holder"], who["role"]) for who in roles] == [("ann", "curator"), ("ann", "auditor")]
    assert status(here, assertion("bob", groups="statistics")) == 401
    assert status(here, assertion("bob", groups=["Statistics"])) == 401
    access.revoke(own, OFFICER)
    assert status(here, token) == 401  # who was sent away by name does not come back by a group
    admit(access, "ann", AccessRole.AUDITOR)
    assert status(here, token) == 200


def test_a_user_named_like_a_group_is_not_its_member(here: Server) -> None:
    admit(here.books.access, "statistics", AccessRole.OWNER, group=True)
    for name in ("statistics", "group:statistics"):
        assert status(here, assertion(name)) == 401


def test_a_second_entry_of_a_name_replaces_the_first(here: Server) -> None:
    access = here.books.access
    first, second = admit(access, "ann", AccessRole.OWNER), admit(access, "ann")
    assert {grant.id: grant.revoked for grant in access.grants()} == {first: True, second: False}
    assert access.signed_on("ann").holder.role is AccessRole.ANALYST
    with pytest.raises(InvalidParameter):
        access.rotate(second, access.now() + timedelta(days=1), OFFICER)
    assert access.check().ok


def test_an_entry_that_expired_signs_nobody_on(here: Server) -> None:
    admit(here.books.access, "ann")
    later = here.books.access.now() + timedelta(days=2)
    with pytest.raises(AccessDenied):
        AccessList(replace(here.books.access.chain, clock=lambda: later)).signed_on("ann")


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_key_signs_by_its_own_algorithm_alone(tmp_path: Path, kind: str) -> None:
    sso = SingleSignOn.read(setup(tmp_path, keys=[f"{kind}.pem"]))
    for signer, (_, algorithm, sign) in KINDS.items():
        for stated in ("EdDSA", "ES256", "RS256", "none", "HS256"):
            token = replace(assertion(), algorithm=stated, sign=sign)
            right = signer == kind and stated == algorithm
            assert holds(sso, token) == right, (signer, stated)


def holds(sso: SingleSignOn, token: object, peer: str | None = "127.0.0.1") -> bool:
    try:
        return sso.identity(peer, [(HEADER.lower().encode(), str(token).encode())]) is not None
    except AccessDenied:
        return False


def test_the_public_key_is_no_secret_of_a_symmetric_algorithm(tmp_path: Path) -> None:
    import hashlib
    import hmac

    sso = SingleSignOn.read(setup(tmp_path, keys=["RSA.pem"]))
    secret = (tmp_path / "RSA.pem").read_bytes()
    forged = replace(assertion(), algorithm="HS256", sign=lambda text: hmac.new(secret, text, hashlib.sha256).digest())
    assert not holds(sso, forged)


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1}, {"exp": ""}, {"exp": "9999999999"}, {"exp": True}, {"aud": "other"}, {"aud": ""}, {"iss": "other"},
        {"iss": ""}, {"nbf": 9e12}, {"iat": 9e12}, {"email": ""}, {"email": 7}, {"groups": "admin"},
        {"aud": {"incrowd": 1}},
    ],
)  # fmt: skip
def test_claims_that_do_not_hold_are_refused(tmp_path: Path, claims: dict[str, Any]) -> None:
    sso = SingleSignOn.read(setup(tmp_path, issuer="proxy"))
    assert holds(sso, assertion())
    assert holds(sso, assertion(aud=["other", "incrowd"]))
    assert not holds(sso, assertion().but(**claims))


@pytest.mark.parametrize("place", range(6))
def test_texts_that_are_no_token_are_refused(tmp_path: Path, place: int) -> None:
    sso, good = SingleSignOn.read(setup(tmp_path)), str(assertion())
    head, claims, signature = good.split(".")
    twice = part(b'{"email":"a","email":"b","aud":"incrowd","exp":9e12}')
    texts = [
        f"{head}.{claims}.",
        f"{head}.{claims}.{signature}.{signature}",
        f"{head}.{part({'email': 'eve', 'aud': 'incrowd', 'exp': 9e12})}.{signature}",
        f"{head}.{twice}.{part(ED.sign(f'{head}.{twice}'.encode()))}",
        str(replace(assertion(), header={"crit": ["b64"], "b64": False})),
        str(assertion("a" * 9000)),
    ]
    assert not holds(sso, texts[place])


@pytest.mark.parametrize("peer", ["10.0.0.9", "::2", "", "localhost", None])
def test_an_assertion_from_another_address_is_refused(tmp_path: Path, peer: str | None) -> None:
    sso = SingleSignOn.read(setup(tmp_path))
    assert not holds(sso, assertion(), peer)
    assert all(holds(sso, assertion(), own) for own in ("127.0.0.1", "::1", "::ffff:127.0.0.1"))


def test_a_wrong_assertion_is_refused_though_a_session_would_do(here: Server) -> None:
    admit(here.books.access, "gülşen@example.org")
    token = here.token(AccessRole.ANALYST).token
    here.client.cookies.set("incrowd", token)
    assert status(here, assertion().but(aud="other")) == 401
    assert status(here, assertion(), Authorization=f"Bearer {token}") == 200  # an own token says who it is
    assert ("access", "unknown") in here.events()


def test_two_assertions_in_one_request_are_refused(here: Server) -> None:
    admit(here.books.access, "gülşen@example.org")

    async def twice() -> int:
        transport = httpx.ASGITransport(here.client.application)
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            token = str(assertion())
            return (await client.get("/v1/schema", headers=[(HEADER, token), (HEADER, token)])).status_code

    assert asyncio.run(twice()) == 401


def test_pages_of_other_sites_get_nothing_by_the_cookie_of_the_proxy(here: Server) -> None:
    admit(here.books.access, "gülşen@example.org")
    assert status(here, assertion(), **{"Sec-Fetch-Site": "cross-site"}) == 401
    assert status(here, assertion(), **{"Sec-Fetch-Site": "same-origin"}) == 200


def test_without_the_setting_the_header_is_nothing(tmp_path: Path) -> None:
    off = server(tmp_path)
    admit(off.books.access, "gülşen@example.org")
    assert status(off, assertion()) == 401


def test_keys_are_exchanged_by_naming_both_for_a_while(tmp_path: Path) -> None:
    sso = SingleSignOn.read(setup(tmp_path, keys=["Ed25519.pem", "P-256.pem"]))
    assert holds(sso, assertion())
    assert holds(sso, replace(assertion(), algorithm="ES256", sign=ec_signature))


@pytest.mark.parametrize(
    "change",
    [
        {"from": []}, {"from": ["proxy.example.org"]}, {"from": None}, {"keys": ["missing.pem"]}, {"keys": None},
        {"header": "Authorization"}, {"header": "Cookie"}, {"header": "a b"}, {"audience": None}, {"audience": ""},
        {"issuer": 7}, {"secret": "x"},
    ],
)  # fmt: skip
def test_a_setup_that_is_open_or_not_understood_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="single sign-on"):
        SingleSignOn.read(setup(tmp_path, **change))
