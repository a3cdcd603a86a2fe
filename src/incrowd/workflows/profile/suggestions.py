"""Suggestions: how the cells of a column could be cleaned, judged by its values; the data holder confirms them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from incrowd.core.cleaning import ENCODINGS, Cleaning, UnicodeForm
from incrowd.core.domain import Provenance, Type
from incrowd.core.terms import joined
from incrowd.engines.readers.conventions import is_missing_word
from incrowd.workflows.profile.column_names import CODES, SEXES, folded, folded_words, spoken, word_lists
from incrowd.workflows.profile.facts import FactLearner, Facts
from incrowd.workflows.profile.vocabularies import common_labels, vocabulary_of

_DERIVED = Provenance(derived=True)
_SYNONYMS: dict[str, list[frozenset[str]]] = {
    kind: [folded_words(words) for words in groups] for kind, groups in word_lists("synonyms").items()
}


@dataclass(frozen=True)
class CleaningSuggestion:
    """Rules for a column, drafted from its rows, and how many rows and different values they concern."""

    cleaning: Cleaning
    rows: int
    values: int

    def sentence(self, name: str) -> str:
        """Return what the rules do; it contains values, for the data holder.

        >>> rules = Cleaning(trim=True, spellings=(("Bonfim", ("BONFIM",)),))
        >>> CleaningSuggestion(rules, 12, 2).sentence("Place")
        "Place: clean 12 rows (outer and repeated spaces removed; several spellings of one label: 'Bonfim' for..."
        """
        rules, parts = self.cleaning, [joined(self.cleaning.rules)]
        parts += [f"{label!r} for {', '.join(map(repr, others))}" for label, others in rules.spellings]
        parts += [", ".join(map(repr, (*rules.missing, *rules.units)))] if rules.missing or rules.units else []
        text = parts[0] + (f": {'; '.join(parts[1:])}" if parts[1:] else "")
        rows = f"{self.rows:,} rows" if self.rows != 1 else "1 row"
        return f"{name}: clean {rows} ({text})?"

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON: the section of a policy, and how much it concerns."""
        return {"clean": clean_section(self.cleaning), "rows": self.rows, "values": self.values}


def clean_section(cleaning: Cleaning) -> dict[str, Any]:
    """Return the rules as a policy writes them.

    >>> clean_section(Cleaning(trim=True, units=("€",)))
    {'trim': True, 'units': ['€']}
    """
    section: dict[str, Any] = {
        "trim": cleaning.trim,
        "case": None if cleaning.case is None else str(cleaning.case),
        "unicode": None if cleaning.form is None else str(cleaning.form),
        "mend": cleaning.mend,
        "missing": list(cleaning.missing),
        "units": list(cleaning.units),
        "decimal": cleaning.decimal,
        "thousands": cleaning.thousands,
        "spellings": {label: list(others) for label, others in cleaning.spellings},
        "derived": "rows" if cleaning.provenance.derived else None,
        "confirmed": cleaning.provenance.public,
    }
    return {key: value for key, value in section.items() if value}


def suggested_cleaning(facts: Facts, kind: Type, reading: Cleaning | None = None) -> CleaningSuggestion | None:
    """Return rules for a column of text, judged by its listed values; `reading` are those with which it was read.

    >>> from incrowd.measures.risk.sketch import TupleSpread
    >>> listed = (("Sé", 8), ("Bonfim", 5), ("BONFIM", 2), (" Bonfim", 1), ("s/d", 1))
    >>> facts = Facts("place", 0, TupleSpread(17, 5, 0, True, 0.0), (Type.TEXT,), None, None, (2, 7), "words", listed)
    >>> found = suggested_cleaning(facts, Type.TEXT)
    >>> clean_section(found.cleaning)["spellings"], found.cleaning.missing, found.rows
    ({'Bonfim': ['BONFIM']}, ('s/d',), 4)
    """
    if reading is not None:
        if not (reading.units or reading.decimal or reading.thousands):  # words for a missing value alone
            return CleaningSuggestion(reading, facts.missing, len(reading.missing))
        return CleaningSuggestion(reading, facts.spread.rows - facts.missing, facts.spread.distinct)
    if kind is not Type.TEXT or facts.values is None or not facts.values:
        return None
    rules = _forms([value for value, _ in facts.values])
    rules |= _meanings(facts, _applied(rules, facts.values))
    if not rules:
        return None
    cleaning = Cleaning(**rules, provenance=_DERIVED)
    before = pa.array([value for value, _ in facts.values], pa.string())
    changed = [old != new for old, new in zip(before.to_pylist(), cleaning.texts(before).to_pylist(), strict=True)]
    rows = sum(times for (_, times), change in zip(facts.values, changed, strict=True) if change)
    return CleaningSuggestion(cleaning, rows, sum(changed)) if rows else None


def cleaned_facts(facts: Facts, cleaning: Cleaning) -> Facts:
    """Return the facts of a column whose values are listed, as they are after cleaning."""
    if facts.values is None:
        return facts
    texts = cleaning.texts(pa.array([value for value, _ in facts.values], pa.string()))
    coded = texts.dictionary_encode()
    codes = coded.indices.fill_null(len(coded.dictionary)).to_numpy()
    times = np.repeat(codes, [rows for _, rows in facts.values])
    values = pa.concat_arrays([coded.dictionary, pa.nulls(1, pa.string())])
    learner = FactLearner(facts.name, capacity=2 * len(values) + 2)
    learner.add(values.take(pa.array(times)))
    learned = learner.facts()
    return replace(
        learned, missing=learned.missing + facts.missing, spread=replace(learned.spread, rows=facts.spread.rows)
    )


def _forms(values: Sequence[str]) -> dict[str, Any]:
    """Return the rules about how texts are stored, whatever they mean."""
    rules: dict[str, Any] = {}
    mends = {encoding: sum(_mended(value, encoding) != value for value in values) for encoding in ENCODINGS}
    best = max(mends, key=lambda encoding: mends[encoding])
    if mends[best]:
        rules["mend"] = best
    if any(unicodedata.normalize("NFC", value) != value for value in values):
        rules["form"] = UnicodeForm.NFC
    if any(" ".join(value.split()) != value for value in values):
        rules["trim"] = True
    return rules


def _mended(value: str, encoding: str) -> str:
    text: str = Cleaning(mend=encoding).texts(pa.array([value]))[0].as_py()
    return text


def _applied(rules: Mapping[str, Any], values: Sequence[tuple[str, int]]) -> Counter[str]:
    """Return the values after some rules, with their rows."""
    texts = pa.array([value for value, _ in values], pa.string())
    cleaned = Cleaning(**rules).texts(texts).to_pylist() if rules else texts.to_pylist()
    counts: Counter[str] = Counter()
    for text, (_, rows) in zip(cleaned, values, strict=True):
        counts[text] += rows
    return counts


def _meanings(facts: Facts, values: Counter[str]) -> dict[str, Any]:
    """Return words for missing values, and spellings that mean the same."""
    listed = vocabulary_of(facts, Type.TEXT) is not None  # NA is a country, ND a state
    missing = () if listed else tuple(sorted(value for value in values if is_missing_word(value)))
    present = Counter({value: rows for value, rows in values.items() if value not in missing})
    if not present:
        return {}
    rules: dict[str, Any] = {"missing": missing} if missing else {}
    coded = facts.shape != "words" or spoken(facts.name, CODES) is not None
    spellings = () if coded or listed else tuple(_spellings(facts.name, present))
    return rules | ({"spellings": spellings} if spellings else {})


def _spellings(name: str, values: Counter[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each label, the most frequent text, with the texts that differ from it in letters, or in language."""
    groups: dict[object, list[str]] = {}
    meanings = _meaning_of(name, values)
    for value in sorted(values, key=lambda value: (-values[value], not value[:2].istitle(), value)):
        groups.setdefault(meanings.get(value, _key(value)), []).append(value)
    several = list(groups.values())
    labels = common_labels(name, several) if meanings else None
    for group, label in zip(several, labels or [group[0] for group in several], strict=True):
        if len(group) > 1:
            yield label, tuple(text for text in group if text != label)


def _meaning_of(name: str, values: Counter[str]) -> dict[str, object]:
    """Return which of the synonyms each value is, if all values are some of one kind and their meaning is sure."""
    keys = {value: _key(value) for value in values}
    for kind, groups in _SYNONYMS.items():
        if kind == "sexes" and (not spoken(name, SEXES) or {"h", "m"} <= set(keys.values())):
            continue  # H and M are Hombre and Mujer, or Homme and a man
        meaning = {
            value: (kind, place) for value, key in keys.items() for place, words in enumerate(groups) if key in words
        }
        if len(meaning) == len(keys):
            return dict(meaning)
    return {}


def _key(value: str) -> str:
    """Return a text without case, accents, spaces and signs; two that are equal then are taken for one."""
    return re.sub(r"[\W_]+", "", folded(value)) or value
