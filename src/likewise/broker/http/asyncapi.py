"""The AsyncAPI 3 description of the streams."""

from __future__ import annotations

from typing import Any

import likewise
from likewise.broker.http.models import EventModel, NotificationModel


def asyncapi() -> dict[str, Any]:
    """The AsyncAPI document: notifications and events over server-sent events, WebSocket and MQTT."""
    notification = NotificationModel.model_json_schema(ref_template="#/components/schemas/{model}")
    event = EventModel.model_json_schema()
    definitions = notification.pop("$defs", {})
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Likewise streams", "version": likewise.__version__},
        "defaultContentType": "application/json",
        "channels": {
            "notifications": _channel(
                "/v1/stream", "Matches and detections; resumes after the last id.", "notification"
            ),
            "notificationsWebSocket": _channel(
                "/v1/ws", "Matches and detections as WebSocket text frames.", "notification"
            ),
            "notificationsMqtt": _channel(
                "likewise/{subscription}", "Matches and detections over MQTT.", "notification"
            )
            | {"parameters": {"subscription": {"description": "The name of the subscription."}}},
            "events": _channel("/v1/events/stream", "Every event as it is stored.", "event"),
        },
        "operations": {
            f"receive{name[0].upper()}{name[1:]}": {"action": "receive", "channel": {"$ref": f"#/channels/{name}"}}
            for name in ("notifications", "notificationsWebSocket", "notificationsMqtt", "events")
        },
        "components": {
            "messages": {
                "notification": {"payload": {"$ref": "#/components/schemas/NotificationModel"}},
                "event": {"payload": {"$ref": "#/components/schemas/EventModel"}},
            },
            "schemas": definitions | {"NotificationModel": notification, "EventModel": event},
        },
    }


def _channel(address: str, text: str, message: str) -> dict[str, Any]:
    return {
        "address": address,
        "description": text,
        "messages": {message: {"$ref": f"#/components/messages/{message}"}},
    }
