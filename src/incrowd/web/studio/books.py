"""Books: the ledgers that the policies and surveys of a folder name, each once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import IncrowdError
from incrowd.web.studio.folder import Folder
from incrowd.web.studio.page import command
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.workflows.local.survey_file import load_survey
from incrowd.workflows.policy.ledger import Booked, find_book

_FILE = "sqlite:///"


@dataclass(frozen=True)
class FolderLedger:
    """A ledger, its name for people, and the files that name it, by the dataset that each is about."""

    ledger: Ledger
    name: str
    files: dict[str, str]

    @property
    def line(self) -> str:
        """The command line that shows it."""
        return command("incrowd", "ledger", "show", "--entries", "--ledger", self.name)


@dataclass(frozen=True)
class Unread:
    """A file whose ledger cannot be shown, and why."""

    file: str
    problem: str


def books_of(folder: Folder) -> tuple[list[FolderLedger], list[Unread]]:
    """Return every ledger that was made, and the files that cannot be read or whose ledger is lost."""
    found, unread = dict[str, FolderLedger](), list[Unread]()
    for file, dataset, booked in _booked(folder, unread):
        try:
            ledger = find_book(booked)
        except IncrowdError as problem:
            unread.append(Unread(file, str(problem)))
            continue
        if ledger is not None:
            address = booked.ledger_address
            book = found.setdefault(address, FolderLedger(ledger, ledger_name(address, folder.root), {}))
            book.files.setdefault(dataset, file)
    return list(found.values()), unread


def _booked(folder: Folder, unread: list[Unread]) -> Iterator[tuple[str, str, Booked]]:
    """Yield what has a ledger, by the name of its file and its dataset."""
    for name in folder.policies():
        try:
            policy = PolicyFile(folder.file(name), name, folder.root).policy
            yield name, policy.name, policy
        except IncrowdError as problem:
            unread.append(Unread(name, str(problem)))
    for name in folder.surveys():
        try:
            survey = load_survey(folder.file(name))
            yield name, survey.survey.name, survey
        except IncrowdError as problem:
            unread.append(Unread(name, str(problem)))


def ledger_name(address: str, root: Path) -> str:
    """Return the address of a ledger for people: from the folder that was opened, and never with a password.

    >>> ledger_name("sqlite:////data/.incrowd/ledger.sqlite", Path("/data"))
    'sqlite:///.incrowd/ledger.sqlite'
    >>> ledger_name("postgresql+psycopg://me:secret@host/book", Path("/data"))
    'postgresql+psycopg://…'
    """
    if address.startswith(_FILE):
        return f"{_FILE}{Path(os.path.relpath(address.removeprefix(_FILE), root)).as_posix()}"
    return f"{address.partition('://')[0]}://…"
