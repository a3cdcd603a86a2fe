"""Method section: the part of a policy that a method reads, made from the fields of its dataclass, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, create_model

from incrowd.workflows.policy.sections import Exact, Section, whole


def section_of(method: type) -> type[Section]:
    """Return the policy section of a method, made once from the fields of its dataclass."""
    return _section(method)


@cache
def _section(method: type) -> type[Section]:
    hints = _hints(method)
    members: dict[str, Any] = {
        item.name: (_section_type(item.name, hints[item.name]), None if _optional(item) else ...)
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
        return section_of(hint)  # type: ignore[arg-type]
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
            values[item.name] = {name: instance_of(inner, each) for name, each in value.items()}
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
