"""`incrowd ledger`: budgets and entries."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.ledger_show import print_standing, show
from incrowd.cli.options import Address, Json, Who, person, takes, whole
from incrowd.cli.output import print_json, print_table
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.ledger_place import ledger_place

if TYPE_CHECKING:
    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.core.unit import Unit
    from incrowd.store.chain_entry import Anchor


Dataset = Annotated[str, typer.Argument(metavar="DATASET", help="The dataset's name.")]
Why = Annotated[str, typer.Option(metavar="TEXT", help="The reason, kept in the ledger.")]
_FAILED = 1
ledger = typer.Typer(help="Privacy budgets and ledger entries.", no_args_is_help=True)


def make_folder(address: str) -> None:
    """Create the folder of a new ledger file."""
    if address.startswith("sqlite:///"):
        folder = Path(address.removeprefix("sqlite:///")).parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidParameter("the folder of the ledger cannot be created: choose another --ledger.") from error


@dataclass(frozen=True)
class LedgerGrantOptions:
    """The options of `incrowd ledger grant`."""

    dataset: Dataset
    why: Why
    epsilon: Annotated[str, typer.Option(metavar="NUMBER", help="ε to add; for an analyst, the ε allowed.")] = "0"
    delta: Annotated[str, typer.Option(metavar="NUMBER", help="δ to add; for an analyst, the δ allowed.")] = "0"
    unbounded: Annotated[
        str | None, typer.Option(metavar="REASON", help="Allow releases without ε from now on, for this reason.")
    ] = None
    analyst: Annotated[str | None, typer.Option(metavar="NAME", help="Set this analyst's allowance instead.")] = None
    until: Annotated[str | None, typer.Option(metavar="DATE", help="Last day of the analyst's allowance.")] = None
    per_month: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="ε that the analyst may spend in one month (UTC), at most.")
    ] = None
    policy: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Take the ledger, and a new dataset, from this policy."),
    ] = None
    new: Annotated[bool, typer.Option("--new", help="Create a new dataset, and the ledger if it is missing.")] = False
    person: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="With --new: protect people, identified by this column.")
    ] = None
    max_rows: Annotated[str, typer.Option(metavar="COUNT", help="With --person: maximum rows per person.")] = "1"
    replace: Annotated[bool, typer.Option("--replace", help="With --new: replace-one adjacency.")] = False
    who: Who = None
    ledger: Address = None
    as_json: Json = False


@takes(LedgerGrantOptions)
def grant(options: LedgerGrantOptions) -> None:
    """Add to the privacy budget of a dataset, permanently, or set an analyst's allowance.

    This is the only way to change a budget. With --new, the dataset and, if missing, the ledger are created first.
    """
    from incrowd.accounting.ledger.ledger import Ledger

    _check(options)
    grant_it = _allowance(options, options.analyst) if options.analyst is not None else _addition(options)
    if options.policy is not None:
        ledger = _as_declared(options.dataset, options.policy)
    else:
        ledger = _with_new_dataset(options) if options.new else Ledger.open(ledger_place(options.ledger))
    grant_it(ledger)
    print_standing(ledger.standing(options.dataset), options.as_json)


def _addition(options: LedgerGrantOptions) -> Callable[[Ledger], object]:
    from incrowd.accounting.budget import Budget

    more, who = Budget.of(options.epsilon, options.delta, options.unbounded), person(options.who)
    return lambda ledger: ledger.grant(options.dataset, more, who, options.why)


def _allowance(options: LedgerGrantOptions, analyst: str) -> Callable[[Ledger], object]:
    from incrowd.accounting.budget import Allowance

    allowance = Allowance.of(analyst, options.epsilon, options.delta, _day(options.until), options.per_month)
    who = person(options.who)
    return lambda ledger: ledger.allow(options.dataset, allowance, who, options.why)


def _as_declared(dataset: str, file: str) -> Ledger:
    """Return the ledger of a policy, with its dataset registered as the policy declares it."""
    from incrowd.workflows.policy.ledger import declaration_of, open_book
    from incrowd.workflows.policy.policy import load_policy

    policy = load_policy(file)
    if policy.name != dataset:
        raise InvalidParameter(f"this policy declares {policy.name}, not {dataset}: give the same name.")
    ledger = open_book(policy)
    if not ledger.knows(dataset):
        ledger.register(declaration_of(policy))
    return ledger


def _with_new_dataset(options: LedgerGrantOptions) -> Ledger:
    from incrowd.accounting.ledger.datasets import Declaration
    from incrowd.accounting.ledger.ledger import Ledger

    declaration = Declaration(options.dataset, _unit(options))
    place = ledger_place(options.ledger)
    make_folder(place)
    ledger = Ledger.create(place)
    overview = ledger.show()
    if options.dataset in {*overview.shared, *(standing.dataset for standing in overview.datasets)}:
        raise InvalidParameter(f"dataset {options.dataset} exists already: leave out --new to add to its budget.")
    ledger.register(declaration)
    return ledger


def _unit(options: LedgerGrantOptions) -> Unit:
    from incrowd.core.unit import Adjacency, Kind, Unit

    adjacency = Adjacency.REPLACE if options.replace else Adjacency.ADD_REMOVE
    if options.person is None:
        return Unit(adjacency=adjacency)
    return Unit(Kind.PERSON, adjacency, options.person, whole(options.max_rows, "max-rows"))


def _check(options: LedgerGrantOptions) -> None:
    if options.policy is not None and options.new:
        raise InvalidParameter("the policy declares the dataset: leave out --new.")
    if options.new and options.analyst is not None:
        raise InvalidParameter(
            "create the dataset first (--new), then set the allowance (--analyst), or give its policy."
        )
    if not options.new and (options.person is not None or options.replace or options.max_rows != "1"):
        raise InvalidParameter("the unit of privacy is declared once, with --new; it cannot be changed later.")
    if options.until is not None and options.analyst is None:
        raise InvalidParameter("a budget never expires; --until belongs to an analyst's allowance (--analyst).")
    if options.per_month is not None and options.analyst is None:
        raise InvalidParameter("--per-month belongs to an analyst's allowance (--analyst).")
    if options.unbounded is not None and options.analyst is not None:
        raise InvalidParameter("--unbounded belongs to the dataset's budget, not to an analyst's allowance.")
    if not options.why.strip():
        raise InvalidParameter("give a reason with --why, for readers of the ledger.")
    if options.analyst is None and options.unbounded is None and options.epsilon == options.delta == "0":
        raise InvalidParameter("nothing to grant: give --epsilon, --delta or --unbounded.")


def _day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise InvalidParameter("a day is written like 2030-12-31.") from error


@dataclass(frozen=True)
class CarveOptions:
    """The options of `incrowd ledger carve`."""

    dataset: Dataset
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Name of the account.")]
    rho: Annotated[str, typer.Option(metavar="NUMBER", help="ρ of the account.")]
    delta: Annotated[str, typer.Option(metavar="NUMBER", help="δ at which its ε is charged.")]
    ledger: Address = None
    as_json: Json = False


@takes(CarveOptions)
def carve(options: CarveOptions) -> None:
    """Create a zero-concentrated account. Its whole ε and δ are charged at once; after that only ρ is counted.

    `incrowd query --account ACCOUNT --rho NUMBER` charges the account and adds Gaussian noise. For many queries this
    costs less than ε for each of them.
    """
    from incrowd.accounting.ledger.ledger import Ledger

    ledger = Ledger.open(ledger_place(options.ledger))
    ledger.carve(options.dataset, options.account, options.rho, options.delta)
    print_standing(ledger.standing(options.dataset), options.as_json)


@dataclass(frozen=True)
class CloseOptions:
    """The options of `incrowd ledger close`."""

    dataset: Dataset
    why: Why
    retire: Annotated[bool, typer.Option("--retire", help="Record that the data was destroyed.")] = False
    who: Who = None
    ledger: Address = None
    as_json: Json = False


@takes(CloseOptions)
def close(options: CloseOptions) -> None:
    """Close a dataset permanently. With --retire, record that its data was destroyed."""
    from incrowd.accounting.ledger.ledger import Ledger

    ledger = Ledger.open(ledger_place(options.ledger))
    end = ledger.retire if options.retire else ledger.close
    end(options.dataset, person(options.who), options.why)
    print_standing(ledger.standing(options.dataset), options.as_json)


@dataclass(frozen=True)
class MoveOptions:
    """The options of `incrowd ledger move`."""

    to: Annotated[
        str,
        typer.Argument(metavar="TO", help="The new address: sqlite:///FILE or postgresql://USER@HOST/DATABASE."),
    ]
    why: Why
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="No process is at work: move it with open charges, or finish.")
    ] = False
    who: Who = None
    ledger: Address = None
    as_json: Json = False


@takes(MoveOptions)
def move(options: MoveOptions) -> None:
    """Move the ledger, with access list, audit log and stored answers, to another file or to PostgreSQL.

    Every entry is copied with its hash, so certificates agree with the new place. The old one takes no more entries. If
    a move is cut short, the same command finishes it.
    """
    from incrowd.workflows.policy.ledger_stores import move_ledger

    source, target = ledger_place(options.ledger), ledger_place(options.to)
    moved = move_ledger(source, target, person(options.who), options.why, unfinished=options.unfinished)
    if options.as_json:
        return print_json(moved.to_json())
    rows = [
        ("ledger", moved.place),
        ("entries", str(moved.head.sequence)),
        ("moved with it", ", ".join([*moved.stores, *(["fingerprints of rows"] if moved.fingerprints else [])]) or "-"),
    ]
    note = "Name the new place in the policies (ledger:) or by INCROWD_LEDGER. The old one takes no more entries."
    return print_table("The ledger was moved", rows, note)


@dataclass(frozen=True)
class RenewOptions:
    """The options of `incrowd ledger renew`."""

    why: Why
    who: Who = None
    ledger: Address = None
    as_json: Json = False


@takes(RenewOptions)
def renew(options: RenewOptions) -> None:
    """Give the ledger and the stores beside it new secrets, after somebody may have read a copy of them.

    Hashes of later entries are keyed by the new secret. Earlier entries keep their hashes, so certificates still agree.
    """
    from incrowd.workflows.policy.ledger_stores import renew_ledger

    renewed = renew_ledger(ledger_place(options.ledger), person(options.who), options.why)
    if options.as_json:
        return print_json({"renewed": list(renewed)})
    return print_table("New secrets", [(name, "from its next entry on") for name in renewed])


@dataclass(frozen=True)
class LedgerCheckOptions:
    """The options of `incrowd ledger check`."""

    against: Annotated[
        list[str], typer.Option(metavar="CERTIFICATE", help="A certificate that names an entry; can be repeated.")
    ] = field(default_factory=list)
    ledger: Address = None
    as_json: Json = False


@takes(LedgerCheckOptions)
def check(options: LedgerCheckOptions) -> None:
    """Recompute the whole chain. Exit 1 and name the first wrong entry.

    A changed or deleted entry is always detected. A missing end or a restored old copy is detected only by comparison
    with a certificate (--against).
    """
    from incrowd.accounting.ledger.ledger import Ledger

    anchors = [_anchor(path) for path in options.against]
    report = Ledger.open(ledger_place(options.ledger)).check(*anchors)
    if options.as_json:
        plain = {"ok": report.ok, "entries": report.entries, "bad": report.bad, "finding": report.finding}
        print_json(plain | {"head": report.head.to_json(), "against": len(anchors)})
    else:
        compared = f"and {len(anchors)} certificates agree" if anchors else "not compared with a certificate"
        rows = [("entries in order", str(report.entries)), ("finding", report.finding or f"none, {compared}")]
        print_table("The ledger is in order" if report.ok else "The ledger is NOT in order", rows)
    if not report.ok:
        raise typer.Exit(_FAILED)


def _anchor(path: str) -> Anchor:
    from incrowd.core.codec import encode
    from incrowd.store.chain_entry import Anchor
    from incrowd.workflows.certificates import certificate_of

    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidParameter(f"{path} cannot be read as a certificate: give a JSON file.") from error
    if not isinstance(document, dict):
        raise InvalidParameter(f"{path} is not a certificate: a certificate is one JSON object.")
    return Anchor.from_json(encode(certificate_of(document).ledger) if "certificate" in document else document)


ledger.command("show")(show)
ledger.command("grant")(grant)
ledger.command("carve")(carve)
ledger.command("close")(close)
ledger.command("move")(move)
ledger.command("renew")(renew)
ledger.command("check")(check)
