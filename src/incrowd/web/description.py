"""The description of the routes as one page, without scripts and without anything from another host."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from html import escape
from typing import Any

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1a1a1a; }
h2 { border-top: 1px solid #767676; padding-top: 1rem; }
code, pre { font: 14px/1.5 ui-monospace, monospace; background: #f3f3f3; }
pre { padding: 0.75rem; overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.2rem 1rem 0.2rem 0; }
.method { font-weight: 700; text-transform: uppercase; }
@media (prefers-color-scheme: dark) {
  body { background: #16181b; color: #e8e8e8; }
  a { color: #8ab4f8; }
  code, pre { background: #24272b; }
}
"""
STYLE_HASH = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()


def page(description: Mapping[str, Any]) -> str:
    """Return an OpenAPI description as HTML.

    >>> "<h1>incrowd</h1>" in page({"info": {"title": "incrowd", "description": ""}, "paths": {}})
    True
    """
    info = description["info"]
    routes = [
        _route(path, method, operation, description)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(info["title"])}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body><main>'
        f"<h1>{escape(info['title'])}</h1><p>{escape(info.get('description', ''))}</p>"
        '<p>The same as data: <a href="/openapi.json">openapi.json</a>.</p>' + "".join(routes) + "</main></body></html>"
    )


def _route(path: str, method: str, operation: Mapping[str, Any], whole: Mapping[str, Any]) -> str:
    parts = [
        f'<h2><span class="method">{escape(method)}</span> <code>{escape(path)}</code></h2>',
        f"<p>{escape(operation.get('description', operation.get('summary', '')))}</p>",
    ]
    fields = [*_parameters(operation), *_body(operation, whole)]
    if fields:
        parts.append(_table(("field", "where", "shape", "meaning"), fields))
    replies = [(status, reply.get("description", "")) for status, reply in operation["responses"].items()]
    parts.append(_table(("reply", "means"), replies))
    return "".join(parts)


def _parameters(operation: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for parameter in operation.get("parameters", ()):
        yield parameter["name"], parameter["in"], _kind(parameter["schema"]), parameter.get("description", "")


def _body(operation: Mapping[str, Any], whole: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    shape = whole["components"]["schemas"][content["$ref"].rpartition("/")[2]] if "$ref" in content else content
    for name, field in shape.get("properties", {}).items():
        needed = "body, needed" if name in shape.get("required", ()) else "body"
        yield name, needed, _kind(field), field.get("description", "")


def _kind(schema: Mapping[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(option) for option in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return json.dumps(schema.get("enum", schema.get("const")))
    return str(schema.get("type") or schema.get("$ref", "").rpartition("/")[2])


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
