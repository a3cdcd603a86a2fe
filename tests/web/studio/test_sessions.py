"""Who did not come through the door, or comes from another site, sees nothing and does nothing."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from incrowd.errors import InvalidParameter
from incrowd.governance.access_list import AccessList
from incrowd.governance.grant import AccessDecision, AccessRole, User
from incrowd.web.sso import SingleSignOn
from incrowd.web.studio.app import studio_app
from incrowd.web.studio.launch import only_studio
from incrowd.web.studio.pages import PAGES, pages
from incrowd.web.studio.sessions import COOKIE, FORM, Keys, TrustedProxy
from tests.web.studio.visiting import PORT, Visitor, studio
from tests.web.test_sso import HEADER, assertion, setup

CHANGE = {"text": "incrowd: 1\n", "policy": "policy.yaml"}


def test_nothing_is_shown_before_the_address_was_opened(tmp_path: Path) -> None:
    outside = studio(tmp_path)
    for path in ("/", "/static/studio.css", "/file?name=stays.csv", "/nowhere", "/jobs/1"):
        assert outside.get(path).status_code == 401
    assert outside.post("/policy/save", CHANGE).status_code == 401
    assert outside.send("PUT", "/upload?name=x.csv", content=b"x").status_code == 401


def test_the_address_works_once(tmp_path: Path) -> None:
    first = studio(tmp_path)
    address = f"/?token={first.keys.token}"
    assert first.get("/?token=ic_wrong").status_code == 401
    cookie = first.get(address).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "domain" not in cookie
    second = Visitor(first.application, first.keys, tmp_path)
    assert second.get(address).status_code == 401
    assert second.get("/").status_code == 401
    assert first.get(address).status_code == 200  # the browser that came in finds its way back
    assert first.get("/").status_code == 200


def test_the_address_expires(tmp_path: Path) -> None:
    late = studio(tmp_path)
    address = f"/?token={late.keys.token}"
    late.keys.clock = lambda: late.keys.end
    assert late.get(address).status_code == 401
    late.keys.clock = lambda: late.keys.end - 1
    assert late.get(address).status_code == 200


def test_a_file_of_the_holder_leads_in_and_a_frame_or_script_of_another_site_does_not(tmp_path: Path) -> None:
    outside = studio(tmp_path)
    address = f"/?token={outside.keys.token}"
    for destination in ("iframe", "empty", "image"):
        headers = {"sec-fetch-site": "cross-site", "sec-fetch-dest": destination}
        assert outside.get(address, headers=headers).status_code == 403
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}
    assert outside.get(address, headers=headers).status_code == 200


OTHER_HOSTS = [
    "evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"[::1]:{PORT}",
    f"127.0.0.1.evil.example:{PORT}", f"{'0' * 32}.localhost:{PORT}",
]  # fmt: skip


@pytest.mark.parametrize("host", OTHER_HOSTS)
def test_the_studio_answers_under_its_own_name_alone_and_tells_it_to_nobody(inside: Visitor, host: str) -> None:
    sent = {"host": host, "cookie": f"{COOKIE}={inside.keys.session}"}
    for path in ("/", f"/?token={inside.keys.token}", "/open?data=stays.csv&format=json"):
        reply = inside.get(path, headers=sent)
        assert reply.status_code == 421
        assert inside.keys.name not in reply.text + str(reply.headers)


def test_every_studio_has_a_name_of_its_own() -> None:
    names = {Keys(PORT).name for _ in range(100)}
    assert len(names) == 100
    assert all(len(name) == 32 for name in names)


ODD_COOKIES = [
    'settings={"a": [1, 2]}',
    'quoted="half',
    "=",
    "no-equals",
    "a b=c d",
    "größe=1".encode().decode("latin-1"),
]


@pytest.mark.parametrize("odd", ODD_COOKIES)
def test_odd_cookies_of_other_programs_lock_nobody_out(inside: Visitor, odd: str) -> None:
    ours = f"{COOKIE}={inside.keys.session}"
    for sent in (f"{odd}; {ours}", f"{ours}; {odd}", f"{COOKIE}=old; {odd}; {ours}"):
        visitor = Visitor(inside.application, inside.keys, inside.folder)
        assert visitor.get("/", headers={"cookie": sent.encode("latin-1")}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_gets_nothing_and_does_nothing(inside: Visitor, site: str) -> None:
    headers = {"sec-fetch-site": site}
    assert inside.get("/", headers=headers).status_code == 403
    assert inside.post("/policy/save", CHANGE, headers=headers).status_code == 403


def test_a_form_of_another_origin_or_without_the_mark_does_nothing(inside: Visitor) -> None:
    before = (inside.folder / "policy.yaml").read_text()
    assert inside.post("/policy/save", CHANGE, headers={"origin": "http://evil.example"}).status_code == 403
    assert inside.post("/policy/save", CHANGE | {"mark": ""}).status_code == 403
    assert inside.post("/policy/save", CHANGE | {"mark": "0" * 64}).status_code == 403
    assert inside.post("/policy/save", CHANGE, headers={"x-incrowd-mark": "wrong"}).status_code == 403
    assert inside.post("/jobs/1/stop", {"mark": "wrong"}).status_code == 403
    assert inside.send("PUT", "/upload?name=x.csv", content=b"x").status_code == 403
    assert (inside.folder / "policy.yaml").read_text() == before
    assert not (inside.folder / "x.csv").exists()


@pytest.mark.parametrize("path", ["/", "/nowhere", "/policy?policy=policy.yaml", "/file?name=policy.yaml"])
def test_every_reply_forbids_scripts_of_others_and_keeps_nothing(inside: Visitor, path: str) -> None:
    headers = inside.get(path).headers
    assert "script-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


OUTSIDE = [
    "../secret.yaml", "..", "/etc/passwd", "a/../../secret.yaml", "..\\secret.yaml", "%2e%2e/secret.yaml", ".incrowd/x",
    "link/secret.yaml", "link.yaml", "policy.yaml\0.csv", "file:///etc/passwd", "C:\\x", "", "a//b", "./policy.yaml",
]  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_parameter_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "opened"
    folder.mkdir()
    secret = tmp_path / "secret.yaml"
    secret.write_text("incrowd: 1 # the secret\n")
    (folder / "link").symlink_to(tmp_path, target_is_directory=True)
    (folder / "link.yaml").symlink_to(secret)
    visitor = studio(folder).come_in()
    assert visitor.get("/file", params={"name": name}).status_code == 400
    needed = {page.name for page in pages() if "policy" in page.needs}
    for page in PAGES:
        for parameter in ("policy", "data", "release", *(("survey",) if page == "survey" else ())):
            reply = visitor.get(f"/{page}", params={parameter: name, "format": "json"})
            assert "the secret" not in reply.text
            assert "root:" not in reply.text
            if parameter == "policy" and page in needed:
                assert reply.status_code == 400
    reply = visitor.send(
        "PUT",
        "/upload",
        params={"name": "x.csv", "into": name},
        content=b"x",
        headers={"x-incrowd-mark": visitor.keys.mark},
    )
    assert reply.status_code == (200 if name == "" else 400)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["opened", "secret.yaml"]


def test_two_tabs_that_send_files_of_one_name_keep_both(fresh: Visitor) -> None:
    """The first is sent slowly, and the second comes while it is on the way: one of them would be lost."""
    names = list[str]()

    def send(content: Any) -> None:
        headers = {"x-incrowd-mark": fresh.keys.mark}
        reply = fresh.send("PUT", "/upload", params={"name": "people.csv"}, content=content, headers=headers)
        names.append(reply.json()["name"])

    async def slow() -> AsyncIterator[bytes]:
        yield b"a\n"
        await asyncio.to_thread(send, b"b\n2\n")
        yield b"1\n"

    send(slow())
    assert names == ["people.csv", "people-2.csv"]
    texts = [(fresh.folder / name).read_text(encoding="utf-8") for name in names]
    assert texts == ["b\n2\n", "a\n1\n"]


def test_an_uploaded_file_gets_a_plain_name_and_overwrites_nothing(fresh: Visitor) -> None:
    headers = {"x-incrowd-mark": fresh.keys.mark}
    for name in ("stays.csv", "../../stays.csv", "<b>stays</b>.csv", "=cmd|'x'.csv", ".hidden.csv"):
        found = fresh.send("PUT", "/upload", params={"name": name}, content=b"a\n1\n", headers=headers).json()["name"]
        assert (fresh.folder / found).read_bytes() == b"a\n1\n"
        assert not set(found) & set("<>='|/")
        assert not found.startswith(".")
    assert (fresh.folder / "stays.csv").read_text().startswith("who,")
    assert not list(fresh.folder.glob(".*.part"))


def test_a_dropped_file_can_be_read_by_its_owner_alone(fresh: Visitor) -> None:
    headers = {"x-incrowd-mark": fresh.keys.mark}
    before = os.umask(0)
    try:
        for into in ("", "received-1"):
            sent = {"name": "größen.csv", "into": into}
            fresh.send("PUT", "/upload", params=sent, content=b"a\n1\n", headers=headers)
    finally:
        os.umask(before)
    files = sorted(fresh.folder.rglob("gr*.csv"))
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600, 0o600]
    assert stat.S_IMODE((fresh.folder / "received-1").stat().st_mode) == 0o700


def test_a_dropped_certificate_hides_no_table_and_publishes_no_rows(fresh: Visitor) -> None:
    headers = {"x-incrowd-mark": fresh.keys.mark}
    tables = fresh.get("/?format=json").json()["tables"]
    for into in ("", "hierarchies", "out", "sub"):
        sent = {"name": "certificate.json", "into": into}
        assert fresh.send("PUT", "/upload", params=sent, content=b"{}", headers=headers).status_code == 400
    (fresh.folder / "certificate.json").write_text("{}")
    assert fresh.get("/?format=json").json()["tables"] == tables != []
    assert fresh.get("/file?name=stays.csv").status_code == 404
    for name, content in (("certificate.json", b"{}"), ("rows.csv", b"a\n1\n")):
        sent = {"name": name, "into": "received-1"}
        assert fresh.send("PUT", "/upload", params=sent, content=content, headers=headers).status_code == 200
    assert fresh.get("/file?name=received-1/rows.csv").status_code == 400


def test_two_studios_do_not_open_one_folder(tmp_path: Path) -> None:
    with only_studio(tmp_path), pytest.raises(InvalidParameter, match="another studio"), only_studio(tmp_path):
        pass
    with only_studio(tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_what_is_too_large_is_refused_whatever_it_says(inside: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    assert inside.post("/policy/save", {"text": "x" * (FORM + 1), "policy": "policy.yaml"}).status_code == 413
    monkeypatch.setattr("incrowd.web.studio.app.UPLOAD", 10)

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 5

    headers = {"x-incrowd-mark": inside.keys.mark}
    reply = inside.send("PUT", "/upload?name=large.csv", content=pieces(), headers=headers)
    assert reply.status_code == 413
    assert sorted(path.name for path in inside.folder.iterdir()) == ["policy.yaml", "stays.csv"]


def test_a_stop_leads_to_no_other_site(inside: Visitor) -> None:
    for back in ("//evil.example", "https://evil.example", "/\\evil.example"):
        assert inside.post("/jobs/1/stop", {"back": back}).headers["location"] == "/"


ORIGIN = "https://studio.example.org"


def signed(folder: Path, role: AccessRole = AccessRole.OWNER, datasets: tuple[str, ...] | None = None) -> Visitor:
    """A studio behind a proxy that signs olga on."""
    access = AccessList.create(f"sqlite:///{folder}/.incrowd/ledger.sqlite")
    access.admit(User("olga", role, datasets), access.now() + timedelta(days=1), AccessDecision("officer", "a test"))
    inside = studio(folder)
    proxy = TrustedProxy(ORIGIN, SingleSignOn.read(setup(folder)), access)
    return Visitor(studio_app(folder, inside.keys, proxy), inside.keys, folder)


def by_proxy(name: str = "olga", **headers: str) -> dict[str, str]:
    return {"host": "studio.example.org", HEADER: str(assertion(name)), **headers}


def test_behind_a_proxy_owners_of_the_access_list_work_without_an_address_of_their_own(tmp_path: Path) -> None:
    inside = signed(tmp_path)
    assert inside.get("/", headers=by_proxy()).status_code == 200
    reply = inside.post("/policy/save", CHANGE, headers=by_proxy(origin=ORIGIN))
    assert reply.status_code in (303, 400, 422)
    form = {"mark": "another"}
    assert inside.send("POST", "/policy/save", data=form, headers=by_proxy(origin=ORIGIN)).status_code == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "studio.example.org"}, 401),
        (by_proxy("eve"), 401),
        (by_proxy() | {"host": f"127.0.0.1:{PORT}"}, 421),
        (by_proxy() | {"sec-fetch-site": "cross-site"}, 403),
        (by_proxy() | {HEADER: "a.b.c"}, 401),
    ],
)
def test_behind_a_proxy_everything_else_is_refused(tmp_path: Path, headers: dict[str, str], status: int) -> None:
    outside = signed(tmp_path)
    for path in ("/", "/file?name=stays.csv", f"/?token={outside.keys.token}"):
        assert outside.get(path, headers=headers).status_code == status
    cookie = {"cookie": f"{COOKIE}={outside.keys.session}"}
    assert outside.get("/", headers=headers | cookie).status_code == status


def test_behind_a_proxy_a_change_for_another_origin_is_refused(tmp_path: Path) -> None:
    inside = signed(tmp_path)
    assert inside.post("/policy/save", CHANGE, headers=by_proxy(origin="https://evil.example")).status_code == 403


@pytest.mark.parametrize(("role", "datasets"), [(AccessRole.CURATOR, None), (AccessRole.OWNER, ("stays",))])
def test_behind_a_proxy_only_owners_of_all_datasets_come_in(
    tmp_path: Path, role: AccessRole, datasets: tuple[str, ...] | None
) -> None:
    assert signed(tmp_path, role, datasets).get("/", headers=by_proxy()).status_code == 401


@pytest.mark.parametrize("origin", ["studio.example.org", "https://studio.example.org/", "ftp://studio.example.org"])
def test_the_address_behind_a_proxy_is_an_origin(tmp_path: Path, origin: str) -> None:
    with pytest.raises(InvalidParameter, match="--address"):
        replace(signed_proxy(tmp_path), origin=origin)


def signed_proxy(folder: Path) -> TrustedProxy:
    access = AccessList.create(f"sqlite:///{folder}/.incrowd/ledger.sqlite")
    return TrustedProxy(ORIGIN, SingleSignOn.read(setup(folder)), access)
