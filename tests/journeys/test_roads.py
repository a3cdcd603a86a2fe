"""Six roads from a raw file to the end, through the command line alone.

The tables are fixed.  What is kept hangs on the coins of the sample, one half, and on the private choice of the levels:
by the weights of permute-and-flip, levels that keep or tell less than asserted here come with a chance below 1e-7.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.journeys import raw_files
from tests.journeys.walk import LEDGER, Walk, released, telling, words

USEFUL = 1 / 6
"""Of the people of the table: one in two is in the sample."""


def _keys() -> None:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    Path("key.pem").write_bytes(private)
    Path("public.pem").write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))


def test_a_data_protection_officer_signs_a_release_of_discharges(walk: Walk, tmp_path: Path) -> None:
    raw_files.discharges(tmp_path)
    said = words(walk("check discharges.csv", code=1))
    assert said.startswith("Do not publish this: 2 columns seem to name people, and")
    assert "incrowd profile discharges.csv --write policy.yaml" in said
    said = words(walk("profile discharges.csv --write policy.yaml --period 2024"))
    assert "person ID column: patient_id" in said
    assert "surname: " not in said.partition("It releases")[2].partition(".")[0]
    assert "verdict would be released" in words(walk("plan --policy policy.yaml"))
    assert "openssl genpkey" in walk("release --policy policy.yaml --out out --sign key.pem", code=2).err
    assert not any(each["charges"] for each in walk.charges())
    _keys()
    said = words(walk("release --policy policy.yaml --out out --sign key.pem"))
    assert said.startswith("Columns as they will be published")
    assert " released data out/data.parquet" in said
    said = words(walk(f"verify out --public-key public.pem --ledger {LEDGER}"))
    assert said.startswith("verified")
    assert "not signed" not in said
    assert "rows released" in walk("assess out --policy policy.yaml").out
    assert walk.verbs == ["check", "profile", "plan", "release", "release", "verify", "assess"]
    assert walk.paid_once()
    assert released().num_rows >= USEFUL * raw_files.DISCHARGES
    assert len(telling(released())) >= 2
    assert not {"patient_id", "surname", "note"} & set(released().column_names)


def test_a_statistician_publishes_counts_of_a_survey_from_spss(walk: Walk, tmp_path: Path) -> None:
    raw_files.survey(tmp_path)
    drafted = 'profile survey.sav --write policy.yaml --for counts --public trust="the questionnaire, question 4"'
    assert "labels instead of codes in: sex, region, trust, voted" in words(walk(drafted))
    assert "verdict would be released" in words(walk("plan --policy policy.yaml"))
    assert "next incrowd verify out" in words(walk("release --policy policy.yaml --out out"))
    assert words(walk(f"verify out --ledger {LEDGER}")).startswith("verified")
    assert walk.verbs == ["profile", "plan", "release", "verify"]
    assert walk.paid_once()
    counts = released()
    assert abs(sum(counts["count"].to_pylist()) - raw_files.ANSWERS) < raw_files.ANSWERS / 5
    assert {"female", "male"} <= set(counts["sex"].to_pylist())


def test_an_engineer_releases_trips_with_several_rows_a_person(walk: Walk, tmp_path: Path) -> None:
    raw_files.trips(tmp_path)
    assert json.loads(walk("check trips.csv --json", code=1).out)["passed"] is False
    drafted = json.loads(walk("profile trips.csv --write policy.yaml --period 2024 --json").out)
    assert drafted["person"]["column"] == "rider"
    planned = json.loads(walk("plan --policy policy.yaml --json").out)
    assert planned["allowed"] is True
    assert planned["unit"].startswith("one person (rider")
    walk("release --policy policy.yaml --out out --json")
    assert json.loads(walk(f"verify out --ledger {LEDGER} --json").out)["passed"] is True
    assert walk.verbs == ["check", "profile", "plan", "release", "verify"]
    assert walk.paid_once()
    assert released().num_rows >= USEFUL * raw_files.PEOPLE
    assert len(telling(released())) >= 2


def test_an_analyst_asks_a_german_file_with_decimal_commas(walk: Walk, tmp_path: Path) -> None:
    raw_files.members(tmp_path)
    read = "read as cp1252, ';' between columns, decimal comma, dates as %d.%m.%Y, 'k.A.' for missing values."
    said = words(walk("check mitglieder.csv", code=1))
    assert said.startswith(
        "Do not publish this: 1 column seems to name people, and 98 % of the rows are unique in Alter and PLZ."
    )
    assert f"note: {read} next" in said
    assert read in words(walk("profile mitglieder.csv --write policy.yaml --for queries"))
    question = """query 'SELECT Geschlecht, COUNT(*) AS n, AVG("Alter") AS mean FROM rows GROUP BY Geschlecht'"""
    said = words(walk(f"{question} --epsilon 0.5 --policy policy.yaml --price"))
    assert "Nothing was asked and nothing was spent." in said
    assert not any(each["charges"] for each in walk.charges())
    said = words(walk(f"{question} --epsilon 0.5 --policy policy.yaml"))
    assert "guarantee pure differential privacy" in said
    assert "True numbers lie in their intervals in 95 of 100 answers." in said
    assert walk.verbs == ["check", "profile", "query", "query"]
    assert walk.paid_once()
    counts = {sex: int(n.replace(",", "")) for sex, n in re.findall(r"(männlich|weiblich) ([\d,]+) ±", said)}
    assert abs(sum(counts.values()) - 0.99 * raw_files.MEMBERS) < 0.05 * raw_files.MEMBERS


def test_an_analyst_releases_rows_of_the_german_file(walk: Walk, tmp_path: Path) -> None:
    raw_files.members(tmp_path)
    said = words(walk("profile mitglieder.csv --write policy.yaml"))
    assert "It releases: Geschlecht, Alter, PLZ, Bundesland, Beitrag, Eintritt, Größe." in said
    assert "verdict would be released" in words(walk("plan --policy policy.yaml"))
    walk("release --policy policy.yaml --out out")
    assert words(walk(f"verify out --ledger {LEDGER}")).startswith("verified")
    assert walk.verbs == ["profile", "plan", "release", "verify"]
    assert walk.paid_once()
    assert released().num_rows >= USEFUL * raw_files.MEMBERS
    assert len(telling(released())) >= 2


def test_a_researcher_shares_the_second_sheet_of_a_workbook_under_k_anonymity(walk: Walk, tmp_path: Path) -> None:
    raw_files.staff(tmp_path)
    said = words(walk("profile staff.xlsx --write policy.yaml --for classic"))
    assert "read as the sheet Staff 2024, the columns named in row 2." in said
    said = words(walk("plan --policy policy.yaml"))
    assert "epsilon no bound" in said
    assert "verdict would be released" in said
    assert "guarantee k-anonymity spent no bound on the privacy loss" in words(
        walk("release --policy policy.yaml --out out")
    )
    assert words(walk(f"verify out --ledger {LEDGER}")).startswith("verified")
    assert walk("check out --policy policy.yaml").out.startswith("passed")
    assert walk.verbs == ["profile", "plan", "release", "verify", "check"]
    assert walk.paid_once()
    assert released().num_rows >= 0.95 * raw_files.STAFF
    assert telling(released()) == ["Sex", "Age", "Site", "Part time", "Salary"]


def test_a_volunteer_learns_that_the_list_of_members_must_not_be_uploaded(walk: Walk, tmp_path: Path) -> None:
    raw_files.club(tmp_path)
    said = words(walk("check members.csv", code=1))
    assert said.startswith(
        "Do not publish this: 4 columns seem to name people, and 99 % of the rows are unique in Born."
    )
    for name in ("Name", "E-mail", "Phone", "Street"):
        assert f"{name} text identifier" in said
    said = words(walk("profile members.csv --write policy.yaml"))
    assert "It releases: Born." in said
    assert "not released: Team: its values come from the data" in said
    said = words(walk("plan --policy policy.yaml"))
    assert "Not published: Name, E-mail, Phone, Street and Team." in said
    assert "may become *" in said
    assert not any(each["charges"] for each in walk.charges())
    assert walk.verbs == ["check", "profile", "plan"]
