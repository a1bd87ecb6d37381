"""The HTTP application: routes, problem documents and the OpenAPI description."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

import likewise
from likewise.broker.http import (
    administering,
    cloudevents,
    consuming,
    history,
    operating,
    publishing,
    streaming,
    subscribing,
)
from likewise.broker.http.asyncapi import asyncapi
from likewise.broker.http.documents import json_response
from likewise.broker.http.guard import Gate
from likewise.broker.http.models import ProblemModel
from likewise.broker.http.problems import MEDIA_TYPE, problem_document, problem_of, problem_response
from likewise.broker.operate.metrics import Metrics
from likewise.broker.service import Broker
from likewise.errors import LikewiseError

ROUTERS = (publishing, subscribing, cloudevents, streaming, history, consuming, administering, operating)
_OPEN_PATHS = ("/health/live", "/health/ready")
_PROBLEM = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemModel"}}}}
_PROBLEMS = {
    "400": "The request cannot be understood.",
    "401": "A valid token is required.",
    "403": "The token does not allow this.",
    "404": "Not found.",
    "409": "It already exists.",
    "413": "The body is too large.",
    "422": "The subscription or setting cannot work.",
    "429": "A limit was reached.",
    "503": "The broker is busy or cannot use its database.",
}
DESCRIPTION = """Publish events in any vocabulary, subscribe in your own words, and get matches with scores and reasons.

Every error is a problem document (RFC 9457). Streams resume after the id of the last notification.
"""


class BrokerApp(FastAPI):
    """The application, with `Gate` in front of it.

    Publishing is by far the most frequent operation. Its requests go directly to its endpoint, because FastAPI's
    routing would take longer than the operation.
    """

    def __init__(self, broker: Broker, **options: Any) -> None:
        super().__init__(**options)
        self.state.broker = broker
        self.state.metrics = metrics = Metrics()
        self._gate = Gate(self._dispatch, broker=broker, metrics=metrics)
        self._publish_route = SimpleNamespace(path=publishing.PATH)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, a WebSocket, or a lifespan message."""
        await self._gate(scope, receive, send)

    async def _dispatch(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != publishing.PATH or scope["method"] != "POST":
            await super().__call__(scope, receive, send)
            return
        scope["app"], scope["route"] = self, self._publish_route
        request = Request(scope, receive)
        try:
            response = await publishing.publish(request)
        except LikewiseError as error:
            response = problem_response(problem_of(error))
        except ClientDisconnect:
            return
        except Exception as error:  # a bug is reported as a problem document too
            response = await _on_bug(request, error)
        await response(scope, receive, send)


def create_app(broker: Broker) -> BrokerApp:
    """Create the application of a broker; it starts and stops the broker."""

    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        await broker.start()
        try:
            yield
        finally:
            await broker.stop()

    app = BrokerApp(
        broker,
        title="Likewise broker",
        version=likewise.__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    for module in ROUTERS:
        app.include_router(module.router)
    app.add_exception_handler(LikewiseError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_bug)
    app.add_route("/asyncapi.json", _asyncapi, include_in_schema=False)
    cached: dict[str, Any] = {}

    def openapi() -> dict[str, Any]:
        if not cached:
            cached.update(_openapi(app))
        return cached

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI documents it
    return app


async def _asyncapi(_request: Request) -> Response:
    return json_response(asyncapi())


async def _on_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, LikewiseError)
    return problem_response(problem_of(error))


async def _on_invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    flaws = [{"where": ".".join(map(str, flaw["loc"])), "reason": flaw["msg"]} for flaw in error.errors()]
    detail = "; ".join(f"{flaw['where']}: {flaw['reason']}" for flaw in flaws[:5])
    return problem_response(
        problem_document(400, "bad-input", "The request cannot be understood", detail) | {"flaws": flaws[:20]}
    )


async def _on_http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = {404: "not-found", 405: "method"}.get(error.status_code, "http")
    return problem_response(
        problem_document(error.status_code, kind, str(error.detail), str(error.detail)), dict(error.headers or {})
    )


async def _on_bug(request: Request, error: Exception) -> Response:
    structlog.get_logger("likewise.http").error("request failed", path=request.url.path, exc_info=error)
    return problem_response(
        problem_document(500, "internal", "The broker failed", "an internal error; see the broker's log")
    )


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the problem responses and the security scheme of every operation."""
    from fastapi.openapi.utils import get_openapi

    out = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = out.setdefault("components", {}).setdefault("schemas", {})
    schemas["ProblemModel"] = ProblemModel.model_json_schema()
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    out["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, methods in out["paths"].items():
        for operation in methods.values():
            operation["responses"].pop("422", None)
            if path in _OPEN_PATHS:
                continue
            operation["security"] = [{"token": []}]
            for status, text in _PROBLEMS.items():
                operation["responses"].setdefault(status, _PROBLEM | {"description": text})
    return out
