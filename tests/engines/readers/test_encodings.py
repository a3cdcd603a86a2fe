"""The encoding of text is guessed by the alphabets of the languages that are written in it."""

from __future__ import annotations

import pytest

from incrowd.engines.readers.encodings import likely_encoding

TEXTS = {
    "cp1252": (
        "Straße;Größe;Mädchen",
        "Département;marié(e);célibataire;Rhône;Isère;garçon",
        "Forlì;Cesena;papà;perché;città;€ 12,00",
        "Göteborg;Kön;Mölndal;Härryda;Öckerö",
        "Ærø;Køn;Åbyhøj;Trøjborg",
        "Años;Número;Cáceres;Logroño",
        "São João;Conceição;Évora;género",
        "Þórður;Ísafjörður;býr",
        "Zürich;Genève;città;Straße;Prévôté;Graubünden",
        "l’été – “oui”; café",
    ),
    "cp1250": (
        "Rodné číslo;Příjmení;Pohlaví;žena;muž;Břeclav;Vyškov;Kč",
        "środa;piątek;mężczyzna;żonaty;Położniczy",
        "Születési idő;Lakóhely;nő;férfi;Győr;Hűvösvölgy",
        "Priezvisko;Dátum narodenia;Košice;ľudia;vŕba",
        "Županija;Šibenik;Čakovec;Đurđevac;rođenja",
        "Judeţ;Braşov;Iaşi;Timişoara;căsătorit;în",
        "Občina;Škofja Loka;Žalec;Čatež",
    ),
    "iso8859_2": ("Rodné číslo;žena;muž;Břeclav;Vyškov", "środa;piątek;mężczyzna;żonaty;Położniczy"),
    "cp1254": ("Adı Soyadı;Doğum tarihi;Başvuru günü;Kadın", "Şişli;Beşiktaş;Üsküdar"),
    "cp1257": ("Vārds;Rīga;Jūrmala;dzimšanas;pilsēta", "Pavardė;Šiauliai;Panevėžys;įstaiga;ąžuolas"),
    "cp850": ("Straße;Größe;Mädchen;München", "Département;marié;Rhône;Forêt"),
    "cp1251": ("Пациент;диагноз;город;Москва;женщина", "пол;възраст;община;София"),
    "koi8_r": ("Пациент;диагноз;город;Москва;женщина;мужчина",),
    "iso8859_15": ("palkka €/kk;sisäänpääsy;Äänekoski", "coût en €;prénom;été"),
    "cp1253": ("Φύλο;Ηλικία;Ημερομηνία γέννησης;Πόλη;Θεσσαλονίκη",),
}
EAST = {
    "cp932": ("患者番号,氏名,生年月日,性別", "山田 花子,東京都,肺炎,退院日"),
    "gb18030": ("姓名,性别,出生日期,城市", "张伟,男,北京,诊断"),
    "cp949": ("이름,성별,생년월일,진단", "김민수,남,서울"),
    "big5": ("姓名,性別,出生日期,城市,臺北",),
}
CASES = [(encoding, text) for encoding, texts in TEXTS.items() for text in texts]


@pytest.mark.parametrize(("encoding", "text"), CASES, ids=[f"{name}-{text[:8]}" for name, text in CASES])
@pytest.mark.parametrize("lines", [1, 40])
def test_the_encoding_of_a_language_is_recognized_in_one_line_and_in_many(encoding: str, text: str, lines: int) -> None:
    assert likely_encoding("\n".join([text] * lines).encode(encoding)) == encoding


def test_a_few_foreign_names_do_not_hide_the_language() -> None:
    lines = [*["Rodné číslo;Příjmení;Břeclav;žena"] * 30, "Jürgen Groß"]
    assert likely_encoding("\n".join(lines).encode("cp1250")) == "cp1250"


@pytest.mark.parametrize("encoding", EAST)
def test_signs_of_the_east_are_read_in_their_own_encoding(encoding: str) -> None:
    for text in EAST[encoding]:
        assert likely_encoding("\n".join([text] * 40).encode(encoding)) == encoding
