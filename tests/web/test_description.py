"""Schemathesis reads the published description and sends what it allows, and what it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from incrowd.governance.grant import AccessRole
from incrowd.web.settings import Settings
from tests.web.serving import Server, listening, server

CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance, status_code_conformance]
OPERATIONS = [
    ("POST", "/v1/query"),
    ("POST", "/v1/price"),
    ("POST", "/v1/batch"),
    ("POST", "/v1/batch/price"),
    ("GET", "/v1/history"),
    ("GET", "/v1/answers/{number}"),
    ("GET", "/v1/schema"),
    ("GET", "/v1/budget"),
    ("GET", "/v1/releases"),
    ("GET", "/v1/certificates/{number}"),
    ("GET", "/v1/tokens"),
    ("POST", "/v1/tokens"),
    ("POST", "/v1/tokens/{number}/rotate"),
    ("DELETE", "/v1/tokens/{number}"),
    ("GET", "/v1/sessions"),
    ("GET", "/v1/audit"),
    ("GET", "/healthz"),
    ("GET", "/metrics"),
]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Server:
    return server(tmp_path_factory.mktemp("described"), Settings(pace=0.0, rate=1_000_000))


@pytest.fixture(scope="module")
def address(here: Server) -> Iterator[str]:
    with listening(here.client.application) as found:
        yield found


@pytest.fixture(scope="module")
def description(address: str) -> Any:
    return schemathesis.openapi.from_url(f"{address}/openapi.json")


def test_every_operation_is_tried_here(description: Any) -> None:
    described = {(method.upper(), path) for path in description for method in description[path]}
    session = {("POST", "/v1/sessions"), ("DELETE", "/v1/sessions")}  # tested by hand: passwords are slow on purpose
    assert described - session == set(OPERATIONS)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize("role", [AccessRole.OWNER, AccessRole.AUDITOR])
def test_what_the_description_allows_gets_a_reply_that_it_describes(
    here: Server, description: Any, method: str, path: str, role: AccessRole
) -> None:
    headers = here.bearer(role, "olga")

    @settings(
        max_examples=12, database=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(case=description[path][method].as_strategy())
    def attempt(case: Any) -> None:
        case.call_and_validate(headers=headers, checks=CHECKS)

    attempt()


@pytest.mark.parametrize("path", ["/v1/query", "/v1/tokens"])
def test_what_the_description_forbids_is_never_a_fault(here: Server, description: Any, path: str) -> None:
    headers = here.bearer(AccessRole.OWNER, "olga")
    forbidden = description[path]["POST"].as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)

    @settings(max_examples=30, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(case=forbidden)
    def attempt(case: Any) -> None:
        case.call_and_validate(headers=headers, checks=CHECKS)

    attempt()


def test_limits_of_fields_are_in_the_description(here: Server) -> None:
    described = here.client.get("/openapi.json").json()
    before, limit, _ = described["paths"]["/v1/history"]["get"]["parameters"]
    assert before["schema"]["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 2**53}
    assert limit["schema"]["maximum"] == 200
    query = described["components"]["schemas"]["QueryShape"]
    assert query["properties"]["epsilon"]["anyOf"][0]["exclusiveMinimum"] == 0
    assert [choice["required"] for choice in query["oneOf"]] == [["epsilon"], ["error"], ["rho"]]


def test_what_a_path_allows_is_told_of_all_its_routes(here: Server) -> None:
    assert here.client.send("OPTIONS", "/v1/sessions").headers["allow"] == "DELETE, GET, POST"
