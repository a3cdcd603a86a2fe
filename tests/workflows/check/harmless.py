"""Harmless tables of many domains: nobody is named, however much a code or a place looks like it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pyarrow as pa

ROWS = 60
CITIES = "Florence Charlotte Austin Sydney Jackson Madison Victoria Paris Lourdes Santiago".split()  # noqa: SIM905
_CHANCE = Random("harmless")


def any_of(values: Sequence[str]) -> list[str]:
    return [_CHANCE.choice(values) for _ in range(ROWS)]


def codes(form: str, most: int) -> list[str]:
    return [form.format(number) for number in _CHANCE.sample(range(most // 10, most), ROWS)]


def decimals(low: float, high: float) -> list[str]:
    return [f"{_CHANCE.uniform(low, high):.5f}" for _ in range(ROWS)]


def whole(low: int, high: int) -> list[str]:
    return [str(_CHANCE.randrange(low, high)) for _ in range(ROWS)]


def days(year: int) -> list[str]:
    return [f"{year}-{_CHANCE.randrange(1, 13):02d}-{_CHANCE.randrange(1, 29):02d}" for _ in range(ROWS)]


_ICD = ("J18.9", "I10", "E11.9", "M54.5", "F32.1", "K21.0", "C50.9", "N39.0")
_LIKERT = ("I strongly agree with this statement", "I neither agree nor disagree with it", "I do not agree at all")
TABLES = {
    "zip codes": {"zip": codes("{:05d}", 10**5), "households": whole(10, 900)},
    "German places": {"PLZ": codes("{:05d}", 10**5), "Ort": any_of(CITIES), "Einwohner": whole(1000, 90000)},
    "days": {"date": days(2024), "visitors": whole(0, 500)},
    "German days": {"Datum": [f"{d[8:]}.{d[5:7]}.{d[:4]}" for d in days(2023)], "Wert": whole(0, 9)},
    "products": {
        "sku": codes("AB-{:05d}-X", 10**5),
        "price": decimals(1, 99),
        "product_name": any_of(["Desk Lamp", "Oak"]),
    },
    "barcodes": {"ean": codes("4006381{:06d}", 10**6), "stock": whole(0, 99)},
    "coordinates": {"lat": decimals(47, 55), "lon": decimals(6, 15), "height": whole(0, 2900)},
    "large counts": {"bytes": whole(10**8, 10**10), "packets": whole(10**8, 10**9), "host": any_of(["web", "db"])},
    "counts of ten digits": {"views": whole(2 * 10**9, 10**10), "likes": whole(10**9, 10**10)},
    "diagnoses": {"icd": any_of(_ICD), "cases": whole(5, 900), "year": whole(2019, 2025)},
    "answers": {"answer": any_of(_LIKERT), "wave": any_of(["1", "2"]), "share": decimals(0, 1)},
    "cities": {"city": any_of(CITIES), "rainfall": decimals(0, 90)},
    "stores": {"store": any_of(CITIES), "store_id": whole(1, 30), "turnover": decimals(10, 10**5)},
    "weather": {
        "station_id": codes("ST{:04d}", 10**4),
        "measured": [f"{day} 12:00" for day in days(2022)],
        "t": decimals(-9, 30),
    },
    "trades": {
        "isin_like": codes("DE000{:07d}", 10**7),
        "volume": whole(10**6, 10**9),
        "currency": any_of(["EUR", "USD"]),
    },
    "species": {
        "species": any_of(["Homo sapiens", "Mus musculus", "Danio rerio", "Apis mellifera"]),
        "n": whole(1, 50),
    },
    "versions": {
        "version": [f"{_CHANCE.randrange(9)}.{_CHANCE.randrange(30)}.{_CHANCE.randrange(99)}" for _ in range(ROWS)]
    },
    "hours": {
        "from": any_of(["08:00", "09:30", "12:15"]),
        "weekday": any_of(["Monday", "Sunday"]),
        "riders": whole(1, 99),
    },
    "orders": {"order_id": codes("{:010d}", 10**10), "quantity": whole(1, 12), "country": any_of(["DE", "FR", "NL"])},
    "accounts of a budget": {
        "cost_center": whole(1000, 9999),
        "thousands": [f"{n[:3]} {n[3:6]} {n[6:]}" for n in whole(10**8, 10**9)],
    },
    "timestamps": {"epoch": whole(1_600_000_000, 1_700_000_000), "milliseconds": whole(16 * 10**11, 17 * 10**11)},
    "departments": {"department": any_of(["Research", "Human Resources", "Legal"]), "staff": whole(1, 500)},
}


def harmless(domain: str) -> pa.Table:
    return pa.table(TABLES[domain])
