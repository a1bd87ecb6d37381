"""Streams: server-sent events and WebSocket, which resume from an id."""

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
Names = Annotated[list[str] | None, Query(description="Some subscriptions; all by default.")]
After = Annotated[
    str | None, Query(description="Begin after this id; with the next notification by default.", pattern="^[0-9]*$")
]
Score = Annotated[float, Query(ge=0, le=1, description="Notifications of at least this score.")]
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
    """Each event has the notification's id; a reconnecting client sends it as `Last-Event-ID` and misses nothing."""
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
    """Every event of the namespace as it is stored; ids are positions in the log."""
    broker, access = broker_of(request), access_of(request, "subscribe", in_query=True)
    position = cursor_of(request.headers.get("last-event-id") or after)
    return StreamingResponse(_event_frames(broker, access, position), headers=_HEADERS, media_type="text/event-stream")


@router.websocket("/v1/ws")
async def socket(websocket: WebSocket, subscription: Names = None, after: After = None, score: Score = 0.0) -> None:
    """Notifications as text frames of JSON."""
    broker = broker_of(websocket)
    try:
        access = access_of(websocket, "subscribe", in_query=True)
        cursor = cursor_of(after)
    except LikewiseError as error:
        await websocket.close(1008, problem_of(error)["detail"])
        return
    await websocket.accept()
    gone = asyncio.create_task(_until_gone(websocket))
    try:
        async for notices in broker.follow(access, names=subscription, after=cursor, score=score):
            if gone.done():
                break
            for notice in notices:
                await websocket.send_text(notice.body.decode())
        if not gone.done():
            await websocket.close(1012, "the broker is restarting")
    except (WebSocketDisconnect, RuntimeError):
        pass
    finally:
        gone.cancel()
        with contextlib.suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
            await gone


async def _until_gone(websocket: WebSocket) -> None:
    """Frames from a client say nothing; the last one says that it is gone."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        while True:
            await websocket.receive_text()


async def _frames(
    broker: Broker, access: Access, names: list[str] | None, cursor: int | None, score: float
) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    async for notices in broker.follow(access, names=names, after=cursor, score=score):
        yield b"".join(map(frame, notices)) or b": still here\n\n"


async def _event_frames(broker: Broker, access: Access, position: int | None) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    async for records in broker.tail(access, after=position):
        yield b"".join(map(_event_frame, records)) or b": still here\n\n"


def frame(notice: Notice) -> bytes:
    """A notification as a server-sent event; its JSON has no line breaks."""
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (notice.cursor, notice.kind.encode(), notice.body)


def _event_frame(record: LogRecord) -> bytes:
    return b"id: %d\nevent: event\ndata: %b\n\n" % (record.position, record.body)
