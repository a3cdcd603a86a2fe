"""Folder: the files of the folder that was opened, and nothing outside it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from incrowd.errors import InvalidParameter
from incrowd.verifier.files import CERTIFICATE, file_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.local.survey_file import is_survey
from incrowd.workflows.policy.document import is_policy

TABLES = (".csv", ".tsv", ".txt", ".parquet", ".arrow", ".feather", ".xlsx", ".sav", ".dta", ".sas7bdat", ".xpt")
"""The endings of files that can be opened as tables."""
_DEEP, _MOST = 3, 500  # folders below, and files listed: a home folder must not be walked whole
_ODD = re.compile(r"[^\w.-]+")
_LONGEST_NAME = 200  # bytes: file systems hold 255, and a number may follow
_OUTSIDE = "the opened folder has no such file."
_RECEIVED = re.compile(r"received-[0-9a-f]{1,16}")  # a release that was dropped, in a new folder of its own
_DROPPED = ("", "hierarchies")  # where else a dropped file may go


@dataclass(frozen=True)
class Folder:
    """The one folder whose files a studio reads and writes; names are relative to it, with slashes.

    >>> Folder(Path("/data")).place("../secret")
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: the opened folder has no such file.
    """

    root: Path

    def place(self, name: str) -> Path:
        """Return where a name points, which need not exist: never outside, never hidden, never by a link outwards."""
        parts = name.split("/")
        odd = "\\" in name or "\0" in name or ":" in name or any(not part or part.startswith(".") for part in parts)
        if odd:
            raise InvalidParameter(_OUTSIDE)
        path = self.root.joinpath(*parts)
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise InvalidParameter(_OUTSIDE)
        return path

    def file(self, name: str) -> Path:
        """Return an existing file."""
        path = self.place(name)
        if not path.is_file():
            raise InvalidParameter(_OUTSIDE)
        return path

    def release(self, name: str) -> Path:
        """Return the folder of a release."""
        path = self.place(name)
        if not self.is_release(path):
            raise InvalidParameter("the opened folder has no such release.")
        return path

    def is_release(self, path: Path) -> bool:
        """Whether a folder is a release; the opened one never is: a certificate there must not hide its tables."""
        return path.resolve() != self.root.resolve() and (path / CERTIFICATE).is_file()

    def is_published(self, path: Path) -> bool:
        """Whether a file is part of a release: the certificate, or what it names with these very bytes."""
        if not self.is_release(path.parent):
            return False
        if path.name == CERTIFICATE:
            return True
        named = {file.name: file for file in read_certificate(path.parent).outputs}
        return path.name in named and file_of(path) == named[path.name]

    def free(self, name: str, into: str = "") -> Path:
        """Return a place for a new file of about this name: its signs replaced, numbered if it is taken.

        A release is received whole, in a folder of its own; nothing is dropped into another, and no certificate beside
        tables.

        >>> Folder(Path("/data")).free("../Ασθενείς (2024).csv").name
        'Ασθενείς-2024-.csv'
        """
        received = _RECEIVED.fullmatch(into) is not None
        if not received and (into not in _DROPPED or name == CERTIFICATE):
            raise InvalidParameter("a release is dropped on the page Verify, with all its files.")
        written = unicodedata.normalize("NFC", name.replace("\\", "/").rpartition("/")[2])
        letters = _ODD.sub("-", written).encode()[-_LONGEST_NAME:].decode(errors="ignore")
        plain = letters.strip("-.") or "data"
        path = self.place(f"{into}/{plain}" if into else plain)
        number = 2
        while path.exists():
            path = path.with_name(f"{Path(plain).stem}-{number}{path.suffix}")
            number += 1
        return path

    def name(self, path: Path) -> str:
        """Return the name of a path inside."""
        return path.relative_to(self.root).as_posix()

    def tables(self) -> list[str]:
        """Return the tables, those of releases left out."""
        return self.named(TABLES)

    def named(self, endings: tuple[str, ...]) -> list[str]:
        """Return the files with some endings, those of releases left out."""
        return [self.name(path) for path in self._files() if path.suffix.lower() in endings]

    def policies(self) -> list[str]:
        """Return the policy files."""
        return [self.name(path) for path in self._files() if is_policy(path)]

    def surveys(self) -> list[str]:
        """Return the survey files."""
        return [self.name(path) for path in self._files() if is_survey(path)]

    def releases(self) -> list[str]:
        """Return the folders of releases, the newest first."""
        folders = [path for path in self._folders() if self.is_release(path)]
        folders.sort(key=lambda path: -(path / CERTIFICATE).stat().st_mtime_ns)
        return [self.name(path) for path in folders]

    def _files(self) -> Iterator[Path]:
        folders = (path for path in self._folders() if not self.is_release(path))
        paths = (path for folder in folders for path in _inside(folder))
        yield from islice((path for path in paths if path.is_file()), _MOST)

    def _folders(self) -> list[Path]:
        """Return the folder and those in it, the nearest first: not too deep, and not too many."""
        folders, layer = [self.root], [self.root]
        for _ in range(_DEEP):
            layer = [path for folder in layer for path in _inside(folder) if path.is_dir() and not path.is_symlink()]
            folders += layer[: _MOST - len(folders)]
            layer = layer[:_MOST]
        return folders


def _inside(folder: Path) -> list[Path]:
    """Return what is in a folder, hidden things and folders that may not be read left out."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return []
