"""Until: what a cutting step demands of every class, by name; read into criteria, and put in order for people."""

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
from incrowd.criteria.k_map import KMap
from incrowd.criteria.likeness import BasicLikeness, EnhancedLikeness
from incrowd.criteria.presence import DeltaPresence
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
"""What can be demanded of one sensitive column, in the order in which it is told and claimed."""
OF_TABLE: tuple[type[Demand], ...] = (KAnonymity, AverageRisk, PopulationUniqueness, KMap, DeltaPresence)
"""What can be demanded of all classes."""
CLAIMS: tuple[type[Claim], ...] = tuple(each.claimed for each in (*OF_TABLE, *OF_COLUMN))
"""Every claim about the classes of a table."""
_HARMLESS = "harmless"
_DISTANCE = "distance"
_POPULATION = "population"
OF_EACH = (*(name for each in OF_COLUMN for name in (*each.keys, *each.options)), _HARMLESS)
"""Every name under which something can be demanded of one column."""


def names(sensitive: Sequence[str]) -> list[str]:
    """Return every name under which something can be demanded, in the order in which it is told.

    >>> names(["ill"])[:4], names(["ill"])[-1]
    (['k', 'l', 'entropy l', 't'], 'harmless of ill')
    """
    first, *others = OF_TABLE
    general = [name for each in OF_COLUMN if each.general for name in each.keys]
    together = [name for each in others for name in each.keys if name != _POPULATION]
    each = [f"{name} of {column}" for column in sorted(sensitive) for name in OF_EACH]
    return [*first.keys, *general, *together, _POPULATION, *each]


def in_order(until: Mapping[str, Term], sensitive: Sequence[str]) -> dict[str, Term]:
    """Return what is demanded in the order in which it is told, or refuse a name that nobody knows.

    >>> in_order({"t of ill": "1/5", "k": 5}, ["ill"])
    {'k': 5, 't of ill': '1/5'}
    """
    known = names(sensitive)
    if not set(until) <= set(known):
        raise InvalidParameter("something is demanded that is not known here.")
    return {name: until[name] for name in known if name in until}


def criteria_of(
    until: Mapping[str, Term], sensitive: Sequence[str], distances: Mapping[str, str]
) -> tuple[Demand, ...]:
    """Return the criteria that are demanded, or refuse demands that do not belong together.

    `distances` say how far apart values are where no distance is named; without either they are equally far.

    >>> criteria_of({"k": 5, "l": 2, "l of ill": 3}, ["ill"], {})
    (KAnonymity(k=5), DistinctDiversity(column='ill', l=3, harmless=frozenset()))
    """
    in_order(until, sensitive)
    found = list(_of_table(until))
    if not found or not isinstance(found[0], KAnonymity):
        raise InvalidParameter("no k is demanded.")
    for column in sensitive:
        named = until.get(f"{_DISTANCE} of {column}")
        each = list(_of_column(until, column, distances.get(column, "equal") if named is None else str(named)))
        if not each or (named is not None and not any(isinstance(one, Closeness) for one in each)):
            raise InvalidParameter(f"nothing is demanded of {column!r}, or nothing by the distance that it has.")
        found += each
    return tuple(sorted(found, key=lambda one: one.claimed.rank))


def _of_table(until: Mapping[str, Term]) -> Iterator[Demand]:
    for kind in OF_TABLE:
        if any(name in until for name in kind.keys if name != _POPULATION):
            yield _made(kind, kind, {name: until[name] for name in kind.keys if name in until})


def _of_column(until: Mapping[str, Term], column: str, distance: str) -> Iterator[Demand]:
    """Return what is demanded of a column: by its name or, where it is not named, of all."""
    harmless = _harmless(until, column)
    for kind in OF_COLUMN:
        given = {name: until[key] for name in kind.keys if (key := _key(until, name, column)) in until}
        if given:
            chosen = _closeness(distance) if kind is Closeness else kind
            yield _made(kind, partial(_column, chosen, column, harmless), given)


def _closeness(distance: str) -> type[Closeness]:
    if distance not in CLOSENESS:
        raise InvalidParameter("values are apart in a way that is not known here.")
    return CLOSENESS[distance]


def _harmless(until: Mapping[str, Term], column: str) -> frozenset[str]:
    """Return the values that hurt nobody, which are told in order, each once."""
    named = until.get(f"{_HARMLESS} of {column}")
    if named is None:
        return frozenset()
    if not isinstance(named, tuple) or not named or list(named) != sorted(set(named)):
        raise InvalidParameter("harmless values are named in order, each once.")
    return frozenset(named)


def _key(until: Mapping[str, Term], name: str, column: str) -> str:
    named = f"{name} of {column}"
    return named if named in until else name


def _column(kind: Callable[..., Demand], column: str, harmless: frozenset[str], *parameters: Term) -> Demand:
    return kind(column, *parameters, harmless=harmless)


def _made(kind: type[Demand], make: Callable[..., Demand], given: Mapping[str, Term]) -> Demand:
    """Return a criterion from what is demanded; that must be all of it, and as it would be told again."""
    if tuple(given) != kind.keys:
        raise InvalidParameter("something is demanded by half.")
    made = make(*given.values())
    if made.terms() != given:
        raise InvalidParameter("something is demanded in another way than it is told.")
    return made
