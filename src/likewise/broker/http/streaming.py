"""Streams over server-sent events and WebSocket, which can resume after an id."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query, Request, WebSocket
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocketDisconnect

from likewise.broker.auth import Access
from likewise.broker.http.documents import cursor_of
from likewise.broker.http.guard import access_of, broker_of
from likewise.broker.http.problems import problem_of
from likewise.broker.service import Broker
from likewise.broker.store.records import LogRecord, Notice
from likewise.errors import LikewiseError

router = APIRouter(tags=["streams"])
Names = Annotated[list[str] | None, Query(description="Only these subscriptions; all by default.")]
After = Annotated[
    str | None, Query(description="Start after this id; by default with the next notification.", pattern="^[0-9]*$")
]
Score = Annotated[float, Query(ge=0, le=1, description="Minimum score.")]
_SSE = {"text/event-stream": {"schema": {"type": "string"}}}
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@router.get(
    "/v1/stream",
    summary="Notifications as server-sent events",
    operation_id="stream",
    response_class=StreamingResponse,
    responses={200: {"content": _SSE, "description": "An endless stream."}},
)
async def stream(request: Request, subscription: Names = None, after: After = None, score: Score = 0.0) -> Response:
    """Stream notifications. A client that reconnects with `Last-Event-ID` misses none."""
    broker, access = broker_of(request), access_of(request, "subscribe", in_query=True)
    cursor = cursor_of(request.headers.get("last-event-id") or after)
    frames = _frames(broker, access, subscription, cursor, score)
    return StreamingResponse(frames, headers=_HEADERS, media_type="text/event-stream")


@router.get(
    "/v1/events/stream",
    summary="Events as server-sent events",
    operation_id="stream_events",
    response_class=StreamingResponse,
    responses={200: {"content": _SSE, "description": "An endless stream."}},
)
async def stream_events(request: Request, after: After = None) -> Response:
    """Stream every event of the namespace as it is stored; ids are log positions."""
    broker, access = broker_of(request), access_of(request, "subscribe", in_query=True)
    position = cursor_of(request.headers.get("last-event-id") or after)
    return StreamingResponse(_event_frames(broker, access, position), headers=_HEADERS, media_type="text/event-stream")


@router.websocket("/v1/ws")
async def socket(websocket: WebSocket, subscription: Names = None, after: After = None, score: Score = 0.0) -> None:
    """Stream notifications as JSON text frames."""
    broker = broker_of(websocket)
    try:
        access = access_of(websocket, "subscribe", in_query=True)
        cursor = cursor_of(after)
    except LikewiseError as error:
        await websocket.close(1008, problem_of(error)["detail"])
        return
    await websocket.accept()
    disconnected = asyncio.create_task(_wait_for_disconnect(websocket))
    try:
        async for notices in broker.follow(access, names=subscription, after=cursor, score=score):
            if disconnected.done():
                break
            for notice in notices:
                await websocket.send_text(notice.body.decode())
        if not disconnected.done():
            await websocket.close(1012, "the broker is restarting")
    except (WebSocketDisconnect, RuntimeError):
        pass
    finally:
        disconnected.cancel()
        with contextlib.suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
            await disconnected


async def _wait_for_disconnect(websocket: WebSocket) -> None:
    """Read and ignore the client's frames until it disconnects."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        while True:
            await websocket.receive_text()


async def _frames(
    broker: Broker, access: Access, names: list[str] | None, cursor: int | None, score: float
) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    async for notices in broker.follow(access, names=names, after=cursor, score=score):
        yield b"".join(map(frame, notices)) or b": keep-alive\n\n"


async def _event_frames(broker: Broker, access: Access, position: int | None) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    async for records in broker.tail(access, after=position):
        yield b"".join(map(_event_frame, records)) or b": keep-alive\n\n"


def frame(notice: Notice) -> bytes:
    """Format a notification as a server-sent event; its JSON has no line breaks."""
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (notice.cursor, notice.kind.encode(), notice.body)


def _event_frame(record: LogRecord) -> bytes:
    return b"id: %d\nevent: event\ndata: %b\n\n" % (record.position, record.body)
