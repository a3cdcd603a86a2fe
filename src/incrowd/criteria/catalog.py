"""Catalog: the criteria that a step demands by name, and their order in texts and claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from incrowd.core.claims.claim import Claim
from incrowd.criteria.average_risk import AverageRisk
from incrowd.criteria.closeness import CLOSENESS, Closeness
from incrowd.criteria.demand import ColumnDemand, Demand, Term
from incrowd.criteria.disclosure import DeltaDisclosure, PresentDisclosure
from incrowd.criteria.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.criteria.likeness import BasicLikeness, EnhancedLikeness
from incrowd.criteria.population import DeltaPresence, KMap
from incrowd.criteria.uniqueness.criterion import PopulationUniqueness
from incrowd.errors import InvalidParameter

OF_COLUMN: tuple[type[ColumnDemand], ...] = (
    DistinctDiversity,
    EntropyDiversity,
    RecursiveDiversity,
    Closeness,
    BasicLikeness,
    EnhancedLikeness,
    DeltaDisclosure,
    PresentDisclosure,
)
"""Criteria for one sensitive column, in the order of texts and claims."""
OF_TABLE: tuple[type[Demand], ...] = (KAnonymity, AverageRisk, PopulationUniqueness, KMap, DeltaPresence)
"""Criteria for all classes."""
CLAIMS: tuple[type[Claim], ...] = tuple(demand.claimed for demand in (*OF_TABLE, *OF_COLUMN))
"""Every claim about the classes of a table."""
_HARMLESS = "harmless"
_DISTANCE = "distance"
_POPULATION = "population"
OF_EACH = (*(name for demand in OF_COLUMN for name in (*demand.keys, *demand.options)), _HARMLESS)
"""Every name of a demand on one column."""


def names(sensitive: Sequence[str]) -> list[str]:
    """Return every name of a demand, in the order of texts.

    >>> names(["ill"])[:4], names(["ill"])[-1]
    (['k', 'l', 'entropy l', 't'], 'harmless of ill')
    """
    first, *others = OF_TABLE
    general = [name for demand in OF_COLUMN if demand.general for name in demand.keys]
    together = [name for demand in others for name in demand.keys if name != _POPULATION]
    of_columns = [f"{name} of {column}" for column in sorted(sensitive) for name in OF_EACH]
    return [*first.keys, *general, *together, _POPULATION, *of_columns]


def in_order(until: Mapping[str, Term], sensitive: Sequence[str]) -> dict[str, Term]:
    """Return demands in the order of texts, or refuse an unknown name.

    >>> in_order({"t of ill": "1/5", "k": 5}, ["ill"])
    {'k': 5, 't of ill': '1/5'}
    """
    order = names(sensitive)
    if not set(until) <= set(order):
        raise InvalidParameter("a step demands a criterion that this version does not know.")
    return {name: until[name] for name in order if name in until}


def criteria_of(
    until: Mapping[str, Term], sensitive: Sequence[str], distances: Mapping[str, str]
) -> tuple[Demand, ...]:
    """Return the criteria that are demanded, or refuse demands that do not fit together.

    `distances` give the distance of values where a step names none; the default is the equal distance.

    >>> criteria_of({"k": 5, "l": 2, "l of ill": 3}, ["ill"], {})
    (KAnonymity(k=5), DistinctDiversity(column='ill', l=3, harmless=frozenset()))
    """
    in_order(until, sensitive)
    demands = list(_of_table(until))
    if not demands or not isinstance(demands[0], KAnonymity):
        raise InvalidParameter("a step must demand k.")
    for column in sensitive:
        named = until.get(f"{_DISTANCE} of {column}")
        of_column = list(_of_column(until, column, distances.get(column, "equal") if named is None else str(named)))
        if not of_column or (named is not None and not any(isinstance(demand, Closeness) for demand in of_column)):
            raise InvalidParameter(f"a step must demand a criterion of {column!r}, and t where it names a distance.")
        demands += of_column
    return tuple(sorted(demands, key=lambda demand: demand.claimed.rank))


def _of_table(until: Mapping[str, Term]) -> Iterator[Demand]:
    for kind in OF_TABLE:
        if any(name in until for name in kind.keys if name != _POPULATION):
            yield _made(kind, kind, {name: until[name] for name in kind.keys if name in until})


def _of_column(until: Mapping[str, Term], column: str, distance: str) -> Iterator[Demand]:
    """Return the demands on a column: those with its name, else those on all columns."""
    harmless = _harmless(until, column)
    for kind in OF_COLUMN:
        terms = {name: until[key] for name in kind.keys if (key := _key(until, name, column)) in until}
        if terms:
            chosen = _closeness(distance) if kind is Closeness else kind
            yield _made(kind, partial(_column, chosen, column, harmless), terms)


def _closeness(distance: str) -> type[Closeness]:
    if distance not in CLOSENESS:
        raise InvalidParameter("a step names a distance that this version does not know.")
    return CLOSENESS[distance]


def _harmless(until: Mapping[str, Term], column: str) -> frozenset[str]:
    """Return the harmless values, which a step lists in order, each once."""
    named = until.get(f"{_HARMLESS} of {column}")
    if named is None:
        return frozenset()
    if not isinstance(named, tuple) or not named or list(named) != sorted(set(named)):
        raise InvalidParameter("harmless values must be listed in order, each once.")
    return frozenset(named)


def _key(until: Mapping[str, Term], name: str, column: str) -> str:
    named = f"{name} of {column}"
    return named if named in until else name


def _column(kind: Callable[..., Demand], column: str, harmless: frozenset[str], *parameters: Term) -> Demand:
    return kind(column, *parameters, harmless=harmless)


def _made(kind: type[Demand], make: Callable[..., Demand], terms: Mapping[str, Term]) -> Demand:
    """Return a criterion from its terms, which must be complete and in canonical form."""
    if tuple(terms) != kind.keys:
        raise InvalidParameter("a step gives only some parameters of a criterion.")
    demand = make(*terms.values())
    if demand.terms() != terms:
        raise InvalidParameter("a step gives a parameter of a criterion in another form than this version writes.")
    return demand
