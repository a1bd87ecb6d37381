"""Errors as problem documents (RFC 9457): what is wrong, where, and how to fix it."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from likewise.broker import errors as broker_errors
from likewise.errors import BuildError, DeliveryError, InputError, LikewiseError, MissingError, ParseError, SpaceError

MEDIA_TYPE = "application/problem+json"

_KINDS: tuple[tuple[type[LikewiseError], int, str, str], ...] = (
    (ParseError, 400, "parse-error", "The text is not in the subscription language"),
    (InputError, 400, "bad-input", "The request cannot be understood"),
    (BuildError, 422, "cannot-work", "The subscription or setting cannot work"),
    (MissingError, 422, "missing", "Something required is missing"),
    (SpaceError, 422, "space", "The space cannot be used"),
    (DeliveryError, 422, "delivery", "The delivery failed"),
    (broker_errors.TooLargeError, 413, "too-large", "The body is too large"),
    (broker_errors.QuotaError, 429, "quota", "A limit was reached"),
    (broker_errors.BusyError, 503, "busy", "The broker is busy"),
    (broker_errors.StorageError, 503, "storage", "The database is not available at the moment"),
    (broker_errors.ConflictError, 409, "conflict", "It already exists"),
    (broker_errors.NotFoundError, 404, "not-found", "Not found"),
)


def problem_of(error: LikewiseError) -> dict[str, Any]:
    """The problem document of an error."""
    if isinstance(error, broker_errors.AccessError):
        status, kind, title = (
            (403, "forbidden", "Not allowed") if error.authenticated else (401, "token", "A valid token is required")
        )
    else:
        status, kind, title = next(
            ((status, kind, title) for known, status, kind, title in _KINDS if isinstance(error, known)),
            (400, "error", "The request failed"),
        )
    problem = problem_document(status, kind, title, error.message)
    if error.hint:
        problem["hint"] = error.hint
    if isinstance(error, ParseError):
        problem |= {
            "line": error.line,
            "column": error.column,
            "excerpt": error.excerpt,
            "caret": " " * (error.column - 1) + "^",
            "expected": list(error.expected),
            "text": str(error),
        }
    return problem


def problem_document(status: int, kind: str, title: str, detail: str) -> dict[str, Any]:
    """A problem document (RFC 9457)."""
    return {"type": f"urn:likewise:problem:{kind}", "title": title, "status": status, "detail": detail}


def problem_response(problem: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    """The HTTP response for a problem document."""
    status = problem["status"]
    extra = {"Retry-After": "1"} if status in (429, 503) else {}
    if status == 401:
        extra["WWW-Authenticate"] = 'Bearer realm="likewise"'
    return Response(msgspec.json.encode(problem), status, extra | (headers or {}), MEDIA_TYPE)
