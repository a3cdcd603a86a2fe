"""Conventions: how files of several languages write a missing value, a unit, and the row of a sum."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MISSING = """
    | - | -- | --- | ? | ?? | . | .. | n/a | n.a. | n. a. | na | #n/a | n/k | null | <null> | none | nil | nan | (null)
    | unknown | not known | not applicable | not available | not stated | not recorded | no data | missing | tbd
    | k.a. | k. a. | k.a | keine angabe | keine angaben | unbekannt | nicht bekannt | nicht erhoben | nicht zutreffend
    | entfällt | o.a. | o. a. | ohne angabe | #nv | fehlt
    | inconnu | inconnue | non renseigné | non renseignée | non communiqué | n.c. | nc | sans objet | s.o. | s/o | nsp
    | ne sait pas | non disponible | non connu | n.r. | n.d. | nd | n/d
    | desconocido | desconocida | sin datos | sin dato | s/d | s.d. | no consta | no aplica | ns/nc | ns/nr | no sabe
    | sin especificar | no disponible
    | sconosciuto | sconosciuta | non noto | non disponibile | non applicabile | non pervenuto | n.p.
    | non rilevato | non rilevata | non indicato | non specificato | non dichiarato | non fornito
    | bilinmiyor | belirtilmemiş | belirtilmedi | veri yok | bilgi yok
    | onbekend | n.v.t. | nvt | niet van toepassing | niet bekend | geen gegevens | n.b. | ontbreekt
    | desconhecido | desconhecida | não aplicável | nao aplicavel | sem dados | sem informação | não sabe
    | não disponível
    | nieznany | nieznana | nieznane | brak | brak danych | nie dotyczy | nd. | b.d. | b/d | nie podano | nieokreślono
    | okänd | okänt | saknas | uppgift saknas | ej tillämpligt | vet ej | ej angivet
    | ukendt | ukjent | mangler | ikke relevant | ved ikke | vet ikke | ikke oplyst | uoplyst | ikke oppgitt | uoppgitt
    | ikke angivet | ikke registrert | ikke registreret | ingen opplysning | ingen oplysninger | ej registrerat
    | neznámý | neznámo | neznámé | nezjištěno | neuvedeno | nezadáno | nevyplněno | není známo
    | άγνωστο | άγνωστη | άγνωστος | δ/υ | δ.υ. | δ/α | δεν υπάρχει | δεν υπάρχουν στοιχεία | δεν απαντώ | μη διαθέσιμο
    | ismeretlen | nem ismert | nincs adat | nem releváns | nem tudja
    | necunoscut | necunoscută | nespecificat | nespecificată | fără date | nu se aplică | nu știe
    | neznámy | neznáma | neuvedené | nezistené | nepoznato | nije poznato | nema podataka | neznano | ni podatka
    | неизвестно | неизвестен | неизвестна | нет данных | не указано | не указан | н/д | няма данни | невідомо
    | немає даних | не вказано | teadmata | puudub | nav zināms | nav datu | nežinoma | nėra duomenų | nenurodyta
    | desconegut | desconeguda | sense dades | no procedeix | 不明 | 未記入 | 該当なし | 未知 | 不详 | 未填
    | 미상 | 없음 | 해당없음
    | tuntematon | ei vastausta | ei ilmoitettu | ei tietoa | ei tiedossa | puuttuu | ei sovellu
"""
_WORDS = frozenset(" ".join(word.casefold().split()) for word in _MISSING.split("|")) - {""}
_SIGNS = frozenset(word for word in _WORDS if not any(map(str.isalpha, word)))

_CURRENCIES = """
    € $ £ ¥ zł kr kr. Kč Ft lei ₺ ₽ ₹ Fr. EUR USD GBP JPY CHF PLN SEK NOK DKK CZK HUF RON TRY TL BRL
    грн грн. руб. лв. 円 元 원
"""
_MEASURES = """
    kg g mg µg t km m cm mm µm l ml dl cl ha m² m³ km² % ‰ °C °F h min s Std. std. ms kWh kW W V A bar mmHg mmol/l mg/dl
    km/h bpm pts pkt pkt. Jahre Jahr J. years yrs ans anos años anni jaar lat let år vuotta Tage days jours días dni
    dagen Stück Stk. pcs st. szt.
"""
CURRENCIES = frozenset(_CURRENCIES.split())
UNITS = CURRENCIES | frozenset(_MEASURES.split())
"""Units that are recognized after a number; currencies also before one."""

_NUMBER = r"[+-]?\d[\d.,'’\s\u00a0\u2007\u2009\u202f]*"


def _either(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))


_AFTER = re.compile(rf"^\s*{_NUMBER}(?P<unit>{_either(UNITS)})\s*$")
_BEFORE = re.compile(rf"^\s*[+-]?(?P<unit>{_either(CURRENCIES)})\s*{_NUMBER}$")

TOTALS = (
    r"(?i)^\s*(grand total|total|totals|subtotal|sub-total|sum|summe|gesamt|gesamtsumme|insgesamt|zwischensumme|somme|"
    r"total général|sous-total|suma|totale|totaal|subtotaal|soma|razem|ogółem|łącznie|summa|totalt|i alt|celkem|"
    r"součet|spolu|yhteensä|σύνολο|γενικό σύνολο|άθροισμα|összesen|mindösszesen|total general|ukupno|skupaj|общо|итого|"
    r"合計|合计|小計|小计|합계|всего|усього|разом|toplam|genel toplam|kokku|kopā|iš viso)(\s*:|\s+\d+)?\s*$"
)
"""The pattern of a label of a row that adds up others."""


def is_missing_word(text: str) -> bool:
    """Whether a text is a common way to write a missing value; letters of either case count.

    >>> is_missing_word("Onbekend"), is_missing_word("k. A."), is_missing_word("s/d"), is_missing_word("Gent")
    (True, True, True, False)
    """
    return " ".join(text.casefold().split()) in _WORDS


def is_missing_sign(text: str) -> bool:
    """Whether a text without letters is a common way to write a missing value.

    >>> is_missing_sign("--"), is_missing_sign("onbekend")
    (True, False)
    """
    return text.strip() in _SIGNS


def unit_of(text: str) -> str | None:
    """Return the unit of a text that is a number with one, or None.

    >>> unit_of("1.234,50 €"), unit_of("70kg"), unit_of("$5"), unit_of("5"), unit_of("A5")
    ('€', 'kg', '$', None, None)
    """
    match = _AFTER.match(text) or _BEFORE.match(text)
    return None if match is None else match["unit"]
