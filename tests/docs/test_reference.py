"""The reference is complete: every command and option, every error, every loss."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys

import pytest

from docs import attacks, commands, interface, policy
from incrowd import errors, mechanisms
from incrowd.core.loss import TAGS
from incrowd.methods import GRAPHS, LINKED, METHODS, SERIES
from tests.docs.pages import DOCS

CLI = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
ERRORS = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
LOSSES = (DOCS / "reference" / "losses.md").read_text(encoding="utf-8")


COMMANDS = commands.commands()
CLASSES = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, errors.IncrowdError)]


def test_every_command_is_documented_as_its_help_says() -> None:
    page = commands.PAGE.read_text(encoding="utf-8")
    assert commands.updated(page) == page, "run: python docs/commands.py"


def test_every_key_of_a_policy_is_documented_as_its_schema_says() -> None:
    page = policy.PAGE.read_text(encoding="utf-8")
    assert policy.updated(page) == page, "run: python docs/policy.py"


def test_every_key_of_a_policy_has_a_meaning_and_every_method_a_table_under_its_name() -> None:
    page = policy.PAGE.read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.endswith("|  |")] == []
    assert re.findall(r"^## `method: (.+)`$", page, re.MULTILINE) == [*METHODS, *LINKED, *SERIES, *GRAPHS]


def test_every_kind_and_key_of_a_certificate_is_documented() -> None:
    """By a process of its own: terms that tests declare are not on the page."""
    show = "from docs.claims import page; print(page(), end='')"
    made = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True, cwd=DOCS.parent)
    assert made.stdout == (DOCS / "reference" / "claims.md").read_text(encoding="utf-8"), "run: python docs/claims.py"


def test_every_attack_is_documented_as_its_docstring_says() -> None:
    made = attacks.pages()
    assert {path.stem for path in attacks.FOLDER.glob("*.md")} == {*made, "audit", "index"}
    for name, page in made.items():
        assert (attacks.FOLDER / f"{name}.md").read_text(encoding="utf-8") == page, "run: python docs/attacks.py"


def test_no_command_is_documented_that_does_not_exist() -> None:
    documented = [line.removeprefix("## ") for line in CLI.splitlines() if line.startswith("## incrowd")]
    assert sorted(documented) == sorted(COMMANDS)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_option_is_explained(path: str) -> None:
    assert COMMANDS[path].help
    for parameter in COMMANDS[path].params:
        assert parameter.help, f"{parameter.name} of {path}"


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_takes_json(path: str) -> None:
    assert any("--json" in parameter.opts for parameter in COMMANDS[path].params)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_is_documented(cls: type[errors.IncrowdError]) -> None:
    heading = f"(error-{cls.__name__.lower()})=\n## {cls.__name__}\n"
    assert heading in ERRORS
    body = ERRORS.split(heading)[1].split("\n(error-")[0]
    assert ("Exit code 1." in body) == (cls.exit_code == 1)


@pytest.mark.parametrize("tag", TAGS)
def test_every_loss_is_documented_with_its_fields(tag: str) -> None:
    cls = TAGS[tag]
    fields = ", ".join(f"`{field.name}`" for field in dataclasses.fields(cls))
    assert f"| `{cls.__name__}` | `{tag}` | {fields} |" in LOSSES


@pytest.mark.parametrize("method", [*METHODS, *SERIES, *GRAPHS])
def test_every_method_has_a_page_with_guarantee_assumptions_limits_and_source(method: str) -> None:
    page = (DOCS / "methods" / f"{method}.md").read_text(encoding="utf-8")
    for heading in ("Guarantee", "Assumes", "When not to use it", "Source"):
        assert f"\n## {heading}\n" in page


def test_every_mechanism_is_documented() -> None:
    page = (DOCS / "methods" / "mechanisms.md").read_text(encoding="utf-8")
    names = [
        name
        for module in pkgutil.iter_modules(mechanisms.__path__, "incrowd.mechanisms.")
        for name, cls in inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
        if cls.__module__ == module.name and hasattr(cls, "release")
    ]
    assert len(names) >= 10
    assert [name for name in names if f"`{name}`" not in page] == []


def test_the_public_interface_is_listed_and_nothing_leaves_it_unnoticed() -> None:
    """A name or parameter that goes needs a deprecation first: the page says since when."""
    page = interface.PAGE.read_text(encoding="utf-8")
    assert interface.updated(page) == page, "run: python docs/interface.py"
