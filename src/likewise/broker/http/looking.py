"""History and reasons: events, notifications, why, why not, and what a subscription would find."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from likewise.broker.http.documents import cursor_of, event_document, json_answer, next_of, notice_documents
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
    after: Annotated[int, Query(ge=0, le=2**62, description="Positions beyond this one.")] = 0,
    newest: Annotated[bool, Query(description="The newest first; `before` continues.")] = False,
    before: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    since: Annotated[datetime | None, Query(description="Received at or after.")] = None,
    until: Annotated[datetime | None, Query(description="Received before.")] = None,
    publisher: Annotated[str | None, Query(max_length=64)] = None,
) -> Response:
    """Events in the order in which they were stored."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    wanted = HistoryQuery(
        after=after,
        before=before if newest else None,
        limit=limit,
        since=_instant(since),
        until=_instant(until),
        publisher=publisher,
    )
    found = await broker.read(broker.history.events, access.namespace, wanted)
    return json_answer({"events": [event_document(one) for one in found], "next": next_of(found, wanted, "position")})


@router.get("/v1/events/{event}", summary="One event", operation_id="get_event", response_model=StoredEventModel)
async def get_event(request: Request, event: str) -> Response:
    """The newest event of an id."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    return json_answer(event_document(await broker.read(broker.history.event, access.namespace, event)))


@router.get("/v1/events/{event}/why", summary="Why, or why not", operation_id="why", response_model=ExplanationModel)
async def why(request: Request, event: str, subscription: Annotated[str, Query(max_length=255)]) -> Response:
    """Why an event answers a subscription, or why it does not and what would have been enough."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    return json_answer(await broker.read(broker.insight.why, access.namespace, event, subscription))


@router.get(
    "/v1/notifications",
    summary="Notifications",
    operation_id="list_notifications",
    response_model=NotificationsModel,
)
async def list_notifications(
    request: Request,
    *,
    after: Annotated[str | None, Query(pattern="^[0-9]{0,18}$", description="Ids beyond this one.")] = None,
    newest: Annotated[bool, Query(description="The newest first; `before` continues.")] = False,
    before: Annotated[str | None, Query(pattern="^[0-9]{0,18}$")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    subscription: Annotated[list[str] | None, Query()] = None,
    kind: Annotated[str | None, Query(pattern="^(match|detection)$")] = None,
    score: Annotated[float, Query(ge=0, le=1)] = 0.0,
    since: Annotated[datetime | None, Query(description="Event time at or after.")] = None,
    until: Annotated[datetime | None, Query(description="Event time before.")] = None,
) -> Response:
    """Matches and detections in the order in which they were found."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    wanted = HistoryQuery(
        after=cursor_of(after) or 0,
        before=(cursor_of(before) or 0) if newest else None,
        limit=limit,
        since=_instant(since),
        until=_instant(until),
        subscriptions=tuple(subscription or ()),
        kind=kind,
        score=score,
    )
    found = await broker.read(broker.history.notices, access.namespace, wanted)
    more = next_of(found, wanted, "cursor")
    return json_answer({"notifications": notice_documents(found), "next": None if more is None else str(more)})


@router.get(
    "/v1/notifications/{id}",
    summary="One notification",
    operation_id="get_notification",
    response_model=NotificationModel,
)
async def get_notification(request: Request, id: str) -> Response:
    """A notification as it was sent."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    notice = await broker.read(broker.history.notice, access.namespace, cursor_of(id) or 0)
    return Response(notice.body, media_type="application/json")


@router.get(
    "/v1/notifications/{id}/explanation",
    summary="Why it came",
    operation_id="explain",
    response_model=ExplanationModel,
)
async def explain(request: Request, id: str) -> Response:
    """Predicate by predicate for a match, role by role for a detection."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    return json_answer(await broker.read(broker.insight.explain, access.namespace, cursor_of(id) or 0))


@router.post("/v1/trial", summary="Try a subscription", operation_id="trial", response_model=TrialResultModel)
async def trial(request: Request, wanted: TrialModel) -> Response:
    """What it would have found in the last minutes, with scores and reasons; nothing is stored."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    broker.check_size(wanted.text)
    found = await broker.read(
        lambda: broker.insight.trial(access.namespace, wanted.text, minutes=wanted.minutes, limit=wanted.limit)
    )
    return json_answer(found)


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
    """What a subscription found in the last minutes, and what it narrowly missed, with the reasons."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    entry = await broker.read(broker.history.entry, access.namespace, name)
    found = await broker.read(lambda: broker.insight.trial(access.namespace, entry.text, minutes=minutes, limit=limit))
    return json_answer(found)


def _instant(moment: datetime | None) -> Instant | None:
    return None if moment is None else to_instant(moment)
