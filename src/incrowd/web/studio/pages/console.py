"""The query console: tables, cost estimates, answers and their history."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from markupsafe import Markup

from incrowd.core.rounding import exact
from incrowd.drawing.answer import UNDECLARED
from incrowd.drawing.charts import IntervalEstimate, error_bars
from incrowd.drawing.markup import joined, tag
from incrowd.errors import IncrowdError, InvalidParameter, Refused
from incrowd.queries.answer import Answer, AnswerColumn
from incrowd.queries.query import QueryTerms
from incrowd.web.studio.jobs import Job, Tell
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.web.studio.payments import paid, pay, payment_key
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.web.studio.rows import rows_state
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.query.answers import EVERYONE, Answers, StoredAnswer
from incrowd.workflows.query.request import REPEATED, UNASKED, QueryRequest, coverage
from incrowd.workflows.query.service import QueryService, open_queries

_TERMS = ("epsilon", "delta", "error", "rate", "rho")
_FIELDS = ("sql", *_TERMS, "analyst", "account")
_HISTORY, _DRAWN = 50, 30


@dataclass
class _Follower:
    """Tells how far reading is until a desk is open; after that nothing can be stopped, since it may be paid for."""

    tell: Callable[[int, int | None], None]

    def __call__(self, done: int, total: int | None) -> None:
        self.tell(done, total)

    def end(self) -> None:
        self.tell = lambda _done, _total: None


def show(request: PageRequest) -> PageContent | Redirect:
    """Show what may be asked and was asked, the price of a query, or an answer."""
    file = request.policy_file()
    policy = file.policy
    content: dict[str, Any] = {
        "able": policy.section.queries is not None,
        "name": policy.name,
        "question": {name: request.value(name) for name in _FIELDS},
        "tables": [],
        "standing": None,
        "price": None,
        "problem": None,
        "unopened": False,
        "typing": bool(request.value("live")),
        "key": None,
        "answer": None,
        "history": [],
    }
    if policy.section.queries is None:
        return PageContent(content, commands=_lines(request, file.name))
    work = paid(request, request.value("paid")) if request.value("paid") else None
    if (answered := result(work)) is not None:
        return request.to("console", answer=answered.certificate.id)
    opening = _opening(request, file)
    if opening.result is None:
        content["unopened"] = not opening.running
        return PageContent(content, commands=_lines(request, file.name), job=foremost(work, opening))
    service: QueryService = opening.result
    answers = service.history.answers
    content |= {"tables": service.schema()["tables"], "standing": service.budgets.report(None)[policy.name]}
    content["history"] = _history(answers, policy)
    pictures = {}
    stored = answers.named(request.value("answer")) if request.value("answer") else None
    if stored is not None and _about(stored, policy):
        answer = stored.answers[0]
        content["answer"] = _answer(answer, stored, again=bool(request.value("again")))
        pictures["picture"] = _picture(answer)
    elif request.value("sql") and (work is None or not work.running):
        content |= _priced(request, service, policy)
    return PageContent(content, pictures, _lines(request, file.name), foremost(work))


def _opening(request: PageRequest, file: PolicyFile) -> Job:
    """Open the desk of a policy once, while its rows are the same: they are marked for that, and not shown."""
    policy = file.policy

    def work(tell: Tell) -> QueryService:
        with open_queries([policy], progress=_Follower(tell)) as service:
            return service  # its rows are closed again: it tells prices, for which none is read

    key = f"desk {file.path} {policy.hash} {rows_state(policy)}"
    return request.jobs.find(key) or request.job(key, "Opening the table", work)


def again(request: PageRequest) -> Redirect:
    """Open a table once more that could not be opened."""
    file = request.policy_file()
    request.jobs.forget(_opening(request, file).key)
    return request.to("console")


def _asking(request: PageRequest) -> QueryRequest:
    """Return the query of a form."""

    def number(name: str) -> Fraction | None:
        return exact(request.value(name), name) if request.value(name) else None

    if not request.value("sql"):
        raise InvalidParameter("write a query: one SELECT.")
    terms = QueryTerms(
        epsilon=number("epsilon"),
        delta=number("delta") or Fraction(0),
        error=number("error"),
        rate=number("rate"),
        rho=number("rho"),
    )
    return QueryRequest(request.value("sql"), terms, request.value("analyst") or None, request.value("account") or None)


def _what(request: PageRequest) -> str:
    return json.dumps([request.value(name) for name in _FIELDS])


def _priced(request: PageRequest, service: QueryService, policy: Policy) -> dict[str, Any]:
    """Return what a query costs, or why it is not answered; no row is read for it."""
    try:
        if service.public_price(request.value("sql")) is not None:
            return {"problem": "this reads no private table: `incrowd query` answers it at no cost."}
        estimate = service.price(_asking(request))
    except IncrowdError as problem:
        return {"problem": str(problem)}
    price = estimate.to_json() | {
        "costs": [list(line) for line in estimate.costs],
        "expected": [{"output": output.output, "words": output.words} for output in estimate.expected],
        "enough": all(left is not None for left in estimate.left.values()) or bool(request.value("account")),
        "free": _free(request, estimate.repeated),
        "unasked": UNASKED,
    }
    return {"price": price, "key": payment_key(policy, _what(request))}


def _free(request: PageRequest, repeated: bool) -> bool:
    """Whether nobody pays: what was asked before costs the dataset nothing, but the allowance of a named analyst."""
    return repeated and not request.value("analyst")


def ask(request: PageRequest) -> Redirect:
    """Ask: a new query after a typed confirmation, once; one that was answered for free again."""
    file = request.policy_file()
    policy, asking = file.policy, _asking(request)
    if request.value("free"):
        with open_queries([policy]) as service:
            if asking.analyst is not None or not service.price(asking).repeated:
                raise Refused("this query is new: check its cost estimate first. Nothing was spent.")
            answered = service.ask(asking)
        return request.to("console", answer=answered.certificate.id, again="1")

    def work(tell: Tell) -> Any:
        follower = _Follower(tell)
        with open_queries([policy], progress=follower) as service:
            follower.end()
            return service.ask(asking)

    pay(request, policy, _what(request), "Running the query", work)
    parameters = {name: request.value(name) for name in _FIELDS if request.value(name)}
    return request.to("console", paid=request.value("key"), **parameters)


def _about(stored: StoredAnswer, policy: Policy) -> bool:
    dataset = stored.certificate.dataset
    return policy.name in (dataset.name, *(dataset.together_with or ()))


def _text(stored: StoredAnswer) -> str:
    return "; ".join(stored.questions)


def _answer(answer: Answer, stored: StoredAnswer, *, again: bool) -> dict[str, Any]:
    header, lines, folded = answer.rendered
    accounting = stored.certificate.accounting
    several = [f"The first of {len(stored.answers)} answers of one batch."] if stored.answers[1:] else []
    last = REPEATED if again else coverage(answer)
    notes = [*several, *([UNDECLARED] if folded else []), *answer.notes, *([last] if last else [])]
    return {
        "id": stored.certificate.id,
        "question": _text(stored),
        "header": list(header),
        "lines": [list(line) for line in lines],
        "notes": notes,
        "plain": answer.to_json(),
        "guarantee": stored.certificate.claims[0].sentence,
        "cost": {"epsilon": accounting.spent.epsilon, "delta": accounting.spent.delta},
        "left": None if accounting.left is None else vars(accounting.left),
    }


def _picture(answer: Answer) -> Markup:
    """Return a picture for each column of noisy numbers that has intervals; the table beside it has them all."""
    keys = [column for column in answer.columns if column.low is None and not column.note]
    places = [at for at in range(answer.table.num_rows) if at not in set(answer.undeclared)][:_DRAWN]
    figures = []
    for column in answer.columns:
        estimates = _estimated(column, keys, places)
        if column.low is not None and estimates:
            title = f"{column.name}, with 95 % intervals"
            figures.append(tag("figure", error_bars(title, estimates), tag("figcaption", title)))
    return joined(figures)


def _estimated(column: AnswerColumn, keys: list[AnswerColumn], places: list[int]) -> list[IntervalEstimate]:
    if column.low is None or column.high is None:
        return []
    estimates = []
    for at in places:
        value, low, high = (part[at].as_py() for part in (column.values, column.low, column.high))
        name = ", ".join(str(key.values[at].as_py()) for key in keys) or column.name
        if isinstance(value, int | float):
            estimates.append(IntervalEstimate(name, float(value), low, high))
    return estimates


def _history(answers: Answers, policy: Policy) -> list[dict[str, Any]]:
    """Return what was asked of a dataset, the latest first: text, cost, answer with its interval, what was left."""
    stored = [answer for answer in answers.all() if _about(answer, policy)][-_HISTORY:]
    entries = []
    for entry in reversed(stored):
        answer, accounting = entry.answers[0], entry.certificate.accounting
        _, lines, _ = answer.rendered
        first = " · ".join(lines[0]) if lines else "no group"
        entries.append(
            {
                "id": entry.certificate.id,
                "at": entry.certificate.created.replace("T", " ")[:19],
                "question": _text(entry),
                "analyst": None if entry.asker in ("", EVERYONE) else entry.asker,
                "cost": {"epsilon": accounting.spent.epsilon, "delta": accounting.spent.delta},
                "left": None if accounting.left is None else vars(accounting.left),
                "first": first,
                "more": max(0, len(lines) - 1),
            }
        )
    return entries


def _lines(request: PageRequest, file: str) -> tuple[str, ...]:
    options = [
        word
        for name in (*_TERMS, "analyst", "account")
        if request.value(name)
        for word in (f"--{name}", request.value(name))
    ]
    words = ["incrowd", "query", request.value("sql") or "SELECT …", "--policy", file, *options]
    return command(*words, "--price"), command(*words)


PAGE = Page(
    "console",
    "Query console",
    "Query with SQL. You see the cost estimate first; the answer has confidence intervals.",
    show,
    {"ask": ask, "again": again},
    needs=("policy",),
)
