"""Lexicon: the words in which rules are written, each with the one thing that it means; all others are unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

_UNITS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NUMBERS = {word: number for number, word in enumerate(_UNITS, start=1)} | {
    "zero": 0,
    "fifteen": 15,
    "sixteen": 16,
    "twenty": 20,
    "twenty five": 25,
    "thirty": 30,
    "fifty": 50,
    "hundred": 100,
}
"""Numbers as words; all others are written in digits."""


class Sense(StrEnum):
    """What a word, or a few of them together, mean."""

    UPPER = "counts up to a number"
    LOWER = "counts from a number on"
    HIDE = "withhold"
    ZERO = "publish as 0"
    SHOW = "publish"
    NOT = "not"
    UNLESS = "unless"
    REST = "all others"
    ROUND = "round"
    ZEROS = "how empty cells look"
    SECONDARY = "secondary suppression"
    THEN = "then"
    AFTER = "after"
    BEFORE = "before"
    STOP = "a new clause"
    UNKNOWN = "not understood"
    FILLER = "nothing"


@dataclass(frozen=True)
class Token:
    """Some words of a sentence, what they mean, and their numbers as they are written, by name."""

    kind: Sense
    text: str
    sense: str
    groups: dict[str, str]

    def number(self, name: str = "n") -> int | None:
        """Return a number of these words, if they have one of that name."""
        text = self.groups.get(name)
        return None if text is None else whole(text)


def whole(text: str) -> int:
    """Return a number that is written in digits or as a word.

    >>> whole("1,000"), whole("eleven")
    (1000, 11)
    """
    return NUMBERS[text] if text in NUMBERS else int(text.replace(",", ""))


_WORDS = "|".join(sorted(NUMBERS, key=len, reverse=True))
_DIGITS = rf"(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,7}}|{_WORDS})"
_WHOLE = r"(?![\w%]|\s*%|[.,]\d)"  # no part of a longer word, of a share or of a decimal number


def _number(name: str) -> str:
    return rf"(?P<{name}>{_DIGITS}){_WHOLE}"


N, LOW, HIGH = _number("n"), _number("low"), _number("high")
_WHO = (
    r"(?:people|persons?|contributors?|respondents?|records?|individuals?|patients?|rows?|units?|observations?|cases?"
    r"|households?|families|enterprises?|businesses|companies|firms|establishments?|students?|pupils?|learners"
    r"|beneficiaries|enrollees|residents?|participants?|employees|workers|members|users|customers|donors|clients|subjects?|women|men|children|adults|schools?|hospitals?"
    r"|farms?|deaths|births|events|admissions)"
)
_THING = (
    r"(?:cells?|counts?|values?|frequenc(?:y|ies)|groups?|bins?|numbers?|sizes?|categor(?:y|ies)|entries|entry|class"
    r"(?:es)?|tables?|tabulations?|figures?|statistics?|estimates?|results?|data|items?|anything|outputs?)"
)
_BE = r"(?:(?:are|is|be|been|being|get|gets|has|have|may|must|can|could|will|shall|should|would)\s+)*"
_IS = r"(?:\s*(?:of|is|was|=|:|at|to|be|equals?|must|should|set))*\s*"
_LESS = r"(?:less|fewer|lower|smaller)"
_MORE = r"(?:more|greater|larger|higher|bigger)"
_HAVE = r"(?:\s+(?:be|have|contain|being|having|containing))?"
_NEVER = rf"(?:not|no|never){_HAVE}"
_QUOTE = "[\"'`]?"
_SUPPRESS = (
    r"(?:suppress(?:ed|es|ing|ion)?|hid(?:e|es|den|ing)|withh[oe]ld(?:ing|s)?|dropp?(?:ed|s|ing)?|remov(?:ed?|es|al|ing)"
    r"|mask(?:ed|s|ing)?|delet(?:ed?|es|ion|ing)|redact(?:ed|s|ion|ing)?|blank(?:ed|s|ing)?(?:\s+out)?"
    r"|left\s+(?:blank|empty|out)|censor(?:ed|s|ing)?|conceal(?:ed|s|ing)?|omit(?:s|ted|ting)?|exclud(?:ed?|es|ing)"
    r"|discard(?:ed|s)?|obscur(?:ed?|es)|eliminat(?:ed?|es)|confidential(?:i[sz]ed)?|undisclosed|unpublished"
    r"|unavailable|prohibited|forbidden)"
)
_PUBLISH = (
    r"(?:publish(?:ed|es|ing|able)?|show(?:n|s|ing)?|releas(?:ed?|es|ing|able)|report(?:ed|s|ing|able)?|keep|kept"
    r"|display(?:ed|s|ing)?|disclos(?:ed?|es|ing)|disseminat(?:ed?|es|ing)|present(?:ed|s|ing)?|provid(?:ed?|es|ing)"
    r"|(?:made\s+)?(?:available|public)|retain(?:ed|s)?|print(?:ed|s)?|tabulated|allow(?:ed|s)?|permit(?:ted|s)?"
    r"|acceptable|appear(?:s|ed)?|unchanged|unaffected|unsuppressed)"
)
_AS = (
    r"(?:replace(?:d|s)?\s+(?:by|with)|becom(?:e|es|ing)|turned\s+into|set\s+to"
    r"|(?:re)?coded?\s+(?:to|as)|changed\s+to|converted\s+to|treated\s+as"
    r"|(?:denoted|marked|represented|indicated|flagged|shown)\s+(?:by|with)"
    r"|(?:shown?|display(?:ed)?|report(?:ed)?|publish(?:ed)?|present(?:ed)?|released|given?|list(?:ed)?|record(?:ed)?"
    r"|appears?|denoted?|mark(?:ed)?|represent(?:ed)?|indicated?|flag(?:ged)?|print(?:ed)?|mask(?:ed)?|suppress(?:ed)?"
    r"|group(?:ed)?)\s+as)"
)
_RANGE = rf"{LOW}\s*(?:to|-|through|thru|up\s+to)\s*{HIGH}"
_MARK = (
    r"(?:an?\s+|the\s+)?(?:(?:symbol|letter|word|sign|string|text|range)\s+)?"
    rf"{_QUOTE}\s*(?:\*+|asterisks?|stars?|dash(?:es)?|hyphens?|blanks?|missing|null|n/?a|symbols?|suppressed|redacted"
    rf"|confidential|not\s+available|<\s*{N}|<=\s*{_number('m')}|{_RANGE}|[b-hj-z](?=[\s\"'`.,;]|$)|\.{{1,3}}|:|~|-+)"
    rf"\s*{_QUOTE}"
)
_EMPTY = (
    r"(?:(?:true|real|actual|structural)\s+)?(?:zero(?:e?s)?|0s?|nil|empty\s+cells?)"
    r"(?:\s+(?:counts?|cells?|values?|entries))?"
)
_EMPTIES = (
    r"(?:(?:true|real|actual|structural)\s+)?(?:zeros|zeroes|0s|empty\s+cells|(?:zero|0)\s+(?:counts?|cells?|values?))"
)
_NO_MORE = r"(?!\s*(?:to|-|<|\d|\.\d|counts?|cells?|values?))"
_EMPTY_COUNT = rf"(?:{_THING}\s+of\s+(?:0|zero)|{_EMPTY})"
_WHAT = rf"(?:(?:the|all|any|small|each|every|published|remaining|other|others|rest|of|{_THING}|{_WHO})\s+)*"
_TO = (
    r"(?:up\s+or\s+down\s+|(?P<way>up|down)\s+)?(?:(?:to|using|with|in|by|at)\s+)?(?:(?:the|an?|its|their)\s+)?"
    r"(?:(?:nearest|next|closest)\s+)?(?:(?P<toward>higher|lower)\s+)?(?:whole\s+)?"
    r"(?:(?:multiples?|units?)\s+of\s+|base\s+(?:of\s+)?)?"
)
_RANDOM = r"(?:(?P<random>random(?:ly)?|stochastic(?:ally)?|probabilistic(?:ally)?)\s+)"
_MINIMUM = (
    r"(?:minimum|minimal|min|smallest|lowest)\b\.?(?:\s+(?:published|publishable|permitted|permissible|allowed|required"
    rf"|reportable|unweighted|acceptable|n|sample|rule|of|for|threshold|base|{_THING}|{_WHO}))*"
)

_PURPOSE = (
    r"(?:confidentiality|privacy|anonymity|data\s+protection|(?:statistical\s+)?disclosure(?:\s+(?:control|avoidance))?"
    r"|legal|identification)"
)
_PATTERNS: tuple[tuple[Sense, str, str], ...] = (
    (
        Sense.FILLER,
        "",
        (
            r"(?:in\s+order\s+)?to\s+(?:protect|prevent|avoid|ensure|preserve|maintain|limit)\b"
            r"(?:(?!\b(?:and|then|but|or|with|while|after|before)\b)[^.;,()\d])*"
        ),
    ),
    (
        Sense.FILLER,
        "",
        rf"(?:for|due\s+to|because\s+of)\s+(?:reasons\s+of\s+)?{_PURPOSE}(?:\s+(?:reasons|purposes))?",
    ),
    (
        Sense.FILLER,
        "",
        (
            r"(?:no|not|without)\s+(?:any\s+)?(?:secondary|complementary|consequential)\s+(?:cell\s+)?suppression"
            r"(?:\s+(?:is|are|applied|used|performed|done))*"
        ),
    ),
    (Sense.SECONDARY, "", r"primary\s+and\s+(?:secondary|complementary)(?=\s+suppress)"),
    (
        Sense.SECONDARY,
        "",
        (
            r"(?:with\s+)?(?:secondary|complementary|consequential)\s+(?:(?:cell\s+)?suppress(?:ion|ed|ions)?|cells?)"
            r"(?:\s+(?:is|are|will|must|be|applied|used|performed|done|carried|out|needed|required|made|suppressed|also))*"
            r"(?:\s+(?:where|as|if|when)(?:ver)?\s+(?:necessary|needed|required|appropriate))?"
            r"(?:\s+(?:to|so\s+that|in\s+order\s+to)\s+[^.;,\d]*)?"
        ),
    ),
    (Sense.ZEROS, "shown", rf"(?:except|excluding|excepting|bar)(?:\s+(?:for|of))?\s+{_EMPTY_COUNT}"),
    (
        Sense.ZEROS,
        "shown",
        rf"(?:other\s+than|apart\s+from|aside\s+from|with\s+the\s+exception\s+of)\s+{_EMPTY_COUNT}",
    ),
    (Sense.ZEROS, "shown", rf"(?:but\s+)?not\s+(?:(?:including|counting)\s+)?{_EMPTY_COUNT}(?!\s*(?:to|-|<))"),
    (Sense.ZEROS, "shown", r"non\s?-?\s?zero|positive"),
    (Sense.ZEROS, "hidden", rf"(?:including|even|also|as\s+well\s+as|counting)\s+{_EMPTY_COUNT}"),
    (Sense.ZEROS, "same", rf"{_EMPTIES}\s+(?:and|or)\s+(?={_THING}\b)"),
    (
        Sense.ZEROS,
        "shown",
        rf"{_EMPTY_COUNT}\s+{_BE}(?:left(?!\s+(?:out|blank|empty))|remain|stay)(?:\s+(?:as\s+(?:they\s+are|is|0)|unchanged))?",
    ),
    (Sense.ZEROS, "shown", rf"{_EMPTY_COUNT}\s+{_BE}(?:not|never)\s+{_BE}{_SUPPRESS}"),
    (Sense.ZEROS, "hidden", rf"{_EMPTY_COUNT}\s+{_BE}(?:not|never)\s+{_BE}{_PUBLISH}"),
    (Sense.ZEROS, "shown", rf"{_EMPTY_COUNT}\s+{_BE}(?:excepted|exempt(?:ed)?|excluded)"),
    (Sense.ZEROS, "hidden", rf"{_EMPTY_COUNT}\s+{_BE}(?:included|too)"),
    (Sense.ZEROS, "hidden", rf"{_EMPTY_COUNT}\s+{_BE}(?:also\s+)?{_SUPPRESS}(?:\s+too|\s+as\s+well)?"),
    (Sense.ZEROS, "shown", rf"{_EMPTY_COUNT}\s+{_BE}(?:also\s+|still\s+)?{_PUBLISH}"),
    (Sense.ZEROS, "hidden", rf"(?:not|never)\s+{_PUBLISH}\s+{_EMPTIES}"),
    (Sense.ZEROS, "shown", rf"(?:not|never)\s+(?!exclud){_SUPPRESS}\s+{_EMPTIES}"),
    (Sense.ZEROS, "shown", rf"{_PUBLISH}\s+{_EMPTIES}"),
    (Sense.ZEROS, "hidden", rf"{_SUPPRESS}\s+(?:also\s+)?{_EMPTIES}"),
    (Sense.ZERO, "", rf"(?:{_AS}|rounded(?:\s+down)?\s+to)\s+(?:an?\s+)?{_QUOTE}(?:0|zero|nil){_QUOTE}{_NO_MORE}"),
    (Sense.ZERO, "", rf"{_PUBLISH}\s+(?:an?\s+)?(?:0|zero){_NO_MORE}"),
    (Sense.HIDE, "mark", rf"{_AS}\s+{_MARK}"),
    (Sense.ROUND, "", rf"(?P<random>f?rr)\s?{N}"),
    (Sense.ROUND, "", rf"base\s*-?\s*{N}\s+(?:fixed\s+)?{_RANDOM}?round(?:ing|ed)"),
    (Sense.ROUND, "", rf"{_RANDOM}?base\s*-?\s*{N}\s+round(?:ing|ed)"),
    (
        Sense.ROUND,
        "",
        (
            rf"(?:fixed\s+|unbiased\s+)*{_RANDOM}?round(?:ed|ing|s)?(?:\s+(?P<chance>randomly|at\s+random))?\s+"
            rf"(?:{_BE}{_WHAT}){_TO}{N}"
        ),
    ),
    (Sense.UPPER, "between", rf"(?:between|from)\s+{LOW}\s*(?:and|to|-|through|thru)\s*{HIGH}(?:\s+inclusive)?"),
    (
        Sense.UPPER,
        "chain",
        rf"{LOW}\s*(?P<after><=?)\s*(?:n|x|count|cell|value)\s*(?P<before><=?)\s*{HIGH}",
    ),
    (Sense.UPPER, "range", _RANGE),
    (
        Sense.UPPER,
        "list",
        (
            rf"(?P<list>{_DIGITS}(?:\s*,\s*{_DIGITS})*)\s*,?\s*(?:or|and)\s+{HIGH}"
            rf"(?!\s+(?:{_WHO}\s+)?(?:or|and)\s+(?:{_MORE}|{_LESS}|above|over|below|under))"
        ),
    ),
    (Sense.UPPER, "up to", rf"{_LESS}\s+than\s+or\s+equal\s+to\s+{N}"),
    (Sense.UPPER, "up to", rf"(?:equal\s+to\s+or\s+)(?:{_LESS}\s+than|below)\s+{N}"),
    (Sense.UPPER, "up to", rf"up\s+to(?:\s+and\s+including)?\s+{N}"),
    (Sense.UPPER, "up to", rf"(?:at\s+most|<=)\s*{N}"),
    (Sense.UPPER, "up to", rf"{_NEVER}\s+(?:{_MORE}\s+than|above|over|exceed(?:ing|s)?)\s+{N}"),
    (Sense.UPPER, "up to", rf"{N}\s+(?:{_WHO}\s+)?(?:or|and)\s+(?:{_LESS}|below|under)"),
    (Sense.LOWER, "from", rf"{_NEVER}\s+(?:{_LESS}\s+than|below|under)\s+{N}"),
    (Sense.LOWER, "from", rf"(?:{_MORE}\s+than|above)\s+or\s+equal\s+to\s+{N}"),
    (Sense.LOWER, "from", rf"(?:equal\s+to\s+or\s+)(?:{_MORE}\s+than|above|exceeding)\s+{N}"),
    (Sense.LOWER, "from", rf"(?:at\s+least|>=)\s*{N}"),
    (Sense.LOWER, "from", rf"{N}\s+(?:{_WHO}\s+)?(?:or|and)\s+(?:{_MORE}|above|over|upwards?)"),
    (Sense.LOWER, "from", rf"(?P<n>{_DIGITS})\s*\+"),
    (Sense.LOWER, "threshold", rf"(?:suppression|publication|disclosure)\s+{_MINIMUM}{_IS}{N}"),
    (Sense.LOWER, "from", rf"{_MINIMUM}{_IS}{N}"),
    (Sense.LOWER, "from", rf"{N}\s+(?:{_WHO}\s+)?minimum"),
    (
        Sense.LOWER,
        "threshold",
        (
            rf"(?:(?:suppression|publication|reporting|disclosure|confidentiality|{_THING})\s+)*"
            rf"thresholds?(?:\s+(?:rule|value|level|size))*{_IS}{N}"
        ),
    ),
    (Sense.LOWER, "threshold", rf"rule\s+of\s+{N}"),
    (Sense.LOWER, "from", rf"{N}\s*-?\s*anonym(?:ity|ous)"),
    (Sense.LOWER, "from", rf"k(?:\s*(?:=|of|is|:|>=))?\s*{N}"),
    (
        Sense.UPPER,
        "range",
        r"(?:of|of\s+size|exactly|equal\s+to|=)\s+(?P<low>(?P<high>1|one))(?!\w|\s*(?:-|,|<|to\b|or\b|and\b))",
    ),
    (Sense.UPPER, "below", rf"(?:strictly\s+)?(?:below|under|{_LESS}\s+than|<)\s*{N}"),
    (
        Sense.LOWER,
        "above",
        rf"(?:strictly\s+)?(?:above|over|{_MORE}\s+than|exceed(?:s|ing)?|in\s+excess\s+of|>)\s*{N}",
    ),
    (Sense.UNLESS, "", r"unless|except\s+(?:if|when|where)"),
    (
        Sense.REST,
        "",
        r"otherwise|else|(?:the\s+)?(?:rest|remainder)|remaining|(?:all\s+)?others?|smaller(?!\s+than)",
    ),
    (Sense.NOT, "", r"not|no|never|cannot|can't|mustn't|don't|doesn't|isn't|aren't|won't"),
    (Sense.HIDE, "", rf"{_SUPPRESS}"),
    (Sense.SHOW, "", rf"{_PUBLISH}"),
    (Sense.THEN, "", r"then|afterwards|subsequently|followed\s+by|first"),
    (Sense.AFTER, "", r"after"),
    (Sense.BEFORE, "", r"before|prior\s+to"),
    (Sense.STOP, "", r"[;,.:()]|and|or|but|also|while|whereas"),
)
_COMPILED = tuple((kind, sense, re.compile(pattern)) for kind, sense, pattern in _PATTERNS)
_FILLER_LINES = (
    "a an the this that these those each every any all both it its they them their there such which who whom",
    "whose we is are was were be been being has have having had do does did may must can could will shall should",
    "would might of in on with within for from by to per at as into about based using under if when where",
    "whenever wherever only small unweighted raw published unrounded exact own single given least needed required",
    "necessary applied apply applies used rule rules policy standard primary cell's n x k anonymity anonymous",
    "contribute contributes base bases threshold thresholds contain contains containing contained comprise",
    "comprises include includes minimum minimal min maximum out so here please strictly always get gets",
)
_FILLERS = frozenset(word for line in _FILLER_LINES for word in line.split())
_SPACE, _ANY = re.compile(r"\s+"), re.compile(r"[a-z']+|[\d.,%/]+|\S")


def tokens(text: str) -> Iterator[Token]:
    """Return what the words of a sentence mean, in order; words that mean nothing here are left out.

    >>> [(str(token.kind), token.number()) for token in tokens("suppress all cells below 5")]
    [('withhold', None), ('counts up to a number', 5)]
    >>> [token.text for token in tokens("cells below 5 are vaporized") if token.kind is Sense.UNKNOWN]
    ['vaporized']
    """
    place = 0
    while place < len(text):
        space = _SPACE.match(text, place)
        if space is not None:
            place = space.end()
            continue
        token = _at(text, place)
        if token.kind is not Sense.FILLER:
            yield token
        place += len(token.text)


def _at(text: str, place: int) -> Token:
    for kind, sense, pattern in _COMPILED:
        match = pattern.match(text, place)
        if match is not None and not _cut(text, match.end()):
            return Token(kind, match[0], sense, {name: each for name, each in match.groupdict().items() if each})
    word = _ANY.match(text, place)
    found = word[0] if word is not None else text[place]
    known = found in _FILLERS or re.fullmatch(rf"{_THING}|{_WHO}", found) is not None
    return Token(Sense.FILLER if known else Sense.UNKNOWN, found, "", {})


def _cut(text: str, end: int) -> bool:
    """Whether a word would be cut in two."""
    return text[end - 1].isalnum() and end < len(text) and text[end].isalnum()
