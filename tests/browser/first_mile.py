"""Messy files in French, Polish, Portuguese and Turkish, and the clicks that carry one to a release."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

NEW_YEAR = date(2025, 1, 1)


def french(path: Path, many: int) -> None:
    """Write reimbursements of a mutual insurer: semicolons, cp1252, euros, several rows a person."""
    chance = random.Random(1)
    wards = {"Rhône": "69", "Isère": "38", "Ain": "01", "Loire": "42"}
    names = ["MARTIN", "DURAND", "PETIT", "LEROY", "MOREAU"]
    states = ["marié(e)", "célibataire", "divorcé(e)", "veuf/veuve"]
    lines = [
        "N°_adhérent;Nom;Date de naissance;Code postal;Département;Situation familiale;Montant remboursé;Observations"
    ]
    for place in range(many):
        person = place % (many * 2 // 3)
        ward = list(wards)[person % 4]
        born = (date(1940, 1, 1) + timedelta(days=person * 37 % 25000)).strftime("%d/%m/%Y")
        born = "inconnue" if chance.random() < 0.01 else born
        paid = f"{chance.lognormvariate(4, 0.8):.2f}".replace(".", ",") + " €"
        note = chance.choice(["", "RAS", "tél. 06 12 34 56 78"])
        cells = (
            f"A{100000 + person * 7}",
            names[place % 5],
            born,
            wards[ward] + "100",
            ward,
            states[person % 4],
            paid,
            note,
        )
        lines.append(";".join(cells))
    path.write_bytes("\r\n".join([*lines, ""]).encode("cp1252"))


def polish(path: Path, many: int) -> None:
    """Write members of a library: a workbook with a title above the header, odd spellings and a row of sums."""
    from openpyxl import Workbook

    chance, book = random.Random(2), Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(["Wykaz czytelników — Biblioteka Miejska"])
    sheet.append([])
    sheet.append(["Nr karty", "Imię i nazwisko", "Rok urodzenia", "Dzielnica", "Status", "Kara (zł)", "Data zapisu"])
    wards, states = ["Śródmieście", "Wola", "Ochota", "Mokotów", "Żoliborz"], ["student", "emeryt", "uczeń"]
    for place in range(many):
        born: int | str = 1935 + place % 80 if chance.random() > 0.01 else "brak danych"
        ward = wards[place % 5] if chance.random() > 0.01 else "ŚRÓDMIEŚCIE"
        joined = date(2020, 1, 1) + timedelta(days=chance.randrange(2000))
        row = [f"BM/{20000 + place}", "Anna Nowak", born, ward, states[place % 3], round(chance.expovariate(0.2), 2)]
        sheet.append([*row, joined])
    sheet.append(["Razem", "", "", "", "", many * 5, ""])
    book.save(path)


def portuguese(path: Path, many: int) -> None:
    """Write stays in hospitals: tabs, decimal commas, capitals and two encodings in one column."""
    chance = random.Random(3)
    lines = ["cod_utente\tconcelho\tdata_nascimento\tgénero\tdiagnóstico\tcusto_eur\talta"]
    for place in range(many):
        town = ["Coimbra", "Évora", "Leiria"][place % 3]
        town = town.upper() if chance.random() < 0.01 else town
        town = town.encode().decode("latin-1") if chance.random() < 0.01 else town
        born = date(1930, 1, 1) + timedelta(days=place * 13 % 30000)
        sex = chance.choice(["masculino", "feminino"]) if chance.random() > 0.01 else "s/ informação"
        code = f"{chance.choice(['J18', 'I10', 'E11', 'K35'])}.{place % 10}"
        cost = f"{chance.lognormvariate(7, 0.9):.2f}".replace(".", ",")
        left = NEW_YEAR + timedelta(days=chance.randrange(365))
        lines.append("\t".join((f"U{place:07d}", town, str(born), sex, code, cost, str(left))))
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def turkish(path: Path, many: int) -> None:
    """Write visits to a clinic: semicolons, cp1254, liras, words for missing values, births before 1900, a sum."""
    chance = random.Random(5)
    lines = ["Hasta No;Adı Soyadı;Cinsiyet;Doğum tarihi;Medeni durum;Başvuru günü;Ücret;Tanı"]
    days = ["Pazartesi", "Salı", "Çarşamba", "Perşembe", "Cuma"]
    for place in range(many):
        sex = chance.choice(["Kadın", "Erkek"]) if chance.random() > 0.01 else "bilinmiyor"
        born = date(1935, 1, 1) + timedelta(days=place * 17 % 27000)
        day = "01.01.1898" if chance.random() < 0.005 else born.strftime("%d.%m.%Y")
        fee = f"{chance.lognormvariate(6, 0.7):.2f}".replace(".", ",") + " TL"
        state = chance.choices(["Evli", "Bekar", "Dul", "Boşanmış"], [55, 30, 14, 1])[0]
        code = chance.choice(["J18.9", "I10", "E11.9", "K35"])
        lines.append(f"H{place:05d};Ayşe Yılmaz;{sex};{day};{state};{chance.choice(days)};{fee};{code}")
    path.write_bytes("\r\n".join([*lines, ""]).encode("cp1254"))


@dataclass(frozen=True)
class MessyFile:
    """A file, the column that its user needs, and where its values are published; None where its rule is public."""

    name: str
    write: Callable[[Path, int], None]
    column: str
    source: str | None = None
    cleaned: bool = False


FILES = (
    MessyFile("adherents.csv", french, "Situation familiale"),
    MessyFile("czytelnicy.xlsx", polish, "Dzielnica", "lista dzielnic Warszawy", cleaned=True),
    MessyFile("internamentos.tsv", portuguese, "diagnóstico"),
)
TABLE = MessyFile("basvurular.csv", turkish, "Medeni durum")
"""The file that becomes a table with totals."""


@dataclass
class Journey:
    """A page, and how often it was clicked and typed into."""

    page: Page
    look: Callable[[str], None] = lambda label: None
    clicks: int = 0
    typed: int = 0
    labels: list[str] = field(default_factory=list)

    def click(self, selector: str) -> None:
        """Click on what leads to a page, and wait for it."""
        with self.page.expect_navigation():
            self.page.click(selector)
        self.clicks += 1

    def type(self, selector: str, text: str) -> None:
        self.page.fill(selector, text)
        self.typed += 1

    def seen(self, label: str) -> None:
        self.labels.append(label)
        self.look(label)


def carry(journey: Journey, raw: Path, messy: MessyFile, rows: int, card: str | None = None) -> None:
    """Carry a file from the first page to a verified release that keeps its column, by clicks alone.

    The recommended route is taken, or the one of a `card`, which has no ε and so needs a reason.
    """
    page = journey.page
    page.set_input_files("#drop", str(raw))
    journey.clicks += 1
    page.wait_for_url("**/open?**")
    journey.seen("open")
    page.click("text=Draft policy.yaml")
    journey.clicks += 1
    page.wait_for_url("**/columns?**")
    if messy.source is not None:
        summary = page.locator("tr", has=page.locator(f"th:has-text('{messy.column}')")).locator("summary").first
        summary.click()
        journey.clicks += 1
        place = summary.locator("xpath=..").locator("input[name^=source]").get_attribute("id")
        journey.type(f"#{place}", messy.source)
        if messy.cleaned:
            summary.locator("xpath=..").locator("input[name^=confirm]").check()
            journey.clicks += 1
        journey.seen("columns")
        journey.click("button:has-text('Save the columns')")
    journey.seen("columns saved")
    journey.click("nav a:has-text('Choose output')")
    _route(journey, messy, rows, card)
    page.wait_for_url("**/plan?**")
    journey.seen("plan")
    journey.type("#f-name", raw.stem)
    page.click("button.spend")
    journey.clicks += 1
    page.wait_for_url("**/released?**")
    page.wait_for_selector("text=✓ verified" if card is None else "text=✓ consistent")  # a table cannot show all
    journey.seen("released")


def _route(journey: Journey, messy: MessyFile, rows: int, card: str | None) -> None:
    """Say what matters, compare the routes, and take one."""
    page = journey.page
    page.check(f"label:has-text('{messy.column}') >> input[type=checkbox]")
    journey.clicks += 1
    journey.type("#f-rows", str(rows))
    page.check("input[name=readers][value=public]")
    journey.clicks += 1
    journey.click("button:has-text('Compare the routes')")
    journey.seen("routes")
    if card is None:
        journey.click(".goal:has(.tag.good) form button")
    else:
        journey.type(f".goal:has(h2:has-text('{card}')) input[name=reason]", "a table for the yearly report")
        journey.click(f".goal:has(h2:has-text('{card}')) form button")
