"""The OpenAPI document is correct: the clients implement it, and random requests get only documented responses."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed
from hypothesis import settings as hypothesis_settings

from likewise.broker import AsyncBrokerClient, Broker, BrokerClient, BrokerSettings, create_app
from likewise.broker.client import Operations, calls

from .conftest import running

STREAMS = {"stream", "stream_events"}
NOT_CHECKED = {"ignored_auth", "unsupported_method", "missing_required_header", "use_after_free"}
BY_HAND = {"backup"}
"""Operations whose answer is a file."""


def described(app: Any) -> dict[str, tuple[str, str, dict[str, Any]]]:
    return {
        operation["operationId"]: (method.upper(), path, operation)
        for path, methods in app.openapi()["paths"].items()
        for method, operation in methods.items()
    }


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return described(create_app(Broker(BrokerSettings(folder=tmp_path_factory.mktemp("described")))))


def test_every_operation_has_a_method_in_both_clients(operations):
    methods = {name for name in vars(Operations) if not name.startswith("_")}
    assert methods == set(operations) - STREAMS - BY_HAND
    for kind in (BrokerClient, AsyncBrokerClient):
        assert hasattr(kind, "stream")


EXAMPLES: dict[str, Any] = {
    "events": [{"attributes": {"a": 1}}],
    "text": "{a = 1}",
    "name": "n",
    "event": "e",
    "id": "1",
    "consumer": "c",
    "cursor": "1",
    "roles": ["publish"],
    "mapping": {},
    "subscription": "s",
    "sink": "https://example.org/",
}


def test_every_method_sends_what_the_document_describes(operations):
    from datetime import UTC, datetime

    for name, (method, path, operation) in operations.items():
        if name in STREAMS | BY_HAND:
            continue
        make = getattr(calls, name)
        needed = [
            parameter
            for parameter in inspect.signature(make).parameters.values()
            if parameter.default is inspect.Parameter.empty
        ]
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        call = make(*(moment if parameter.name == "time" else EXAMPLES[parameter.name] for parameter in needed))
        assert call.method == method, name
        parts, shown = call.path.split("/"), path.split("/")
        assert len(parts) == len(shown), name
        assert all(part == other or other.startswith("{") for part, other in zip(parts, shown, strict=True)), name
        known = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "query"}
        assert {*call.params} <= known, name
        optional = {*inspect.signature(make).parameters} & known
        body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
        if "$ref" not in body:
            assert optional | {parameter.name for parameter in needed} >= known, name


def test_the_asyncapi_document_names_every_stream(served):
    document = served.client()._http.get("/asyncapi.json").json()
    assert document["asyncapi"].startswith("3.")
    assert {"notifications", "events"} <= set(document["channels"])


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory, space: str) -> Any:
    settings = BrokerSettings(
        folder=tmp_path_factory.mktemp("fuzzed"), spaces=(space,), open=True, live_clock=False, page=False
    )
    with running(settings) as found:
        yield found


def test_random_requests_get_answers_that_the_document_describes(fuzzed):
    schema = schemathesis.openapi.from_url(f"{fuzzed.url}/openapi.json").exclude(path_regex="stream|pull|backup")
    left_out = [check for check in schemathesis.checks.CHECKS.get_all() if check.__name__ in NOT_CHECKED]
    seen = 0
    for described in schema.get_all_operations():
        operation = described.ok()

        @seed(1)
        @hypothesis_settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(case=operation.as_strategy())
        def answers(case: Any) -> None:
            case.call_and_validate(excluded_checks=left_out)

        answers()
        seen += 1
    assert seen > 25
    assert fuzzed.broker.host.failed is None
