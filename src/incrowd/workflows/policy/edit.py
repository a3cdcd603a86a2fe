"""Edit: a policy's text with other values at some places; every other letter stays as it was written, comments too.

The places are found by the marks of the YAML nodes, and only their text is replaced.  What comes out is read again and
must say exactly what was wanted: a document that is written in a way in which it would not (an alias, a key in two
lines) is refused rather than changed elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.document import read_document

Value = str | Sequence[Any] | Mapping[str, Any] | None
Place = tuple[str, ...]
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
_NULLS = ("null", "true", "false")


def edited(text: str, changes: Mapping[Place, Value]) -> str:
    r"""Return a policy with other values at some places; None removes what is there.

    >>> print(edited("a: 1 # one\nb: {c: 02}\n", {("a",): "2", ("b", "d"): ["x y"], ("e", "f"): "3"}))
    a: 2 # one
    b: {c: 02, d: ["x y"]}
    e:
      f: 3
    """
    content = read_document(text).content
    for place, value in changes.items():
        content = replaced_at(content, place, value)
        text = _changed(text if text.endswith("\n") or not text else f"{text}\n", place, value)
    if read_document(text).content != content:
        named = ", ".join(".".join(place) for place in changes)
        raise InvalidParameter(f"{named}: written in a way that cannot be changed here. Change it in the file itself.")
    return text


def replaced_at(content: Any, place: Place, value: Value) -> Any:
    """Return plain content with a value at a place, as the document would say it.

    >>> replaced_at({"a": {"b": "1"}}, ("a", "c"), 2)
    {'a': {'b': '1', 'c': '2'}}
    """
    if not isinstance(content, dict):
        content = {}
    name, rest = place[0], place[1:]
    if value is None and not rest:
        return {key: item for key, item in content.items() if key != name}
    if value is None and name not in content:
        return content
    return {**content, name: replaced_at(content.get(name), rest, value) if rest else _texts(value)}


def _texts(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _texts(item) for key, item in value.items()}
    return str(value) if isinstance(value, str | int | float) else [_texts(item) for item in value]


def _changed(text: str, place: Place, value: Value) -> str:
    """Return the text with one change."""
    root = _root(text)
    parent, key, node = _node_at(root, place)
    if node is not None:
        return _removed(text, parent, key, node) if value is None else _replaced(text, key, node, value)
    if value is None:
        return text
    depth = len(place) - 1
    while depth and _node_at(root, place[:depth])[2] is None:
        depth -= 1
        value = {place[depth + 1]: value}
    _, key, above = _node_at(root, place[:depth])
    if above is None or type(above).__name__ != "MappingNode":
        if depth == 0:
            return f"{text}{_block({place[0]: value}, 0)}"
        return _replaced(text, key, above, {place[depth]: value})
    return _inserted(text, above, place[depth], value)


def _root(text: str) -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).compose(text)


def _node_at(root: Any, place: Place) -> tuple[Any, Any, Any]:
    """Return the mapping, the key and the value at a place; None where there is none."""
    above, key, node = None, None, root
    for name in place:
        above, key = node, None
        pairs = node.value if type(node).__name__ == "MappingNode" else ()
        key, node = next(((k, v) for k, v in pairs if k.value == name), (None, None))
        if node is None:
            return above, None, None
    return above, key, node


def _replaced(text: str, key: Any, node: Any, value: Value) -> str:
    start, end = node.start_mark.index, _end(node)
    if _is_block(node):
        if isinstance(value, Mapping):
            written = _block(value, node.start_mark.column).strip()
            return text[:start] + written + text[end:]
        start = text.index(":", key.end_mark.index) + 1
        return f"{text[:start]} {_flow(value)}{text[end:]}"
    written = _flow(value)
    space = "" if start == 0 or text[start - 1].isspace() else " "  # an empty value stands right behind its colon
    return text[:start] + space + written + text[end:]


def _inserted(text: str, above: Any, name: str, value: Value) -> str:
    if not _is_block(above):
        end = above.end_mark.index - 1
        comma = ", " if above.value else ""
        before = text[:end].rstrip(" ") if above.value else text[:end]
        return f"{before}{comma}{_word(name)}: {_flow(value)}{text[end:]}"
    column = above.start_mark.column
    line = text.find("\n", _end(above))
    line = len(text) if line < 0 else line + 1
    return text[:line] + _block({name: value}, column) + text[line:]


def _removed(text: str, above: Any, key: Any, node: Any) -> str:
    if not _is_block(above):
        rest = {k.value: _plain(v) for k, v in above.value if k is not key}
        return text[: above.start_mark.index] + _flow(rest) + text[above.end_mark.index :]
    start = text.rfind("\n", 0, key.start_mark.index) + 1
    end = text.find("\n", _end(node))
    return text[:start] + text[len(text) if end < 0 else end + 1 :]


def _plain(node: Any) -> Any:
    match type(node).__name__:
        case "MappingNode":
            return {key.value: _plain(value) for key, value in node.value}
        case "SequenceNode":
            return [_plain(item) for item in node.value]
    return node.value


def _is_block(node: Any) -> bool:
    return type(node).__name__ != "ScalarNode" and not node.flow_style


def _end(node: Any) -> int:
    """Return where the last letter of a node is; a block's own mark lies behind the comments that follow it."""
    if not _is_block(node) or not node.value:
        return int(node.end_mark.index)
    last = node.value[-1]
    return _end(last[1] if isinstance(last, tuple) else last)


def _block(value: Mapping[str, Any], indent: int) -> str:
    r"""Return a mapping in lines; what is in its values is written in braces.

    >>> _block({"k": "5", "levels": {"age": "1"}}, 2)
    '  k: 5\n  levels: {age: 1}\n'
    """
    room = " " * indent
    lines = []
    for name, item in value.items():
        if isinstance(item, Mapping) and indent == 0 and item:
            lines += [f"{_word(name)}:", _block(item, 2).rstrip("\n")]
        else:
            lines.append(f"{room}{_word(name)}: {_flow(item)}")
    return "\n".join(lines) + "\n"


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_word(str(name))}: {_flow(item)}" for name, item in value.items()) + "}"
    if isinstance(value, str | int | float):
        return _word(str(value))
    return "[" + ", ".join(map(_flow, value)) + "]"


def _word(text: str) -> str:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _NULLS
    return text if plain else json.dumps(text, ensure_ascii=False)
