"""Pull with acknowledgement: a consumer asks when it likes and says how far it has come."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from likewise.broker.http.documents import cursor_of, json_answer, notice_documents
from likewise.broker.http.guard import access_of, broker_of
from likewise.broker.http.models import ConsumersModel, CursorModel, PulledModel

router = APIRouter(tags=["consumers"])


@router.post(
    "/v1/consumers/{consumer}/pull", summary="Pull notifications", operation_id="pull", response_model=PulledModel
)
async def pull(
    request: Request,
    consumer: str,
    subscription: Annotated[list[str] | None, Query()] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    wait: Annotated[float, Query(ge=0, le=60, description="Seconds to wait for something.")] = 0.0,
) -> Response:
    """What is not acknowledged yet, oldest first. A new consumer begins with the next notification."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    found, cursor = await broker.pull(access, consumer[:200], names=subscription or (), limit=limit, wait=wait)
    last = str(found[-1].cursor if found else cursor)
    return json_answer({"notifications": notice_documents(found), "cursor": last})


@router.post(
    "/v1/consumers/{consumer}/acknowledge",
    summary="Acknowledge",
    operation_id="acknowledge",
    response_model=CursorModel,
)
async def acknowledge(request: Request, consumer: str, done: CursorModel) -> Response:
    """All up to a cursor is dealt with; a cursor never goes back."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    cursor = await broker.acknowledge(access, consumer[:200], cursor_of(done.cursor) or 0)
    return json_answer({"cursor": str(cursor)})


@router.get("/v1/consumers", summary="Consumers", operation_id="list_consumers", response_model=ConsumersModel)
async def list_consumers(request: Request) -> Response:
    """How far each consumer has come, also webhooks and the MQTT bridge."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    found = await broker.read(broker.history.consumers, access.namespace)
    return json_answer({"consumers": {name: str(cursor) for name, cursor in found.items()}})
