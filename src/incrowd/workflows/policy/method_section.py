"""Method section: the part of a policy that a method reads, made from the fields of its dataclass, and back."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, create_model

from incrowd.core.plan import Method
from incrowd.core.schema import Schema
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.document import Document, checked, place_in
from incrowd.workflows.policy.scalars import Exact, Words, whole
from incrowd.workflows.policy.sections import Section
from incrowd.workflows.registry import (
    admit,
    chain,
    graph_method_names,
    linked_method_names,
    method_class,
    method_names,
    series_method_names,
)

_SAFE, _AUTO, _SCHEME = "safe", "auto", "scheme"  # safe with `levels: auto` is another way to write scheme


def is_graph(document: Document) -> bool:
    """Whether a policy is that of a graph."""
    return any(document.content.get(name) is not None for name in ("nodes", "edges"))


def is_linked(document: Document) -> bool:
    """Whether a policy asks for linked tables to be synthesized."""
    release = document.content.get("release")
    return isinstance(release, dict) and release.get("method") in linked_method_names()


def method_of(document: Document, where: str, schema: Schema) -> Method:
    """Return the method that a policy names under `release`, or several, one after the other."""
    release = document.content["release"]
    if not isinstance(release, list):
        return _step(release, ("release",), (document, where), schema)
    return chain(_step(step, ("release", place), (document, where), schema) for place, step in enumerate(release))


def _step(release: Any, path: tuple[str | int, ...], source: tuple[Document, str], schema: Schema) -> Method:
    document, where = source
    name = release.get("method") if isinstance(release, dict) else None
    if name == _SAFE and release.get("levels") == _AUTO:
        name, release = _SCHEME, {key: value for key, value in release.items() if key != "levels"}
    graph = is_graph(document)
    names = graph_method_names() if graph else (*method_names(), *linked_method_names(), *series_method_names())
    if isinstance(release, dict) and "distribution" in release:
        if len(path) > 1:
            raise InvalidParameter(
                f"a method of another distribution cannot be part of a list: release {name!r} alone."
            )
        names = admit(str(release["distribution"]))
        release = {key: value for key, value in release.items() if key != "distribution"}
    if name not in names:
        if name in (*graph_method_names(), *method_names(), *linked_method_names(), *series_method_names()):
            raise InvalidParameter(
                f"the method {name!r} is for {'tables' if graph else 'graphs'}: a graph policy has nodes: and "
                "edges:, a table policy has columns:."
            )
        near = difflib.get_close_matches(str(name), names, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InvalidParameter(f"the method {name!r} is unknown; available: {', '.join(names)}.{hint}")
    model = section_of(method_class(name))
    _refuse_target(release, path, source)
    own = len(path)
    inner = Document(release, {place[own:]: line for place, line in document.lines.items() if place[:own] == path})
    section = checked(model, inner, where)
    method: Method = instance_of(method_class(name), section)
    for key, columns in {"levels": method.levels, "sensitive": method.sensitive}.items():
        for column in columns:
            try:
                schema[column]
            except InvalidParameter as error:
                raise InvalidParameter(f"{place_in(document, (*path, key, column), where)}: {error}") from None
    return method


def _refuse_target(release: Mapping[str, Any], path: tuple[str | int, ...], source: tuple[Document, str]) -> None:
    """Refuse `target: {epsilon, delta}` by naming the flat keys; no other key is near enough to be suggested."""
    if isinstance(release.get("target"), dict):
        raise InvalidParameter(
            f"{place_in(source[0], (*path, 'target'), source[1])}: 'target' is not known here. Write epsilon and delta "
            "beside method, each on a line of its own."
        )


def method_schemas() -> list[dict[str, Any]]:
    """Return the JSON Schema of every method's section."""
    named = (*method_names(), *linked_method_names(), *series_method_names(), *graph_method_names())
    sections = map(section_of, map(method_class, named))
    methods = [section.model_json_schema(ref_template="#/$defs/{model}") for section in sections]
    chosen = section_of(method_class(_SCHEME)).model_json_schema(ref_template="#/$defs/{model}")
    chosen["properties"] |= {"method": {"const": _SAFE}, "levels": {"const": _AUTO}}
    required = [*chosen["required"], "levels"]
    return [*methods, chosen | {"title": "SafeAtChosenLevelsSection", "required": required}]


def section_of(method: Any) -> type[Section]:
    """Return the policy section of a method, made from the fields of its dataclass, once."""
    return _section_of(method)


@cache
def _section_of(method: type) -> type[Section]:
    hints = _hints(method)
    members: dict[str, Any] = {
        item.name: (
            Words if hints[item.name] == tuple[str, ...] else _section_type(item.name, hints[item.name]),
            None if _optional(item) else ...,
        )
        for item in fields(method)
    }
    name = getattr(method, "name", None)
    if isinstance(name, str):
        members["method"] = (str, ...)
    return create_model(f"{method.__name__}Section", __base__=Section, __doc__=_first_line(method), **members)


def _section_type(key: str, hint: Any) -> Any:
    if get_origin(hint) in (Union, type(int | None)):
        return Union[tuple(_section_type(key, item) for item in get_args(hint))]  # noqa: UP007 - built at run time
    if get_origin(hint) is tuple and get_args(hint)[1:] == (...,):
        return tuple[_section_type(key, get_args(hint)[0]), ...]  # type: ignore[misc]
    if get_origin(hint) in (dict, Mapping):
        name, value = get_args(hint)
        return dict[name, _section_type(key, value)] | None  # type: ignore[misc,valid-type]
    if is_dataclass(hint):
        return section_of(hint)
    return {Fraction: Exact, int: whole(key), bool: bool | None}.get(hint, hint)


def instance_of(cls: Any, section: BaseModel) -> Any:
    """Return the dataclass that a section was read for; what was left out has its default."""
    hints = _hints(cls)
    values = {}
    for item in fields(cls):
        value = getattr(section, item.name)
        if value is None and _optional(item):
            continue
        inner = next((hint for hint in (hints[item.name], *get_args(hints[item.name])) if is_dataclass(hint)), None)
        if inner is None or value is None:
            values[item.name] = value
        elif isinstance(value, dict):
            values[item.name] = {name: instance_of(inner, part) for name, part in value.items()}
        elif isinstance(value, tuple):
            values[item.name] = tuple(instance_of(inner, part) for part in value)
        else:
            values[item.name] = instance_of(inner, value)
    return cls(**values)


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _optional(item: Any) -> bool:
    return item.default is not MISSING or item.default_factory is not MISSING


def _first_line(cls: type) -> str:
    return (cls.__doc__ or "").strip().split("\n", maxsplit=1)[0]
