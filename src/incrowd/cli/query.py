"""`incrowd query`: one private answer, or its price."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.options import EngineName, Json, Master, ReadingOptions, Remote, takes
from incrowd.cli.output import print_json, print_table
from incrowd.cli.progress import progress
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from fractions import Fraction

    from incrowd.core.table import Progress
    from incrowd.queries.answer import Answer
    from incrowd.queries.question import QueryTerms
    from incrowd.workflows.query.request import Answered, Priced
    from incrowd.workflows.query.service import QueryService


@dataclass(frozen=True)
class QueryOptions(ReadingOptions):
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
    verbose: Annotated[
        bool, typer.Option("--verbose", help="List groups of other and missing values that may be empty, too.")
    ] = False
    classical: Annotated[
        str | None,
        typer.Option(
            "--classical",
            metavar="HOW",
            help="For teaching, no guarantee: size-control=K, audited, perturbed-copy=WIDTH, random-sample=RATE.",
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
    from incrowd.queries.declarations import may_be_declaration
    from incrowd.queries.language.reading import is_explain
    from incrowd.workflows.query.publication import publish_answer
    from incrowd.workflows.query.service import Answered, Priced, QueryRequest
    from incrowd.workflows.release.deliver import Destination

    if (options.sql is None) == (options.batch is None):
        raise InvalidParameter("ask one question, or a file of them by --batch.")
    if options.classical is not None:
        return _answer_classically(options, options.classical)
    if options.batch is not None:
        return _answer_batch(options, options.batch)
    only_price, sql = is_explain(options.sql or "")
    if may_be_declaration(sql) and _answer_from_declarations(options, sql):
        return None
    asking = QueryRequest(sql, terms_of(options), options.analyst, options.account)
    with progress(not options.json) as tell, _desk(options, tell) as desk:
        if options.price or only_price:
            found: Priced | Answered = desk.price(asking)
        else:
            _check_folder(options)
            found = desk.ask(asking)
    if options.out is not None and isinstance(found, Answered):
        publish_answer(found, desk.ledger, Destination(options.out, options.form))
    if options.json:
        return print_json(found.to_json())
    return show_price(found) if isinstance(found, Priced) else show_answer(found, options)


def _answer_from_declarations(options: QueryOptions, sql: str) -> bool:
    """Answer SHOW TABLES and the like, and say whether it was one; they cost nothing."""
    from incrowd.queries.declarations import declaration_answer

    with progress(not options.json) as tell, _desk(options, tell) as desk:
        found = declaration_answer(sql, desk.schema())
    if found is not None and options.json:
        print_json(found.to_json())
    elif found is not None:
        rows = [tuple("" if value is None else str(value) for value in row) for row in found.rows]
        print_table("as declared", rows, "No row was read, and nothing was spent.", found.names)
    return found is not None


def _answer_batch(options: QueryOptions, file: Path) -> None:
    """Answer the questions of a file, which are separated by semicolons, for one charge."""
    from incrowd.queries.language.reading import split_questions
    from incrowd.workflows.query.publication import publish_answer
    from incrowd.workflows.query.request import REPEATED
    from incrowd.workflows.query.service import AnsweredTogether, AskingTogether, Priced
    from incrowd.workflows.release.deliver import Destination

    if options.account is not None:
        raise InvalidParameter("a batch is paid by epsilon: leave --account out.")
    _check_folder(options)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(f"{file} cannot be read as UTF-8 text: name a file of questions.") from None
    asking = AskingTogether(split_questions(text), terms_of(options), options.analyst)
    with progress(not options.json) as tell, _desk(options, tell) as desk:
        found: Priced | AnsweredTogether = desk.price_batch(asking) if options.price else desk.ask_batch(asking)
    if options.out is not None and isinstance(found, AnsweredTogether):
        publish_answer(found, desk.ledger, Destination(options.out, options.form))
    if options.json:
        return print_json(found.to_json())
    if isinstance(found, Priced):
        return show_price(found)
    for number, answer in enumerate(found.answers, start=1):
        _print_answer(f"answer {number}", answer, verbose=options.verbose)
    certificate = found.certificate.id if options.out is None else str(options.out / "certificate.json")
    return print_table("cost of all", [*found.costs, ("certificate", certificate)], REPEATED if found.repeated else "")


def _answer_classically(options: QueryOptions, how: str) -> None:
    """Answer one question in a way that was tried before differential privacy, and say what breaks it."""
    from incrowd.drawing.answer import number
    from incrowd.queries.classical_answers import protection_of
    from incrowd.workflows.query.classical import ask_classical

    paying = (options.epsilon, options.error, options.rate, options.rho, options.account, options.analyst, options.out)
    if options.sql is None or options.price or any(each is not None for each in paying):
        raise InvalidParameter(
            "a classical answer has no price, no analyst and no certificate: give its question alone."
        )
    protection = protection_of(how)
    with progress(not options.json) as tell, _desk(options, tell) as desk:
        answer = ask_classical(desk, options.sql, protection)
    if options.json:
        return print_json(answer.to_json())
    lines = [("answer", "–" if answer.value is None else number(answer.value)), ("protection", how)]
    lines += [("after", answer.source), ("broken by", answer.broken_by)]
    return print_table("classical answer", lines, "It guarantees nothing: for teaching and comparison only.")


def _desk(options: QueryOptions, tell: Progress | None) -> AbstractContextManager[QueryService]:
    from incrowd.engines.settings import override
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import read_as
    from incrowd.workflows.query.service import open_desk

    policy = read_as(load_policy(options.policy), options.told)
    settings = override(policy.engine, options.engine, options.master, options.remote)
    return open_desk([policy], options.data, settings=settings, progress=tell)


def terms_of(options: QueryOptions) -> QueryTerms:
    """Return what the asker pays, as exact numbers."""
    from incrowd.core.rounding import exact
    from incrowd.queries.question import QueryTerms

    def number(text: str | None, name: str) -> Fraction | None:
        return None if text is None else exact(text, name)

    return QueryTerms(
        epsilon=number(options.epsilon, "epsilon"),
        delta=exact(options.delta, "delta"),
        error=number(options.error, "error"),
        rate=number(options.rate, "rate"),
        rho=number(options.rho, "rho"),
    )


def show_price(priced: Priced) -> None:
    """Print what a question costs, how far off its numbers would be, and how it is read."""
    from incrowd.workflows.query.request import UNASKED

    print_table("price", [("question", priced.question), *priced.costs])
    expected = [(each.output, each.words) for each in priced.expected]
    note = " ".join((*priced.notes, UNASKED))
    print_table("expected, for 95 % of the answers", expected or [("nothing", "")], note)


def show_answer(answered: Answered, options: QueryOptions) -> None:
    """Print the answer with its intervals, then what it cost."""
    from incrowd.workflows.query.request import REPEATED, coverage

    _print_answer("answer", answered.answer, verbose=options.verbose)
    certificate = answered.certificate.id if options.out is None else str(options.out / "certificate.json")
    note = REPEATED if answered.repeated else coverage(answered.answer)
    print_table("cost", [*answered.costs, ("certificate", certificate)], note)


def _print_answer(title: str, answer: Answer, *, verbose: bool) -> None:
    """Print the rows of an answer, and below them what is to be known about columns and about all numbers."""
    from dataclasses import replace

    from incrowd.drawing.answer import UNDECLARED

    header, lines, folded = (replace(answer, undeclared=()) if verbose else answer).rendered
    notes = [f"{UNDECLARED} --verbose lists them."] if folded else []
    print_table(title, lines or [("",) * len(header)], "\n".join((*notes, *answer.notes)), header=header)


def _check_folder(options: QueryOptions) -> None:
    if options.out is not None and options.out.exists():
        raise InvalidParameter(f"{options.out} is there already: name a new folder.")
    if options.form not in ("csv", "tsv", "parquet"):
        raise InvalidParameter(f"answers are written as csv, tsv or parquet, not {options.form!r}.")
