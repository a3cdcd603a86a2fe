"""Several: a text of questions, one after the other."""

from __future__ import annotations

from incrowd.errors import InvalidParameter

_MOST = 1000


def several(text: str) -> tuple[str, ...]:
    r"""Return the questions of a text, which are separated by semicolons; those inside quotes and comments are none.

    >>> several("SELECT ';' FROM t; -- and; then\nSELECT COUNT(*) FROM t;")
    ("SELECT ';' FROM t", 'SELECT COUNT(*) FROM t')
    """
    import sqlglot
    from sqlglot.errors import SqlglotError
    from sqlglot.tokenizer_core import TokenType

    try:
        tokens = sqlglot.tokenize(text, dialect="duckdb")
    except SqlglotError:
        raise InvalidParameter("this cannot be read as SQL: look for a quote that is not closed.") from None
    found, start = list[str](), None
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            found += [text[start : token.start].strip()] if start is not None else []
            start = None
        elif start is None:
            start = token.start
    found += [text[start:].strip()] if start is not None else []
    if not found or len(found) > _MOST:
        raise InvalidParameter(f"a batch has 1 to {_MOST:,} questions, separated by semicolons.")
    return tuple(found)
