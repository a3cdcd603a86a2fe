"""Open data: a file of the folder or one that is dropped, how it is read, and the first draft of its policy."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from incrowd.core.table import DEFAULTS, SourceOptions
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.readers.guess import guessed_options, policy_keys
from incrowd.engines.worker import limited
from incrowd.errors import InvalidParameter
from incrowd.web.studio.jobs import Tell, Work
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command, foremost, result
from incrowd.web.studio.policy_file import PolicyFile, RowAccessLog
from incrowd.web.studio.rows import PROFILE
from incrowd.web.studio.sessions import UPLOAD
from incrowd.workflows.imports.imports import read_project
from incrowd.workflows.policy.document import read_document
from incrowd.workflows.profile.draft_policy import draft, origin_of, write_draft
from incrowd.workflows.profile.draft_text import DraftGoal, DraftPeriod, DraftRequest
from incrowd.workflows.profile.profile import TableProfile, profile

_SHOWN = 5
_PROJECT = ".deid"
_SINGLE = ("encoding", "delimiter", "decimal", "thousands", "sheet", "header_row")
_SEVERAL = ("dates", "nulls")
_OPTIONS = (*_SINGLE, *_SEVERAL)
_MARKS = {"tab": "\t", "space": " "}


def show(request: PageRequest) -> PageContent | Redirect:
    """Show what is in the folder, or how one table of it is read."""
    if request.value("data").lower().endswith(_PROJECT):
        project = {"name": request.folder.name(request.table()), "into": _free_folder(request, request.table()).name}
        line = command("incrowd", "import", str(project["name"]), "--out", str(project["into"]))
        return PageContent({"reading": None, "project": project, "most": UPLOAD}, commands=(line,))
    if request.value("data"):
        return _reading(request)
    folder = request.folder
    content = {
        "project": None,
        "tables": [
            {"name": name, "size": folder.file(name).stat().st_size}
            for name in (*folder.tables(), *folder.named((_PROJECT,)))
        ],
        "policies": [_policy(request, name) for name in folder.policies()],
        "releases": folder.releases(),
        "most": UPLOAD,
        "reading": None,
    }
    return PageContent(content, commands=("incrowd studio .",))


def _policy(request: PageRequest, name: str) -> dict[str, Any]:
    """Return a policy of the folder, with the dataset that it names, as far as it can be read."""
    try:
        content = read_document(request.folder.file(name).read_text(encoding="utf-8")).content
        return {"name": name, "dataset": str(content["dataset"]["name"]), "method": _method(content)}
    except (InvalidParameter, KeyError, TypeError, UnicodeDecodeError):
        return {"name": name, "dataset": None, "method": None}


def _method(content: dict[str, Any]) -> str:
    release = content.get("release")
    if isinstance(release, list):
        return f"{len(release)} masks"
    return str(release["method"]) if isinstance(release, dict) else "queries"


def _reading(request: PageRequest) -> PageContent | Redirect:
    """Show how a table is read: what was told, what was guessed, and its first rows."""
    path, name = request.table(), request.value("data")
    job = request.jobs.find(_key(request, path))
    drafted: PolicyFile | None = result(job)
    if request.value("drafted") and drafted is not None:
        return request.to("columns", policy=drafted.name, data="")
    options = _options(request)
    RowAccessLog(path.parent, path.name).add("the first rows")
    seen = request.job(f"first rows {_key(request, path)}", f"Reading the first rows of {name}", _first(path, options))
    first: FirstRows = request.result(request.jobs.wait(seen.id))
    target = _free(request, path).name
    reading = {
        "name": name,
        "options": {option: request.value(option) for option in _OPTIONS},
        **vars(first),
        "policy": target,
        "period": request.value("period"),
    }
    line = command("incrowd", "profile", name, *_words(request), "--write", target)
    return PageContent({"reading": reading, "project": None, "most": UPLOAD}, commands=(line,), job=foremost(job))


@dataclass(frozen=True)
class FirstRows:
    """How a table is read, its columns, and the start of its rows as text."""

    guesses: list[str]
    notes: list[str]
    keys: dict[str, str]
    columns: list[str]
    rows: list[list[str | None]]
    count: int | None


def first_rows(path: Path, options: SourceOptions) -> FirstRows:
    """Guess how a table is read, and read its first rows."""
    read = guessed_options(path, options)
    rows = LOCAL.open(path, read)
    batch = next(iter(rows.batches(rows.names)), None)
    first = [] if batch is None else batch.slice(0, _SHOWN).to_pylist()
    texts = [[None if row[name] is None else str(row[name])[:80] for name in rows.names] for row in first]
    keys = {key: str(value) for key, value in policy_keys(read).items()}
    notes = [note for note in rows.notes if note not in read.guesses]
    return FirstRows(list(read.guesses), notes, keys, list(rows.names), texts, rows.rows)


def _first(path: Path, options: SourceOptions) -> Work:
    return lambda tell: limited(first_rows, path, options, stop=tell)


def profiled_file(path: Path, options: SourceOptions, tell: Tell) -> tuple[TableProfile, SourceOptions]:
    """Read every row of a table, and return what its columns hold and how it was read."""
    read = guessed_options(path, options)
    return profile(LOCAL.watched(LOCAL.open(path, read), tell), LOCAL, read.clean), read


def _words(request: PageRequest) -> list[str]:
    """Return what the form tells about the file, as options of the command line."""
    single = [(name, request.value(name)) for name in (*_SINGLE, "period") if request.value(name)]
    several = [(name, value) for name in _SEVERAL for value in _listed(request, name)]
    return [word for name, value in (*single, *several) for word in (f"--{name.replace('_', '-')}", value)]


def _listed(request: PageRequest, name: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in request.value(name).split(",") if part.strip())


def _options(request: PageRequest) -> SourceOptions:
    """Return what the form tells about the file; what it leaves out is guessed."""
    row = request.value("header_row")
    if row and (not row.isdigit() or not 0 < int(row[:5]) <= 1000):
        raise InvalidParameter("the header row is a whole number from 1 to 1,000.")
    return replace(
        DEFAULTS,
        encoding=request.value("encoding") or None,
        delimiter=_MARKS.get(request.value("delimiter"), request.value("delimiter")) or None,
        decimal=request.value("decimal") or None,
        thousands=_MARKS.get(request.value("thousands"), request.value("thousands")) or None,
        sheet=request.value("sheet") or None,
        header_row=int(row) if row else None,
        dates=_listed(request, "dates"),
        nulls=("", *_listed(request, "nulls")),
    )


def write(request: PageRequest) -> Redirect:
    """Read every row once, guess roles and types, and draft a policy into a new file; the work goes on behind."""
    path = request.table()
    options, target = _options(request), _free(request, path)
    period = DraftPeriod(request.value("period")) if request.value("period") else None
    request.jobs.forget(_key(request, path))
    wish = DraftRequest(DraftGoal.MICRODATA, period)

    def work(tell: Tell) -> PolicyFile:
        profiled, read = limited(profiled_file, path, options, tell=tell)
        address = Path(os.path.relpath(path, target.parent)).as_posix()
        origin = origin_of(profiled, address, policy_keys(read))
        write_draft(draft(profiled, origin, wish).text, target)
        file = PolicyFile(target, request.folder.name(target), request.folder.root)
        file.seen.add(PROFILE.what)
        request.jobs.begin(PROFILE.key(file), PROFILE.title, lambda _tell: profiled)
        return file

    request.job(_key(request, path), f"Reading every row of {request.value('data')}", work)
    parameters = {name: request.value(name) for name in (*_OPTIONS, "period") if request.value(name)}
    return request.to("open", data=request.value("data"), drafted="1", **parameters)


def bring(request: PageRequest) -> Redirect:
    """Import a project of ARX into a new folder beside it, read in a worker as every file of others."""
    path = request.table()
    target = _free_folder(request, path)
    limited(_imported, path, target)
    return request.to("columns", policy=request.folder.name(target / "policy.yaml"), data="")


def _imported(path: Path, target: Path) -> None:
    read_project(path).write(target)


def _free_folder(request: PageRequest, path: Path) -> Path:
    """Return where a project goes: a folder after its name, numbered if that is taken."""
    number, folder = 2, path.with_name(path.stem)
    while folder.exists():
        folder, number = path.with_name(f"{path.stem}-{number}"), number + 1
    return request.folder.place(request.folder.name(folder))


def _key(request: PageRequest, path: Path) -> str:
    options = [request.value(name) for name in (*_OPTIONS, "period")]
    return f"draft {path} {path.stat().st_mtime_ns} {options}"


def _free(request: PageRequest, table: Path) -> Path:
    """Return where the policy of a table goes: policy.yaml beside it, or a name after the table."""
    first = table.with_name("policy.yaml")
    named = table.with_name(f"{table.stem}.yaml")
    if not first.exists():
        return first
    number = 2
    while named.exists():
        named = table.with_name(f"{table.stem}-{number}.yaml")
        number += 1
    return request.folder.place(request.folder.name(named))


PAGE = Page(
    "open",
    "Open data",
    "Choose a table, check how it is read, and draft its policy.",
    show,
    {"write": write, "import": bring},
    step=1,
)
