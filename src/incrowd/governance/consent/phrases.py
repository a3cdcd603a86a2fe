"""Phrases for data subjects, in five languages, in one catalogue; the translations have not been reviewed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

LANGUAGES = MappingProxyType({"en": "English", "de": "Deutsch", "fr": "Français", "es": "Español", "nl": "Nederlands"})
_ORDER = tuple(LANGUAGES)
_TEXTS: Mapping[str, tuple[str, str, str, str, str]] = {
    "receipt": (
        "Receipt of your decisions",
        "Bestätigung Ihrer Entscheidungen",
        "Reçu de vos décisions",
        "Recibo de sus decisiones",
        "Bewijs van uw beslissingen",
    ),
    "for": (
        "For {person}, made on {day}.",
        "Für {person}, erstellt am {day}.",
        "Pour {person}, établi le {day}.",
        "Para {person}, emitido el {day}.",
        "Voor {person}, gemaakt op {day}.",
    ),
    "none": (
        "No decision is recorded.",
        "Es ist keine Entscheidung verzeichnet.",
        "Aucune décision n'est enregistrée.",
        "No hay ninguna decisión registrada.",
        "Er is geen beslissing vastgelegd.",
    ),
    "give": (
        "You agreed that your data may be used for “{purpose}”.",
        "Sie haben zugestimmt, dass Ihre Daten für „{purpose}“ verwendet werden dürfen.",
        "Vous avez accepté que vos données soient utilisées pour « {purpose} ».",
        "Usted aceptó que sus datos se usen para «{purpose}».",
        "U stemde ermee in dat uw gegevens worden gebruikt voor “{purpose}”.",
    ),
    "refuse": (
        "You refused the use of your data for “{purpose}”.",
        "Sie haben die Verwendung Ihrer Daten für „{purpose}“ abgelehnt.",
        "Vous avez refusé l'utilisation de vos données pour « {purpose} ».",
        "Usted rechazó el uso de sus datos para «{purpose}».",
        "U weigerde het gebruik van uw gegevens voor “{purpose}”.",
    ),
    "withdraw": (
        "You withdrew your consent to “{purpose}”.",
        "Sie haben Ihre Einwilligung zu „{purpose}“ widerrufen.",
        "Vous avez retiré votre consentement à « {purpose} ».",
        "Usted retiró su consentimiento para «{purpose}».",
        "U trok uw toestemming voor “{purpose}” in.",
    ),
    "expire": (
        "Your consent to “{purpose}” ended.",
        "Ihre Einwilligung zu „{purpose}“ ist abgelaufen.",
        "Votre consentement à « {purpose} » a pris fin.",
        "Su consentimiento para «{purpose}» terminó.",
        "Uw toestemming voor “{purpose}” is verlopen.",
    ),
    "restrict": (
        "The use of your data for “{purpose}” was paused.",
        "Die Verwendung Ihrer Daten für „{purpose}“ wurde ausgesetzt.",
        "L'utilisation de vos données pour « {purpose} » a été suspendue.",
        "El uso de sus datos para «{purpose}» quedó en pausa.",
        "Het gebruik van uw gegevens voor “{purpose}” is opgeschort.",
    ),
    "void": (
        "A decision about “{purpose}” of {corrects} had been recorded by mistake and does not count.",
        "Eine Entscheidung zu „{purpose}“ vom {corrects} war irrtümlich verzeichnet und gilt nicht.",
        "Une décision sur « {purpose} » du {corrects} avait été enregistrée par erreur et ne compte pas.",
        "Una decisión sobre «{purpose}» del {corrects} se registró por error y no cuenta.",
        "Een beslissing over “{purpose}” van {corrects} was per vergissing vastgelegd en telt niet.",
    ),
    "corrects": (
        "This corrects the decision of {corrects}.",
        "Das berichtigt die Entscheidung vom {corrects}.",
        "Cela corrige la décision du {corrects}.",
        "Esto corrige la decisión del {corrects}.",
        "Dit verbetert de beslissing van {corrects}.",
    ),
    "decided": ("Decided", "Entschieden", "Décidé", "Decidido", "Besloten"),
    "recorded": ("Recorded", "Verzeichnet", "Enregistré", "Registrado", "Vastgelegd"),
    "from": ("In force from", "Gültig ab", "En vigueur à partir du", "En vigor desde", "Geldig vanaf"),
    "until": ("End", "Ende", "Fin", "Fin", "Einde"),
    "open": (
        "none, unless you withdraw",
        "keines, außer Sie widerrufen",
        "aucune, sauf si vous le retirez",
        "ninguno, salvo que lo retire",
        "geen, tenzij u intrekt",
    ),
    "notice": ("Notice", "Information", "Notice", "Aviso", "Informatie"),
    "guardian": (
        "Decided for you by",
        "Für Sie entschied",
        "Décidé pour vous par",
        "Decidió por usted",
        "Voor u besloot",
    ),
    "of_age": (
        "You decide yourself from",
        "Sie entscheiden selbst ab",
        "Vous décidez vous-même à partir du",
        "Usted decide desde",
        "U beslist zelf vanaf",
    ),
    "how": (
        (
            "You can withdraw at any time and without giving a reason: ask the organization that holds your data, or "
            "use the page /consent of its server with a code from it. Nothing new is then made from your data. What is"
            " already published cannot be taken back."
        ),
        (
            "Sie können jederzeit und ohne Angabe von Gründen widerrufen: Wenden Sie sich an die Einrichtung, die Ihre"
            " Daten hält, oder benutzen Sie die Seite /consent ihres Servers mit einem Code von ihr. Danach wird aus "
            "Ihren Daten nichts Neues mehr erstellt. Was schon veröffentlicht ist, lässt sich nicht zurückholen."
        ),
        (
            "Vous pouvez retirer votre consentement à tout moment et sans donner de raison : adressez-vous à "
            "l'organisme qui détient vos données, ou utilisez la page /consent de son serveur avec un code qu'il vous "
            "donne. Rien de nouveau n'est ensuite tiré de vos données. Ce qui est déjà publié ne peut pas être repris."
        ),
        (
            "Puede retirar su consentimiento en cualquier momento y sin dar razones: pida ayuda a la organización que "
            "tiene sus datos, o use la página /consent de su servidor con un código que ella le dé. Después no se hace"
            " nada nuevo con sus datos. Lo ya publicado no se puede recuperar."
        ),
        (
            "U kunt altijd en zonder reden intrekken: vraag het de organisatie die uw gegevens heeft, of gebruik de "
            "pagina /consent van haar server met een code van haar. Daarna wordt er niets nieuws van uw gegevens "
            "gemaakt. Wat al gepubliceerd is, kan niet worden teruggehaald."
        ),
    ),
    "how_here": (
        (
            "You can withdraw at any time and without giving a reason, with the button below. Nothing new is then made "
            "from your data. What is already published cannot be taken back."
        ),
        (
            "Sie können jederzeit und ohne Angabe von Gründen widerrufen, mit dem Knopf unten. Danach wird aus Ihren "
            "Daten nichts Neues mehr erstellt. Was schon veröffentlicht ist, lässt sich nicht zurückholen."
        ),
        (
            "Vous pouvez retirer votre consentement à tout moment et sans donner de raison, avec le bouton ci-dessous. "
            "Rien de nouveau n'est ensuite tiré de vos données. Ce qui est déjà publié ne peut pas être repris."
        ),
        (
            "Puede retirar su consentimiento en cualquier momento y sin dar razones, con el botón de abajo. Después no "
            "se hace nada nuevo con sus datos. Lo ya publicado no se puede recuperar."
        ),
        (
            "U kunt altijd en zonder reden intrekken, met de knop hieronder. Daarna wordt er niets nieuws van uw "
            "gegevens gemaakt. Wat al gepubliceerd is, kan niet worden teruggehaald."
        ),
    ),
    "withdrawn": (
        "Your withdrawal is recorded.",
        "Ihr Widerruf ist verzeichnet.",
        "Votre retrait est enregistré.",
        "Su retirada está registrada.",
        "Uw intrekking is vastgelegd.",
    ),
    "title": ("Your consent", "Ihre Einwilligung", "Votre consentement", "Su consentimiento", "Uw toestemming"),
    "yes": (
        "You consent to “{purpose}”.",
        "Sie willigen in „{purpose}“ ein.",
        "Vous consentez à « {purpose} ».",
        "Usted consiente «{purpose}».",
        "U stemt in met “{purpose}”.",
    ),
    "no": (
        "You do not consent to “{purpose}”.",
        "Sie willigen in „{purpose}“ nicht ein.",
        "Vous ne consentez pas à « {purpose} ».",
        "Usted no consiente «{purpose}».",
        "U stemt niet in met “{purpose}”.",
    ),
    "until_day": (
        "Your consent ends on {day}.",
        "Ihre Einwilligung endet am {day}.",
        "Votre consentement prend fin le {day}.",
        "Su consentimiento termina el {day}.",
        "Uw toestemming eindigt op {day}.",
    ),
    "releases": (
        "Releases for which your data could be used",
        "Veröffentlichungen, für die Ihre Daten verwendet werden konnten",
        "Publications pour lesquelles vos données pouvaient être utilisées",
        "Publicaciones para las que se podían usar sus datos",
        "Publicaties waarvoor uw gegevens gebruikt konden worden",
    ),
    "so_far": ("None so far.", "Bisher keine.", "Aucune jusqu'ici.", "Ninguna hasta ahora.", "Nog geen."),
    "on": ("Day", "Tag", "Jour", "Día", "Dag"),
    "name": ("Data", "Daten", "Données", "Datos", "Gegevens"),
    "loss": (
        "Privacy loss",
        "Privatheitsverlust",
        "Perte de confidentialité",
        "Pérdida de privacidad",
        "Privacyverlies",
    ),
    "bounded": (
        "ε at most {epsilon}",
        "ε höchstens {epsilon}",
        "ε au plus {epsilon}",
        "ε como máximo {epsilon}",
        "ε hoogstens {epsilon}",
    ),
    "no_bound": ("no bound", "keine Schranke", "aucune borne", "sin límite", "geen grens"),
    "tells": (
        (
            "All of it together: somebody who guesses whether your data are in it, and thought both equally likely, is"
            " right in at most {number} of 100 cases."
        ),
        (
            "Alles zusammen: Wer rät, ob Ihre Daten darin sind, und beides vorher für gleich wahrscheinlich hielt, hat"
            " in höchstens {number} von 100 Fällen recht."
        ),
        (
            "Tout ensemble : quelqu'un qui devine si vos données y sont, et qui tenait les deux pour également "
            "probables, a raison dans au plus {number} cas sur 100."
        ),
        (
            "Todo junto: quien adivine si sus datos están ahí, y antes creía ambas cosas igual de probables, acierta "
            "como máximo en {number} de 100 casos."
        ),
        (
            "Alles samen: iemand die raadt of uw gegevens erin zitten, en beide even waarschijnlijk vond, heeft in "
            "hoogstens {number} van de 100 gevallen gelijk."
        ),
    ),
    "tells_much": (
        (
            "All of it together: no bound better than 99 of 100 can be stated for somebody who guesses whether your "
            "data are in it."
        ),
        (
            "Alles zusammen: Für jemanden, der rät, ob Ihre Daten darin sind, lässt sich keine Schranke unter 99 von "
            "100 Fällen angeben."
        ),
        (
            "Tout ensemble : pour quelqu'un qui devine si vos données y sont, aucune borne inférieure à 99 cas sur 100"
            " ne peut être donnée."
        ),
        ("Todo junto: para quien adivine si sus datos están ahí no se puede dar un límite menor que 99 de 100 casos."),
        (
            "Alles samen: voor iemand die raadt of uw gegevens erin zitten is geen grens onder 99 van de 100 gevallen "
            "te geven."
        ),
    ),
    "tells_unbounded": (
        (
            "All of it together: there is no bound on what it can tell about you, because a release without ε is among"
            " it. Such releases hide people in groups."
        ),
        (
            "Alles zusammen: Es gibt keine Schranke dafür, was es über Sie verraten kann, denn eine Veröffentlichung "
            "ohne ε ist darunter. Solche Veröffentlichungen verbergen Menschen in Gruppen."
        ),
        (
            "Tout ensemble : il n'y a aucune borne à ce que cela peut dire de vous, car une publication sans ε en fait"
            " partie. De telles publications cachent les gens dans des groupes."
        ),
        (
            "Todo junto: no hay límite para lo que puede decir de usted, porque incluye una publicación sin ε. Tales "
            "publicaciones ocultan a las personas en grupos."
        ),
        (
            "Alles samen: er is geen grens aan wat het over u kan zeggen, want er is een publicatie zonder ε bij. "
            "Zulke publicaties verbergen mensen in groepen."
        ),
    ),
    "basis": (
        (
            "Whether your data were really used is told to nobody: samples and suppression are secret. This page is "
            "made from your decisions and the list of releases alone."
        ),
        (
            "Ob Ihre Daten wirklich verwendet wurden, erfährt niemand: Stichproben und Unterdrückung sind geheim. "
            "Diese Seite entsteht nur aus Ihren Entscheidungen und der Liste der Veröffentlichungen."
        ),
        (
            "Personne n'apprend si vos données ont vraiment été utilisées : échantillons et suppressions sont secrets."
            " Cette page n'est faite que de vos décisions et de la liste des publications."
        ),
        (
            "Nadie sabe si sus datos se usaron de verdad: las muestras y las supresiones son secretas. Esta página se "
            "hace solo con sus decisiones y la lista de publicaciones."
        ),
        (
            "Niemand krijgt te horen of uw gegevens echt gebruikt zijn: steekproeven en onderdrukking zijn geheim. "
            "Deze pagina komt alleen uit uw beslissingen en de lijst van publicaties."
        ),
    ),
    "withdraw_button": ("Withdraw", "Widerrufen", "Retirer", "Retirar", "Intrekken"),
    "ask": (
        "Show what was released",
        "Veröffentlichungen zeigen",
        "Afficher les publications",
        "Mostrar lo publicado",
        "Toon wat gepubliceerd is",
    ),
    "intro": (
        "Enter the code that the organization that holds your data gave you. It works once.",
        "Geben Sie den Code ein, den Sie von der Einrichtung haben, die Ihre Daten hält. Er gilt einmal.",
        "Entrez le code que l'organisme qui détient vos données vous a donné. Il sert une seule fois.",
        "Escriba el código que le dio la organización que tiene sus datos. Sirve una sola vez.",
        "Voer de code in die u van de organisatie kreeg die uw gegevens heeft. Hij werkt één keer.",
    ),
    "code": ("Code", "Code", "Code", "Código", "Code"),
    "refused": (
        "This code is unknown, used or expired. Ask the organization that holds your data for another.",
        (
            "Dieser Code ist unbekannt, verbraucht oder abgelaufen. Bitten Sie die Einrichtung, die Ihre Daten hält, "
            "um einen neuen."
        ),
        "Ce code est inconnu, utilisé ou expiré. Demandez-en un autre à l'organisme qui détient vos données.",
        "Este código es desconocido, ya se usó o caducó. Pida otro a la organización que tiene sus datos.",
        "Deze code is onbekend, gebruikt of verlopen. Vraag een andere aan de organisatie die uw gegevens heeft.",
    ),
    "unreviewed": (
        "",
        "Diese Übersetzung wurde noch nicht geprüft.",
        "Cette traduction n'a pas encore été relue.",
        "Esta traducción aún no ha sido revisada.",
        "Deze vertaling is nog niet nagekeken.",
    ),
}


def phrase(language: str, name: str, **values: object) -> str:
    """Return a phrase in a language; English where the language is not in the catalogue.

    >>> phrase("nl", "withdraw_button"), phrase("xx", "until_day", day="2027-01-01")
    ('Intrekken', 'Your consent ends on 2027-01-01.')
    """
    return _TEXTS[name][_ORDER.index(known_language(language))].format(**values)


def decimal(language: str, number: str) -> str:
    """Return a decimal number as a language writes it.

    >>> decimal("de", "0.99"), decimal("en", "0.99")
    ('0,99', '0.99')
    """
    return number if language == "en" else number.replace(".", ",")


def known_language(*wishes: str) -> str:
    """Return the first language of the catalogue among wishes such as `de-AT`, or English.

    >>> known_language("pt", "de-AT", "fr"), known_language("")
    ('de', 'en')
    """
    short = (wish.strip().split("-")[0].casefold() for wish in wishes)
    return next((wish for wish in short if wish in LANGUAGES), "en")


def accepted_language(header: str) -> str:
    """Return the language that a browser asks for first, of those in the catalogue.

    >>> accepted_language("pt-PT, nl;q=0.7, de-DE;q=0.9")
    'de'
    """
    parts = [part.partition(";q=") for part in header.split(",")]
    return known_language(*(name for name, _, _ in sorted(parts, key=lambda part: -_weight(part[2]))))


def _weight(text: str) -> float:
    try:
        return float(text) if text else 1.0
    except ValueError:
        return 0.0
