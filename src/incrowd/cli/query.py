"""`incrowd query`: one private answer, or its price."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import EngineName, Json, Master, Remote, takes
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from fractions import Fraction

    from incrowd.accounting.budget import Amount
    from incrowd.queries.answer import Answer
    from incrowd.queries.measuring.columns import Expected
    from incrowd.queries.question import Terms
    from incrowd.workflows.ask.asking import Answered, Priced
    from incrowd.workflows.ask.desk import Desk

_ALIKE = 0.01
_EXPLAIN = "Nothing was asked and nothing was spent."


@dataclass(frozen=True)
class QueryOptions:
    """What `incrowd query` takes."""

    policy: Annotated[Path, typer.Option("--policy", help="The policy file; it has queries: and a budget:.")]
    sql: Annotated[str | None, typer.Argument(help="The question: one SELECT.")] = None
    data: Annotated[str | None, typer.Option("--data", help="The main table; by default the policy's source.")] = None
    epsilon: Annotated[str | None, typer.Option("--epsilon", metavar="NUMBER", help="What the answer may cost.")] = None
    delta: Annotated[str, typer.Option("--delta", metavar="NUMBER", help="Needed where groups are not declared.")] = "0"
    error: Annotated[
        str | None,
        typer.Option(
            "--error", metavar="NUMBER", help="Instead of epsilon: how far off 95 % of counts and sums may be."
        ),
    ] = None
    rate: Annotated[str | None, typer.Option("--rate", metavar="SHARE", help="Ask a fresh secret sample.")] = None
    analyst: Annotated[str | None, typer.Option("--analyst", help="Who asks; by default the answer is for all.")] = None
    account: Annotated[
        str | None, typer.Option("--account", help="Pay with rho from this account, see incrowd ledger carve.")
    ] = None
    rho: Annotated[str | None, typer.Option("--rho", metavar="NUMBER", help="What to pay from the account.")] = None
    price: Annotated[bool, typer.Option("--price", help="Say what it costs and how far off it would be, no more.")] = (
        False
    )
    batch: Annotated[
        Path | None, typer.Option("--batch", help="A file of questions, separated by semicolons, charged as one.")
    ] = None
    out: Annotated[
        Path | None, typer.Option("--out", help="A new folder for answer, certificate and report, to be passed on.")
    ] = None
    form: Annotated[str, typer.Option("--format", help="csv, tsv or parquet, in the folder.")] = "csv"
    classical: Annotated[
        str | None,
        typer.Option(
            "--classical",
            metavar="HOW",
            help="For teaching, without a promise: size-control=K, audited, perturbed-copy=WIDTH, random-sample=RATE.",
        ),
    ] = None
    engine: EngineName = None
    master: Master = None
    remote: Remote = None
    json: Json = False


@takes(QueryOptions)
def query(options: QueryOptions) -> None:
    """Answer one SQL question privately, within the policy's budget.

    The answer carries noise. Counts, sums, means and variances have a 95 % interval; medians, other quantiles and modes
    have none, nor have variances and some sums under --rate, and beside each of these it is said what is known instead.
    What is asked is charged before a row is read; the same question again gets the same answer and costs the dataset
    nothing.
    """
    from incrowd.queries.language.reading import is_explain
    from incrowd.workflows.ask.desk import Asking

    if (options.sql is None) == (options.batch is None):
        raise InvalidParameter("ask one question, or a file of them by --batch.")
    if options.classical is not None:
        return _answer_classically(options, options.classical)
    if options.batch is not None:
        return _answer_batch(options, options.batch)
    only_price, sql = is_explain(options.sql or "")
    with _desk(options) as desk:
        asking = Asking(sql, terms_of(options), options.analyst, options.account)
        if options.price or only_price:
            priced = desk.price(asking)
            return print_json(priced.to_json()) if options.json else show_price(priced)
        _check_folder(options)
        answered = desk.ask(asking)
    if options.out is not None:
        from incrowd.workflows.ask.desk import publish_answer
        from incrowd.workflows.release.publish import Destination

        publish_answer(answered, desk.ledger, Destination(options.out, options.form))
    return print_json(answered.to_json()) if options.json else show_answer(answered, options.out)


def _answer_batch(options: QueryOptions, file: Path) -> None:
    """Answer the questions of a file, which are separated by semicolons, for one charge."""
    from incrowd.queries.language.reading import split_questions
    from incrowd.workflows.ask.desk import AskingTogether

    if options.out is not None or options.account is not None:
        raise InvalidParameter("a batch is printed and paid by epsilon: leave --out and --account out.")
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(f"{file} cannot be read as UTF-8 text: name a file of questions.") from None
    with _desk(options) as desk:
        asking = AskingTogether(split_questions(text), terms_of(options), options.analyst)
        if options.price:
            priced = desk.price_batch(asking)
            return print_json(priced.to_json()) if options.json else show_price(priced)
        answered = desk.ask_batch(asking)
    if options.json:
        return print_json(answered.to_json())
    for number, answer in enumerate(answered.answers, start=1):
        _print_answer(f"answer {number}", answer)
    promise = ("promise", answered.certificate.claims[0].kind)
    return print_table("cost of all", [*_costs(answered.cost, answered.left), promise])


def _answer_classically(options: QueryOptions, how: str) -> None:
    """Answer one question in a way that was tried before differential privacy, and say what breaks it."""
    from incrowd.queries.classical.protections import protection_of
    from incrowd.workflows.ask.classical import ask_classical

    paying = (options.epsilon, options.error, options.rate, options.rho, options.account, options.analyst, options.out)
    if options.sql is None or options.price or any(each is not None for each in paying):
        raise InvalidParameter(
            "a classical answer has no price, no analyst and no certificate: give its question alone."
        )
    protection = protection_of(how)
    with _desk(options) as desk:
        answer = ask_classical(desk, options.sql, protection)
    if options.json:
        return print_json(answer.to_json())
    lines = [("answer", "–" if answer.value is None else _number(answer.value)), ("protection", how)]
    lines += [("after", answer.source), ("broken by", answer.broken_by)]
    return print_table("classical answer", lines, "It promises nothing: for teaching and comparison only.")


def _desk(options: QueryOptions) -> AbstractContextManager[Desk]:
    from incrowd.engines.settings import override
    from incrowd.workflows.ask.desk import open_desk
    from incrowd.workflows.policy.policy import load_policy

    policy = load_policy(options.policy)
    settings = override(policy.engine, options.engine, options.master, options.remote)
    return open_desk([policy], options.data, settings=settings)


def terms_of(options: QueryOptions) -> Terms:
    """Return what the asker pays, as exact numbers."""
    from incrowd.core.rounding import exact
    from incrowd.queries.question import Terms

    def number(text: str | None, name: str) -> Fraction | None:
        return None if text is None else exact(text, name)

    return Terms(
        epsilon=number(options.epsilon, "epsilon"),
        delta=exact(options.delta, "delta"),
        error=number(options.error, "error"),
        rate=number(options.rate, "rate"),
        rho=number(options.rho, "rho"),
    )


def show_price(priced: Priced) -> None:
    """Print what a question costs, how far off its numbers would be, and how it is read."""
    lines = [("question", priced.question), *_costs(priced.cost, priced.left)]
    if priced.repeated:
        lines.append(("asked before", "yes: the same answer again, at no cost to the dataset"))
    print_table("price", lines)
    print_table(
        "expected, for 95 % of the answers",
        [(each.output, _accuracy(each)) for each in priced.expected] or [("nothing", "")],
        " ".join((*priced.notes, _EXPLAIN)),
    )


def show_answer(answered: Answered, out: Path | None) -> None:
    """Print the answer with its intervals, then what it cost."""
    _print_answer("answer", answered.answer)
    costs = [
        *_costs(answered.cost, answered.left),
        ("promise", answered.certificate.claims[0].kind),
        ("certificate", answered.certificate.id if out is None else str(out / "certificate.json")),
    ]
    note = "Asked before: the same answer, at no cost to the dataset." if answered.repeated else ""
    print_table("cost", costs, note or "True numbers lie in their intervals in 95 of 100 answers.")


def _print_answer(title: str, answer: Answer) -> None:
    """Print the rows of an answer, and below them what is to be known about columns and about all numbers."""
    header, lines = _lines(answer)
    notes = [f"{column.name}: {column.note}." for column in answer.columns if column.note]
    notes += [answer.note] if answer.note else []
    print_table(title, lines or [("",) * len(header)], "\n".join(notes), header=header)


def _lines(answer: Answer) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the header and the rows: each number as the middle of its interval, "1,234 ± 5" where it is one."""
    header = tuple(column.name for column in answer.columns)
    columns = []
    for column in answer.columns:
        ends = (column.low, column.high)
        lows, highs = ([None] * len(column.values) if end is None else end.to_pylist() for end in ends)
        cells = list(map(_cell, column.values.to_pylist(), lows, highs))
        open_ = [column.low is not None and low is None and cell != "–" for cell, low in zip(cells, lows, strict=True)]
        columns.append([f"{cell} (no interval)" if each else cell for cell, each in zip(cells, open_, strict=True)])
    return header, list(zip(*columns, strict=True))


def _cell(value: object, low: float | None, high: float | None) -> str:
    if value is None:
        return "–"
    if not isinstance(value, int | float) or isinstance(value, bool) or low is None or high is None:
        return _number(value) if type(value) in (int, float) else str(value)
    below, above = value - low, high - value
    if abs(below - above) <= _ALIKE * max(below, above):
        return f"{_number(value)} ± {max(below, above):,.3g}"
    return f"{_number(value)} ({low:,.5g} to {high:,.5g})"


def _number(value: object) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"


def _accuracy(expected: Expected) -> str:
    from incrowd.queries.measuring.columns import TYPICAL

    if expected.half_width is not None:
        return " ".join(filter(None, (f"± {expected.half_width:,.6g}", expected.note)))
    sizes = _sizes(expected.by_size)
    if expected.typical:
        sizes = f"at worst {sizes}. Typically ({TYPICAL}) {_sizes(expected.typical)}"
    return ". ".join(filter(None, (sizes, expected.note)))


def _sizes(pairs: tuple[tuple[int, float], ...]) -> str:
    return "; ".join(f"± {width:,.4g} in a group of {size:,}" for size, width in pairs)


def _costs(cost: Amount, left: Mapping[str, Amount | None]) -> list[tuple[str, str]]:
    from incrowd.accounting.budget import shown_down, shown_up

    lines = [("costs", f"epsilon {shown_up(cost.epsilon)}, delta {shown_up(cost.delta)}")]
    for dataset, amount in left.items():
        told = (
            "not enough"
            if amount is None
            else f"epsilon {shown_down(amount.epsilon)}, delta {shown_down(amount.delta)}"
        )
        lines.append((f"left of {dataset}", told))
    return lines


def _check_folder(options: QueryOptions) -> None:
    if options.out is not None and options.out.exists():
        raise InvalidParameter(f"{options.out} is there already: name a new folder.")
    if options.form not in ("csv", "tsv", "parquet"):
        raise InvalidParameter(f"answers are written as csv, tsv or parquet, not {options.form!r}.")
