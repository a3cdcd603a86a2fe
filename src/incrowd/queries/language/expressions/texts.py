"""Texts: their parts, their length, texts made of them up to a known length, and the patterns that they match.

A regular expression is written as comparisons of parts of the text, each of which touches a bounded number of
characters: no row can make it run long, and every engine gives the same answer.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.language.domain import BoundTree, Constant, listed, texts, truth, whole
from incrowd.queries.language.expressions import answers
from incrowd.queries.language.expressions.function import (
    LONGEST,
    AnswerTypes,
    Evaluate,
    Mean,
    NodeRule,
    SqlFunction,
    TextWork,
    Width,
    sole,
    text,
    whole_number,
)
from incrowd.queries.language.trees import cast, function, operand

_NUMBER = 40  # characters of a whole number or a date
_CUT = 1000  # characters of a text that are looked at: work per row is bounded by it
_LONGEST = 10_000  # memory per row is bounded by it
_TRIMS: dict[str | None, Callable[[str, str], str]] = {
    None: str.strip, "BOTH": str.strip, "LEADING": str.lstrip, "TRAILING": str.rstrip,
}  # fmt: skip


def _letters(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand UPPER and LOWER."""
    part = text(mean(node.this), type(node).__name__.upper())
    extent = texts(None if part.extent.longest is None else 3 * part.extent.longest, optional=part.optional)
    # Alphabets have rules of their own, on which engines differ: only plain ones are computed ahead.
    if all(str(value).isascii() for value in part.extent.members() or ()):
        extent = listed(extent, (part,), str.upper if isinstance(node, exp.Upper) else str.lower)
    return BoundTree(function(type(node), part.tree), extent)


def _trim(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand TRIM, LTRIM and RTRIM of spaces."""
    part, side = text(mean(node.this), "TRIM"), node.args.get("position")
    tree = exp.Trim(this=part.tree.copy(), position=None if side == "BOTH" else side)
    extent = texts(part.extent.longest, optional=part.optional)
    return BoundTree.of(tree, extent, (part,), lambda value: _TRIMS[side](value, " "))


def _trimmed_answer(node: Any, evaluate: Evaluate) -> object:
    value = evaluate(node.this)
    return None if value is None else _TRIMS[node.args.get("position")](str(value), " ")


def _length(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand LENGTH, in characters; of an open text at most 1,000 are counted."""
    part = _cut(text(mean(node.this), "LENGTH"))
    extent = whole(0, part.extent.longest, optional=part.optional)
    return BoundTree.of(function(exp.Length, part.tree), extent, (part,), len)


def _substring(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand SUBSTRING(x, start, length), counted from 1."""
    part, length = text(mean(node.this), "SUBSTRING"), node.args.get("length")
    start = whole_number(mean(node.args["start"]), "the start of SUBSTRING", 1, _CUT)
    many = _CUT if length is None else whole_number(mean(length), "the length of SUBSTRING", 0, _CUT)
    numbers = {"start": exp.Literal.number(start), "length": exp.Literal.number(many)}
    return _shorter(exp.Substring(this=part.tree.copy(), **numbers), part, slice(start - 1, start - 1 + many))


def _side(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand LEFT(x, n) and RIGHT(x, n)."""
    name = type(node).__name__.upper()
    part = text(mean(node.this), name)
    many = whole_number(mean(node.expression), f"the length of {name}", 1, _CUT)
    tree = type(node)(this=part.tree.copy(), expression=exp.Literal.number(many))
    return _shorter(tree, part, slice(0, many) if isinstance(node, exp.Left) else slice(-many, None))


def _joined(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand x || y, which is missing if a part is."""
    parts = [_cut(_spelled(mean(part), "||")) for part in (node.this, node.expression)]
    tree = exp.DPipe(this=operand(parts[0].tree), expression=operand(parts[1].tree), safe=True)
    return _longer(tree, parts, optional=any(part.optional for part in parts))


def _spelled(meaning: BoundTree, what: str) -> BoundTree:
    """Return a text, or a whole number or a date as the text in which all engines write it."""
    if meaning.type not in (Type.INTEGER, Type.DATE):
        return text(meaning, what)
    return BoundTree.of(cast(meaning.tree, Type.TEXT), texts(_NUMBER, optional=meaning.optional), (meaning,), str)


def _concat(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand CONCAT(x, y, …), which leaves out what is missing."""
    parts = [_cut(_spelled(mean(part), "CONCAT")) for part in node.expressions]
    if not parts:
        raise InvalidParameter("CONCAT takes at least 1 argument: write what to put together.")
    tree = _filled(parts[0].tree)
    for part in parts[1:]:
        tree = exp.DPipe(this=tree, expression=_filled(part.tree), safe=True)
    return _longer(tree, [_with_empty(part) for part in parts], optional=False)


def _filled(tree: exp.Expr) -> exp.Expr:
    """Return a text, empty where it is missing."""
    return exp.Coalesce(this=tree.copy(), expressions=[exp.Literal.string("")])


def _replaced(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand REPLACE(x, 'from', 'to')."""
    part, sides = _cut(text(mean(node.this), "REPLACE")), (node.expression, node.args["replacement"])
    old, new = (str(sole(text(mean(side), "REPLACE"), "what REPLACE replaces")) for side in sides)
    if not old:
        raise InvalidParameter("REPLACE needs a text to look for that is not empty.")
    longest = _checked((part.extent.longest or 0) * max(1, len(new)))
    tree = exp.Replace(this=part.tree.copy(), expression=exp.Literal.string(old), replacement=exp.Literal.string(new))
    return BoundTree.of(tree, texts(longest, optional=part.optional), (part,), lambda value: value.replace(old, new))


def _has(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand STARTS_WITH and CONTAINS."""
    name = "STARTS_WITH" if isinstance(node, exp.StartsWith) else "CONTAINS"
    part, sought = text(mean(node.this), name), text(mean(node.expression), name)
    sole(sought, f"what {name} looks for")
    tree = type(node)(this=part.tree.copy(), expression=sought.tree.copy())
    return BoundTree(tree, truth(optional=part.optional))


def _split(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand SPLIT_PART(x, 'separator', n): what stands between separators, empty beyond the last."""
    part = _cut(text(mean(node.this), "SPLIT_PART"))
    sign = str(sole(text(mean(node.args["delimiter"]), "SPLIT_PART"), "the separator of SPLIT_PART"))
    place = whole_number(mean(node.args["part_index"]), "the place of SPLIT_PART", 1, _CUT)
    if not sign:
        raise InvalidParameter("SPLIT_PART needs a separator that is not empty.")
    numbers = {"delimiter": exp.Literal.string(sign), "part_index": exp.Literal.number(place)}
    tree, extent = exp.SplitPart(this=part.tree.copy(), **numbers), texts(part.extent.longest, optional=part.optional)
    return BoundTree.of(tree, extent, (part,), lambda value: (value.split(sign) + [""] * place)[place - 1])


def _position(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand POSITION('part' IN x): where a part begins, counted from 1; 0 where there is none."""
    part = _cut(text(mean(node.this), "POSITION"))
    sought = str(sole(text(mean(node.args["substr"]), "POSITION"), "what POSITION looks for"))
    if not sought:
        raise InvalidParameter("POSITION needs a text to look for that is not empty.")
    tree = cast(exp.StrPosition(this=part.tree.copy(), substr=exp.Literal.string(sought)), Type.INTEGER)
    extent = whole(0, part.extent.longest, optional=part.optional)
    return BoundTree.of(tree, extent, (part,), lambda value: value.find(sought) + 1)


def _shorter(tree: exp.Expr, part: BoundTree, taken: slice) -> BoundTree:
    most, longest = len(range(*taken.indices(_CUT))), part.extent.longest
    extent = texts(most if longest is None else min(longest, most), optional=part.optional)
    return BoundTree.of(tree, extent, (part,), lambda value: value[taken])


def _longer(tree: exp.Expr, parts: list[BoundTree], *, optional: bool) -> BoundTree:
    longest = _checked(sum(part.extent.longest or 0 for part in parts))
    return BoundTree.of(tree, texts(longest, optional=optional), parts, _put_together)


def _put_together(*values: Constant) -> str:
    return "".join(str(value) for value in values)


def _cut(part: BoundTree) -> BoundTree:
    """Return a text that is cut after a thousand characters where nothing else bounds it."""
    if part.extent.longest is not None:
        return part
    tree = exp.Left(this=part.tree.copy(), expression=exp.Literal.number(_CUT))
    return BoundTree(tree, replace(part.extent, longest=_CUT))


def _with_empty(part: BoundTree) -> BoundTree:
    values = ("", *part.values) if part.optional and part.values is not None else part.values
    return replace(part, extent=replace(part.extent, optional=False, values=values))


def _checked(longest: int) -> int:
    if longest > _LONGEST:
        raise QueryRefused(f"texts of more than {_LONGEST:,} characters are not put together: use LEFT(x, n) first.")
    return longest


def _joined_answer(node: exp.Expr) -> exp.Expr:
    """Return CONCAT on an answer as x || y, in which what is missing is empty."""
    joined: exp.Expr = exp.Literal.string("")
    for part in node.expressions:
        joined = exp.DPipe(this=joined, expression=_filled(part))
    return joined


_MOST_ALTERNATIVES = 32  # a regular expression becomes so many LIKE patterns: work per row is bounded by it
_MOST_LETTERS = 64  # of a class: each is an alternative
_LONGEST_PATTERN = 100  # work per row is bounded by it
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
    if len(pattern) > _LONGEST_PATTERN:
        raise QueryRefused(f"a regular expression has at most {_LONGEST} characters: shorten it.")
    written = _opened(pattern)
    if len(written) > _MOST_ALTERNATIVES:
        raise QueryRefused(f"a regular expression has at most {_MOST_ALTERNATIVES} alternatives: use fewer.")
    return tuple(map(_shape, written))


def _opened(pattern: str) -> list[str]:
    """Return the alternatives, where a group (a|b) is written out; a group holds letters alone."""
    parts = re.split(r"\((?:\?:)?([^()\\]*)\)", pattern)
    choices = [part.split("|") if place % 2 else [part] for place, part in enumerate(parts)]
    if len(parts) == 1:
        return pattern.split("|") if "\\|" not in pattern else [pattern]
    if any("|" in part for part in parts[::2]):
        raise QueryRefused(_HINT)
    return ["".join(parts) for parts in itertools.islice(itertools.product(*choices), _MOST_ALTERNATIVES + 1)]


def _shape(written: str) -> PatternShape:
    start, end = written.startswith("^"), written.endswith("$") and not written.endswith("\\$")
    body = written[start : len(written) - end]
    runs: list[list[frozenset[str] | None]] = [[]]
    at = 0
    while at < len(body):
        item = _ITEM.match(body, at)
        times = None if item is None else _TIMES.match(body, item.end())
        if item is None or (item["gap"] is not None and times is not None):
            raise QueryRefused(_HINT)
        at = (times or item).end()
        if item["gap"] is not None:
            runs[-1] += [None] * (item["gap"] == ".+")
            runs.append([])
        else:
            runs[-1] += [_letter_set(item)] * (1 if times is None else int(times[1]))
    if sum(map(len, runs)) > _LONGEST_PATTERN or not any(runs):
        raise QueryRefused(_HINT)
    start, end = start and bool(runs[0]), end and bool(runs[-1])  # a gap at an end holds nothing there
    while not runs[0]:
        del runs[0]
    while not runs[-1]:
        del runs[-1]
    return PatternShape(tuple(map(tuple, runs)), start, end)


def _letter_set(item: re.Match[str]) -> frozenset[str] | None:
    if item["any"] is not None:
        return None
    if item["kind"] is not None:
        return frozenset(_KINDS[item["kind"]])
    if item["klass"] is None:
        return frozenset(item["quoted"] or item["plain"])
    letters: set[str] = set()
    for first, last, single in re.findall(r"(.)-(.)|(.)", item["klass"], re.DOTALL):
        if single:
            letters.add(single)
        elif first <= last and last.isascii():
            letters.update(map(chr, range(ord(first), ord(last) + 1)))
        else:
            raise InvalidParameter("a class such as [a-z] goes from the earlier letter to the later.")
    if len(letters) > _MOST_LETTERS:
        raise QueryRefused(f"a class of a regular expression has at most {_MOST_LETTERS} letters.")
    return frozenset(letters)


def _matches(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand REGEXP_MATCHES(x, 'pattern'), x ~ 'pattern' and REGEXP_FULL_MATCH(x, 'pattern')."""
    text(mean(node.this), "REGEXP_MATCHES")
    pattern = str(sole(text(mean(node.expression), "REGEXP_MATCHES"), "a regular expression"))
    shapes = shapes_of(pattern)
    if isinstance(node, exp.RegexpFullMatch):
        shapes = shapes_of("|".join(f"^{text_.removeprefix('^').removesuffix('$')}$" for text_ in _opened(pattern)))
    tree, *others = (_condition(node.this, shape) for shape in shapes)
    for other in others:
        tree = exp.Or(this=exp.Paren(this=tree), expression=exp.Paren(this=other))
    return mean(tree)


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
        raise QueryRefused(_HINT)
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
        raise QueryRefused(_HINT)
    long_enough = exp.EQ if shape.end else exp.GTE
    tree: exp.Expr = long_enough(this=exp.Length(this=value.copy()), expression=exp.Literal.number(len(first)))
    for place, letters in enumerate(first, 1):
        if letters is not None:
            letter = exp.Substring(this=value.copy(), start=exp.Literal.number(place), length=exp.Literal.number(1))
            choice = exp.In(this=letter, expressions=[exp.Literal.string(one) for one in sorted(letters)])
            tree = exp.And(this=tree, expression=choice)
    return tree


def _any_case(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand x ILIKE 'pattern': LIKE of small letters."""
    pattern = str(sole(text(mean(node.expression), "ILIKE"), "the pattern of ILIKE")).lower()
    like = exp.Like(this=exp.Lower(this=node.this.copy()), expression=exp.Literal.string(pattern))
    return mean(exp.Not(this=like) if node.args.get("negate") else like)


_TWO = ("this", "expression")
_text = partial(SqlFunction, types=AnswerTypes(Type.TEXT, Type.TEXT))
_number = partial(SqlFunction, types=AnswerTypes(Type.TEXT, Type.DECIMAL))
_search = partial(SqlFunction, work=TextWork(searched=2))
_sum = partial(SqlFunction, work=TextWork(Width.SUM))
_part = partial(SqlFunction, work=TextWork(Width.FIRST, cut="length"))
_grown = partial(SqlFunction, work=TextWork(Width.FIRST, growth="replacement"))
_cased = partial(_text, on_rows=_letters, in_postgres=False, work=TextWork(Width.FIRST, growth=3))
_LENGTHS = ("LEN", "CHAR_LENGTH", "CHARACTER_LENGTH")
_SIDE, _SEPARATED = TextWork(Width.FIRST, cut="expression"), TextWork(Width.FIRST, searched=2)
_SPLIT = ("delimiter", "part_index")

OPERATORS = (
    _sum("||", exp.DPipe, _joined, (*_TWO, "safe"), on_answers=answers.joined),
    SqlFunction("ILIKE", exp.ILike, _any_case, (*_TWO, "negate"), in_postgres=False),
)

FUNCTIONS = (
    _cased("UPPER", exp.Upper, other_names=("UCASE",), on_answers=lambda x: str(x).upper()),
    _cased("LOWER", exp.Lower, other_names=("LCASE",), on_answers=lambda x: str(x).lower()),
    _text("TRIM", exp.Trim, _trim, ("this", "position"), ("LTRIM", "RTRIM"), NodeRule(_trimmed_answer), work=LONGEST),
    _number("LENGTH", exp.Length, _length, other_names=_LENGTHS, on_answers=lambda x: len(str(x))),
    _part("SUBSTRING", exp.Substring, _substring, ("this", "start", "length"), ("SUBSTR",), required=("start",)),
    _text("LEFT", exp.Left, _side, _TWO, on_answers=lambda x, n: str(x)[: int(n)], work=_SIDE),
    SqlFunction("RIGHT", exp.Right, _side, _TWO, work=_SIDE),
    _sum("CONCAT", exp.Concat, _concat, ("expressions", "safe", "coalesce"), rewritten=_joined_answer),
    _grown("REPLACE", exp.Replace, _replaced, (*_TWO, "replacement"), required=("expression", "replacement")),
    SqlFunction("STARTS_WITH", exp.StartsWith, _has, _TWO),
    _search("CONTAINS", exp.Contains, _has, _TWO),
    SqlFunction("SPLIT_PART", exp.SplitPart, _split, ("this", *_SPLIT), required=_SPLIT, work=_SEPARATED),
    _search("POSITION", exp.StrPosition, _position, ("this", "substr"), ("STRPOS", "INSTR")),
    SqlFunction("REGEXP_MATCHES", exp.RegexpLike, _matches, _TWO, ("REGEXP_LIKE", "~")),
    SqlFunction("REGEXP_FULL_MATCH", exp.RegexpFullMatch, _matches, _TWO),
)
