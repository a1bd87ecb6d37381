"""The application: routes, errors as problem documents, and the description of the interface."""

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
    looking,
    operating,
    publishing,
    streaming,
    subscribing,
)
from likewise.broker.http.asyncapi import asyncapi
from likewise.broker.http.documents import json_answer
from likewise.broker.http.guard import Gate
from likewise.broker.http.models import ProblemModel
from likewise.broker.http.problems import MEDIA_TYPE, answer, document, problem_of
from likewise.broker.operate.metrics import Metrics
from likewise.broker.service import Broker
from likewise.errors import LikewiseError

ROUTERS = (publishing, subscribing, cloudevents, streaming, looking, consuming, administering, operating)
_OPEN_PATHS = ("/health/live", "/health/ready")
_PROBLEM = {"content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemModel"}}}}
_PROBLEMS = {
    "400": "The request cannot be understood.",
    "401": "A token is needed.",
    "403": "The token does not allow this.",
    "404": "There is no such thing.",
    "409": "It is already there.",
    "413": "The body is too large.",
    "422": "It cannot work.",
    "429": "A limit is reached.",
    "503": "The broker is busy or cannot store.",
}
DESCRIPTION = """Publish events in any words, subscribe in your own, and get the right ones with a score and a reason.

Every error is a problem document (RFC 9457). Streams resume from the id of the last notification.
"""


class BrokerApp(FastAPI):
    """The application behind its gate.

    Publishing is by far the busiest operation. It is described like every other one, but its requests go straight to
    its endpoint: the layers in between would cost more than all of it.
    """

    def __init__(self, broker: Broker, **options: Any) -> None:
        super().__init__(**options)
        self.state.broker = broker
        self.state.metrics = metrics = Metrics()
        self._gate = Gate(self._pass, broker=broker, metrics=metrics)
        self._published = SimpleNamespace(path=publishing.PATH)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a request, a WebSocket or the start and end of the server."""
        await self._gate(scope, receive, send)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != publishing.PATH or scope["method"] != "POST":
            await super().__call__(scope, receive, send)
            return
        scope["app"], scope["route"] = self, self._published
        request = Request(scope, receive)
        try:
            response = await publishing.publish(request)
        except LikewiseError as error:
            response = answer(problem_of(error))
        except ClientDisconnect:
            return
        except Exception as error:  # a bug: its answer is a problem document too
            response = await _on_bug(request, error)
        await response(scope, receive, send)


def create_app(broker: Broker) -> BrokerApp:
    """The application around a broker, which it starts and stops."""

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
    described: dict[str, Any] = {}

    def describe() -> dict[str, Any]:
        if not described:
            described.update(_described(app))
        return described

    app.openapi = describe  # type: ignore[method-assign]  # as FastAPI documents it
    return app


async def _asyncapi(_request: Request) -> Response:
    return json_answer(asyncapi())


async def _on_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, LikewiseError)
    return answer(problem_of(error))


async def _on_invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    flaws = [{"where": ".".join(map(str, one["loc"])), "reason": one["msg"]} for one in error.errors()]
    detail = "; ".join(f"{flaw['where']}: {flaw['reason']}" for flaw in flaws[:5])
    return answer(document(400, "bad-input", "The request cannot be understood", detail) | {"flaws": flaws[:20]})


async def _on_http(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = {404: "not-found", 405: "method"}.get(error.status_code, "http")
    return answer(document(error.status_code, kind, str(error.detail), str(error.detail)), dict(error.headers or {}))


async def _on_bug(request: Request, error: Exception) -> Response:
    structlog.get_logger("likewise.http").error("failed", path=request.url.path, exc_info=error)
    return answer(document(500, "internal", "The broker failed", "an internal error; the log says more"))


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the problems of every operation and how to sign in."""
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
