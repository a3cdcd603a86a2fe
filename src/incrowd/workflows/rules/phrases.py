"""Phrases: the sentences in which rules are written, as patterns; what fits none of them is not guessed."""

from __future__ import annotations

import re

NUMBERS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "fifteen": 15,
    "twenty": 20,
    "thirty": 30,
    "fifty": 50,
    "hundred": 100,
}
"""Numbers as words; all others are written in digits."""

N = rf"(?P<n>\d{{1,3}}(?:,\d{{3}})+|\d+|{'|'.join(sorted(NUMBERS, key=len, reverse=True))})"
_THINGS = (
    r"(?:(?:all|any|small|the|table|cell|published)\s+)*"
    r"(?:cells?|counts?|values?|frequenc(?:y|ies)|groups?|bins?|numbers?|sizes?|categories|entries|n)"
)
_WHO = (
    r"(?:people|persons?|contributors?|respondents?|records?|individuals?|patients?|rows?|units?|observations?|cases?"
    r"|households?|enterprises?|businesses|students?|pupils?)"
)
_WHOSE = rf"(?:\s+{_WHO})?(?:\s+(?:per|in\s+(?:each|every|a|the))\s+(?:cell|group|bin|class))?"
_BE = r"(?:(?:are|is|be|get|gets|must\s+be|will\s+be|should\s+be)\s+)?"
_GONE = (
    rf"{_BE}(?:suppressed|hidden|withheld|dropped|removed|masked|deleted|not\s+(?:published|shown|released|reported))"
)
_ZERO = (
    rf"{_BE}(?:becomes?|set\s+to|replaced\s+(?:by|with)|shown\s+as|published\s+as|reported\s+as|turned\s+into)"
    r"\s+(?:0|zero)"
)
_HIDE = (
    r"(?:suppress|hide|withhold|drop|remove|mask|delete|do\s+not\s+(?:publish|show|release|report)"
    r"|(?:primary\s+)?suppression)(?:\s+(?:if|when|where|of))?"
)
_SHOW = r"(?:(?:publish|release|show|report|keep)\s+)?(?:only\s+)?(?:(?:if|when|where)\s+)?"
_SHOWN = r"(?:\s+(?:are|is)\s+(?:published|shown|released|reported|kept))?"
_BELOW = r"(?:below|under|less\s+than|fewer\s+than|smaller\s+than|lower\s+than|<)"
_UP_TO = r"(?:(?:less|fewer|smaller)\s+than\s+or\s+equal\s+to|up\s+to|at\s+most|no\s+more\s+than|not\s+more\s+than|<=)"
_FROM = r"(?:at\s+least|no\s+fewer\s+than|not\s+fewer\s+than|no\s+less\s+than|>=)"
_ABOVE = r"(?:more\s+than|above|over|greater\s+than|>)"
_OF = r"(?:(?:of|with)\s+)?"
_IS = r"(?:\s*(?:of|is|=|:))?\s*"

_MINIMUM = (
    r"(?:an?\s+)?(?:minimum|minimal|min|smallest)(?:\s+published)?(?:\s+(?:cell|group|bin|class))?"
    rf"(?:\s+(?:size|count|frequency|value|number|threshold|cell))?(?:\s+of\s+{_WHO})?"
)
_ROUND = rf"(?:{_THINGS}\s+)?{_BE}round(?:ed|ing)?(?:\s+(?:{_THINGS}|the\s+rest|the\s+others|everything))?"

LEAST = (
    rf"{_MINIMUM}{_IS}{N}{_WHOSE}",
    rf"(?:an?\s+)?(?:(?:frequency|cell|publication|disclosure)\s+)?threshold(?:\s+rule)?{_IS}{N}{_WHOSE}",
    rf"k{_IS}{N}",
    rf"{_SHOW}(?:{_THINGS}\s+)?{_OF}{_FROM}\s*{N}{_WHOSE}{_SHOWN}",
    rf"{_SHOW}(?:{_THINGS}\s+)?{_OF}{N}\s+or\s+more{_WHOSE}{_SHOWN}",
)
"""N is the least count that is published."""

BELOW = (
    rf"{_HIDE}\s+(?:{_THINGS}\s+)?{_OF}{_BELOW}\s*{N}{_WHOSE}",
    rf"{_THINGS}\s+{_OF}{_BELOW}\s*{N}{_WHOSE}\s+{_GONE}",
)
"""Counts below N are not published; nothing is said about empty cells."""

BELOW_ZERO = (rf"{_THINGS}\s+{_OF}{_BELOW}\s*{N}{_WHOSE}\s+{_ZERO}",)
"""Counts below N become 0."""

UP_TO = (
    rf"{_HIDE}\s+(?:{_THINGS}\s+)?{_OF}(?:{_UP_TO}\s*{N}|{N.replace('?P<n>', '?P<m>')}\s+or\s+(?:fewer|less)){_WHOSE}",
    rf"{_THINGS}\s+{_OF}(?:{_UP_TO}\s*{N}|{N.replace('?P<n>', '?P<m>')}\s+or\s+(?:fewer|less)){_WHOSE}\s+{_GONE}",
    rf"{_SHOW}(?:{_THINGS}\s+)?{_OF}{_ABOVE}\s*{N}{_WHOSE}{_SHOWN}",
)
"""N is the largest count that is not published."""

UP_TO_ZERO = (
    rf"{_THINGS}\s+{_OF}(?:{_UP_TO}\s*{N}|{N.replace('?P<n>', '?P<m>')}\s+or\s+(?:fewer|less)){_WHOSE}\s+{_ZERO}",
    rf"{_THINGS}\s+(?:of\s+|from\s+)?(?:1|one)\s*(?:to|-)\s*{N}{_WHOSE}\s+{_ZERO}",
)
"""Counts up to N become 0."""

ONE_TO = (
    rf"{_HIDE}\s+(?:{_THINGS}\s+)?(?:of\s+|from\s+)?(?:1|one)\s*(?:to|-)\s*{N}{_WHOSE}",
    rf"{_THINGS}\s+(?:of\s+|from\s+)?(?:1|one)\s*(?:to|-)\s*{N}{_WHOSE}\s+{_GONE}",
)
"""Counts from 1 to N are not published, and empty cells show."""

ROUND = (rf"{_ROUND}\s+to(?:\s+the)?(?:\s+nearest)?(?:\s+multiples?\s+of|\s+base)?\s+{N}",)
"""Counts are rounded to multiples of N."""

ZEROS_SHOWN = (rf"(?:true\s+)?(?:zeros?|zeroes|empty\s+cells)\s+{_BE}(?:shown|published|released|kept)",)
ZEROS_HIDDEN = (
    rf"(?:zeros?|zeroes|empty\s+cells)\s+{_BE}(?:also\s+)?(?:suppressed|hidden|withheld|not\s+shown)(?:\s+too)?",
)

_SHARE = r"\d+(?:\.\d+)?\s*%|0?\.\d+|\d+\s*/\s*\d+|\d+\s+in\s+\d+"
_KIND = r"(?:(?:secret|random|simple|poisson)\s+)*"
SAMPLE = re.compile(
    rf"(?P<after>\bthen\s+)?(?:\b(?:with|from|after|on|of|in|using|and)\s+)?(?:\ban?\s+)?{_KIND}"
    rf"(?:(?P<a>{_SHARE})\s+{_KIND}(?:sample|sampling)\b"
    rf"|\b(?:sample|sampling|sampled)(?:\s+rate)?(?:\s*(?:of|at|is|=))?\s*(?P<b>{_SHARE})"
    rf"|\brate{_IS}(?P<c>{_SHARE}))"
)
"""A secret sample in front, anywhere in the sentence."""

EXAMPLES = (
    "minimum cell size 11",
    "minimum cell 11",
    "threshold of 20",
    "at least 30 contributors",
    "k = 5",
    "5 or more people",
    "suppress counts below 5",
    "suppress counts of 7 or fewer",
    "cells below 10 are suppressed",
    "counts of 7 or fewer become 0",
    "counts below 10 become 0",
    "counts of 1 to 4 are suppressed",
    "round to 5",
    "round to the nearest 10",
    "with a 10 % sample",
    "sampling rate 0.1",
    "zeros are shown",
    "empty cells are hidden",
)
"""Sentences that are understood, one for each form."""

MEANT = (
    (re.compile(rf"{_UP_TO}|\bor\s+(?:fewer|less|smaller)\b"), "suppress counts of 7 or fewer"),
    (re.compile(_BELOW), "suppress counts below 5"),
)
"""Words that show which way a number is meant, and the sentence that says it in full."""
