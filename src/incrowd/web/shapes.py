"""Shapes: the fields of requests and replies, from which the OpenAPI description is generated."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    WithJsonSchema,
)

from incrowd.core.rounding import exact
from incrowd.errors import InvalidParameter
from incrowd.governance.grant import AccessRole

_DECIMAL = r"^([0-9]{1,20}(\.[0-9]{1,40})?([eE]-?[0-9]{1,3})?|[0-9]{1,20}/[1-9][0-9]{0,19})$"


_SIGNED = r"^-?[0-9]{1,320}(\.[0-9]{1,40})?$"
_BITS = 512  # of a fraction in a request: its arithmetic stays cheap
MOST_QUESTIONS = 1000
"""The most queries of a batch."""
_WORDS = {
    400: "The request cannot be read or names unknown things.",
    401: "No token, or one that does not work.",
    403: "The token does not allow this.",
    404: "There is no such thing.",
    408: "The request did not arrive in time.",
    413: "The request is too large.",
    422: "The request is valid but refused: not allowed, or beyond the budget.",
    429: "Too many requests.",
    500: "The server had a fault.",
    503: "The server cannot work now.",
    504: "The answer took too long; its cost is not refunded, and it is stored when it is ready.",
}


def _number(value: Any) -> Fraction:
    if isinstance(value, str) and not re.fullmatch(_DECIMAL, value):
        raise ValueError("write a number such as 0.1, 1e-6 or 1/3, in plain digits")
    try:
        number = exact(value)
    except InvalidParameter as error:
        raise ValueError(str(error)) from None
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _BITS:
        raise ValueError("this number is too large, too small or too long")
    return number


def _writable(text: str) -> str:
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("this text holds characters that cannot be written")
    return text


Text = Annotated[str, AfterValidator(_writable), Field(json_schema_extra={"pattern": r"^[^\u0000]*$"})]


def _digits(value: Any) -> Any:
    if isinstance(value, str) and not re.fullmatch("[0-9]{1,20}", value):
        raise ValueError("write a whole number in plain digits")
    return value


PLAIN = BeforeValidator(_digits)
"""Lets a whole number of an address be in plain digits alone; it comes last, so that limits are in the description."""


Amount = Annotated[
    Fraction,
    BeforeValidator(_number),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": _DECIMAL}]}),
]
Positive = Annotated[
    Amount,
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "allOf": [{"pattern": _DECIMAL}, {"pattern": "^[0.]*[1-9]"}]},
            ]
        }
    ),
]
"""An amount above 0; the planner says so of others."""


class Shape(BaseModel):
    """A request: nothing unknown in it."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class NumberShape(Shape):
    """A number as it is written, so that it arrives exactly."""

    number: Annotated[str, Field(pattern=_SIGNED, max_length=400)]


class DateShape(Shape):
    """A day."""

    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("a parameter is a finite number")
    return value


Finite = Annotated[float, AfterValidator(_finite), WithJsonSchema({"type": "number"})]
ParameterShape = (
    StrictBool | StrictInt | Finite | Annotated[Text, Field(max_length=1000)] | NumberShape | DateShape | None
)


class StatementShape(Shape):
    """A query: a statement, and values for its question marks."""

    sql: Text = Field(min_length=1, max_length=20_000, description="One SELECT statement.")
    parameters: list[ParameterShape] | None = Field(
        None, max_length=200, description="Values for the question marks: plain, or {number: …}, or {date: …}."
    )


_PAYMENTS = ("epsilon", "error", "rho")


def _only(name: str) -> dict[str, Any]:
    """Return the schema of a request that pays in one way."""
    others = {other: {"type": "null"} for other in _PAYMENTS if other != name}
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}, **others}}


class QueryShape(StatementShape):
    """A query and what is paid for it: ε (and δ), or the error that is accepted, or ρ from an account."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [_only(name) for name in _PAYMENTS]})

    epsilon: Positive | None = Field(None, description="The ε to pay; a number, or text such as 1/3.")
    delta: Amount | None = Field(None, description="The δ to pay; groups whose keys are private need one.")
    error: Positive | None = Field(None, description="Instead of ε: the 95 % half-width of every count and sum.")
    rate: Positive | None = Field(None, description="Answer from a secret sample of this rate.")
    rho: Positive | None = Field(None, description="Instead of ε: the ρ to pay from a zero-concentrated account.")
    account: Text | None = Field(None, min_length=1, max_length=100, description="The account that ρ is taken from.")


class BatchShape(Shape):
    """Several queries about one dataset, planned together, and what is paid for all of them: ε, and δ."""

    questions: list[StatementShape] = Field(min_length=1, max_length=MOST_QUESTIONS, description="The queries.")
    epsilon: Positive = Field(description="The ε to pay for all of them; a number, or text such as 1/3.")
    delta: Amount | None = Field(None, description="The δ to pay for all of them; it makes many queries more accurate.")


class AdmittedShape(Shape):
    """A token to be made."""

    holder: Text = Field(
        min_length=1, max_length=64, description="Whose token; the ledger knows analysts by this name."
    )
    role: AccessRole
    datasets: list[Text] | None = Field(None, max_length=100, description="The datasets it is for; all if left out.")
    days: StrictInt = Field(90, ge=1, le=366, description="For how many days it works.")
    why: Text = Field(min_length=1, max_length=500, description="The reason, stored in the access list.")


class RotatedShape(Shape):
    """A token to be replaced by a new one."""

    days: StrictInt = Field(90, ge=1, le=366)
    why: Text = Field(min_length=1, max_length=500)


class LoginShape(Shape):
    """A name and a password."""

    name: Text = Field(min_length=1, max_length=64)
    password: Text = Field(min_length=1, max_length=1024)


class ErrorShape(BaseModel):
    """What went wrong, and what to do."""

    error: str
    kind: str = Field(description="The class of `incrowd.errors`.")


class TokenShape(BaseModel):
    """A token that was given out, without the token."""

    id: str
    holder: str
    role: AccessRole
    datasets: list[str] | None
    until: str
    session: bool
    revoked: bool


class IssuedShape(BaseModel):
    """A new token; it is shown this once."""

    token: str
    grant: TokenShape


class SessionShape(BaseModel):
    """The user who is logged in, and the CSRF token that pages send with every change."""

    holder: str
    role: AccessRole
    datasets: list[str] | None
    mark: str | None


class EventShape(BaseModel):
    """One entry of the audit log."""

    sequence: int
    at: str
    hash: str
    action: str
    outcome: str
    holder: str | None
    grant: str | None
    about: dict[str, Any]


class LogShape(BaseModel):
    """A page of the audit log; go on after the last sequence number."""

    events: list[EventShape]


class BudgetShape(BaseModel):
    """What remains of each dataset."""

    datasets: dict[str, Any]


class PastQueryShape(BaseModel):
    """A query, or a batch paid for as one: when, for how much, and its stored answer."""

    number: int = Field(description="The number of the payment in the ledger.")
    id: str = Field(description="The release: of its certificate and of its answer.")
    at: str
    questions: list[str] = Field(description="The texts as they were understood; none without a stored answer.")
    columns: list[str] = Field(description="What was released; …_low and …_high are the ends of intervals.")
    cost: dict[str, dict[str, str]] = Field(description="What was paid of each dataset.")
    spent: dict[str, dict[str, str]] = Field(description="What the caller had spent of each dataset right after it.")
    left: dict[str, str] | None = Field(description="What was left of the first dataset right after it.")
    own: bool = Field(description="Whether the caller asked it.")
    repeated: bool = Field(description="Whether another user had asked the same before.")
    state: str


class HistoryShape(BaseModel):
    """Past queries, the latest first, and what remains now."""

    history: list[PastQueryShape]
    next: int | None = Field(description="The next page is that `before` this number; null at the end.")
    datasets: dict[str, Any]


class ReleasesShape(BaseModel):
    """The releases so far."""

    releases: list[dict[str, Any]]


class HealthShape(BaseModel):
    """Whether the server works."""

    status: str


def failures(*more: int) -> dict[int | str, dict[str, Any]]:
    """Return the errors of a protected route, and more.

    >>> sorted(failures(404))
    [400, 401, 403, 404, 408, 413, 429, 500, 503]
    """
    usual = {400, 401, 403, 408, 413, 429, 500, 503}
    return {status: {"model": ErrorShape, "description": _WORDS[status]} for status in sorted(usual | set(more))}
