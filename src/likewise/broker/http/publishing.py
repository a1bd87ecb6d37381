"""Publishing: events in every format, acknowledged when they are on disk."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response

from likewise.broker.auth import Access
from likewise.broker.errors import TooLargeError
from likewise.broker.http.documents import json_answer
from likewise.broker.http.guard import access_of, broker_of
from likewise.broker.http.models import AdvanceModel, EventModel, ReceiptModel
from likewise.broker.http.problems import answer, document
from likewise.broker.intake import (
    CLOUDEVENT,
    CLOUDEVENTS,
    JSON,
    LINES,
    Gathered,
    gather_binary,
    gather_cloudevents,
    gather_json,
    gather_lines,
    is_binary_cloudevent,
    rejections,
)
from likewise.broker.service import Broker, Receipt
from likewise.broker.store.log import Idempotency, Stored
from likewise.errors import InputError
from likewise.events import BadRecord, RecordMapping, to_instant

PATH = "/v1/events"
router = APIRouter(tags=["publish"])
CHUNK = 1 << 19
"""Bytes of a stream of lines that are stored at once."""

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
            "description": "A request with the same key and body is stored once and gets the first answer again.",
        },
        {
            "name": "mapping",
            "in": "query",
            "required": False,
            "schema": {"type": "string", "maxLength": 255},
            "description": "A saved mapping, for flat records.",
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
    """One event, an array or JSON lines of any length. Accepted events are on disk when the answer comes."""
    broker, access = broker_of(request), access_of(request, "publish")
    mapping = request.query_params.get("mapping")
    shape = None if mapping is None else await _mapping(broker, access, mapping)
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    key = request.headers.get("idempotency-key")
    if kind in LINES and key is None:
        receipt, rejected = await _publish_stream(request, broker, access, shape)
        return _answer(receipt, rejected)
    body = await _body(request, broker.settings.quotas.body_bytes)
    gathered = _gather(request, kind, body, shape)
    if key is None:
        return _answer(await broker.publish(access, gathered.events), gathered.rejected)
    return await _publish_once(broker, access, key, body, gathered)


@router.post("/v1/advance", summary="Advance event time", operation_id="advance", status_code=204)
async def advance(request: Request, wanted: AdvanceModel) -> Response:
    """Say that all events up to a time have come, so that patterns need not wait for them."""
    await broker_of(request).advance(access_of(request, "publish"), to_instant(wanted.time))
    return Response(status_code=204)


async def _publish_once(broker: Broker, access: Access, key: str, body: bytes, gathered: Gathered) -> Response:
    if not gathered.events:
        return _answer(Receipt(0, None, None), gathered.rejected)

    def written(stored: Stored) -> bytes:
        receipt = Receipt(len(gathered.events), stored.first, stored.last)
        return msgspec.json.encode(_receipt(receipt, gathered.rejected))

    async def work(idempotency: Idempotency) -> None:
        await broker.publish(access, gathered.events, idempotency=idempotency)

    text, old = await broker.once(access, key, body, work, written)
    return Response(text, 200, {"Idempotent-Replayed": "true"} if old else None, "application/json")


async def _publish_stream(
    request: Request, broker: Broker, access: Access, mapping: RecordMapping | None
) -> tuple[Receipt, list[BadRecord]]:
    """Lines are stored while more come in; a line that is too long ends the request, what was stored stays."""
    rejected: list[BadRecord] = []
    first: int | None = None
    last: int | None = None
    accepted, number, rest = 0, 1, b""
    most = broker.settings.quotas.body_bytes

    async def store(data: bytes) -> None:
        nonlocal accepted, number, first, last
        lines = data.split(b"\n")
        gathered = gather_lines(lines, first=number, mapping=mapping)
        number += len(lines) - (0 if lines[-1] else 1)
        rejected.extend(gathered.rejected[: max(0, 1000 - len(rejected))])
        receipt = await broker.publish(access, gathered.events)
        accepted += receipt.accepted
        first = receipt.first if first is None else first
        last = receipt.last or last

    async for chunk in request.stream():
        rest += chunk
        if len(rest) >= CHUNK:
            whole, _, rest = rest.rpartition(b"\n")
            if whole:
                await store(whole + b"\n")
            if len(rest) > most:
                raise TooLargeError(f"line {number} is longer than {most} bytes", hint="send shorter events")
    if rest.strip():
        await store(rest)
    return Receipt(accepted, first, last), rejected


async def _body(request: Request, most: int) -> bytes:
    declared = request.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > most:
        raise TooLargeError(f"the body is larger than {most} bytes", hint="send JSON lines, which may be of any length")
    parts, size = [], 0
    async for chunk in request.stream():
        parts.append(chunk)
        size += len(chunk)
        if size > most:
            raise TooLargeError(f"the body is larger than {most} bytes", hint="send JSON lines without a key")
    return b"".join(parts)


def _gather(request: Request, kind: str, body: bytes, mapping: RecordMapping | None) -> Gathered:
    if kind in (CLOUDEVENT, CLOUDEVENTS):
        return gather_cloudevents(body)
    if is_binary_cloudevent(request.headers):
        return gather_binary(request.headers.items(), body)
    if kind in LINES:
        return gather_lines(body.split(b"\n"), mapping=mapping)
    if kind == JSON or kind.endswith("+json"):
        return gather_json(body, mapping=mapping)
    raise InputError(f"the content type {kind[:60]!r} is not known", hint=f"use {JSON}, {LINES[0]} or {CLOUDEVENT}")


async def _mapping(broker: Broker, access: Access, name: str) -> RecordMapping:
    if len(name) > 255:
        raise InputError("the name of a mapping has at most 255 characters")
    saved = await broker.read(broker.history.mapping, access.namespace, name)
    return RecordMapping.of_plain(msgspec.json.decode(saved), source=f"mapping {name}")


def _answer(receipt: Receipt, rejected: list[BadRecord]) -> Response:
    if receipt.accepted or not rejected:
        return json_answer(_receipt(receipt, rejected))
    first = rejected[0]
    problem = document(400, "bad-input", "No event could be accepted", first.reason)
    if first.hint:
        problem["hint"] = first.hint
    return answer(problem | {"rejected": rejections(rejected), "rejected_count": len(rejected)})


def _receipt(receipt: Receipt, rejected: list[BadRecord]) -> dict[str, Any]:
    return {
        "accepted": receipt.accepted,
        "first": receipt.first,
        "last": receipt.last,
        "rejected": rejections(rejected),
        "rejected_count": len(rejected),
    }
