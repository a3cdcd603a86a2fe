"""Texts: their parts, their length, and texts made of them, never longer than a known bound."""

from __future__ import annotations

from dataclasses import replace
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


_TWO = ("this", "expression")
_text = partial(SqlFunction, types=AnswerTypes(Type.TEXT, Type.TEXT))
_number = partial(SqlFunction, types=AnswerTypes(Type.TEXT, Type.DECIMAL))
_LENGTHS = ("LEN", "CHAR_LENGTH", "CHARACTER_LENGTH")

OPERATORS = (SqlFunction("||", exp.DPipe, _joined, (*_TWO, "safe"), on_answers=answers.joined),)

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
)
