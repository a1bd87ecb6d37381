"""The CloudEvents Subscriptions API: filters in the subscription language, deliveries to a sink.

It is another view of the same subscriptions: those with a webhook. A filter is an object with the name of its dialect,
here `{"likewise": "{type~ = parking~, slots > 0}"}`.
"""

from __future__ import annotations

import secrets
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from likewise.broker.errors import NotFoundError
from likewise.broker.http.documents import json_answer
from likewise.broker.http.guard import access_of, broker_of
from likewise.broker.http.models import SinkSubscription, SinkSubscriptionModel
from likewise.broker.store.records import BookEntry, now
from likewise.errors import BuildError
from likewise.language import Subscription, format_subscription, parse_subscription

router = APIRouter(tags=["CloudEvents"])
PATH: Final = "/v1/cloudevents/subscriptions"
DIALECT: Final = "likewise"


@router.post(
    PATH,
    summary="Subscribe a sink",
    operation_id="subscribe_sink",
    status_code=201,
    response_model=SinkSubscriptionModel,
)
async def create(request: Request, wanted: SinkSubscription) -> Response:
    """Deliver to a sink, as CloudEvents, what the filter finds."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    text = _text(wanted, f"sink-{secrets.token_hex(6)}")
    broker.check_webhook(wanted.sink)
    [entry] = await broker.create(access, text, webhook=wanted.sink)
    document = _document(entry) | {"secret": broker.signing_secret(access.namespace, entry)}
    return json_answer(document, 201, {"Location": f"{PATH}/{entry.name}"})


@router.get(
    PATH, summary="Subscriptions with a sink", operation_id="list_sinks", response_model=list[SinkSubscriptionModel]
)
async def list_all(request: Request) -> Response:
    """All of the namespace, by id."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    found = await broker.read(broker.history.entries, access.namespace)
    return json_answer([_document(entry) for _, entry in found if entry.webhook is not None])


@router.get(
    f"{PATH}/{{name}}",
    summary="A subscription with a sink",
    operation_id="get_sink",
    response_model=SinkSubscriptionModel,
)
async def read(request: Request, name: str) -> Response:
    """One of them."""
    return json_answer(_document(await _entry(request, name)))


@router.put(
    f"{PATH}/{{name}}", summary="Change a sink", operation_id="replace_sink", response_model=SinkSubscriptionModel
)
async def replace(request: Request, name: str, wanted: SinkSubscription) -> Response:
    """Another filter or another sink."""
    broker, access, old = broker_of(request), access_of(request, "subscribe"), await _entry(request, name)
    broker.check_webhook(wanted.sink)
    hook = broker.webhook_of(wanted.sink, old)
    entry = BookEntry(name, _text(wanted, name), old.owner, old.created, now(), old.tags, old.paused, hook, old.extra)
    return json_answer(_document(await broker.replace(access, entry)))


@router.delete(f"{PATH}/{{name}}", summary="Remove a sink", operation_id="unsubscribe_sink", status_code=204)
async def delete(request: Request, name: str) -> Response:
    """End the deliveries; what was found stays in the history."""
    await _entry(request, name)
    await broker_of(request).delete(access_of(request, "subscribe"), name)
    return Response(status_code=204)


async def _entry(request: Request, name: str) -> BookEntry:
    broker, access = broker_of(request), access_of(request, "subscribe")
    entry = await broker.read(broker.history.entry, access.namespace, name)
    if entry.webhook is None:
        raise NotFoundError(f"the subscription {name[:100]!r} has no sink", hint="GET /v1/subscriptions has them all")
    return entry


def _text(wanted: SinkSubscription, name: str) -> str:
    """The subscription of a request, under a name."""
    if wanted.protocol.upper() != "HTTP":
        raise BuildError(
            f"the protocol {wanted.protocol[:40]!r} is not known", hint="HTTP is; MQTT is an option of serve"
        )
    if wanted.types or wanted.source:
        raise BuildError("`types` and `source` are not filters here", hint="ask for them in the filter: {type = …}")
    if len(wanted.filters) != 1 or wanted.filters[0].keys() != {DIALECT}:
        hint = f'such as [{{"{DIALECT}": "{{type~ = parking~}}"}}]'
        raise BuildError(f"there is one filter, of the dialect {DIALECT}", hint=hint)
    found = parse_subscription(wanted.filters[0][DIALECT])
    return format_subscription(Subscription(name, found.body, found.options))


def _document(entry: BookEntry) -> dict[str, Any]:
    assert entry.webhook is not None  # only those are shown
    return {
        "id": entry.name,
        "filters": [{DIALECT: entry.text}],
        "sink": entry.webhook.url,
        "protocol": "HTTP",
    }
