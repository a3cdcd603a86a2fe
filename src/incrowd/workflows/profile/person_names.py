"""Person names: whether values look like names of people, by their form and by common names of many languages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from incrowd.workflows.profile.column_names import folded

_GIVEN = frozenset(
    """
    adam adrian agnes ahmed alan albert alejandro aleksandra alessandro alessia alex alexander alexandra alfred alice
    alicia alina amelia amelie amina amy ana anastasia anders andre andrea andreas andrew angela angelika anita anja
    anke ann anna anne anneliese annette annie anthony antje anton antonio aria arthur astrid barbara bart beata beate
    beatrice beatriz ben benedikt benjamin bernard bernd bernhard bettina bianca bill birgit bjorn bob brian brigitte
    bruno camille carl carla carlos carmen carol carolina caroline catherine cecilia celine chantal charles charlotte
    chiara chloe chris christa christian christiane christina christine christoph christopher clara claire claude
    claudia claudio clemens colin constantin cristina cornelia daniel daniela daniele david dean deborah denis denise
    diana diane diego dieter dimitri dirk dominik donald donna doris dorothea dorota edith eduard eduardo edward elena
    elias elisa elisabeth elizabeth elke ella ellen elli elsa emil emilia emily emma emmanuel enrico eric erica erik
    erika ernst esther eva evelyn fabian fabio fatima felix ferdinand fernando filip finn fiona florence florian
    francesca francesco francis francisco francois frank franz franziska frederic frederik friedrich fritz gabriel
    gabriela gabriele gemma georg george gerald gerard gerd gerhard gianluca giorgio giovanni gisela giulia giuseppe
    gloria grace graham greta grzegorz guido guillaume gunnar gustav hanna hannah hannelore hans harald harry hassan
    heather heike heinrich heinz helen helena helene helga helmut hendrik henri henrik henry herbert hermann hilde
    horst hugo ian ibrahim ida ines inge ingeborg ingrid irene iris irina isabel isabella isabelle ivan jack jacob
    jacqueline jacques jakob jakub james jan jana jane janet janine jason javier jean jeanne jeffrey jennifer jens
    jessica jesus jim joachim joanna joao joe joel johan johanna johannes john jonas jonathan jorg jorge jose josef
    joseph joshua juan judith julia julian julie jurgen justin jutta kai karen karin karl karla karolina kate
    katarzyna katharina katherine kathrin katja kevin kim klara klaus konrad krzysztof kurt lars laura laurence
    laurent lea lena leo leon leonard leonie li liam lili lilly lina linda lisa lothar louis louise luca lucas lucia
    lucie ludwig luis luisa lukas luke lydia magdalena maja malgorzata manfred manon manuel manuela marc marcel marcin
    marco marcus margaret margarete maria marianne marie marina mario marion mark markus marta martha martin martina
    mary mateo mathieu mathilde matteo matthew matthias maurice max maximilian megan mehmet melanie mia michael michal
    michel michele michelle miguel mike milan mohamed mohammed monica monika monique muhammad nadia nadine nancy
    natalia natalie nathan nicola nicolas nicole niklas nils nina noah nora norbert olaf oleg olga oliver olivia
    olivier omar oscar oskar otto pablo paola paolo pascal patricia patrick patrizia paul paula paulina pawel pedro
    peter petra philip philipp philippe pierre pietro pilar piotr priya rachel rafael rahul rainer ralf ramon raphael
    raul rebecca regina reinhard renate renee ricardo richard rita robert roberta roberto robin roger roland rolf
    romain ronald rosa rosemarie rudolf ruth ryan sabine sabrina salvatore sam samuel sandra sara sarah sascha scott
    sean sebastian sergio sharon silke silvia simon simona simone sofia sonja sophia sophie stefan stefania stefanie
    stefano steffen stella stephan stephanie stephen steven susan susanne sven sylvia sylvie tania tanja tatjana
    teresa theo theresa thierry thomas thorsten tim timothy tina tobias tom tomas tomasz torsten udo ulrich ulrike
    ursula ute uwe valentina valerie vanessa vera veronika victor victoria viktor vincent virginie waltraud werner
    wiebke wilhelm william wolfgang xavier yannick yasmin youssef yves yvonne zoe wei fang jing min hiroshi yuki
    """.split()  # noqa: SIM905 - a list of words is read as one
)
_FAMILY = frozenset(
    """
    muller mueller schmidt schneider fischer weber meyer meier maier wagner becker schulz hoffmann schafer schaefer koch
    bauer richter klein wolf schroder schroeder neumann schwarz zimmermann braun kruger krueger hofmann hartmann lange
    schmitt werner krause lehmann schmid schulze kohler koehler keller huber smith jones williams brown taylor davies
    evans johnson wilson roberts thompson wright walker hughes green hall wood harris martin clark davis miller moore
    anderson jackson white martinez garcia rodriguez fernandez gonzalez lopez sanchez perez gomez ruiz hernandez diaz
    moreno alvarez munoz romero dubois durand leroy moreau simon laurent lefebvre michel bernard thomas petit robert
    richard girard bonnet dupont lambert fontaine rossi russo ferrari esposito bianchi romano colombo ricci marino greco
    bruno gallo conti costa giordano mancini jansen vries berg bakker visser smit boer mulder groot janssen peters
    nowak kowalski kowalska wisniewski wojcik kaminski lewandowski zielinski nilsson andersson johansson karlsson
    larsson hansen olsen nielsen jensen pedersen silva santos ferreira pereira oliveira nguyen tran wang zhang chen liu
    yang singh kumar patel khan ahmed ali hassan yilmaz kaya demir ivanov petrov popescu novak horvat nagy kovacs
    tanaka suzuki sato kim lee park
    """.split()  # noqa: SIM905 - as above
)
_ANY = _GIVEN | _FAMILY
_TITLES = frozenset(
    ("dr", "prof", "mr", "mrs", "ms", "herr", "frau", "von", "van", "de", "der", "di", "del", "la", "le")
)
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_PART = r"[^\W\d_]+(?:['’.\-][^\W\d_]+)*\.?"
_FORM = re.compile(rf"^{_PART}(?:,? {_PART}){{1,4}}$")
_FEWEST, _FEWEST_ALONE = 3, 5
_FULL, _ALONE, _FORMS = 0.3, 0.6, 0.6
_MOST_LETTERS = 60


def look_like_people(values: Sequence[str]) -> bool:
    """Return whether many values are names of people in full, or single given or family names.

    >>> look_like_people(["Anna Schmidt", "Jan de Vries", "Dupont, Marie", "Wei Zhang"])
    True
    >>> look_like_people(["Oak Table", "Desk Lamp", "Garden Chair", "Kitchen Sink"])
    False
    """
    forms = [value for value in values if len(value) <= _MOST_LETTERS and _FORM.match(value.strip())]
    full = [value for value in forms if _hit(value)]
    if len(full) >= _FEWEST and len(full) >= _FULL * len(values) and len(forms) >= _FORMS * len(values):
        return True
    alone = [value for value in values if folded(value.strip()) in _ANY]
    return len(alone) >= _FEWEST_ALONE and len(alone) >= _ALONE * len(values)


def may_be_people(values: Sequence[str]) -> bool:
    """Return whether one value at least is, or all have the form of, a name of somebody: enough below the word name.

    >>> may_be_people(["Widget", "Anna"]), may_be_people(["M8 x 20", "M8 x 30"])
    (True, False)
    """
    if any(folded(word) in _ANY for value in values for word in _WORD.findall(value)):
        return True
    few = len(values) < 4 * _FEWEST_ALONE
    return few and all(_FORM.match(value.strip()) for value in values)


def _hit(value: str) -> bool:
    words = [folded(word) for word in _WORD.findall(value)]
    names = [word for word in words if word not in _TITLES]
    return len(words) > 1 and any(part in _GIVEN for word in names for part in word.split("-"))
