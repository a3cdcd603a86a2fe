"""Texts: their parts, their length, and texts made of them, never longer than a known bound."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.language.domain import BoundTree, Constant, ExpressionDomain, listed, texts, truth, whole
from incrowd.queries.language.expressions import answers
from incrowd.queries.language.expressions.function import AnswerTypes, Mean, SqlFunction, sole, text, whole_number
from incrowd.queries.language.trees import cast, function, operand

_CUT = 1000
_LONGEST = 10_000


def _letters(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand UPPER and LOWER."""
    part = text(mean(node.this), type(node).__name__.upper())
    extent = texts(None if part.extent.longest is None else 3 * part.extent.longest, optional=part.extent.optional)
    twin = str.upper if isinstance(node, exp.Upper) else str.lower
    # Alphabets have rules of their own, on which engines differ: only plain ones are computed ahead.
    plain = all(str(value).isascii() for value in part.extent.members() or ())
    return BoundTree(function(type(node), part.tree), listed(extent, (part,), twin) if plain else extent)


def _trim(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand TRIM, LTRIM and RTRIM of spaces."""
    part = text(mean(node.this), "TRIM")
    side = node.args.get("position")
    twins = {None: lambda x: x.strip(" "), "LEADING": lambda x: x.lstrip(" "), "TRAILING": lambda x: x.rstrip(" ")}
    if side not in twins:
        raise QuestionRefused("TRIM takes spaces away: write TRIM(x), LTRIM(x) or RTRIM(x).")
    extent = texts(part.extent.longest, optional=part.extent.optional)
    return BoundTree(exp.Trim(this=part.tree.copy(), position=side), listed(extent, (part,), twins[side]))


def _length(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand LENGTH, in characters; of an open text at most 1,000 are counted."""
    part = _cut(text(mean(node.this), "LENGTH"))
    extent = whole(0, part.extent.longest, optional=part.extent.optional)
    return BoundTree(function(exp.Length, part.tree), listed(extent, (part,), len))


def _substring(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand SUBSTRING(x, start, length), counted from 1."""
    part = text(mean(node.this), "SUBSTRING")
    start = whole_number(mean(node.args["start"]), "the start of SUBSTRING", 1, _CUT)
    wanted = node.args.get("length")
    many = _CUT if wanted is None else whole_number(mean(wanted), "the length of SUBSTRING", 0, _CUT)
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
    parts = [_cut(text(mean(part), "||")) for part in (node.this, node.expression)]
    tree = exp.DPipe(this=operand(parts[0].tree), expression=operand(parts[1].tree), safe=True)
    return _longer(tree, parts, optional=any(part.extent.optional for part in parts))


def _concat(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand CONCAT(x, y, …), which leaves out what is missing."""
    parts = [_cut(text(mean(part), "CONCAT")) for part in node.expressions]
    if not parts:
        raise InvalidParameter("CONCAT needs something to put together.")
    first, *others = (exp.Coalesce(this=part.tree.copy(), expressions=[exp.Literal.string("")]) for part in parts)
    tree: exp.Expr = first
    for other in others:
        tree = exp.DPipe(this=tree, expression=other, safe=True)
    filled = [_with_empty(part) for part in parts]
    return _longer(tree, filled, optional=False)


def _replaced(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand REPLACE(x, 'from', 'to')."""
    part = _cut(text(mean(node.this), "REPLACE"))
    old, new = (
        sole(text(mean(node.args[arg]), "REPLACE"), "what REPLACE replaces") for arg in ("expression", "replacement")
    )
    if not old:
        raise InvalidParameter("REPLACE needs a text to look for that is not empty.")
    longest = _checked((part.extent.longest or 0) * max(1, len(str(new))))
    tree = exp.Replace(this=part.tree.copy(), expression=exp.Literal.string(old), replacement=exp.Literal.string(new))
    twin = lambda value: value.replace(old, new)  # noqa: E731 (a twin is a value here)
    return BoundTree(tree, listed(texts(longest, optional=part.extent.optional), (part,), twin))


def _has(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand STARTS_WITH and CONTAINS."""
    name = "STARTS_WITH" if isinstance(node, exp.StartsWith) else "CONTAINS"
    part, sought = text(mean(node.this), name), text(mean(node.expression), name)
    sole(sought, f"what {name} looks for")
    tree = type(node)(this=part.tree.copy(), expression=sought.tree.copy())
    return BoundTree(tree, truth(optional=part.extent.optional))


def _split(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand SPLIT_PART(x, 'separator', n): what stands between separators, empty beyond the last."""
    part = _cut(text(mean(node.this), "SPLIT_PART"))
    sign = str(sole(text(mean(node.args["delimiter"]), "SPLIT_PART"), "the separator of SPLIT_PART"))
    place = whole_number(mean(node.args["part_index"]), "the place of SPLIT_PART", 1, _CUT)
    if not sign:
        raise InvalidParameter("SPLIT_PART needs a separator that is not empty.")
    numbers = {"delimiter": exp.Literal.string(sign), "part_index": exp.Literal.number(place)}
    tree = exp.SplitPart(this=part.tree.copy(), **numbers)
    twin = lambda value: (value.split(sign) + [""] * place)[place - 1]  # noqa: E731 (a twin is a value here)
    return BoundTree(tree, listed(texts(part.extent.longest, optional=part.extent.optional), (part,), twin))


def _position(node: exp.Expr, mean: Mean) -> BoundTree:
    """Understand POSITION('part' IN x): where a part begins, counted from 1; 0 where there is none."""
    part = _cut(text(mean(node.this), "POSITION"))
    sought = str(sole(text(mean(node.args["substr"]), "POSITION"), "what POSITION looks for"))
    if not sought:
        raise InvalidParameter("POSITION needs a text to look for that is not empty.")
    found = exp.StrPosition(this=part.tree.copy(), substr=exp.Literal.string(sought))
    extent = whole(0, part.extent.longest, optional=part.extent.optional)
    return BoundTree(cast(found, Type.INTEGER), listed(extent, (part,), lambda value: value.find(sought) + 1))


def _shorter(tree: exp.Expr, part: BoundTree, kept: slice) -> BoundTree:
    most = len(range(*kept.indices(_CUT)))
    known = part.extent.longest
    extent = texts(most if known is None else min(known, most), optional=part.extent.optional)
    return BoundTree(tree, listed(extent, (part,), lambda value: value[kept]))


def _longer(tree: exp.Expr, parts: list[BoundTree], *, optional: bool) -> BoundTree:
    longest = _checked(sum(part.extent.longest or 0 for part in parts))
    return BoundTree(tree, listed(texts(longest, optional=optional), parts, _put_together))


def _put_together(*values: Constant) -> str:
    return "".join(str(value) for value in values)


def _cut(part: BoundTree) -> BoundTree:
    """Return a text that is cut after a thousand characters where nothing else bounds it."""
    if part.extent.longest is not None:
        return part
    tree = exp.Left(this=part.tree.copy(), expression=exp.Literal.number(_CUT))
    return BoundTree(tree, replace(part.extent, longest=_CUT))


def _with_empty(part: BoundTree) -> BoundTree:
    extent: ExpressionDomain = part.extent
    values = None if extent.values is None or not extent.optional else ("", *extent.values)
    return replace(part, extent=replace(extent, optional=False, values=values if extent.optional else extent.values))


def _checked(longest: int) -> int:
    if longest > _LONGEST:
        raise QuestionRefused(f"texts of more than {_LONGEST:,} characters are not put together: use LEFT(x, n) first.")
    return longest


def _joined_answer(node: exp.Expr) -> exp.Expr:
    """Return CONCAT on an answer as x || y, in which what is missing is empty."""
    whole: exp.Expr = exp.Literal.string("")
    for part in node.expressions:
        filled = exp.Coalesce(this=part.copy(), expressions=[exp.Literal.string("")])
        whole = exp.DPipe(this=whole, expression=filled)
    return whole


_MOST_ALTERNATIVES = 32
_MOST_LETTERS = 64
_LONGEST_PATTERN = 100
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
            runs[-1] += [_letter_set(found)] * (1 if times is None else int(times[1]))
    if sum(map(len, runs)) > _LONGEST_PATTERN or not any(runs):
        raise QuestionRefused(_HINT)
    start, end = start and bool(runs[0]), end and bool(runs[-1])  # a gap at an end holds nothing there
    kept = runs[next(at for at, run in enumerate(runs) if run) :]
    while not kept[-1]:
        kept.pop()
    return PatternShape(tuple(map(tuple, kept)), start, end)


def _letter_set(found: re.Match[str]) -> frozenset[str] | None:
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
_text = partial(SqlFunction, types=AnswerTypes(Type.TEXT, Type.TEXT))
_number = partial(SqlFunction, types=AnswerTypes(Type.TEXT, Type.DECIMAL))
_LENGTHS = ("LEN", "CHAR_LENGTH", "CHARACTER_LENGTH")

OPERATORS = (
    SqlFunction("||", exp.DPipe, _joined, (*_TWO, "safe"), on_answers=answers.joined),
    SqlFunction("ILIKE", exp.ILike, _any_case, (*_TWO, "negate"), in_postgres=False),
)

FUNCTIONS = (
    _text("UPPER", exp.Upper, _letters, other_names=("UCASE",), on_answers=lambda x: str(x).upper(), in_postgres=False),
    _text("LOWER", exp.Lower, _letters, other_names=("LCASE",), on_answers=lambda x: str(x).lower(), in_postgres=False),
    _text("TRIM", exp.Trim, _trim, ("this", "position"), ("LTRIM", "RTRIM"), on_answers=lambda x: str(x).strip(" ")),
    _number("LENGTH", exp.Length, _length, other_names=_LENGTHS, on_answers=lambda x: len(str(x))),
    SqlFunction("SUBSTRING", exp.Substring, _substring, ("this", "start", "length"), ("SUBSTR",)),
    _text("LEFT", exp.Left, _side, _TWO, on_answers=lambda x, n: str(x)[: int(n)]),
    SqlFunction("RIGHT", exp.Right, _side, _TWO),
    SqlFunction("CONCAT", exp.Concat, _concat, ("expressions", "safe", "coalesce"), rewritten=_joined_answer),
    SqlFunction("REPLACE", exp.Replace, _replaced, ("this", "expression", "replacement")),
    SqlFunction("STARTS_WITH", exp.StartsWith, _has, _TWO),
    SqlFunction("CONTAINS", exp.Contains, _has, _TWO),
    SqlFunction("SPLIT_PART", exp.SplitPart, _split, ("this", "delimiter", "part_index")),
    SqlFunction("POSITION", exp.StrPosition, _position, ("this", "substr"), ("STRPOS", "INSTR")),
    SqlFunction("REGEXP_MATCHES", exp.RegexpLike, _matches, _TWO, ("REGEXP_LIKE", "~")),
    SqlFunction("REGEXP_FULL_MATCH", exp.RegexpFullMatch, _matches, _TWO),
)
