"""Pull delivery: a consumer requests notifications and acknowledges them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from likewise.broker.http.documents import cursor_of, json_response, notice_documents
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
    wait: Annotated[float, Query(ge=0, le=60, description="Seconds to wait for a notification.")] = 0.0,
) -> Response:
    """Notifications that are not acknowledged yet, oldest first. A new consumer starts with the next notification."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    notices, cursor = await broker.pull(access, consumer[:200], names=subscription or (), limit=limit, wait=wait)
    last = str(notices[-1].cursor if notices else cursor)
    return json_response({"notifications": notice_documents(notices), "cursor": last})


@router.post(
    "/v1/consumers/{consumer}/acknowledge",
    summary="Acknowledge notifications",
    operation_id="acknowledge",
    response_model=CursorModel,
)
async def acknowledge(request: Request, consumer: str, done: CursorModel) -> Response:
    """Acknowledge all notifications up to a cursor; a cursor never moves back."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    cursor = await broker.acknowledge(access, consumer[:200], cursor_of(done.cursor) or 0)
    return json_response({"cursor": str(cursor)})


@router.get("/v1/consumers", summary="Consumers", operation_id="list_consumers", response_model=ConsumersModel)
async def list_consumers(request: Request) -> Response:
    """The acknowledged cursor of each consumer, including webhooks and the MQTT bridge."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    cursors = await broker.read(broker.history.consumers, access.namespace)
    return json_response({"consumers": {name: str(cursor) for name, cursor in cursors.items()}})
