"""Differences: a release without an ε is compared with earlier ones about the same people, before it appears.

Two tables that each keep every equivalence class at k rows can still reveal one person together: a person in only one
of them is in the difference.  The files are compared as they were written, as anyone can read them.  A release with an
ε is never compared: nothing computed from rows may hold it back.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.certificate import Certificate
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Syntactic
from incrowd.core.steps.around import period_of
from incrowd.core.steps.periods import ReadPeriod
from incrowd.core.steps.step import Step
from incrowd.errors import IncrowdError, InvalidParameter, Refused
from incrowd.methods.shared.outcome import ReleasedTuples
from incrowd.verifier.files import CERTIFICATE, file_of, tables_of
from incrowd.workflows.policy.internal import INTERNAL, internal_folder
from incrowd.workflows.policy.ledger import same_people
from incrowd.workflows.policy.policy import Policy

if TYPE_CHECKING:
    from incrowd.workflows.assess.released import Levels, ReadRelease
    from incrowd.workflows.release.members import Members

_NAMED = 3
Cell = tuple[str | None, ...]


@dataclass(frozen=True)
class Earlier:
    """An earlier release without an ε: its id and, if it is where it was published, its folder and certificate."""

    release: str
    folder: Path | None = None
    certificate: Certificate | None = None
    k: int | None = None
    key: bytes = field(default=b"", repr=False)
    """The key under which the certificate commits to the rows."""

    @property
    def place(self) -> str:
        """Its id, and where it should be."""
        return self.release if self.folder is None else f"{self.release} in {self.folder}"


@dataclass(frozen=True)
class Written:
    """A release as it was written: its certificate, its folder, the k of its smallest class."""

    certificate: Certificate
    folder: Path
    k: int | None
    members: Members | None = None
    """Who is in which cell, where it is a release of one period."""
    anyway: bool = False
    """Whether the data holder knows what it shows together with earlier ones."""


def is_form(guarantee: Guarantee) -> bool:
    """Whether a guarantee is about a table's form alone; unsampled crowds compose with no other."""
    return isinstance(guarantee.loss, Syntactic)


def earlier_releases(policy: Policy, ledger: Ledger | None, *, anyway: bool) -> tuple[Earlier, ...]:
    """Return the earlier releases that a new one is compared with; refuse it, uncharged, if one of them is missing.

    The ledger says which there are, the internal folder where they were published, and the digest in the conclusion of
    the charge whether they are unchanged.  With `anyway`, missing ones are skipped.
    """
    if ledger is None or not is_form(policy.plan.guarantee):
        return ()
    releases = [published_release(policy, ledger, name) for name in dict.fromkeys(_charged(policy, ledger))]
    missing = [release for release in releases if release.certificate is None]
    if missing and not anyway:
        more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
        raise Refused(
            "this release has no epsilon, so it must be compared with every earlier one of the same people, and "
            f"{'; '.join(release.place for release in missing[:_NAMED])}{more} is not there as it was published. "
            "Nothing was charged. Put it back, or release with --force if you know what the two show together."
        )
    return tuple(release for release in releases if release.certificate is not None)


def require_none_since(policy: Policy, ledger: Ledger, earlier: Sequence[Earlier]) -> None:
    """Refuse a release that was not compared with one that was published while its rows were read."""
    if not is_form(policy.plan.guarantee):
        return
    compared = {release.release for release in earlier}
    since = [name for name in dict.fromkeys(_charged(policy, ledger)) if name not in compared]
    if since:
        raise Refused(
            f"release {since[0]} about the same people was published while this one was made, and the two were not "
            "compared. Nothing appeared. Release again."
        )


_SUPPRESS, _TABULATE = "suppress cells", "tabulate"
_BY_KEYS = "perturb cells"
_PROTECTIONS = (_SUPPRESS, "round cells", "adjust cells", _BY_KEYS)


def require_linked(policy: Policy, earlier: Sequence[Earlier]) -> None:
    """Refuse, uncharged, a table with totals that is not protected together with all earlier ones, or in another way.

    Those are tables of these people and of the same numbers, by other steps: a reader holds them all.
    """
    ours, protection = _step(policy.plan.steps, _TABULATE), _protection(policy.plan.steps)
    if ours is None or protection is None:
        return
    others = [release for release in earlier if _same_numbers(policy, release)]
    mixed = [other for other in others if other.certificate and _kind(other.certificate.steps) != protection.kind]
    if mixed:
        raise Refused(
            f"a table of the same numbers was released before, and protected in another way: {mixed[0].place}. "
            "Readers hold both: a number that is rounded or moved is near one that the other table leaves empty. "
            "Nothing was charged. Protect this table as that one, or release with --force if you know what they show "
            "together."
        )
    if protection.kind != _SUPPRESS:
        return
    files = [file for release in others for file in _files_with_totals(release.certificate, release.folder)]
    missing = [place for place, digest in files if digest not in protection.earlier]
    if missing:
        names = ", ".join(json.dumps(os.path.relpath(place, policy.folder), ensure_ascii=False) for place in missing)
        raise Refused(
            "readers of this table also hold the tables of this dataset that were released before, and could subtract "
            "one from the other. Nothing was charged. Have it protected together with them: add them to earlier: "
            f"[{names}] under release:, or release with --force if you know what they show together."
        )


def _same_numbers(policy: Policy, release: Earlier) -> bool:
    """Whether an earlier release is another table with totals of the same numbers, from rows of the same period."""
    certificate, steps = release.certificate, policy.plan.steps
    if certificate is None or other_period(period_of(certificate.steps), period_of(steps)):
        return False
    made, ours = _step(certificate.steps, _TABULATE), _step(steps, _TABULATE)
    if made is None or (made, _protection(certificate.steps)) == (ours, _protection(steps)):
        return False
    return bool((made.value, made.weight) == (ours.value, ours.weight))


def _files_with_totals(certificate: Certificate | None, folder: Path | None) -> Iterator[tuple[Path, str]]:
    """Yield the file and digest of each table with totals."""
    made = None if certificate is None else _step(certificate.steps, _TABULATE)
    if certificate is not None and folder is not None and made is not None:
        for file in tables_of(certificate)[: len(made.tables)]:
            yield folder / file.name, file.sha256


def _protection(steps: Sequence[Step]) -> Any:
    return next((step for step in steps if step.kind in _PROTECTIONS), None)


def _kind(steps: Sequence[Step]) -> str | None:
    protection = _protection(steps)
    return None if protection is None else protection.kind


def _step(steps: Sequence[Step], kind: str) -> Any:
    return next((step for step in steps if step.kind == kind), None)


def other_period(one: ReadPeriod | None, other: ReadPeriod | None) -> bool:
    """Whether two releases read rows of different periods of one calendar, and so no row in common."""
    if one is None or other is None or not one.calendar.follows(other.calendar):
        return False
    return one.label != other.label


def hold_against(new: Written, earlier: Sequence[Earlier], policy: Policy) -> tuple[str, ...]:
    """Refuse a release whose difference to an earlier one isolates fewer than k people; return what was not compared.

    The cells are those of the quasi-identifiers that both tables have, each at the coarser of its two levels; where a
    certificate does not name the level, labels are compared as they are.  With a release of another period no row is
    shared, so the people of each cell are compared instead.
    """
    if not earlier:
        return ()
    from incrowd.workflows.assess.released import released_of  # loaded before the charge, for `require_crowds`
    from incrowd.workflows.release.members import require_crowds_moved

    ours = released_of(new.certificate, new.folder)
    notes: list[str] = []
    for release in earlier:
        if release.certificate is None or release.folder is None:
            continue
        k = max(filter(None, (new.k, release.k)), default=0)
        if other_period(period_of(new.certificate.steps), period_of(release.certificate.steps)):
            notes.extend(require_crowds_moved(new.members, release.release, k, policy))
            continue
        try:
            old = released_of(release.certificate, release.folder)
            pairs = [(one, other) for one in _tables(ours) for other in _tables(old)]
            cells = [_cells((one, ours.levels), (other, old.levels), policy) for one, other in pairs]
        except InvalidParameter as error:
            notes.append(f"not compared with release {release.release}: {error}")
            continue
        linked, before = (_step(part.steps, _SUPPRESS) for part in (new.certificate, release.certificate))
        if linked is not None and before is not None:
            files = tables_of(release.certificate)[: before.tables]
            if all(file.sha256 in linked.earlier for file in files):
                continue
        if _same_table(new, release):
            notes.extend(_require_same_cells(new, release))
            continue
        if not cells:
            notes.append(
                f"not compared with release {release.release}: values of one of the two are masked or suppressed"
            )
        for names, mine, theirs in cells:
            _refuse(names, mine, theirs, k, release.release)
    return tuple(notes)


def _same_table(new: Written, release: Earlier) -> bool:
    """Whether an earlier release made the same tables with totals, by the same steps; perhaps of other rows.

    Noise by the keys of records is left out: it is made for tables that are subtracted.
    """
    steps = () if release.certificate is None else release.certificate.steps
    own, before = ((_step(made, _TABULATE), _protection(made)) for made in (new.certificate.steps, steps))
    return own == before and own[1] is not None and own[1].kind != _BY_KEYS


def _require_same_cells(new: Written, release: Earlier) -> tuple[str, ...]:
    """Refuse a table whose cells are not those of the same table before: readers subtract one from the other."""
    number = _step(new.certificate.steps, _TABULATE).number
    ours, theirs = (
        [_read_cells(place, number) for place, _ in _files_with_totals(made.certificate, made.folder)]
        for made in (new, release)
    )
    differing = sum(_differing(*pair) for pair in zip(ours, theirs, strict=True))
    if not differing:
        return ()
    cells = "1 cell differs" if differing == 1 else f"{differing:,} cells differ"
    if new.anyway:
        return (f"the same table was published in release {release.release}: {cells}, and readers hold both",)
    raise Refused(
        f"the same table was published before, in release {release.release}, and {cells} from it. Readers hold both: "
        "a person who came or went, or a cell that one of the two leaves empty, stands in the difference. Nothing "
        "appeared. Declare period: if each table has rows of its own, or release with --force if you know what the two "
        "show together."
    )


def _read_cells(file: Path, number: str) -> dict[Cell, int | None]:
    """Return the number of each cell of a table as it was written, None where it was left empty."""
    from incrowd.methods.tabulation.protected.joint import ReleasedTable  # the method has loaded it

    table = ReleasedTable.read(str(file), number)
    return {**dict(zip(table.labels, table.values, strict=True)), **dict.fromkeys(table.empty)}


def _differing(ours: dict[Cell, int | None], theirs: dict[Cell, int | None]) -> int:
    return sum(ours.get(cell) != theirs.get(cell) for cell in ours.keys() | theirs.keys())


def _charged(policy: Policy, ledger: Ledger) -> Iterator[str]:
    """Yield the ids of all releases without an ε about these people that were concluded with a certificate."""
    for entry in ledger.entries():
        if entry.kind != "charge" or all(charge.epsilon.is_finite() for charge in entry.charged):
            continue
        name = entry.body["release"]
        mine = any(_about(ledger, charge.dataset, policy) for charge in entry.charged)
        if mine and any(ledger.conclusions(name)):
            yield name


def _about(ledger: Ledger, dataset: str, policy: Policy) -> bool:
    names = (policy.name, policy.section.dataset.same_people_as)
    return dataset in names or any(same_people(ledger, dataset, name) for name in names if name is not None)


def published_release(policy: Policy, ledger: Ledger, release: str) -> Earlier:
    """Return a release as it is today: its folder and certificate, if both are as they were published."""
    try:
        facts = json.loads((internal_folder(policy, release) / INTERNAL).read_text(encoding="utf-8"))
        folder, k, key = Path(facts["published"]), facts["k"], bytes.fromhex(facts.get("commitment key", ""))
    except (OSError, ValueError, KeyError, TypeError):
        return Earlier(release)
    from incrowd.workflows.certificates import read_certificate

    try:
        certificate = read_certificate(folder / CERTIFICATE)
        same = certificate.digest() in ledger.conclusions(release)
        whole = all(file_of(folder / file.name) == file for file in tables_of(certificate))
    except (OSError, IncrowdError):
        return Earlier(release, folder)
    return Earlier(release, folder, certificate if same and whole else None, k, key)


def _tables(released: ReadRelease) -> list[ReleasedTuples]:
    """Return the tables whose counts are those of the data."""
    return [table for table in released.tables if table.rows is not None and not table.blanks and table.faithful]


def _cells(
    one: tuple[ReleasedTuples, Levels], other: tuple[ReleasedTuples, Levels], policy: Policy
) -> tuple[tuple[str, ...], Counter[Cell], Counter[Cell]]:
    """Return the columns by which two tables can be compared, and the number of rows of each table in every cell."""
    both = set(one[0].labels.column_names) & set(other[0].labels.column_names)
    quasi = [name for name in policy.schema.quasi if name in both]
    if not quasi:
        raise InvalidParameter("the two have no quasi-identifier in common.")
    levels = {name: (_level(one[1], name), _level(other[1], name)) for name in quasi}
    risen = []
    for table, place in ((one[0], 0), (other[0], 1)):
        columns = [_risen(table, name, levels[name], place, policy) for name in quasi]
        cells: Counter[Cell] = Counter()
        for cell, rows in zip(zip(*columns, strict=True), () if table.rows is None else table.rows, strict=True):
            cells[cell] += int(rows)
        risen.append(cells)
    return tuple(quasi), risen[0], risen[1]


def _level(levels: Levels, name: str) -> int | None:
    possible = levels.get(name, ())
    return possible[0] if len(possible) == 1 else None


def _risen(
    table: ReleasedTuples, name: str, levels: tuple[int | None, int | None], place: int, policy: Policy
) -> list[str | None]:
    from incrowd.workflows.coarsen.labels import raise_labels

    labels: list[str | None] = table.labels[name].to_pylist()
    low, top = levels[place], max((level for level in levels if level is not None), default=0)
    if low is None or None in levels or low == top:
        return labels
    higher = raise_labels(policy.schema[name], low, top, set(labels))
    return [higher[label] for label in labels]


def _refuse(names: Sequence[str], mine: Counter[Cell], theirs: Counter[Cell], k: int, release: str) -> None:
    for cell, rows in mine.items():
        apart = abs(rows - theirs[cell]) if cell in theirs else 0
        if 0 < apart < k:
            labels = ", ".join(
                f"{name} {'missing' if label is None else label}" for name, label in zip(names, cell, strict=True)
            )
            raise Refused(
                f"compared with release {release}, which is published, this one would isolate fewer than {k} people: "
                f"in the cell {labels} the two differ by {apart}. Nothing appeared. Release coarser "
                "levels, or the same people."
            )
