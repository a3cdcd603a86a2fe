from __future__ import annotations

from pathlib import Path

import pytest

from incrowd.governance.grant import AccessRole, User
from incrowd.web.settings import Settings
from tests.web.serving import OFFICER, PASSWORD, Server, server

ADMIT = {"holder": "carl", "role": "analyst", "datasets": ["births"], "days": 30, "why": "second project"}
PROTECTED = [
    "/v1/schema",
    "/v1/budget",
    "/v1/releases",
    "/v1/certificates/x",
    "/v1/audit",
    "/v1/tokens",
    "/v1/sessions",
]


@pytest.fixture(scope="module")
def unused(tmp_path_factory: pytest.TempPathFactory) -> Server:
    return server(tmp_path_factory.mktemp("unused"), Settings(pace=0.0, rate=1000))


@pytest.fixture
def here(tmp_path: Path) -> Server:
    return server(tmp_path)


@pytest.mark.parametrize("path", PROTECTED)
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic YTpi"}])
def test_nobody_gets_in_without_a_token_that_works(unused: Server, path: str, headers: dict[str, str]) -> None:
    reply = unused.client.get(path, headers=headers)
    assert reply.status_code == 401
    assert reply.headers["www-authenticate"] == "Bearer"


def test_a_revoked_token_stops_working_at_once(here: Server) -> None:
    issued = here.token(AccessRole.ANALYST)
    headers = {"Authorization": f"Bearer {issued.token}"}
    assert here.client.get("/v1/schema", headers=headers).status_code == 200
    here.books.access.revoke(issued.grant.id, OFFICER)
    assert here.client.get("/v1/schema", headers=headers).status_code == 401


@pytest.mark.parametrize("role", [AccessRole.CURATOR, AccessRole.ANALYST, AccessRole.AUDITOR])
def test_only_an_owner_makes_tokens(here: Server, role: AccessRole) -> None:
    assert here.client.post("/v1/tokens", json=ADMIT, headers=here.bearer(role)).status_code == 403
    assert here.client.get("/v1/tokens", headers=here.bearer(role)).status_code == 403


@pytest.mark.parametrize("role", [AccessRole.OWNER, AccessRole.CURATOR, AccessRole.ANALYST])
def test_only_an_auditor_reads_the_log(here: Server, role: AccessRole) -> None:
    assert here.client.get("/v1/audit", headers=here.bearer(role)).status_code == 403
    log = here.client.get("/v1/audit", headers=here.bearer(AccessRole.AUDITOR)).json()
    assert [(each["action"], each["about"]) for each in log["events"]] == [("access", {"right": "audit"})]


def test_an_owner_makes_rotates_and_revokes_a_token(here: Server) -> None:
    owner = here.bearer(AccessRole.OWNER)
    made = here.client.post("/v1/tokens", json=ADMIT, headers=owner)
    assert made.status_code == 201
    old, number = made.json()["token"], made.json()["grant"]["id"]
    new = here.client.post(f"/v1/tokens/{number}/rotate", json={"why": "leaked"}, headers=owner).json()["token"]
    assert _status(here, old) == 401
    assert _status(here, new) == 200
    assert here.client.delete(f"/v1/tokens/{number}", headers=owner).json()["revoked"]
    assert _status(here, new) == 401
    listed = here.client.get("/v1/tokens", headers=owner)
    assert {each["holder"]: each["revoked"] for each in listed.json()} == {"ann": False, "carl": True}
    assert old not in listed.text
    assert [event for event in here.events() if event[1] == "done"] == [
        ("grant", "done"),
        ("rotate", "done"),
        ("revoke", "done"),
    ]


def test_an_owner_of_one_dataset_admits_nobody_to_another(here: Server) -> None:
    owner = here.bearer(AccessRole.OWNER, "olga", ("births",))
    foreign = here.token(AccessRole.ANALYST, "dan", ("deaths",)).grant.id
    for datasets in (["deaths"], ["births", "deaths"], None):
        assert here.client.post("/v1/tokens", json=ADMIT | {"datasets": datasets}, headers=owner).status_code == 403
    assert here.client.delete(f"/v1/tokens/{foreign}", headers=owner).status_code == 400
    assert [each["holder"] for each in here.client.get("/v1/tokens", headers=owner).json()] == ["olga"]


@pytest.mark.usefixtures("still")
def test_a_token_is_held_to_its_rate(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, rate=3))
    headers = here.bearer(AccessRole.ANALYST)
    replies = [here.client.get("/v1/schema", headers=headers) for _ in range(4)]
    assert [reply.status_code for reply in replies] == [200, 200, 200, 429]
    assert int(replies[3].headers["retry-after"]) >= 1
    assert here.client.get("/v1/schema", headers=here.bearer(AccessRole.ANALYST, "bob")).status_code == 200


@pytest.mark.usefixtures("still")
def test_guesses_of_tokens_are_held_to_a_rate_and_do_not_fill_the_log(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, rate=3))
    codes = [here.client.get("/v1/schema", headers={"Authorization": "Bearer guess"}).status_code for _ in range(6)]
    assert codes == [401] * 3 + [429] * 3
    assert here.events() == [("access", "unknown")] * 3


def test_a_page_logs_in_and_must_send_its_mark_with_every_change(here: Server) -> None:
    here.books.access.set_password(User("ann", AccessRole.OWNER), PASSWORD, OFFICER)
    reply = here.client.post("/v1/sessions", json={"name": "ann", "password": PASSWORD})
    assert reply.status_code == 201
    cookie = reply.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    mark = reply.json()["mark"]
    assert here.client.get("/v1/sessions").json() == {"holder": "ann", "role": "owner", "datasets": None, "mark": mark}
    assert here.client.post("/v1/tokens", json=ADMIT).status_code == 403
    assert here.client.post("/v1/tokens", json=ADMIT, headers={"X-Incrowd-Mark": "0" * 64}).status_code == 403
    assert here.client.post("/v1/tokens", json=ADMIT, headers={"X-Incrowd-Mark": mark}).status_code == 201


def test_a_page_of_another_site_cannot_use_the_session(here: Server) -> None:
    here.books.access.set_password(User("ann", AccessRole.OWNER), PASSWORD, OFFICER)
    login = {"name": "ann", "password": PASSWORD}
    assert here.client.post("/v1/sessions", json=login, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    here.client.post("/v1/sessions", json=login)
    assert here.client.get("/v1/schema", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert here.client.get("/v1/schema", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_who_logs_out_is_logged_out_everywhere(here: Server) -> None:
    here.books.access.set_password(User("ann", AccessRole.ANALYST), PASSWORD, OFFICER)
    reply = here.client.post("/v1/sessions", json={"name": "ann", "password": PASSWORD})
    stolen = here.client.cookies["incrowd"]
    assert here.client.delete("/v1/sessions", headers={"X-Incrowd-Mark": reply.json()["mark"]}).status_code == 204
    here.client.cookies.set("incrowd", stolen)
    assert here.client.get("/v1/sessions").status_code == 401


def test_a_session_is_no_token(here: Server) -> None:
    here.books.access.set_password(User("ann", AccessRole.ANALYST), PASSWORD, OFFICER)
    here.client.post("/v1/sessions", json={"name": "ann", "password": PASSWORD})
    assert _status(here, here.client.cookies["incrowd"]) == 401


@pytest.mark.usefixtures("still")
def test_a_wrong_password_and_an_unknown_name_get_the_same_reply(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, logins=3))
    here.books.access.set_password(User("ann", AccessRole.ANALYST), PASSWORD, OFFICER)
    replies = [
        here.client.post("/v1/sessions", json={"name": name, "password": "x"}) for name in ("ann", "bob", "bob", "ann")
    ]
    assert [reply.status_code for reply in replies] == [401, 401, 401, 429]
    assert replies[0].content == replies[1].content


def test_over_https_the_cookie_is_held_to_this_host(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, https=True))
    here.books.access.set_password(User("ann", AccessRole.ANALYST), PASSWORD, OFFICER)
    reply = here.client.post("/v1/sessions", json={"name": "ann", "password": PASSWORD})
    assert reply.headers["set-cookie"].startswith("__Host-incrowd=")
    assert "secure" in reply.headers["set-cookie"].lower()
    assert "strict-transport-security" in reply.headers


def _status(here: Server, token: str) -> int:
    return here.client.get("/v1/schema", headers={"Authorization": f"Bearer {token}"}).status_code


def test_an_auditor_of_one_dataset_does_not_read_the_log_of_all(here: Server) -> None:
    assert (
        here.client.get("/v1/audit", headers=here.bearer(AccessRole.AUDITOR, datasets=("births",))).status_code == 403
    )
