"""Reading: one SELECT statement from text, of bounded size; nothing else gets further."""

from __future__ import annotations

import itertools
import logging
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal

import sqlglot
from sqlglot import Dialect, exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from incrowd.errors import IncrowdError, InvalidParameter, QueryRefused
from incrowd.queries.language.spellings import limited, respelled
from incrowd.queries.language.trees import unwrapped

LONGEST_TEXT = 20_000  # checked first: the time of all that follows grows with it
MOST_TOKENS = 4_000  # the parser's time grows with them
MOST_NODES = 8_000  # the tree is walked many times
DEEPEST = 80
"""Limits of a query: characters, tokens, nodes of its tree, and the depth of the tree."""

SCHEMAS = ("main", "public")
"""What tools write before a table: the schema that HTTP tells of, and that of PostgreSQL's clients."""
_HALF = re.compile("[\ud800-\udfff]")
_EXPLAIN = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*explain\b(?:\s+privacy\b)?", re.IGNORECASE | re.DOTALL)
SAMPLED = "samples are drawn in secret, on demand: leave out the sampling clause and ask for a rate."
UNANSWERED = "this query has a clause that is not answered: keep to SELECT, FROM, JOIN, WHERE and GROUP BY."
_EXAMPLE = "SELECT COUNT(*) FROM table"
_OTHER_QUOTES = re.compile(r"`|\[\s*[^\W\d]")
_COMMA = re.compile(r"[<=>]\s*\d+,\d")
_NESTING = 24  # sqlglot and databases recurse: Python's stack ends near 1000 frames
_AGAIN = 4
"""How many parts a parser makes for each word at most: usually one, more where it goes back and reads words anew."""
_MOST_PARTS = 100
"""How often a part is taken of something before it: a parser looks through all of that again each time."""
_STARTS = ("SELECT", "WITH", "FROM", "(")
_CLAUSES = (
    "with_", "distinct", "expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset",
    "sample", "qualify", "windows", "laterals", "pivots", "this", "expression",
)  # fmt: skip
"""What is read; some of it is refused later, with a reason of its own."""


class Quiet(threading.local):
    """Keeps what is being read here out of every log: where a parser gives up, it logs the text."""

    reading = False

    @contextmanager
    def silent(self) -> Iterator[None]:
        self.reading = True
        try:
            yield
        finally:
            self.reading = False


QUIET = Quiet()
logging.getLogger("sqlglot").addFilter(lambda _record: not QUIET.reading)

_OPEN, _CLOSE = ("(", "[", "{", "CASE"), (")", "]", "}", "END")
_PREFIXES = ("NOT", "-", "+", "~", "@")


def is_explain(sql: str) -> tuple[bool, str]:
    """Return whether a text asks for the price of a query, and the query.

    >>> is_explain("EXPLAIN PRIVACY SELECT COUNT(*) FROM births")
    (True, 'SELECT COUNT(*) FROM births')
    >>> is_explain("explain select 1")
    (True, 'select 1')
    >>> is_explain("SELECT COUNT(*) FROM births")
    (False, 'SELECT COUNT(*) FROM births')
    """
    match = _EXPLAIN.match(sql)
    return (True, sql[match.end() :].lstrip()) if match else (False, sql)


def read(sql: str) -> exp.Select:
    """Return the tree of one SELECT.

    Preconditions: any text at all.

    >>> read("select count(*) from births").sql()
    'SELECT COUNT(*) FROM births'
    """
    tree = read_query(sql)
    if not isinstance(tree, exp.Select):
        raise QueryRefused("a batch takes one SELECT at a time: ask UNION ALL alone, or put it into FROM ( … ).")
    return tree


def read_query(sql: str) -> exp.Select | exp.SetOperation:
    """Return the tree of one query: a SELECT, or several with UNION ALL between them.

    Preconditions: any text at all.  What is too long, too deep, not one statement or not a query is refused before it
    is worked on.

    >>> read_query("DROP TABLE births")
    Traceback (most recent call last):
    incrowd.errors.QueryRefused: this is not a query: write SELECT … FROM ….
    """
    if len(sql) > LONGEST_TEXT:
        raise InvalidParameter(f"a query has at most {LONGEST_TEXT:,} characters; this one is longer. Shorten it.")
    if _HALF.search(sql):
        raise InvalidParameter("a query is written in Unicode, and this one holds half a character: write it anew.")
    try:
        dialect = Dialect.get_or_raise("duckdb")
        tokens = dialect.tokenize(sql)
        _check_tokens(tokens)
        if (other := limited(sql, tokens)) is not sql:
            sql, tokens = other, dialect.tokenize(other)
        parser = dialect.parser(max_nodes=_AGAIN * (len(tokens) + 1))
        with QUIET.silent():
            statements = [tree for tree in parser.parse(tokens, sql) if tree is not None]
    except RecursionError:
        raise QueryRefused("the query is nested too deeply: simplify it.") from None
    except IncrowdError:
        raise
    except Exception as error:  # noqa: BLE001 (besides its own errors, a parser stumbles in many ways)
        raise InvalidParameter(f"this SQL cannot be read{_place(error)}: {_spelling(sql)}") from None
    if len(statements) != 1:
        raise QueryRefused("one query is answered at a time: remove what follows the first semicolon.")
    tree = unwrapped(statements[0])
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise QueryRefused("this is not a query: write SELECT … FROM ….")
    check_size(tree)
    branches(tree)
    respelled(tree)
    check_size(tree)
    for named in tree.find_all(exp.Table, exp.Column):
        schema, whole = (str(getattr(named.args.get(part), "name", "")).lower() for part in ("db", "catalog"))
        if schema in SCHEMAS and whole in ("", "incrowd"):
            named.set("db", None)
            named.set("catalog", None)
    for part in tree.find_all(exp.Select, exp.SetOperation):
        if any(value and name not in _CLAUSES for name, value in part.args.items()):
            raise QueryRefused(UNANSWERED)
    return tree


def _spelling(sql: str) -> str:
    """Return how to write what other dialects write otherwise, or what a query looks like.

    >>> _spelling("SELECT AVG(`cost`) FROM visits")
    'names stand in "double quotes", not in backticks or square brackets.'
    """
    if _OTHER_QUOTES.search(sql):
        return 'names stand in "double quotes", not in backticks or square brackets.'
    if _COMMA.search(sql):
        return "numbers have a point, not a comma, as in 19.99."
    return f"a query looks like {_EXAMPLE}, and names of more than letters, digits and _ stand in double quotes."


def branches(query: exp.Expr) -> list[exp.Select]:
    """Return the SELECTs of a query, in their order; between them stands UNION ALL.

    >>> from sqlglot import parse_one
    >>> [branch.sql() for branch in branches(parse_one("SELECT 1 UNION ALL (SELECT 2) UNION ALL SELECT 3"))]
    ['SELECT 1', 'SELECT 2', 'SELECT 3']
    """
    if isinstance(query, exp.Select):
        return [query]
    if not isinstance(query, exp.Union) or query.args.get("distinct"):
        raise QueryRefused("answers are put together by UNION ALL: noisy numbers are seldom equal.")
    return [branch for side in (query.this, query.expression) for branch in branches(_unbracketed(side))]


def _unbracketed(side: exp.Expr) -> exp.Expr:
    """Return a side of UNION ALL without brackets; only a single SELECT is ordered and cut inside of them."""
    inner = unwrapped(side)
    if not isinstance(inner, exp.Select) and any(
        inner.args.get(part) for part in ("with_", "order", "limit", "offset")
    ):
        raise QueryRefused("ORDER BY and LIMIT stand behind the last SELECT of UNION ALL: take the brackets away.")
    return inner


def check_size(tree: exp.Expr) -> None:
    """Raise if a tree has more nodes, or is deeper, than a query may.

    >>> from sqlglot import exp
    >>> check_size(exp.column("x"))
    """
    stack: list[tuple[exp.Expr, int]] = [(tree, 1)]
    nodes = 0
    while stack:
        node, depth = stack.pop()
        nodes += 1
        if depth > DEEPEST or nodes > MOST_NODES:
            raise QueryRefused(f"a query has at most {MOST_NODES:,} parts, nested at most {DEEPEST} deep: split it.")
        stack.extend((child, depth + 1) for child in node.iter_expressions())


def _check_tokens(tokens: list[Token]) -> None:
    words = [token.text.upper() for token in tokens]
    if not words:
        raise InvalidParameter("there is no query: write SELECT … FROM ….")
    if words[0] not in _STARTS:
        raise QueryRefused("this is not a query: write SELECT … FROM ….")
    if len(words) > MOST_TOKENS:
        raise QueryRefused(f"a query has at most {MOST_TOKENS:,} words and signs: split it.")
    _check_matches(tokens)
    called = sum(one == "." and two == "(" for one, two in zip(words, words[2:], strict=False))
    if words.count("[") + called > _MOST_PARTS:
        raise QueryRefused(f"[ and .f( stand at most {_MOST_PARTS} times in a query, all in all: simplify it.")
    depth = run = 0
    for word in words:
        depth += (word in _OPEN) - (word in _CLOSE)
        run = run + 1 if word in _PREFIXES else 0
        if depth > _NESTING or run > _NESTING:
            raise QueryRefused(f"brackets, CASE and NOT are nested at most {_NESTING} deep: simplify the query.")


def _check_matches(tokens: list[Token]) -> None:
    """Refuse x ~ 'pattern' where it matters whether a part of the text or all of it must match: dialects differ."""
    for sign, pattern in itertools.pairwise(tokens):
        if sign.text.strip() in ("~", "!~") and pattern.token_type is TokenType.STRING:
            written = pattern.text
            if not (written.startswith("^") and written.endswith(("$", ".*")) and "|" not in written):
                raise QueryRefused("~ differs between dialects: write REGEXP_MATCHES or REGEXP_FULL_MATCH.")


def _place(error: Exception) -> str:
    errors = getattr(error, "errors", None)
    if not errors or "line" not in errors[0] or "col" not in errors[0]:
        return ""
    return f" (line {errors[0]['line']}, near column {errors[0]['col']})"


_MOST = 1000  # queries of a batch: each is planned before the charge


def split_queries(text: str) -> tuple[str, ...]:
    r"""Return the queries of a text, which are separated by semicolons; those inside quotes and comments are none.

    >>> split_queries("SELECT ';' FROM t; -- and; then\nSELECT COUNT(*) FROM t;")
    ("SELECT ';' FROM t", 'SELECT COUNT(*) FROM t')
    """
    try:
        tokens = sqlglot.tokenize(text, dialect="duckdb")
    except SqlglotError:
        raise InvalidParameter("this cannot be read as SQL: look for a quote that is not closed.") from None
    statements, start = list[str](), None
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            statements += [text[start : token.start].strip()] if start is not None else []
            start = None
        elif start is None:
            start = token.start
    statements += [text[start:].strip()] if start is not None else []
    if not statements or len(statements) > _MOST:
        raise InvalidParameter(f"a batch has 1 to {_MOST:,} queries, separated by semicolons.")
    return tuple(statements)


Parameter = None | bool | int | float | Decimal | str | date
"""What may stand for a question mark."""

_SIGN = "\ue000"
"""Where a question mark stood: a private character of Unicode, which no query may hold beside its parameters."""


def bind_parameters(sql: str, parameters: Sequence[Parameter]) -> str:
    """Return a query in which each question mark is a literal, whatever stands around it.

    Marks are found by the words and signs of the statement, so that one in quotes or in a comment is none, and counted
    in the order of the text.  Each becomes one leaf of the parsed tree: no value can be read as anything else.

    >>> bind_parameters("SELECT COUNT(*) FROM t WHERE a = ? AND b = '?' AND c < -?", ["it's", -3])
    "SELECT COUNT(*) FROM t WHERE a = 'it''s' AND b = '?' AND c < -(-3)"
    >>> bind_parameters("SELECT COUNT(*) FROM t WHERE a = ?", [])
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: give one parameter for each question mark: 1, not 0.
    """
    if not parameters and "?" not in sql:
        return sql
    literals = [_literal(value) for value in parameters]
    marked, many = _marked(sql)
    if many != len(literals):
        raise InvalidParameter(f"give one parameter for each question mark: {many}, not {len(literals)}.")
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
        raise QueryRefused("a parameter stands for a value: not for a name, and not after a word such as DATE.")
    return text


def _marked(sql: str) -> tuple[str, int]:
    """Return a statement with a name of its own for each question mark, and how many there are."""
    if _SIGN in sql:
        raise InvalidParameter("a query with parameters holds no characters for private use: leave them out.")
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
    if isinstance(column.parent, exp.Group | exp.Ordered):
        raise QueryRefused("a parameter does not name a column: write what GROUP BY and ORDER BY stand for.")


def _literal(value: Parameter) -> exp.Expr:
    """Return the leaf of a tree that a value is; a negative number stands in brackets."""
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
