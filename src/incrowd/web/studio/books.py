"""Books: the ledgers that the policies and surveys of a folder name, each once."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import IncrowdError
from incrowd.web.studio.folder import Folder
from incrowd.web.studio.page import PageRequest, command
from incrowd.workflows.local.survey_file import load_survey
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.ledger_place import LedgerOwner
from incrowd.workflows.policy.policy import Policy

_FILE = "sqlite:///"


@dataclass(frozen=True)
class FolderLedger:
    """A ledger, its name for people, and the files that name it, by the dataset that each is about."""

    ledger: Ledger
    name: str
    files: dict[str, str]
    address: str

    @property
    def line(self) -> str:
        """The command line that shows it."""
        return command("incrowd", "ledger", "show", "--entries", "--ledger", self.name)


@dataclass(frozen=True)
class Unread:
    """A file that cannot be read, or whose ledger cannot be shown, and why."""

    file: str
    problem: str


@dataclass(frozen=True)
class FolderBooks:
    """Every ledger that was made under some file of a folder, its policies by name, and what could not be read."""

    ledgers: tuple[FolderLedger, ...]
    policies: dict[str, Policy]
    unread: tuple[Unread, ...]


def books_of(request: PageRequest) -> FolderBooks:
    """Read the policies and surveys of the studio's folder and open their ledgers; none is made."""
    folder = request.folder
    ledgers, policies, unread = dict[str, FolderLedger](), dict[str, Policy](), list[Unread]()
    readers: dict[str, Callable[[str], tuple[str, LedgerOwner]]] = {
        **dict.fromkeys(folder.policies(), lambda name: _policy(request, name)),
        **dict.fromkeys(folder.surveys(), lambda name: _survey(folder, name)),
    }
    for file, read in readers.items():
        try:
            dataset, booked = read(file)
            if isinstance(booked, Policy):
                policies[file] = booked
            ledger = find_book(booked)
        except IncrowdError as problem:
            unread.append(Unread(file, str(problem)))
            continue
        if ledger is not None:
            address = booked.ledger_address
            name = ledger_name(address, folder.root)
            ledgers.setdefault(address, FolderLedger(ledger, name, {}, address)).files.setdefault(dataset, file)
    return FolderBooks(tuple(ledgers.values()), policies, tuple(unread))


def _policy(request: PageRequest, name: str) -> tuple[str, LedgerOwner]:
    policy = request.named_policy(name).policy
    return policy.name, policy


def _survey(folder: Folder, name: str) -> tuple[str, LedgerOwner]:
    survey = load_survey(folder.file(name))
    return survey.survey.name, survey


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
