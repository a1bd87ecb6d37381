"""History: events, notifications, explanations and trials of subscriptions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from likewise.broker.http.documents import cursor_of, event_document, json_response, next_of, notice_documents
from likewise.broker.http.guard import access_of, broker_of
from likewise.broker.http.models import (
    EventsModel,
    ExplanationModel,
    NotificationModel,
    NotificationsModel,
    StoredEventModel,
    TrialModel,
    TrialResultModel,
)
from likewise.broker.store.history import HistoryQuery
from likewise.events import Instant, to_instant

router = APIRouter(tags=["history"])


@router.get("/v1/events", summary="Events of the log", operation_id="list_events", response_model=EventsModel)
async def list_events(
    request: Request,
    *,
    after: Annotated[int, Query(ge=0, le=2**62, description="Only events after this position.")] = 0,
    newest: Annotated[bool, Query(description="Newest first; continue with `before`.")] = False,
    before: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    since: Annotated[datetime | None, Query(description="Received at or after this time.")] = None,
    until: Annotated[datetime | None, Query(description="Received before this time.")] = None,
    publisher: Annotated[str | None, Query(max_length=64)] = None,
) -> Response:
    """Events in the order they were stored."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    query = HistoryQuery(
        after=after,
        before=before if newest else None,
        limit=limit,
        since=_instant(since),
        until=_instant(until),
        publisher=publisher,
    )
    records = await broker.read(broker.history.events, access.namespace, query)
    more = next_of(records, query, "position")
    return json_response({"events": [event_document(record) for record in records], "next": more})


@router.get("/v1/events/{event}", summary="One event", operation_id="get_event", response_model=StoredEventModel)
async def get_event(request: Request, event: str) -> Response:
    """The newest event with an id."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    return json_response(event_document(await broker.read(broker.history.event, access.namespace, event)))


@router.get(
    "/v1/events/{event}/why", summary="Explain a match or a miss", operation_id="why", response_model=ExplanationModel
)
async def why(request: Request, event: str, subscription: Annotated[str, Query(max_length=255)]) -> Response:
    """Why an event matches a subscription, or why it does not and which score it would need."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    return json_response(await broker.read(broker.insight.why, access.namespace, event, subscription))


@router.get(
    "/v1/notifications",
    summary="Notifications",
    operation_id="list_notifications",
    response_model=NotificationsModel,
)
async def list_notifications(
    request: Request,
    *,
    after: Annotated[
        str | None, Query(pattern="^[0-9]{0,18}$", description="Only notifications after this id.")
    ] = None,
    newest: Annotated[bool, Query(description="Newest first; continue with `before`.")] = False,
    before: Annotated[str | None, Query(pattern="^[0-9]{0,18}$")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    subscription: Annotated[list[str] | None, Query()] = None,
    kind: Annotated[str | None, Query(pattern="^(match|detection)$")] = None,
    score: Annotated[float, Query(ge=0, le=1)] = 0.0,
    since: Annotated[datetime | None, Query(description="Event time at or after this time.")] = None,
    until: Annotated[datetime | None, Query(description="Event time before this time.")] = None,
) -> Response:
    """Matches and detections in the order they were found."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    query = HistoryQuery(
        after=cursor_of(after) or 0,
        before=(cursor_of(before) or 0) if newest else None,
        limit=limit,
        since=_instant(since),
        until=_instant(until),
        subscriptions=tuple(subscription or ()),
        kind=kind,
        score=score,
    )
    notices = await broker.read(broker.history.notices, access.namespace, query)
    more = next_of(notices, query, "cursor")
    return json_response({"notifications": notice_documents(notices), "next": None if more is None else str(more)})


@router.get(
    "/v1/notifications/{id}",
    summary="One notification",
    operation_id="get_notification",
    response_model=NotificationModel,
)
async def get_notification(request: Request, id: str) -> Response:
    """One notification, as it was sent."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    notice = await broker.read(broker.history.notice, access.namespace, cursor_of(id) or 0)
    return Response(notice.body, media_type="application/json")


@router.get(
    "/v1/notifications/{id}/explanation",
    summary="Explain a notification",
    operation_id="explain",
    response_model=ExplanationModel,
)
async def explain(request: Request, id: str) -> Response:
    """Explain a match predicate by predicate, a detection role by role."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    return json_response(await broker.read(broker.insight.explain, access.namespace, cursor_of(id) or 0))


@router.post("/v1/trial", summary="Try a subscription", operation_id="trial", response_model=TrialResultModel)
async def trial(request: Request, wanted: TrialModel) -> Response:
    """What a subscription would have found in the last minutes, with explanations. Nothing is stored."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    broker.check_size(wanted.text)
    result = await broker.read(
        lambda: broker.insight.trial(access.namespace, wanted.text, minutes=wanted.minutes, limit=wanted.limit)
    )
    return json_response(result)


@router.get(
    "/v1/subscriptions/{name}/near-misses",
    summary="Near misses",
    operation_id="near_misses",
    response_model=TrialResultModel,
)
async def near_misses(
    request: Request,
    name: str,
    minutes: Annotated[float, Query(gt=0, le=7 * 1440)] = 60,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
) -> Response:
    """Matches and near misses of a subscription in the last minutes, with explanations."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    entry = await broker.read(broker.history.entry, access.namespace, name)
    result = await broker.read(lambda: broker.insight.trial(access.namespace, entry.text, minutes=minutes, limit=limit))
    return json_response(result)


def _instant(moment: datetime | None) -> Instant | None:
    return None if moment is None else to_instant(moment)
