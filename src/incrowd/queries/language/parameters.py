"""Parameters: values that stand for the question marks of a statement, put into its tree and never into its text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from incrowd.errors import InvalidParameter, QuestionRefused
from incrowd.queries.language.reading import read_query

if TYPE_CHECKING:
    from sqlglot import exp

Parameter = None | bool | int | float | Decimal | str | date
"""What may stand for a question mark."""

_SIGN = "\ue000"
"""Where a question mark stood: a private character of Unicode, which no question may hold beside its parameters."""


def bind_parameters(sql: str, parameters: Sequence[Parameter]) -> str:
    """Return a question in which each question mark is a literal, whatever stands around it.

    Marks are found by the words and signs of the statement, so that one in quotes or in a comment is none, and counted
    in the order of the text.  Each becomes one leaf of the parsed tree: no value can be read as anything else.

    >>> bind_parameters("SELECT COUNT(*) FROM t WHERE a = ? AND b = '?' AND c < -?", ["it's", -3])
    "SELECT COUNT(*) FROM t WHERE a = 'it''s' AND b = '?' AND c < -(-3)"
    >>> bind_parameters("SELECT COUNT(*) FROM t WHERE a = ?", [])
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: the question has 1 question mark and 0 parameters: give one for each.
    """
    from sqlglot import exp

    if not parameters and "?" not in sql:
        return sql
    literals = [_literal(value) for value in parameters]
    marked, many = _marked(sql)
    if many != len(literals):
        raise InvalidParameter(
            f"the question has {many} question {'mark' if many == 1 else 'marks'} and {len(literals)} "
            f"{'parameter' if len(literals) == 1 else 'parameters'}: give one for each."
        )
    if not literals:
        return sql
    places = {f"{_SIGN}{place}": literal for place, literal in enumerate(literals)}
    tree = read_query(marked)
    for column in list(tree.find_all(exp.Column)):
        if column.name in places and not column.table:
            _check_place(column)
            column.replace(places.pop(column.name))
    text = tree.sql(dialect="duckdb", comments=False)
    if places or _SIGN in text:
        raise QuestionRefused("a parameter stands for a value: not for a name, and not after a word such as DATE.")
    return text


def _marked(sql: str) -> tuple[str, int]:
    """Return a statement with a name of its own for each question mark, and how many there are."""
    import sqlglot
    from sqlglot.errors import SqlglotError
    from sqlglot.tokenizer_core import TokenType

    if _SIGN in sql:
        raise InvalidParameter("a question with parameters holds no characters for private use: leave them out.")
    try:
        tokens = sqlglot.tokenize(sql, dialect="duckdb")
    except SqlglotError:
        raise InvalidParameter("this cannot be read as SQL: look for a quote that is not closed.") from None
    pieces, last, many = list[str](), 0, 0
    for token in tokens:
        if token.token_type is TokenType.PLACEHOLDER:
            pieces += [sql[last : token.start], f' "{_SIGN}{many}" ']
            last, many = token.end + 1, many + 1
    return "".join([*pieces, sql[last:]]), many


def _check_place(column: exp.Column) -> None:
    """Refuse a parameter that would be read as the number of a column."""
    from sqlglot import exp

    if isinstance(column.parent, exp.Group | exp.Ordered):
        raise QuestionRefused("a parameter does not name a column: write what GROUP BY and ORDER BY stand for.")


def _literal(value: Parameter) -> exp.Expr:
    """Return the leaf of a tree that a value is; a negative number stands in brackets."""
    from sqlglot import exp

    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case str():
            if _SIGN in value:
                raise InvalidParameter("a parameter holds no characters for private use: leave them out.")
            return exp.Literal.string(value)
        case datetime():
            pass
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
        case int() | float() | Decimal() if Decimal(value).is_finite():
            written = format(abs(Decimal(repr(value)) if isinstance(value, float) else Decimal(value)), "f")
            point = ".0" if isinstance(value, float) and "." not in written else ""
            number = exp.Literal.number(written + point)
            return exp.Paren(this=exp.Neg(this=number)) if value < 0 else number
    raise InvalidParameter("a parameter is a finite number, a text, a date, a truth value or NULL.")
