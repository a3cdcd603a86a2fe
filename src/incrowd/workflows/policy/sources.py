"""Sources: the fingerprints of the rows behind each dataset, in a file of the holder's, apart from the ledger.

Another name brings the same people no fresh budget: rows that are known under another name, or half of them, are asked
about before anything is charged.  It is a help for the holder and no claim: that all releases pass one ledger stays
assumed.  The marks are in no ledger, since whoever holds a copy of it could test guesses against them, and since the
number of its entries would tell that rows changed.  They are never shown, exported or certified.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.fingerprints import BottomK, SourceFingerprint
from incrowd.errors import LedgerUnavailable, Refused
from incrowd.store.disk import force, lock_at
from incrowd.workflows.policy.ledger import declaration_of
from incrowd.workflows.policy.ledger_place import state_folder
from incrowd.workflows.policy.policy import Policy

ASKED = Fraction(1, 2)
"""From this share of the smaller set on, an overlap is asked about."""

FILE = "sources.json"
"""The name of the file with fingerprints, beside a ledger in a file or in the folder for state."""
_LOCK = ".sources.lock"
_SLOTS = 16  # fingerprints that are remembered per source
_NOTHING = "0" * 64
_SQLITE = "sqlite:///"

T = TypeVar("T")
Change = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class MarkedSource:
    """A source: where it lies, if that is known, and the marks of its rows."""

    address: str | None
    marks: SourceFingerprint


@dataclass(frozen=True, eq=False)
class DatasetFingerprints:
    """What is remembered of the rows of one dataset, as much for few rows as for many."""

    addresses: tuple[str, ...] = ()
    contents: tuple[str, ...] = ()
    rows: BottomK = field(default_factory=BottomK)
    people: BottomK = field(default_factory=BottomK)

    def with_source(self, address: str | None, marks: SourceFingerprint) -> DatasetFingerprints:
        """Return what is remembered once a source is bound to the dataset, too."""
        people = self.people if marks.people is None else self.people.union(marks.people)
        addresses = self.addresses if address is None else _newest(self.addresses, address)
        return DatasetFingerprints(
            addresses, _newest(self.contents, marks.content), self.rows.union(marks.rows), people
        )

    def overlap(self, marks: SourceFingerprint, besides: DatasetFingerprints) -> tuple[str, Fraction]:
        """Estimate which share of the smaller side is on both, apart from what is known as another dataset's own."""
        if marks.people is not None and len(self.people.bits):
            return "people", marks.people.overlap(self.people, besides.people)
        return "rows", marks.rows.overlap(self.rows, besides.rows)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form; its length is always the same."""
        samples = {name: base64.b64encode(getattr(self, name).to_bytes()).decode() for name in ("rows", "people")}
        return {"addresses": _filled(self.addresses), "contents": _filled(self.contents), **samples}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> DatasetFingerprints:
        """Read what `to_json` wrote."""
        lists = [tuple(mark for mark in stored[name] if mark != _NOTHING) for name in ("addresses", "contents")]
        rows, people = (base64.b64decode(stored[name], validate=True) for name in ("rows", "people"))
        return cls(lists[0], lists[1], BottomK.from_bytes(rows), BottomK.from_bytes(people))


@dataclass(frozen=True)
class FingerprintFile:
    """The file with the marks of sources and their key; only its owner can read it."""

    path: Path

    @classmethod
    def of(cls, policy: Policy) -> FingerprintFile:
        """Return the book beside the policy's ledger, or beside the policy if the ledger is in a database."""
        path = Path(policy.ledger_address.removeprefix(_SQLITE))
        beside = policy.ledger_address.startswith(_SQLITE) and path.is_absolute()
        return cls((path.parent if beside else state_folder(policy.folder)) / FILE)

    def known_key(self) -> bytes | None:
        """Return the key under which marks were made; None where there are none yet."""
        stored = self._read()
        return None if stored is None else bytes.fromhex(stored["key"])

    def key(self) -> bytes:
        """Return the key under which marks are made; the first to ask makes it."""
        stored = self._read()
        if stored is None:
            stored = self._changed(lambda stored: stored)
        return bytes.fromhex(stored["key"])

    def datasets(self, ledger: str) -> dict[str, DatasetFingerprints]:
        """Return what is remembered of each dataset of a ledger."""
        return self._understood(lambda: _datasets(self._read() or {}, ledger))

    def address_mark(self, address: str) -> str:
        """Return the mark of an address."""
        return hmac.new(self.key(), b"address " + address.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def bind(self, ledger: str, dataset: str, sources: tuple[MarkedSource, ...]) -> None:
        """Remember sources as those of a dataset; nobody else's marks are lost, whoever writes at the same time."""
        if not self.holds(ledger, dataset, sources):
            self._changed(self._binding(ledger, dataset, sources))

    def holds(self, ledger: str, dataset: str, sources: tuple[MarkedSource, ...]) -> bool:
        """Whether all of these sources are remembered already."""
        before = self._read()
        return (
            before is not None and self._understood(lambda: self._binding(ledger, dataset, sources)(before)) == before
        )

    def _binding(self, ledger: str, dataset: str, sources: tuple[MarkedSource, ...]) -> Change:
        marks = [(source.address and self.address_mark(source.address), source.marks) for source in sources]

        def bound(stored: dict[str, Any]) -> dict[str, Any]:
            datasets = stored["ledgers"].get(ledger, {})
            whole = DatasetFingerprints.from_json(datasets[dataset]) if dataset in datasets else DatasetFingerprints()
            for address, fingerprint in marks:
                whole = whole.with_source(address, fingerprint)
            return {**stored, "ledgers": {**stored["ledgers"], ledger: {**datasets, dataset: whole.to_json()}}}

        return bound

    def _changed(self, change: Change) -> dict[str, Any]:
        """Change the file while no other process does, and return what is in it now."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with lock_at(self.path.with_name(_LOCK)):
                stored = self._read() or {"version": 1, "key": secrets.token_bytes(32).hex(), "ledgers": {}}
                changed = self._understood(lambda: change(stored))
                _replace(self.path, json.dumps(changed, indent=1))
                return changed
        except OSError as error:
            raise LedgerUnavailable(f"{self.path} cannot be written: {error.strerror or 'no reason given'}.") from None

    def _read(self) -> dict[str, Any] | None:
        def read() -> dict[str, Any] | None:
            try:
                stored: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                return None
            if stored["version"] != 1 or len(bytes.fromhex(stored["key"])) != 32:
                raise ValueError
            return stored

        return self._understood(read)

    def _understood(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, binascii.Error):
            raise LedgerUnavailable(
                f"{self.path} cannot be read; it says which rows belong to which dataset. Restore it from a copy; "
                "without it, the same people under another name are not recognized."
            ) from None


@dataclass(frozen=True, eq=False)
class DatasetBinding:
    """A dataset as its policy declares it, and the sources that its charges bind to it; a look binds nothing."""

    declaration: Declaration
    book: FingerprintFile
    sources: tuple[MarkedSource, ...]
    ledger: str
    root: str
    remembered: list[bool] = field(default_factory=list)
    """Whether the sources were seen to be remembered: what is remembered once is not looked up again."""

    @classmethod
    def of(cls, policy: Policy, ledger: Ledger, sources: tuple[MarkedSource, ...]) -> DatasetBinding:
        """Refuse rows that are known as another dataset, unless the policy says what they are; nothing is written."""
        declaration = declaration_of(policy)
        root = ledger.standing(declaration).dataset
        bond = cls(declaration, FingerprintFile.of(policy), sources, ledger.id, root)
        if declaration.separate is None:
            bond._check(ledger)
        return bond

    def bind(self) -> None:
        """Remember the sources as those of the dataset: done before each charge that is not refused."""
        self.book.bind(self.ledger, self.root, self.sources)

    @property
    def bound(self) -> bool:
        """Whether the sources are remembered already."""
        if not self.remembered and self.book.holds(self.ledger, self.root, self.sources):
            self.remembered.append(True)
        return bool(self.remembered)

    def _check(self, ledger: Ledger) -> None:
        datasets = self.book.datasets(self.ledger)
        own = datasets.get(self.root, DatasetFingerprints())
        others = {name: marks for name, marks in datasets.items() if name != self.root and ledger.knows(name)}
        for source in self.sources:
            for name, marks in others.items():
                self._check_beside(source, name, marks, own)

    def _check_beside(
        self, source: MarkedSource, name: str, marks: DatasetFingerprints, own: DatasetFingerprints
    ) -> None:
        address = source.address and self.book.address_mark(source.address)
        if source.marks.content in set(marks.contents) - set(own.contents):
            raise self._refusal(name)
        if address in set(marks.addresses) - set(own.addresses):
            raise self._refusal(name)
        what, share = marks.overlap(source.marks, own)
        if share >= ASKED:
            raise Refused(
                f"dataset {self.declaration.dataset} and dataset {name} seem to share at least half of their {what} "
                f"(of the smaller dataset). A new name gives no new budget. {_advice(name)}"
            )

    def _refusal(self, name: str) -> Refused:
        return Refused(
            f"the rows of dataset {self.declaration.dataset} are those of dataset {name}. A new name gives no new "
            f"budget. {_advice(name)}"
        )


def _advice(name: str) -> str:
    return f"Write same_people_as: {name} to share its budget, or separate: with the reason why these are other people."


def _datasets(stored: Mapping[str, Any], ledger: str) -> dict[str, DatasetFingerprints]:
    datasets = stored.get("ledgers", {}).get(ledger, {})
    return {name: DatasetFingerprints.from_json(marks) for name, marks in datasets.items()}


def _newest(marks: tuple[str, ...], mark: str) -> tuple[str, ...]:
    """Return the marks with one more, without the oldest if they are too many."""
    return marks if mark in marks else (*marks, mark)[-_SLOTS:]


def _filled(marks: tuple[str, ...]) -> list[str]:
    return [*marks, *[_NOTHING] * (_SLOTS - len(marks))]


def _replace(path: Path, text: str) -> None:
    """Put a new file in the place of the old one: whoever reads finds one or the other, whole."""
    written = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(written, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # before the rename: after a power cut the name must not hold an empty file
        written.replace(path)
        force(path.parent)  # and the rename itself
    finally:
        written.unlink(missing_ok=True)
