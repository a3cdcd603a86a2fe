"""Small tables with planted identifiers of many kinds and countries, and harmless ones that look a little like them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pyarrow as pa
from stdnum import luhn
from stdnum.de import idnr
from stdnum.es import ccc, dni
from stdnum.fr import nir
from stdnum.gb import nhs
from stdnum.it import codicefiscale

ROWS = 24
COUNTRIES = ("DE", "FR", "ES", "IT", "GB")
_GIVEN = {
    "DE": "Anna Lukas Heike Jürgen Sabine Uwe Petra Jonas",
    "FR": "Camille Pierre Chloé Mathieu Sylvie Thierry Manon Hugo",
    "ES": "Carmen Javier Lucía Miguel Pilar Diego Teresa Raúl",
    "IT": "Giulia Marco Francesca Paolo Chiara Matteo Elena Enrico",
    "GB": "Emily Oliver Charlotte Harry Grace Simon Megan Graham",
}
_FAMILY = {
    "DE": "Müller Schmidt Großkopf Vogt Öztürk Kästner",
    "FR": "Dubois Lefèvre Rousseau Petit Marchand Blanc",
    "ES": "García Martínez Ibáñez Rey Castaño Vidal",
    "IT": "Rossi Bianchi Esposito Fabbri Serra Villa",
    "GB": "Smith Taylor Hughes Whitfield Barker Lowe",
}
_ROADS = {
    "DE": "Lindenstraße {}",
    "FR": "{} rue des Lilas",
    "ES": "Calle Mayor {}",
    "IT": "Via Garibaldi {}",
    "GB": "{} Church Lane",
}
_PHONES = {
    "DE": "030 9018{:04d}",
    "FR": "01 42 76 {:02d} {:02d}",
    "ES": "+34 612 34 {:02d} {:02d}",
    "IT": "+39 06 6982 {:04d}",
    "GB": "(020) 7946 {:04d}",
}


def names(country: str, chance: Random) -> str:
    return f"{chance.choice(_GIVEN[country].split())} {chance.choice(_FAMILY[country].split())}"


def mails(country: str, chance: Random) -> str:
    first, last = names(country, chance).split()
    return f"{first[0].lower()}{chance.randrange(999)}@{last.encode('ascii', 'ignore').decode().lower()}.example.org"


def phones(country: str, chance: Random) -> str:
    form = _PHONES[country]
    parts = [chance.randrange(10, 99) for _ in range(form.count("{"))]
    return form.format(*(parts if len(parts) > 1 else [chance.randrange(1000, 9999)]))


def accounts(country: str, chance: Random) -> str:
    digits = "".join(str(chance.randrange(10)) for _ in range(30))
    numbers = {
        "DE": digits[:18],
        "FR": digits[:23],
        "ES": digits[:8] + ccc.calc_check_digits(digits[:8] + "00" + digits[8:18]) + digits[8:18],
        "IT": "X" + digits[:22],
        "GB": "NWBK" + digits[:14],
    }
    plain = numbers[country]
    remainder = int("".join(str(int(letter, 36)) for letter in plain + country + "00")) % 97
    return f"{country}{98 - remainder:02d}{plain}"


def cards(_: str, chance: Random) -> str:
    plain = chance.choice(("4", "52")) + "".join(str(chance.randrange(10)) for _ in range(14))
    plain = plain[:15]
    return f"{plain}{luhn.calc_check_digit(plain)}"


def national_ids(country: str, chance: Random) -> str:
    digits = "".join(str(chance.randrange(10)) for _ in range(12))
    born = f"{chance.randrange(40, 99)}{chance.randrange(1, 13):02d}"
    match country:
        case "DE":
            plain = chance.choice("123456789") + "".join(chance.sample("0123456789", 8))
            plain = f"{plain}{plain[-1]}"  # one digit twice, one missing
            made = f"{plain}{idnr.mod_11_10.calc_check_digit(plain)}"
            return made if idnr.is_valid(made) else national_ids(country, chance)
        case "FR":
            plain = f"{chance.choice('12')}{born}{chance.randrange(10, 90)}{digits[:6]}"
            return f"{plain}{nir.calc_check_digits(plain)}"
        case "ES":
            return f"{digits[:8]}{dni.calc_check_digit(digits[:8])}"
        case "IT":
            plain = f"RSSMRA{born[:2]}{chance.choice('ABCDE')}{chance.randrange(10, 31)}H{digits[:3]}"
            return f"{plain}{codicefiscale.calc_check_digit(plain)}"
        case _:
            check = nhs.checksum(digits[:9] + "0")
            made = f"{digits[:9]}{(11 - check) % 11}"
            return made if len(made) == 10 and nhs.is_valid(made) else national_ids(country, chance)


def addresses(country: str, chance: Random) -> str:
    return _ROADS[country].format(chance.randrange(1, 200))


def links(country: str, chance: Random) -> str:
    return f"https://people.example.{country.lower()}/{chance.randrange(10**6)}"


def devices(_: str, chance: Random) -> str:
    return ".".join(str(chance.randrange(1, 255)) for _ in range(4))


def remarks(country: str, chance: Random) -> str:
    who = names(country, chance)
    return f"spoke with {who} on day {chance.randrange(365)} about the open bill and the next visit"


def given_names(country: str, chance: Random) -> str:
    return chance.choice(_GIVEN[country].split())


def numbers(_: str, chance: Random) -> str:
    return f"K{chance.randrange(10**6):06d}"


PLANTED: tuple[tuple[str, Callable[[str, Random], str], tuple[str, ...]], ...] = (
    ("names", names, ("x",) * 5),
    ("mails", mails, ("x",) * 5),
    ("phones", phones, ("x",) * 5),
    ("accounts", accounts, ("x",) * 5),
    ("cards", cards, ("x",) * 5),
    ("national", national_ids, ("x",) * 5),
    ("addresses", addresses, ("x",) * 5),
    ("links", links, ("x",) * 5),
    ("devices", devices, ("x",) * 5),
    ("remarks", remarks, ("x",) * 5),
    ("given", given_names, ("Vorname", "Prénom", "Nombre", "Nome", "first_name")),
    ("ids", numbers, ("Kundennummer", "numero_client", "id_paciente", "id_utente", "customerID")),
)
"""Kind, how a value is made, and what the column is called in each country; x where the values alone must do."""


def planted(kind: str, country: str) -> pa.Table:
    """A table of which everything else is harmless: six crowds of four or more rows that look alike."""
    _, make, columns = next(each for each in PLANTED if each[0] == kind)
    chance = Random(f"{kind} {country}")
    column = columns[COUNTRIES.index(country)]
    values = [make(country, chance) for _ in range(ROWS)]
    return pa.table({"band": ["low", "high"] * (ROWS // 2), column: values, "group": ["a"] * ROWS})
