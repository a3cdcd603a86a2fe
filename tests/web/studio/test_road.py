"""The road from a table to a release: pages call the workflows, on the very policy, and nothing is paid twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.cli.main import main
from incrowd.web.studio import policy_file
from incrowd.web.studio.jobs import Tell
from incrowd.web.studio.pages import PAGES, pages
from incrowd.workflows.policy import policy as policy_module
from incrowd.workflows.policy.document import Document, read_document
from tests.web.studio.visiting import POLICY, Visitor, studio

P = "?policy=policy.yaml"
ROAD = [page.name for page in pages() if page.step]


def charges(visitor: Visitor) -> int:
    ledger = visitor.folder / ".incrowd" / "ledger.sqlite"
    if not ledger.exists():
        return 0
    return sum(bool(entry.charged) for entry in Ledger.open(f"sqlite:///{ledger}").entries())


def paying(visitor: Visitor, out: str = "out") -> dict[str, str]:
    """Return the form of the plan's page, with the name typed."""
    page = visitor.get(f"/plan{P}").text
    return {"policy": "policy.yaml", "key": visitor.field(page, "key"), "out": out, "name": "stays"}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Visitor:
    """A studio in which the policy was released once, signed."""
    visitor = studio(tmp_path_factory.mktemp("released")).come_in()
    assert visitor.post("/plan/key", {"policy": "policy.yaml"}).status_code == 303
    form = paying(visitor) | {"sign": "keys/signing.pem"}
    reply = visitor.post("/plan/release", form)
    assert reply.status_code == 303
    visitor.settled(reply.headers["location"])
    return visitor


def test_every_page_has_a_title_and_a_place() -> None:
    assert [page.name for page in pages()] == list(PAGES)
    assert [page.step for page in pages() if page.step] == list(range(1, 9))


@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_a_twin_that_says_the_same_command_and_policy(released: Visitor, name: str) -> None:
    address = f"/{name}{P}" + ("&release=out" if name in ("released", "proof") else "")
    page = released.settled(address)
    assert page.status_code == 200
    twin = released.json(address)
    assert twin["page"] == name
    assert twin["commands"] or name not in ROAD
    assert twin["policy"]["text"] == POLICY
    assert "style=" not in page.text
    assert "<script>" not in page.text


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts of policies that are parsed from now on."""
    texts = list[str]()

    def counting(text: str) -> Document:
        texts.append(text)
        return read_document(text)

    for module in (policy_file, policy_module):
        monkeypatch.setattr(module, "read_document", counting)
    return texts


@pytest.mark.parametrize("name", [name for name in PAGES if name not in ("open", "output")])
def test_a_page_parses_the_policy_once(released: Visitor, parsed: list[str], name: str) -> None:
    address = f"/{name}{P}" + ("&release=out" if name in ("released", "proof") else "")
    assert released.get(address).status_code in (200, 303)
    assert len(parsed) <= 1


def test_the_click_that_pays_parses_the_policy_once(tmp_path: Path, parsed: list[str]) -> None:
    visitor = studio(tmp_path).come_in()
    form = paying(visitor)
    parsed.clear()
    reply = visitor.post("/plan/release", form)
    assert (reply.status_code, len(parsed)) == (303, 1)
    visitor.settled(reply.headers["location"])


def test_a_release_is_verified_signed_and_the_same_as_by_the_command_line(released: Visitor, tmp_path: Path) -> None:
    released.settled("/released?release=out")
    found = released.json("/released?release=out")
    assert found["verification"]["verdict"] == "verified"
    assert found["policy_name"] == "policy.yaml"
    for name in ("policy.yaml", "stays.csv"):
        shutil.copyfile(released.folder / name, tmp_path / name)
    key = str(released.folder / "keys" / "signing.pem")
    out = str(tmp_path / "out")
    assert main(["release", "--policy", str(tmp_path / "policy.yaml"), "--out", out, "--sign", key, "--json"]) == 0
    here, there = (
        json.loads((folder / "out" / "certificate.json").read_text()) for folder in (released.folder, tmp_path)
    )
    assert _constant(here) == _constant(there)


def _constant(certificate: dict[str, Any]) -> dict[str, Any]:
    """Return what coins, the clock and the ledger's keys do not decide."""
    left = {"id", "created", "ledger", "outputs", "evidence", "signature"}
    kept = {name: value for name, value in certificate.items() if name not in left}
    kept["dataset"] = {name: value for name, value in kept["dataset"].items() if name != "commitment"}
    return kept | {"signer": certificate["signature"]["public_key"]}


def test_nothing_is_paid_twice_by_clicks_reloads_or_two_tabs(fresh: Visitor) -> None:
    first, second = paying(fresh), paying(fresh, "other")
    places = [fresh.post("/plan/release", form).headers["location"] for form in (first, first, second)]
    for place in places:
        assert "/released?" in fresh.settled(place).headers["location"]
    assert charges(fresh) == 1
    assert fresh.folder.joinpath("out").is_dir()
    assert not fresh.folder.joinpath("other").exists()
    assert "/released?" in fresh.settled(fresh.post("/plan/release", first).headers["location"]).headers["location"]
    assert charges(fresh) == 1


def test_an_old_page_pays_nothing_after_the_ledger_or_the_policy_has_moved(fresh: Visitor) -> None:
    old = paying(fresh)
    fresh.settled(fresh.post("/plan/release", paying(fresh)).headers["location"])
    again = Visitor(studio_of(fresh), fresh.keys, fresh.folder, fresh.cookies)  # the studio was stopped in between
    reply = again.post("/plan/release", old | {"out": "out-2"})
    assert reply.status_code == 422
    assert "Nothing was spent" in reply.text
    assert charges(fresh) == 1


def studio_of(visitor: Visitor) -> Any:
    from incrowd.web.studio.app import studio_app

    return studio_app(visitor.folder, visitor.keys)


def test_nothing_is_spent_without_the_name_of_the_dataset(fresh: Visitor) -> None:
    for name in ("", "Stays", "policy.yaml"):
        assert fresh.post("/plan/release", paying(fresh) | {"name": name}).status_code == 400
    changed = paying(fresh)
    assert fresh.save("/workbench/save", {"rate": "1/4"}).status_code == 303
    assert fresh.post("/plan/release", changed).status_code == 422
    assert charges(fresh) == 0


def test_a_refused_release_says_why_and_charges_nothing(tmp_path: Path) -> None:
    visitor = studio(tmp_path, table="who,age,ward\n1,old,east\n").come_in()
    reply = visitor.settled(visitor.post("/plan/release", paying(visitor)).headers["location"])
    assert "Not done" in reply.text
    assert 'name="key"' in reply.text  # mended, it can be tried again
    assert charges(visitor) == 0
    for page in ("columns", "hierarchies", "plan"):  # whatever fails, the page stays and says why
        visitor.post(f"/{page}/{'check' if page == 'plan' else 'look'}", {"policy": "policy.yaml"})
        found = visitor.settled(f"/{page}{P}")
        assert found.status_code == 200
        assert ("Not done" in found.text) == (page == "plan")
    poor = studio(tmp_path, POLICY.replace("epsilon: 1.2", "epsilon: 0.1")).come_in()
    refused = poor.get(f"/plan{P}").text
    assert "Would be refused" in refused
    assert 'name="key"' not in refused


def test_the_policy_keeps_its_comments_and_is_not_overwritten_by_an_old_page(fresh: Visitor) -> None:
    base = fresh.field(fresh.get(f"/columns{P}").text, "base")
    form = {"policy": "policy.yaml", "base": base, "role-1": "sensitive", "role-2": "sensitive"}
    assert fresh.post("/columns/save", form).status_code == 303
    text = (fresh.folder / "policy.yaml").read_text()
    assert text == POLICY.replace("role: quasi\n    type: integer", "role: sensitive\n    type: integer")
    reply = fresh.post("/columns/save", form | {"role-1": "identifier"})
    assert reply.status_code == 422
    assert "was changed in another tab" in reply.text
    reply = fresh.post("/columns/save", {"policy": "policy.yaml", "role-1": "nonsense"})
    assert reply.status_code == 400
    assert (fresh.folder / "policy.yaml").read_text() == text


def test_what_is_chosen_after_a_look_is_marked_until_somebody_vouches_for_it(fresh: Visitor) -> None:
    twin = fresh.json(f"/workbench{P}&level-0=1")
    assert twin["outcome"]["epsilon"] != "none"
    fresh.post("/columns/look", {"policy": "policy.yaml"})
    fresh.settled(f"/columns{P}")
    assert fresh.json(f"/columns{P}")["columns"][0]["alone"] == 1.0
    assert fresh.json(f"/workbench{P}&level-0=1")["outcome"]["epsilon"] == "none"
    assert fresh.json(f"/workbench{P}&level-0=1&source=yearbook")["outcome"]["epsilon"] != "none"
    assert fresh.save("/workbench/save", {"level-0": "1"}).status_code == 303
    assert "derived: rows" in (fresh.folder / "policy.yaml").read_text()
    assert fresh.json(f"/plan{P}")["bounded"] is False
    fresh.save("/hierarchies/vouch", {"column": "age", "source": "yearbook, table 3"})
    assert fresh.save("/columns/save", {"role-2": "identifier"}).status_code == 303
    assert fresh.json(f"/plan{P}")["bounded"] is True  # what is held back needs no source
    assert fresh.save("/columns/save", {"role-2": "quasi"}).status_code == 303
    assert fresh.json(f"/plan{P}")["bounded"] is False
    fresh.save("/hierarchies/vouch", {"column": "ward", "source": "the hospital's signs"})
    assert fresh.json(f"/plan{P}")["bounded"] is True
    assert fresh.save("/hierarchies/save", {"column": "age", "kind": "intervals", "steps": "20"}).status_code == 303
    assert "[20]" in (fresh.folder / "policy.yaml").read_text()
    assert fresh.json(f"/plan{P}")["bounded"] is False  # nobody vouched for the new rule


def test_the_first_rows_are_a_look_too(fresh: Visitor) -> None:
    assert fresh.json(f"/workbench{P}&level-0=1")["outcome"]["epsilon"] != "none"
    assert fresh.json("/open?data=stays.csv")["reading"]["rows"]
    assert fresh.json(f"/policy{P}")["seen"] == ["the first rows"]
    assert fresh.json(f"/workbench{P}&level-0=1")["outcome"]["epsilon"] == "none"


def test_sizes_of_classes_and_missing_values_are_shown_after_a_look(tmp_path: Path) -> None:
    visitor = studio(tmp_path, table="who,age,ward\n1,20,east\n2,30,south\n3,70,east\n").come_in()
    place = visitor.post("/hierarchies/look", {"policy": "policy.yaml", "column": "ward"}).headers["location"]
    assert "south" in visitor.settled(place).text
    found = visitor.json(f"/hierarchies{P}&column=ward")
    assert found["outside"] == {"named": found["outside"]["named"], "values": 1, "rows": 1}
    assert found["sizes"][0] == {"level": 0, "classes": 2, "smallest": 1, "middle": 1, "largest": 2}


def test_a_private_look_is_paid_once_and_its_choice_keeps_the_guarantee(fresh: Visitor) -> None:
    page = fresh.get(f"/workbench{P}").text
    form = {"policy": "policy.yaml", "key": fresh.field(page, "key"), "name": "stays", "look": "0.1"}
    for _ in range(2):
        assert fresh.post("/workbench/look", form).status_code == 303
    fresh.settled(f"/workbench{P}")
    assert charges(fresh) == 1
    looked = fresh.json(f"/workbench{P}")["looked"]
    assert looked["choices"]
    assert fresh.save("/workbench/take", {"choice": str(looked["best"])}).status_code == 303
    assert "chosen: {epsilon: 1/10" in (fresh.folder / "policy.yaml").read_text()
    assert fresh.json(f"/plan{P}")["bounded"] is True


def test_a_dropped_hierarchy_of_arx_is_shown_checked_and_written(fresh: Visitor) -> None:
    headers = {"x-incrowd-mark": fresh.keys.mark}
    for name, text in (
        ("good.csv", "east;coast;*\nwest;coast;*\nnorth;inland;*\n"),
        ("bad.csv", "east;coast;*\neast;x;*\n"),
    ):
        sent = fresh.send("PUT", "/upload", params={"name": name, "into": "hierarchies"}, content=text, headers=headers)
        assert sent.json()["name"] == f"hierarchies/{name}"
    bad = fresh.json(f"/hierarchies{P}&column=ward&file=hierarchies/bad.csv")
    assert [fault["what"] for fault in bad["faults"]] == ["listed twice"]
    assert bad["problem"]
    good = fresh.json(f"/hierarchies{P}&column=ward&file=hierarchies/good.csv")
    assert good["levels"]["rows"][0] == ["east", "coast", "*"]
    form = {"column": "ward", "file": "hierarchies/good.csv"}
    assert fresh.save("/hierarchies/save", form).status_code == 303
    assert "hierarchy: {file: hierarchies/good.csv}" in (fresh.folder / "policy.yaml").read_text()


def test_a_dropped_hierarchy_that_fits_is_attached_at_once(fresh: Visitor) -> None:
    files = {"good.csv": "east;coast;*\nwest;coast;*\nnorth;inland;*\n", "bad.csv": "east;coast;*\neast;x;*\n"}
    for name, text in files.items():
        (fresh.folder / "hierarchies").mkdir(exist_ok=True)
        (fresh.folder / "hierarchies" / name).write_text(text)
    before = (fresh.folder / "policy.yaml").read_text()
    form = {"column": "ward", "dropped": "yes"}
    kept = fresh.save("/hierarchies/save", form | {"file": "hierarchies/bad.csv"})
    assert "file=hierarchies%2Fbad.csv" in kept.headers["location"]  # its faults are shown
    assert (fresh.folder / "policy.yaml").read_text() == before
    fresh.save("/hierarchies/save", form | {"file": "hierarchies/good.csv"})
    assert fresh.json(f"/hierarchies{P}&column=ward")["levels"]["rows"][0] == ["east", "coast", "*"]


def test_a_public_list_is_attached_by_click_and_releases_a_column_that_waited(fresh: Visitor) -> None:
    fresh.save("/columns/save", {"role-2": "withheld"})
    found = fresh.json(f"/hierarchies{P}&column=ward")
    assert found["lists"]["icd-10"].startswith("ICD-10")
    assert fresh.save("/hierarchies/list", {"column": "ward", "list": "regions", "step": "FR"}).status_code == 303
    text = (fresh.folder / "policy.yaml").read_text()
    assert "hierarchies/regions-fr.csv" in text
    assert "pycountry" in text  # the public source, with its license
    assert "role: quasi" in text.split("ward:")[1]
    fresh.save("/hierarchies/list", {"column": "ward", "list": "regions", "step": "FR"})
    assert [path.name for path in (fresh.folder / "hierarchies").iterdir()] == ["regions-fr.csv"]
    for form in ({"list": "regions", "step": "xx"}, {"list": "../x", "step": ""}):
        assert fresh.save("/hierarchies/list", {"column": "ward", **form}).status_code == 400


def test_a_button_saves_and_goes_on(fresh: Visitor) -> None:
    for page, onward in (("columns", "hierarchies"), ("hierarchies", "output"), ("workbench", "plan")):
        reply = fresh.save(f"/{page}/save", {"column": "ward", "next": onward})
        assert reply.headers["location"].startswith(f"/{onward}?policy=")
    elsewhere = fresh.save("/columns/save", {"next": "/evil.example"})
    assert elsewhere.headers["location"].startswith("/columns?policy=")


@pytest.mark.parametrize("goal", ["microdata", "counts", "synthetic", "queries", "model"])
def test_every_goal_makes_a_policy_that_can_be_planned(tmp_path: Path, goal: str) -> None:
    visitor = studio(tmp_path).come_in()
    assert visitor.save("/output/choose", {"goal": goal, "column": "ward"}).status_code == 303
    if goal != "queries":
        assert visitor.json(f"/plan{P}")["allowed"] is True
    assert (tmp_path / "policy.yaml").read_text().startswith(POLICY.partition("release:")[0])


def test_k_anonymity_alone_asks_for_a_reason_and_its_lattice_is_a_look(fresh: Visitor) -> None:
    assert fresh.save("/output/choose", {"goal": "classic"}).status_code == 400
    assert fresh.save("/output/choose", {"goal": "classic", "reason": "for a closed room"}).status_code == 303
    fresh.post("/lattice/look", {"policy": "policy.yaml"})
    fresh.settled(f"/lattice{P}")
    found = fresh.json(f"/lattice{P}")
    assert found["view"]["combinations"] == 4
    assert found["node"]["best"]
    assert "the lattice of levels" in found["seen"]
    assert fresh.save("/lattice/use", {"node": found["node"]["name"]}).status_code == 303
    assert "derived: rows" in (fresh.folder / "policy.yaml").read_text()


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "=HYPERLINK(1)",
    "a' or {{ 7*7 }}",
    "&amp;\u202eevil",
]


def test_names_and_values_of_a_hostile_table_are_shown_and_never_run(tmp_path: Path) -> None:
    header = ",".join('"' + name.replace('"', '""') + '"' for name in HOSTILE)
    line = ",".join('"' + f"{name}1".replace('"', '""') + '"' for name in HOSTILE)
    visitor = studio(tmp_path, policy=None, table=f"{header}\n{line}\n{line}\n{line}\n").come_in()
    page = visitor.get("/open?data=stays.csv").text
    place = visitor.post("/open/write", {"data": "stays.csv"}).headers["location"]
    assert visitor.settled(place).headers["location"] == "/columns?policy=policy.yaml"
    shown = [
        page,
        *(
            visitor.settled(f"/{name}{P}").text
            for name in ("columns", "hierarchies", "output", "workbench", "plan", "policy")
        ),
    ]
    shown += [visitor.get("/open", params={"data": name}).text for name in HOSTILE]
    shown += [visitor.get("/hierarchies", params={"policy": "policy.yaml", "column": name}).text for name in HOSTILE]
    assert "&lt;script&gt;alert(1)" in shown[1]
    for text in shown:
        assert "<script>alert" not in text
        assert "<img" not in text
        assert "49" not in text.partition("a&#39; or")[2][:20]
    twin = visitor.get(f"/columns{P}&format=json")
    assert twin.headers["content-type"] == "application/json"
    assert [column["name"] for column in twin.json()["columns"]] == HOSTILE


def test_a_policy_that_names_a_file_outside_is_not_run(tmp_path: Path) -> None:
    folder = tmp_path / "opened"
    folder.mkdir()
    (tmp_path / "secret.csv").write_text("who,age,ward\n1,2,the secret\n")
    for source in ("../secret.csv", str(tmp_path / "secret.csv")):
        visitor = studio(folder, POLICY.replace("source: stays.csv", f"source: {source}")).come_in()
        assert visitor.get(f"/plan{P}").status_code == 422
        assert visitor.post("/columns/look", {"policy": "policy.yaml"}).status_code == 422


def test_rows_and_private_keys_are_not_sent_and_reports_cannot_act(released: Visitor) -> None:
    for name in ("stays.csv", "keys/signing.pem"):
        assert released.get("/file", params={"name": name}).status_code == 404
    assert released.get("/file?name=keys/signing.pub.pem").status_code == 200
    report = released.get("/file?name=out/report.html")
    assert "sandbox" in report.headers["content-security-policy"]
    assert released.get("/file?name=out/certificate.json").headers["content-disposition"].startswith("attachment")


def test_a_payment_that_is_stopped_before_its_charge_costs_nothing_and_can_be_made_again(
    fresh: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(_data: object, _policy: object, _place: object, tell: Tell, _terms: object) -> None:
        for place in range(10**9):
            tell(place, None)

    with monkeypatch.context() as patch:
        patch.setattr("incrowd.web.studio.pages.plan.release_to", endless)
        form = paying(fresh)
        place = fresh.post("/plan/release", form).headers["location"]
        job = json.loads(fresh.get(f"{place}&format=json").text)["job"]
        assert job["title"] == "Releasing stays into out"
        assert fresh.post(f"/jobs/{job['job']}/stop", {"back": place}).headers["location"] == place
        assert "Stopped." in fresh.settled(place).text
    assert charges(fresh) == 0
    assert fresh.settled(fresh.post("/plan/release", form).headers["location"]).status_code == 303
    assert charges(fresh) == 1


def test_how_a_file_is_read_is_told_guessed_and_written_as_a_command(tmp_path: Path) -> None:
    text = "Wer;Gr\u00f6\u00dfe;Tag\nA;1,5;31.12.2024\nB;k.A.;01.02.2024\n"
    visitor = studio(tmp_path, policy=None, table="a\n1\n").come_in()
    (tmp_path / "messy.csv").write_bytes(text.encode("cp1252"))
    reading = visitor.json("/open?data=messy.csv")["reading"]
    assert reading["columns"] == ["Wer", "Gr\u00f6\u00dfe", "Tag"]
    assert reading["guesses"]
    told = visitor.json("/open?data=messy.csv&encoding=cp1252&decimal=,&nulls=k.A.&dates=%25d.%25m.%25Y&period=2024")
    options = "--encoding cp1252 --decimal , --period 2024 --dates %d.%m.%Y --nulls k.A."
    assert told["commands"] == [f"incrowd profile messy.csv {options} --write policy.yaml"]
    assert visitor.get("/open?data=messy.csv&header_row=x").status_code == 400
    assert visitor.get("/jobs/unknown").status_code == 404
