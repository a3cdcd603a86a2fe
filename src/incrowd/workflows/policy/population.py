"""Population: the file of people that a policy compares its table with, found from the policy's folder.

So are other files that a method names: `located` are its fields that hold file names, `hashed` those of them whose
content belongs to the policy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.schema import Schema
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.plan import Method


def with_population(method: Method, schema: Schema, folder: Path) -> Method:
    """Return a method whose population is found from a folder; its columns are looked at, its rows are not.

    >>> from incrowd.core.schema import Column
    >>> from incrowd.methods.anonymity.full_domain import FullDomain
    >>> with_population(FullDomain(5), Schema((Column("zip"),)), Path()) == FullDomain(5)
    True
    """
    population = method.population
    if population is None:
        return method
    from incrowd.engines.readers.sources import open_source

    file = _population_file(population.file, folder)
    names = open_source(file).names
    quasi = list(schema.quasi)
    missing = [name for name in quasi if name not in names]
    if missing:
        raise InvalidParameter(
            f"the population file {population.file} has no column {missing[0]!r}, and people are compared by "
            f"all quasi-identifiers ({', '.join(quasi)}): add it, or give it another role."
        )
    changed: Method = replace(cast("Any", method), population=replace(population, file=str(file)))
    return changed


def with_files(method: Method, folder: Path) -> Method:
    """Return a method whose files are found from a folder.

    >>> from incrowd.methods.anonymity.full_domain import FullDomain
    >>> with_files(FullDomain(5), Path()) == FullDomain(5)
    True
    """
    files = {name: getattr(method, name) for name in method.located if getattr(method, name)}
    if not files:
        return method
    placed = {
        name: str(folder / value) if isinstance(value, str) else tuple(str(folder / name_) for name_ in value)
        for name, value in files.items()
    }
    changed: Method = replace(cast("Any", method), **placed)
    return changed


def file_hashes(method: Method | None) -> dict[str, str]:
    """Return the hash of each file whose content belongs to a policy, by its place among them."""
    names = [] if method is None else [file for name in method.hashed for file in getattr(method, name)]
    return {f"file {place}": _hash(Path(name)) for place, name in enumerate(names, 1)}


def _hash(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        raise InvalidParameter(
            f"the file {file.name} is not there: a relative path starts in the policy's folder."
        ) from None


def population_hash(release: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Return the hash of the population that a policy's release names, by its name: the policy's hash covers it.

    >>> population_hash({"method": "safe"}, Path())
    {}
    """
    section = release.get("population")
    if not isinstance(section, Mapping) or "file" not in section:
        return {}
    name = str(section["file"])
    with _population_file(name, folder).open("rb") as opened:
        return {name: hashlib.file_digest(opened, "sha256").hexdigest()}


def _population_file(name: str, folder: Path) -> Path:
    file = folder / name
    if not file.is_file():
        raise InvalidParameter(
            f"the population file {name} is not there: a relative path starts in the policy's folder."
        )
    return file


def people_behind(classes: Counts, people: Counts) -> tuple[NDArray[np.int64], int]:
    """Return how many people are behind each class, by what it is called, and how many are behind none.

    Both are over the same columns; each may be counted in its own way, so that labels are compared and not codes.
    """
    columns = []
    for here, there, codes in zip(classes.classes, people.classes, classes.codes(), strict=True):
        codes_by_label = {label: code for code, label in enumerate(there.labels().to_pylist())}
        columns.append(
            np.array([codes_by_label.get(label, -1) for label in here.labels().to_pylist()] or [-1], np.int32)[codes]
        )
    inside = np.all([column >= 0 for column in columns], axis=0)
    keys = people.layout.pack([np.maximum(column, 0) for column in columns])
    places = np.minimum(np.searchsorted(people.keys, keys), max(0, len(people) - 1))
    behind = np.zeros(len(classes), np.int64)
    if len(people):
        behind[:] = np.where(inside & (people.keys[places] == keys), people.counts[places], 0)
    return behind, people.total - int(behind.sum())
