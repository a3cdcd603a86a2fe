"""Open data: a file of the folder or one that is dropped, how it is read, and the first draft of its policy."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from incrowd.core.table import DEFAULTS, SourceOptions
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.readers.guess import guessed_options, policy_keys
from incrowd.errors import InvalidParameter
from incrowd.web.studio.jobs import Tell
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.web.studio.policy_file import PolicyFile
from incrowd.web.studio.row_access import RowAccessLog
from incrowd.web.studio.rows import PROFILE
from incrowd.web.studio.sessions import UPLOAD
from incrowd.workflows.policy.document import read_document
from incrowd.workflows.profile.draft_policy import draft, write_draft
from incrowd.workflows.profile.draft_text import DraftGoal, DraftPeriod, DraftRequest, Origin
from incrowd.workflows.profile.profile import profile

_SHOWN = 6
_SINGLE = ("encoding", "delimiter", "decimal", "thousands", "sheet", "header_row")
_SEVERAL = ("dates", "nulls")
_OPTIONS = (*_SINGLE, *_SEVERAL)
_MARKS = {"tab": "\t", "space": " "}


def show(asked: PageRequest) -> PageContent | Redirect:
    """Show what is in the folder, or how one table of it is read."""
    if asked.value("data"):
        return _reading(asked)
    folder = asked.folder
    content = {
        "tables": [{"name": name, "size": folder.file(name).stat().st_size} for name in folder.tables()],
        "policies": [_policy(asked, name) for name in folder.policies()],
        "releases": folder.releases(),
        "most": UPLOAD,
        "reading": None,
    }
    return PageContent(content, commands=("incrowd studio .",))


def _policy(asked: PageRequest, name: str) -> dict[str, Any]:
    """Return a policy of the folder, with the dataset that it names, as far as it can be read."""
    try:
        content = read_document(asked.folder.file(name).read_text(encoding="utf-8")).content
        return {"name": name, "dataset": str(content["dataset"]["name"]), "method": _method(content)}
    except (InvalidParameter, KeyError, TypeError, UnicodeDecodeError):
        return {"name": name, "dataset": None, "method": None}


def _method(content: dict[str, Any]) -> str:
    release = content.get("release")
    if isinstance(release, list):
        return f"{len(release)} masks"
    return str(release["method"]) if isinstance(release, dict) else "questions"


def _reading(asked: PageRequest) -> PageContent | Redirect:
    """Show how a table is read: what was told, what was guessed, and its first rows."""
    path, name = asked.table(), asked.value("data")
    job = asked.jobs.known(_key(asked, path))
    drafted: PolicyFile | None = result(job)
    if asked.value("drafted") and drafted is not None:
        return asked.to("columns", policy=drafted.name, data="")
    told = _told(asked)
    read = guessed_options(path, told)
    rows = LOCAL.open(path, read)
    RowAccessLog(path.parent, path.name).add("the first rows")
    batch = next(iter(rows.batches(rows.names)), None)
    first = [] if batch is None else batch.slice(0, _SHOWN).to_pylist()
    target = _free(asked, path).name
    reading = {
        "name": name,
        "told": {option: asked.value(option) for option in _OPTIONS},
        "guesses": list(read.guesses),
        "notes": list(rows.notes),
        "keys": {key: str(value) for key, value in policy_keys(read).items()},
        "columns": list(rows.names),
        "rows": [[None if row[each] is None else str(row[each])[:80] for each in rows.names] for row in first],
        "count": rows.rows,
        "policy": target,
        "period": asked.value("period"),
    }
    line = command("incrowd", "profile", name, *_words(asked), "--write", target)
    return PageContent({"reading": reading, "most": UPLOAD}, commands=(line,), job=foremost(job))


def _words(asked: PageRequest) -> list[str]:
    """Return what the form tells about the file, as options of the command line."""
    single = [(name, asked.value(name)) for name in (*_SINGLE, "period") if asked.value(name)]
    several = [(name, each) for name in _SEVERAL for each in _listed(asked, name)]
    return [word for name, value in (*single, *several) for word in (f"--{name.replace('_', '-')}", value)]


def _listed(asked: PageRequest, name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in asked.value(name).split(",") if part.strip())


def _told(asked: PageRequest) -> SourceOptions:
    """Return what the form tells about the file; what it leaves out is guessed."""
    row = asked.value("header_row")
    if row and (not row.isdigit() or not 0 < int(row[:5]) <= 1000):
        raise InvalidParameter("the row that names the columns is a whole number from 1 to 1,000.")
    return replace(
        DEFAULTS,
        encoding=asked.value("encoding") or None,
        delimiter=_MARKS.get(asked.value("delimiter"), asked.value("delimiter")) or None,
        decimal=asked.value("decimal") or None,
        thousands=_MARKS.get(asked.value("thousands"), asked.value("thousands")) or None,
        sheet=asked.value("sheet") or None,
        header_row=int(row) if row else None,
        dates=_listed(asked, "dates"),
        nulls=("", *_listed(asked, "nulls")),
    )


def write(asked: PageRequest) -> Redirect:
    """Read every row once, guess roles and types, and draft a policy into a new file; the work goes on behind."""
    path = asked.table()
    told, target = _told(asked), _free(asked, path)
    period = DraftPeriod(asked.value("period")) if asked.value("period") else None
    asked.jobs.forget(_key(asked, path))
    wish = DraftRequest(DraftGoal.MICRODATA, period)

    def work(tell: Tell) -> PolicyFile:
        read = guessed_options(path, told)
        rows = LOCAL.open(path, read)
        found = profile(LOCAL.watched(rows, tell))
        origin = Origin(Path(os.path.relpath(path, target.parent)).as_posix(), policy_keys(read))
        write_draft(draft(found, origin, wish).text, target)
        file = PolicyFile(target, asked.folder.name(target), asked.folder.root)
        file.seen.add(PROFILE.what)
        asked.jobs.begin(PROFILE.key(file), PROFILE.title, lambda _tell: found)
        return file

    asked.job(_key(asked, path), f"Reading every row of {asked.value('data')}", work)
    given = {name: asked.value(name) for name in (*_OPTIONS, "period") if asked.value(name)}
    return asked.to("open", data=asked.value("data"), drafted="1", **given)


def _key(asked: PageRequest, path: Path) -> str:
    options = [asked.value(name) for name in (*_OPTIONS, "period")]
    return f"draft {path} {path.stat().st_mtime_ns} {options}"


def _free(asked: PageRequest, table: Path) -> Path:
    """Return where the policy of a table goes: policy.yaml beside it, or a name after the table."""
    first = table.with_name("policy.yaml")
    named = table.with_name(f"{table.stem}.yaml")
    if not first.exists():
        return first
    number = 2
    while named.exists():
        named = table.with_name(f"{table.stem}-{number}.yaml")
        number += 1
    return asked.folder.place(asked.folder.name(named))


PAGE = Page(
    "open",
    "Open data",
    "Choose a table, see how it is read, and draft its policy.",
    show,
    {"write": write},
    step=1,
)
