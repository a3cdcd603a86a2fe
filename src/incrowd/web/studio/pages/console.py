"""The query console: what may be asked, what a question costs before it is asked, the answer, and what was asked."""

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
from incrowd.queries.question import QueryTerms
from incrowd.web.studio.jobs import Job, Tell
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.web.studio.payments import paid, pay, payment_key
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.web.studio.sources import rows_state
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.query.answers import EVERYONE, Answers, StoredAnswer
from incrowd.workflows.query.request import REPEATED, UNASKED, coverage
from incrowd.workflows.query.service import QueryRequest, QueryService, open_desk

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


def show(asked: PageRequest) -> PageContent | Redirect:
    """Show what may be asked and was asked, the price of a question, or an answer."""
    file = asked.policy_file()
    policy = file.policy
    content: dict[str, Any] = {
        "able": policy.section.queries is not None,
        "name": policy.name,
        "question": {name: asked.value(name) for name in _FIELDS},
        "tables": [],
        "standing": None,
        "price": None,
        "problem": None,
        "unopened": False,
        "typing": bool(asked.value("live")),
        "key": None,
        "answer": None,
        "history": [],
    }
    if policy.section.queries is None:
        return PageContent(content, commands=_lines(asked, file.name))
    work = paid(asked, asked.value("paid")) if asked.value("paid") else None
    if (answered := result(work)) is not None:
        return asked.to("console", answer=answered.certificate.id)
    opening = _opening(asked, file)
    if opening.result is None:
        content["unopened"] = not opening.running
        return PageContent(content, commands=_lines(asked, file.name), job=foremost(work, opening))
    desk: QueryService = opening.result
    content |= {"tables": desk.schema()["tables"], "standing": desk.budget(None)[policy.name]}
    content["history"] = _history(desk.answers, policy)
    pictures = {}
    stored = desk.answers.named(asked.value("answer")) if asked.value("answer") else None
    if stored is not None and _about(stored, policy):
        answer = stored.answers[0]
        content["answer"] = _answer(answer, stored, again=bool(asked.value("again")))
        pictures["picture"] = _picture(answer)
    elif asked.value("sql") and (work is None or not work.running):
        content |= _priced(asked, desk, policy)
    return PageContent(content, pictures, _lines(asked, file.name), foremost(work))


def _opening(asked: PageRequest, file: PolicyFile) -> Job:
    """Open the desk of a policy once, while its rows are the same: they are marked for that, and not shown."""
    policy = file.policy

    def work(tell: Tell) -> QueryService:
        with open_desk([policy], progress=_Follower(tell)) as desk:
            return desk  # its rows are closed again: it tells prices, for which none is read

    key = f"desk {file.path} {policy.hash} {rows_state(policy)}"
    return asked.jobs.known(key) or asked.job(key, "Opening the table", work)


def again(asked: PageRequest) -> Redirect:
    """Open a table once more that could not be opened."""
    file = asked.policy_file()
    asked.jobs.forget(_opening(asked, file).key)
    return asked.to("console")


def _asking(asked: PageRequest) -> QueryRequest:
    """Return the question of a form."""

    def number(name: str) -> Fraction | None:
        return exact(asked.value(name), name) if asked.value(name) else None

    if not asked.value("sql"):
        raise InvalidParameter("write a question: one SELECT.")
    terms = QueryTerms(
        epsilon=number("epsilon"),
        delta=number("delta") or Fraction(0),
        error=number("error"),
        rate=number("rate"),
        rho=number("rho"),
    )
    return QueryRequest(asked.value("sql"), terms, asked.value("analyst") or None, asked.value("account") or None)


def _what(asked: PageRequest) -> str:
    return json.dumps([asked.value(name) for name in _FIELDS])


def _priced(asked: PageRequest, desk: QueryService, policy: Policy) -> dict[str, Any]:
    """Return what a question costs, or why it is not answered; no row is read for it."""
    try:
        found = desk.price(_asking(asked))
    except IncrowdError as problem:
        return {"problem": str(problem)}
    price = found.to_json() | {
        "costs": [list(line) for line in found.costs],
        "expected": [{"output": each.output, "words": each.words} for each in found.expected],
        "enough": all(left is not None for left in found.left.values()) or bool(asked.value("account")),
        "free": _free(asked, found.repeated),
        "unasked": UNASKED,
    }
    return {"price": price, "key": payment_key(policy, _what(asked))}


def _free(asked: PageRequest, repeated: bool) -> bool:
    """Whether nobody pays: what was asked before costs the dataset nothing, but the allowance of a named analyst."""
    return repeated and not asked.value("analyst")


def ask(asked: PageRequest) -> Redirect:
    """Ask: a new question after a typed confirmation, once; one that was answered for free again."""
    file = asked.policy_file()
    policy, asking = file.policy, _asking(asked)
    if asked.value("free"):
        with open_desk([policy]) as desk:
            if asking.analyst is not None or not desk.price(asking).repeated:
                raise Refused("this was not asked before: look at its price first. Nothing was spent.")
            answered = desk.ask(asking)
        return asked.to("console", answer=answered.certificate.id, again="1")

    def work(tell: Tell) -> Any:
        follower = _Follower(tell)
        with open_desk([policy], progress=follower) as desk:
            follower.end()
            return desk.ask(asking)

    pay(asked, policy, _what(asked), "QueryRequest", work)
    given = {name: asked.value(name) for name in _FIELDS if asked.value(name)}
    return asked.to("console", paid=asked.value("key"), **given)


def _about(stored: StoredAnswer, policy: Policy) -> bool:
    dataset = stored.certificate.dataset
    return policy.name in (dataset.name, *(dataset.together_with or ()))


def _text(stored: StoredAnswer) -> str:
    return "; ".join(stored.questions)


def _answer(answer: Answer, stored: StoredAnswer, *, again: bool) -> dict[str, Any]:
    header, lines, folded = answer.rendered
    accounting = stored.certificate.accounting
    several = [f"The first of {len(stored.answers)} answers that were paid for as one."] if stored.answers[1:] else []
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
    drawn = []
    for column in answer.columns:
        shown = _estimated(column, keys, places)
        if column.low is not None and shown:
            title = f"{column.name}, with 95 % intervals"
            drawn.append(tag("figure", error_bars(title, shown), tag("figcaption", title)))
    return joined(drawn)


def _estimated(column: AnswerColumn, keys: list[AnswerColumn], places: list[int]) -> list[IntervalEstimate]:
    if column.low is None or column.high is None:
        return []
    found = []
    for at in places:
        value, low, high = (part[at].as_py() for part in (column.values, column.low, column.high))
        name = ", ".join(str(key.values[at].as_py()) for key in keys) or column.name
        if isinstance(value, int | float):
            found.append(IntervalEstimate(name, float(value), low, high))
    return found


def _history(answers: Answers, policy: Policy) -> list[dict[str, Any]]:
    """Return what was asked of a dataset, the latest first: text, cost, answer with its interval, what was left."""
    stored = [each for each in answers.all() if _about(each, policy)][-_HISTORY:]
    found = []
    for each in reversed(stored):
        answer, accounting = each.answers[0], each.certificate.accounting
        _, lines, _ = answer.rendered
        first = " · ".join(lines[0]) if lines else "no group"
        found.append(
            {
                "id": each.certificate.id,
                "at": each.certificate.created.replace("T", " ")[:19],
                "question": _text(each),
                "asker": None if each.asker in ("", EVERYONE) else each.asker,
                "cost": {"epsilon": accounting.spent.epsilon, "delta": accounting.spent.delta},
                "left": None if accounting.left is None else vars(accounting.left),
                "first": first,
                "more": max(0, len(lines) - 1),
            }
        )
    return found


def _lines(asked: PageRequest, file: str) -> tuple[str, ...]:
    given = [
        word
        for name in (*_TERMS, "analyst", "account")
        if asked.value(name)
        for word in (f"--{name}", asked.value(name))
    ]
    words = ["incrowd", "query", asked.value("sql") or "SELECT …", "--policy", file, *given]
    return command(*words, "--price"), command(*words)


PAGE = Page(
    "console",
    "Query console",
    "Ask with SQL. The price stands there before anything is asked, and the answer comes with its intervals.",
    show,
    {"ask": ask, "again": again},
    needs=("policy",),
)
