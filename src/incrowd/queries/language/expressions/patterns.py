"""Patterns: LIKE without regard to case, and regular expressions that need no engine of their own.

A regular expression is read here and written as comparisons of parts of the text, each of which touches a bounded
number of characters: no row can make it run long, and every engine gives the same answer.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from sqlglot import exp

from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.language.domain import BoundTree
from incrowd.queries.language.expressions.function import Mean, SqlFunction, sole, text

_MOST_ALTERNATIVES = 32
_MOST_LETTERS = 64
_LONGEST = 100
_HINT = (
    "a regular expression is made of letters, a dot, classes such as [0-9] or [A-Z], {n}, .*, ^ and $, and "
    "alternatives by |; classes stand in those that begin with ^ and have one length. Use LIKE, CONTAINS or LEFT(x, n)."
)
_ITEM = re.compile(
    r"(?P<gap>\.[*+])|(?P<any>\.)|\\(?P<kind>[dw])|\\(?P<quoted>[^A-Za-z0-9])|\[(?P<klass>[^\]\[\\^]+)\]"
    r"|(?P<plain>[^\\\[\](){}.*+?|^$])",
    re.DOTALL,
)
_TIMES = re.compile(r"\{(\d{1,2})\}")
_DIGITS = "0123456789"
_SMALL = "abcdefghijklmnopqrstuvwxyz"
_KINDS = {"d": _DIGITS, "w": _DIGITS + _SMALL + _SMALL.upper() + "_"}


@dataclass(frozen=True)
class PatternShape:
    """One alternative: runs of sets of letters (None: any letter) with gaps between them, held at its ends or not."""

    runs: tuple[tuple[frozenset[str] | None, ...], ...]
    start: bool
    end: bool


def shapes_of(pattern: str) -> tuple[PatternShape, ...]:
    """Return the alternatives of a regular expression, or refuse one that needs more than comparisons.

    >>> [len(shape.runs[0]) for shape in shapes_of("^J1[0-8]|flu")]
    [3, 3]
    """
    if len(pattern) > _LONGEST:
        raise QuestionRefused(f"a regular expression has at most {_LONGEST} characters: shorten it.")
    written = _opened(pattern)
    if len(written) > _MOST_ALTERNATIVES:
        raise QuestionRefused(f"a regular expression has at most {_MOST_ALTERNATIVES} alternatives: use fewer.")
    return tuple(_shape(each) for each in written)


def _opened(pattern: str) -> list[str]:
    """Return the alternatives, where a group (a|b) is written out; a group holds letters alone."""
    parts = re.split(r"\((?:\?:)?([^()\\]*)\)", pattern)
    choices = [part.split("|") if place % 2 else [part] for place, part in enumerate(parts)]
    if len(parts) == 1:
        return pattern.split("|") if "\\|" not in pattern else [pattern]
    if any("|" in part for part in parts[::2]):
        raise QuestionRefused(_HINT)
    return ["".join(each) for each in itertools.islice(itertools.product(*choices), _MOST_ALTERNATIVES + 1)]


def _shape(written: str) -> PatternShape:
    start, end = written.startswith("^"), written.endswith("$") and not written.endswith("\\$")
    body = written[start : len(written) - end]
    runs: list[list[frozenset[str] | None]] = [[]]
    at = 0
    while at < len(body):
        found = _ITEM.match(body, at)
        if found is None:
            raise QuestionRefused(_HINT)
        at = found.end()
        times = _TIMES.match(body, at)
        at = at if times is None else times.end()
        if found["gap"] is not None:
            if times is not None:
                raise QuestionRefused(_HINT)
            runs[-1] += [None] * (found["gap"] == ".+")
            runs.append([])
        else:
            runs[-1] += [_letters(found)] * (1 if times is None else int(times[1]))
    if sum(map(len, runs)) > _LONGEST or not any(runs):
        raise QuestionRefused(_HINT)
    start, end = start and bool(runs[0]), end and bool(runs[-1])  # a gap at an end holds nothing there
    kept = runs[next(at for at, run in enumerate(runs) if run) :]
    while not kept[-1]:
        kept.pop()
    return PatternShape(tuple(map(tuple, kept)), start, end)


def _letters(found: re.Match[str]) -> frozenset[str] | None:
    if found["any"] is not None:
        return None
    if found["kind"] is not None:
        return frozenset(_KINDS[found["kind"]])
    if found["klass"] is None:
        return frozenset(found["quoted"] or found["plain"])
    letters: set[str] = set()
    for first, last, single in re.findall(r"(.)-(.)|(.)", found["klass"], re.DOTALL):
        if single:
            letters.add(single)
        elif first <= last and last.isascii():
            letters.update(map(chr, range(ord(first), ord(last) + 1)))
        else:
            raise InvalidParameter("a class such as [a-z] goes from the earlier letter to the later.")
    if len(letters) > _MOST_LETTERS:
        raise QuestionRefused(f"a class of a regular expression has at most {_MOST_LETTERS} letters.")
    return frozenset(letters)


def _matches(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand REGEXP_MATCHES(x, 'pattern'), x ~ 'pattern' and REGEXP_FULL_MATCH(x, 'pattern')."""
    text(mean(node.this), "REGEXP_MATCHES")
    pattern = str(sole(text(mean(node.expression), "REGEXP_MATCHES"), "a regular expression"))
    shapes = shapes_of(pattern)
    if isinstance(node, exp.RegexpFullMatch):
        shapes = shapes_of("|".join(f"^{each.removeprefix('^').removesuffix('$')}$" for each in _opened(pattern)))
    found, *others = (_condition(node.this, shape) for shape in shapes)
    for other in others:
        found = exp.Or(this=exp.Paren(this=found), expression=exp.Paren(this=other))
    return mean(found)


def _condition(value: exp.Expr, shape: PatternShape) -> exp.Expr:
    """Return the condition that a text has a shape."""
    plain = all(letters is None or len(letters) == 1 for run in shape.runs for letters in run)
    if not plain:
        return _held(value, shape)
    written = ["".join("_" if letters is None else min(letters) for letters in run) for run in shape.runs]
    sure = [letters is not None for run in shape.runs for letters in run]
    if len(written) == 1 and all(sure):
        return _literally(value, written[0], shape)
    if any(letters is not None and min(letters) in "%_\\" for run in shape.runs for letters in run):
        raise QuestionRefused(_HINT)
    pattern = ("" if shape.start else "%") + "%".join(written) + ("" if shape.end else "%")
    return exp.Like(this=value.copy(), expression=exp.Literal.string(re.sub("%+", "%", pattern)))


def _literally(value: exp.Expr, written: str, shape: PatternShape) -> exp.Expr:
    """Return the condition that a text is, begins with or holds a text that is written out."""
    literal = exp.Literal.string(written)
    if shape.start and shape.end:
        return exp.EQ(this=value.copy(), expression=literal)
    if shape.end:
        many = exp.Literal.number(len(written))
        return exp.EQ(this=exp.Right(this=value.copy(), expression=many), expression=literal)
    return (exp.StartsWith if shape.start else exp.Contains)(this=value.copy(), expression=literal)


def _held(value: exp.Expr, shape: PatternShape) -> exp.Expr:
    """Return the condition that a text begins with letters out of sets, one after the other."""
    first, *rest = shape.runs
    if not shape.start or rest:
        raise QuestionRefused(_HINT)
    tests: list[exp.Expr] = [exp.GTE(this=exp.Length(this=value.copy()), expression=exp.Literal.number(len(first)))]
    if shape.end:
        tests = [exp.EQ(this=exp.Length(this=value.copy()), expression=exp.Literal.number(len(first)))]
    for place, letters in enumerate(first, 1):
        if letters is not None:
            letter = exp.Substring(this=value.copy(), start=exp.Literal.number(place), length=exp.Literal.number(1))
            tests.append(exp.In(this=letter, expressions=[exp.Literal.string(each) for each in sorted(letters)]))
    found: exp.Expr = tests[0]
    for test in tests[1:]:
        found = exp.And(this=found, expression=test)
    return found


def _any_case(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand x ILIKE 'pattern': LIKE of small letters."""
    pattern = str(sole(text(mean(node.expression), "ILIKE"), "the pattern of ILIKE")).lower()
    like = exp.Like(this=exp.Lower(this=node.this.copy()), expression=exp.Literal.string(pattern))
    return mean(exp.Not(this=like) if node.args.get("negate") else like)


_TWO = ("this", "expression")

OPERATORS = (SqlFunction("ILIKE", exp.ILike, _any_case, (*_TWO, "negate"), in_postgres=False),)

FUNCTIONS = (
    SqlFunction("REGEXP_MATCHES", exp.RegexpLike, _matches, _TWO, ("REGEXP_LIKE", "~")),
    SqlFunction("REGEXP_FULL_MATCH", exp.RegexpFullMatch, _matches, _TWO),
)
