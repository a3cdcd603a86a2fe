"""Numbers of people: phones, bank accounts, cards, national and tax ids, recognized by their check digits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module

from incrowd.workflows.profile.column_names import word_lists

_MOST = 64
_SHARE = 0.8
_CHANCE = 2e-4  # so rarely may values without meaning pass by luck; more values are asked for where a check is weak
_WEAK, _STRONG = 0.1, 0.012
_REGIONS = ("DE", "US", "GB", "FR", "ES", "IT", "NL", "AT", "CH", "BE", "PL", "SE", "PT", "DK", "IE", "NO", "FI")
_ABROAD = re.compile(r"^(\+|00)[1-9][\d ()/.\-]{6,20}$")
_HOME = re.compile(r"^(\(?0\d[\d ()/.\-]{6,18}|\(?\d{3}\)?[ .\-]\d{3}[ .\-]\d{4}|\d{3}( \d\d){3}|\d\d( \d\d){3,4})$")
_PARTED = re.compile(r"[ ()/.\-]")
_NOTHING = str.maketrans("", "", " .-/()")
_CARDS = re.compile(r"^(4|5[1-5]|2[2-7]|3[4-9]|6[05])")
_WRITTEN = (re.compile(r"^\d{3}-\d{2}-\d{4}$"), re.compile(r"^[A-CEGHJ-PR-TW-Z]{2} ?\d\d ?\d\d ?\d\d ?[A-D]$"))
_IDS: list[list[str]] = [line.split(maxsplit=4) for line in word_lists("numbers")["ids"]]


def phones(values: Sequence[str]) -> bool:
    """Return whether values are phone numbers, as they are written abroad or at home.

    Digits without a sign, a bracket or a gap do not count as a phone: counts and codes have the same form.

    >>> phones(["+49 30 901820", "+33 1 42 76 40 40"]), phones(["2025550123"])
    (True, False)
    >>> phones(["030 901820", "(089) 233-00", "040 428280", "0221 2210", "069 21201"])
    True
    """
    written = [value.strip() for value in values[:_MOST]]
    abroad = [value for value in written if _ABROAD.match(value)]
    home = [value for value in written if _HOME.match(value) and _PARTED.search(value.strip("("))]
    if len(abroad) >= len(home):
        valid = [value for value in abroad if _is_phone(re.sub("^00", "+", value), None)]
        return _enough(len(valid), len(written), _STRONG)
    most = max((sum(_is_phone(value, region) for value in home) for region in _REGIONS), default=0)
    return _enough(most, len(written), _WEAK)


def bank_accounts(values: Sequence[str]) -> bool:
    """Return whether values are international bank account numbers.

    >>> bank_accounts(["DE89 3704 0044 0532 0130 00", "FR1420041010050500013M02606"])
    True
    """
    return _valid(values, "iban", (15, 42), _STRONG)


def cards(values: Sequence[str]) -> bool:
    """Return whether values are numbers of payment cards.

    >>> cards(["4111 1111 1111 1111", "5500-0000-0000-0004", "340000000000009", "4012888888881881"])
    True
    """
    issued = [value for value in values if _CARDS.match(value.translate(_NOTHING))]
    return len(issued) >= _SHARE * len(values) and _valid(issued, "luhn", (13, 19), _WEAK)


def devices(values: Sequence[str]) -> bool:
    """Return whether values are addresses of devices in a network.

    >>> devices(["192.168.0.17", "10.0.0.1"]), devices(["00:1B:44:11:3A:B7", "00:1B:44:11:3A:B8"]), devices(["1.2"])
    (True, True, False)
    """
    import ipaddress

    valid = 0
    for value in values[:_MOST]:
        try:
            valid += bool(re.fullmatch(r"([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}", value.strip())) or bool(
                ipaddress.ip_address(value.strip())
            )
        except ValueError:
            continue
    return _enough(valid, len(values[:_MOST]), _STRONG)


def national_ids(values: Sequence[str]) -> str | None:
    """Return the kind of national or tax ids, or None.

    >>> national_ids(["529-98-2241", "078-05-1120"]), national_ids(["123456789", "987654321", "192837465"])
    ('American or British insurance numbers', None)
    """
    some = [value.strip() for value in values[:_MOST]]
    for form in _WRITTEN:
        if _enough(sum(bool(form.match(value)) for value in some), len(some), _STRONG):
            return "American or British insurance numbers"
    lengths = {len(value.translate(_NOTHING)) for value in some}
    for module, least, most, strength, words in _IDS:
        span, chance = (int(least), int(most)), _STRONG if strength == "strong" else _WEAK
        if any(span[0] <= length <= span[1] for length in lengths) and _valid(some, module, span, chance):
            return words
    return None


def _valid(values: Sequence[str], module: str, lengths: tuple[int, int], chance: float) -> bool:
    """Return whether too many values have right check digits for chance."""
    some = values[:_MOST]
    fitting = [value for value in some if lengths[0] <= len(value.translate(_NOTHING)) <= lengths[1]]
    if len(fitting) < _SHARE * len(some):
        return False
    check = _check_of(module)
    return _enough(sum(check(value) for value in fitting), len(some), chance)


@cache
def _check_of(module: str) -> Callable[[str], bool]:
    is_valid: Callable[[str], bool] = import_module(f"stdnum.{module}").is_valid
    return (lambda value: is_valid(value.translate(_NOTHING))) if module == "luhn" else is_valid


def _enough(valid: int, tested: int, chance: float) -> bool:
    return valid > 0 and valid >= _SHARE * tested and chance**valid <= _CHANCE


def _is_phone(value: str, region: str | None) -> bool:
    import phonenumbers

    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(value, region))
    except phonenumbers.NumberParseException:
        return False
