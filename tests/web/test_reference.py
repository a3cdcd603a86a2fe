"""The reference of the server is complete."""

from __future__ import annotations

from pathlib import Path

from incrowd.web.shapes import QueryShape
from tests.docs.pages import DOCS
from tests.web.serving import server

PAGE = (DOCS / "reference" / "server.md").read_text(encoding="utf-8")


def test_every_route_status_and_field_of_a_question_is_in_the_reference(tmp_path: Path) -> None:
    description = server(tmp_path).client.get("/openapi.json").json()
    routes = {
        (method.upper(), path): told
        for path, methods in description["paths"].items()
        for method, told in methods.items()
    }
    assert [f"{method} {path}" for method, path in routes if f"`{method} {path}`" not in PAGE] == []
    statuses = {status for told in routes.values() for status in told["responses"] if status >= "400"}
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert [status for status in sorted(statuses) if not any(status in row for row in rows)] == []
    assert [name for name in QueryShape.model_fields if f"| `{name}` |" not in PAGE] == []


def test_no_route_is_documented_that_does_not_exist(tmp_path: Path) -> None:
    paths = server(tmp_path).client.get("/openapi.json").json()["paths"]
    named = [line.split("`")[1] for line in PAGE.splitlines() if line.startswith(("| `GET", "| `POST", "| `DELETE"))]
    assert sorted(named) == sorted(f"{method.upper()} {path}" for path, methods in paths.items() for method in methods)
