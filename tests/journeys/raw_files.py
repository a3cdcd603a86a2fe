"""Raw files as people bring them, made by the project: the same seed, the same file."""

from __future__ import annotations

import csv
import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

DISCHARGES, MEMBERS, ANSWERS, STAFF, TRIPS, CLUB = 6_000, 4_000, 3_000, 2_400, 60_000, 300
PEOPLE = TRIPS // 12
"""So many people made the trips: a dozen rows each, more or less."""

_SURNAMES = ("Müller", "Schmidt", "Weber", "Wagner", "Becker", "Schulz", "Hoffmann", "Koch", "Bauer", "Wolf")
_GIVEN = ("Anna", "Jonas", "Petra", "Lukas", "Sabine", "Felix", "Ute", "Max", "Greta", "Emil")
_WARDS = ("surgery", "medicine", "cardiology", "children")


def discharges(folder: Path) -> Path:
    """Hospital discharges of a year: 14 columns, some empty cells, a few patients who came twice."""
    chance = random.Random("discharges")
    header = (
        *("patient_id", "surname", "birth_date", "age", "sex", "zip", "country", "admitted", "discharged"),
        *("diagnosis", "ward", "charge", "insured", "note"),
    )
    return _text(folder / "discharges.csv", header, (_discharge(chance) for _ in range(DISCHARGES)))


def _discharge(chance: random.Random) -> Sequence[object]:
    age = min(104, int(abs(chance.gauss(58, 21))))
    month, day = chance.randint(1, 12), chance.randint(1, 20)
    return (
        f"P{chance.randint(0, 999_999):06d}",
        chance.choice(_SURNAMES),
        f"{2024 - age}-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}",
        age,
        chance.choice("FM"),
        f"{chance.choice((101, 102, 200, 803))}{chance.randint(10, 99)}",
        chance.choices(("DE", "PL", "TR", "FR"), (90, 4, 4, 2))[0],
        f"2024-{month:02d}-{day:02d}",
        f"2024-{month:02d}-{day + chance.randint(0, 8):02d}",
        chance.choice(("J18.9", "I10", "E11.9", "M54.5", "C50.9", "S72.0")),
        chance.choice((*_WARDS, "")),
        f"{chance.lognormvariate(8, 1):.2f}",
        chance.choice(("yes", "no")),
        chance.choice(("", "came back after two days with fever", "see the letter of the general practitioner")),
    )


def members(folder: Path) -> Path:
    """A German insurer's table: cp1252, semicolons, decimal commas, days first, k.A. where nobody knows."""
    chance = random.Random("members")
    header = ("Versicherten-Nr", "Geschlecht", "Alter", "PLZ", "Bundesland", "Beitrag", "Eintritt", "Größe")
    rows = ([f"V{number:07d}", *_member(chance)] for number in range(MEMBERS))
    return _text(folder / "mitglieder.csv", header, rows, delimiter=";", encoding="cp1252")


def _member(chance: random.Random) -> Sequence[object]:
    return (
        chance.choices(("männlich", "weiblich", "divers"), (49, 50, 1))[0],
        "k.A." if chance.random() < 0.01 else chance.randint(18, 89),
        f"{chance.choice(('01', '10', '50', '80'))}{chance.randint(100, 999)}",
        chance.choice(("Bayern", "Hessen", "Thüringen", "Baden-Württemberg")),
        "k.A." if chance.random() < 0.02 else f"{chance.uniform(80, 900):.2f}".replace(".", ","),
        f"{chance.randint(1, 28):02d}.{chance.randint(1, 12):02d}.{chance.randint(1990, 2024)}",
        f"{chance.gauss(1.72, 0.1):.2f}".replace(".", ","),
    )


def survey(folder: Path) -> Path:
    """An SPSS file: coded answers with value labels, a sentence for each question, and weights."""
    import pandas as pd
    import pyreadstat

    chance = random.Random("survey")
    table = pd.DataFrame(
        {
            "sex": [float(chance.randint(1, 2)) for _ in range(ANSWERS)],
            "age": [float(chance.randint(18, 85)) for _ in range(ANSWERS)],
            "region": [float(chance.randint(1, 4)) for _ in range(ANSWERS)],
            "trust": [float(chance.choices((1, 2, 3, 4), (1, 3, 4, 2))[0]) for _ in range(ANSWERS)],
            "voted": [float(chance.randint(0, 1)) for _ in range(ANSWERS)],
            "weight": [round(chance.lognormvariate(0, 0.3), 3) for _ in range(ANSWERS)],
        }
    )
    labels = {
        "sex": {1.0: "male", 2.0: "female"},
        "region": {1.0: "North", 2.0: "East", 3.0: "South", 4.0: "West"},
        "trust": {1.0: "none", 2.0: "little", 3.0: "some", 4.0: "much"},
        "voted": {0.0: "no", 1.0: "yes"},
    }
    questions = {"trust": "How much do you trust the courts?", "weight": "design weight"}
    path = folder / "survey.sav"
    pyreadstat.write_sav(table, str(path), column_labels=questions, variable_value_labels=labels)
    return path


def staff(folder: Path) -> Path:
    """A workbook: a cover sheet, and on the second sheet a title above the names of the columns."""
    from openpyxl import Workbook

    chance = random.Random("staff")
    book = Workbook()
    book.active.title = "Cover"
    book.active.append(["Human resources, yearly report"])
    sheet = book.create_sheet("Staff 2024")
    sheet.append(["Everybody employed on December 31st"])
    sheet.append(["Staff number", "Sex", "Age", "Site", "Part time", "Salary"])
    for number in range(STAFF):
        pay = round(chance.lognormvariate(10.6, 0.3), -2)
        row = (f"E{number:05d}", chance.choice("FM"), chance.randint(18, 66), chance.choice(("Graz", "Linz", "Wien")))
        sheet.append([*row, chance.choice(("yes", "no")), pay])
    path = folder / "staff.xlsx"
    book.save(path)
    return path


def trips(folder: Path, rows: int = TRIPS) -> Path:
    """Trips of a bicycle hire: a dozen rows a person; the same function makes 2,000,000."""
    chance = random.Random("trips")
    riders = [(f"R{number:06d}", chance.randint(16, 80), chance.choice("FM")) for number in range(rows // 12)]
    header = ("rider", "age", "sex", "day", "weekday", "minutes", "returned")
    return _text(folder / "trips.csv", header, ([*chance.choice(riders), *_trip(chance)] for _ in range(rows)))


def _trip(chance: random.Random) -> Sequence[object]:
    return (
        f"2024-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}",
        chance.choice(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")),
        1 + int(chance.expovariate(1 / 17)),
        chance.choice(("yes", "no")),
    )


def club(folder: Path) -> Path:
    """A sports club's list of members, as its treasurer keeps it."""
    chance = random.Random("club")
    header = ("Name", "E-mail", "Phone", "Street", "Born", "Team")
    return _text(folder / "members.csv", header, (_club_member(number, chance) for number in range(CLUB)))


def _club_member(number: int, chance: random.Random) -> Sequence[object]:
    given, surname = chance.choice(_GIVEN), chance.choice(_SURNAMES)
    return (
        f"{given} {surname}",
        f"{given.lower()}{number}@example.org",
        f"+49 30 {chance.randint(2_000_000, 8_999_999)}",
        f"{chance.choice(('Lindenweg', 'Hauptstr.', 'Am Anger'))} {chance.randint(1, 120)}",
        f"{chance.randint(1940, 2012)}-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}",
        chance.choice(("football", "chess", "rowing")),
    )


def _text(
    path: Path,
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    delimiter: str = ",",
    encoding: str = "utf-8",
) -> Path:
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\r\n")
        writer.writerow(header)
        writer.writerows(rows)
    return path


RAW: dict[str, Callable[[Path], Path]] = {
    each.__name__: each for each in (discharges, members, survey, staff, trips, club)
}
