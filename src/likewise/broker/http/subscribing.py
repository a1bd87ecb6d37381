"""Subscriptions and patterns: create, read, replace, change, delete."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request, Response

from likewise.broker.auth import Access
from likewise.broker.http.documents import entry_document, json_response
from likewise.broker.http.guard import access_of, broker_of
from likewise.broker.http.models import (
    ChangedSubscription,
    NewSubscription,
    ReplacedSubscription,
    SubscriptionModel,
    SubscriptionsModel,
)
from likewise.broker.service import Broker
from likewise.broker.store.records import SubscriptionEntry, now
from likewise.errors import BuildError
from likewise.language import parse_subscription

router = APIRouter(tags=["subscriptions"])


@router.post(
    "/v1/subscriptions",
    summary="Create subscriptions",
    operation_id="subscribe",
    status_code=201,
    response_model=SubscriptionsModel,
)
async def create(request: Request, wanted: NewSubscription) -> Response:
    """Create the subscriptions of a text; on an error, none is created."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    broker.check_webhook(wanted.webhook)
    entries = await broker.create(
        access, wanted.text, tags=wanted.tags, webhook=wanted.webhook or None, paused=wanted.paused
    )
    documents = [_document(broker, access, entry, with_secret=True) for entry in entries]
    return json_response({"subscriptions": documents, "next": None}, 201)


@router.get(
    "/v1/subscriptions",
    summary="List subscriptions",
    operation_id="list_subscriptions",
    response_model=SubscriptionsModel,
)
async def list_all(
    request: Request,
    after: Annotated[str, Query(description="Only names after this one.", max_length=255)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    tag: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """Subscriptions, sorted by name."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    entries = [
        entry
        for _, entry in await broker.read(
            lambda: broker.history.entries(access.namespace, after=after, limit=limit if tag is None else 100_000)
        )
    ]
    page = [entry for entry in entries if tag is None or tag in entry.tags][:limit]
    more = page[-1].name if len(page) == limit else None
    return json_response({"subscriptions": [_document(broker, access, entry) for entry in page], "next": more})


@router.get(
    "/v1/subscriptions/{name}",
    summary="Read a subscription",
    operation_id="get_subscription",
    response_model=SubscriptionModel,
)
async def read(request: Request, name: str) -> Response:
    """One subscription."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    return json_response(_document(broker, access, await broker.read(broker.history.entry, access.namespace, name)))


@router.put(
    "/v1/subscriptions/{name}",
    summary="Create or replace a subscription",
    operation_id="replace_subscription",
    response_model=SubscriptionModel,
)
async def replace(request: Request, name: str, wanted: ReplacedSubscription) -> Response:
    """Create or replace a subscription. A pattern with a new text loses its state; if the text is invalid, the old
    subscription stays."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    broker.check_webhook(wanted.webhook)
    _check_name(name, wanted.text)
    old = {entry.name: entry for _, entry in await broker.read(broker.history.entries, access.namespace)}.get(name)
    moment = now()
    entry = SubscriptionEntry(
        name,
        wanted.text,
        access.actor if old is None else old.owner,
        moment if old is None else old.created,
        moment,
        tuple(wanted.tags),
        wanted.paused,
        broker.webhook_of(wanted.webhook, old),
    )
    stored = await broker.replace(access, entry)
    return json_response(
        _document(broker, access, stored, with_secret=_new_webhook(old, stored)), 201 if old is None else 200
    )


@router.patch(
    "/v1/subscriptions/{name}",
    summary="Change a subscription",
    operation_id="change_subscription",
    response_model=SubscriptionModel,
)
async def change(request: Request, name: str, wanted: ChangedSubscription) -> Response:
    """Pause, resume, or change text, tags or webhook. A paused pattern loses its state."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    broker.check_webhook(wanted.webhook)
    old = await broker.read(broker.history.entry, access.namespace, name)
    if wanted.text is not None:
        _check_name(name, wanted.text)
    entry = msgspec.structs.replace(
        old,
        text=old.text if wanted.text is None else wanted.text,
        tags=old.tags if wanted.tags is None else tuple(wanted.tags),
        paused=old.paused if wanted.paused is None else wanted.paused,
        webhook=old.webhook if wanted.webhook is None else broker.webhook_of(wanted.webhook, old),
        updated=now(),
    )
    stored = await broker.replace(access, entry)
    return json_response(_document(broker, access, stored, with_secret=_new_webhook(old, stored)))


@router.delete("/v1/subscriptions/{name}", summary="Delete a subscription", operation_id="unsubscribe", status_code=204)
async def delete(request: Request, name: str) -> Response:
    """Delete a subscription; its notifications stay in the history."""
    await broker_of(request).delete(access_of(request, "subscribe"), name)
    return Response(status_code=204)


def _check_name(name: str, text: str) -> None:
    subscription = parse_subscription(text)
    if subscription.name not in (name, "s1"):  # "s1" is the name of a text without one
        raise BuildError(
            f"the text has the name {subscription.name!r}, but the URL has {name!r}",
            hint="remove the name from the text",
        )


def _new_webhook(old: SubscriptionEntry | None, entry: SubscriptionEntry) -> bool:
    return entry.webhook is not None and (old is None or old.webhook != entry.webhook)


def _document(
    broker: Broker, access: Access, entry: SubscriptionEntry, *, with_secret: bool = False
) -> dict[str, object]:
    tenant = broker.host.tenants.get(access.namespace)
    found = 0 if tenant is None else tenant.found.get(entry.name, 0)
    secret = broker.signing_secret(access.namespace, entry) if with_secret else None
    return entry_document(entry, found=found, state=broker.webhook_state(access.namespace, entry.name), secret=secret)
