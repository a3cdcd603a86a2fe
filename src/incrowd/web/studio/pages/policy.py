"""The policy itself: its text, to be read, changed and taken away; what the other pages write is here."""

from __future__ import annotations

from incrowd.errors import IncrowdError
from incrowd.web.studio.page import Page, PageContent, PageRequest, Redirect, command

_PAGES = ("columns", "hierarchies", "output", "workbench", "lattice", "plan", "policy")


def show(request: PageRequest) -> PageContent:
    """Show the text, and whether it can be run."""
    file = request.policy_file()
    problem = None
    try:
        _ = file.policy
    except IncrowdError as error:
        problem = str(error).replace(str(file.path), file.name)
    content = {
        "name": file.name,
        "base": file.base,
        "text": file.text,
        "problem": problem,
        "seen": list(file.seen.what),
    }
    return PageContent(content, commands=(command("incrowd", "plan", "--policy", file.name),))


def save(request: PageRequest) -> Redirect:
    """Write another text, if it can be read."""
    text = request.form.get("text", "").replace("\r\n", "\n")
    request.policy_file().write(text if text.endswith("\n") else f"{text}\n", request.value("base"))
    return request.to("policy")


def undo(request: PageRequest) -> Redirect:
    """Restore the text before the last change, and show the page on which it was made again."""
    request.policy_file().undo(request.value("base"))
    return request.to(request.value("page") if request.value("page") in _PAGES else "policy")


PAGE = Page(
    "policy",
    "The policy",
    "The file that every page edits and the command line uses.",
    show,
    {"save": save, "undo": undo},
    needs=("policy",),
)
