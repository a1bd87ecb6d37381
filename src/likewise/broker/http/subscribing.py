"""Subscriptions and patterns: create, read, replace, change, delete, try."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request, Response

from likewise.broker.auth import Access
from likewise.broker.http.documents import entry_document, json_answer
from likewise.broker.http.guard import access_of, broker_of
from likewise.broker.http.models import (
    ChangedSubscription,
    NewSubscription,
    ReplacedSubscription,
    SubscriptionModel,
    SubscriptionsModel,
)
from likewise.broker.service import Broker
from likewise.broker.store.records import BookEntry, now
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
    """Add the subscriptions of a text: all of them or, on an error, none."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    broker.check_webhook(wanted.webhook)
    entries = await broker.create(
        access, wanted.text, tags=wanted.tags, webhook=wanted.webhook or None, paused=wanted.paused
    )
    found = [_document(broker, access, entry, fresh=True) for entry in entries]
    return json_answer({"subscriptions": found, "next": None}, 201)


@router.get(
    "/v1/subscriptions",
    summary="List subscriptions",
    operation_id="list_subscriptions",
    response_model=SubscriptionsModel,
)
async def list_all(
    request: Request,
    after: Annotated[str, Query(description="Names after this one.", max_length=255)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    tag: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """Subscriptions by name."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    found = [
        entry
        for _, entry in await broker.read(
            lambda: broker.history.entries(access.namespace, after=after, limit=limit if tag is None else 100_000)
        )
    ]
    page = [entry for entry in found if tag is None or tag in entry.tags][:limit]
    more = page[-1].name if len(page) == limit else None
    return json_answer({"subscriptions": [_document(broker, access, one) for one in page], "next": more})


@router.get(
    "/v1/subscriptions/{name}",
    summary="Read a subscription",
    operation_id="get_subscription",
    response_model=SubscriptionModel,
)
async def read(request: Request, name: str) -> Response:
    """One subscription."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    return json_answer(_document(broker, access, await broker.read(broker.history.entry, access.namespace, name)))


@router.put(
    "/v1/subscriptions/{name}",
    summary="Create or replace a subscription",
    operation_id="replace_subscription",
    response_model=SubscriptionModel,
)
async def replace(request: Request, name: str, wanted: ReplacedSubscription) -> Response:
    """A pattern with a new text begins with nothing; if the new text is refused, the old one stays."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    broker.check_webhook(wanted.webhook)
    _checked(name, wanted.text)
    old = {entry.name: entry for _, entry in await broker.read(broker.history.entries, access.namespace)}.get(name)
    moment = now()
    entry = BookEntry(
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
    return json_answer(_document(broker, access, stored, fresh=_new_hook(old, stored)), 201 if old is None else 200)


@router.patch(
    "/v1/subscriptions/{name}",
    summary="Change a subscription",
    operation_id="change_subscription",
    response_model=SubscriptionModel,
)
async def change(request: Request, name: str, wanted: ChangedSubscription) -> Response:
    """Pause, resume, or change text, tags or webhook. A paused pattern forgets what it holds."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    broker.check_webhook(wanted.webhook)
    old = await broker.read(broker.history.entry, access.namespace, name)
    if wanted.text is not None:
        _checked(name, wanted.text)
    entry = msgspec.structs.replace(
        old,
        text=old.text if wanted.text is None else wanted.text,
        tags=old.tags if wanted.tags is None else tuple(wanted.tags),
        paused=old.paused if wanted.paused is None else wanted.paused,
        webhook=old.webhook if wanted.webhook is None else broker.webhook_of(wanted.webhook, old),
        updated=now(),
    )
    stored = await broker.replace(access, entry)
    return json_answer(_document(broker, access, stored, fresh=_new_hook(old, stored)))


@router.delete("/v1/subscriptions/{name}", summary="Delete a subscription", operation_id="unsubscribe", status_code=204)
async def delete(request: Request, name: str) -> Response:
    """Remove a subscription; its notifications stay in the history."""
    await broker_of(request).delete(access_of(request, "subscribe"), name)
    return Response(status_code=204)


def _checked(name: str, text: str) -> None:
    found = parse_subscription(text)
    if found.name not in (name, "s1"):
        raise BuildError(
            f"the text names {found.name!r} and the address {name!r}", hint="leave the name out of the text"
        )


def _new_hook(old: BookEntry | None, entry: BookEntry) -> bool:
    return entry.webhook is not None and (old is None or old.webhook != entry.webhook)


def _document(broker: Broker, access: Access, entry: BookEntry, *, fresh: bool = False) -> dict[str, object]:
    tenant = broker.host.tenants.get(access.namespace)
    found = 0 if tenant is None else tenant.found.get(entry.name, 0)
    secret = broker.signing_secret(access.namespace, entry) if fresh else None
    return entry_document(entry, found=found, state=broker.webhook_state(access.namespace, entry.name), secret=secret)
