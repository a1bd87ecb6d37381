"""The CloudEvents Subscriptions API: filters in the subscription language, delivery to a sink.

It shows the subscriptions that have a webhook. A filter is an object whose key is its dialect:
`{"likewise": "{type~ = parking~, slots > 0}"}`.
"""

from __future__ import annotations

import secrets
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from likewise.broker.errors import NotFoundError
from likewise.broker.http.documents import json_response
from likewise.broker.http.guard import access_of, broker_of
from likewise.broker.http.models import SinkSubscription, SinkSubscriptionModel
from likewise.broker.store.records import SubscriptionEntry, now
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
    """Deliver the matches of a filter to a sink, as CloudEvents."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    text = _text(wanted, f"sink-{secrets.token_hex(6)}")
    broker.check_webhook(wanted.sink)
    [entry] = await broker.create(access, text, webhook=wanted.sink)
    document = _document(entry) | {"secret": broker.signing_secret(access.namespace, entry)}
    return json_response(document, 201, {"Location": f"{PATH}/{entry.name}"})


@router.get(
    PATH, summary="Subscriptions with a sink", operation_id="list_sinks", response_model=list[SinkSubscriptionModel]
)
async def list_all(request: Request) -> Response:
    """All subscriptions of the namespace that have a sink, sorted by id."""
    broker, access = broker_of(request), access_of(request, "subscribe")
    entries = await broker.read(broker.history.entries, access.namespace)
    return json_response([_document(entry) for _, entry in entries if entry.webhook is not None])


@router.get(
    f"{PATH}/{{name}}",
    summary="A subscription with a sink",
    operation_id="get_sink",
    response_model=SinkSubscriptionModel,
)
async def read(request: Request, name: str) -> Response:
    """One subscription with a sink."""
    return json_response(_document(await _entry(request, name)))


@router.put(
    f"{PATH}/{{name}}", summary="Change a sink", operation_id="replace_sink", response_model=SinkSubscriptionModel
)
async def replace(request: Request, name: str, wanted: SinkSubscription) -> Response:
    """Change the filter or the sink."""
    broker, access, old = broker_of(request), access_of(request, "subscribe"), await _entry(request, name)
    broker.check_webhook(wanted.sink)
    hook = broker.webhook_of(wanted.sink, old)
    entry = SubscriptionEntry(
        name, _text(wanted, name), old.owner, old.created, now(), old.tags, old.paused, hook, old.extra
    )
    return json_response(_document(await broker.replace(access, entry)))


@router.delete(f"{PATH}/{{name}}", summary="Remove a sink", operation_id="unsubscribe_sink", status_code=204)
async def delete(request: Request, name: str) -> Response:
    """Stop the deliveries; earlier notifications stay in the history."""
    await _entry(request, name)
    await broker_of(request).delete(access_of(request, "subscribe"), name)
    return Response(status_code=204)


async def _entry(request: Request, name: str) -> SubscriptionEntry:
    broker, access = broker_of(request), access_of(request, "subscribe")
    entry = await broker.read(broker.history.entry, access.namespace, name)
    if entry.webhook is None:
        raise NotFoundError(
            f"the subscription {name[:100]!r} has no sink", hint="GET /v1/subscriptions lists all subscriptions"
        )
    return entry


def _text(wanted: SinkSubscription, name: str) -> str:
    """The text of a subscription with the filter of a request."""
    if wanted.protocol.upper() != "HTTP":
        raise BuildError(
            f"the protocol {wanted.protocol[:40]!r} is not supported",
            hint="use HTTP; for MQTT see `likewise serve --mqtt`",
        )
    if wanted.types or wanted.source:
        raise BuildError("`types` and `source` are not supported", hint="use the filter instead: {type = …}")
    if len(wanted.filters) != 1 or wanted.filters[0].keys() != {DIALECT}:
        hint = f'write, for example, [{{"{DIALECT}": "{{type~ = parking~}}"}}]'
        raise BuildError(f"`filters` must have one filter of the dialect {DIALECT!r}", hint=hint)
    subscription = parse_subscription(wanted.filters[0][DIALECT])
    return format_subscription(Subscription(name, subscription.body, subscription.options))


def _document(entry: SubscriptionEntry) -> dict[str, Any]:
    assert entry.webhook is not None  # `_entry` and `list_all` select entries with a webhook
    return {
        "id": entry.name,
        "filters": [{DIALECT: entry.text}],
        "sink": entry.webhook.url,
        "protocol": "HTTP",
    }
