"""Publishing: events in every format; accepted events are on disk before the response."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response

from likewise.broker.auth import Access
from likewise.broker.errors import TooLargeError
from likewise.broker.http.documents import json_response
from likewise.broker.http.guard import access_of, broker_of
from likewise.broker.http.models import AdvanceModel, EventModel, ReceiptModel
from likewise.broker.http.problems import problem_document, problem_response
from likewise.broker.intake import (
    CLOUDEVENT,
    CLOUDEVENTS,
    JSON,
    LINES,
    ParsedBody,
    is_binary_cloudevent,
    parse_binary_cloudevent,
    parse_cloudevents,
    parse_json,
    parse_lines,
    rejections,
)
from likewise.broker.service import Broker, Receipt
from likewise.broker.store.log import Idempotency, LogRange
from likewise.errors import InputError
from likewise.events import BadRecord, RecordMapping, to_instant

PATH = "/v1/events"
router = APIRouter(tags=["publish"])
CHUNK = 1 << 19
"""JSON lines are stored in chunks of this many bytes."""

_EVENT_SCHEMA = EventModel.model_json_schema()
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": {"anyOf": [_EVENT_SCHEMA, {"type": "array", "items": _EVENT_SCHEMA}]}},
            LINES[0]: {"schema": {"type": "string"}},
            CLOUDEVENT: {"schema": {"type": "object"}},
            CLOUDEVENTS: {"schema": {"type": "array", "items": {"type": "object"}}},
        },
    },
    "parameters": [
        {
            "name": "Idempotency-Key",
            "in": "header",
            "required": False,
            "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
            "description": "Requests with the same key and body are stored once and get the same response.",
        },
        {
            "name": "mapping",
            "in": "query",
            "required": False,
            "schema": {"type": "string", "maxLength": 255},
            "description": "Name of a saved mapping, for flat records.",
        },
    ],
}


@router.post(
    PATH,
    summary="Publish events",
    operation_id="publish",
    response_model=ReceiptModel,
    openapi_extra=_BODY,
)
async def publish(request: Request) -> Response:
    """Publish one event, an array, or JSON lines of any length. Accepted events are on disk before the response."""
    broker, access = broker_of(request), access_of(request, "publish")
    name = request.query_params.get("mapping")
    mapping = None if name is None else await _mapping(broker, access, name)
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    key = request.headers.get("idempotency-key")
    if kind in LINES and key is None:
        receipt, rejected = await _publish_stream(request, broker, access, mapping)
        return _response(receipt, rejected)
    body = await _body(request, broker.settings.quotas.body_bytes)
    parsed = _parse(request, kind, body, mapping)
    if key is None:
        return _response(await broker.publish(access, parsed.events), parsed.rejected)
    return await _publish_once(broker, access, key, body, parsed)


@router.post("/v1/advance", summary="Advance event time", operation_id="advance", status_code=204)
async def advance(request: Request, wanted: AdvanceModel) -> Response:
    """Declare that all events up to a time have arrived, so that patterns stop waiting for them."""
    await broker_of(request).advance(access_of(request, "publish"), to_instant(wanted.time))
    return Response(status_code=204)


async def _publish_once(broker: Broker, access: Access, key: str, body: bytes, parsed: ParsedBody) -> Response:
    if not parsed.events:
        return _response(Receipt(0, None, None), parsed.rejected)

    def respond(stored: LogRange) -> bytes:
        receipt = Receipt(len(parsed.events), stored.first, stored.last)
        return msgspec.json.encode(_receipt(receipt, parsed.rejected))

    async def publish_all(idempotency: Idempotency) -> None:
        await broker.publish(access, parsed.events, idempotency=idempotency)

    text, replayed = await broker.idempotent(access, key, body, publish_all, respond)
    return Response(text, 200, {"Idempotent-Replayed": "true"} if replayed else None, "application/json")


async def _publish_stream(
    request: Request, broker: Broker, access: Access, mapping: RecordMapping | None
) -> tuple[Receipt, list[BadRecord]]:
    """Store lines while more arrive; a line that is too long ends the request, but earlier lines stay stored."""
    rejected: list[BadRecord] = []
    first: int | None = None
    last: int | None = None
    accepted, number, rest = 0, 1, b""
    most = broker.settings.quotas.body_bytes

    async def store(data: bytes) -> None:
        nonlocal accepted, number, first, last
        lines = data.split(b"\n")
        parsed = parse_lines(lines, first=number, mapping=mapping)
        number += len(lines) - (0 if lines[-1] else 1)
        rejected.extend(parsed.rejected[: max(0, 1000 - len(rejected))])
        receipt = await broker.publish(access, parsed.events)
        accepted += receipt.accepted
        first = receipt.first if first is None else first
        last = receipt.last or last

    async for chunk in request.stream():
        rest += chunk
        if len(rest) >= CHUNK:
            complete, _, rest = rest.rpartition(b"\n")
            if complete:
                await store(complete + b"\n")
            if len(rest) > most:
                raise TooLargeError(f"line {number} is longer than {most} bytes", hint="send shorter events")
    if rest.strip():
        await store(rest)
    return Receipt(accepted, first, last), rejected


async def _body(request: Request, most: int) -> bytes:
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > most:
        raise TooLargeError(
            f"the body is larger than {most} bytes",
            hint="send JSON lines (application/x-ndjson), which may have any length",
        )
    parts, size = [], 0
    async for chunk in request.stream():
        parts.append(chunk)
        size += len(chunk)
        if size > most:
            raise TooLargeError(
                f"the body is larger than {most} bytes",
                hint="send JSON lines (application/x-ndjson) without an Idempotency-Key, which may have any length",
            )
    return b"".join(parts)


def _parse(request: Request, kind: str, body: bytes, mapping: RecordMapping | None) -> ParsedBody:
    if kind in (CLOUDEVENT, CLOUDEVENTS):
        return parse_cloudevents(body)
    if is_binary_cloudevent(request.headers):
        return parse_binary_cloudevent(request.headers.items(), body)
    if kind in LINES:
        return parse_lines(body.split(b"\n"), mapping=mapping)
    if kind == JSON or kind.endswith("+json"):
        return parse_json(body, mapping=mapping)
    raise InputError(f"the content type {kind[:60]!r} is not supported", hint=f"use {JSON}, {LINES[0]} or {CLOUDEVENT}")


async def _mapping(broker: Broker, access: Access, name: str) -> RecordMapping:
    if len(name) > 255:
        raise InputError("the name of a mapping is longer than 255 characters", hint="GET /v1/mappings lists the names")
    saved = await broker.read(broker.history.mapping, access.namespace, name)
    return RecordMapping.of_plain(msgspec.json.decode(saved), source=f"mapping {name}")


def _response(receipt: Receipt, rejected: list[BadRecord]) -> Response:
    if receipt.accepted or not rejected:
        return json_response(_receipt(receipt, rejected))
    first = rejected[0]
    problem = problem_document(400, "bad-input", "No event could be accepted", first.reason)
    if first.hint:
        problem["hint"] = first.hint
    return problem_response(problem | {"rejected": rejections(rejected), "rejected_count": len(rejected)})


def _receipt(receipt: Receipt, rejected: list[BadRecord]) -> dict[str, Any]:
    return {
        "accepted": receipt.accepted,
        "first": receipt.first,
        "last": receipt.last,
        "rejected": rejections(rejected),
        "rejected_count": len(rejected),
    }
