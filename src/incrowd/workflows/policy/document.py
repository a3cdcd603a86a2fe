"""A YAML document as it was written: every scalar stays text, every value knows its line, and so does every mistake.

YAML guesses types (`02131` becomes a number, `NO` becomes false); a policy must not.  Here a scalar is the text the
person wrote, and the model that reads it decides what it means.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from incrowd.core.limits import DOCUMENT_BYTES
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.sections import NAMED, SETTINGS

Path = tuple[str | int, ...]
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_MOST_NODES = 200_000  # of a YAML file: aliases could multiply a short text into gigabytes
_TOO_DEEP = "this YAML document is nested too deeply to be a policy."


@dataclass(frozen=True)
class Document:
    """Plain mappings, lists and texts, and the line each of them starts on."""

    content: Any
    lines: dict[Path, int] = field(default_factory=dict)

    def line(self, path: Path) -> int | None:
        """Return the line of the innermost written value on the way to `path`."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path[:-1]
        return self.lines.get(())


def read_document(text: str) -> Document:
    r"""Read one YAML document.

    >>> read_document("zip: 02131\nanswer: NO\ndelta: 1e-8").content
    {'zip': '02131', 'answer': 'NO', 'delta': '1e-8'}
    >>> read_document("a: 1\nb:\n  - x").line(("b", 0))
    3
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        node = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise InvalidParameter(f"this is not YAML: {where}{error.problem or error.context}.") from None
    except YAMLError:
        raise InvalidParameter("this is not YAML that can be read.") from None
    except RecursionError:
        raise InvalidParameter(_TOO_DEEP) from None
    lines: dict[Path, int] = {}
    try:
        return Document(_plain(node, (), lines) if node is not None else None, lines)
    except RecursionError:  # an alias that contains itself
        raise InvalidParameter(_TOO_DEEP) from None


def _plain(node: Any, path: Path, lines: dict[Path, int]) -> Any:
    lines[path] = node.start_mark.line + 1
    if len(lines) > _MOST_NODES:
        raise InvalidParameter("this YAML document is too large to be a policy.")
    kind = type(node).__name__
    if kind == "ScalarNode":
        unquoted = node.style not in ("'", '"', "|", ">")
        return None if unquoted and node.value in _NULLS else _text(node)
    if kind == "SequenceNode":
        return [_plain(item, (*path, index), lines) for index, item in enumerate(node.value)]
    content: dict[str, Any] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if type(key).__name__ != "ScalarNode":
            raise InvalidParameter(f"line {line}: a key must be a single word or number.")
        name = _text(key)
        if name in content:
            raise InvalidParameter(f"line {line}: the key {name!r} occurs twice.")
        content[name] = _plain(value, (*path, name), lines)
        lines[(*path, name)] = line
    return content


def _text(node: Any) -> str:
    """Return the text of a scalar; a character escaped as a pair of surrogates, as JSON does, is one character."""
    text: str = node.value
    if text.isascii():
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise InvalidParameter(f"line {node.start_mark.line + 1}: this text is not Unicode.") from None


def checked(model: type[BaseModel], document: Document, where: str) -> Any:
    """Return what a document says as a model reads it, or name the line of every mistake and what may stand there."""
    try:
        return model.model_validate(document.content)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        messages = [
            f"{place_in(document, _path(problem['loc']), where)}: {_message(problem, model)}"
            for problem in problems[:10]
        ]
        raise InvalidParameter("\n".join(dict.fromkeys(messages))) from None


def _path(place: Path) -> Path:
    return tuple(part for part in place if part not in (NAMED, SETTINGS))


def place_in(document: Document, path: Path, where: str) -> str:
    """Return the document and the line of a path in it, as errors name them."""
    line = document.line(path)
    return f"{where}, line {line}" if line is not None else where


def _message(problem: Any, model: type[BaseModel]) -> str:
    words = [str(part) for part in _path(problem["loc"])]
    path, name = ".".join(words), words[-1] if words else ""
    if problem["type"] == "extra_forbidden":
        names = _possible_names(model, problem["loc"][:-1])
        near = difflib.get_close_matches(name, names, 1)
        hint = f" Did you mean {near[0]!r}?" if near else f" Allowed here: {', '.join(names)}." if names else ""
        return f"{name!r} is not known here.{hint}"
    if problem["type"] == "missing":
        return f"{path} is missing."
    return f"{path}: {problem['msg'].removeprefix('Value error, ')}."


def _possible_names(model: type[BaseModel], path: Path) -> list[str]:
    """Return the names that may stand at a place in the document."""
    current: Any = model
    for step in path:
        models = [hint for hint in _models(current) if isinstance(hint, type) and issubclass(hint, BaseModel)]
        hints = [
            candidate.model_fields[str(step)].annotation for candidate in models if str(step) in candidate.model_fields
        ]
        current = hints[0] if hints else current
    return [name for hint in _models(current) for name in getattr(hint, "model_fields", {})]


def is_policy(file: FilePath) -> bool:
    """Whether a file says that it is a policy: by its ending, and by a line that starts with `incrowd:`.

    >>> is_policy(FilePath("people.csv"))
    False
    """
    if file.suffix not in (".yaml", ".yml"):
        return False
    try:
        if file.stat().st_size > DOCUMENT_BYTES:
            return False
        with file.open(encoding="utf-8") as text:
            return any(line.startswith("incrowd:") for line in text)
    except (OSError, UnicodeDecodeError):
        return False


def _models(hint: Any) -> list[Any]:
    return (
        [hint] if isinstance(hint, type) and not get_args(hint) else [m for arg in get_args(hint) for m in _models(arg)]
    )
