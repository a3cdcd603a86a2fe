"""Column names: what the name of a column gives away about what it holds, in several languages."""

from __future__ import annotations

import itertools
import re
import unicodedata

_LETTERS = str.maketrans({"ß": "ss", "ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "ı": "i"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CODES = _words(
    "zip zipcode postal postcode postalcode plz postleitzahl codepostal cap phone telephone telefon telefono fax "
    "mobile handy iban account tract fips code icd isco nace nummer nr"
)
"""Numbers by these names are codes: nobody adds them up."""

GIVEN_OR_FAMILY = _words(
    "firstname lastname surname fullname forename givenname familyname middlename maidenname birthname nickname "
    "vorname vornamen nachname nachnamen zuname familienname geburtsname rufname prenom prenoms nomdefamille apellido "
    "apellidos cognome sobrenome apelido voornaam achternaam familienaam imie nazwisko fornamn efternamn fornavn "
    "efternavn etunimi sukunimi jmeno prijmeni"
)
"""Columns by these names hold names of people and of nothing else."""

NAMES = _words("name names nom noms nombre nombres nome nomi naam namn navn")
"""Columns by these names hold names, of people perhaps."""

CONTACTS = {
    "e-mail addresses": _words("email emails mail emailaddress mailadresse courriel correo correoelectronico posta"),
    "phone numbers": _words(
        "phone telephone tel fax mobile cell cellphone handy telefon telefonnummer handynummer rufnummer mobil "
        "mobilnummer telefoon telefono movil celular cellulare portable teléfono"
    ),
    "postal addresses": _words(
        "address addresses street streetaddress adresse anschrift strasse hausnummer wohnadresse rue calle direccion "
        "domicilio indirizzo adres straat ulica rua endereco gata gatuadress"
    ),
    "bank accounts": _words("iban account accountnumber bankaccount konto kontonummer cuenta conto rekening"),
    "network addresses or devices": _words("ip ipaddress mac device imei imsi deviceid cookie udid"),
    "national or tax ids": _words(
        "ssn sin nhs nhsnumber nino passport passportnumber passnummer reisepass ausweis ausweisnummer pasaporte "
        "passeport passaporto license licence driverlicense fuehrerschein steuerid steuernummer steueridentnummer idnr "
        "sozialversicherungsnummer svnr rentenversicherungsnummer nir insee dni nie nif codicefiscale bsn pesel nip "
        "personnummer cpr cpf curp aadhaar tin taxid nationalid socialsecurity versichertennummer krankenversicherten "
        "cedula ahv"
    ),
    "vehicles": _words("plate licenseplate kennzeichen immatriculation matricula targa vin"),
    "user names": _words("username login loginname userid handle benutzername benutzer twitter instagram screenname"),
    "ids of people": _words(
        "uuid guid mrn patientid patientenid patnr pid customerid "
        "kundenid matrikel personal employeeid studentid "
        "memberid personid"
    ),
}
"""Columns by these names tell who somebody is, by kind."""

IDS = _words("id ids no nr num number nummer numero key code pseudonym token hash")
PEOPLE = _words(
    "person people patient patients patienten customer kunde kunden client member mitglied mitglieds employee "
    "mitarbeiter staff user student schueler pupil participant teilnehmer proband subject respondent driver rider "
    "passenger resident citizen tenant insured versicherter donor mother father child author owner holder contact "
    "paciente cliente empleado alumno utente dipendente adherent eleve salarie klant medewerker voter witness "
    "suspect prisoner applicant"
)
"""With one of the first words, and one of the second, a name speaks of ids of people."""

NAMING = _words("id ids") | NAMES | GIVEN_OR_FAMILY | frozenset().union(*CONTACTS.values()) | _words("url")
"""Columns by these names tell who or what somebody is."""

KNOWN = _words(
    "age birth birthday birthdate dob yob born sex gender zip zipcode postal postcode postalcode plz city town village "
    "municipality county state province region district tract country nationality citizenship race ethnicity ethnic "
    "language marital married education school degree occupation profession job employer industry workclass household "
    "children date day month year admitted admission discharged discharge visit height weight hospital ward "
    "alter geburtsdatum geburtsjahr geburtstag geschlecht postleitzahl ort wohnort stadt gemeinde landkreis kreis "
    "bundesland land staat familienstand beruf staatsangehoerigkeit nationalitat datum tag monat jahr aufnahme "
    "entlassung station klinik schule bildung "
    "naissance datedenaissance sexe codepostal ville commune departement pays metier nationalite annee mois jour "
    "edad nacimiento sexo genero ciudad municipio provincia pais profesion fecha mes ano "
    "eta nascita sesso genere citta comune paese professione data mese anno "
    "leeftijd geboortedatum geslacht woonplaats gemeente provincie beroep wiek plec miasto wojewodztwo"
)
"""Columns by these names are known to neighbors, colleagues and registers."""

SECRET = _words(
    "diagnosis diagnoses disease illness icd condition symptom symptoms procedure treatment therapy medication drug "
    "drugs prescription allergy hiv test result results lab score grade grades salary income wage wages pay charge "
    "charges cost costs price amount balance debt loan credit crime offense conviction sentence religion party "
    "political orientation disability pregnancy addiction alcohol smoking genotype blood outcome "
    "diagnose diagnosen krankheit befund symptome behandlung medikament therapie gehalt einkommen lohn umsatz betrag "
    "kosten note noten schulden vorstrafe konfession partei "
    "diagnostic maladie traitement salaire revenu revenus montant diagnostico enfermedad tratamiento salario sueldo "
    "ingresos renta diagnosi malattia stipendio reddito importo ziekte salaris inkomen"
)
"""Columns by these names are what people would rather keep to themselves."""

THINGS = KNOWN | _words(
    "product products item article artikel produkt sku brand model category kategorie company firma business vendor "
    "supplier store shop branch filiale station sensor machine building room team club department abteilung project "
    "file event course class species variable field column street_name river lake mountain place location site venue "
    "airport port stop line route currency drug dish recipe film movie book song album game color colour material "
    "order invoice transaction ticket batch lot part asset gene protein compound storm party candidate_list office"
)
"""With one of these words, a name or an id is one of a thing or a place."""

MONEY = _words(
    "salary income wage wages pay charge charges cost costs price amount balance debt loan credit revenue turnover "
    "budget gehalt einkommen lohn umsatz betrag kosten preis schulden salaire revenu revenus montant prix salario "
    "sueldo ingresos renta precio stipendio reddito importo prezzo salaris inkomen bedrag"
)
"""Numbers by these names are amounts of money."""

AGES = _words("age alter edad eta leeftijd wiek idade alder ika kor vek")
BIRTHS = _words(
    "birth birthday birthdate dob yob born geburtsdatum geburtsjahr geburtstag naissance datedenaissance nacimiento "
    "nascita geboortedatum geboortejaar"
)
YEARS = _words("year years yob jahr geburtsjahr annee ano anno jaar rok geboortejaar baujahr")
SEXES = _words("sex gender geschlecht sexe sexo genero sesso genere geslacht plec kon kjonn sukupuoli")
PLACES = _words("zip zipcode postal postcode postalcode plz postleitzahl codepostal cap")
NATIONS = _words(
    "country nationality citizenship nation origin land staat staatsangehoerigkeit herkunft nationalitat pays "
    "nationalite pais nacionalidad paese kraj"
)
STATES = _words(
    "state region province county bundesland land kanton canton departement provincia comunidad regione provincie "
    "wojewodztwo"
)
DISEASES = _words("icd diagnosis diagnoses diagnose diagnosen diagnostic diagnostico diagnosi")
JOBS = _words("isco occupation beruf profession job")
TRADES = _words("nace industry branche sector wz")
"""Words of columns for which there are public vocabularies."""


def spoken(name: str, words: frozenset[str]) -> str | None:
    """Return the first word of a column's name that is one of `words`; accents make no difference.

    >>> spoken("dateOfBirth", KNOWN), spoken("PATIENT_ID", NAMING), spoken("identity", NAMING), spoken("Prénom", NAMING)
    ('date', 'id', None, 'prenom')
    """
    return next((part for part in parts_of(name) if part in words), None)


def parts_of(name: str) -> tuple[str, ...]:
    """Return the words of a column's name, alone and joined by two and three.

    >>> parts_of("E-Mail")
    ('e', 'mail', 'email')
    """
    split = re.sub(r"(?<=[a-z0-9ß-ÿ])(?=[A-Z])|(?<=[a-z]{4})(?=(nummer|nr|number)\b)", " ", name)
    parts = [part for part in re.split(r"[^a-z]+", folded(split)) if part]
    pairs = ["".join(pair) for pair in itertools.pairwise(parts)]
    triples = ["".join(parts[start : start + 3]) for start in range(len(parts) - 2)]
    return (*parts, *pairs, *triples)


def folded(text: str) -> str:
    """Return a text in small letters without accents.

    >>> folded("Straße"), folded("ÉTÉ")
    ('strasse', 'ete')
    """
    plain = unicodedata.normalize("NFKD", text.lower().translate(_LETTERS))
    return "".join(letter for letter in plain if not unicodedata.combining(letter))
