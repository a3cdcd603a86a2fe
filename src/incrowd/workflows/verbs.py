"""Verbs: what `import incrowd` offers, as the command line has it; files or frames in, frames and certificates out."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack, cast

from incrowd.core.rounding import Number, exact
from incrowd.core.table import Engine, Opened, SourceOptions
from incrowd.engines.settings import Settings, engine_of, settings_for
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.ledger import record_look
from incrowd.workflows.policy.policy import Policy, PolicyLike, load_policy
from incrowd.workflows.policy.rows import open_rows, released_levels, settings_of

if TYPE_CHECKING:
    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.queries.query import QueryTerms
    from incrowd.workflows.assess.assess import Assessment
    from incrowd.workflows.check.check import CheckResult
    from incrowd.workflows.check.criteria import CheckCriteria
    from incrowd.workflows.profile.profile import TableProfile
    from incrowd.workflows.query.request import CostEstimate, QueryAnswer
    from incrowd.workflows.release.deliver import Released
    from incrowd.workflows.verify.verification import Verification


class Criteria(TypedDict, total=False):
    """What `check` may be asked: which columns, and what is expected of them; as the options of the command line."""

    quasi: Sequence[str]
    sensitive: Sequence[str]
    recoded: bool
    k: int
    l: int  # noqa: E741 (the name that everyone knows it by)
    entropy_l: float
    t: float
    recursive: tuple[Number, int]
    beta: Number
    enhanced_beta: Number
    disclosure: Number
    present_disclosure: Number
    harmless: Sequence[str]
    average_risk: Number
    unique: tuple[Number, int]
    population: str | Path
    k_map: int
    presence: tuple[Number, Number]


class QueryOffer(TypedDict, total=False):
    """What an asker pays, or how exact the answer must be: one of epsilon, error and rho; and who asks."""

    epsilon: Number
    delta: Number
    error: Number
    rate: Number
    rho: Number
    account: str
    analyst: str


class Held(TypedDict, total=False):
    """What a certificate is compared with besides its own files."""

    ledger: Ledger | str
    public_key: str | Path
    parent: str | Path
    policy: PolicyLike


def profile(data: object = None, policy: PolicyLike | None = None, nulls: Sequence[str] = ()) -> TableProfile:
    """Say what a table holds and which columns single people out; what is returned holds values of the data.

    >>> import pyarrow as pa
    >>> profile(pa.table({"sex": ["F", "M", "F"], "zip": ["02139", "02139", "02138"]})).rows
    3
    """
    from incrowd.workflows.profile.profile import profile as profiled

    read = None if policy is None else load_policy(policy)
    with engine_of(_settings(read, data), data) as engine:
        rows = _opened(data, read, engine, tuple(nulls))
        record_look(read, "profile")
        return profiled(rows, engine)


def check(data: object = None, policy: PolicyLike | None = None, **criteria: Unpack[Criteria]) -> CheckResult:
    """Say whether a table already meets what is asked, or what its policy demands.

    >>> import pyarrow as pa
    >>> check(pa.table({"sex": ["F", "F", "M"]}), quasi=["sex"], k=2).passed
    False
    """
    from incrowd.workflows.check.check import CheckedColumns
    from incrowd.workflows.check.check import check as checked

    read, file = None if policy is None else load_policy(policy), _path(data)
    columns = CheckedColumns(
        tuple(criteria.get("quasi", ())),
        tuple(criteria.get("sensitive", ())),
        criteria.get("recoded", False),
        released_levels(file),
    )
    with engine_of(_settings(read, data), data) as engine:
        rows = _opened(data, read, engine)
        record_look(read, "check")
        return checked(rows, _criteria(criteria), columns, read, engine)


def query(sql: str, policy: PolicyLike, data: object = None, **offer: Unpack[QueryOffer]) -> QueryAnswer:
    """Answer one SQL query privately; its cost is charged before a row is read.

    The same query again gets the same answer at no further cost to the dataset.
    """
    from incrowd.workflows.query.request import QueryRequest
    from incrowd.workflows.query.service import open_queries

    with open_queries([load_policy(policy)], data) as service:
        return service.ask(QueryRequest(sql, _terms(offer), offer.get("analyst"), offer.get("account")))


def price(sql: str, policy: PolicyLike, data: object = None, **offer: Unpack[QueryOffer]) -> CostEstimate:
    """Return the cost estimate of a query and its expected error; nothing is spent."""
    from incrowd.workflows.query.request import QueryRequest
    from incrowd.workflows.query.service import open_queries

    with open_queries([load_policy(policy)], data) as service:
        return service.price(QueryRequest(sql, _terms(offer), offer.get("analyst"), offer.get("account")))


def assess(
    release: str | Path | Released, policy: PolicyLike, against: object = None, *, weights: str | None = None
) -> Assessment:
    """Compare a release, a folder or one in memory, with the data it was made from; what is returned is internal."""
    from incrowd.engines.readers.sources import open_source
    from incrowd.workflows.assess.assess import assess as assessed
    from incrowd.workflows.assess.released import read_release

    read = load_policy(policy)
    released = (
        read_release(Path(release)) if isinstance(release, str | Path) else open_source(release.result.to_arrow())
    )
    with engine_of(_settings(read, against), against) as engine:
        original = _opened(against, read, engine)
        record_look(read, "assess")
        return assessed(released, original, read, engine, weights=weights)


def verify(certificate: str | Path, data: str | Path | None = None, **held: Unpack[Held]) -> Verification:
    """Check a certificate, or the folder of a release: its files, and every claim, recomputed independently."""
    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.workflows.verify.verify import References
    from incrowd.workflows.verify.verify import verify as verified

    ledger, policy = held.get("ledger"), held.get("policy")
    references = References(
        ledger=Ledger.open(ledger) if isinstance(ledger, str) else ledger,
        trusted=_file(held.get("public_key")),
        parent=_file(held.get("parent")),
        policy=None if policy is None else load_policy(policy),
    )
    return verified(Path(certificate), _file(data), **references)


def _file(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


def _path(data: object) -> str | None:
    return str(data) if isinstance(data, str | Path) else None


def _settings(policy: Policy | None, data: object) -> Settings:
    return settings_for(data, settings_of(policy, _path(data), None, None, None))


def _opened(data: object, policy: Policy | None, engine: Engine, nulls: tuple[str, ...] = ()) -> Opened:
    """Open a file, the policy's source, or a frame."""
    if data is None or isinstance(data, str | Path):
        return open_rows(_path(data), policy, SourceOptions(nulls=("", *nulls)), engine)
    return engine.open(data)


def _terms(offer: QueryOffer) -> QueryTerms:
    from incrowd.queries.query import QueryTerms

    amounts = {name: value for name, value in offer.items() if name not in ("account", "analyst") and value is not None}
    return QueryTerms(**{name: exact(cast(Number, value), name) for name, value in amounts.items()})


def _criteria(criteria: Criteria) -> CheckCriteria:
    """Return what is expected of a table, from plain numbers."""
    from incrowd.methods.anonymity.shared.demands import Population, Presence, Recursive, Sensitive, Unique
    from incrowd.workflows.check.criteria import CheckCriteria

    def number(name: str) -> Fraction | None:
        value = cast(Number | None, criteria.get(name))
        return None if value is None else exact(value, name)

    recursive, unique, presence = criteria.get("recursive"), criteria.get("unique"), criteria.get("presence")
    there = None if presence is None else Presence(exact(presence[1], "presence"), exact(presence[0], "presence"))
    file, k_map = criteria.get("population"), criteria.get("k_map")
    if file is None and (there is not None or k_map is not None):
        raise InvalidParameter("k-map and presence need a population: give its file.")
    return CheckCriteria(
        criteria.get("k"),
        criteria.get("l"),
        criteria.get("entropy_l"),
        criteria.get("t"),
        Sensitive(
            recursive=None if recursive is None else Recursive(exact(recursive[0], "recursive"), recursive[1]),
            beta=number("beta"),
            enhanced_beta=number("enhanced_beta"),
            disclosure=number("disclosure"),
            present_disclosure=number("present_disclosure"),
            harmless=tuple(criteria.get("harmless", ())),
        ),
        average_risk=number("average_risk"),
        unique=None if unique is None else Unique(exact(unique[0], "unique"), unique[1]),
        population=None if file is None else Population(str(file), k_map, there),
    )
