"""Statements: what a text asks of the door, and the settings of a connection; a query itself is not read here."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from incrowd.errors import InvalidParameter
from incrowd.queries.language.reading import QUIET, Parameter, bind_parameters
from incrowd.workflows.query.system_tables import SERVER_VERSION, TYPE_OIDS

FEATURE, SYNTAX, READ_ONLY, FAILED, UNKNOWN_SETTING, BAD_VALUE = "0A000", "42601", "25006", "25P02", "42704", "22023"
TEXT = TYPE_OIDS["text"]
_MOST_STATEMENTS = 20
_BEGIN, _COMMIT, _ROLLBACK = ("begin", "start"), ("commit", "end"), ("rollback", "abort")
_QUERIES = ("select", "with", "values", "table", "from", "(")
_SAVEPOINTS = ("savepoint", "release")
_CHANGES = ("insert", "update", "delete", "merge", "create", "drop", "alter", "truncate", "grant", "revoke", "call",
            "do", "comment", "refresh", "vacuum", "analyze", "reindex",
            "cluster", "lock", "prepare", "execute")  # fmt: skip
_KINDS = {
    **dict.fromkeys(_BEGIN, "begin"), **dict.fromkeys(_COMMIT, "commit"), **dict.fromkeys(_CHANGES, "change"),
    **dict.fromkeys(_QUERIES, "query"), **dict.fromkeys(_SAVEPOINTS, "savepoint"), "": "empty", "set": "set",
    "reset": "reset", "show": "show", "describe": "show", "desc": "show", "explain": "explain",
    **dict.fromkeys(("discard", "deallocate", "close", "unlisten"), "discard"),
}  # fmt: skip
_NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,40})?([eE]-?[0-9]{1,3})?|[0-9]{1,20}/[1-9][0-9]{0,19}")
_SET = re.compile(
    r"set\s+(?:session\s+|local\s+)?(?P<name>time\s+zone|[a-z_][a-z_0-9.]*)\s*(?:=|\bto\b|\s)\s*(?P<value>.+?)\s*",
    re.IGNORECASE | re.DOTALL,
)
_CHARACTERISTICS = re.compile(
    r"set\s+(?:session\s+characteristics|transaction|local\s+transaction)\b.*", re.IGNORECASE | re.DOTALL
)
_SHOW = re.compile(r"show\s+(?P<name>[a-z_0-9.\s]+?)\s*", re.IGNORECASE)
_RESET = re.compile(r"reset\s+(?P<name>[a-z_0-9.]+)\s*", re.IGNORECASE)
DEFAULTS = {
    "server_version": SERVER_VERSION, "server_encoding": "UTF8", "client_encoding": "UTF8", "datestyle": "ISO, MDY",
    "integer_datetimes": "on", "intervalstyle": "postgres", "standard_conforming_strings": "on", "timezone": "UTC",
    "is_superuser": "off", "application_name": "", "default_transaction_read_only": "on", "in_hot_standby": "off",
    "transaction_isolation": "read committed", "transaction_read_only": "on", "extra_float_digits": "1",
    "search_path": "public", "statement_timeout": "0", "lock_timeout": "0", "max_identifier_length": "63",
    "idle_in_transaction_session_timeout": "0", "client_min_messages": "notice", "bytea_output": "hex",
    "default_transaction_isolation": "read committed", "server_version_num": "150000", "row_security": "on",
    "incrowd.epsilon": "", "incrowd.delta": "", "incrowd.intervals": "off",
}  # fmt: skip
"""The settings that exist, and what they are at the beginning."""
_FIXED = ("server_version", "server_version_num", "server_encoding", "integer_datetimes", "is_superuser",
          "in_hot_standby", "transaction_read_only", "max_identifier_length")  # fmt: skip
_MEANS = {"transaction isolation level": "transaction_isolation", "time zone": "timezone", "names": "client_encoding"}


@dataclass(frozen=True)
class Complaint(Exception):
    """What a client is told: a state, a text, and a hint."""

    state: str
    text: str
    hint: str = ""


@dataclass(frozen=True)
class ConnectionSettings:
    """The settings of a connection.

    >>> ConnectionSettings().set("incrowd.epsilon", "0.1").values["incrowd.epsilon"]
    '0.1'
    """

    values: Mapping[str, str]
    opening: Mapping[str, str]

    def __init__(self, values: Mapping[str, str] | None = None, opening: Mapping[str, str] | None = None) -> None:
        object.__setattr__(self, "values", dict(DEFAULTS if values is None else values))
        object.__setattr__(self, "opening", dict(DEFAULTS if opening is None else opening))

    @property
    def opened(self) -> ConnectionSettings:
        """The settings with which a connection begins; RESET and DISCARD ALL return to them, as pools wish."""
        return ConnectionSettings(self.values, self.values)

    def set(self, name: str, value: str) -> ConnectionSettings:
        """Return the settings with a new value, or complain about a name or value that does not exist."""
        name = _MEANS.get(" ".join(name.lower().split()), name.lower())
        if name == "all" and value == "default":
            return ConnectionSettings(self.opening, self.opening)
        if name not in DEFAULTS:
            raise Complaint(UNKNOWN_SETTING, f"unrecognized configuration parameter: {name[:60]}")
        text = self.opening[name] if value.strip().lower() == "default" else value.strip().strip("'\"").strip()
        if name in _FIXED and text != self.values[name]:
            raise Complaint("55P02", f"parameter {name} cannot be changed")
        return ConnectionSettings({**self.values, name: _checked(name, text)}, self.opening)

    @property
    def intervals(self) -> bool:
        """Whether intervals are columns."""
        return self.values["incrowd.intervals"] == "on"


def _checked(name: str, text: str) -> str:
    if name in ("incrowd.epsilon", "incrowd.delta") and text and not _NUMBER.fullmatch(text):
        raise Complaint(BAD_VALUE, f"{name} is a number such as 0.1 or 1e-6")
    if name == "incrowd.intervals":
        if text.lower() not in ("on", "off", "true", "false", "1", "0"):
            raise Complaint(BAD_VALUE, "incrowd.intervals is on or off")
        return "on" if text.lower() in ("on", "true", "1") else "off"
    if name == "client_encoding" and text.replace("-", "").replace("_", "").upper() not in ("UTF8", "UNICODE"):
        raise Complaint(BAD_VALUE, "client_encoding is UTF8 here")
    if name == "datestyle" and not text.upper().startswith("ISO"):
        raise Complaint(BAD_VALUE, "dates are written as ISO here: SET datestyle = ISO")
    return text[:200]


@dataclass(frozen=True)
class ClientStatement:
    """One statement: what kind it is, and its text.

    >>> [ClientStatement.of(text).kind for text in (" /* x */ SELECT 1 ", "BEGIN", "DROP TABLE t")]
    ['query', 'begin', 'change']
    """

    kind: str
    sql: str

    @classmethod
    def of(cls, sql: str) -> ClientStatement:
        """Tell what a text asks."""
        bare = without_comments(sql)
        words = bare.lower().split(None, 2) or [""]
        first = "(" if bare.startswith("(") else words[0].rstrip(";")
        if first in _ROLLBACK:
            return cls("savepoint" if "to" in words[1:] else "rollback", bare)
        return cls(_KINDS.get(first, "other"), bare)


def without_comments(sql: str) -> str:
    """Return a text from its first word on, without the semicolon at its end."""
    bare = re.sub(r"\A(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)+", "", sql, flags=re.DOTALL)
    return bare.rstrip().rstrip(";").rstrip()


def setting_of(sql: str) -> tuple[str, str] | None:
    """Return the name and the value of SET, None where it is about transactions, which all read alone.

    >>> setting_of("SET incrowd.epsilon = 0.1"), setting_of("SET TRANSACTION READ ONLY")
    (('incrowd.epsilon', '0.1'), None)
    """
    if _CHARACTERISTICS.fullmatch(sql):
        return None
    match = _SET.fullmatch(sql) or _RESET.fullmatch(sql)
    if match is None:
        raise Complaint(SYNTAX, "SET is written as: SET name = value")
    return match["name"], match["value"] if "value" in match.re.groupindex else "default"


def shown_setting(sql: str, settings: ConnectionSettings) -> tuple[str, str] | None:
    """Return the name and value of the setting that SHOW names, None where it names none."""
    match = _SHOW.fullmatch(sql)
    name = "" if match is None else " ".join(match["name"].lower().split())
    name = _MEANS.get(name, name)
    return (name, settings.values[name]) if name in settings.values else None


def statements_of(sql: str) -> list[ClientStatement]:
    """Return the statements of a text, separated by semicolons."""
    try:
        tokens = sqlglot.tokenize(sql, dialect="postgres")
    except (SqlglotError, RecursionError):
        raise Complaint(SYNTAX, "this cannot be read as SQL: look for a quote that is not closed") from None
    starts = [0, *(token.end + 1 for token in tokens if token.token_type is TokenType.SEMICOLON)]
    ends = [*(token.start for token in tokens if token.token_type is TokenType.SEMICOLON), len(sql)]
    if len(starts) > _MOST_STATEMENTS:
        raise Complaint("54001", f"a message has at most {_MOST_STATEMENTS} statements")
    statements = [ClientStatement.of(sql[start:end]) for start, end in zip(starts, ends, strict=True)]
    return [statement for statement in statements if statement.kind != "empty"]


@dataclass(frozen=True)
class Prepared:
    """A statement with places for parameters: `$1`, `$2`, …, found by the words and signs of the text."""

    statement: ClientStatement
    places: tuple[tuple[int, int, int], ...]
    """Start, end and number of each."""

    @classmethod
    def of(cls, sql: str) -> Prepared:
        """Find the places of a text.

        >>> Prepared.of("SELECT $2, '$1', $1").places
        ((7, 9, 2), (17, 19, 1))
        """
        statement = ClientStatement.of(sql)
        try:
            tokens = sqlglot.tokenize(statement.sql, dialect="postgres")
        except (SqlglotError, RecursionError):
            raise Complaint(SYNTAX, "this cannot be read as SQL: look for a quote that is not closed") from None
        if any(token.token_type is TokenType.SEMICOLON for token in tokens):
            raise Complaint(SYNTAX, "a prepared statement is a single one")
        places = []
        for sign, number in itertools.pairwise(tokens):
            if sign.token_type is TokenType.PARAMETER and sign.text == "$" and number.start == sign.end + 1:
                if not number.text.isascii() or not number.text.isdigit() or not 1 <= int(number.text) <= 200:
                    raise Complaint("42P02", "parameters are $1 to $200")
                places.append((sign.start, number.end + 1, int(number.text)))
        return cls(statement, tuple(places))

    @property
    def parameters(self) -> int:
        """How many parameters it has."""
        return max((number for _, _, number in self.places), default=0)

    def bound(self, values: Sequence[Parameter]) -> ClientStatement:
        """Return the statement with values as leaves of its tree, as every query with parameters is read."""
        if not self.places:
            return self.statement
        order = [values[number - 1] for _, _, number in self.places]
        return replace(self.statement, sql=bind_parameters(self._filled(["?"] * len(order)), order))

    def written(self, values: Sequence[Parameter]) -> ClientStatement:
        """Return the statement with values as literals in its text, for the catalog, whose SQL is PostgreSQL's."""
        return replace(self.statement, sql=self._filled([_literal(values[number - 1]) for _, _, number in self.places]))

    def types(self, declared: Sequence[int], columns: Mapping[str, int]) -> tuple[int, ...]:
        """Return the types of the parameters: as the client says, as the columns they are compared with, or texts.

        >>> Prepared.of("SELECT COUNT(*) FROM t WHERE Age BETWEEN $1 AND $2 AND x = $3").types((), {"age": 20})
        (20, 20, 25)
        """
        inferred = dict[str, int]()
        with suppress(SqlglotError, RecursionError), QUIET.silent():
            tree = sqlglot.parse_one(self._filled([f'"${number}"' for _, _, number in self.places]), dialect="duckdb")
            for column in tree.find_all(exp.Column) if self.places else ():
                near = () if column.parent is None else column.parent.iter_expressions()
                names = [other.name.lower() for other in near if isinstance(other, exp.Column)]
                types = [columns[name] for name in names if name in columns]
                inferred |= {column.name: types[0]} if types else {}
        padded = [*declared, *[0] * max(0, self.parameters - len(declared))]
        return tuple(type_ or inferred.get(f"${number}", TEXT) for number, type_ in enumerate(padded, start=1))

    @property
    def names(self) -> list[str]:
        """The names of the columns that the text itself gives, where nothing else is known of them."""
        with suppress(SqlglotError, RecursionError), QUIET.silent():
            tree = sqlglot.parse_one(self._filled(["NULL"] * len(self.places)), dialect="duckdb")
            return list(tree.named_selects) if isinstance(tree, exp.Query) else []
        return []

    def _filled(self, texts: Sequence[str]) -> str:
        sql, pieces, last = self.statement.sql, list[str](), 0
        for (start, end, _), text in zip(self.places, texts, strict=True):
            pieces += [sql[last:start], f" {text} "]
            last = end
        return "".join([*pieces, sql[last:]])


def _literal(value: Parameter) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case date():
            return f"DATE '{value.isoformat()}'"
        case int() | float() | Decimal():
            return f"({format(Decimal(str(value)), 'f')})"
    if "\0" in value:
        raise InvalidParameter("a parameter holds a character that cannot be written.")
    return "'" + value.replace("'", "''") + "'"
