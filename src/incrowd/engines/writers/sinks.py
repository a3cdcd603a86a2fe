"""Sinks: a release is written beside its place, checked, then renamed; nobody sees half of it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from incrowd.core.spreadsheet import is_guarded
from incrowd.errors import InvalidParameter, OutputUnavailable
from incrowd.store.disk import force, lock_at

if TYPE_CHECKING:
    from incrowd.engines.writers.files import Released


_WHOLE = "whole"
"""The file that marks a staged folder whose content is whole and on the disk."""


@dataclass(frozen=True)
class Folders:
    """The folders of a release: `public` may be passed on, `internal` stays with the data holder."""

    public: Path
    internal: Path | None = None


def write_table(data: Released, path: Path, titles: Mapping[str, str] = MappingProxyType({})) -> None:
    """Write a table, or a stream of batches, in the format that the file's name ends with.

    In a file with a name such as data.spreadsheet.csv, no text is a formula for a spreadsheet program.  Files of Stata,
    SPSS and SAS also hold `titles` of columns.

    >>> write_table(None, Path("data.xlsx"))
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: data.xlsx: releases are written as .parquet, .csv, .tsv, .dta, .sav or .xpt....
    """
    from incrowd.engines.statistics_files import WRITERS, write_statistics
    from incrowd.engines.writers.files import CsvStyle, write_csv, write_parquet

    if path.suffix == ".parquet":
        write_parquet(data, path)
    elif path.suffix in {".csv", ".tsv"}:
        delimiter, formulas = "\t" if path.suffix == ".tsv" else ",", "guard" if is_guarded(path) else "keep"
        write_csv(data, path, CsvStyle(delimiter, formulas))
    elif path.suffix in WRITERS:
        write_statistics(data, path, titles)
    else:
        raise InvalidParameter(
            f"{path.name}: releases are written as .parquet, .csv, .tsv, .dta, .sav or .xpt. Choose one of them."
        )


def check_free(target: Folders) -> None:
    """Raise, before anything is charged, if a release cannot go there: nothing is ever overwritten.

    >>> check_free(Folders(Path("nowhere/yet")))
    """
    public, internal = _places(target)
    if internal and (internal.is_relative_to(public) or public.is_relative_to(internal)):
        raise InvalidParameter(
            "one of the internal and the public folder lies in the other, and people pass on whole folders. Keep them "
            "apart."
        )
    for place in filter(None, (public, internal)):
        _check_place(place)


@contextlib.contextmanager
def staged(target: Folders) -> Iterator[Folders]:
    """Yield two new private folders to fill, and publish both when the block ends.

    They lie beside the target on the same disk.  When the block ends without an error, everything is forced to the
    disk, and each folder takes its place by a single rename, the internal one first.  After any failure before that (an
    error, Ctrl-C, a full disk), nothing appears.  If the process is killed, what it leaves is hidden, readable by its
    owner only, and removed by the next release to the same folder; unless it was `completed`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     target = Folders(Path(folder, "out"))
    ...     with staged(target) as stage:
    ...         stage.public.joinpath("note.txt").touch()
    ...     [path.name for path in target.public.iterdir()]
    ['note.txt']
    """
    check_free(target)
    try:
        with _stage(target) as stage:
            yield stage
            for folder in filter(None, (stage.public, stage.internal)):
                _force(folder)
            appear(stage, target)
    except OSError as error:
        failure = error.strerror or "the operating system refused"
        raise OutputUnavailable(f"{target.public} could not be written: {failure}. Nothing appeared there.") from None


def _places(target: Folders) -> tuple[Path, Path | None]:
    return target.public.resolve(), target.internal.resolve() if target.internal else None


def _check_place(place: Path) -> None:
    if place.exists() and not place.is_dir():
        raise OutputUnavailable(f"{place} is a file; a release is a folder. Choose another name.")
    if place.is_dir() and any(place.iterdir()):
        raise OutputUnavailable(f"{place} is not empty, and nothing is overwritten. Choose a new folder.")
    above = next(parent for parent in place.parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise OutputUnavailable(f"{above} cannot be written to. Choose another folder, or ask for the right to write.")


@contextlib.contextmanager
def _stage(target: Folders) -> Iterator[Folders]:
    public, internal = _places(target)
    with contextlib.ExitStack() as stack:
        stage = stack.enter_context(staging_folder(public)) / "public"
        stage.mkdir()
        private = None
        if internal is not None:
            private = stack.enter_context(staging_folder(internal)) / "internal"
            private.mkdir(mode=0o700)
        yield Folders(stage, private)


def _force(folder: Path) -> None:
    """Force the files of a folder, and the folders themselves, to the disk."""
    for path in [*folder.rglob("*"), folder]:
        force(path)


def appear(stage: Folders, target: Folders) -> None:
    """Rename filled folders to their places, the internal one first; both, or none."""
    public, internal = _places(target)
    try:
        if stage.internal and internal:
            stage.internal.rename(internal)
        stage.public.rename(public)
    except BaseException:
        if stage.public.exists() and stage.internal and internal and not stage.internal.exists():
            internal.rename(stage.internal)
        raise
    for parent in {place.parent for place in (public, internal) if place}:
        with contextlib.suppress(OSError):  # the release is there; only its survival of a power cut is uncertain
            force(parent)


@contextlib.contextmanager
def staging_folder(place: Path) -> Iterator[Path]:
    """Create a private hidden folder beside a place; remove it, and new parent folders, at the end."""
    made = [parent for parent in place.parents if not parent.exists()]
    place.parent.mkdir(parents=True, exist_ok=True)
    _sweep(place)
    folder = place.with_name(f"{_prefix(place)}{secrets.token_hex(8)}")
    try:
        with lock_at(_lock_of(folder)):  # before the folder exists, which another process could otherwise remove
            folder.mkdir(mode=0o700)
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        _lock_of(folder).unlink(missing_ok=True)
        for parent in made:
            with contextlib.suppress(OSError):  # others put something there: it stays
                parent.rmdir()


def complete(stage: Folders) -> None:
    """Force what was staged to the disk and mark it as whole: from now on a kill does not lose it.

    This comes before the ledger says that there is a release.  What a killed process left whole is not removed by the
    next release: the ledger decides whether it is delivered or discarded.  What is internal is marked first, since it
    leads to the public folder: a kill between the marks leaves nothing that nobody finds.
    """
    for folder in filter(None, (stage.internal, stage.public)):
        _force(folder)
        (folder.parent / _WHOLE).touch()
        force(folder.parent)


def left_whole(place: Path) -> list[Path]:
    """Return the folders that killed processes staged for a place and marked as whole; no running process uses them.

    One that holds nothing but its mark is removed: its content appeared before the kill.
    """
    folders = (folder for folder in place.parent.glob(f"{escape(_prefix(place))}*") if (folder / _WHOLE).is_file())
    free = sorted(folder for folder in folders if _is_free(folder))
    emptied = [folder for folder in free if [path.name for path in folder.iterdir()] == [_WHOLE]]
    for folder in emptied:
        discard(folder)
    return [folder for folder in free if folder not in emptied]


def discard(folder: Path) -> None:
    """Remove a folder that a killed process left."""
    shutil.rmtree(folder, ignore_errors=True)
    _lock_of(folder).unlink(missing_ok=True)


def _is_free(folder: Path) -> bool:
    try:
        with lock_at(_lock_of(folder)).acquire(timeout=0):
            return True
    except OSError:  # Timeout is one: a process is using the folder
        return False


def _prefix(place: Path) -> str:
    return f".{place.name}.incrowd-"


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.lock")


def _sweep(place: Path) -> None:
    """Remove what killed processes left unfinished beside a place, for any release, and no process has locked."""
    for folder in place.parent.glob(".*.incrowd-*"):
        if folder.is_dir() and not (folder / _WHOLE).exists():
            with contextlib.suppress(OSError):  # Timeout is one: a process is using the folder
                with lock_at(_lock_of(folder)).acquire(timeout=0):
                    shutil.rmtree(folder, ignore_errors=True)
                _lock_of(folder).unlink(missing_ok=True)
