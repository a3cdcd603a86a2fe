"""`incrowd query`: one private answer, or its cost estimate."""

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
    from incrowd.queries.declarations import DeclarationAnswer
    from incrowd.queries.query import QueryTerms
    from incrowd.workflows.query.request import CostEstimate, QueryAnswer
    from incrowd.workflows.query.service import QueryService


@dataclass(frozen=True)
class QueryOptions(ReadingOptions):
    """The options of `incrowd query`."""

    policy: Annotated[Path, typer.Option("--policy", help="The policy file, with queries: and budget:.")]
    sql: Annotated[str | None, typer.Argument(help="The query: one SELECT.")] = None
    data: Annotated[str | None, typer.Option("--data", help="The main table; by default the policy's source.")] = None
    epsilon: Annotated[str | None, typer.Option("--epsilon", metavar="NUMBER", help="ε of the answer.")] = None
    delta: Annotated[
        str, typer.Option("--delta", metavar="NUMBER", help="δ of the answer; needed if groups are not declared.")
    ] = "0"
    error: Annotated[
        str | None,
        typer.Option("--error", metavar="NUMBER", help="Instead of epsilon: 95 % error bound of counts and sums."),
    ] = None
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="SHARE", help="Sampling rate of a fresh secret sample.")
    ] = None
    analyst: Annotated[
        str | None,
        typer.Option("--analyst", help="Charge this analyst's allowance; default: the answer is for everyone."),
    ] = None
    account: Annotated[
        str | None, typer.Option("--account", help="Charge rho to this account, see incrowd ledger carve.")
    ] = None
    rho: Annotated[str | None, typer.Option("--rho", metavar="NUMBER", help="ρ to charge to the account.")] = None
    price: Annotated[bool, typer.Option("--price", help="Show only the cost estimate and expected error.")] = False
    batch: Annotated[
        Path | None, typer.Option("--batch", help="A file of queries, separated by semicolons, with one charge.")
    ] = None
    out: Annotated[Path | None, typer.Option("--out", help="A new folder for answer, certificate and report.")] = None
    form: Annotated[str, typer.Option("--format", help="csv, tsv or parquet, in the folder.")] = "csv"
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also list groups of other and missing values, which may be empty.")
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
    """Answer one SQL query privately, within the policy's budget.

    The answer contains noise. Counts, sums, means and variances have a 95 % confidence interval. Quantiles and modes
    have none, and neither have variances and some sums under --rate; a note says what is known instead.

    The cost is charged before a row is read. The same query again gets the same answer at no further cost to the
    dataset.
    """
    from incrowd.queries.language.reading import is_explain
    from incrowd.workflows.query.request import CostEstimate, QueryAnswer, QueryRequest
    from incrowd.workflows.query.service import publish_answer
    from incrowd.workflows.release.deliver import Destination

    if (options.sql is None) == (options.batch is None):
        raise InvalidParameter("give one query, or a file of queries with --batch.")
    if options.classical is not None:
        return _answer_classically(options, options.classical)
    if options.batch is not None:
        return _answer_batch(options, options.batch)
    only_price, sql = is_explain(options.sql or "")
    priced = any(number is not None for number in (options.epsilon, options.error, options.rho, options.rate))
    terms = terms_of(options) if priced else None  # what is wrong about them is said before anything is opened
    with progress(not options.json) as tell, _open_queries(options, tell) as service:
        free = _free_answer(service, sql)
        if free is not None and not (options.price or only_price):
            return _show_free(free, options)
        reply: CostEstimate | QueryAnswer | None = None if free is None else service.public_price(sql)
        if reply is None:
            asking = QueryRequest(sql, terms or terms_of(options), options.analyst, options.account)
            if options.price or only_price:
                reply = service.price(asking)
            elif (empty := service.empty_answer(asking)) is not None:  # LIMIT 0
                return _show_free(empty, options)
            else:
                _check_folder(options)
                reply = service.ask(asking)
    if options.out is not None and isinstance(reply, QueryAnswer):
        publish_answer(reply, service.budgets.ledger, Destination(options.out, options.form))
    if options.json:
        return print_json(reply.to_json())
    return show_price(reply) if isinstance(reply, CostEstimate) else show_answer(reply, options)


def _free_answer(service: QueryService, sql: str) -> DeclarationAnswer | None:
    """Answer SHOW TABLES and the like, and what reads public tables alone, at no cost; None of anything else."""
    from incrowd.queries.declarations import declaration_answer
    from incrowd.workflows.query.system_catalog import Visitor

    declared = declaration_answer(sql, service.schema())
    return service.public_answer(sql, Visitor("you")) if declared is None else declared


def _show_free(answer: DeclarationAnswer, options: QueryOptions) -> None:
    if options.json:
        return print_json(answer.to_json())
    rows = [tuple("" if value is None else str(value) for value in row) for row in answer.rows]
    return print_table("as declared, or public", rows, "No row of a person was read: nothing was spent.", answer.names)


def _answer_batch(options: QueryOptions, file: Path) -> None:
    """Answer the queries of a file, separated by semicolons, for one charge."""
    from incrowd.queries.language.reading import split_queries
    from incrowd.workflows.query.request import REPEATED, BatchAnswer, BatchRequest, CostEstimate
    from incrowd.workflows.query.service import publish_answer
    from incrowd.workflows.release.deliver import Destination

    if options.account is not None:
        raise InvalidParameter("a batch is charged in epsilon: leave out --account.")
    _check_folder(options)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidParameter(f"{file} cannot be read as UTF-8 text: give a file of queries.") from None
    asking = BatchRequest(split_queries(text), terms_of(options), options.analyst)
    with progress(not options.json) as tell, _open_queries(options, tell) as service:
        reply: CostEstimate | BatchAnswer = service.price(asking) if options.price else service.ask(asking)
    if options.out is not None and isinstance(reply, BatchAnswer):
        publish_answer(reply, service.budgets.ledger, Destination(options.out, options.form))
    if options.json:
        return print_json(reply.to_json())
    if isinstance(reply, CostEstimate):
        return show_price(reply)
    for number, answer in enumerate(reply.answers, start=1):
        _print_answer(f"answer {number}", answer, verbose=options.verbose)
    certificate = reply.certificate.id if options.out is None else str(options.out / "certificate.json")
    return print_table("total cost", [*reply.costs, ("certificate", certificate)], REPEATED if reply.repeated else "")


def _answer_classically(options: QueryOptions, how: str) -> None:
    """Answer one query by a classical protection, and name the attack that breaks it."""
    from incrowd.drawing.answer import number
    from incrowd.queries.classical_answers import protection_of
    from incrowd.workflows.query.classical import ask_classical

    paying = (options.epsilon, options.error, options.rate, options.rho, options.account, options.analyst, options.out)
    if options.sql is None or options.price or any(option is not None for option in paying):
        raise InvalidParameter("a classical answer has no cost, analyst or certificate: give the query only.")
    protection = protection_of(how)
    with progress(not options.json) as tell, _open_queries(options, tell) as service:
        answer = ask_classical(service, options.sql, protection)
    if options.json:
        return print_json(answer.to_json())
    lines = [("answer", "–" if answer.value is None else number(answer.value)), ("protection", how)]
    lines += [("after", answer.source), ("broken by", answer.broken_by)]
    return print_table("classical answer", lines, "No guarantee: for teaching and comparison only.")


def _open_queries(options: QueryOptions, tell: Progress | None) -> AbstractContextManager[QueryService]:
    from incrowd.engines.settings import override
    from incrowd.workflows.policy.policy import load_policy
    from incrowd.workflows.policy.rows import read_as
    from incrowd.workflows.query.service import open_queries

    policy = read_as(load_policy(options.policy), options.source_options)
    settings = override(policy.engine, options.engine, options.master, options.remote)
    return open_queries([policy], options.data, settings=settings, progress=tell)


def terms_of(options: QueryOptions) -> QueryTerms:
    """Return the offered cost as exact numbers."""
    from incrowd.core.rounding import exact
    from incrowd.queries.query import QueryTerms

    def number(text: str | None, name: str) -> Fraction | None:
        return None if text is None else exact(text, name)

    return QueryTerms(
        epsilon=number(options.epsilon, "epsilon"),
        delta=exact(options.delta, "delta"),
        error=number(options.error, "error"),
        rate=number(options.rate, "rate"),
        rho=number(options.rho, "rho"),
    )


def show_price(priced: CostEstimate) -> None:
    """Print the cost estimate of a query and its expected error."""
    from incrowd.workflows.query.request import UNASKED

    print_table("cost estimate", [("query", priced.question), *priced.costs])
    expected = [(estimate.output, estimate.words) for estimate in priced.expected]
    note = " ".join((*priced.notes, UNASKED))
    print_table("expected error, for 95 % of answers", expected or [("nothing", "")], note)


def show_answer(answered: QueryAnswer, options: QueryOptions) -> None:
    """Print the answer with its intervals, then its cost."""
    from incrowd.workflows.query.request import REPEATED, coverage

    _print_answer("answer", answered.answer, verbose=options.verbose)
    certificate = answered.certificate.id if options.out is None else str(options.out / "certificate.json")
    note = REPEATED if answered.repeated else coverage(answered.answer)
    print_table("cost", [*answered.costs, ("certificate", certificate)], note)


def _print_answer(title: str, answer: Answer, *, verbose: bool) -> None:
    """Print the rows of an answer, and notes below them."""
    from dataclasses import replace

    from incrowd.drawing.answer import UNDECLARED

    header, lines, folded = (replace(answer, undeclared=()) if verbose else answer).rendered
    notes = [f"{UNDECLARED} --verbose lists them."] if folded else []
    print_table(title, lines or [("",) * len(header)], "\n".join((*notes, *answer.notes)), header=header)


def _check_folder(options: QueryOptions) -> None:
    if options.out is not None and options.out.exists():
        raise InvalidParameter(f"{options.out} already exists: give a new folder.")
    if options.form not in ("csv", "tsv", "parquet"):
        raise InvalidParameter(f"answers are written as csv, tsv or parquet, not {options.form!r}.")
