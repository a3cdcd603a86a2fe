"""Page: a page of the studio, its request and its content; every page is available as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from incrowd.errors import InvalidParameter, Refused
from incrowd.web.studio.folder import Folder
from incrowd.web.studio.jobs import Job, Jobs, State, Work
from incrowd.web.studio.policy_file import PolicyFile


@dataclass(frozen=True)
class Redirect:
    """Where to go after something was done, and a word about it."""

    address: str


@dataclass(frozen=True)
class Download:
    """A file made by an action: its content, or its path until it is sent."""

    name: str
    content: bytes | Path


@dataclass(frozen=True)
class PageContent:
    """What a page shows: plain values, pictures of them, the command lines that it equals, and the work behind it.

    Of work that goes on the layout shows how far it is, and of work that failed, why; the page says the rest.
    """

    content: Mapping[str, Any] = field(default_factory=dict)
    pictures: Mapping[str, Markup] = field(default_factory=dict)
    commands: tuple[str, ...] = ()
    job: Job | None = None


@dataclass(frozen=True)
class PageRequest:
    """A request: the folder and the jobs of the studio, what stands in the address, and what a form holds."""

    folder: Folder
    jobs: Jobs
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)

    def value(self, name: str, default: str = "") -> str:
        """Return what a form or the address says under a name."""
        return self.form.get(name, self.query.get(name, default)).strip()

    def policy_file(self) -> PolicyFile:
        """Return the policy that the request names: read and parsed once, however many parts of a page ask for it."""
        return self._policy_file

    @cached_property
    def _policy_file(self) -> PolicyFile:
        name = self.value("policy")
        if not name:
            raise InvalidParameter("choose a policy first: open a table or a policy of this folder.")
        return PolicyFile(self.folder.file(name), name, self.folder.root)

    def named_policy(self, name: str) -> PolicyFile:
        """Return a policy of the folder by its name."""
        same = name == self.value("policy")
        return self._policy_file if same else PolicyFile(self.folder.file(name), name, self.folder.root)

    def table(self) -> Path:
        """Return the table that was named."""
        return self.folder.file(self.value("data"))

    def release(self) -> Path:
        """Return the folder of the release that was named."""
        return self.folder.release(self.value("release"))

    def job(self, key: str, title: str, work: Work) -> Job:
        """Start work behind the page, once; the same key again is the same work."""
        return self.jobs.begin(key, title, work)

    def to(self, page: str, **parameters: str) -> Redirect:
        """Return the address of a page, with the policy that was named."""
        values = {"policy": self.value("policy")} | parameters
        words = {name: value for name, value in values.items() if value}
        return Redirect(f"/{page}" + (f"?{urlencode(words)}" if words else ""))

    def saved(self, page: str, **parameters: str) -> Redirect:
        """Return where to go after saving: to the page that the button names, else to the one with the form."""
        onward = self.value("next")
        return self.to(onward) if onward.isidentifier() else self.to(page, **parameters)

    def result(self, job: Job) -> Any:
        """Return what a job that is over came to, or raise why it came to nothing."""
        if job.problem is not None:
            raise Refused(job.problem)
        return job.result


Show = Callable[[PageRequest], "PageContent | Redirect"]
Act = Callable[[PageRequest], "Redirect | Download | PageContent"]


@dataclass(frozen=True)
class Page:
    """A place of the studio: its name in addresses, its title, what it is about, and what it shows and does.

    `step` is its place on the road from a table to a release; pages without one stand below it in the menu.  `needs` is
    what must be named in the address for the page to make sense: the menu offers it only then.
    """

    name: str
    title: str
    about: str
    show: Show
    actions: Mapping[str, Act] = field(default_factory=dict)
    step: int | None = None
    needs: tuple[str, ...] = ()


def result(job: Job | None) -> Any:
    """Return what a job came to; None while it goes on, if it failed, or if there is none."""
    return job.result if job is not None and job.state is State.DONE else None


def foremost(*jobs: Job | None) -> Job | None:
    """Return the job that a page tells of: one that goes on, else one that failed."""
    there = [job for job in jobs if job is not None and job.state is not State.DONE]
    return next((job for job in there if job.running), there[0] if there else None)


def command(*words: str) -> str:
    """Return a command line as it is typed.

    >>> command("incrowd", "plan", "--policy", "my policy.yaml")
    "incrowd plan --policy 'my policy.yaml'"
    """
    return shlex.join(words)
