"""Rendering: a page as HTML that is escaped by construction, or as plain values, its twin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from incrowd.core.words import short_down, short_up
from incrowd.drawing.markup import text
from incrowd.errors import IncrowdError
from incrowd.web.studio.page import Page, PageContent, PageRequest

if TYPE_CHECKING:
    from jinja2 import Environment

    from incrowd.web.studio.policy_file import PolicyFile

_KEPT = ("policy", "data", "release")
"""What the menu passes from page to page."""


@dataclass(frozen=True)
class Renderer:
    """What turns pages into text; `mark` is what forms must hold."""

    pages: Sequence[Page]
    folder: Any
    mark: str

    def html(self, page: Page, request: PageRequest, content: PageContent) -> str:
        """Return a page as HTML."""
        own = {**content.content, **content.pictures}
        failed = None if content.job is None else content.job.problem
        around = self._around(request, page) | {"commands": content.commands, "job": _job(content), "failed": failed}
        return self._templates.get_template(f"{page.name}.html").render({**own, **around})

    def twin(self, page: Page, request: PageRequest, content: PageContent) -> dict[str, Any]:
        """Return the same in plain values."""
        policy = _policy(request)
        return {
            "page": page.name,
            "title": page.title,
            **content.content,
            "commands": list(content.commands),
            "policy": None if policy is None else {"name": policy.name, "base": policy.base, "text": policy.text},
            "job": _job(content),
            "failed": None if content.job is None else content.job.problem,
        }

    def problem(self, request: PageRequest, words: str) -> str:
        """Return a page that says what is wrong."""
        around = self._around(request, None) | {"commands": (), "job": None, "failed": None}
        return self._templates.get_template("problem.html").render({"problem": words, **around})

    def _around(self, request: PageRequest, page: Page | None) -> dict[str, Any]:
        policy = _policy(request)
        return {
            "page": page,
            "menu": self._menu(request, page),
            "mark": self.mark,
            "here": f"/{page.name}?{urlencode(request.query)}" if page else "/",
            "opened": self.folder.root.name,
            "policy_file": policy,
            "undo": policy is not None and policy.history.last is not None,
        }

    def _menu(self, request: PageRequest, page: Page | None) -> list[dict[str, Any]]:
        parameters = {name: request.value(name) for name in _KEPT if request.value(name)}
        items = []
        for item in self.pages:
            words = {name: value for name, value in parameters.items() if name in item.needs or name == "policy"}
            ready = all(name in parameters for name in item.needs)
            address = f"/{item.name}" + (f"?{urlencode(words)}" if words else "")
            items.append({"page": item, "address": address, "ready": ready, "current": item is page})
        return items

    @cached_property
    def _templates(self) -> Environment:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        from incrowd.drawing.templates import TemplateCache

        made = Environment(
            loader=PackageLoader(__package__ or "", "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        made.bytecode_cache = TemplateCache(__file__, made)
        made.filters |= {"address": urlencode, "number": _number, "raised": text, "up": _up, "down": _down}
        return made


def _job(content: PageContent) -> dict[str, Any] | None:
    return None if content.job is None or not content.job.running else content.job.to_json()


def _policy(request: PageRequest) -> PolicyFile | None:
    """Return the policy beside a page, if one was named that can be read."""
    if not request.value("policy"):
        return None
    try:
        file = request.policy_file()
        _ = file.text
    except IncrowdError:
        return None
    return file


def _up(amount: str) -> str:
    """Return what was spent, as the ledger writes it, for people: not below it."""
    return short_up(Decimal(amount), 6)


def _down(amount: str) -> str:
    """Return what is left, as the ledger writes it, for people: not above it."""
    return short_down(Decimal(amount), 6)


def _number(value: float | None) -> str:
    """Return a number for people: large ones in groups of three digits."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
